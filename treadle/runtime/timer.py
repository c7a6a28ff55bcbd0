"""``ScopedTimer``: how long a block takes."""

from __future__ import annotations

import builtins
import cProfile
import time
from collections.abc import Callable
from typing import Any

from .streams import synchronize as wait


class ScopedTimer:
    """``with wp.ScopedTimer("step"):`` prints how long the block took; ``elapsed`` keeps it in milliseconds.

    Args:
        name: printed in front of the time.
        active: whether to measure at all.
        print: whether to print.
        detailed: also print a profile of the Python calls.
        dict: a dictionary that gathers times, ``dict[name]`` being a list of milliseconds.
        synchronize: wait for all devices at both ends.
        report_func: called instead of printing, with an empty list of kernel timings and the indentation.
        use_nvtx, color, cuda_filter, skip_tape: accepted for compatibility.

    >>> import treadle as wp
    >>> with wp.ScopedTimer("nothing", print=False) as timer:
    ...     pass
    >>> timer.elapsed < 1000.0
    True
    """

    indent = -1
    enabled = True

    def __init__(self, name: str, active: bool = True, print: bool = True, detailed: bool = False,
                 dict: builtins.dict[str, list[float]] | None = None, use_nvtx: bool = False, color: Any = "rapids",
                 synchronize: bool = False, cuda_filter: int = 0, report_func: Callable | None = None,
                 skip_tape: bool = False):  # fmt: skip
        self.name, self.active, self.print, self.detailed = name, active and self.enabled, print, detailed
        self.dict, self.synchronize, self.report_func, self.skip_tape = dict, synchronize, report_func, skip_tape
        self.elapsed = 0.0
        self.timing_results: list = []
        self.extra_msg = ""
        self._profile: cProfile.Profile | None = None
        if dict is not None:
            dict.setdefault(name, [])

    def __enter__(self) -> ScopedTimer:
        if self.active:
            if self.synchronize:
                wait()
            ScopedTimer.indent += 1
            if self.detailed:
                self._profile = cProfile.Profile()
                self._profile.enable()
            self.start = time.perf_counter_ns()
        return self

    def __exit__(self, *exc: object) -> None:
        if not self.active:
            return
        if self.synchronize:
            wait()
        self.elapsed = (time.perf_counter_ns() - self.start) / 1e6
        if self._profile is not None:
            self._profile.disable()
            self._profile.print_stats(sort="tottime")
        if self.dict is not None:
            self.dict[self.name].append(self.elapsed)
        indent = "\t" * ScopedTimer.indent
        if self.report_func is not None:
            self.report_func(self.timing_results, indent)
        elif self.print:
            extra = f" {self.extra_msg}" if self.extra_msg else ""
            builtins.print(f"{indent}{self.name} took {self.elapsed:.2f} ms{extra}")
        ScopedTimer.indent -= 1
