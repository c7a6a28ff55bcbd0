"""A field is one row: type, shape by symbol, role, meaning. Allocation, binding to kernels, errors and docs read it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import treadle as wp
from treadle.frontend.names import near
from treadle.mujoco.algebra import COMPONENTS, types
from treadle.mujoco.contents import contents
from treadle.mujoco.planes import LINE, planar


class Field:
    """One row of a table of fields; as a class attribute it is also how an instance's array is reached.

    ``kind`` is ``int`` or a name in `algebra.types`; ``shape`` are symbols (``nworld``, ``nbody``, …) or numbers,
    ``*`` being the axis along which worlds may come to differ; ``role`` is ``constant``, ``state``, ``control``,
    ``derived`` or ``scratch``; ``stage`` is the stage that writes a derived field.
    """

    def __init__(self, role: str, kind: str, shape: str, doc: str, stage: str = ""):
        self.role, self.kind, self.shape, self.doc, self.stage = role, kind, tuple(shape.split()), doc, stage
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Fields | None, owner: type) -> Any:
        return self if instance is None else instance.give(self)

    def __set__(self, instance: Fields, value: Any) -> None:
        instance.assign(self, value)

    def __repr__(self) -> str:
        return f"{self.name}: {self.role} {self.kind} ({', '.join(self.shape)}), {self.doc}"


def constant(kind: str, shape: str, doc: str) -> Any:
    """A number of the model, the same in every world."""
    return Field("constant", kind, shape, doc)


def state(kind: str, shape: str, doc: str) -> Any:
    """What a step reads and writes."""
    return Field("state", kind, shape, doc)


def control(kind: str, shape: str, doc: str) -> Any:
    """What the user sets and a step only reads."""
    return Field("control", kind, shape, doc)


def derived(stage: str, kind: str, shape: str, doc: str) -> Any:
    """What ``stage`` computes from state, control and earlier stages."""
    return Field("derived", kind, shape, doc, stage)


def scratch(kind: str, shape: str, doc: str) -> Any:
    """What stages keep for themselves."""
    return Field("scratch", kind, shape, doc)


FOR_USERS = {"check", "document", "expand"}  # of the methods of tables; others are for those who work on them


@cache
def _rows(table: type) -> tuple[Field, ...]:
    return tuple([row for row in vars(table).values() if isinstance(row, Field)])


def unknown(owner: Any, name: str) -> AttributeError:
    """The error for an attribute ``name`` that ``owner`` does not have, with the names that look like it."""
    hidden = {row.name for row in owner.rows() if row.role == "scratch"}
    ours = {n for n in dir(type(owner)) if callable(getattr(type(owner), n))} - FOR_USERS
    names = [n for n in dir(owner) if not n.startswith("_") and n not in hidden | ours]
    hint = "" if name.startswith("_") else near(name, names)
    return AttributeError(f"{type(owner).__name__} has no {name}" + (f"; {hint}" if hint else ""))


class _Made(type):
    """Marks instances when they are made, all of their classes' part: from then on they take no new attributes."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        made.__dict__["_made"] = True
        return made


