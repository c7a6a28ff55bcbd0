"""Vectors, quaternions, transforms and matrices as Python objects, and the one class that each type has."""

from __future__ import annotations

import ctypes
import operator
import types
import typing
from array import array
from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Any

import numpy as np

from ..base.errors import KernelTypeError
from . import core
from .core import SCALARS, Matrix, Scalar, Struct, Type, Vector, b1, bf16, f32, i32
from .numbers import bf16_bits, bf16_values, code, quotient, remainder, rounder
from .numpy_types import number_dtype, numpy_dtype
from .products import product
from .scalar_values import number_in, scalar_class, shown
from .spelling import literal_size, spell


class CompositeValue:
    """What vectors, quaternions, transforms and matrices have in common: components in a buffer.

    A value can be changed in place. It is equal to any other of the same shape, and to sequences, with equal numbers,
    and hashes as the tuple of its numbers does.
    """

    __slots__ = ("_data",)
    __treadle_open__ = True  # a class that is not of one type stands for all of them in annotations
    __treadle_type__: Vector | Matrix
    _code: str
    _round: Callable[[Any], Any]
    _plain: bool  # whether components show as the numbers in the buffer
    _shape_: tuple[int, ...]
    dtype: type

    @classmethod
    def _of(cls, numbers: Any) -> Any:
        """An instance with these components, rounded."""
        return cls._over(cls._pack(numbers))

    @classmethod
    def _over(cls, data: array) -> Any:
        """An instance with ``data`` as its buffer."""
        made = object.__new__(cls)
        give_buffer(made, data)
        return made

    @classmethod
    def from_ptr(cls, ptr: int) -> Any:
        """A copy of the value that lies at address ``ptr`` in memory."""
        if not ptr:
            raise RuntimeError("NULL pointer exception: no value lies at address 0")
        t = cls.__treadle_type__
        raw = np.frombuffer(ctypes.string_at(ptr, t.size), numpy_dtype(t.elem))
        return cls._of((bf16_values(raw) if t.elem is bf16 else raw).tolist())

    @classmethod
    def _pack(cls, numbers: Any) -> array:
        """Numbers as components: rounded to the scalar type, integers wrapped.

        Raises:
            TypeError: one that is none, or not a whole one where components are.
        """
        elem = cls.__treadle_type__.elem
        try:
            if elem.is_int:
                return array(cls._code, [cls._round(operator.index(x)) for x in numbers])
            if elem is b1:
                return array(cls._code, map(cls._round, numbers))
            return array(cls._code, map(cls._round, array("d", numbers)) if elem.bits == 16 else numbers)
        except TypeError:
            wrong = next(x for x in numbers if not _fits(x, elem))
            raise TypeError(f"components of {cls.__name__} are {spell(elem)}, not {wrong!r}") from None

    def _shown(self, number: Any) -> Any:
        """A component as users see it."""
        return number if self._plain else shown(self.__treadle_type__.elem, number)

    def __reduce__(self):
        numbers = tuple(self._data)
        if type(self) is not class_of(self.__treadle_type__):  # a derived class, which has a place of its own
            return _derived, (type(self), numbers)
        return _restored, (*_recipe(self.__treadle_type__), numbers)

    def __copy__(self) -> Any:
        return self._over(self._data[:])

    def __deepcopy__(self, memo: dict) -> Any:
        return self._over(self._data[:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        t = self.__treadle_type__
        shape = (t.rows, t.cols) if isinstance(t, Matrix) else (t.n,)
        return np.array(self._data, dtype or number_dtype(t.elem)).reshape(shape)

    def __bytes__(self) -> bytes:
        """The value as it lies in memory."""
        elem = self.__treadle_type__.elem
        return (bf16_bits(self._data) if elem is bf16 else np.array(self._data, numpy_dtype(elem))).tobytes()

    def __eq__(self, other: object) -> Any:
        if isinstance(other, CompositeValue):
            return self._shape_ == other._shape_ and self._data == other._data
        if isinstance(other, tuple | list | np.ndarray):
            return len(other) == len(self) and all(bool(a == b) for a, b in zip(self, other))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._data))

    def __neg__(self) -> Any:
        return type(self)._of([-x for x in self._data])

    def __pos__(self) -> Any:
        return self._over(self._data[:])

    def __add__(self, other: Any) -> Any:
        return _by_component("add", self, other, operator.add)

    def __sub__(self, other: Any) -> Any:
        return _by_component("sub", self, other, operator.sub)

    def __radd__(self, other: Any) -> Any:
        return _by_component("add", self, other, operator.add)

    def __rsub__(self, other: Any) -> Any:
        return _by_component("sub", self, other, lambda a, b: b - a)

    def __mod__(self, other: Any) -> Any:
        return _by_component("mod", self, other, remainder(self.__treadle_type__.elem))

    def __mul__(self, other: Any) -> Any:
        s = self._factor(other)
        return type(self)._of([x * s for x in self._data]) if s is not None else self.__matmul__(other)

    def __rmul__(self, other: Any) -> Any:
        s = self._factor(other)
        return NotImplemented if s is None else type(self)._of([s * x for x in self._data])

    def __matmul__(self, other: Any) -> Any:
        s, t = self.__treadle_type__, getattr(other, "__treadle_type__", None)
        if not isinstance(other, CompositeValue):
            return NotImplemented
        made = product(s, self._data, t, other._data, self._round) if s.elem is t.elem else None
        if made is None:
            raise _no_function("mul", self, other)
        return class_of(made[0])._of(made[1])

    def __truediv__(self, other: Any) -> Any:
        s = self._factor(other)
        if s is None:
            return NotImplemented
        divide = quotient(self.__treadle_type__.elem)
        return type(self)._of([divide(x, s) for x in self._data])

    def __rtruediv__(self, other: Any) -> Any:
        s = self._factor(other)
        if s is None:
            return NotImplemented
        divide = quotient(self.__treadle_type__.elem)
        return type(self)._of([divide(s, x) for x in self._data])

    def _factor(self, other: Any) -> Any:
        """The number ``other`` rounded as components are, so that it multiplies and divides them; or None."""
        s = number_in(other, self.__treadle_type__.elem)
        return None if s is None else self._pack([s])[0]


