"""Which record a call means, how literals adapt, and what the errors say."""

import pytest

from treadle.base.errors import KernelNameError, KernelTypeError
from treadle.builtins.registry import Arg, constructor, resolve
from treadle.ir.builder import Builder
from treadle.ir.node import Value
from treadle.types.core import b1, f16, f32, f64, i32, i64, matrix, quaternion, transformation, u8, u32, vector, view

VEC3, MAT33, QUAT, TRANSFORM = vector(3, f32), matrix(3, 3, f32), quaternion(f32), transformation(f32)


def literal(value):
    return Arg({bool: b1, int: i32, float: f32}[type(value)], value, True)


def args(*given):
    return [Arg(g) if not isinstance(g, bool | int | float) else literal(g) for g in given]


def found(name, *given, **named):
    """Types and result of the record that takes the arguments, and the ops it appends."""
    match = resolve(name, args(*given), named, None)
    builder = Builder()
    made = match.emit(builder, [None if t is None else Value(t) for t in match.types])
    if match.result is not None and not isinstance(match.result, tuple):
        assert made.type is match.result
    return match.types, match.result, [op.name for op in builder.ops]


def error(name, *given, **named):
    with pytest.raises(KernelTypeError) as caught:
        resolve(name, args(*given), named, None)
    return caught.value.message, caught.value.hint


@pytest.mark.parametrize(("given", "types"), [
    ((f32, 2), [f32, f32]), ((2, f32), [f32, f32]), ((f64, 2.0), [f64, f64]), ((u8, 255), [u8, u8]),
    ((1, 2.0), [f32, f32]), ((f16, 0.1), [f16, f16]), ((1, 2), [i32, i32]), ((VEC3, VEC3), [VEC3, VEC3]),
    ((QUAT, QUAT), [QUAT, QUAT]),
])  # fmt: skip
def test_literals_take_the_type_of_their_partner(given, types):
    assert found("add", *given)[0] == types


def test_a_scalar_spreads_over_a_composite():
    assert found("mul", VEC3, 2) == ([VEC3, f32], VEC3, ["make", "mul"])
    assert found("div", 1.0, MAT33) == ([f32, MAT33], MAT33, ["make", "div"])
    assert found("mul", vector(2, f64), 2.0)[0] == [vector(2, f64), f64]


def test_products_by_shape():
    assert found("mul", matrix(2, 3, f32), VEC3)[1] is vector(2, f32)
    assert found("mul", VEC3, matrix(3, 2, f32))[1] is vector(2, f32)
    assert found("mul", matrix(2, 3, f32), matrix(3, 4, f32))[1] is matrix(2, 4, f32)
    assert found("matmul", MAT33, MAT33)[1] is MAT33


def test_comparisons_of_two_types_compare_in_the_common_one():
    assert found("lt", i32, 1.0) == ([i32, f32], b1, ["cast", "lt"])
    assert found("eq", i64, 1)[0] == [i64, i64]
    assert found("eq", VEC3, VEC3)[2].count("bitand") == 2


def test_atomics_take_an_index_per_dimension_and_a_value_that_fits():
    grid = view(f32, 2)
    assert found("atomic_add", grid, i32, 3, 1) == ([grid, i32, i32, f32], f32, ["atomic"])
    assert found("atomic_cas", view(u32, 1), i64, 0, 1)[0] == [view(u32, 1), i64, u32, u32]
    assert found("atomic_max", view(VEC3, 1), i32, VEC3)[1] is VEC3
    assert "candidates: atomic_add(arr: array(E), i: Int, value: E)" in error("atomic_add", grid, i32, f32)[1]
    with pytest.raises(KernelTypeError):
        resolve("atomic_or", args(view(f32, 1), i32, f32), {}, None)


def test_sizes_are_known_while_compiling():
    assert [resolve("len", [Arg(t)], {}, None).known for t in (VEC3, MAT33, TRANSFORM, view(f32, 1))] == [3, 3, 7, None]


def test_a_builtin_that_moves_its_argument_says_so():
    class Bodies:
        def instantiate(self, body, types):
            raise AssertionError("typing must not need the body")

    match = resolve("randf", [Arg(u32), literal(0.0), literal(1.0)], {}, Bodies())
    assert match.updates == (0,) and match.result is f32 and match.types == [u32, f32, f32]


def test_arguments_by_name_and_defaults():
    assert found("copysign", f32, y=Arg(f32))[0] == [f32, f32]
    assert found("where", Arg(b1).type, value_if_false=Arg(f32), value_if_true=literal(1))[0] == [b1, f32, f32]
    assert found("quat_identity")[1] is QUAT
    assert found("quat_identity", dtype=Arg(None, f64))[:2] == ([None], quaternion(f64))


