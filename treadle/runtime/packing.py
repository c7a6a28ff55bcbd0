"""Host values to bytes and back, by type: what launches, arrays of structs and element writes share."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..types.core import Bucketed, Indexed, Matrix, Scalar, Struct, Type, Vector, View, bf16
from ..types.layout import leaves
from ..types.numbers import bf16_bits, bf16_values
from ..types.promotion import in_bits
from ..types.spelling import spell
from ..types.values import class_of
from .device import device_at, far, get_device

Packer = Callable[[Any, int, Any], None]  # (buffer, offset, value)
Unpacker = Callable[[Any, int], Any]  # (buffer, offset) -> value

_FLOAT_CODES = {16: "e", 32: "f", 64: "d"}
_INT_CODES = {8: "b", 16: "h", 32: "i", 64: "q"}


# Where read-only arrays begin that elements of other arrays hold: an address is all that is left of an array there.
# Launches that may write to such arrays look into them once there is one; ``first`` is told then.
fixed: dict[int, None] = {}
_MOST = 100_000
first: list[Callable[[], None]] = []


def note_fixed(value: Any, t: Type) -> None:
    """Remember which arrays in ``value``, a struct that is put into memory, are read-only."""
    if isinstance(t, View):
        if value is None:
            return
        if value.read_only:
            if not fixed:
                for each in first:
                    each()
            elif len(fixed) >= _MOST:
                del fixed[next(iter(fixed))]
            fixed[value._address] = None
        elif fixed:
            fixed.pop(value._address, None)
    elif isinstance(t, Struct) and not isinstance(t, Bucketed) and value is not None:
        for name, part in t.fields:
            note_fixed(getattr(value, name, None), part)


def code_of(t: Scalar) -> str:
    """The letter of :mod:`struct` for ``t``; bfloat16 travels as its bits."""
    if t is bf16:
        return "H"
    if t.kind == "b":
        return "?"
    if t.kind == "f":
        return _FLOAT_CODES[t.bits]
    code = _INT_CODES[t.bits]
    return code if t.kind == "i" else code.upper()


@cache
def pointers_of(t: Type) -> tuple[int, ...]:
    """Where the addresses of data and of gradients stand in a value of type ``t``."""
    found = [leaf.offset for leaf in leaves(t) if isinstance(leaf.type, View)]
    return tuple([at + k for at in found for k in (0, 8)])


def number(value: Any, t: Scalar) -> Any:
    """``value`` as the Python number that packs as ``t``.

    Raises:
        TypeError: not a number of this kind; a float is no integer.
        OverflowError: an integer of more bits than ``t`` has.
    """
    plain = getattr(value, "value", value)
    if isinstance(plain, np.generic):
        plain = plain.item()
    if not isinstance(plain, int | float):
        raise TypeError(f"expected {spell(t)}, got {type(value).__name__}")
    if t.kind == "b":
        return bool(plain)
    if t is bf16:
        return int(bf16_bits(plain))
    if t.kind == "f":
        return float(plain)
    if isinstance(plain, float):
        raise TypeError(f"expected {spell(t)}, got the float {plain!r}")
    found = in_bits(int(plain), t)
    if found is None:
        raise OverflowError(f"{shown(plain)} does not fit {spell(t)}")
    return found


def shown(value: int) -> str:
    """``value`` for a message, in one line."""
    bits = value.bit_length()
    return str(value) if bits <= 128 else f"an int of {bits} bits"


def _finite(value: float, t: Scalar) -> float:
    """What a float too large for ``t`` becomes: infinity, as rounding has it."""
    with np.errstate(over="ignore"):
        return float(np.asarray(value, dtype=np.float64).astype(f"f{t.size}"))


@cache
def packer(t: Type) -> Packer:
    """The function that writes a host value of type ``t`` to a writable buffer."""
    if isinstance(t, Scalar):
        return _scalar_packer(t)
    if isinstance(t, Vector | Matrix):
        return _components_packer(t)
    if isinstance(t, View):
        return _view_packer(t)
    if isinstance(t, Bucketed):
        return _or_zeros(_struct_packer(t), t)
    if isinstance(t, Indexed):
        return _indexed_packer(t)
    if isinstance(t, Struct):
        return _struct_packer(t)
    raise TypeError(f"values of type {spell(t)} cannot be passed to kernels")


def _scalar_packer(t: Scalar) -> Packer:
    put = struct.Struct("<" + code_of(t)).pack_into

    def pack(buffer: Any, offset: int, value: Any) -> None:
        plain = number(value, t)
        try:
            put(buffer, offset, plain)
        except OverflowError:
            put(buffer, offset, _finite(plain, t))

    return pack


def _components_packer(t: Vector | Matrix) -> Packer:
    put = struct.Struct(f"<{t.n}{code_of(t.elem)}").pack_into

    def pack(buffer: Any, offset: int, value: Any) -> None:
        flat = np.asarray(value).reshape(-1).tolist()
        if len(flat) != t.n:
            raise TypeError(f"expected {spell(t)} of {t.n} components, got {len(flat)}")
        plain = [number(x, t.elem) for x in flat]
        try:
            put(buffer, offset, *plain)
        except OverflowError:
            put(buffer, offset, *(_finite(x, t.elem) for x in plain))

    return pack


def _view_packer(t: View) -> Packer:
    put = struct.Struct(f"<QQ{2 * t.ndim + 1}q").pack_into
    zeros = (0,) * (2 * t.ndim + 3)

    def pack(buffer: Any, offset: int, value: Any) -> None:
        if value is None:
            put(buffer, offset, *zeros)
            return
        grad = value.grad
        put(buffer, offset, value._address, 0 if grad is None else grad._address, *value.shape, *value.strides,
            value.component_stride)  # fmt: skip

    return pack


def _struct_packer(t: Struct) -> Packer:
    parts = [(name, offset, packer(ft)) for (name, ft), offset in zip(t.fields, t.offsets, strict=True)]

    def pack(buffer: Any, at: int, value: Any) -> None:
        for name, offset, put in parts:
            put(buffer, at + offset, getattr(value, name))

    return pack


def _indexed_packer(t: Indexed) -> Packer:
    put_data = packer(t.data)
    lists = [(axis, t.offsets[k], packer(t.indices(axis))) for axis, k in enumerate(t.axes) if k]

    def pack(buffer: Any, at: int, value: Any) -> None:
        put_data(buffer, at, value.data)
        for axis, offset, put in lists:
            put(buffer, at + offset, value._places(axis))

    return _or_zeros(pack, t)


def _or_zeros(pack: Packer, t: Type) -> Packer:
    """``pack``, with zeros for None."""
    zeros = bytes(t.size)

    def either(buffer: Any, at: int, value: Any) -> None:
        if value is None:
            buffer[at : at + len(zeros)] = zeros
        else:
            pack(buffer, at, value)

    return either


@cache
def unpacker(t: Type) -> Unpacker:
    """The function that reads a host value of type ``t``. Arrays inside structs come back as arrays over the addresses
    they hold, whose memory somebody else keeps; null addresses as None."""
    if isinstance(t, Scalar):
        get = struct.Struct("<" + code_of(t)).unpack_from
        if t is bf16:
            return lambda buffer, offset: float(bf16_values(get(buffer, offset)[0]))
        return lambda buffer, offset: get(buffer, offset)[0]
    if isinstance(t, Vector | Matrix):
        parts = struct.Struct(f"<{t.n}{code_of(t.elem)}").unpack_from
        cls = class_of(t)
        if t.elem is bf16:
            return lambda buffer, offset: cls(*bf16_values(parts(buffer, offset)).tolist())
        return lambda buffer, offset: cls(*parts(buffer, offset))
    if isinstance(t, View):
        return _view_unpacker(t)
    if isinstance(t, Bucketed):
        return _bucketed_unpacker(t)
    if isinstance(t, Indexed):
        return _indexed_unpacker(t)
    if isinstance(t, Struct):
        return _struct_unpacker(t, class_of(t))
    raise TypeError(f"values of type {spell(t)} cannot be read from memory")


def _view_unpacker(t: View) -> Unpacker:
    get = struct.Struct(f"<QQ{2 * t.ndim + 1}q").unpack_from

    def unpack(buffer: Any, offset: int) -> Any:
        data, grad, *rest = get(buffer, offset)
        if data == 0:
            return None
        from .array import array

        given = {"dtype": class_of(t.elem), "shape": rest[: t.ndim], "strides": rest[t.ndim : -1]}
        given["component_stride"] = None if isinstance(t.elem, Struct) else rest[-1]
        if far:
            given["device"] = device_at(data) or get_device("cpu")
        made = array(ptr=data, **given)
        if data in fixed:
            made._freeze()
        if grad:
            made.grad = array(ptr=grad, **given)
        return made

    return unpack


def _indexed_unpacker(t: Indexed) -> Unpacker:
    get_data = unpacker(t.data)
    lists = [(t.offsets[k], unpacker(t.indices(axis))) if k else None for axis, k in enumerate(t.axes)]

    def unpack(buffer: Any, at: int) -> Any:
        from .indexed import indexedarray

        data = get_data(buffer, at)
        if data is None:
            return None
        return indexedarray(data, [item and item[1](buffer, at + item[0]) for item in lists])

    return unpack


def _bucketed_unpacker(t: Bucketed) -> Unpacker:
    parts = {name: (offset, unpacker(part)) for (name, part), offset in zip(t.fields, t.offsets, strict=True)}

    def unpack(buffer: Any, at: int) -> Any:
        from .fabric import restored

        found = {name: get(buffer, at + offset) for name, (offset, get) in parts.items()}
        return None if found["buckets"] is None else restored(t, found)

    return unpack


def _struct_unpacker(t: Struct, cls: type) -> Unpacker:
    parts = [(name, offset, unpacker(ft)) for (name, ft), offset in zip(t.fields, t.offsets, strict=True)]

    def unpack(buffer: Any, at: int) -> Any:
        made = cls()
        for name, offset, get in parts:
            setattr(made, name, get(buffer, at + offset))
        return made

    return unpack