def _by_component(name: str, a: CompositeValue, b: Any, function: Callable) -> Any:
    """``function`` of each pair of components, of two values of one type (or a sequence of as many numbers)."""
    if isinstance(b, tuple | list | np.ndarray):
        b = type(a)(b)
    if not isinstance(b, CompositeValue):
        return NotImplemented
    if b.__treadle_type__ is not a.__treadle_type__:
        raise _no_function(name, a, b)
    return type(a)._of([function(x, y) for x, y in zip(a._data, b._data)])


def _no_function(name: str, a: CompositeValue, b: CompositeValue) -> KernelTypeError:
    """Neither value knows what ``name`` of both would be."""
    types = f"{spell(a.__treadle_type__)}, {spell(b.__treadle_type__)}"
    return KernelTypeError(f"{name!r} has no meaning for the arguments '{types}'")


give_buffer = CompositeValue._data.__set__  # gives a value its buffer, whatever its class does to attributes


class VectorValue(CompositeValue):
    """A vector: made from its components, one scalar for all, a sequence, or nothing (zero).

    Its class can also be spelt as annotations are, ``VectorValue[float, 3]``.
    """

    __slots__ = ()

    def __class_getitem__(cls, item: Any) -> Any:
        return _spelt(cls, item, lambda elem, n: core.vector(n, elem), 1)

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator:
        return iter(self._data) if self._plain else map(self._shown, self._data)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            part = self._data[i]
            return vector_class(len(part), self.__treadle_type__.elem)._over(part)
        try:
            return self._shown(self._data[i])
        except TypeError:
            raise _no_index(self, i) from None
        except IndexError:
            raise _outside(self, i) from None

    def __setitem__(self, i: Any, value: Any) -> None:
        if isinstance(i, slice):
            where = range(*i.indices(len(self._data)))
            for k, number in zip(where, self._pack(_flat(value, (len(where),), "the slice"))):
                self._data[k] = number
            return
        try:
            self._data[operator.index(i)]
        except TypeError:
            raise _no_index(self, i) from None
        except IndexError:
            raise _outside(self, i) from None
        self._data[operator.index(i)] = self._pack([value])[0]

    def __setattr__(self, name: str, value: Any) -> None:
        # Programs may give values attributes of their own; those that read as components would change nothing.
        if len(name) > 1 and not name.strip("xyzw"):
            raise AttributeError(f"components are set one by one: {type(self).__name__} has no attribute {name!r}")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self))}]"


