"""Timing of single activities (kernels, copies) as GPUs record it. A CPU records none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .streams import synchronize as wait

TIMING_KERNEL, TIMING_KERNEL_BUILTIN, TIMING_MEMCPY, TIMING_MEMSET, TIMING_GRAPH = 1, 2, 4, 8, 16
TIMING_ALL = 0xFFFFFFFF


@dataclass(frozen=True)
class TimingResult:
    """One activity: the device, its name, which of the ``TIMING_…`` kinds it is, and its time in milliseconds."""

    device: Any
    name: str
    filter: int
    elapsed: float


def timing_begin(cuda_filter: int = TIMING_ALL, synchronize: bool = True) -> None:
    """Begin to record activities of CUDA devices."""
    if synchronize:
        wait()


def timing_end(synchronize: bool = True) -> list[TimingResult]:
    """End recording. Returns what CUDA devices did meanwhile: an empty list where there are none."""
    if synchronize:
        wait()
    return []


def timing_print(results: Iterable[TimingResult], indent: str = "") -> None:
    """Print results of :func:`timing_end`, one a line, and their sum by name."""
    listed = list(results)
    if not listed:
        print(f"{indent}no activity was recorded")
        return
    sums: dict[tuple[str, str], list[float]] = {}
    for r in listed:
        print(f"{indent}{r.elapsed:12.6f} ms  {r.device}  {r.name}")
        sums.setdefault((str(r.device), r.name), []).append(r.elapsed)
    print(f"{indent}in all:")
    for (device, name), times in sorted(sums.items()):
        print(f"{indent}{sum(times):12.6f} ms  {len(times)} x  {device}  {name}")
