"""Operators between host values give the bits of the builtins."""

import numpy as np
import pytest

import treadle as wp

PAIRS = ["mat33 vec3", "vec3 mat33", "mat22 mat22", "quat quat", "transform transform"]


@pytest.mark.parametrize("suffix", ["", "h", "d"])
@pytest.mark.parametrize("pair", PAIRS)
def test_products_are_those_of_the_builtins(pair, suffix):
    rng = np.random.default_rng(7)
    left, right = (getattr(wp, name + suffix) for name in pair.split())
    for _ in range(5):
        a, b = (c(*rng.standard_normal(c._length_).tolist()) for c in (left, right))
        assert a * b == wp.mul(a, b) and type(a * b) is type(wp.mul(a, b))
