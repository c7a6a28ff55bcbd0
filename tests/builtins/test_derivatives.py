"""Every builtin that makes floats of floats: its derivative is what central differences say, and safe at bad points."""

from functools import cache

import numpy as np
import pytest

import treadle as wp
from treadle.builtins import names, registry
from treadle.builtins.patterns import Float
from treadle.builtins.registry import Arg
from treadle.codegen import oracle
from treadle.frontend.context import context_of
from treadle.ir.builder import Builder
from treadle.ir.node import Func, Op, Value
from treadle.ir.walk import ops_of
from treadle.passes.adjoint import reverse_function
from treadle.passes.inline import drop_rules
from treadle.passes.pipeline import LOWER, NORMALIZE, run
from treadle.types.core import Matrix, Scalar, Type, Vector, f16, f32, f64, i32, matrix, quaternion, u32, vector
from treadle.types.layout import has_floats, leaves
from treadle.types.values import class_of

from .kernels import kernel
from .samples import SIZES, call_text, example

INF, NAN = float("inf"), float("nan")
BOUND = {**dict.fromkeys(("Scalar", "Float", "Num", "Parts", "Same"), f64), "Int": i32, "Bits": i32, "Short": f16}
UNDEFINED: set[str] = set()  # builtins that make floats of floats and have no derivative
POINTS = 4
# The step of differences; how near two steps must come to judge at all; how near the derivative then is.
STEPS = {f64: (1e-5, 1e-6, 2e-8), f32: (1e-2, 5e-2, 1e-3), f16: (2.0**-4, 0.1, 0.1)}


def programs() -> dict[str, tuple[str, list[Type]]]:
    """Every record that makes floats of floats, by a name of its own: the builtin and the types of its arguments."""
    found = {}
    for name in names.MODULES:
        for n, record in enumerate(registry.records(name)):
            if record.part("match"):
                continue  # powers with constant exponents have tests below; constructors only move numbers
            types = [example(p.pattern, {**BOUND, **SIZES}) for p in record.signature.params]
            if None in types or not any(map(has_floats, types)):
                continue
            result = record.match([Arg(t) for t in types], {}, context_of(0)).result
            results = result if isinstance(result, tuple) else (result,)
            if any(r is not None and has_floats(r) for r in results):
                found[f"{name}-{n}"] = (name, n, types)
    return found


PROGRAMS = programs()


@cache
def program(key: str, gradient: int = 0) -> Func:
    """The builtin as a function of scalars; with ``gradient`` its calls bring their rules along."""
    name, n, types = PROGRAMS[key]
    match = list(registry.records(name))[n].match([Arg(t) for t in types], {}, context_of(gradient))
    return lowered([Value(t) for t in types], match)


def lowered(params: list[Value], match) -> Func:
    b = Builder()
    made = match.emit(b, params)
    results = made if isinstance(made, tuple) else (made,)
    func = Func("f", "function", tuple(params), b.block((), results), tuple(p.type for p in params))
    return run(LOWER, run(NORMALIZE, func, verify=True), verify=True)


@cache
def adjoint(key: str) -> Func:
    """Its adjoint: takes the arguments and the adjoints of the float results, gives those of the float arguments."""
    return gone_back(program(key, 1))


def gone_back(func: Func) -> Func:
    return run((drop_rules, *NORMALIZE), reverse_function(func), verify=True)


def call(func: Func, *numbers) -> np.ndarray:
    """The float results of a function of scalars for one list of arguments."""
    plain = Func(func.name, func.kind, func.params, func.body)
    (values,) = oracle.run(plain, numbers).values
    return np.array([float(v) for v, y in zip(values, func.body.yields) if y.type.is_float])


def sample(t: Type, rng: np.random.Generator, low: float) -> list:
    """Random leaves of a ``t``, of ordinary size."""
    if isinstance(t, Scalar):
        most = 3 if t is u32 else 50  # unsigned ones are random states, and octaves of noise, which take time
        return [rng.uniform(low, 0.95) if t.is_float else int(rng.integers(0, most))]
    count = len(leaves(t))
    values = rng.uniform(low, 0.95, count)
    if isinstance(t, Vector) and t.tag in ("quat", "transform"):
        values[-4:] /= np.linalg.norm(values[-4:])
    return values.tolist() if t.elem.is_float else [int(10 * v) for v in values]


