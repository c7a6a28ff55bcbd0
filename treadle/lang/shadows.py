"""Arguments in which some arrays are replaced: by others of the same content, or by their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..runtime.array import array
from ..runtime.indexed import indexedarray
from ..types.core import Indexed, Matrix, Struct, Vector

Shadow = tuple[tuple[int, list[str]], array]  # parameter and fields of an array, and what stands in its place


def with_field(struct: Any, fields: list[str], value: Any) -> Any:
    """A copy of a struct instance with the field that ``fields`` lead to replaced."""
    name, *rest = fields
    if isinstance(struct, indexedarray):
        return struct._with_data(value)
    made = copy_struct(struct)
    setattr(made, name, with_field(getattr(struct, name), rest, value) if rest else value)
    return made


def with_shadows(args: Sequence[Any], shadows: list[Shadow]) -> list[Any]:
    """The arguments of a launch with some arrays replaced."""
    made, own = [*args], set()
    for (k, fields), shadow in shadows:
        if not fields:
            made[k] = shadow
        elif k in own:
            _set_field(made[k], fields, shadow)
        else:
            made[k] = with_field(made[k], fields, shadow)
            own.add(k)
    return made


def _set_field(struct: Any, fields: list[str], value: Any) -> None:
    """Replace the field that ``fields`` lead to, in a struct instance that nobody else has."""
    *way, last = fields
    for name in way:
        inner = getattr(struct, name)
        if isinstance(inner, indexedarray):
            setattr(struct, name, inner._with_data(value))
            return
        struct = inner
    setattr(struct, last, value)


def copy_struct(struct: Any) -> Any:
    """A struct instance with the same values, which its owner cannot change."""
    cls = type(struct)
    made, put = object.__new__(cls), object.__setattr__
    put(made, "_type", struct._type)
    for name, t in cls.__treadle_type__.fields:
        value = getattr(struct, name)
        if isinstance(t, Vector | Matrix):
            value = value.__copy__()
        elif isinstance(t, Struct) and not isinstance(t, Indexed):
            value = copy_struct(value)
        put(made, name, value)
    return made


def gradients_of(struct: Any) -> Any:
    """A struct instance whose arrays are the gradients of those of ``struct``, or None."""
    made = type(struct)()
    for name, t in type(struct).__treadle_type__.fields:
        value = getattr(struct, name)
        if isinstance(value, array):
            setattr(made, name, value.grad)
        elif isinstance(t, Struct) and not isinstance(t, Indexed):
            setattr(made, name, gradients_of(value))
    return made
