"""Choosing, checking, and what exists inside kernels only."""

import numpy as np
import pytest

import treadle as wp
from treadle.types.core import b1, f32, f64, i32, vector

from .kernels import run


def test_where_takes_one_of_two_and_select_the_other():
    c, x = np.array([True, False]), np.array([[1, 2], [3, 4]], dtype=np.float32)
    out = run(
        ["wp.where(x0, x1, -x1)", "wp.select(x0, x1, -x1)", "wp.where(x2, 1, 2)", "wp.where(x1[0] > 2.0, x1[0], 0)"],
        [(b1, c), (vector(2, f32), x), (i32, np.array([0, 5], dtype=np.int32))],
        [vector(2, f32), vector(2, f32), i32, f32],
    )
    assert np.array_equal(out[0], [[1, 2], [-3, -4]]) and np.array_equal(out[1], -out[0])
    assert out[2].tolist() == [2, 1] and out[3].tolist() == [0, 3]


def test_an_array_that_is_not_there_is_false():
    @wp.kernel
    def k(a: wp.array(dtype=float), o: wp.array(dtype=int)):
        o[0] = wp.where(a, 1, 2)

    o = wp.zeros(1, dtype=int)
    wp.launch(k, dim=1, inputs=[wp.zeros(3, dtype=float), o])
    assert o.numpy()[0] == 1
    wp.launch(k, dim=1, inputs=[None, o])
    assert o.numpy()[0] == 2


@pytest.mark.host
@pytest.mark.parametrize("width", [1, 8])
def test_any_lane_sees_the_gang(width):
    @wp.kernel(gang_width=width)
    def k(o: wp.array(dtype=int)):
        i = wp.tid()
        o[i] = int(wp.any_lane(i == 3))

    o = wp.zeros(16, dtype=int)
    wp.launch(k, dim=16, inputs=[o])
    assert o.numpy()[3] == 1 and o.numpy().sum() == width


@pytest.mark.parametrize("width", [1, 8])
def test_max_lane_is_the_largest_of_the_running_threads(width):
    @wp.kernel(gang_width=width)
    def k(a: wp.array(dtype=int), o: wp.array(dtype=int)):
        i = wp.tid()
        shared = wp.same_lane(50 + 0 * a[i])  # without a mask
        if a[i] < wp.same_lane(shared + 0 * a[i]):
            left = a[i]
            while wp.any_lane(left >= -100):
                top = wp.max_lane(left)
                if left == top:
                    o[i] = top
                    left = -1000

    a = wp.array([3, -7, 3, 60, 12, -7, 3, 3, -2, -3, -4, -5, -1, 70, -9, -6], dtype=int)
    o = wp.zeros(16, dtype=int)
    wp.launch(k, dim=16, inputs=[a, o])
    assert o.numpy().tolist() == [0 if n >= 50 else n for n in a.numpy()]


@pytest.mark.parametrize("condition", [
    "wp.expect_eq(x, 2.0)", "wp.expect_neq(x, 1.0)", "wp.expect_near(x, 1.1)", "wp.expect_near(v, 2.0 * v, 0.5)",
    "wp.expect_eq(v, -v)",
])  # fmt: skip
def test_expectations_that_fail_raise(condition):
    before = f"{condition}; y = x"
    one = [(f32, np.ones(1, np.float32)), (vector(3, f64), np.ones((1, 3)))]
    renamed = before.replace("(x", "(x0").replace("(v", "(x1").replace("* v", "* x1").replace("-v", "-x1")
    with pytest.raises(wp.KernelAssertionError, match="does not hold"):
        run(["y"], one, [f32], before=renamed.replace("= x", "= x0"))
        wp.synchronize()


def test_expectations_that_hold_say_nothing():
    before = "wp.expect_eq(x0, 1.0); wp.expect_neq(x0, 2.0); wp.expect_near(x0, 1.0 + 1e-7); y = x0"
    (out,) = run(["y"], [(f32, np.ones(1, np.float32))], [f32], before=before)
    assert out[0] == 1


def test_the_thread_index_exists_in_kernels_only():
    with pytest.raises(wp.KernelTypeError, match="only inside kernels"):
        wp.tid()


def test_printing_from_python_is_pythons(capsys):
    wp.print("a", 1, wp.vec2(1.0, 2.0))
    wp.printf("%d %5.2f|", 3, 0.5)
    assert capsys.readouterr().out == "a 1 [1.0, 2.0]\n3  0.50|"
