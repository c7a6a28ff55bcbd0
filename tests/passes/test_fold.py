"""What is known is computed; what changes no bit goes."""

import math

import pytest

from tests.passes.text import body, of
from treadle.ir.scalars import boxed
from treadle.passes.dce import remove_dead
from treadle.passes.fold import fold
from treadle.types.core import f32


def after(text: str) -> str:
    return body(remove_dead(fold(of(text))))


def value(op: str, t: str, *constants: str) -> str:
    """What ``op`` of constants folds to."""
    lines = [f"%{20 + k}: {t} = const value={c}" for k, c in enumerate(constants)]
    names = ", ".join(f"%{20 + k}" for k in range(len(constants)))
    shown = ["%31: bool = eq %30, %30", "check %31, %30 kind='' message=''"]
    text = after("\n ".join([*lines, f"%30: {t} = {op} {names}", *shown]))
    return [line for line in text.splitlines() if "const" in line][0].rpartition("=")[2]


@pytest.mark.parametrize(
    "op, t, constants, result",
    [
        ("add", "i32", ("2147483647", "1"), "-2147483648"), ("mul", "u8", ("16", "17"), "16"),
        ("div", "i32", ("-7", "2"), "-3"), ("div", "i32", ("1", "0"), "0"), ("sub", "u32", ("0", "1"), "4294967295"),
        ("add", "f32", ("0x1.0p+24", "1.0"), "0x1.0000000000000p+24"), ("div", "f32", ("1.0", "0.0"), "inf"),
        ("mul", "f16", ("1000.0", "1000.0"), "inf"), ("add", "bf16", ("1.0", "0.00390625"), "0x1.0000000000000p+0"),
        ("neg", "f64", ("0.0",), "-0x0.0p+0"), ("min", "f32", ("nan", "1.0"), "0x1.0000000000000p+0"),
    ],
)  # fmt: skip
def test_constants_fold_exactly_as_the_type_computes(op, t, constants, result):
    assert value(op, t, *constants) == result


def test_f32_constants_round_before_they_are_used():
    text = after("%9: f32 = const value=0x1.999999999999ap-4\n %10: f32 = add %9, %9\n store %0, %1, %10")
    assert float(boxed(0.1, f32) + boxed(0.1, f32)).hex() in text


@pytest.mark.parametrize(
    "source, t, constant, result",
    [
        ("f32", "i32", "-1.75", "-1"), ("f32", "i32", "0x1.0p+40", "2147483647"), ("f32", "i32", "nan", "0"),
        ("f32", "u8", "-3.0", "0"), ("i32", "u8", "-1", "255"), ("i32", "i8", "200", "-56"),
        ("i32", "f32", "16777217", "0x1.0000000000000p+24"), ("bool", "f32", "true", "0x1.0000000000000p+0"),
    ],
)  # fmt: skip
def test_casts_of_constants(source, t, constant, result):
    text = after(f"%9: {source} = const value={constant}\n %10: {t} = cast %9\n check %4, %10 kind='' message=''")
    assert f"{t} = const value={result}" in text


def test_bitcasts_of_constants():
    assert "i32 = const value=1065353216" in after("%9: f32 = const value=1.0\n %10: i32 = bitcast %9\n"
                                                   " store %7, %1, %10")


X = "store %0, %1, %10"
KEEPS = "\n  store %0, %1, %2\n"


@pytest.mark.parametrize(
    "op, constant", [("mul", "1.0"), ("div", "1.0"), ("sub", "0.0"), ("add", "-0.0")]
)
def test_identities_that_keep_every_float(op, constant):
    assert after(f"%9: f32 = const value={constant}\n %10: f32 = {op} %2, %9\n {X}") == KEEPS


@pytest.mark.parametrize(
    "op, constant", [("mul", "0.0"), ("add", "0.0"), ("sub", "-0.0"), ("div", "3.0"), ("mul", "-1.0")]
)
def test_what_would_change_a_float_stays(op, constant):
    assert op in after(f"%9: f32 = const value={constant}\n %10: f32 = {op} %2, %9\n {X}")


def test_a_float_minus_itself_is_not_always_zero():
    assert "sub" in after(f"%10: f32 = sub %2, %2\n {X}")
    assert "eq" in after("%9: bool = eq %2, %2\n check %9 kind='' message=''")


@pytest.mark.parametrize("constant, inverse", [("8.0", 0.125), ("-0.25", -4.0)])
def test_division_by_a_power_of_two_is_a_product(constant, inverse):
    text = after(f"%9: f32 = const value={constant}\n %10: f32 = div %2, %9\n {X}")
    assert "mul" in text and inverse.hex() in text


def test_division_stays_where_the_inverse_is_not_normal():
    assert "div" in after(f"%9: f32 = const value={math.ldexp(1.0, 127).hex()}\n %10: f32 = div %2, %9\n {X}")


INT = "store %7, %1, %10"


@pytest.mark.parametrize(
    "line", ["add %1, {0}", "sub %1, {0}", "mul %1, {1}", "div %1, {1}", "bitor %1, {0}", "bitand %1, {-1}",
             "bitand %1, %1", "bitxor %1, {0}", "shl %1, {0}", "min %1, %1"]
)  # fmt: skip
def test_identities_of_integers(line):
    constant = line.partition("{")[2].rstrip("}")
    head = f"%9: i32 = const value={constant}\n " if constant else ""
    text = f"{head}%10: i32 = {line.partition('{')[0]}{'%9' if constant else ''}\n {INT}"
    assert after(text) == "\n  store %7, %1, %1\n"


@pytest.mark.parametrize("line", ["sub %1, %1", "mul %1, %9", "bitand %1, %9", "bitxor %1, %1"])
def test_integers_that_vanish(line):
    assert "store %7, %1, %8" in after(f"%9: i32 = const value=0\n %10: i32 = {line}\n {INT}")


def test_undoing_twice():
    assert after(f"%9: f32 = neg %2\n %10: f32 = neg %9\n {X}") == KEEPS
    assert "check %4" in after("%9: bool = logical_not %4\n %10: bool = logical_not %9\n check %10 kind='' message=''")


def test_comparison_with_a_truth_value():
    cases = (("true", "eq", "check %4"), ("false", "ne", "check %4"), ("false", "eq", "logical_not %4"))
    for constant, op, wanted in cases:
        assert wanted in after(f"%9: bool = const value={constant}\n %10: bool = {op} %4, %9\n"
                               f" check %10 kind='' message=''")


def test_composites_are_left_alone():
    f = of("%9: vec<3,f32> = add %5, %5\n store %6, %1, %9")
    assert fold(f) is f
