"""Recorded launches: filled in later, run again, differentiated; grids that indices can and cannot say."""

import ctypes
import sys
import threading

import numpy as np
import pytest

import treadle as wp
from treadle.lang.recorded import Bounds

MOST = 2**31


@wp.kernel
def square(x: wp.array(dtype=float), shift: wp.vec3, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] + shift[0]


@wp.kernel
def count(n: wp.array(dtype=int)):
    wp.atomic_add(n, 0, 1)


@wp.kernel
def grid(out: wp.array2d(dtype=int)):
    i, j = wp.tid()
    out[i, j] = i + j


def test_a_launch_made_empty_is_filled_in_and_run():
    x, y = wp.array([1.0, 2.0, 3.0], dtype=float), wp.zeros(3, dtype=float)
    command = wp.Launch(square)
    command.launch()  # an empty grid
    command.set_dim(2)
    command.set_param_by_name("x", x)
    command.set_param_by_name("y", y)
    command.launch()
    assert y.list() == [1.0, 4.0, 0.0]
    command.set_param_at_index(1, wp.vec3(10.0, 0.0, 0.0))
    command.set_dim(3)
    command.launch()
    assert y.list() == [11.0, 14.0, 19.0]
    assert command.params[0] is x and command.bounds == Bounds((3,), 3, 1)


@wp.kernel
def parts(t: wp.transform, m: wp.mat22, n: int, out: wp.array(dtype=float)):
    out[0] = t[6] + m[1, 1] + float(n)


def test_arguments_that_are_not_set_are_zero():
    out = wp.ones(1, dtype=float)
    command = wp.Launch(parts)
    command.set_param_by_name("out", out)
    command.set_dim(1)
    command.launch()
    assert out.list() == [0.0]


def test_a_recorded_adjoint_takes_gradients_that_are_named():
    x, y = wp.array([1.0, 2.0], dtype=float, requires_grad=True), wp.zeros(2, dtype=float, requires_grad=True)
    y.grad.fill_(1.0)
    args = [x, wp.vec3(0.0), y]
    command = wp.launch(square, dim=2, inputs=args, adj_inputs=[None] * 3, adjoint=True, record_cmd=True)
    command.launch()
    assert x.grad.list() == [2.0, 4.0]
    mine = wp.zeros(2, dtype=float)
    command.set_param_at_index(0, mine, adjoint=True)
    y.grad.fill_(10.0)
    command.launch()
    assert mine.list() == [20.0, 40.0] and x.grad.list() == [2.0, 4.0]


def test_a_change_that_does_not_fit_changes_nothing():
    x = wp.zeros(4, dtype=float)
    command = wp.launch(square, dim=4, inputs=[x, wp.vec3(0.0), x], record_cmd=True)
    with pytest.raises(wp.LaunchTypeError, match="argument 'shift'"):
        command.set_param_by_name("shift", 3)
    with pytest.raises(ValueError, match="non-negative"):
        command.set_dim([4, -1])
    with pytest.raises(wp.LaunchError, match="has no argument 'z'; it has x, shift, y"):
        command.set_param_by_name("z", 3)
    assert command.dim == (4,) and list(command.params[1]) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("kernel", "shape", "dim", "bounds"),
    [
        (grid, (1, 1), (2**16, 2**16), ((2**16, 2**16), 2**32, 1)),
        (grid, (1, 1), (MOST, 1), ((MOST, 1), MOST, 1)),
        (grid, (1, 1), 7, ((7, 1), 7, 1)),
        (grid, (1, 1), (0, MOST + 1), ((0, MOST + 1), 0, 1)),
        (grid, (1, 1), (2, 3, MOST + 1), ((2, 3), 6 * (MOST + 1), MOST + 1)),
        (count, 1, MOST + 1, ((MOST + 1,), MOST + 1, 1)),
    ],
)
def test_grids_that_indices_can_say(kernel, shape, dim, bounds):
    command = wp.launch(kernel, dim=dim, inputs=[wp.zeros(shape, dtype=int)], record_cmd=True)
    assert command.bounds == Bounds(*bounds)


