"""What kernels print: the log of a launch becomes text on ``sys.stdout``.

The log holds one record after the other: the print site's number (i64), then 8 bytes for each of its values: integers
sign- or zero-extended, floats as f64, truth values as 0 or 1. ``meta["prints"]`` has a site's ``format`` with C's
codes, and in ``values``, for each code, the name of a scalar type, or ``{"text": …}`` for text known while compiling,
which takes no place in the log.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from typing import Any

_CODE = re.compile(r"%([-+ #0]*)(\d+)?(\.\d+)?(?:hh|h|ll|l|z|j|t|L)?([diouxXeEfFgGcs%])")


def write(log: bytes, sites: list[dict[str, Any]]) -> None:
    """Print all records of ``log``."""
    out, at = [], 0
    while at < len(log):
        (number,) = struct.unpack_from("<q", log, at)
        at += 8
        site, values = sites[number], []
        for t in site["values"]:
            if isinstance(t, dict):
                values.append(t["text"])
            else:
                values.append(_scalar(log, at, t))
                at += 8
        out.append(formatted(site["format"], values))
    sys.stdout.write("".join(out))


def _scalar(log: bytes, at: int, t: str) -> bool | int | float:
    if t.startswith(("f", "bf")):
        return struct.unpack_from("<d", log, at)[0]
    value = struct.unpack_from("<Q" if t.startswith("u") else "<q", log, at)[0]
    return bool(value) if t == "bool" else value


def formatted(text: str, values: list[Any]) -> str:
    """``text`` with each ``%`` code replaced as C's printf does. A negative number under an unsigned code shows the
    bits of 32 or, if it needs them, 64; a code without a value stays.

    >>> formatted("%d%% of %-6.2f|%s", [50, 2.5, "x"])
    '50% of 2.50  |x'
    """
    rest: Iterator[Any] = iter(values)

    def put(match: re.Match[str]) -> str:
        flags, width, precision, code = match.groups()
        if code == "%":
            return "%"
        value = next(rest, None)
        if value is None:
            return match[0]
        if code in "diouxXc":
            value = int(value)
            if value < 0 and code in "ouxX":
                value &= 0xFFFFFFFF if value >= -(1 << 31) else 0xFFFFFFFFFFFFFFFF
        elif code != "s":
            value = float(value)
        return f"%{flags}{width or ''}{precision or ''}{'d' if code in 'iu' else code}" % value

    return _CODE.sub(put, text)
