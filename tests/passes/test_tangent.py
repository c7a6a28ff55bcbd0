"""Forward mode: tangents beside values, on the oracle and in machine code."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as wp
from tests.codegen.harness import Entry
from tests.gradient_runs import Program, State, run_forward
from tests.passes.text import of
from tests.random_gradients import THREADS
from treadle.base.errors import KernelGradientError
from treadle.codegen import oracle
from treadle.codegen.emit import unit
from treadle.frontend.core import Options
from treadle.frontend.parse import parse
from treadle.ir import Func
from treadle.ir.effects import order
from treadle.ir.show import show
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.passes import inline
from treadle.passes.adjoint import reverse
from treadle.passes.pipeline import LOWER, NORMALIZE, PREPARE, run
from treadle.passes.scalarize import scalarize
from treadle.passes.tangent import tangent
from treadle.types.core import Array, view

F64 = wp.array(dtype=wp.float64)


def prepared(kernel: wp.Kernel, gradient: int = 1) -> Func:
    """``kernel`` as a program to differentiate."""
    types = tuple(view(t.elem, t.ndim) if isinstance(t, Array) else t for t in kernel.declared)
    return run(PREPARE, run(NORMALIZE, parse(kernel.source, types, Options(gradient=gradient), "kernel", name="k")))


def forward(kernel: wp.Kernel, *active: str) -> Func:
    return verify(run(LOWER, verify(tangent(prepared(kernel), active), True)), True)


def arrays(*rows: object) -> list[np.ndarray]:
    return [np.array(r, np.float64) for r in rows]


# ---- memory


def test_only_what_depends_on_active_inputs_has_tangents():
    @wp.kernel
    def k(a: F64, b: F64, out: F64, other: F64):
        i = wp.tid()
        out[i] = a[i] * b[i]
        other[i] = b[i] * b[i]

    func = forward(k, "a")
    assert func.facts["tangents"] == ("a", "out")
    assert func.names[4:] == tuple(f"tangent of {n}" for n in ("a", "b", "out", "other"))
    loads = [op.args[0] for op in ops_of(func.body) if op.name == "load"]
    assert func.params[4] in loads and func.params[5] not in loads and func.params[7] not in loads


def test_a_store_of_what_does_not_move_sets_the_tangent_to_zero():
    @wp.kernel
    def k(a: F64):
        a[0] = a[1] * 3.0
        a[1] = wp.float64(5.0)

    a, da = arrays([1, 2], [10, 20])
    oracle.run(forward(k, "a"), [a, da])
    assert a.tolist() == [6, 5] and da.tolist() == [60, 0]


def test_own_arrays_have_a_shadow():
    @wp.kernel
    def k(a: F64, n: int, out: F64):
        own = wp.zeros(4, dtype=wp.float64)
        for j in range(n):
            own[j % 4] += a[j] * a[j]
        out[0] = own[n % 4] * own[1]

    a, out, da, dout = arrays([1, 2, 3, 4, 5, 6], [0], [1, 1, 1, 1, 1, 1], [9])
    oracle.run(forward(k, "a"), [a, 6, out, da, dout])
    assert dout[0] == 2 * 3 * (4 + 36) + 9 * 2 * (2 + 6)


def test_views_that_are_chosen_while_running_bring_their_tangents():
    @wp.kernel
    def k(a: F64, b: F64, c: F64, out: F64):
        i = wp.tid()
        rows = a
        for j in range(i):
            rows = b if j == 0 else c
        part = rows[1:3]
        out[i] = part[0] * part[1]

    func = forward(k, "b")
    assert func.facts["tangents"] == ("a", "b", "c", "out")
    a, b, c, out, da, db, dc, dout = arrays([1, 2, 3], [4, 5, 6], [7, 8, 9], [0] * 3, *[[1, 1, 1]] * 3, [0] * 3)
    oracle.run(func, [a, b, c, out, da, db, dc, dout], 3)
    assert dout.tolist() == [5, 11, 17]


def test_memory_that_no_argument_names_takes_no_tangents():
    @wp.struct
    class Holder:
        rows: wp.array(dtype=wp.float64)

    @wp.kernel
    def reads(a: F64, held: wp.array(dtype=Holder), out: F64):
        out[0] = a[0] * held[0].rows[0]

    @wp.kernel
    def writes(a: F64, held: wp.array(dtype=Holder)):
        held[0].rows[0] = a[0]

    @wp.kernel
    def points(a: F64, p: wp.uint64, out: F64):
        out[0] = a[0] * wp.array(ptr=p, shape=(1,), dtype=wp.float64)[0]

    forward(reads, "a")  # constants
    with pytest.raises(KernelGradientError, match=r"held\[0\].rows\[0\] = a\[0\](.|\n)*no argument names"):
        forward(writes, "a")
    with pytest.raises(KernelGradientError, match="no argument names"):
        forward(points, "a")


# ---- updates


def updates(kernel: wp.Kernel, values: list, directions: list, dim: int) -> list[np.ndarray]:
    given = arrays(*values, *directions)
    oracle.run(forward(kernel, "x"), given, dim)
    return given


def test_sums_pass_tangents_on():
    @wp.kernel
    def k(x: F64, total: F64):
        i = wp.tid()
        wp.atomic_add(total, 0, x[i] * x[i])
        wp.atomic_sub(total, 1, x[i])
        wp.atomic_add(total, 2, wp.float64(1.0))

    *_, dtotal = updates(k, [[1, 2, 3], [0, 0, 0]], [[1, 1, 1], [0, 5, 7]], 3)
    assert dtotal.tolist() == [12, 2, 7]


def test_the_winner_of_a_least_or_greatest_update_brings_its_tangent():
    @wp.kernel
    def k(x: F64, best: F64):
        i = wp.tid()
        wp.atomic_min(best, 0, x[i])
        wp.atomic_max(best, 1, x[i])
        wp.atomic_max(best, 2, wp.float64(0.5))

    _, best, _, dbest = updates(k, [[3, 1, 1, 4], [np.nan, 2, 0]], [[1, 2, 3, 4], [9, 9, 9]], 4)
    assert best.tolist() == [1, 4, 0.5] and dbest.tolist() == [2, 4, 0]


def test_old_values_of_updates_have_tangents():
    @wp.kernel
    def k(x: F64, box: F64, out: F64):
        i = wp.tid()
        old = wp.atomic_add(box, 0, x[i])
        was = wp.atomic_exch(box, 1, x[i])
        had = wp.atomic_cas(box, 2, wp.float64(0.0), x[i])
        out[i] = 100.0 * old + 10.0 * was + had

    *_, dbox, dout = updates(k, [[1, 2, 3], [0, 0, 0], [0] * 3], [[1, 2, 3], [0, 4, 5], [0] * 3], 3)
    assert dbox.tolist() == [6, 3, 1]
    assert dout.tolist() == [45, 100 + 10 + 1, 300 + 20 + 1]


# ---- what has no derivative


def test_bits_of_an_active_float_are_refused_with_the_line():
    func = scalarize(of("%9: i32 = bitcast %2\n %10: f32 = bitcast %9\n store %0, %1, %10"))
    with pytest.raises(KernelGradientError, match="bits of a float"):
        tangent(func, ("argument 2",))
    tangent(func, ("argument 3",))


def test_a_gradient_of_the_users_serves_forward_mode():
    @wp.func
    def steps(x: wp.float64, y: wp.float64):
        return wp.rint(x) * y, y * y

    @wp.func_grad(steps)
    def adj_steps(x: wp.float64, y: wp.float64, adj_a: wp.float64, adj_b: wp.float64):
        wp.adjoint[x] += adj_a * y
        wp.adjoint[y] += adj_a * x + adj_b * 2.0 * y

    @wp.kernel
    def k(x: F64, out: F64):
        a, b = steps(x[0], x[1])
        out[0] = a
        out[1] = b

    *_, dout = updates(k, [[1.25, 3], [0, 0]], [[1, 10], [0, 0]], 1)
    assert dout.tolist() == [3 + 12.5, 60]


def test_a_rule_for_tangents_is_asked_before_one_for_adjoints():
    functions = (
        'function @0 "f" (%0: f32) {\n %1: f32 = mul %0, %0\n yield %1\n}\n'
        'function @1 "rule" (%0: f32, %1: f32, %2: f32) {\n %3: f32 = mul %1, %2\n yield %3\n}\n'
        'function @2 "other" (%0: f32, %1: f32, %2: f32) {\n yield %2\n}'
    )
    text = "%10: f32 = call %2 func=@0 adjoint=@2 tangent=@1\n store %0, %1, %10"
    made = verify(tangent(scalarize(of(text, functions)), ("argument 2",)), True)
    out, dout = np.zeros(1, np.float32), np.zeros(1, np.float32)
    rest = [np.zeros(3), np.zeros((1, 3), np.float32)]
    given = [out, 0, 3.0, 4.0, False, *rest, np.zeros(1, np.int32)]
    oracle.run(made, [*given, dout, 0.5, 0.0, *rest])
    assert out[0] == 9 and dout[0] == 4.5


# ---- adjoint programs


def test_what_is_pushed_and_recorded_keeps_its_tangent():
    text = (
        "%10: f32 = mul %2, %2\n push %1, %10, %3 site=0\n %11: i64 = mark\n record %10, %1 site=1\n seek %11\n"
        "%12: i32, %13: f32, %14: f32 = pop site=0\n %15: f32, %16: i32 = recall site=1\n"
        "%17: f32 = add %13, %15\n %18: f32 = mul %17, %14\n store %0, %1, %18"
    )
    made = verify(tangent(scalarize(of(text)), ("argument 2",)), True)
    out, dout = np.zeros(1, np.float32), np.zeros(1, np.float32)
    filler = [np.zeros(3), np.zeros((1, 3), np.float32)]
    given = [out, 0, 3.0, 4.0, False, *filler, np.zeros(1, np.int32)]
    oracle.run(made, [*given, dout, 0.5, 0.0, *filler])
    assert out[0] == 72 and dout[0] == 2 * 2 * 3 * 0.5 * 4
    assert show(made).count("push") == 1


def test_the_tangent_of_an_adjoint_is_a_second_derivative():
    @wp.kernel
    def k(x: F64, loss: F64):
        s = x[0]
        for j in range(3):
            s = s * x[1] + wp.sin(x[2] * s)
            if s > 1.0:
                s = s / (1.0 + s * s)
        wp.atomic_add(loss, 0, s * s)

    backward = reverse(prepared(k, 2), ("x", "loss"), again=True)
    made = verify(run(LOWER, tangent(run(PREPARE, run(NORMALIZE, backward)), ("x",))), True)
    assert set(made.facts["tangents"]) >= {"x", "grad x"}
    first = run(LOWER, run(NORMALIZE, reverse(prepared(k), ("x", "loss"))))

    def gradient(x: np.ndarray) -> np.ndarray:
        g, zero, one = np.zeros(3), np.zeros(1), np.ones(1)
        oracle.run(first, [(x.copy(), g), (zero, one)])
        return g

    x, v = arrays([0.7, 0.9, 1.3], [1.0, -2.0, 0.5])
    g, dg = np.zeros(3), np.zeros(3)
    oracle.run(made, [(x, g), (np.zeros(1), np.ones(1)), (v, dg), (np.zeros(1), np.zeros(1))])
    assert np.array_equal(g, gradient(x))
    h = 1e-6
    assert np.allclose(dg, (gradient(x + h * v) - gradient(x - h * v)) / (2 * h), rtol=1e-8, atol=1e-8)


# ---- random programs in machine code


@pytest.mark.parametrize("calls", [False, True])
def test_every_width_gives_what_the_oracle_gives(tmp_path, monkeypatch, calls):
    if calls:
        monkeypatch.setattr(inline, "SMALL", 0)
    for seed in (3, 14, 15, 92) if calls else (6, 5, 35, 89):
        program = Program(seed, tmp_path)
        start, direction = program.states()
        wanted, results = run_forward(program, start, direction), set()
        for width in (1, 8, 16):
            found = start.copy(), direction.copy()
            entry = Entry(program.forward, width, unit.Options(order=order(program.forward)))
            assert entry(THREADS, *[a for s in found for a in s.arguments()]) == 0
            results.add(tuple([bits(s) for s in found]))
            for a, b in zip(wanted, found):  # sums over threads are gathered in another order than the oracle's
                sums = a.of.pop("shared", None), b.of.pop("shared")
                assert sums[0] is None or np.allclose(*sums, rtol=1e-14)
                assert bits(a) == bits(b), f"{seed}, width {width}"
        assert len(results) == 1


def bits(state: State) -> bytes:
    return b"".join([(a + 0.0).tobytes() for a in state.floats()])
