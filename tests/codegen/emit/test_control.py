"""Branches and loops under masks: every gang width gives the bits of one thread after the other, and of the oracle."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.harness import WIDTHS, Entry, KernelBuilder, agrees_with_oracle, same_on_all_widths
from tests.codegen.programs import Program
from treadle.codegen import cpu, oracle
from treadle.codegen.emit.module import write
from treadle.codegen.emit.unit import Options
from treadle.types.core import b1, f32, i32, view

N = 77  # full gangs and a rest, for every width


def arrays():
    r = np.random.default_rng(3)
    return r.normal(size=N).astype(np.float32), np.arange(N, dtype=np.int32) % 13, np.zeros(N, np.float32)


def kernel(write_body):
    """A kernel over (floats, ints, out): ``write_body(k, x, n)`` gives what goes to out."""
    k = KernelBuilder((view(f32, 1), view(i32, 1), view(f32, 1)))
    floats, ints, out = k.params
    i = k.tid()
    k.store(out, (i,), write_body(k, k.load(floats, i), k.load(ints, i)))
    return k.func()


def check(write_body):
    func = kernel(write_body)
    out = same_on_all_widths(func, N, arrays)[2]
    agrees_with_oracle(func, N, arrays, out)
    return out


def test_both_arms_of_a_divergent_branch():
    out = check(lambda k, x, n: k.if_(k.op("lt", x, k.const(0.0, f32)),
                                      lambda: [k.op("neg", x)], lambda: [k.op("mul", x, x)]))  # fmt: skip
    x = arrays()[0]
    assert np.array_equal(out, np.where(x < 0, -x, x * x))


def test_a_value_that_an_inner_branch_kept_is_not_blended_again():
    def body(k, x, n):
        def inner():
            return [k.if_(k.op("gt", n, k.const(6, i32)), lambda: [k.op("sqrt", k.op("mul", x, x))], lambda: [x])]

        return k.if_(k.op("gt", x, k.const(0.0, f32)), inner, lambda: [x])

    check(body)


def test_stores_in_arms_reach_only_the_lanes_that_run_them():
    k = KernelBuilder((view(f32, 1), view(f32, 1)))
    x, y = k.params
    i = k.tid()
    v = k.load(x, i)
    k.if_(k.op("gt", v, k.const(0.0, f32)), lambda: [k.store(y, (i,), v)][:0], lambda: [])
    make = lambda: (arrays()[0], np.full(N, 9.0, np.float32))
    out = same_on_all_widths(k.func(), N, make)[1]
    assert np.array_equal(out, np.where(arrays()[0] > 0, arrays()[0], 9.0))


def test_range_with_bounds_that_differ_by_thread():
    def body(k, x, n):
        add = lambda i, s: [k.op("add", s, k.op("mul", x, k.cast(i, f32)))]
        return k.for_(k.op("mod", n, k.const(3, i32)), n, k.const(1, i32), [k.const(0.0, f32)], add)[0]

    check(body)


@pytest.mark.parametrize(("start", "stop", "step"), [
    (0, 7, 1), (0, 7, 2), (7, 0, -1), (7, 0, -3), (5, 5, 1), (5, 2, 1), (0, 5, 0), (2**31 - 5, 2**31 - 1, 3),
    (-(2**31) + 5, -(2**31), -3),
])  # fmt: skip
def test_ranges_have_the_numbers_of_python(start, stop, step):
    bounds = lambda k: [k.const(v, i32) for v in (start, stop, step)]
    out = check(lambda k, x, n: k.for_(*bounds(k), [k.const(0.0, f32)],
                                       lambda i, s: [k.op("add", s, k.const(1.0, f32))])[0])  # fmt: skip
    assert out[0] == (len(range(start, stop, step)) if step else 0)


@pytest.mark.parametrize("step", [-2, -1, 1, 2, 3])
def test_a_step_known_at_run_time_only(step):
    k = KernelBuilder((i32, i32, i32, view(i32, 1)))
    start, stop, by, out = k.params
    (s,) = k.for_(start, stop, by, [k.const(0, i32)], lambda i, s: [k.op("add", k.op("mul", s, k.const(3, i32)), i)])
    k.store(out, (k.tid(),), s)
    first, last = (0, 9) if step > 0 else (9, 0)
    out = same_on_all_widths(k.func(), 5, lambda: (first, last, step, np.zeros(5, np.int32)))[0]
    want = 0
    for i in range(first, last, step):
        want = want * 3 + i
    assert (out == want).all()


def escape(k, x, n, counted=True, used=True):
    """A loop that lanes leave at different times, as in an escape-time fractal."""

    def body(z, c):
        go = k.op("lt", k.op("mul", z, z), k.const(40.0, f32))
        if counted:
            more = k.op("lt", c, k.const(20, i32))
            go = k.if_(more, lambda: [go], lambda: [k.const(False, b1)])
        rest = lambda: [k.op("add", k.op("mul", z, z), x), k.op("add", c, k.const(1, i32))]
        return [go, *k.if_(go, rest, lambda: [z, c])]

    z, c = k.while_([x, k.const(0, i32)], body)
    return k.op("add", z, k.cast(c, f32)) if used else k.cast(c, f32)


@pytest.mark.parametrize("used", [True, False])
def test_lanes_leave_a_while_loop_with_the_values_they_had(used):
    check(lambda k, x, n: escape(k, x, n, used=used))


def test_counters_stay_scalar_inside_a_divergent_loop():
    func = kernel(lambda k, x, n: escape(k, x, n, used=False))
    target = cpu.host_target(8)
    text, _ = write(func, "kernel", cpu.machine(target, 8), Options(), target.triple)
    counters = [line for line in text.splitlines() if " phi i32 [ 0," in line]
    assert counters, "the loop counter became a vector"


def test_break_in_a_range():
    def body(k, x, n):
        def round_(i, s):
            return [k.op("lt", i, n), k.op("add", s, x)]

        return k.for_(k.const(0, i32), k.const(9, i32), k.const(1, i32), [k.const(0.0, f32)], round_, stays=True)[0]

    check(body)


def test_a_loop_in_a_loop():
    def body(k, x, n):
        inner = lambda i: lambda j, s: [k.op("add", k.op("mul", s, k.const(0.5, f32)), k.cast(k.op("add", i, j), f32))]
        outer = lambda i, s: [k.for_(i, n, k.const(1, i32), [s], inner(i))[0]]
        return k.for_(k.const(0, i32), n, k.const(2, i32), [x], outer)[0]

    check(body)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bits, any two NaNs counting as equal."""
    if a.dtype.kind != "f":
        return bool((a == b).all())
    return bool(((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))).all())


