"""Every function through treadle itself: the digits of the body, in gangs of 1, 8 and 16 lanes alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as wp
from tests.builtins.elementary.measure import BINARY
from tests.builtins.elementary.points import UNSIGNED, bit_patterns, pairs, ranges, specials
from treadle.builtins.elementary import BODIES

WIDTHS = (1, 8, 16)
SAMPLE = 80


def kernel_of(name: str) -> wp.Kernel:
    function = getattr(wp, name)
    if name in BINARY:

        @wp.kernel(name=f"{name}_of_two")
        def kernel(x: wp.array(dtype=Any), x2: wp.array(dtype=Any), y: wp.array(dtype=Any)):
            i = wp.tid()
            y[i] = function(x[i], x2[i])

    else:

        @wp.kernel(name=f"{name}_of_one")
        def kernel(x: wp.array(dtype=Any), x2: wp.array(dtype=Any), y: wp.array(dtype=Any)):
            i = wp.tid()
            y[i] = function(x[i])

    return kernel


def launched(kernel: wp.Kernel, x: np.ndarray, x2: np.ndarray, width: int) -> np.ndarray:
    dtype = getattr(wp, x.dtype.name)
    y = wp.zeros(len(x), dtype=dtype)
    before, wp.config.gang_width = wp.config.gang_width, width
    try:
        wp.launch(kernel, dim=len(x), inputs=[wp.array(x, dtype=dtype), wp.array(x2, dtype=dtype), y])
        wp.synchronize()
    finally:
        wp.config.gang_width = before
    return y.numpy()


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(BODIES))
def test_digits_of_the_body_in_every_gang_width(name, kind):
    rng = np.random.default_rng(3)
    if name in BINARY:
        x, x2 = pairs(kind, 1000, rng)
    else:
        x = x2 = np.concatenate([specials(kind), bit_patterns(kind, 501, rng), ranges(kind, 1000, rng)])
    kernel = kernel_of(name)
    results = [launched(kernel, x, x2, width) for width in WIDTHS]
    for width, result in zip(WIDTHS[1:], results[1:]):
        different = bits_differ(results[0], result)
        assert not different.any(), f"{name}({x[different][0]}): {width} lanes differ from one"
    some = rng.choice(len(x), SAMPLE, replace=False)
    with np.errstate(all="ignore"):
        arguments = zip(x[some], x2[some]) if name in BINARY else zip(x[some])
        body = np.array([BODIES[name][kind](*a) for a in arguments], kind)
    different = bits_differ(results[0][some], body)
    assert not different.any(), f"{name}({x[some][different][0]}) is not what the body gives"


def bits_differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where the bits differ; any two NaN count as equal."""
    kind = UNSIGNED[a.dtype.name]
    return (a.view(kind) != b.view(kind)) & ~(np.isnan(a) & np.isnan(b))
