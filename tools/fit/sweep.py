"""Measure elementary functions far and wide, and print their largest errors beside the stated bounds. Needs GCC.

    python tools/fit/sweep.py                        # all functions: every 13th float32, 200,000 float64 of each kind
    python tools/fit/sweep.py --stride 1 sin cos     # all 2**32 arguments of these
    python tools/fit/sweep.py --count 2000000 pow    # more points for float64, and for two arguments

The bounds in ``treadle/builtins/elementary/__init__.py`` are these figures with some room.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.builtins.elementary.measure import BINARY, measure
from tests.builtins.elementary.points import bit_patterns, hard_angles, pairs, ranges, specials
from treadle.builtins.elementary import BODIES, ULP

CHUNK = 1 << 22


def all_singles(name: str, stride: int) -> tuple[float, tuple]:
    """The largest error over every ``stride``-th float32."""
    worst = (-1.0, ())
    for start in range(0, 1 << 32, CHUNK * stride):
        stop = min(start + CHUNK * stride, 1 << 32)
        x = np.arange(start, stop, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)
        worst = max(worst, measure().worst(name, x), key=lambda found: found[0])
    return worst


def sampled(name: str, kind: str, count: int) -> tuple[float, tuple]:
    """The largest error over specials, all magnitudes, usual ranges and hard angles."""
    rng = np.random.default_rng(11)
    if name in BINARY:
        return measure().worst(name, *pairs(kind, 4 * count, rng))
    parts = [specials(kind), hard_angles(kind), bit_patterns(kind, count, rng), ranges(kind, 5 * count, rng)]
    return measure().worst(name, np.concatenate(parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--stride", type=int, default=13)
    parser.add_argument("--count", type=int, default=200_000)
    args = parser.parse_args()
    for name in args.names or sorted(BODIES):
        for kind, bound in zip(("float32", "float64"), ULP[name]):
            whole = kind == "float32" and name not in BINARY
            error, at = all_singles(name, args.stride) if whole else sampled(name, kind, args.count)
            where = ", ".join(repr(float(a)) for a in at[:-1])
            print(f"{name:8} {kind}  {error:6.3f} ulp at {where}; stated {bound}", flush=True)


if __name__ == "__main__":
    main()
