"""Arguments that JAX gives to a kernel or a function: checked against the annotations, turned into slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.errors import LaunchTypeError
from ..lang.kernel import bind_one
from ..lang.shadows import copy_struct
from ..runtime.array import array
from ..runtime.device import is_cuda_available
from ..runtime.elements import Element, element_of
from ..runtime.packing import number, packer
from ..types.core import Array, Indexed, Matrix, Scalar, Struct, Type, Vector, view
from ..types.numpy_types import type_of_numpy
from ..types.spelling import spell
from .extras import jax
from .jax_arrays import scalar_dtype, to_jax
from .jax_launch import INOUT, INPUT, OUTPUT, STATIC, VALUE, Slot
from .signature import Signature


def bind(signature: Signature, args: Sequence[Any]) -> list[tuple[Slot, Any]]:
    """Slot and operand (None for what is known) of each input.

    Raises:
        LaunchError: their number does not fit.
        LaunchTypeError: a type or shape does not.
    """
    signature.count(args)
    found = []
    for name, t, arg in zip(signature.inputs, signature.declared, args, strict=False):
        role = INOUT if name in signature.in_out else INPUT
        where = f"argument {name!r} of {signature.what}"
        if isinstance(t, Array) or (t is None and getattr(arg, "shape", ())):
            found.append(_array(name, t, arg, role, where))
        elif isinstance(arg, jax().Array) and not signature.traced:
            raise LaunchTypeError(
                f"{where} must be known while JAX traces, not computed by it",
                hint="pass a Python number, or name it in static_argnums or static_argnames of jax.jit",
            )
        elif isinstance(arg, jax().Array):
            found.append(_value(name, t, arg, where))
        else:
            if isinstance(arg, np.ndarray) and not arg.ndim:
                arg = arg[()]
            value, own = bind_one(arg, t, name, signature.key)
            if isinstance(own, Struct) and not isinstance(own, Indexed):
                value = copy_struct(value)  # it stays what it is now, and keeps its arrays
            known = _number(own, value) if signature.traced else None
            if known is not None:  # inside of jax.jit it is part of what a GPU is given, where it does not lie
                always = value if isinstance(known, jax().core.Tracer) and is_cuda_available() else None
                found.append((Slot(name, own, VALUE, (), known.dtype, always), known))
            else:
                found.append((Slot(name, own, STATIC, value=value), None))
    return found


def _number(t: Type, value: Any) -> Any:
    """A known number as an array of JAX, as it would be in JAX's own functions, so that the next value needs no other
    executable; None for what JAX has no array of."""
    if not isinstance(t, Scalar):
        return None
    dtype = scalar_dtype(t)
    if jax().dtypes.canonicalize_dtype(dtype) != dtype:
        return None
    plain = number(value, t) if t.is_int or t.kind == "b" else value
    return jax().numpy.asarray(np.asarray(plain, dtype))


def outputs(
    signature: Signature, bound: Sequence[tuple[Slot, Any]], shape_of: Callable[[str, Element, int], Any]
) -> list[Slot]:
    """The slots of what is only written. ``shape_of(name, element, ndim)``: the shape of its elements."""
    made = []
    for name, t in signature.made:
        elem = t.elem if isinstance(t, Array) else None
        arrays = [slot for slot, _ in bound if slot.role in (INPUT, INOUT)]
        if elem is None:
            if not arrays:
                raise LaunchTypeError(
                    f"argument {name!r} of {signature.what} has no element type",
                    hint="annotate it as wp.array(dtype=…), or give the types by wp.overload",
                )
            elem = arrays[0].type.elem
        ndim = t.ndim if isinstance(t, Array) else arrays[0].type.ndim
        e = element_of(elem)
        shape = signature.shape_of(name, e, ndim, tuple(shape_of(name, e, ndim)))
        made.append(Slot(name, view(elem, ndim), OUTPUT, shape, scalar_dtype(_scalar(elem))))
    return made


def _scalar(t: Type) -> Scalar:
    found = t.elem if isinstance(t, Vector | Matrix) else t
    if not isinstance(found, Scalar):
        raise LaunchTypeError(f"JAX has no dtype for {spell(t)}")
    return found


def _inner(t: Type) -> tuple[int, ...]:
    return element_of(t).inner


def _array(name: str, t: Type | None, arg: Any, role: str, where: str) -> tuple[Slot, Any]:
    """Slot and operand of an array."""
    if isinstance(arg, array):
        arg = to_jax(arg)
    elif isinstance(arg, np.ndarray):
        arg = jax().numpy.asarray(arg)  # of the dtype that JAX gives it
    if not isinstance(arg, jax().Array):
        wanted = spell(t) if t is not None else "an array"
        raise LaunchTypeError(f"{where} must be {wanted}, an array of JAX, not {type(arg).__name__}")
    elem, ndim = (t.elem, t.ndim) if isinstance(t, Array) else (None, arg.ndim)
    if elem is None:
        elem = type_of_numpy(arg.dtype)
        if elem is None:
            raise LaunchTypeError(f"{where}: no scalar type is like {arg.dtype}")
    inner, dtype = _inner(elem), scalar_dtype(_scalar(elem))
    if arg.dtype != dtype:
        raise LaunchTypeError(f"{where} must hold {dtype}, not {arg.dtype}", hint=_wide(dtype, arg.dtype))
    shape = tuple(arg.shape)
    if len(shape) != ndim + len(inner) or shape[ndim:] != inner:
        behind = f", then {inner} for the components of {spell(elem)}" if inner else ""
        raise LaunchTypeError(f"{where} must have {ndim} dimensions{behind}, not the shape {shape}")
    return Slot(name, view(elem, ndim), role, shape, dtype), arg


def _wide(wanted: np.dtype, have: Any) -> str:
    if wanted.itemsize == 8 and np.dtype(have).itemsize == 4 and not jax().config.jax_enable_x64:
        return "JAX makes 32-bit arrays unless jax.config.update('jax_enable_x64', True) is called first"
    return f"convert it: x.astype({wanted.name!r})"


def _value(name: str, t: Type | None, arg: Any, where: str) -> tuple[Slot, Any]:
    """Slot and operand of a number, vector or matrix that JAX computes."""
    t = type_of_numpy(arg.dtype) if t is None else t
    if isinstance(t, Struct | Indexed) or t is None:
        raise LaunchTypeError(f"{where}: a {spell(t) if t else arg.dtype} cannot be computed by JAX")
    dtype, inner = scalar_dtype(_scalar(t)), _inner(t)
    if tuple(arg.shape) != inner:
        raise LaunchTypeError(f"{where} must be {spell(t)}, of shape {inner}, not {tuple(arg.shape)}")
    if arg.dtype != dtype:
        if not jax().typeof(arg).weak_type:
            raise LaunchTypeError(f"{where} must be {dtype}, not {arg.dtype}", hint=_wide(dtype, arg.dtype))
        arg = arg.astype(dtype)
    return Slot(name, t, VALUE, inner, dtype), arg


def packed_value(slot: Slot) -> bytes:
    """A known value as kernels read it; empty of others."""
    if slot.role != STATIC and slot.value is None:
        return b""
    packed = bytearray(max(slot.type.size, 8))
    packer(slot.type)(packed, 0, slot.value)
    return bytes(packed)
