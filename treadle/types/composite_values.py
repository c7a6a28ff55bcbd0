"""Vectors, quaternions, transforms and matrices as Python objects, and the one class that each type has."""

from __future__ import annotations

import ctypes
import operator
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import core
from .core import SCALARS, Matrix, Scalar, Struct, Type, Vector, b1, bf16
from .numbers import code, quotient, remainder, rounder
from .numpy_types import numpy_dtype
from .scalar_values import number_in, scalar_class
from .spelling import spell


class CompositeValue:
    """What vectors, quaternions, transforms and matrices have in common: components in a buffer."""

    __slots__ = ("_data",)
    __treadle_type__: Vector | Matrix
    _code: str
    _round: Callable[[Any], Any]
    dtype: type

    @classmethod
    def _of(cls, numbers: list) -> Any:
        """An instance with these components, rounded."""
        made = object.__new__(cls)
        made._data = cls._pack(numbers)
        return made

    @classmethod
    def from_ptr(cls, ptr: int) -> Any:
        """A copy of the value that lies at address ``ptr`` in memory."""
        if not ptr:
            raise RuntimeError("there is no value at address 0")
        t = cls.__treadle_type__
        raw = ctypes.string_at(ptr, t.size)
        if t.elem is bf16:
            raw = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
            return cls._of(raw.tolist())
        return cls._of(np.frombuffer(raw, numpy_dtype(t.elem)).tolist())

    @classmethod
    def _pack(cls, numbers: Any) -> array:
        """Numbers as components: rounded to the scalar type, integers wrapped."""
        if cls._code not in "fd" or cls.__treadle_type__.elem.bits == 16:
            if cls.__treadle_type__.elem.is_int:
                numbers = [operator.index(x) for x in numbers]
            numbers = map(cls._round, numbers)
        return array(cls._code, numbers)

    def __reduce__(self):
        return _restored, (*_recipe(type(self).__treadle_type__), tuple(self._data))

    def __copy__(self) -> Any:
        return type(self)._of(self._data)

    def __deepcopy__(self, memo: dict) -> Any:
        return type(self)._of(self._data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        t = type(self).__treadle_type__
        shape = (t.rows, t.cols) if isinstance(t, Matrix) else (t.n,)
        return np.array(self._data, dtype or numpy_dtype(t.elem)).reshape(shape)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, CompositeValue):
            return type(other) is type(self) and self._data == other._data
        if isinstance(other, tuple | list | np.ndarray):
            return bool(np.shape(other) == np.shape(self) and np.all(np.asarray(other) == np.asarray(self)))
        return NotImplemented

    def __hash__(self) -> int:
        return hash((type(self).__treadle_type__.name, tuple(self._data)))

    def __neg__(self) -> Any:
        return type(self)._of([-x for x in self._data])

    def __pos__(self) -> Any:
        return type(self)._of(self._data)

    def __add__(self, other: Any) -> Any:
        return _by_component(self, other, operator.add)

    def __sub__(self, other: Any) -> Any:
        return _by_component(self, other, operator.sub)

    def __radd__(self, other: Any) -> Any:
        return _by_component(self, other, operator.add)

    def __rsub__(self, other: Any) -> Any:
        return _by_component(self, other, lambda a, b: b - a)

    def __mod__(self, other: Any) -> Any:
        return _by_component(self, other, remainder(type(self).__treadle_type__.elem))

    def __mul__(self, other: Any) -> Any:
        s = number_in(other)
        return type(self)._of([x * s for x in self._data]) if s is not None else _product(self, other)

    def __rmul__(self, other: Any) -> Any:
        s = number_in(other)
        return NotImplemented if s is None else type(self)._of([s * x for x in self._data])

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __truediv__(self, other: Any) -> Any:
        s = number_in(other)
        if s is None:
            return NotImplemented
        divide = quotient(type(self).__treadle_type__.elem)
        return type(self)._of([divide(x, s) for x in self._data])

    def __rtruediv__(self, other: Any) -> Any:
        s = number_in(other)
        if s is None:
            return NotImplemented
        divide = quotient(type(self).__treadle_type__.elem)
        return type(self)._of([divide(s, x) for x in self._data])


def _by_component(a: CompositeValue, b: Any, function: Callable) -> Any:
    """``function`` of each pair of components, of two values of one type (or a sequence of as many numbers)."""
    if isinstance(b, tuple | list | np.ndarray):
        b = type(a)(b)
    if type(b) is not type(a):
        return NotImplemented
    return type(a)._of([function(x, y) for x, y in zip(a._data, b._data)])