@pytest.mark.parametrize("registers", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed, registers, monkeypatch):
    """Also in the code that processors with mask registers, gathers and scatters get, and in that which others get."""
    machine = cpu.machine
    monkeypatch.setattr(cpu, "machine", lambda target, width: replace(
        machine(target, width), mask_registers=registers, gathers=registers, scatters=registers,
        slow_masked_stores=not registers,
    ))  # fmt: skip
    n = 21
    r = np.random.default_rng(seed)
    start = (r.integers(-50, 50, 64).astype(np.int32), r.normal(size=64).astype(np.float32),
             r.normal(size=(64, 3)).astype(np.float32), np.zeros(n, np.float32),
             np.zeros(n, np.int32), 7, 1.5)  # fmt: skip
    func = Program(2 * seed + registers + 1000).func()
    expected = copy.deepcopy(start)
    oracle.run(func, expected, n)
    for width in WIDTHS:
        args = copy.deepcopy(start)
        assert Entry(func, width)(n, *args) == 0
        for a, b in zip(expected, args, strict=True):
            assert not isinstance(a, np.ndarray) or same(a, b), f"width {width}"


def test_a_guard_that_lanes_disagree_on_inside_one_they_agree_on():
    def body(k, x, n):
        def round_(c, v):
            def guarded():
                go = k.op("lt", k.op("mul", v, v), k.const(40.0, f32))
                return [go, k.if_(go, lambda: [k.op("add", k.op("mul", v, v), x)], lambda: [v])]

            more = k.op("lt", c, k.const(9, i32))
            stay, after = k.if_(more, guarded, lambda: [k.const(False, b1), v])
            return [stay, k.op("add", c, k.const(1, i32)), after]

        return k.while_([k.const(0, i32), x], round_)[1]

    check(body)


def test_what_keeps_a_value_outside_of_many_lanes_is_blended_with_it_for_fewer():
    def body(k, x, n):
        none = k.const(0.0, f32)
        some = k.if_(k.op("gt", x, none), lambda: [x], lambda: [none])
        return k.if_(k.op("lt", n, k.const(5, i32)), lambda: [some], lambda: [none])

    out, (x, n, _) = check(body), arrays()
    assert (out == np.where((x > 0) & (n < 5), x, 0)).all()


def test_a_gang_of_several_registers_goes_on_for_one_lane_of_any():
    k = KernelBuilder((view(i32, 1), view(i32, 1)))
    much, out = k.params
    i = k.tid()
    n = k.load(much, i)
    below = lambda a, b: k.op("bitand", k.op("lt", a, n), k.op("lt", b, k.const(90, i32)))
    rise = lambda a, b: [k.op("add", a, k.const(1, i32)), k.op("add", b, k.const(2, i32))]
    zero = k.const(0, i32)
    a, b = k.while_([zero, zero], lambda a, b: [below(a, b), *k.if_(below(a, b), lambda: rise(a, b), lambda: [a, b])])
    k.store(out, (i,), k.op("add", a, b))
    alone = np.zeros(64 * 64, np.int32)
    alone[np.arange(64) * 65] = np.arange(64)  # lane i of gang i
    make = lambda: (alone.copy(), np.zeros(64 * 64, np.int32))
    found = same_on_all_widths(k.func(), 64 * 64, make, widths=(1, 32, 64))[1]
    assert np.array_equal(found, 3 * np.minimum(alone, 45))
