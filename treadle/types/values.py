"""The values users touch: ``float32``, ``vec3``, ``mat33``, ``quat``, ``transform`` … as Python classes.

A class is made when it is first asked for, by name (``values.vec3d``), by shape (``vector_class(5, f32)``) or by type
(``class_of``); each type has one class, and each class names its type as ``__treadle_type__``. Components are kept
rounded to their scalar type, in a buffer that NumPy can read. Arithmetic rounds every step, integers wrap around.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from . import core
from .core import SCALARS, Matrix, Scalar, Struct, Type, Vector, View, b1, bf16, f32
from .numbers import code, quotient, remainder, rounder
from .spelling import SCALAR_NAMES, SUFFIXES, spell

# -- scalars -----------------------------------------------------------------------------------------------------------


class ScalarValue:
    """One number of a given type. ``value`` is it as a Python number."""

    __slots__ = ("value",)
    __treadle_type__: Scalar
    _round: Callable[[Any], Any]

    def __init__(self, x: Any = 0):
        self.value = type(self)._round(x.value if isinstance(x, ScalarValue) else x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return self.value != 0

    def __index__(self) -> int:
        return operator.index(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __reduce__(self):
        return _restore, (_recipe(type(self).__treadle_type__), (self.value,))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype or numpy_dtype(type(self).__treadle_type__))


def _number(x: Any) -> Any:
    """The Python number in ``x``, or None."""
    if isinstance(x, ScalarValue):
        return x.value
    return x if isinstance(x, bool | int | float | np.number | np.bool_) else None


def _scalar_operator(function: Callable, swapped: bool = False) -> Callable:
    def method(self: ScalarValue, other: Any) -> Any:
        if isinstance(other, ScalarValue) and type(other) is not type(self):
            raise TypeError(f"{type(self).__name__} and {type(other).__name__} are not mixed in silence")
        number = _number(other)
        if number is None:
            return NotImplemented
        t = type(self).__treadle_type__
        if isinstance(number, float) and not t.is_float:
            raise TypeError(f"{type(self).__name__} and float are not mixed in silence")
        a, b = (number, self.value) if swapped else (self.value, number)
        return type(self)(function(t)(a, b))

    return method


def _scalar_comparison(function: Callable) -> Callable:
    def method(self: ScalarValue, other: Any) -> Any:
        number = _number(other)
        return NotImplemented if number is None else bool(function(self.value, number))

    return method


def _always(function: Callable) -> Callable[[Scalar], Callable]:
    return lambda t: function


def _integer_only(function: Callable) -> Callable[[Scalar], Callable]:
    def choose(t: Scalar) -> Callable:
        if t.is_float:
            raise TypeError(f"{spell(t)} has no bits to combine")
        return function

    return choose


_ARITHMETIC = {
    "add": _always(operator.add), "sub": _always(operator.sub), "mul": _always(operator.mul), "truediv": quotient,
    "mod": remainder, "floordiv": lambda t: lambda a, b: 0 if b == 0 and t.is_int else math.nan if b == 0 else a // b,
    "and": _integer_only(operator.and_), "or": _integer_only(operator.or_), "xor": _integer_only(operator.xor),
    "lshift": _integer_only(operator.lshift), "rshift": _integer_only(operator.rshift), "pow": _always(operator.pow),
}  # fmt: skip

for _name, _function in _ARITHMETIC.items():
    setattr(ScalarValue, f"__{_name}__", _scalar_operator(_function))
    setattr(ScalarValue, f"__r{_name}__", _scalar_operator(_function, swapped=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(ScalarValue, f"__{_name}__", _scalar_comparison(getattr(operator, _name)))
for _name, _function in (("neg", operator.neg), ("pos", operator.pos), ("abs", abs), ("invert", operator.invert)):
    setattr(ScalarValue, f"__{_name}__", lambda self, f=_function: type(self)(f(self.value)))
ScalarValue.__hash__ = lambda self: hash(self.value)  # comparison set it aside


# -- vectors and matrices ----------------------------------------------------------------------------------------------


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
    def _pack(cls, numbers: Any) -> array:
        """Numbers as components: rounded to the scalar type, integers wrapped."""
        if cls._code not in "fd" or cls.__treadle_type__.elem.bits == 16:
            if cls.__treadle_type__.elem.is_int:
                numbers = [operator.index(x) for x in numbers]
            numbers = map(cls._round, numbers)
        return array(cls._code, numbers)

    def __reduce__(self):
        return _restore, (_recipe(type(self).__treadle_type__), tuple(self._data))

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
        s = _number(other)
        return type(self)._of([x * s for x in self._data]) if s is not None else _product(self, other)

    def __rmul__(self, other: Any) -> Any:
        s = _number(other)
        return NotImplemented if s is None else type(self)._of([s * x for x in self._data])

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __truediv__(self, other: Any) -> Any:
        s = _number(other)
        if s is None:
            return NotImplemented
        divide = quotient(type(self).__treadle_type__.elem)
        return type(self)._of([divide(x, s) for x in self._data])

    def __rtruediv__(self, other: Any) -> Any:
        s = _number(other)
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
        number = _number(only)
        if number is not None:
            return [number] * t.n
        args = tuple(only)
    flat: list = []
    for x in args:
        number = _number(x)
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
    """A rigid transform: ``p``, a translation, then ``q``, a rotation. Without arguments it moves nothing."""

    __slots__ = ()

    def __init__(self, *args: Any, p: Any = None, q: Any = None):
        cls = type(self)
        if len(args) == cls.__treadle_type__.n:
            self._data = cls._pack(args)
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
        made = vector_class(where.size, elem) if where.ndim == 1 else matrix_class(*where.shape, elem)
        return made._of(numbers)

    def __setitem__(self, i: Any, value: Any) -> None:
        where, _ = self._where(i)
        numbers = np.asarray(value).ravel().tolist() if not np.isscalar(value) else [_number(value)]
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
        found = _CLASSES[t] = _scalar_class(t) if isinstance(t, Scalar) else _composite_class(t)
    return found


def register_class(t: Struct, c: type) -> None:
    """Remember that host values of struct type ``t`` are instances of ``c``."""
    _CLASSES[t] = c


def _scalar_class(t: Scalar) -> type:
    members = {"__slots__": (), "__treadle_type__": t, "_round": staticmethod(rounder(t)), "__module__": "treadle",
               "__doc__": f"A number of type {spell(t)}."}  # fmt: skip
    return type(spell(t), (ScalarValue,), members)


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
        if t.n <= 4:
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


class OpenType:
    """A vector or matrix annotation that leaves its length or its scalar open."""

    __slots__ = ()
    __treadle_open__ = True


def _scalar_of(dtype: Any) -> Scalar | None:
    from .annotations import type_of

    t = type_of(dtype)
    if t is not None and not isinstance(t, Scalar):
        raise TypeError(f"components are scalars, not {spell(t)}")
    return t


def vector(length: Any, dtype: Any) -> Any:
    """The class of vectors of ``length`` scalars ``dtype``.

    Args:
        length: a positive int; ``Any`` in annotations of generic functions.
        dtype: a scalar type, ``float``, ``int`` or ``bool``; ``Any`` in annotations of generic functions.

    >>> vector(length=5, dtype=float)(1.0)[4]
    1.0
    """
    scalar = _scalar_of(dtype)
    if scalar is None or length is Any:
        return OpenType()
    if not isinstance(length, int) or length < 1:
        raise TypeError(f"length must be a positive int, not {length!r}")
    return vector_class(length, scalar)


def matrix(shape: Any, dtype: Any) -> Any:
    """The class of matrices of ``shape`` (rows, columns) and scalars ``dtype``; both may be open, as in :func:`vector`.

    >>> matrix(shape=(2, 3), dtype=float)(1.0)[1, 2]
    1.0
    """
    scalar = _scalar_of(dtype)
    if scalar is None or shape is Any or Any in tuple(shape):
        return OpenType()
    rows, cols = shape
    if not isinstance(rows, int) or not isinstance(cols, int) or rows < 1 or cols < 1:
        raise TypeError(f"shape must be two positive ints, not {shape!r}")
    return matrix_class(rows, cols, scalar)


def quaternion(dtype: Any) -> Any:
    """The class of quaternions of ``dtype``.

    >>> quaternion(dtype=float)(0.0, 0.0, 0.0, 1.0).w
    1.0
    """
    scalar = _scalar_of(dtype)
    return OpenType() if scalar is None else quaternion_class(scalar)


def transformation(dtype: Any) -> Any:
    """The class of rigid transforms of ``dtype``.

    >>> transformation(dtype=float)().q.w
    1.0
    """
    scalar = _scalar_of(dtype)
    return OpenType() if scalar is None else transformation_class(scalar)


# -- names -------------------------------------------------------------------------------------------------------------


@cache
def names() -> dict[str, Type]:
    """Every named class, with its type: ``float32``, ``vec3``, ``vec3d``, ``mat33f``, ``quat``, ``spatial_matrix`` …"""
    found: dict[str, Type] = {name: t for t, name in SCALAR_NAMES.items()}
    suffixes = {**SUFFIXES, None: ""}
    for scalar, suffix in suffixes.items():
        elem = f32 if scalar is None else scalar
        found.update((f"vec{n}{suffix}", core.vector(n, elem)) for n in (2, 3, 4))
        if elem.is_float:
            found.update((f"mat{n}{n}{suffix}", core.matrix(n, n, elem)) for n in (2, 3, 4))
            found[f"quat{suffix}"] = core.quaternion(elem)
            found[f"transform{suffix}"] = core.transformation(elem)
            found[f"spatial_vector{suffix}"] = core.vector(6, elem)
            found[f"spatial_matrix{suffix}"] = core.matrix(6, 6, elem)
    return found


def __getattr__(name: str) -> Any:
    t = names().get(name)
    if t is None:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    return class_of(t)


# -- NumPy and pickle --------------------------------------------------------------------------------------------------


@cache
def numpy_dtype(t: Type) -> np.dtype:
    """How NumPy sees one value of ``t`` in memory; a bfloat16 as its bits, an array inside a struct as 8-byte words.

    >>> numpy_dtype(f32)
    dtype('float32')
    """
    if isinstance(t, Scalar):
        if t is b1:
            return np.dtype(np.bool_)
        return np.dtype(np.uint16) if t is bf16 else np.dtype(f"{t.kind}{t.bits // 8}")
    if isinstance(t, Vector):
        return np.dtype((numpy_dtype(t.elem), (t.n,)))
    if isinstance(t, Matrix):
        return np.dtype((numpy_dtype(t.elem), (t.rows, t.cols)))
    if isinstance(t, Struct):
        fields = {"names": list(t.index), "formats": [numpy_dtype(ft) for _, ft in t.fields],
                  "offsets": list(t.offsets), "itemsize": t.size}  # fmt: skip
        return np.dtype(fields)
    if isinstance(t, View):
        return np.dtype((np.uint64, (t.size // 8,)))
    raise TypeError(f"NumPy has no dtype for {spell(t)}")


_OF_NUMPY = {numpy_dtype(t): t for t in SCALARS if t is not bf16}


def type_of_numpy(dtype: Any) -> Scalar | None:
    """The scalar type NumPy's ``dtype`` stands for, or None.

    >>> type_of_numpy(np.float32)
    f32
    """
    return _OF_NUMPY.get(np.dtype(dtype).newbyteorder("="))


def _recipe(t: Type) -> tuple:
    """What :func:`_restore` needs to find ``t`` again, in another process."""
    if isinstance(t, Scalar):
        return ("scalar", t.name)
    if isinstance(t, Matrix):
        return ("matrix", t.rows, t.cols, t.elem.name)
    return (t.tag, t.n, t.elem.name)


def _restore(recipe: tuple, numbers: tuple) -> Any:
    """The value that was pickled."""
    scalar = next(s for s in SCALARS if s.name == recipe[-1])
    if recipe[0] == "scalar":
        return class_of(scalar)(numbers[0])
    t = {"matrix": core.matrix, "vec": core.vector, "quat": lambda n, s: core.quaternion(s),
         "transform": lambda n, s: core.transformation(s)}[recipe[0]](*recipe[1:-1], scalar)  # fmt: skip
    return class_of(t)._of(numbers)