def differences(func: Func, xs: list, step: float) -> np.ndarray:
    """The Jacobian by central differences: a row for each float result, a column for each float argument."""
    columns = []
    for k, p in enumerate(func.params):
        if p.type.is_float:
            sides = [call(func, *xs[:k], xs[k] + s * step, *xs[k + 1 :]) for s in (1, -1)]
            columns.append((sides[0] - sides[1]) / (2 * step))
    return np.array(columns).T


@pytest.mark.parametrize("key", PROGRAMS)
def test_derivatives_are_those_of_central_differences(key):
    name, _, types = PROGRAMS[key]
    if name in UNDEFINED:
        return
    rng = np.random.default_rng(7)
    func, back, judged = program(key), adjoint(key), 0
    elem = next(p.type for p in func.params if p.type.is_float)
    step, agreed, near = STEPS[elem]
    for point in range(POINTS):
        xs = [x for t in types for x in sample(t, rng, 0.05 if point % 2 else -0.95)]
        fine, coarse = differences(func, xs, step), differences(func, xs, 2 * step)
        size = 1 + np.abs(fine).max(initial=0)
        if not np.abs(fine - coarse).max(initial=0) < agreed * size:
            continue  # a kink, a jump, or outside the domain (NaN)
        judged += 1
        adj = rng.normal(size=len(fine))
        assert np.allclose(call(back, *xs, *adj), adj @ (4 * fine - coarse) / 3, rtol=0, atol=near * size), (xs, adj)
    assert judged >= POINTS // 2


def element(t: Type) -> Type:
    """The scalars that a ``t`` is made of."""
    return t if isinstance(t, Scalar) else t.elem


def of_numbers(name: str, arity: int) -> str:
    """The record of ``name`` that takes so many float64 numbers."""
    same = [k for k, (n, _, types) in PROGRAMS.items() if n == name and f64 in map(element, types)]
    return next(k for k in same if len(program(k).params) == arity)


RULED = [f"{n}-{i}" for n in names.MODULES for i, r in enumerate(registry.records(n)) if r.kind == "body"
         and r.part("adjoint") and all(p.pattern in (f64, Float) for p in r.signature.params)]  # fmt: skip


@pytest.mark.parametrize("key", RULED)
def test_rules_of_what_was_not_chosen_give_nothing(key):
    """An adjoint of 0 stays 0 whatever the arguments are, since ``where`` may have chosen another value."""
    arity = len(program(key).params)
    for x in (0.0, -0.0, 1.0, -1.0, 2.0, INF, -INF, NAN):
        for y in (0.0, 0.5, -1.0, INF, NAN) if arity == 2 else (0.0,):
            assert not call(adjoint(key), *(x, y)[:arity], 0.0).any(), (x, y)


