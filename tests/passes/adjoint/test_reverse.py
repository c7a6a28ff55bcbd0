"""Programs that go backwards: against central differences, and the same in machine code of every width."""

import numpy as np
import pytest

import treadle as wp
from tests.passes.adjoint.programs import A, F, Program, programs
from treadle.base.errors import KernelGradientError
from treadle.codegen import oracle
from treadle.frontend.core import Options
from treadle.frontend.names import Manifest
from treadle.frontend.parse import parse
from treadle.ir import Func
from treadle.ir.effects import effects
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.passes.adjoint import reverse
from treadle.passes.pipeline import FINISH, LOWER, NORMALIZE, PREPARE, run
from treadle.types.core import Array, view
from treadle.types.values import class_of

PROGRAMS = {p.kernel.key: p for p in programs()}


def primal(kernel: wp.Kernel) -> Func:
    """The kernel as reverse mode gets it."""
    types = tuple(view(t.elem, t.ndim) if isinstance(t, Array) else t for t in kernel.declared)
    func = parse(kernel.source, types, Options(0, gradient=1), "kernel", manifest=Manifest(), name=kernel.key)
    return run(PREPARE, run(NORMALIZE, func))


def floats(p: Program) -> dict[str, int]:
    """Names and places of the arrays that have a gradient."""
    names = [q.name for q in p.kernel.parameters]
    return {n: k for k, (n, a) in enumerate(zip(names, p.args)) if isinstance(a, np.ndarray)}


def weights(p: Program) -> dict[str, np.ndarray]:
    rng, where = np.random.default_rng(1), floats(p)
    return {n: rng.normal(size=p.args[where[n]].shape) for n in p.outputs}


def differences(p: Program, func: Func, h: float = 1e-6) -> dict[str, np.ndarray]:
    """The gradient by central differences of the oracle's runs."""
    given, where = weights(p), floats(p)

    def loss(args: list) -> float:
        args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        oracle.run(func, args, p.dim)
        return sum(float((args[where[n]] * w).sum()) for n, w in given.items())

    found = {}
    for n, k in where.items():
        found[n] = np.zeros_like(p.args[k])
        for i in np.ndindex(p.args[k].shape):
            moved = [a.copy() if isinstance(a, np.ndarray) else a for a in p.args]
            moved[k][i] += h
            above = loss(moved)
            moved[k][i] -= 2 * h
            found[n][i] = (above - loss(moved)) / (2 * h)
    return found


