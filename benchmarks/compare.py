"""Run the benchmark scripts for several modules, alternating, and print a table of ratios.

    python benchmarks/compare.py                                   treadle alone
    python benchmarks/compare.py --modules treadle,warp            beside a peer (installed in the same environment)
    python benchmarks/compare.py --modules treadle,warp --peer-python /path/to/other/venv/bin/python

In each round every script runs once for each module, in its own process, one after the other; a figure is the median
of the rounds. A ratio above 1 says that the first module is faster. Close other programs first.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = ("stream", "compute", "scatter", "launch", "gradients", "compile")


def run_script(python: str, script: str, module: str, extra: list[str]) -> list[dict]:
    """The results that one benchmark script prints for one module."""
    command = [python, str(HERE / f"{script}.py"), "--module", module, *extra]
    done = subprocess.run(command, capture_output=True, text=True)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        results.append({"case": script, "error": done.stderr.strip().splitlines()[-1][:200]})
    return results


def collect(modules: dict[str, str], scripts: list[str], rounds: int, extra: list[str]) -> dict[str, dict[str, list]]:
    """Results by case and module; ``modules`` maps a module's name to the interpreter that runs it."""
    table: dict[str, dict[str, list]] = {}
    for _ in range(rounds):
        for script in scripts:
            for module, python in modules.items():
                for result in run_script(python, script, module, extra):
                    table.setdefault(result["case"], {}).setdefault(module, []).append(result)
    return table


def cell(results: list[dict]) -> str:
    """Median value with unit, and a mark where a check failed."""
    values = [each["value"] for each in results if "value" in each]
    if not values:
        return "failed" if results else "—"
    wrong = "" if all(each.get("right", True) for each in results) else " (wrong)"
    return f"{statistics.median(values):,.4g} {results[0]['unit']}{wrong}"


def ratio(mine: list[dict], theirs: list[dict]) -> str:
    """How many times less time the first module needs."""
    if not mine or not theirs or any("seconds" not in each for each in mine + theirs):
        return "—"
    return f"{statistics.median(e['seconds'] for e in theirs) / statistics.median(e['seconds'] for e in mine):.2f}"


def print_table(table: dict[str, dict[str, list]], modules: list[str]) -> None:
    first, peers = modules[0], modules[1:]
    head = ["case", *modules, *(f"{first} is × faster than {peer}" for peer in peers)]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for name, by_module in table.items():
        cells = [cell(by_module.get(module, [])) for module in modules]
        ratios = [ratio(by_module.get(first, []), by_module.get(peer, [])) for peer in peers]
        print("| " + " | ".join([name, *cells, *ratios]) + " |")
    for by_module in table.values():
        for module, results in by_module.items():
            for each in results:
                if "error" in each:
                    print(f"{module}, {each['case']}: {each['error']}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", default="treadle")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter for all modules but the first")
    parser.add_argument("--scripts", default=",".join(SCRIPTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, help="also write every single result here")
    args = parser.parse_args()
    modules = args.modules.split(",")
    pythons = {module: sys.executable if at == 0 else args.peer_python for at, module in enumerate(modules)}
    table = collect(pythons, args.scripts.split(","), args.rounds, ["--quick"] if args.quick else [])
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print_table(table, modules)
    if args.json:
        args.json.write_text(json.dumps(table, indent=1))
    if any("error" in each for by in table.values() for each in by.get(modules[0], [])):
        sys.exit(1)


if __name__ == "__main__":
    main()