BAD = {
    "sqrt": [((0.0,), (0.0,)), ((-1.0,), (0.0,)), ((4.0,), (0.25,)), ((INF,), (0.0,))],
    "abs": [((0.0,), (0.0,)), ((-0.0,), (0.0,)), ((-2.0,), (-1.0,))],
    "copysign": [((0.0, -1.0), (-1.0, 0.0)), ((-0.0, -1.0), (1.0, 0.0)), ((2.0, -0.0), (-1.0, 0.0))],
    "min": [((1.0, 1.0), (1.0, 0.0)), ((NAN, 1.0), (0.0, 1.0)), ((1.0, NAN), (1.0, 0.0))],
    "max": [((1.0, 1.0), (1.0, 0.0)), ((NAN, 1.0), (0.0, 1.0)), ((1.0, NAN), (1.0, 0.0))],
    "clamp": [((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)), ((1.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
              ((2.0, 0.0, 1.0), (0.0, 0.0, 1.0)), ((-1.0, 0.0, 1.0), (0.0, 1.0, 0.0))],
    "asin": [((1.0,), (0.0,)), ((-1.0,), (0.0,)), ((2.0,), (0.0,))],
    "acos": [((1.0,), (0.0,)), ((-1.0,), (0.0,)), ((2.0,), (0.0,))],
    "atan2": [((0.0, 0.0), (0.0, 0.0)), ((0.0, -2.0), (-0.5, 0.0)), ((1e-200, 0.0), (0.0, -1e200)),
              ((INF, 1.0), (0.0, 0.0))],
    "log": [((0.0,), (INF,))],
    "cbrt": [((0.0,), (0.0,)), ((8.0,), (1 / 12,))],
    "pow": [((0.0, 0.5), (0.0, 0.0)), ((0.0, 0.0), (0.0, 0.0)), ((0.0, 1.0), (1.0, 0.0)), ((0.0, 2.5), (0.0, 0.0)),
            ((0.0, -1.0), (-INF, 0.0)), ((-2.0, 3.0), (12.0, 0.0)), ((2.0, 0.0), (0.0, np.log(2.0)))],
    "mod": [((7.5, 2.0), (1.0, -3.0)), ((-7.5, 2.0), (1.0, 3.0))],
    "erfinv": [((1.0,), (INF,))],
    "exp": [((1000.0,), (INF,)), ((-INF,), (0.0,))],
    "sign": [((0.0,), (0.0,))],
    "length": [((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))],
    "norm_l1": [((0.0, -2.0, 3.0), (0.0, -1.0, 1.0))],
    "norm_huber": [((0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 0.0))],
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_points_have_the_documented_derivative(name):
    for xs, wanted in BAD[name]:
        found = call(adjoint(of_numbers(name, len(xs))), *xs, 1.0)
        assert np.allclose(found, wanted, rtol=1e-12, atol=1e-15), (xs, found)


def test_what_has_no_direction_has_no_derivative():
    keys = [k for k, (name, _, _) in PROGRAMS.items() if name == "normalize"]
    for key in keys:
        n = len(program(key).params)
        assert not call(adjoint(key), *[0.0] * n, *range(1, n + 1)).any()
    for key in [k for k, (name, _, _) in PROGRAMS.items() if name == "inverse"]:
        n = len(program(key).params)
        assert not call(adjoint(key), *[1.0] * n, *range(1, n + 1)).any()


def test_no_rotation_has_no_axis_and_no_slope_of_its_angle():
    for name, given in (("quat_to_axis_angle", ()), ("quat_twist_angle", (0.0, 0.0, 1.0))):
        (key,) = [k for k, (n, _, _) in PROGRAMS.items() if n == name]
        results = len([y for y in program(key).body.yields if y.type.is_float])
        assert not call(adjoint(key), *given, 0.0, 0.0, 0.0, 1.0, *range(1, results + 1)).any()


def test_slerp_between_equal_rotations_moves_with_both_ends():
    """``slerp(a, b, t)`` is about ``a (1 - t) + b t`` where ``a`` and ``b`` are close."""
    (key,) = [k for k, (name, _, _) in PROGRAMS.items() if name == "quat_slerp"]
    q, t = np.array([0.0, 0.0, 0.6, 0.8]), 0.25
    turn = np.array([0.0, 0.0, 0.8, -0.6])  # along the rotation, at right angles to q
    found = call(adjoint(key), *q, *q, t, *turn)
    assert np.allclose([found[:4] @ turn, found[4:8] @ turn], [1 - t, t]) and abs(found[8]) < 1e-12


@pytest.mark.parametrize("exponent", [1, 2, 3, 4, -1, 2.0])
def test_constant_powers(exponent):
    match = registry.resolve("pow", [Arg(f64), Arg(None, exponent, True)], {}, context_of(1))
    b, x = Builder(), Value(f64)
    made = match.emit(b, [x, None])
    back = gone_back(run(LOWER, Func("f", "function", (x,), b.block((), (made,)), (f64,))))
    for point in (-1.5, 0.7):
        assert np.allclose(call(back, point, 1.0), exponent * point ** (exponent - 1))


# -- machine code ------------------------------------------------------------------------------------------------------

COUNT = 5  # threads
GROUPS: dict[tuple[Type, ...], list[str]] = {}
for _key, (_, _, _types) in PROGRAMS.items():
    GROUPS.setdefault(tuple(_types), []).append(_key)


def columns(types: tuple[Type, ...]) -> list[np.ndarray]:
    """Random operands, an array for each type with a row for each thread."""
    rng = np.random.default_rng(5)
    kinds = {f64: np.float64, f32: np.float32, f16: np.float16}
    rows = [np.array([sample(t, rng, 0.05) for _ in range(COUNT)]) for t in types]
    return [c.astype(kinds.get(element(t), np.int64)) for c, t in zip(rows, types)]


def shaped(c: np.ndarray, t: Type) -> np.ndarray:
    """Leaves as NumPy holds values of ``t``."""
    shape = () if isinstance(t, Scalar) else (t.rows, t.cols) if isinstance(t, Matrix) else (t.n,)
    return c.reshape(len(c), *shape)


@cache
def together(types: tuple[Type, ...]):
    """One kernel that calls all builtins that take these types; its operands, its results, and whose those are."""
    lines, results = [], {}
    for key in GROUPS[types]:
        name, n, _ = PROGRAMS[key]
        made = list(registry.records(name))[n].match([Arg(t) for t in types], {}, context_of(0)).result
        results[key] = made if isinstance(made, tuple) else (made,)
        operands = [f"x{k}_{key.replace('-', '_')}" for k in range(len(types))]  # some builtins change their argument
        lines += [f"{operand} = x{k}" for k, operand in enumerate(operands)]
        lines.append(f"{', '.join(outputs(key, results[key]))} = {call_text(name, operands)}")
    expressions = [part for key, made in results.items() for part in outputs(key, made)]
    made_types = [t for made in results.values() for t in made]
    return kernel(expressions, list(types), made_types, before="; ".join(lines)), results


def operands(types: tuple[Type, ...]) -> list[wp.array]:
    """Random arguments, one for each thread."""
    return [
        wp.array(shaped(c, t), dtype=class_of(t), requires_grad=has_floats(t)) for c, t in zip(columns(types), types)
    ]


def backward(types: tuple[Type, ...]) -> tuple[list[wp.array], dict[wp.array, np.ndarray], list[wp.array]]:
    """The operands with their gradients, the adjoints of the results that have some, and all results."""
    everything, results = together(types)
    ins, rng = operands(types), np.random.default_rng(9)
    outs = [wp.zeros(COUNT, dtype=class_of(t), requires_grad=has_floats(t)) for made in results.values() for t in made]
    tape = wp.Tape()
    with tape:
        wp.launch(everything, dim=COUNT, inputs=[*ins, *outs])
    adjoints = {o: rng.normal(size=o.numpy().shape).astype(o.numpy().dtype) for o in outs if o.requires_grad}
    tape.backward(grads={o: wp.array(a, dtype=o.dtype) for o, a in adjoints.items()})
    return ins, adjoints, outs


@pytest.mark.parametrize("types", GROUPS, ids=lambda types: ",".join(t.name for t in types))
def test_a_tape_gives_what_the_oracle_gives(types):
    """The adjoint of the kernel that calls all builtins, in machine code, adds up theirs."""
    ins, adjoints, outs = backward(types)
    found = np.concatenate([a.grad.numpy().reshape(COUNT, -1) for a in ins if a.requires_grad], axis=1)
    wanted, given = np.zeros(found.shape), columns(types)
    for i in range(COUNT):
        xs, rest = [x for c in given for x in np.ravel(c[i]).tolist()], iter(outs)
        for key, made in together(types)[1].items():
            mine = [next(rest) for _ in made]
            adj = [a for o in mine if o in adjoints for a in np.ravel(adjoints[o][i]).tolist()]
            wanted[i] += call(adjoint(key), *xs, *adj)
    near = {f64: 1e-12, f32: 1e-5}.get(next(e for e in map(element, types) if e.is_float), 5e-2)
    assert np.allclose(found, wanted, rtol=0, atol=near * np.abs(wanted).max())


@pytest.mark.parametrize("types", [(f64,), (f64, f64), (vector(3, f64),), (quaternion(f64),), (matrix(3, 3, f64),)],
                         ids=lambda types: ",".join(t.name for t in types))  # fmt: skip
def test_forwards_and_backwards_are_one_derivative(types):
    """``adj · (J ẋ) = (Jᵀ adj) · ẋ``, in machine code."""
    ins, adjoints, outs = backward(types)
    rng = np.random.default_rng(4)
    dots = [rng.normal(size=a.numpy().shape) for a in ins]
    along = wp.jvp(together(types)[0], dim=COUNT, inputs=ins, outputs=outs, tangents=dots)
    forth = sum(np.sum(adjoints[o] * dot.numpy()) for o, dot in zip(outs, along) if o in adjoints)
    assert np.isclose(forth, sum(np.sum(dot * a.grad.numpy()) for dot, a in zip(dots, ins)), rtol=1e-12)


def outputs(key: str, made: tuple) -> list[str]:
    """Names for the results of a builtin."""
    return [f"r{k}_{key.replace('-', '_')}" for k in range(len(made))]


# -- forward mode ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", PROGRAMS)
def test_rules_for_tangents_are_the_transposes_of_those_for_adjoints(key):
    name, _, types = PROGRAMS[key]
    rng = np.random.default_rng(3)
    for op in [op for op in ops_of(program(key, 1).body) if op.name == "call" and "tangent" in op.attrs]:
        xs = [x for v in op.args for x in sample(v.type, rng, 0.05)]
        results = call(op.attrs["func"], *xs)
        adj, dots = rng.normal(size=len(results)), rng.normal(size=len(xs))
        back = call(op.attrs["adjoint"], *xs, *results, *adj)
        forth = call(op.attrs["tangent"], *xs, *results, *dots)
        size = np.abs(adj) @ np.abs(forth)
        assert abs(adj @ forth - back @ dots) < (1e-13 if op.args[0].type is f64 else 1e-5) * size


def test_rules_that_stay_are_read_back_and_dropped():
    """A call with rules is text like any other; without them the program is the one that is never differentiated."""
    from treadle.ir.read import read
    from treadle.ir.show import show

    for key in (of_numbers("sin", 1), "normalize-0", "inverse-1"):
        ruled = program(key, 2)
        text = show(ruled)
        assert "adjoint=@" in text and show(read(text)) == text
        plain = run(NORMALIZE, drop_rules(ruled))
        assert show(plain).count("\n") == show(run(NORMALIZE, program(key))).count("\n")


def test_second_rules_come_where_they_are_asked_for():
    def calls(func: Func) -> list[Op]:
        return [op for op in ops_of(func.body) if op.name == "call" and "adjoint" in op.attrs]

    power = of_numbers("pow", 2)
    (first,) = calls(program(power, 1))
    assert not calls(first.attrs["adjoint"])
    (first,) = calls(program(power, 2))
    assert len(calls(first.attrs["adjoint"])) == 2  # pow and log again


def test_products_do_not_fuse_across_the_edge_of_a_function_with_a_rule():
    """Else a sum of the caller would fuse with what it gives back where the body is inlined, and not where the call
    stays, as the program is differentiated."""
    plain, kept = program("inverse-1"), program("inverse-1", 1)
    (call,) = [op for op in ops_of(kept.body) if op.name == "call"]

    def fused(func: Func) -> int:
        return sum(op.name == "fma" for op in ops_of(func.body))

    assert not any(op.name == "call" for op in ops_of(plain.body)) and "adjoint" in call.attrs
    assert fused(plain) == fused(call.attrs["func"]) > 0