def _fits(x: Any, elem: Scalar) -> bool:
    """Whether ``x`` is a number that a component of type ``elem`` can be made of."""
    try:
        operator.index(x) if elem.is_int else array("d", (x,))
    except TypeError:
        return False
    return True


def _no_index(value: CompositeValue, key: Any) -> KeyError:
    expected = "int or pair of ints" if isinstance(value, MatrixValue) else "int or slice"
    return KeyError(f"Invalid key {key!r}, expected {expected}, for components of {type(value).__name__}")


def _outside(value: VectorValue, i: int) -> IndexError:
    return IndexError(f"index {i} is out of range for the {len(value)} components of {type(value).__name__}")


def _flat(value: Any, shape: tuple[int, ...], name: str) -> list:
    """The numbers that ``value`` gives to what has ``shape``: one for all, or nested sequences, or all in a row.

    Raises:
        ValueError: not as many as ``name`` has.
        TypeError: neither a number nor a sequence.
    """
    count = prod(shape)
    number = number_in(value)
    if number is not None:
        return [number] * count
    if not isinstance(value, Iterable):
        raise TypeError(f"{name} takes {count} numbers, not {value!r}")
    items = value._data if isinstance(value, CompositeValue) else list(value)
    if len(shape) == 2 and len(items) == shape[0] and all(number_in(x) is None for x in items):
        return [x for row in items for x in _flat(row, shape[1:], f"a row of {name}")]
    if len(items) != count:
        raise ValueError(f"{name} takes {count} numbers, not {len(items)}")
    return list(items)


def _components(cls: type, args: tuple) -> list:
    """The components that a constructor's arguments mean, as Python numbers."""
    t = cls.__treadle_type__
    if not args:
        return [0] * t.n
    if len(args) == 1:
        only = args[0]
        number = number_in(only)
        if number is not None:
            return [number] * t.n
        if isinstance(only, str | bytes):
            raise TypeError(f"{cls.__name__} is made of numbers, not of {only!r}")
        args = tuple(only)
    flat: list = []
    for x in args:
        number = number_in(x)
        if number is not None:
            flat.append(number)
        elif isinstance(x, CompositeValue):
            flat.extend(x._data)
        else:
            flat.extend(np.asarray(x).ravel().tolist())
    if len(flat) != t.n:
        raise ValueError(f"{cls.__name__} takes {t.n} numbers, not {len(flat)}")
    return flat


def _vector_init(t: Vector) -> Callable:
    """The constructor of vectors of type ``t``; as many numbers as components take the short way."""
    n, letter = t.n, code(t.elem)
    exact = t.elem is not b1 and not (t.elem.is_float and t.elem.bits == 16)  # the buffer itself rounds or checks

    def __init__(self: VectorValue, *args: Any) -> None:
        given = args[0] if len(args) == 1 and args[0].__class__ in (tuple, list) else args
        if exact and len(given) == n:
            try:
                give_buffer(self, array(letter, given))
                return
            except (TypeError, OverflowError):  # not all are numbers, or an integer wraps around
                pass
        cls = type(self)
        give_buffer(self, cls._pack(_components(cls, args)))

    return __init__


