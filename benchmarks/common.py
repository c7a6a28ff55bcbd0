"""What the benchmark scripts share: the module under test, timing, and one JSON line a case.

A script times only public calls that every module with this interface has, on ``device="cpu"``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable
from types import ModuleType

_parser = argparse.ArgumentParser()
_parser.add_argument("--module", default="treadle", help="treadle, or another module with the same interface")
_parser.add_argument("--only", default="", help="run only cases whose name contains this text")
_parser.add_argument("--quick", action="store_true", help="a quarter of a second a case instead of two")

CASES: list[tuple[str, Callable[[], None]]] = []


def arguments() -> argparse.Namespace:
    """The command line; unknown arguments are an error."""
    return _parser.parse_args()


def load() -> ModuleType:
    """The module under test, initialised and quiet."""
    module = importlib.import_module(arguments().module)
    if hasattr(module.config, "log_level"):
        module.config.log_level = 30  # warnings only
    module.config.quiet = True
    module.init()
    return module


def case(function: Callable[[], None]) -> Callable[[], None]:
    """Decorator: a function that times one thing and calls :func:`report`."""
    CASES.append((function.__name__, function))
    return function


def median_time(call: Callable[[], object], least: int = 5) -> float:
    """Median seconds of ``call()`` over two seconds and at least ``least`` calls, after two that do not count."""
    budget = 0.25 if arguments().quick else 2.0
    call(), call()
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def time_per_call(call: Callable[[], object], calls: int = 2000) -> float:
    """Median over nine batches of the mean seconds of one ``call()``, for calls too short to time alone."""
    batches, calls = (3, calls // 4) if arguments().quick else (9, calls)
    for _ in range(200):
        call()
    means = []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        means.append((time.perf_counter() - start) / calls)
    return statistics.median(means)


def report(name: str, seconds: float, unit: str, value: float, **notes: object) -> None:
    """Print one result: ``seconds`` for ratios, ``value`` in ``unit`` for people, ``notes`` such as checks."""
    print(json.dumps({"case": name, "seconds": seconds, "unit": unit, "value": value, **notes}), flush=True)


def main() -> None:
    """Run the cases of the calling script; a case that fails prints an error line and the rest go on."""
    for name, function in CASES:
        if arguments().only in name:
            try:
                function()
            except Exception as error:
                print(json.dumps({"case": name, "error": f"{type(error).__name__}: {error}"[:500]}), flush=True)
