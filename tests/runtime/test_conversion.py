"""Host data to elements of arrays and back."""

import sys

import numpy as np
import pytest

import treadle as wp


def test_brain_floats_are_bits_or_what_ml_dtypes_makes_of_them(monkeypatch):
    monkeypatch.delitem(sys.modules, "ml_dtypes", raising=False)
    a = wp.array([1.0, 2.5, -3.0], dtype=wp.bfloat16)
    assert a.numpy().dtype == np.uint16 and a.numpy()[0] == 0x3F80 and a.list() == [1.0, 2.5, -3.0]
    assert str(a) == "[ 1.   2.5 -3. ]" and wp.array(a, dtype=float).list() == [1.0, 2.5, -3.0]


def test_a_program_that_has_ml_dtypes_gets_its_brain_floats(monkeypatch):
    package = pytest.importorskip("ml_dtypes")
    monkeypatch.setitem(sys.modules, "ml_dtypes", package)
    brain = package.bfloat16
    a = wp.array([1.0, 2.5, -3.0], dtype=wp.bfloat16)
    assert a.numpy().dtype == brain and a.numpy().astype(float).tolist() == [1.0, 2.5, -3.0]
    assert wp.array(a.numpy()).dtype is wp.bfloat16 is wp.dtype_from_numpy(brain)
    shared = wp.array(np.ones(2, brain), copy=False)
    shared[1] = 4.0
    a.fill_(2.0)
    a[0:2].assign(shared)
    assert shared.list() == [1.0, 4.0] and a.list() == [1.0, 4.0, 2.0]


def test_components_lie_in_the_last_axes_that_are_longer_than_one():
    for shape, dtype, wanted in (
        ((4, 2, 1), wp.vec2, (4,)), ((4, 1, 2), wp.vec2, (4, 1)), ((4, 2, 2, 1), wp.mat22, (4,)),
        ((4, 4), wp.vec2, (4, 2)), ((8,), wp.mat22, (2,)), ((2, 2), wp.mat22, (1,)), ((2, 4, 4), wp.mat22, (2, 4)),
        ((4, 1), wp.vec2, (2,)),
    ):  # fmt: skip
        assert wp.array(np.ones(shape), dtype=dtype).shape == wanted
    for shape in ((4, 3), (3,), (4, 2, 3)):
        with pytest.raises(wp.ArrayError):
            wp.array(np.ones(shape), dtype=wp.vec2)