def test_grids_that_indices_cannot_say():
    out = wp.zeros((1, 1), dtype=int)
    for axis in (0, 1):
        dim = [1, 1]
        dim[axis] = MOST + 1
        with pytest.raises(ValueError, match=f"extent {MOST + 1} in dimension {axis}"):
            wp.launch(grid, dim=dim, inputs=[out], record_cmd=True)
    with pytest.raises(wp.GridError, match="is too large"):
        wp.launch(count, dim=(2**40, 2**40), inputs=[wp.zeros(1, dtype=int)], record_cmd=True)


@pytest.mark.host
def test_threads_beyond_those_that_a_kernel_tells_apart():
    out = np.zeros((2, 3), np.int32)
    wp.launch(grid, dim=(2, 3, 4), inputs=[out])
    assert out.tolist() == [[0, 1, 2], [1, 2, 3]]
    n = wp.zeros(1, dtype=int)
    wp.launch(count, dim=(), inputs=[n])
    wp.launch(count, dim=(2, 0), inputs=[n])
    assert n.list() == [1]


@wp.struct
class Push:
    force: wp.vec3
    times: int


@wp.kernel
def pushed(a: wp.array(dtype=float), s: float, v: wp.vec3, p: Push):
    a[wp.tid()] = s + v[0] + 10.0 * v[2] + 100.0 * p.force[1] * float(p.times)


class CPush(ctypes.Structure):
    _fields_ = (("force", ctypes.c_float * 3), ("times", ctypes.c_int))


def test_arguments_are_set_from_values_of_ctypes():
    a, b = wp.zeros(2, dtype=float), wp.zeros(2, dtype=float)
    command = wp.launch(pushed, dim=2, inputs=[a, 0.0, wp.vec3(), Push()], record_cmd=True)
    command.set_param_at_index_from_ctype(1, ctypes.c_float(1.5))
    command.set_param_by_name_from_ctype("v", (ctypes.c_float * 3)(2.0, 0.0, 3.0))
    command.set_param_by_name_from_ctype("p", CPush((0.0, 4.0, 0.0), 2))
    command.launch()
    assert a.list() == [1.5 + 2.0 + 30.0 + 800.0] * 2
    command.set_params_from_ctypes([b, 0.5, wp.vec3(1.0, 0.0, 0.0), CPush((0.0, 1.0, 0.0), 0)])
    command.launch()
    assert b.list() == [1.5] * 2


def test_values_of_ctypes_that_do_not_fit_are_refused():
    command = wp.launch(pushed, dim=2, inputs=[wp.zeros(2, dtype=float), 0.0, wp.vec3(), Push()], record_cmd=True)
    with pytest.raises(wp.LaunchTypeError, match="argument 'v' is vec3f, which 8 bytes of c_float_Array_2 are not"):
        command.set_param_at_index_from_ctype(2, (ctypes.c_float * 2)())
    with pytest.raises(wp.LaunchTypeError, match="argument 'a'"):
        command.set_param_at_index_from_ctype(0, (ctypes.c_float * 2)())
    with pytest.raises(wp.LaunchError, match="has no argument 'w'"):
        command.set_param_by_name_from_ctype("w", ctypes.c_int(1))


def test_numbers_of_arguments_that_a_kernel_does_not_have_are_told():
    given = [wp.zeros(2, dtype=float), 0.0, wp.vec3(), Push()]
    command = wp.launch(pushed, dim=2, inputs=given, record_cmd=True)
    for change in (command.set_param_at_index, command.set_param_at_index_from_ctype):
        for value in (1.0, (ctypes.c_float * 3)()):
            with pytest.raises(wp.LaunchError, match="kernel pushed takes 4 arguments, there is no number 4"):
                change(4, value)
    with pytest.raises(wp.LaunchError, match="takes 4 arguments .*, 5 were given"):
        command.set_params_from_ctypes([*given, ctypes.c_int(1)])


@wp.kernel
def says():
    print("said")


def test_a_launch_that_prints_may_run_again_by_whoever_hears_of_it(monkeypatch):
    command, heard = wp.launch(says, dim=1, record_cmd=True), []

    class Out:
        def write(self, text):
            heard.append(text)
            if len(heard) == 1:
                command.launch()

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stdout", Out())
    thread = threading.Thread(target=command.launch, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive() and "".join(heard).split() == ["said", "said"]
