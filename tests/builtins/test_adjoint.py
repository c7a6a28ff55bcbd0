"""Rules of primitives: both directions from one statement, and what is guarded."""

import math

import pytest

from treadle.base.errors import KernelGradientError
from treadle.builtins import names, registry
from treadle.builtins.adjoint import Rules, contributions, tangent
from treadle.codegen import oracle
from treadle.ir.builder import Builder
from treadle.ir.node import Func, Value
from treadle.ir.verify import verify
from treadle.types.core import FLOATS, f64

INF, NAN = math.inf, math.nan


def float_primitives() -> dict[str, int]:
    """The primitives that make floats of floats, and how many they take."""
    found = {}
    for name in names.MODULES:
        for record in registry.records(name):
            if record.kind == "primitive":
                arity = len(record.signature.params)
                try:
                    result = record.match([registry.Arg(f64)] * arity, {}, None).result
                except registry.Mismatch:
                    continue
                if result in FLOATS:
                    found[name] = arity
    return found


PRIMITIVES = float_primitives()


def apply(name: str, xs: tuple, adj: float, dots: tuple, guarded: bool = False, wanted=None):
    """The contributions of a rule (None where there are none) and the tangent it gives."""
    b, n = Builder(), len(xs)
    params = tuple(Value(f64) for _ in range(2 * n + 1))
    args, a, ts = params[:n], params[n], params[n + 1 :]
    (result,) = b.op(name, args, (f64,))
    op = b.ops[-1]
    parts = contributions(Rules(b, wanted, guarded), op, args, result, a)
    t = tangent(Rules(b, None, guarded), op, args, result, ts)
    inner = [v for v in (*parts, t) if v is not None]
    func = Func("rule", "function", params, b.block((), tuple(inner)))
    verify(func)
    values = iter(oracle.run(func, [*xs, adj, *dots]).values[0])
    return [None if v is None else float(next(values)) for v in (*parts, t)]


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_float_primitive_has_a_rule_and_its_tangent_is_the_transpose(name):
    n = PRIMITIVES[name]
    xs, dots = (2.5, -0.75, 0.5)[:n], (0.3, -1.2, 0.7)[:n]
    *parts, t = apply(name, xs, 1.0, dots)
    assert len(parts) == n
    total = sum(p * d for p, d in zip(parts, dots) if p is not None)
    assert math.isclose(t or 0.0, total, rel_tol=1e-14)


def test_what_has_no_slope_gives_nothing():
    assert {name for name in PRIMITIVES if apply(name, (2.5, 1.0, 1.0)[: PRIMITIVES[name]], 1.0,
            (1.0, 1.0, 1.0)[: PRIMITIVES[name]])[:-1] == [None]} == {"floor", "ceil", "trunc", "rint"}  # fmt: skip


@pytest.mark.parametrize(("name", "xs"), [
    ("mul", (INF, 2.0)), ("mul", (2.0, NAN)), ("div", (1.0, 0.0)), ("div", (0.0, 0.0)), ("div", (1e200, 1e-200)),
    ("fma", (INF, NAN, 1.0)), ("sqrt", (0.0,)), ("sqrt", (-1.0,)), ("min", (NAN, INF)), ("abs", (NAN,)),
])  # fmt: skip
def test_guarded_rules_give_nothing_to_what_was_not_chosen(name, xs):
    *parts, _ = apply(name, xs, 0.0, (0.0,) * len(xs), guarded=True)
    assert not any(parts)


def test_a_guard_leaves_finite_factors_alone():
    """The product is guarded by its factor, so that the derivative of the rule is right at an adjoint of 0 as well."""
    b, (adj, x) = Builder(), (Value(f64), Value(f64))
    rules = Rules(b, guarded=True)
    made = rules.times(adj, x)
    func = Func("f", "function", (adj, x), b.block((), (made,)))
    assert b.ops[-1].name == "mul" and b.ops[-1].args[0] is adj
    assert [float(oracle.run(func, p).values[0][0]) for p in ((0.0, 3.0), (2.0, 3.0), (0.0, INF))] == [0.0, 6.0, 0.0]
    assert float(oracle.run(func, (1.0, INF)).values[0][0]) == INF


def test_a_guard_needs_no_look_at_a_factor_that_is_finite_or_that_nobody_differentiates_again():
    b, adj, x, y = Builder(), Value(f64), Value(f64), Value(f64)
    rules = Rules(b, guarded=True, finite=(y,), again=False)
    made = rules.times(adj, x), rules.times(adj, y)
    func = Func("f", "function", (adj, x, y), b.block((), made))
    assert [op.name for op in b.ops] == ["const", "eq", "select", "mul", "mul"]
    for factor in (INF, NAN):
        assert [float(v) for v in oracle.run(func, (0.0, factor, 5.0)).values[0]] == [0.0, 0.0]
    assert [float(v) for v in oracle.run(func, (2.0, 3.0, 5.0)).values[0]] == [6.0, 10.0]


def test_only_wanted_contributions_are_made():
    assert apply("mul", (2.0, 3.0), 1.0, (0.0, 0.0), wanted=[False, True])[:2] == [None, 2.0]
    assert apply("div", (1.0, 2.0), 1.0, (0.0, 0.0), wanted=[True, False])[:2] == [0.5, None]


def test_primitives_without_derivative_are_refused():
    b = Builder()
    x = Value(f64)
    (y,) = b.op("isnan", (x,), (f64,))
    with pytest.raises(KernelGradientError, match="isnan has no derivative"):
        contributions(Rules(b), b.ops[-1], (x,), y, x)