def test_types_known_while_compiling():
    assert found("identity", n=literal(2), dtype=Arg(None, float))[:2] == ([None, None], matrix(2, 2, f32))
    assert found("zeros", shape=Arg(None, (2, 3)), dtype=Arg(None, float))[1] is view(f32, 2, space="local")
    assert found("cast", f32, dtype=Arg(None, int))[1] is i32
    assert found("vector", 1.0, f64, dtype=Arg(None, f64))[1] is vector(2, f64)
    assert found("matrix", 1.0, 2, 3, 4, shape=Arg(None, (2, 2)))[1] is matrix(2, 2, f32)


def test_errors_name_the_argument_the_types_and_a_way_out():
    none = "Couldn't find function overload for"
    assert error("sqrt", i32) == (f"{none} 'sqrt': argument 'x' cannot be int32",
                                  "allowed: float16, bfloat16, float32, float64; write float32(…)")  # fmt: skip
    assert error("add", f32, i32) == ("'+' cannot take float32 and int32",
                                      "types are not mixed in silence; convert one side, as in float32(…)")  # fmt: skip
    assert error("mul", VEC3, VEC3) == (
        "'*' cannot take vec3f and vec3f",
        "cw_mul and cw_div go by component; dot and cross are the other products",
    )
    assert error("copysign", f32)[0] == f"{none} 'copysign': argument 'y' is missing"
    assert error("copysign", f32, f32, f32)[0] == f"{none} 'copysign': 3 arguments are too many"
    assert error("copysign", f32, f64) == (
        f"{none} 'copysign': argument 'y' must be float32 like the other, not float64",
        "write float32(…) to convert it",
    )
    assert error("copysign", f32, z=Arg(f32))[0] == f"{none} 'copysign': there is no parameter 'z'"
    assert "dot(a: Vec(N, Scalar), b: Vec(N, Scalar)); dot(a: Quat(Float)," in error("dot", f32, f32)[1]
    with pytest.raises(KernelNameError, match="no builtin 'normalise'") as caught:
        resolve("normalise", [], {}, None)
    assert caught.value.hint.startswith("did you mean normalize")


# -- constructors ------------------------------------------------------------------------------------------------------


def made(t, *given, **named):
    match = constructor(t, args(*given), named, None)
    builder = Builder()
    value = match.emit(builder, [Value(x) for x in match.types])
    assert value.type is t
    return match.types, [op.name for op in builder.ops]


def test_composites_are_made_of_parts_of_a_fill_or_of_nothing():
    assert made(VEC3, 1, 2.0, f32) == ([f32, f32, f32], ["make"])
    assert made(VEC3) == ([], ["const", "make"]) and made(VEC3, 1) == ([f32], ["make"])
    assert made(vector(4, f32), VEC3, 1)[0] == [VEC3, f32]
    assert made(vector(6, f32), VEC3, VEC3)[1].count("extract") == 6
    assert made(QUAT, VEC3, 1.0)[0] == [VEC3, f32]
    assert made(TRANSFORM, q=Arg(QUAT), p=Arg(VEC3))[0] == [QUAT, VEC3]
    assert made(TRANSFORM, VEC3)[1].count("const") == 2
    assert made(vector(3, f64), VEC3)[1].count("cast") == 3
    assert made(MAT33, *[1.0] * 9)[1] == ["make"]


def test_keywords_may_repeat_what_the_type_says():
    match = constructor(matrix(2, 3, f32), args(f32), {"shape": Arg(None, (2, 3)), "dtype": Arg(None, float)}, None)
    assert match.types == [f32, None, None] and match.result is matrix(2, 3, f32)
    with pytest.raises(KernelTypeError, match="argument 'length' cannot be int32"):
        constructor(VEC3, args(f32), {"length": literal(4)}, None)


def test_casts():
    assert made(f32, i32) == ([i32], ["cast"]) and made(i32, 2.5) == ([f32], ["cast"])
    assert made(b1, f32)[1] == ["const", "ne"] and made(u8, 300) == ([i32], ["cast"]) and made(f64, 0.1) == ([f64], [])


@pytest.mark.parametrize(("t", "given", "says"), [
    (VEC3, (i32, i32, i32), "vec3f: a component is expected to be of the type float32, not int32"),
    (VEC3, (1.0, 2.0), "vec3f: takes 3 numbers, not 2"),
    (vector(3, i32), (1.5, 1, 1), "vec3i: a component is expected to be of the type int32, not 1.5"),
    (MAT33, (VEC3, VEC3, VEC3), "mat33f: takes numbers row by row"),
    (f32, (VEC3,), "float32: takes one number, not vec3f"),
])  # fmt: skip
def test_wrong_parts_are_named(t, given, says):
    with pytest.raises(KernelTypeError) as caught:
        constructor(t, args(*given), {}, None)
    assert caught.value.message.startswith(says)
