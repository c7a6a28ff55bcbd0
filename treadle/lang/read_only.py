"""Launches do not write to memory that must not be changed: what is asked before a kernel that may do so is run.

Native launchers know by themselves which arguments may be read-only (``runtime/fast.py``). What they do not take comes
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..base.errors import LaunchTypeError
from ..runtime import capture
from ..runtime.array import COPY_IT, array
from ..runtime.conversion import to_host
from ..runtime.launch import Program
from ..runtime.packing import fixed
from ..types.core import Indexed
from .held import held_by, holds_arrays

__all__ = ["check_writes", "looks"]


def looks(program: Program) -> bool:
    """Whether each launch must look into memory: there are read-only arrays in elements of arrays, and ``program`` may
    write to arrays that are."""
    return bool(fixed) and program.entry.meta["touched"]["unknown"] == "written"


def check_writes(
    kernel: Any, types: tuple[Any, ...], program: Program, values: Sequence[Any], given: Sequence[Any] = ()
) -> None:  # fmt: skip
    """Raise where a launch may write to a read-only array. ``given``: what the arguments were to begin with.

    Raises:
        LaunchTypeError: it does; the message names kernel and parameter.
    """
    for k, *fields in program.stored or ():
        a, name = _part(values[k], types[k], fields)
        if isinstance(a, array) and a.read_only:
            outside = k < len(given) and given[k] is not values[k]
            _refuse(kernel, kernel.parameters[k].name + name, type(given[k]).__name__ if outside else "array")
    if looks(program):
        for name in _held(kernel, types, program.entry.meta["touched"]["held"], values):
            _refuse(kernel, name, "array")


def _part(value: Any, t: Any, fields: Sequence[int]) -> tuple[Any, str]:
    """What the ``fields`` of a value lead to, and how a user writes it; the data of an indexed array is that itself."""
    name = ""
    for i in fields:
        field, inner = t.fields[i]
        name += "" if isinstance(t, Indexed) else f".{field}"
        value, t = getattr(value, field, None), inner
    return value, name


def _refuse(kernel: Any, name: str, kind: str) -> None:
    article = "an" if kind == "array" else "a"
    raise LaunchTypeError(
        f"kernel {kernel.key} writes to its argument {name!r}, {article} {kind} that must not be changed", hint=COPY_IT
    )


def _held(kernel: Any, types: tuple[Any, ...], held: Any, values: Sequence[Any]) -> Iterator[str]:
    """The read-only arrays in elements of arrays that a launch may write to. ``held``: where they are, as the compiler
    has found; None if it has not."""
    if held is None:
        places = [(k, t) for k, t in enumerate(types) if holds_arrays(t)] if not capture.active else []
        yield from (kernel.parameters[k].name for k, t in places for a in held_by(values[k], t) if a.read_only)
        return
    for (k, *path), fields in held:
        a, name = _part(values[k], types[k], path)
        if a is None or a.device.queue is not None:
            continue
        for item in to_host(a._raw(), a._element):
            inner, field = _part(item, a._element.type, fields)
            if isinstance(inner, array) and inner.read_only:
                yield f"{kernel.parameters[k].name}{name}[…]{field}"