def by_oracle(p: Program, adjoint: Func) -> dict[str, np.ndarray]:
    where, given = floats(p), weights(p)
    grads = {n: given.get(n, np.zeros_like(p.args[k])).copy() for n, k in where.items()}
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in p.args]
    oracle.run(
        adjoint, [(a, grads[n]) if (n := q.name) in grads else a for a, q in zip(args, p.kernel.parameters)], p.dim
    )
    return grads


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivative_is_that_of_the_program(name):
    p = PROGRAMS[name]
    func = primal(p.kernel)
    adjoint = verify(reverse(func, tuple(floats(p))), scalar=True)
    want, raw = differences(p, func), by_oracle(p, adjoint)
    lowered = by_oracle(p, verify(run(LOWER, run(NORMALIZE, adjoint)), scalar=True))
    for n in want:
        np.testing.assert_allclose(raw[n], want[n], rtol=2e-7, atol=2e-8)
        np.testing.assert_allclose(lowered[n], raw[n], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_of_every_width_gives_the_same_bits(name, monkeypatch):
    p = PROGRAMS[name]
    want = by_oracle(p, reverse(primal(p.kernel), tuple(floats(p))))
    dims = (p.dim,) if isinstance(p.dim, int) else p.dim
    first: dict[str, bytes] = {}
    for width in (1, 8, 16):
        monkeypatch.setattr(wp.config, "gang_width", width)
        values, given = [], weights(p)
        for q, a, t in zip(p.kernel.parameters, p.args, p.kernel.declared):
            if isinstance(a, np.ndarray):
                a = wp.array(a, dtype=class_of(t.elem), requires_grad=True)
                if q.name in given:
                    a.grad.assign(given[q.name])
            values.append(a)
        bound, types = p.kernel.bind(values)
        p.kernel.overload(types).adjoint(dims, tuple(floats(p))).program.run(bound, dims)
        for n, k in floats(p).items():
            got = values[k].grad.numpy()
            np.testing.assert_allclose(got, want[n], rtol=1e-12, atol=1e-13)
            assert first.setdefault(n, got.tobytes()) == got.tobytes()


def stores_to(func: Func, name: str) -> int:
    """How many stores of ``func`` go to the array called ``name`` itself."""
    view = func.params[func.names.index(name)]
    return sum(op.name in ("store", "atomic") and op.args[0] is view for op in ops_of(func.body))


def test_what_nobody_reads_again_is_not_stored_again():
    p = PROGRAMS["straight"]
    assert stores_to(reverse(primal(p.kernel), ("x", "y", "z")), "z") == 0


def test_what_the_kernel_reads_after_its_own_store_is_stored_again_and_recorded():
    adjoint = reverse(primal(PROGRAMS["inloop"].kernel), ("x", "v"))
    assert stores_to(adjoint, "x") == 1 and stores_to(adjoint, "v") == 1
    assert any(op.name == "record" for op in ops_of(adjoint.body))


def test_sums_push_nothing():
    @wp.kernel
    def total(x: A, y: A, n: int):
        s = F(0.0)
        for k in range(n):
            s += F(2.0) * x[k]
        y[wp.tid()] = s

    adjoint = run(LOWER, run(NORMALIZE, reverse(primal(total), ("x", "y"))))
    assert not [op for op in ops_of(adjoint.body) if op.name in ("push", "pop", "record", "recall", "while")]
    assert sum(op.name == "for" for op in ops_of(adjoint.body)) == 1


def refused(kernel: wp.Kernel, *active: str) -> str:
    with pytest.raises(KernelGradientError) as error:
        reverse(primal(kernel), active)
    return str(error.value)


def test_operations_without_a_derivative_are_refused_with_their_line():
    @wp.kernel
    def swap(x: A, y: A):
        wp.atomic_exch(y, 0, x[wp.tid()])

    @wp.kernel
    def used(x: A, y: A, z: A):
        i = wp.tid()
        z[i] = wp.atomic_add(y, 0, x[i])

    assert "wp.atomic_exch(y, 0, x[wp.tid()])" in refused(swap, "x", "y")
    assert "z[i] = wp.atomic_add(y, 0, x[i])" in refused(used, "x", "y", "z")


def test_what_threads_hand_on_to_each_other_is_refused():
    @wp.kernel
    def locked(x: A, y: A, lock: wp.array(dtype=int)):
        while wp.atomic_cas(lock, 0, 0, 1) == 1:
            pass
        y[0] = 0.5 * y[0] + x[wp.tid()]
        wp.atomic_exch(lock, 0, 0)

    @wp.kernel
    def elected(x: A, y: A, lock: wp.array(dtype=int)):
        i = wp.tid()
        y[i] = y[i] * x[i]
        if wp.atomic_cas(lock, 0, 0, 1) == 0:
            y[i] = y[i] + x[i]

    assert "y[0] = 0.5 * y[0] + x[wp.tid()]" in refused(locked, "x", "y")
    assert reverse(primal(elected), ("x", "y"))  # each thread stays with its own element


def test_an_array_without_a_gradient_on_the_way_is_refused():
    @wp.kernel
    def through(x: A, t: A, y: A, shift: int):
        i = wp.tid()
        t[i] = x[i] * x[i]
        y[i] = t[i + shift] * t[i]

    assert "'t'" in refused(through, "x", "y")
    assert reverse(primal(through), ("x", "t", "y"))


def test_the_winner_of_atomic_min_takes_the_gradient():
    @wp.kernel
    def least(x: A, y: A):
        wp.atomic_min(y, 0, x[wp.tid()])

    adjoint = reverse(primal(least), ("x", "y"))
    assert adjoint.facts["winners"] == ("y",)
    x, gx, gy = np.array([3.0, 1.0, 2.0, 1.0]), np.zeros(4), np.array([5.0])
    oracle.run(adjoint, [(x, gx), (np.array([1.0]), gy)], 4)
    assert gx.tolist() == [0, 5, 0, 0] and gy[0] == 0


def test_arrays_that_may_lie_over_each_other_all_move():
    @wp.kernel
    def both(a: A, b: A, c: A):
        i = wp.tid()
        b[i] = a[i] * a[i]
        c[i] = a[i] * F(3.0)

    func = primal(both)
    assert stores_to(reverse(func, ("a", "b", "c")), "b") == 0
    adjoint = reverse(func, ("a", "b", "c"), aliased=("a", "b"))
    assert stores_to(adjoint, "b") == 1
    x, g, c = np.array([2.0]), np.array([0.0]), np.zeros(1)
    oracle.run(adjoint, [(x, g), (x, g), (c, np.ones(1))], 1)  # c = 3 a², where a has been squared in place
    assert g[0] == 12.0


@wp.kernel
def noting(x: A, y: A, often: wp.array(dtype=int)):
    i = wp.tid()
    if x[i] > 1.0:
        often[i] = often[i] + 1
    y[i] = x[i] * x[i]
    if y[i] > 2.0:
        often[i] = often[i] + 1


def test_what_is_only_counted_is_not_counted_again():
    again = reverse(primal(noting), ("x", "y"))
    assert stores_to(again, "often") == 2 and "often" not in effects(run(FINISH, again)).roots
