"""A fault that a kernel reported becomes a Python exception that names line, array, index, shape and thread."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import (
    DataRaceError,
    IndexOutOfRange,
    KernelAssertionError,
    KernelMemoryError,
    TreadleError,
    UnassignedError,
)
from ..base.span import Span


def thread_text(thread: int, dims: Sequence[int]) -> str:
    """How a linear thread index reads in a grid of ``dims``: ``5``, or ``(1, 2)``."""
    if len(dims) <= 1:
        return str(thread)
    place: list[int] = []
    for extent in reversed(dims):
        place.append(thread % extent)
        thread //= extent
    return f"({', '.join(map(str, reversed(place)))})"


def _tuple(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))}{',' if len(values) == 1 else ''})"


def fault_error(
    kernel: str, site: dict[str, Any], thread: int, values: Sequence[int], dims: Sequence[int]
) -> TreadleError:
    """The exception for a fault at ``site`` (an item of ``meta["sites"]``) in linear thread ``thread``."""
    span = _span(site)
    where = f"kernel {kernel}, thread {thread_text(thread, dims)}"
    kind = site["kind"]
    if kind == "index":
        ndim = site["ndim"]
        index, shape = values[:ndim], values[ndim : 2 * ndim]
        shown = index[0] if ndim == 1 else _tuple(index)
        name = f" '{site['array']}'" if site.get("array") else ""
        return IndexOutOfRange(
            f"index {shown} is out of bounds of array{name} of shape {_tuple(shape)} ({where})", span
        )
    if kind == "assert":
        shown = ", ".join(map(str, shown_values(site, values)))
        said = f": {site['text']}" if site.get("text") else ""
        return KernelAssertionError(f"Assertion failed{said}{f' [{shown}]' if shown else ''} ({where})", span)
    if kind == "component":
        index = shown_values(site, values)[0]
        return IndexOutOfRange(f"index {index} is out of bounds of {site['text']} ({where})", span)
    if kind == "memory":
        return KernelMemoryError(f"memory for the values that a gradient needs of its loops ran out ({where})", span)
    message = f"{site.get('text') or kind} ({where})"
    return UnassignedError(message, span) if kind == "unassigned" else TreadleError(message, span)


_USES = {"store": "writes", "load": "reads", "atomic": "updates"}


def race_error(
    kernel: str, sites: Sequence[dict[str, Any]], number: int, thread: int, values: Sequence[int], dims: Sequence[int]
) -> TreadleError:
    """The exception for two threads that met at site ``number``; ``values`` begin with the other one and its site."""
    other, where, *rest = values
    site, before = sites[number], sites[where]
    element = ", ".join(map(str, rest[: site["ndim"]]))
    place = _span(before)
    message = (
        f"data race at {site['array']}[{element}]: thread {thread_text(thread, dims)} {_USES[site['access']]} it here, "
        f"thread {thread_text(other, dims)} {_USES[before['access']]} it in the same launch (kernel {kernel})"
    )
    return DataRaceError(f"{message}, at\n{place.show()}" if place is not None else message, _span(site))


def _span(site: dict[str, Any]) -> Span | None:
    """Where the site is in the source, if that is known."""
    line = site.get("line") or 0
    known = site.get("file") and line
    return Span(site["file"], line, site.get("column", 0), site.get("end_column", 0)) if known else None


def shown_values(site: dict[str, Any], values: Sequence[int]) -> list[bool | int | float]:
    """What a fault record shows, from the bits it holds and the names of their types."""
    return [_from_bits(bits, t) for bits, t in zip(values, site.get("types", ()), strict=False)]


def _from_bits(bits: int, t: str) -> bool | int | float:
    raw = (bits & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
    if t in _FLOATS:
        value = struct.unpack_from(f"<{_FLOATS[t]}", raw)[0]
        return float(str(np.float16(value) if t == "f16" else np.float32(value))) if t != "f64" else value
    if t == "bf16":
        return struct.unpack("<f", b"\0\0" + raw[:2])[0]
    if t == "bool":
        return bool(bits)
    return bits & 0xFFFFFFFFFFFFFFFF if t.startswith("u") else bits


_FLOATS = {"f16": "e", "f32": "f", "f64": "d"}
