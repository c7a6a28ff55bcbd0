"""Run the tests that the ``warp-lang`` wheel ships, unmodified, with ``warp`` answered by treadle.

    python tests/conformance/run.py OUT.json [--files 'test_vec*' …] [--jobs 2] [--module warp]

Each file runs in a process of its own; where that dies or hangs, the test that did it is noted and the others go on in
a new one. ``--module warp`` runs Warp itself, which tells which tests it passes on a CPU.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.machinery
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESTARTS = 20


def test_files() -> dict[str, str]:
    """The test files of the installed wheel, as ``folder/test_name.py``, with the modules that they are."""
    spec = importlib.machinery.PathFinder.find_spec("warp", [p for p in sys.path if p != str(HERE / "site")])
    if spec is None:
        sys.exit("warp-lang is not installed: pip install warp-lang")
    home = Path(next(iter(spec.submodule_search_locations))) / "tests"
    names = sorted(path.relative_to(home).as_posix() for path in home.rglob("test_*.py"))
    return {name: "warp.tests." + name.removesuffix(".py").replace("/", ".") for name in names}


def run_file(module: str, environment: dict[str, str], limits: tuple[float, float]) -> dict[str, Any]:
    """The results of one file: ``tests`` by id, and ``problem`` if it could not be imported or was skipped as a whole.

    ``limits``: seconds for one test, and for the file.
    """
    tests: dict[str, Any] = {}
    result: dict[str, Any] = {"tests": tests}
    begin = time.monotonic()
    # Tests write a module twice within a second: byte code, which goes by seconds, would not have changed.
    environment = {**environment, "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        events, done = Path(folder, "events"), Path(folder, "done")
        for _ in range(RESTARTS):
            done.write_text("\n".join(name for name, test in tests.items() if test["status"] != "not run"))
            command = [sys.executable, str(HERE / "worker.py"), module, str(events), str(done)]
            how = _watch(command, environment, folder, events, limits, begin)
            current, finished = None, False
            for line in events.read_text(encoding="utf-8").splitlines() if events.exists() else ():
                event = json.loads(line)
                finished |= event.keys() & {"finished", "skipped", "broken"} != set()
                for name in event.get("tests", ()):
                    tests.setdefault(name, {"status": "not run"})
                for kind in ("skipped", "broken", "around"):
                    if kind in event:
                        result["problem"] = f"{kind}: {event[kind]}"
                if "start" in event:
                    current = event["start"]
                if "end" in event:
                    current = None
                    tests[event["end"]] = {k: v for k, v in event.items() if k != "end" and v != ""}
            events.unlink(missing_ok=True)
            if finished or (current is None and how != "died"):
                break
            if current is None:
                result["problem"] = how
                break
            tests[current] = {"status": "hangs" if how == "hangs" else "crash"}
            if time.monotonic() - begin > limits[1]:
                break
    result["seconds"] = round(time.monotonic() - begin, 1)
    return result


def _watch(command: list[str], environment: dict[str, str], folder: str, events: Path, limits: tuple[float, float],
           begin: float) -> str:  # fmt: skip
    """Wait for a worker; stop it where it, or one of its tests, takes too long. Answers "ended", "died" or "hangs"."""
    with open(os.devnull, "r+b") as nothing:
        worker = subprocess.Popen(
            command, stdin=nothing, stdout=nothing, stderr=nothing, env=environment, cwd=folder, start_new_session=True
        )
    try:
        while True:
            try:
                return "ended" if worker.wait(0.5) >= 0 else "died"
            except subprocess.TimeoutExpired:
                last = events.stat().st_mtime if events.exists() else time.time()  # tests tell when they start and end
                if time.time() - last > limits[0] or time.monotonic() - begin > limits[1]:
                    return "hangs"
    finally:
        try:  # with whatever processes its tests have left
            os.killpg(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        worker.wait()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--module", choices=("treadle", "warp"), default="treadle")
    parser.add_argument("--files", action="append", help="only files whose name matches; may be given several times")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--test-seconds", type=float, default=300)
    parser.add_argument("--file-seconds", type=float, default=1200)
    given = parser.parse_args()
    chosen = {name: module for name, module in test_files().items()
              if not given.files or any(fnmatch.fnmatch(name, pattern) for pattern in given.files)}  # fmt: skip
    path = [str(HERE / "site"), str(HERE.parents[1])] if given.module == "treadle" else []
    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(given.jobs) as pool:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "CONFORMANCE_MODULE": given.module,
                       "CUDA_VISIBLE_DEVICES": "", "TREADLE_CACHE_DIR": cache, "WARP_CACHE_PATH": cache}  # fmt: skip
        limits = given.test_seconds, given.file_seconds
        runs = {name: pool.submit(run_file, module, environment, limits) for name, module in chosen.items()}
        files = {}
        for name, run in runs.items():
            files[name] = result = run.result()
            passed = sum(test["status"] == "pass" for test in result["tests"].values())
            print(f"{result['seconds']:7.1f} s  {name}: {passed} of {len(result['tests'])} pass", flush=True)
    facts = {"module": given.module, "python": platform.python_version(), "system": platform.platform()}
    Path(given.out).write_text(json.dumps({**facts, "files": files}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
