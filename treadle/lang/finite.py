"""``wp.config.verify_fp``: after each launch, which floats in the kernel's arrays are not finite, and whether they were
so before it. The first launch that is named without "already before" is the one to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..base.logs import get_logger
from ..runtime.shaped import Shaped
from ..types.core import Matrix, Vector, bf16
from ..types.numbers import bf16_values
from .struct import StructBase


@contextmanager
def checked(kernel: str, names: Sequence[str], values: Sequence[Any]) -> Iterator[None]:
    """Compare the arrays among ``values``, arguments called ``names``, before and after a launch of ``kernel``."""
    before = _counts(names, values)
    yield
    say: Callable[[str], None] = get_logger().info
    for name, rows in _floats(names, values):
        bad = ~np.isfinite(rows)
        count = int(bad.sum())
        if count == 0:
            continue
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        earlier = f"; {before[name]} already before" if before.get(name) else ""
        say(f"verify_fp: kernel {kernel}: '{name}' has {count} value(s) that are not finite, first {rows[first]} at "
            f"{list(first)}{earlier}")  # fmt: skip


def _counts(names: Sequence[str], values: Sequence[Any]) -> dict[str, int]:
    return {name: int((~np.isfinite(rows)).sum()) for name, rows in _floats(names, values)}


def _floats(names: Sequence[str], values: Sequence[Any]) -> Iterator[tuple[str, np.ndarray]]:
    """The floats in the arrays of ``values``, fields of structs included, each with its name."""
    for name, value in zip(names, values, strict=True):
        if isinstance(value, StructBase):
            fields = type(value).__treadle_type__.index
            yield from _floats([f"{name}.{f}" for f in fields], [getattr(value, f) for f in fields])
        elif isinstance(value, Shaped):
            yield from _in_rows(name, value.numpy(), value)


def _in_rows(name: str, rows: np.ndarray, a: Any = None) -> Iterator[tuple[str, np.ndarray]]:
    if rows.dtype.names:
        for field in rows.dtype.names:
            yield from _in_rows(f"{name}.{field}", rows[field])
    elif rows.dtype.kind == "f":
        yield name, rows
    elif a is not None and _scalar(a) is bf16:
        yield name, bf16_values(rows.view(np.uint16))


def _scalar(a: Any) -> Any:
    t = a.type.elem
    return t.elem if isinstance(t, Vector | Matrix) else t
