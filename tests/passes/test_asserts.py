"""Asserts go from programs that are not checked, also out of functions; other checks stay."""

from __future__ import annotations

import pytest

import treadle as wp


@wp.func(inline=False)
def positive(x: float):
    assert x > 0.0, "must be positive"
    return x


@wp.kernel
def guarded(a: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    assert i < 2, "two threads"
    out[i] = positive(a[i])


@wp.kernel
def expected(a: wp.array(dtype=float)):
    wp.expect_eq(a[wp.tid()], 1.0)


def test_release_programs_do_not_test_asserts():
    a, out = wp.array([1.0, -2.0, 3.0], dtype=float), wp.zeros(3, dtype=float)
    wp.launch(guarded, dim=3, inputs=[a, out])
    assert out.list() == [1.0, -2.0, 3.0]


def test_checked_programs_do_also_in_functions():
    a, out = wp.array([1.0, -2.0, 3.0], dtype=float), wp.zeros(3, dtype=float)
    with pytest.raises(AssertionError, match="must be positive"):
        wp.launch(guarded, dim=2, inputs=[a, out], checked=True)
    with pytest.raises(AssertionError, match="two threads"):
        wp.launch(guarded, dim=3, inputs=[wp.ones(3, dtype=float), out], checked=True)


def test_what_builtins_expect_stays():
    with pytest.raises(AssertionError, match="expect_eq does not hold"):
        wp.launch(expected, dim=1, inputs=[wp.zeros(1, dtype=float)])