class QuaternionValue(VectorValue):
    """A quaternion (x, y, z, w)."""

    __slots__ = ()

    def __class_getitem__(cls, item: Any) -> Any:
        return _spelt(cls, item, core.quaternion, 0)


class TransformValue(VectorValue):
    """A rigid transform: ``p``, a translation, then ``q``, a rotation. Without arguments it moves nothing; one number
    is given to all seven components."""

    __slots__ = ()

    def __class_getitem__(cls, item: Any) -> Any:
        return _spelt(cls, item, core.transformation, 0)

    def __init__(self, *args: Any, p: Any = None, q: Any = None, **others: Any):
        cls = type(self)
        if others:
            raise TypeError(f"got an unexpected keyword argument {next(iter(others))!r}")
        whole = len(args) == 7 or (len(args) == 1 and (number_in(args[0]) is not None or _size(args[0], "p") == 7))
        if args and (p is not None or (q is not None and (whole or len(args) > 1))):
            raise TypeError(f"argument {'q' if p is None else 'p'!r} of {cls.__name__} is given twice")
        if whole:
            give_buffer(self, cls._pack(_components(cls, args)))
            return
        if len(args) > 2:
            raise ValueError(f"{cls.__name__} takes a translation and a rotation, or 7 numbers, not {len(args)}")
        p = args[0] if args else (0.0, 0.0, 0.0) if p is None else p
        q = args[1] if len(args) == 2 else (0.0, 0.0, 0.0, 1.0) if q is None else q
        for name, part, size in (("p", p, 3), ("q", q, 4)):
            if _size(part, name) != size:
                raise ValueError(f"argument {name!r} of {cls.__name__} has {size} components, not {len(part)}")
        give_buffer(self, cls._pack(_components(cls, (*p, *q))))

    @property
    def p(self) -> Any:
        """The translation, as a copy."""
        return vector_class(3, self.__treadle_type__.elem)._over(self._data[:3])

    @p.setter
    def p(self, value: Any) -> None:
        self[0:3] = value

    @property
    def q(self) -> Any:
        """The rotation, as a copy."""
        return quaternion_class(self.__treadle_type__.elem)._over(self._data[3:])

    @q.setter
    def q(self, value: Any) -> None:
        self[3:7] = value


def _size(part: Any, name: str) -> int:
    """How many components the argument ``name`` of a transform has."""
    if not hasattr(part, "__len__"):
        raise TypeError(f"argument {name!r} of a transform is a sequence of numbers, not {type(part).__name__}")
    return len(part)


