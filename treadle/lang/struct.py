"""``@wp.struct``: a class of named fields that kernels take, build and return by value."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from ..base.errors import KernelAttributeError, KernelTypeError, LaunchTypeError, LaunchValueError, TreadleError
from ..base.logs import log_warning
from ..runtime.packing import packer, shown
from ..types.annotations import type_of
from ..types.core import (
    Array,
    Fixed,
    Indexed,
    Matrix,
    Scalar,
    Struct,
    Type,
    Vector,
    View,
    b1,
    bucketed,
    family_of,
    i32,
    indexed,
    view,
)
from ..types.promotion import in_bits
from ..types.spelling import FAMILIES, spell
from ..types.values import class_of, numpy_dtype
from .module import Module, module_of


class StructBase:
    """What the classes made by ``@wp.struct`` have in common. Fields start at zero; arrays start as None."""

    __slots__ = ("_type",)
    __treadle_type__: Struct

    def __init__(self, *args: Any, **kwargs: Any):
        t = type(self).__treadle_type__
        if len(args) > len(t.fields):
            raise TypeError(f"{type(self).__name__} has {len(t.fields)} fields, {len(args)} values were given")
        set_slot = object.__setattr__
        set_slot(self, "_type", t)
        for name, field_type in t.fields:
            set_slot(self, name, zero_of(field_type))
        for (name, _), value in zip(t.fields, args, strict=False):
            setattr(self, name, value)
        for name, value in kwargs.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        t = type(self).__treadle_type__
        index = t.index.get(name)
        if index is None:
            raise KernelAttributeError(
                f"{type(self).__name__} has no field {name!r}", hint=f"it has {', '.join(t.index)}"
            )
        field = t.fields[index][1]
        held = zero_of(field) if value is None else convert(value, field, f"Struct field {name!r}")
        if held is value and isinstance(field, Vector | Matrix | Struct) and not isinstance(field, Indexed):
            held = value.__copy__()  # a field holds a value: what happens to the variable later does not reach it
        object.__setattr__(self, name, held)
        if _holds_views(field):
            object.__setattr__(self, "_type", None)  # the concrete type is found again when next asked for

    def treadle_type(self) -> Struct:
        """The struct type of this very instance: array fields typed by the layout of the arrays they hold now."""
        found = self._type
        if found is None or _nests_views(type(self).__treadle_type__):  # what a struct inside holds may have changed
            found = specialise(self)
            object.__setattr__(self, "_type", found)
        return found

    @classmethod
    def numpy_dtype(cls) -> dict[str, Any]:
        """What describes the layout to NumPy, ``np.zeros(n, dtype=Ball.numpy_dtype())``: names, formats and offsets of
        the fields and the size of all. Arrays stand in it as 8-byte words."""
        made = numpy_dtype(cls.__treadle_type__)
        parts = [made.fields[name] for name in made.names]
        return {"names": [*made.names], "formats": [p[0] for p in parts], "offsets": [p[1] for p in parts],
                "itemsize": made.itemsize}  # fmt: skip

    def numpy_value(self) -> np.void:
        """The fields as one element of a NumPy array of :meth:`numpy_dtype`."""
        t = type(self).__treadle_type__
        row = np.zeros(1, numpy_dtype(t))
        packer(t)(memoryview(row.view(np.uint8)), 0, self)
        return row[0]

    def assign(self, other: StructBase) -> None:
        """Set every field to that of ``other``, which is of the same struct; structs in it are copied."""
        if type(other) is not type(self):
            raise LaunchTypeError(f"a {type(self).__name__} cannot be assigned a {type(other).__name__}")
        for name in type(self).__treadle_type__.index:
            setattr(self, name, getattr(other, name))

    def __copy__(self) -> StructBase:
        made = type(self)()
        made.assign(self)
        return made

    def to(self, device: Any) -> StructBase:
        """A copy whose arrays lie on ``device``: the same arrays where they lie there already."""
        made = type(self)()
        for name, t in type(self).__treadle_type__.fields:
            value = getattr(self, name)
            moved = value is not None and isinstance(t, View | Struct)
            setattr(made, name, value.to(device) if moved else value)
        return made

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__treadle_type__.index)
        return f"{type(self).__name__}({shown})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = type(self).__treadle_type__.index
        return all(_same(getattr(self, n), getattr(other, n)) for n in names)

    __hash__ = object.__hash__


def _same(a: Any, b: Any) -> bool:
    return a is b or bool(np.all(np.asarray(a) == np.asarray(b))) if not isinstance(a, StructBase) else a == b


def zero_of(t: Type) -> Any:
    """The value a field of type ``t`` starts with: of its class, so that Python computes with it as kernels do."""
    if isinstance(t, Scalar):
        return class_of(t)(0)
    if isinstance(t, View | Indexed):
        return None
    if isinstance(t, Fixed):
        raise KernelTypeError("a struct field cannot be a fixed array; use a vector or an array")
    return class_of(t)()


def convert(value: Any, t: Type, what: str, place: str = "") -> Any:
    """``value`` as a field of type ``t`` holds it; raises LaunchTypeError naming ``what`` where it does not fit.
    ``place`` is ``what`` in other words, inside a sentence."""
    if isinstance(t, Scalar):
        if type(value) is class_of(t):
            return value
        number = getattr(value, "value", value)
        if not isinstance(number, int | float | np.number | np.bool_):
            raise LaunchTypeError(f"{what} must be {_word(t)}, not {type(value).__name__}")
        if t.kind == "b":
            return bool(number)
        return _float(number, t, what) if t.is_float else _whole(number, t, what)
    if isinstance(t, View | Indexed):
        if value is None:
            return None
        have = None if isinstance(value, type) else getattr(value, "type", None)
        if not isinstance(have, View | Indexed) or family_of(have) != family_of(t):
            raise LaunchTypeError(f"{what} expects a Warp {FAMILIES[family_of(t)]}, got {type(value).__name__}")
        if not fits(have.elem, t.elem):
            raise LaunchTypeError(f"{what} expects dtype {spell(t.elem)}, got {spell(have.elem)}")
        if not fits(have, t):
            raise LaunchTypeError(f"{what} expects an array with {t.ndim} dimension(s), got {have.ndim} dimension(s)")
        return value
    cls = class_of(t)
    if isinstance(value, cls):
        return value
    if isinstance(t, Struct):
        raise LaunchTypeError(f"{what} must be a {cls.__name__}, not {type(value).__name__}")
    if isinstance(value, bool | np.bool_ | np.number) or type(value) is class_of(b1):
        log_warning(
            f"A value of type `{type(value).__name__}` for each component of a `{cls.__name__}`, as for "
            f"{place or what[0].lower() + what[1:]}, is deprecated: write the components", DeprecationWarning, 4,
        )  # fmt: skip
        return cls(*[float(value)] * t.n)
    if not hasattr(value, "__len__"):
        if value is None:
            raise LaunchValueError(f"{what} expects {cls.__name__} but got None")
        raise LaunchTypeError(f"{what} expects {cls.__name__} but got a single value, {value!r}")
    try:
        return cls(*value) if isinstance(t, Vector) else cls(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise LaunchTypeError(f"{what} must be {cls.__name__}: {error}") from None


def _float(number: Any, t: Scalar, what: str) -> float:
    try:
        return float(number)
    except OverflowError:
        raise LaunchTypeError(f"{what} must be {_word(t)}; {shown(number)} is too large") from None


def _whole(number: Any, t: Scalar, what: str) -> int:
    if isinstance(number, float | np.floating) and not float(number).is_integer():
        raise LaunchTypeError(f"{what} must be {_word(t)}; {number!r} is not a whole number")
    found = int(number)
    if in_bits(found, t) is None:
        raise LaunchTypeError(f"{what}: {shown(found)} does not fit {_word(t)}")
    return found


def _word(t: Scalar) -> str:
    return {"b": "bool", "i": f"int{t.bits}", "u": f"uint{t.bits}", "f": f"float{t.bits}"}[t.kind]


def fits(have: Type, want: Type) -> bool:
    """Whether a value of type ``have`` can stand where ``want`` is declared: equal but for the layout of its arrays."""
    if have is want:
        return True
    if isinstance(have, View) and isinstance(want, View):
        return fits(have.elem, want.elem) and have.ndim == want.ndim
    if isinstance(have, View | Indexed) and isinstance(want, Array | Indexed):
        same = (want.elem is None or fits(have.elem, want.elem)) and have.ndim == want.ndim
        return same and family_of(have) == want.family
    if isinstance(have, View) and isinstance(want, Fixed):
        return have.space == "local" and fits(have.elem, want.elem) and have.ndim == len(want.shape)
    return isinstance(have, Struct) and isinstance(want, Struct) and have.key == want.key


def general_view(t: Type) -> Type:
    """The type of a field as memory holds it: an array whose strides are known only at run time."""
    if isinstance(t, Array):
        if t.elem is None:
            raise KernelTypeError("an array field of a struct needs a dtype")
        if "fabric" in t.family:
            return bucketed(t.elem, t.ndim, t.family != "fabricarray")
        data = view(t.elem, t.ndim, (None,) * t.ndim)
        return indexed(data, (view(i32, 1, (None,)),) * t.ndim) if t.family == "indexedarray" else data
    return t


def _holds_views(t: Type) -> bool:
    return isinstance(t, View) or (isinstance(t, Struct) and any(_holds_views(ft) for _, ft in t.fields))


@cache
def _nests_views(t: Struct) -> bool:
    """Whether structs in ``t`` hold arrays."""
    return any(isinstance(ft, Struct) and _holds_views(ft) for _, ft in t.fields)


_SPECIAL: dict[tuple[str, tuple[Type, ...]], Struct] = {}


def specialise(instance: StructBase) -> Struct:
    """The declared struct type with each array field's view type replaced by that of the array in it."""
    declared = type(instance).__treadle_type__
    found = []
    for name, t in declared.fields:
        value = getattr(instance, name)
        if isinstance(t, View | Indexed):
            found.append(t if value is None else value.type)
        elif isinstance(t, Struct):
            found.append(value.treadle_type())
        else:
            found.append(t)
    if all(a is b for a, (_, b) in zip(found, declared.fields, strict=True)):
        return declared
    key = (declared.key, tuple(found))
    special = _SPECIAL.get(key)
    if special is None:
        fields = tuple((name, t) for (name, _), t in zip(declared.fields, found, strict=True))
        special = _SPECIAL[key] = Struct(declared.key, fields)
        special_class(special, type(instance))
    return special


