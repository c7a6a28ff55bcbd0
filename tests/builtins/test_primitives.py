"""Primitives: machine code of every gang width gives what ``ref`` says, bit for bit, on the edges of every type."""

import itertools
import math

import numpy as np
import pytest

from treadle.builtins import names, registry
from treadle.types.core import ARITHMETIC, SCALARS, Scalar, b1, bf16, f16, f32, f64, i32
from treadle.types.numbers import rounder
from treadle.types.promotion import limits
from treadle.types.values import numpy_dtype

from .kernels import name_of, run

PRIMITIVES = [r for name in names.MODULES for r in registry.records(name) if r.kind == "primitive"]
SPELLED = {
    "bitand": "{} & {}", "bitor": "{} | {}", "bitxor": "{} ^ {}", "shl": "{} << {}", "shr": "{} >> {}",
    "logical_not": "not {}", "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}",
    "ge": "{} >= {}", "popcount": "wp.bit_count({})",
}  # fmt: skip


def edges(t: Scalar) -> np.ndarray:
    """Numbers that a type holds and that are easy to get wrong."""
    if t is b1:
        return np.array([False, True])
    if t.is_int:
        low, high = limits(t)
        some = {0, 1, 2, 3, 5, 7, t.bits - 1, t.bits, 100, -1, -2, -3, -7}
        some |= {low, low + 1, low // 3, high, high - 1, high // 2}
        return np.array(sorted(x for x in some if low <= x <= high), dtype=numpy_dtype(t))
    some = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-7, -1e30, 3e38, 0.1, 7.25]
    some += [math.inf, -math.inf, math.nan]
    some += [rounder(t)(x) for x in (math.pi, -math.e, 2**23 + 0.5, 16777217.0, 1e-40)]
    kind = np.float32 if t is bf16 else numpy_dtype(t)
    with np.errstate(over="ignore"):
        return np.array([rounder(t)(x) for x in some]).astype(kind)


def takes(record, t: Scalar) -> bool:
    """Whether the record takes operands of ``t``."""
    try:
        record.match([registry.Arg(t)] * len(record.signature.params), {}, None)
    except registry.Mismatch:
        return False
    return True


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays hold the same bits, any two NaN counting as equal."""
    if a.dtype.kind != "f":
        return a == b
    bits = f"u{a.dtype.itemsize}"
    return (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("t", [t for t in SCALARS if t is not bf16], ids=name_of)
@pytest.mark.parametrize("width", [1, 8])
def test_machine_code_agrees_with_the_meaning(t, width):
    for arity in (1, 2, 3):  # all records of an arity in one kernel
        records = [r for r in PRIMITIVES if len(r.signature.params) == arity and takes(r, t)]
        if arity == 3 and not records:
            continue
        assert records
        values = edges(t) if arity < 3 else edges(t)[:12]
        columns = [np.array(c) for c in zip(*itertools.product(values, repeat=arity))]
        matches = [r.match([registry.Arg(t)] * arity, {}, None) for r in records]
        operands = [f"x{k}" for k in range(arity)]
        texts = [SPELLED.get(r.name, f"wp.{r.name}({', '.join(['{}'] * arity)})").format(*operands) for r in records]
        outs = run(texts, [(t, c) for c in columns], [m.result for m in matches], width)
        for record, out in zip(records, outs, strict=True):
            with np.errstate(over="ignore"):
                wanted = np.array([meaning(record, t, xs) for xs in zip(*columns)], dtype=out.dtype)
            wrong = np.flatnonzero(~same(out, wanted))
            shown = [(tuple(c[k] for c in columns), out[k], wanted[k]) for k in wrong[:5]]
            assert not len(wrong), f"{record.name} of {t}: operands, found, wanted: {shown}"


def meaning(record, t: Scalar, xs: tuple):
    """``ref`` on operands of ``t``; float16 works in float32 and rounds the result."""
    with np.errstate(all="ignore"):
        return record.part("ref")(*[np.float32(x) for x in xs] if t is f16 else xs)


@pytest.mark.parametrize("t", [f16, f32, f64], ids=name_of)
@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("name", ["min", "max"])
def test_a_constant_operand_makes_no_difference(t, width, name):
    values = edges(t)
    literals = [{"nan": "wp.nan", "inf": "wp.inf", "-inf": "-wp.inf"}.get(str(v), repr(float(v))) for v in values]
    texts = [text for c in literals for text in (f"wp.{name}(x0, {c})", f"wp.{name}({c}, x0)")]
    found = run(texts, [(t, values)], [t] * len(texts), width)
    meaning = next(r for r in PRIMITIVES if r.name == name).part("ref")
    for i, c in enumerate(values):
        for out, wanted in ((found[2 * i], [meaning(x, c) for x in values]),
                            (found[2 * i + 1], [meaning(c, x) for x in values])):  # fmt: skip
            assert same(out, np.array(wanted, dtype=out.dtype)).all(), (c, out, wanted)


def test_every_primitive_is_met_by_some_type():
    met = {r.name for r in PRIMITIVES for t in SCALARS if takes(r, t)}
    assert met == {r.name for r in PRIMITIVES}


@pytest.mark.parametrize("t", [f16, f32, f64], ids=name_of)
def test_fma_rounds_once(t):
    from fractions import Fraction

    kind, rng = numpy_dtype(t).type, np.random.default_rng(1)
    fma = registry.primitive("fma").part("ref")
    for a, b, c in rng.normal(size=(300, 3)).astype(kind) * kind(3):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        near = fma(a, b, c)
        for other in (np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf))):
            assert abs(Fraction(float(near)) - exact) <= abs(Fraction(float(other)) - exact)
    assert fma(kind(1), kind(-1), kind(1)) == 0 and math.isinf(fma(kind(math.inf), kind(1), kind(1)))


def test_literals_divide_without_conversion():
    xs = np.array([-(2**31), -7, -1, 0, 1, 7, 2**31 - 1], dtype=np.int32)
    out = run(["x0 / 3", "x0 % 3", "x0 // 3", "x0 / -1", "x0 / 0", "x0 % 0"], [(i32, xs)], [i32] * 6)
    wide = xs.astype(np.int64)
    assert np.array_equal(out[0], np.trunc(wide / 3)) and np.array_equal(out[2], wide // 3)
    assert np.array_equal(out[1], wide - 3 * np.trunc(wide / 3).astype(np.int64))
    assert np.array_equal(out[3], (-wide).astype(np.int32)) and not out[4].any() and not out[5].any()


@pytest.mark.parametrize("t", ARITHMETIC, ids=name_of)
def test_python_numbers_behave_as_kernels_do(t):
    """The host's scalar classes follow the same rules for division as the primitives."""
    from treadle.types.values import class_of

    if t is bf16:
        return
    cls = class_of(t)
    for a, b in itertools.product(edges(t)[:20].tolist(), repeat=2):
        if t.is_int:
            quotient = registry.primitive("div").part("ref")(*np.array([a, b], dtype=numpy_dtype(t)))
            assert int(cls(a) / cls(b)) == int(quotient)