def _sum_of_products(row: Any, column: Any, narrow: Callable) -> Any:
    """The sum of products in order, rounded at every step."""
    total = narrow(row[0] * column[0])
    for x, y in zip(row[1:], column[1:]):
        total = narrow(total + narrow(x * y))
    return total


def _product(a: Any, b: Any) -> Any:
    """Matrix and vector products, and the composition of rotations and of rigid transforms."""
    if not isinstance(b, CompositeValue) or type(a).__treadle_type__.elem is not type(b).__treadle_type__.elem:
        return NotImplemented
    s, t = type(a).__treadle_type__, type(b).__treadle_type__
    narrow = type(a)._round
    if isinstance(s, Matrix) and isinstance(t, Matrix) and s.cols == t.rows:
        columns = [b._data[j :: t.cols] for j in range(t.cols)]
        rows = [a._data[i * s.cols : (i + 1) * s.cols] for i in range(s.rows)]
        made = matrix_class(s.rows, t.cols, s.elem)
        return made._of([_sum_of_products(row, column, narrow) for row in rows for column in columns])
    if isinstance(s, Matrix) and isinstance(t, Vector) and t.tag == "vec" and s.cols == t.n:
        rows = [a._data[i * s.cols : (i + 1) * s.cols] for i in range(s.rows)]
        return vector_class(s.rows, s.elem)._of([_sum_of_products(row, b._data, narrow) for row in rows])
    if isinstance(s, Vector) and s.tag == "vec" and isinstance(t, Matrix) and s.n == t.rows:
        columns = [b._data[j :: t.cols] for j in range(t.cols)]
        return vector_class(t.cols, s.elem)._of([_sum_of_products(column, a._data, narrow) for column in columns])
    if s is t and isinstance(s, Vector) and s.tag == "quat":
        return type(a)._of(_hamilton(a._data, b._data))
    if s is t and isinstance(s, Vector) and s.tag == "transform":
        turned = _turned(a._data[3:], b._data[:3])
        return type(a)._of([x + y for x, y in zip(a._data[:3], turned)] + _hamilton(a._data[3:], b._data[3:]))
    return NotImplemented