class MatrixValue(CompositeValue):
    """A matrix: made from its scalars row by row, from rows, from one scalar for all, a nested sequence, or nothing.

    Its class can also be spelt as annotations are, ``MatrixValue[float, 3, 3]``.
    """

    __slots__ = ()

    def __class_getitem__(cls, item: Any) -> Any:
        return _spelt(cls, item, lambda elem, rows, cols: core.matrix(rows, cols, elem), 2)

    def __init__(self, *args: Any):
        given = args[0] if len(args) == 1 else args if args else 0
        give_buffer(self, self._pack(_flat(given, self._shape_, type(self).__name__)))

    def __len__(self) -> int:
        return self.__treadle_type__.rows

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def __hash__(self) -> int:
        return hash(tuple(map(tuple, self._rows())))

    def _where(self, key: Any) -> tuple[int | range, int | range]:
        """The rows and the columns that an index means, a range where it is a slice."""
        t = self.__treadle_type__
        if not isinstance(key, tuple):
            return self._along(key, t.rows, "row"), range(t.cols)
        if len(key) != 2:
            raise KeyError(f"Invalid key, expected one or two indices, got {len(key)}: a matrix has rows and columns")
        return self._along(key[0], t.rows, "row"), self._along(key[1], t.cols, "column")

    def _along(self, key: Any, n: int, line: str) -> int | range:
        if key.__class__ is int:
            i = key
        elif isinstance(key, slice):
            return range(*key.indices(n))
        else:
            try:
                i = operator.index(key)
            except TypeError:
                raise _no_index(self, key) from None
        if not -n <= i < n:
            raise IndexError(f"{i} for the {n} {line}s of {type(self).__name__}: Invalid {line} index")
        return i % n

    def _places(self, row: int | range, column: int | range) -> list[int]:
        """Where the components of rows and columns lie in the buffer."""
        rows, columns = ((x,) if isinstance(x, int) else x for x in (row, column))
        return [i * self.__treadle_type__.cols + j for i in rows for j in columns]

    def __getitem__(self, key: Any) -> Any:
        row, column = self._where(key)
        t = self.__treadle_type__
        if isinstance(row, int) and isinstance(column, int):
            return self._shown(self._data[row * t.cols + column])
        if key.__class__ is int:  # a whole row
            return vector_class(t.cols, t.elem)._over(self._data[row * t.cols : (row + 1) * t.cols])
        numbers = array(self._code, [self._data[k] for k in self._places(row, column)])
        if isinstance(row, int) or isinstance(column, int):
            return vector_class(len(numbers), t.elem)._over(numbers)
        shape = (len(row), len(column)) if numbers else (0, 0)  # as in kernels
        return matrix_class(*shape, t.elem)._over(numbers)

    def __setitem__(self, key: Any, value: Any) -> None:
        row, column = self._where(key)
        shape = tuple([len(x) for x in (row, column) if isinstance(x, range)])
        numbers = _flat(value, shape, "the part") if shape else [value]
        for k, number in zip(self._places(row, column), self._pack(numbers)):
            self._data[k] = number

    def get_row(self, i: int) -> Any:
        """Row ``i`` as a vector."""
        return self[i]

    def get_col(self, j: int) -> Any:
        """Column ``j`` as a vector."""
        return self[:, j]

    def set_row(self, i: int, value: Any) -> None:
        """Replace row ``i``."""
        self[i] = value

    def set_col(self, j: int, value: Any) -> None:
        """Replace column ``j``."""
        self[:, j] = value

    def _rows(self) -> list[list]:
        """The numbers, without their type, row by row."""
        t = self.__treadle_type__
        numbers = [bool(x) for x in self._data] if t.elem is b1 else self._data.tolist()
        return [numbers[i * t.cols : (i + 1) * t.cols] for i in range(t.rows)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._rows()})"

    def __str__(self) -> str:
        return "[" + ",\n ".join(f"[{', '.join(map(str, row))}]" for row in self._rows()) + "]"


def _component(i: int, n: int) -> property:
    """The property for component ``i`` of values that have ``n``; it refuses where there is none."""

    def get(self: VectorValue) -> Any:
        if i >= n:
            raise AttributeError(f"{type(self).__name__} has no attribute {'xyzw'[i]!r}")
        return self._shown(self._data[i])

    def put(self: VectorValue, value: Any) -> None:
        if i >= n:
            raise AttributeError(f"{type(self).__name__} has no attribute {'xyzw'[i]!r}")
        self._data[i] = self._pack([value])[0]

    return property(get, put, doc=f"Component {i}.")


def _spelt(cls: type, item: Any, make: Callable[..., Type], count: int) -> Any:
    """The class that ``cls[dtype, sizes…]`` spells, with ``count`` sizes as ints or ``Literal[3]``."""
    from .annotations import type_of

    dtype, *sizes = item if isinstance(item, tuple) else (item,)
    if cls not in _GENERAL:
        raise TypeError(f"{cls.__name__} has its scalar type and its size")
    if len(sizes) != count:
        raise TypeError(f"{cls.__name__}[…] requires {count + 1} parameters: a scalar type and {count} sizes")
    if any(isinstance(x, typing.TypeVar) or x is Any for x in (dtype, *sizes)):
        return types.GenericAlias(cls, item)
    elem = type_of(dtype)
    if not isinstance(elem, Scalar):
        raise TypeError(f"components are scalars, not {dtype!r}")
    return class_of(make(elem, *map(literal_size, sizes)))


