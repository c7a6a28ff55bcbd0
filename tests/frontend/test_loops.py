"""Loops: bounds, early ends, carried values, unrolling."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.language import error, outputs, program, run, text, wp
from treadle.base.errors import UnassignedError
from treadle.ir.walk import ops_of
from treadle.types.core import f32, i32, i64, view


def count(func, name: str) -> int:
    return sum(op.name == name for op in ops_of(func.body))


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (2, 6, 3), (5, 0, -2), (5, -1, -1), (3, 3, 1), (0, 5, -1)]
)
def test_bounds_at_run_time_and_while_compiling(start, stop, step):
    def at_run_time(bounds, out):
        k = 0
        for i in range(bounds[0], bounds[1], bounds[2]):
            out[k] = i
            k += 1
        out[7] = k

    def known(out):
        k = 0
        for i in range(wp.static(start), wp.static(stop), wp.static(step)):
            out[k] = i
            k += 1
        out[7] = k

    numbers = list(range(start, stop, step))
    want = numbers + [0] * (7 - len(numbers)) + [len(numbers)]
    out = np.zeros(8, np.int32)
    run(at_run_time, [np.array([start, stop, step], np.int32), out])
    assert out.tolist() == want
    assert outputs(known, 8, np.int32) == want


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (-2, 8, 3), (9, -3, -2), (5, 0, -1), (3, 3, 2), (4, 2, 1)]
)
def test_backwards(start, stop, step):
    def kernel(bounds, out):
        k = 0
        for i in reversed(range(bounds[0], bounds[1], bounds[2])):
            out[k] = i
            k += 1
        for i in reversed(range(wp.static(start), bounds[1], wp.static(step))):
            out[k] = i
            k += 1
        for i in reversed(range(wp.static(start), wp.static(stop), wp.static(step))):
            out[k] = i
            k += 1
        out[31] = k

    numbers = list(reversed(range(start, stop, step)))
    out = np.zeros(32, np.int32)
    run(kernel, [np.array([start, stop, step], np.int32), out])
    assert out[: out[31]].tolist() == numbers * 3


def test_a_short_loop_with_known_bounds_is_unrolled():
    def kernel(out):
        for i in range(4):
            out[i] = float(i)
        for i in range(17):
            out[4] += 1.0

    func = program(kernel, [view(f32, 1)])
    assert count(func, "for") == 1
    assert count(program(kernel, [view(f32, 1)], max_unroll=3), "for") == 2
    assert outputs(kernel, 5) == [0.0, 1.0, 2.0, 3.0, 17.0]


def test_a_loop_that_would_grow_too_large_is_not_unrolled():
    def kernel(out):
        for i in range(16):
            for j in range(16):
                for k in range(16):
                    out[0] += float(i * j * k)

    assert count(program(kernel, [view(f32, 1)]), "for") >= 1


def test_break_and_continue():
    def kernel(n, out):
        for i in range(n[0]):
            if i == 1:
                continue
            if i == 4:
                break
            out[i] = 1
        k = 0
        while True:
            k += 1
            if k % 2 == 0:
                continue
            if k > 6:
                break
            out[7] += k
        out[6] = k

    out = np.zeros(8, np.int32)
    run(kernel, [np.array([6], np.int32), out])
    assert out.tolist() == [1, 0, 1, 1, 0, 0, 7, 1 + 3 + 5]


def test_break_leaves_only_the_innermost_loop():
    def kernel(n, out):
        for i in range(n[0]):
            for j in range(n[0]):
                if j > i:
                    break
                out[i] += 1
            out[7] += 1

    out = np.zeros(8, np.int32)
    run(kernel, [np.array([4], np.int32), out])
    assert out.tolist() == [1, 2, 3, 4, 0, 0, 0, 4]


def test_return_inside_loops_ends_the_thread():
    def kernel(n, out):
        i = wp.tid()
        for a in range(n[0]):
            for b in range(n[0]):
                if a * b == i:
                    out[i] = 10 * a + b
                    return
            out[i] -= 1
        out[i] = 99

    out = np.zeros(6, np.int32)
    run(kernel, [np.array([3], np.int32), out], dim=6)
    assert out.tolist() == [0, 11, 12, 99, 22, 99]


def test_the_loop_variable_afterwards():
    def kernel(n, out):
        for i in range(n[0]):
            out[0] += 1
        out[1] = i
        for k in range(3):
            out[2] += 1
        out[3] = k

    out = np.zeros(4, np.int32)
    run(kernel, [np.array([5], np.int32), out])
    assert out.tolist() == [5, 4, 3, 2]
    with pytest.raises(UnassignedError, match="'i'"):
        run(kernel, [np.array([0], np.int32), out])


def test_assigning_the_loop_variable_does_not_change_the_count():
    def kernel(n, out):
        for i in range(n[0]):
            out[i] = 1
            i = i + 10

    out = np.zeros(4, np.int32)
    run(kernel, [np.array([3], np.int32), out])
    assert out.tolist() == [1, 1, 1, 0]


def test_a_name_born_in_the_loop():
    def kernel(n, out):
        for i in range(n[0]):
            last = out[i] + float(i)
        out[0] = last

    out = np.zeros(4, np.float32)
    run(kernel, [np.array([3], np.int32), out])
    assert out[0] == 2.0
    with pytest.raises(UnassignedError):
        run(kernel, [np.array([0], np.int32), out])


def test_a_name_read_in_the_iteration_after_its_assignment():
    """The read comes first in the text, so its type is known only when the body was seen once."""

    def kernel(n, out):
        for i in range(n[0]):
            if i > 0:
                s = s + out[i]
            else:
                s = out[i]
        out[0] = s

    out = np.array([1.0, 2.0, 3.0], np.float32)
    run(kernel, [np.array([3], np.int32), out])
    assert out[0] == 6.0


def test_only_what_matters_is_carried():
    def kernel(n, out):
        s = 0.0
        for i in range(n[0]):
            t = float(i) * 2.0
            s += t
        out[0] = s

    func = program(kernel, [view(i32, 1), view(f32, 1)])
    (loop,) = [op for op in func.body.ops if op.name == "for"]
    assert [r.name for r in loop.results] == ["s"]


def test_stores_to_arrays_in_structs_carry_nothing():
    def kernel(n, out):
        a = out[0:3]
        for i in range(n[0]):
            a[i] = 1.0

    func = program(kernel, [view(i32, 1), view(f32, 1)])
    (loop,) = [op for op in func.body.ops if op.name == "for"]
    assert loop.results == ()


def test_array_names_may_be_rebound_in_a_loop():
    def kernel(n, a, out):
        b = a
        for i in range(n[0]):
            out[i] = b[0]
            b = b[::2]
        out[7] = float(b.shape[0])

    out = np.zeros(8, np.float32)
    run(kernel, [np.array([3], np.int32), np.arange(1, 10, dtype=np.float32), out])
    assert out.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0]


def test_static_sees_the_loop_variable_and_unrolls():
    def kernel(out):
        for k in range(20):
            out[wp.static(k % 4)] += wp.static(k * 2)

    assert outputs(kernel, 4, np.int32) == [sum(2 * k for k in range(r, 20, 4)) for r in range(4)]


def test_an_unrolled_loop_can_be_left():
    def kernel(n, out):
        i = wp.tid()
        for k in range(4):
            if k == n[i]:
                break
            if wp.static(k == 1):
                continue
            out[i] += wp.static(10**k)

    out = np.zeros(6, np.int32)
    run(kernel, [np.arange(6, dtype=np.int32), out], dim=6)
    assert out.tolist() == [0, 1, 1, 101, 1101, 1101]


def test_items_known_while_compiling():
    table = (2.0, 3.0, 5.0)

    def kernel(out):
        for x in (1.0, 4.0):
            out[0] += x
        for x in table:
            out[1] += x

    assert outputs(kernel, 2) == [5.0, 10.0]


def test_wide_indices():
    def kernel(n, out):
        for i in range(n[0]):
            out[i] = i

    out = np.zeros(3, np.int64)
    run(kernel, [np.array([3], np.int64), out])
    assert out.tolist() == [0, 1, 2]
    (loop,) = [op for op in program(kernel, [view(i64, 1), view(i64, 1)]).body.ops if op.name == "for"]
    assert loop.args[0].type is i64


def test_a_loop_may_have_an_else():
    def kernel(out):
        for i in range(3):
            out[i] = 1.0
        else:
            out[7] = 9.0

    assert outputs(kernel) == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 9.0]


def test_the_condition_of_a_while_is_cheap(golden):
    """Both halves of the condition are computed and joined; the flag that stays is the condition itself."""

    def mandelbrot(width, height, out):
        i, j = wp.tid()
        cx = -2.0 + float(j) * 3.0 / float(width)
        cy = -1.0 + float(i) * 2.0 / float(height)
        x = 0.0
        y = 0.0
        k = 0
        while k < 256 and x * x + y * y < 4.0:
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
            k += 1
        out[i, j] = k

    golden("mandelbrot.txt", text(mandelbrot, [i32, i32, view(i32, 2)]))


def test_an_early_end_is_the_first_yield(golden):
    def search(x, limit, out):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
            if s > limit:
                break
            out[i] = s

    golden("break.txt", text(search, [view(f32, 1), f32, view(f32, 1)]))


def test_mistakes():
    def floats(out):
        for i in range(2.5):
            out[0] = float(i)

    def no_step(out):
        for i in range(0, 4, 0):
            out[0] = float(i)

    def mixed(out, a):
        for i in range(out.shape[0], a):
            out[i] = 0.0

    def changes_type(out, n):
        s = 0
        for i in range(n):
            s = float(i)
        out[0] = s

    assert "range takes integers, not float32" in str(error(floats, [view(f32, 1)]))
    assert "cannot be 0" in str(error(no_step, [view(f32, 1)]))
    assert "int32 and int64" in str(error(mixed, [view(f32, 1), i64]))
    assert "'s' is int32" in str(error(changes_type, [view(f32, 1), i32]))
