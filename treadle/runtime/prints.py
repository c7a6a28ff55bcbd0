"""What kernels print: the log of a launch becomes text on ``sys.stdout``.

The log holds one record after the other: the print site's number (i64), then 8 bytes for each of its values: integers
sign- or zero-extended, floats as f64, truth values as 0 or 1. ``meta["prints"]`` has a site's ``format`` (C's codes) or,
for ``print``, none, and the types of its ``values``: names of scalars, composites such as ``vec<3,f32>`` (their scalars
follow each other in the log), or a ``{"text": …}`` that is known while compiling.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from typing import Any

_CODE = re.compile(r"%[-+ #0]*(?:\d+)?(?:\.\d+)?(?:hh|h|ll|l|z|j|t|L)?([diouxXeEfFgGcs%])")
_LENGTH = re.compile(r"(hh|h|ll|l|z|j|t|L)(?=[diouxXeEfFgG]$)")
_COMPOSITE = re.compile(r"(vec|mat|quat|transform)<(.*)>")


def write(log: bytes, sites: list[dict[str, Any]]) -> None:
    """Print all records of ``log``."""
    out, at = [], 0
    while at < len(log):
        (number,) = struct.unpack_from("<q", log, at)
        at += 8
        site = sites[number]
        values = []
        for t in site["values"]:
            value, at = _value(log, at, t)
            values.append(value)
        out.append(
            _formatted(site["format"], values) if site.get("format") is not None else " ".join(map(str, values)) + "\n"
        )
    sys.stdout.write("".join(out))
    sys.stdout.flush()


def _value(log: bytes, at: int, t: Any) -> tuple[Any, int]:
    if isinstance(t, dict):
        return t["text"], at
    composite = _COMPOSITE.fullmatch(t)
    if composite is None:
        return _scalar(log, at, t), at + 8
    kind, inside = composite.groups()
    parts = inside.split(",")
    shape = {"vec": parts[:1], "mat": parts[:2], "quat": ["4"], "transform": ["7"]}[kind]
    extents = [int(n) for n in shape]
    count = extents[0] * (extents[1] if len(extents) == 2 else 1)
    numbers = [_scalar(log, at + 8 * i, parts[-1]) for i in range(count)]
    if len(extents) == 2:
        rows = [numbers[i : i + extents[1]] for i in range(0, count, extents[1])]
        return "[" + ", ".join(_row(r) for r in rows) + "]", at + 8 * count
    return _row(numbers), at + 8 * count


def _row(numbers: list[Any]) -> str:
    return "[" + ", ".join(map(str, numbers)) + "]"


def _scalar(log: bytes, at: int, t: str) -> Any:
    if t == "bool":
        return bool(struct.unpack_from("<q", log, at)[0])
    if t.startswith(("f", "bf")):
        value = struct.unpack_from("<d", log, at)[0]
        return float(f"{value:.9g}") if t != "f64" else value
    return struct.unpack_from("<Q" if t.startswith("u") else "<q", log, at)[0]


def _formatted(text: str, values: list[Any]) -> str:
    """``text`` with each ``%`` code replaced as C's printf does."""
    rest: Iterator[Any] = iter(values)

    def put(match: re.Match[str]) -> str:
        code = match[1]
        if code == "%":
            return "%"
        value = next(rest, None)
        if value is None:
            return match[0]
        spec = _LENGTH.sub("", match[0])
        if code in "diouxXc":
            value = int(value)
            if value < 0 and code in "ouxX":
                value &= 0xFFFFFFFF if value >= -(1 << 31) else 0xFFFFFFFFFFFFFFFF
            return spec.replace("i", "d").replace("u", "d") % value
        return spec % (value if code == "s" else float(value))

    return _CODE.sub(put, text)