class Fields(metaclass=_Made):
    """Arrays by name, as the rows in the class say. An array is made when it is first read.

    An attribute that there is not can be neither read nor set: the error names those that look like it.
    """

    FIXED: tuple[str, ...] = ("real", "sizes")  # attributes that are set once

    def __init__(self, real: Any, sizes: dict[str, int]):
        self.real, self.sizes = real, sizes
        self.version = 0  # counts arrays that took another's place
        self._arrays: dict[str, wp.array] = {}
        self.varied: dict[str, int] = {}  # of fields that differ between worlds: how many worlds they are for

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute that there is, unless it is a size, or holds other tables."""
        held = self.__dict__
        if "_made" in held:
            if name in self.FIXED or name in held["sizes"]:
                raise AttributeError(f"{name} of {type(self).__name__} is fixed when that is made")
            if name not in held and not hasattr(type(self), name):
                raise unknown(self, name)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        there = getattr(type(self), name, None)
        if isinstance(there, property):  # that raised an AttributeError of its own, which is the one to show
            return there.fget(self)
        raise unknown(self, name)

    @classmethod
    def rows(cls) -> tuple[Field, ...]:
        """The rows of the table, in the order in which they stand in the class."""
        return _rows(cls)

    @classmethod
    def document(cls) -> str:
        """The table as text, one row a line."""
        return "\n".join(repr(row) for row in cls.rows())

    def extent(self, row: Field) -> tuple[int, ...]:
        """The shape of a field in this instance."""
        worlds = self.varied.get(row.name, 1)
        return tuple(worlds if s == "*" else int(s) if s.isdigit() else self.sizes[s] for s in row.shape)

    def value_type(self, row: Field) -> Any:
        """The element type of a field in this instance's precision."""
        return wp.int32 if row.kind == "int" else getattr(types(self.real), row.kind)

    def itemsize(self, row: Field) -> int:
        """Bytes of a number of a field."""
        return 8 if row.kind == "double" or (self.real is wp.float64 and row.kind != "int") else 4

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that there are: fields that nobody has needed yet have none."""
        return sum([a.capacity for a in self._arrays.values()])

    def read(self, row: Field) -> wp.array:
        """The array of a field."""
        found = self._arrays.get(row.name)
        if found is None:
            found = self._arrays[row.name] = self.allocate(row)
        return found

    def give(self, row: Field) -> wp.array:
        """The array of a field, for the user, who may write to it."""
        return self.read(row)

    def field(self, name: str) -> wp.array:
        """The array of the field ``name``, to be bound to a kernel."""
        return self.read(getattr(type(self), name))

    def allocate(self, row: Field) -> wp.array:
        """A zeroed array for a field: in planes if it has a world axis, or differs between worlds."""
        shape, dtype = self.extent(row), self.value_type(row)
        if row.shape[0] == "nworld" or row.name in self.varied:
            return planar(shape[0], shape[1:], dtype, COMPONENTS[row.kind], self.itemsize(row))
        if row.shape == ("*",):  # a stride that its type cannot know marks it as common to all worlds (`algebra.row`)
            return _lone(dtype)
        return wp.zeros(shape, dtype=dtype)

    def assign(self, row: Field, value: Any) -> None:
        """Put another array of the same type and shape in a field's place.

        A field of the model (leading axis ``*``) takes an array of one row, for all worlds, or of a row for each world;
        one of NumPy's is copied.
        """
        if isinstance(value, np.ndarray) and row.shape[0] == "*":
            value = self._converted(row, value)
        shape, dtype = self.extent(row), self.value_type(row)
        if not isinstance(value, wp.array):
            ways = f"{row.name}.fill_(…) or {row.name}.assign(…)"
            raise TypeError(f"{row.name} is an array of {dtype.__name__}; to set its values, use {ways}")
        rows = (value.shape[0] if value.ndim and row.shape[0] == "*" else shape[0],)
        if tuple(value.shape) != rows + shape[1:] or value.dtype is not dtype or 0 in rows:
            raise ValueError(
                f"{row.name} has shape {shape} ({', '.join(row.shape)}) and type {dtype.__name__}, "
                f"not {tuple(value.shape)} and {value.dtype.__name__}"
            )
        if row.shape[0] == "*":
            self.vary(row, rows[0])
            value = self._laid_out(row, value)
        self._arrays[row.name] = value
        self.replaced(row, value)

    def _converted(self, row: Field, values: np.ndarray) -> wp.array:
        """An array of ours with the numbers in ``values``."""
        cells = self.read(row).numpy().shape[1:]
        if values.dtype.kind not in "fiu" or values.ndim == 0 or values.shape != (len(values), *cells):
            text = f"takes numbers of shape (1, or worlds{''.join([f', {n}' for n in cells])})"
            raise ValueError(f"{row.name} {text}, not {values.dtype} of shape {values.shape}")
        return wp.array(np.ascontiguousarray(values), dtype=self.value_type(row))

    def vary(self, row: Field, worlds: int) -> None:
        """Note that a field of the model has ``worlds`` rows; 1 if all worlds share it."""
        self.varied.pop(row.name, None)
        if worlds > 1:
            self.varied[row.name] = worlds

    def _laid_out(self, row: Field, value: wp.array) -> wp.array:
        """``value`` if it lies in memory as the field's own array would, else a copy that does."""
        own = self.allocate(row)
        if value.type is own.type:
            return value
        if value.requires_grad:
            raise ValueError(
                f"{row.name} would be copied into another layout and the copy has no gradient: assign an array without "
                f"gradient, then set {row.name}.requires_grad and write to {row.name}"
            )
        own.assign(value)
        return own

    def replaced(self, row: Field, value: wp.array) -> None:
        """Take note that ``value`` has come in the place of another array."""
        self.version += 1

    def fill(self, row: Field, values: np.ndarray) -> None:
        """Set a field from NumPy values of its shape; they are repeated along leading axes that they lack."""
        values = np.asarray(values)
        with contents(self.read(row)) as target:
            inner = target.shape[1:] if row.shape[0] in ("nworld", "*") else target.shape
            target[...] = values.reshape(inner if values.size == int(np.prod(inner)) else target.shape)


def _lone(dtype: Any) -> wp.array:
    """A zeroed array of one element whose stride is not that of dense arrays."""
    memory = wp.zeros(2 * LINE, dtype=wp.uint8)
    return wp.array(
        ptr=memory.ptr + -memory.ptr % LINE,
        dtype=dtype,
        shape=(1,),
        strides=(LINE,),
        capacity=LINE,
        device=memory.device,
        deleter=lambda ptr, capacity, memory=memory: None,  # the array keeps its deleter, and that the memory
    )
