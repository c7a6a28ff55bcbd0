"""Host values become the bytes that kernels read, and come back."""

import struct

import numpy as np
import pytest

from treadle.runtime.construct import zeros
from treadle.runtime.packing import packer, unpacker
from treadle.types import core
from treadle.types.core import Struct, b1, bf16, f16, f32, f64, i8, i32, matrix, u8, u64, vector, view
from treadle.types.numbers import bf16_bits, bf16_values
from treadle.types.values import class_of, register_class


def packed(t, value):
    buffer = bytearray(t.size)
    packer(t)(buffer, 0, value)
    return bytes(buffer)


@pytest.mark.parametrize(
    ("t", "value", "code"),
    [(f32, 1.5, "f"), (f64, 0.1, "d"), (i32, -7, "i"), (u64, 2**64 - 1, "Q"), (i8, -128, "b"), (b1, True, "?"),
     (f16, 0.5, "e"), (f32, 3, "f"), (f32, np.float64(2.5), "f"), (i32, np.int8(5), "i"), (f32, 1e300, "f"),
     (f32, class_of(f32)(2.0), "f")],
)  # fmt: skip
def test_scalars(t, value, code):
    plain = getattr(value, "value", value)
    expected = struct.pack(f"<{code}", float("inf") if plain == 1e300 else plain)
    assert packed(t, value) == expected
    assert unpacker(t)(packed(t, value), 0) == struct.unpack(f"<{code}", expected)[0]


@pytest.mark.parametrize(("t", "value", "error"), [(i32, 2**32, OverflowError), (u8, -129, OverflowError),
                                                   (i32, 1.0, TypeError),
                                                   (f32, "1", TypeError), (f32, None, TypeError)])  # fmt: skip
def test_numbers_that_do_not_fit(t, value, error):
    with pytest.raises(error):
        packed(t, value)


@pytest.mark.parametrize(
    "t", [vector(3, f32), matrix(2, 3, f64), vector(2, u8), core.quaternion(f16), vector(2, bf16)], ids=str
)
def test_composites_come_back(t):
    value = class_of(t)(*range(1, t.n + 1))
    assert unpacker(t)(packed(t, value), 0) == value and len(packed(t, value)) == t.size
    with pytest.raises(TypeError, match="components"):
        packed(t, [1.0])


def test_views():
    a = zeros((2, 3), requires_grad=True)
    assert struct.unpack("<7q", packed(view(f32, 2), a)) == (a.ptr, a.grad.ptr, 2, 3, 12, 4, 4)
    assert packed(view(f32, 2), None) == bytes(56)


def test_structs_follow_c_rules():
    inner = Struct("tests.packing.Inner", (("flag", b1), ("x", f64)))
    outer = Struct("tests.packing.Outer", (("i", i8), ("inner", inner), ("a", view(f32, 1)), ("v", vector(3, f32))))

    class Inner:
        flag, x = False, 0.0

    class Outer:
        i, a = 0, None

    register_class(inner, Inner)
    register_class(outer, Outer)
    value, part, a = Outer(), Inner(), zeros(5)
    part.flag, part.x = True, 2.5
    value.i, value.inner, value.a, value.v = -3, part, a, class_of(vector(3, f32))(1, 2, 3)
    data = packed(outer, value)
    assert len(data) == outer.size == 80
    assert struct.unpack_from("<b7x?7xd", data) == (-3, True, 2.5)
    assert struct.unpack_from("<QQqqq3f", data, 24) == (a.ptr, 0, 5, 4, 4, 1, 2, 3)
    back = unpacker(outer)(data, 0)
    assert (back.i, back.inner.flag, back.inner.x, back.a.ptr, back.v) == (-3, True, 2.5, a.ptr, value.v)
    assert back.a.shape == (5,) and back.a.type is a.type
    value.a = None
    assert unpacker(outer)(packed(outer, value), 0).a is None


def test_bfloat16_rounds_to_nearest_even():
    values = np.array([1.0, 1.00390625, 1.01171875, -2.5, np.inf, 3.4e38, 1e-40], np.float32)
    assert bf16_bits(values).tolist() == [0x3F80, 0x3F80, 0x3F82, 0xC020, 0x7F80, 0x7F80, 0x0001]
    assert np.isnan(bf16_values(bf16_bits(np.float32("nan")))) and bf16_values([0x3F80, 0xC020]).tolist() == [1.0, -2.5]