# -- the classes -------------------------------------------------------------------------------------------------------

_CLASSES: dict[Type, type] = {}
_GENERAL = (VectorValue, QuaternionValue, TransformValue, MatrixValue)
_BASES = {"vec": VectorValue, "quat": QuaternionValue, "transform": TransformValue}


def class_of(t: Type) -> type:
    """The host class of values of type ``t``: scalars, vectors, quaternions, transforms, matrices and known structs.

    Raises:
        TypeError: values of ``t`` have no host class.
    """
    found = _CLASSES.get(t)
    if found is None:
        if not isinstance(t, Scalar | Vector | Matrix):
            raise TypeError(f"values of type {spell(t)} have no host class")
        found = _CLASSES[t] = scalar_class(t) if isinstance(t, Scalar) else _composite_class(t)
    return found


def register_class(t: Struct, c: type) -> None:
    """Remember that host values of struct type ``t`` are instances of ``c``."""
    _CLASSES[t] = c


def _composite_class(t: Vector | Matrix) -> type:
    """The class of values of ``t``. It has no slots: programs may give values attributes of their own."""
    scalar = class_of(t.elem)
    members: dict[str, Any] = {
        "__treadle_type__": t, "__treadle_open__": False, "_plain": t.elem is f32 or t.elem is i32,
        "_code": code(t.elem), "_round": staticmethod(rounder(t.elem)), "__module__": "treadle",
        "dtype": scalar, "_wp_scalar_type_": scalar, "_length_": t.n, "_type_": scalar._type_,
    }  # fmt: skip
    if isinstance(t, Matrix):
        members["_shape_"] = (t.rows, t.cols)
        base: type = MatrixValue
    else:
        members["_shape_"] = (t.n,)
        base = _BASES[t.tag]
        if t.tag != "transform":
            members["__init__"] = _vector_init(t)
            members.update((name, _component(i, t.n)) for i, name in enumerate("xyzw"))
    members["_wp_generic_type_hint_"] = base
    members["_wp_generic_type_str_"] = f"{'mat' if isinstance(t, Matrix) else t.tag}_t"
    members["_wp_type_params_"] = (*members["_shape_"], scalar)
    return type(spell(t), (base,), members)


def vector_class(n: int, scalar: Scalar) -> type:
    """The class of ``n``-vectors of ``scalar``."""
    return class_of(core.vector(n, scalar))


def matrix_class(rows: int, cols: int, scalar: Scalar) -> type:
    """The class of ``rows`` × ``cols`` matrices of ``scalar``."""
    return class_of(core.matrix(rows, cols, scalar))


def quaternion_class(scalar: Scalar) -> type:
    """The class of quaternions of ``scalar``."""
    return class_of(core.quaternion(scalar))


def transformation_class(scalar: Scalar) -> type:
    """The class of rigid transforms of ``scalar``."""
    return class_of(core.transformation(scalar))


# -- pickling ----------------------------------------------------------------------------------------------------------


def _recipe(t: Vector | Matrix) -> tuple:
    """What finds ``t`` again in another process."""
    return ("matrix", (t.rows, t.cols), t.elem.name) if isinstance(t, Matrix) else (t.tag, (t.n,), t.elem.name)


def _restored(kind: str, shape: tuple[int, ...], scalar_name: str, numbers: tuple) -> Any:
    """The value that was pickled."""
    scalar = next(t for t in SCALARS if t.name == scalar_name)
    if kind in ("quat", "transform"):
        t = core.quaternion(scalar) if kind == "quat" else core.transformation(scalar)
    else:
        t = core.matrix(*shape, scalar) if kind == "matrix" else core.vector(*shape, scalar)
    return class_of(t)._of(numbers)


def _derived(c: type, numbers: tuple) -> Any:
    """The value of a class that a program derived."""
    return c._of(numbers)