def special_class(t: Struct, cls: type) -> None:
    """Remember that host values of ``t`` are instances of ``cls``."""
    from ..types.values import register_class

    register_class(t, cls)


def struct(c: type | None = None, *, module: Module | str | None = None) -> Any:
    """Make a struct of the annotated fields of class ``c``.

    Fields may be scalars, vectors, matrices, quaternions, transforms, other structs and arrays. An instance starts at
    zero; fields are set by attribute or by constructor argument.

    Raises:
        KernelTypeError: a field without a type, or of a type that structs cannot hold.

    >>> import treadle as wp
    >>> @wp.struct
    ... class Ball:
    ...     centre: wp.vec3
    ...     radius: float
    >>> ball = Ball()
    >>> ball.radius = 2.0
    >>> ball.radius
    2.0
    """
    if c is None:
        return lambda cls: _declare(cls, module, sys._getframe(1))
    return _declare(c, module, sys._getframe(1))


_TAKEN = frozenset({"_type", "treadle_type", "numpy_dtype", "numpy_value"})


def _declare(c: type, module: Module | str | None, frame: Any) -> type:
    parents = [b.__name__ for b in c.__mro__[1:] if issubclass(b, StructBase)]
    if parents:
        instead = f"give it a field of type {parents[0]} instead"
        raise KernelTypeError(f"struct {c.__name__}: {instead}. Warp structs must be defined as base classes")
    annotations = c.__dict__.get("__annotations__") or getattr(c, "__annotations__", {})
    namespace = {**frame.f_globals, **frame.f_locals, **vars(sys.modules.get(c.__module__, c))}
    namespace.update(frame.f_locals)
    fields = []
    for name, annotation in annotations.items():
        what = f"field {name!r} of struct {c.__name__}"
        if name in _TAKEN or name.startswith("__"):
            raise KernelTypeError(f"{what}: structs have an attribute of that name", hint="choose another name")
        try:
            t = general_view(type_of(annotation, namespace))
        except TreadleError as error:
            raise type(error)(f"{what}: {error.message}", error.span, error.hint) from None
        if not isinstance(t, Scalar | Vector | Matrix | Struct | View):
            raise KernelTypeError(f"{what} cannot be of type {'Any' if t is None else spell(t)}")
        fields.append((name, t))
    home = module_of(c, module)
    name = f"{home.name}.{c.__qualname__}"
    home.declared[name] += 1
    key = name if home.declared[name] == 1 else f"{name}#{home.declared[name] - 1}"
    t = Struct(key, tuple(fields))
    methods = {n: v for n, v in vars(c).items() if n not in ("__dict__", "__weakref__", "__annotations__", *t.index)}
    cls = type(
        c.__name__,
        (StructBase,),
        {**methods, "__slots__": tuple(t.index), "__treadle_type__": t, "__annotations__": dict(annotations)},
    )
    for word, value in (("key", key), ("cls", cls)):  # as in the field, unless the user's fields are called so
        if word not in t.index:
            setattr(cls, word, value)
    home.structs[name] = cls
    special_class(t, cls)
    return cls