def test_small_constant_powers_are_products():
    xs = np.array([-2.0, 0.1, 3.0], dtype=np.float32)
    out = run(
        ["x0 ** 2.0", "x0 ** 2", "wp.pow(x0, 3.0)", "x0 ** 4.0", "x0 ** 1.0", "x0 ** -1.0"], [(f32, xs)], [f32] * 6
    )
    assert np.array_equal(out[0], xs * xs) and np.array_equal(out[1], xs * xs)
    assert np.array_equal(out[2], xs * xs * xs) and np.array_equal(out[3], (xs * xs) * (xs * xs))
    assert np.array_equal(out[4], xs) and np.array_equal(out[5], 1 / xs)


def test_bfloat16_works_in_float32_and_rounds():
    values = edges(bf16)
    for arity in (1, 2):
        records = [r for r in PRIMITIVES if len(r.signature.params) == arity and takes(r, bf16)]
        columns = [np.array(c) for c in zip(*itertools.product(values, repeat=arity))]
        results = [r.match([registry.Arg(bf16)] * arity, {}, None).result for r in records]
        operands = [f"wp.bfloat16(x{k})" for k in range(arity)]
        texts = [SPELLED.get(r.name, f"wp.{r.name}({', '.join(['{}'] * arity)})").format(*operands) for r in records]
        texts = [f"wp.float32({text})" if t is bf16 else text for text, t in zip(texts, results, strict=True)]
        outs = run(texts, [(f32, c) for c in columns], [f32 if t is bf16 else t for t in results])
        for record, t, out in zip(records, results, outs, strict=True):
            with np.errstate(all="ignore"):
                wanted = [record.part("ref")(*xs) for xs in zip(*columns)]
            if t is bf16:
                wanted = [rounder(bf16)(w) for w in wanted]
            wrong = np.flatnonzero(~same(out, np.array(wanted, dtype=out.dtype)))
            assert not len(wrong), (record.name, [(tuple(c[k] for c in columns), out[k], wanted[k]) for k in wrong[:5]])