def _hamilton(a: Any, b: Any) -> list[float]:
    """Hamilton's product of quaternions (x, y, z, w)."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by + ay * bw + az * bx - ax * bz,
        aw * bz + az * bw + ax * by - ay * bx,
        aw * bw - ax * bx - ay * by - az * bz,
    ]


def _turned(q: Any, v: Any) -> list[float]:
    """A vector turned by a unit quaternion: ``v (2w² - 1) + 2w (q × v) + 2q (q · v)``."""
    x, y, z, w = q
    c, d = 2.0 * w * w - 1.0, 2.0 * (x * v[0] + y * v[1] + z * v[2])
    cross = (y * v[2] - z * v[1], z * v[0] - x * v[2], x * v[1] - y * v[0])
    return [c * v[i] + 2.0 * w * cross[i] + d * q[i] for i in range(3)]


class VectorValue(CompositeValue):
    """A vector: made from its components, one scalar for all, a sequence, or nothing (zero)."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator:
        return iter(self._data) if type(self).__treadle_type__.elem is not b1 else map(bool, self._data)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            part = self._data[i]
            return vector_class(len(part), type(self).__treadle_type__.elem)._of(part)
        found = self._data[i]
        return bool(found) if self._code == "B" and type(self).__treadle_type__.elem is b1 else found

    def __setitem__(self, i: Any, value: Any) -> None:
        if isinstance(i, slice):
            where = range(*i.indices(len(self._data)))
            numbers = list(value) if not isinstance(value, int | float) else [value] * len(where)
            if len(numbers) != len(where):
                raise ValueError(f"{len(where)} components cannot be set from {len(numbers)} values")
            for k, number in zip(where, numbers):
                self[k] = number
        else:
            self._data[i] = type(self)._pack([value])[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def __str__(self) -> str:
        return str(list(self))


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
        if exact and len(args) == n:
            try:
                self._data = array(letter, args)
                return
            except (TypeError, OverflowError):  # not all are numbers, or an integer wraps around
                pass
        cls = type(self)
        self._data = cls._pack(_components(cls, args))

    return __init__


class QuaternionValue(VectorValue):
    """A quaternion (x, y, z, w)."""

    __slots__ = ()


class TransformValue(VectorValue):
    """A rigid transform: ``p``, a translation, then ``q``, a rotation. Without arguments it moves nothing; one number
    is given to all seven components."""

    __slots__ = ()

    def __init__(self, *args: Any, p: Any = None, q: Any = None):
        cls = type(self)
        if len(args) == cls.__treadle_type__.n:
            self._data = cls._pack(args)
            return
        if len(args) == 1 and not hasattr(args[0], "__len__"):
            self._data = cls._pack(args * 7)
            return
        if len(args) == 1 and len(args[0]) == 7:
            self._data = cls._pack(_components(cls, args))
            return
        if len(args) > 2:
            raise ValueError(f"{cls.__name__} takes a position and a rotation, or 7 numbers, not {len(args)}")
        p = args[0] if args else (0.0, 0.0, 0.0) if p is None else p
        q = args[1] if len(args) == 2 else (0.0, 0.0, 0.0, 1.0) if q is None else q
        self._data = cls._pack(_components(cls, (p, q)))

    @property
    def p(self) -> Any:
        """The translation, as a copy."""
        return vector_class(3, type(self).__treadle_type__.elem)._of(self._data[:3])

    @p.setter
    def p(self, value: Any) -> None:
        self[0:3] = value

    @property
    def q(self) -> Any:
        """The rotation, as a copy."""
        return class_of(core.quaternion(type(self).__treadle_type__.elem))._of(self._data[3:])

    @q.setter
    def q(self, value: Any) -> None:
        self[3:7] = value


class MatrixValue(CompositeValue):
    """A matrix: made from its scalars row by row, from rows, from one scalar for all, a nested sequence, or nothing."""

    __slots__ = ()

    def __init__(self, *args: Any):
        self._data = type(self)._pack(_components(type(self), args))

    def __len__(self) -> int:
        return type(self).__treadle_type__.rows

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def _where(self, i: Any) -> tuple[Any, Any]:
        """The flat positions an index means, nested by row, and the class of what lies there."""
        t = type(self).__treadle_type__
        row, column = i if isinstance(i, tuple) else (i, slice(None))
        return np.arange(t.n).reshape(t.rows, t.cols)[row, column], t.elem

    def __getitem__(self, i: Any) -> Any:
        where, elem = self._where(i)
        if np.ndim(where) == 0:
            return self._data[where]
        numbers = [self._data[k] for k in where.ravel()]
        if where.ndim == 1:
            return vector_class(where.size, elem)._of(numbers)
        rows, cols = where.shape if where.size else (0, 0)  # as in kernels
        return matrix_class(rows, cols, elem)._of(numbers)

    def __setitem__(self, i: Any, value: Any) -> None:
        where, _ = self._where(i)
        numbers = np.asarray(value).ravel().tolist() if not np.isscalar(value) else [number_in(value)]
        places = np.atleast_1d(where).ravel()
        if len(numbers) not in (1, len(places)):
            raise ValueError(f"{len(places)} components cannot be set from {len(numbers)} values")
        packed = type(self)._pack(numbers * (len(places) // len(numbers)))
        for k, number in zip(places, packed):
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
        t = type(self).__treadle_type__
        return [list(self._data[i * t.cols : (i + 1) * t.cols]) for i in range(t.rows)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._rows()})"

    def __str__(self) -> str:
        return "[" + ",\n ".join(map(str, self._rows())) + "]"


def _component(i: int) -> property:
    def get(self: VectorValue) -> Any:
        return self._data[i]

    def put(self: VectorValue, value: Any) -> None:
        self[i] = value

    return property(get, put, doc=f"Component {i}.")


# -- the classes -------------------------------------------------------------------------------------------------------

_CLASSES: dict[Type, type] = {}
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
    scalar = class_of(t.elem)
    members: dict[str, Any] = {
        "__slots__": (), "__treadle_type__": t, "_code": code(t.elem), "_round": staticmethod(rounder(t.elem)),
        "dtype": scalar, "_wp_scalar_type_": scalar, "_length_": t.n, "__module__": "treadle",
    }  # fmt: skip
    if isinstance(t, Matrix):
        members["_shape_"] = (t.rows, t.cols)
        base: type = MatrixValue
    else:
        members["_shape_"] = (t.n,)
        base = _BASES[t.tag]
        if t.tag != "transform":
            members["__init__"] = _vector_init(t)
        if t.tag != "transform":
            members.update((name, _component(i)) for i, name in enumerate("xyzw"[: t.n]))
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
