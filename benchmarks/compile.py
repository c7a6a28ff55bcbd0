"""How long a user waits: importing, the first launch with an empty cache, the first launch with a filled one.

Every figure is the median of fresh processes (see compile_child.py).
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import arguments, case, main, report

CHILD = Path(__file__).with_name("compile_child.py")


def processes() -> int:
    return 3 if arguments().quick else 7


def milliseconds(name: str, seconds: float, **notes: object) -> None:
    report(name, seconds, "ms", seconds * 1e3, **notes)


def first_launch(kernel: str, cache: str) -> dict[str, float]:
    """Seconds of import, init and first launch in a fresh process with the given cache folder."""
    command = [sys.executable, str(CHILD), arguments().module, kernel, cache]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-400:])
    return json.loads(done.stdout.splitlines()[-1])


def process_time(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return time.perf_counter() - start


@case
def importing() -> None:
    """A process that imports the module and ends; ``numpy_ms`` is the same with numpy alone."""
    process_time(f"import {arguments().module}")
    whole = statistics.median(process_time(f"import {arguments().module}") for _ in range(processes()))
    numpy = statistics.median(process_time("import numpy") for _ in range(processes()))
    milliseconds("import, whole process", whole, numpy_ms=numpy * 1e3)


def cold_and_warm(kernel: str, name: str) -> None:
    cold, warm = [], []
    for _ in range(processes()):
        with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
            cold.append(first_launch(kernel, cache))
            warm.append(first_launch(kernel, cache))
    right = all(each["right"] for each in cold + warm)
    for runs, state in ((cold, "cold"), (warm, "warm")):
        first, whole = (statistics.median(each[what] for each in runs) for what in ("first", "whole"))
        milliseconds(f"{name}, {state} first launch", first, right=right, import_to_end_ms=whole * 1e3)


@case
def one_line() -> None:
    cold_and_warm("one_line", "one-line kernel")


@case
def hundred_lines() -> None:
    cold_and_warm("hundred_lines", "100-line kernel")


@case
def hundred_lines_gradient() -> None:
    """The kernel and its adjoint: a launch on a tape, and the backward pass."""
    cold_and_warm("hundred_lines_gradient", "100-line kernel and adjoint")


if __name__ == "__main__":
    main()
