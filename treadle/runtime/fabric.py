"""``fabricarray``: elements that lie in several buckets of memory, one bucket after the other, as one array.

Fabric, the scene store of Omniverse, keeps an attribute of many objects so. It copies nothing: reading and writing the
array reads and writes the buckets. Kernels take it as arrays of what the buckets are and of where they end, see
:class:`treadle.types.core.Bucketed`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..base.errors import ArrayError
from ..types.annotations import ArrayAnnotation, subscripted
from ..types.core import (
    Bucket,
    Bucketed,
    Scalar,
    Type,
    b1,
    bucket,
    bucketed,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    matrix,
    quaternion,
    u8,
    u16,
    u32,
    u64,
    vector,
)
from ..types.values import class_of, register_class
from .array import allocate, array
from .conversion import value_rows
from .device import Device, get_device
from .elements import Element, element, element_of
from .indexed import indexedarray
from .packing import packer
from .shaped import Shaped

_SCALARS: dict[str, Scalar] = {
    "b": b1, "i1": i8, "i2": i16, "i4": i32, "i8": i64, "u1": u8, "u2": u16, "u4": u32, "u8": u64,
    "f2": f16, "f4": f32, "f8": f64,
}  # fmt: skip
_SQUARE = ("matrix", "transform", "frame")  # roles whose elements are square matrices
_VERSION = 1  # of the interface


class _Bucket:
    """A bucket as memory describes it: the array of its elements, or those of the addresses and lengths of theirs."""

    data: array | None = None
    addresses: array | None = None
    lengths: array | None = None


class fabricarray(Shaped):
    """An attribute of a Fabric selection: elements in buckets, seen as one array of one dimension.

    Args:
        data: the interface, a dict or an object that has one as ``__fabric_arrays_interface__``. It keeps the memory
            alive, as long as the array does. ``["attribs"][attrib]`` says the ``type`` (valid, scalar as in "f4", how
            many of them an element has, 1 if elements are arrays, role), ``access``, ``pointers`` and ``counts`` of the
            buckets, and of arrays ``array_lengths``.
        attrib: name of the attribute.
        dtype, ndim: what the attribute must have; 2 dimensions where elements are arrays. Without ``data`` the call is
            an annotation, ``def k(a: wp.fabricarray(dtype=float))``, also written ``wp.fabricarray[float]``.

    Attributes: ``shape``, ``device``; ``access``, 1 to read, 2 to read and write.

    Raises:
        ArrayError: the interface lacks the attribute, or says something of it that is not understood.

    >>> import treadle as wp
    >>> a, b = wp.array([1.0, 2.0], dtype=float), wp.array([3.0], dtype=float)
    >>> mass = {"type": (True, "f4", 1, 0, ""), "access": 2, "pointers": [a.ptr, b.ptr], "counts": [2, 1]}
    >>> masses = wp.fabricarray({"version": 1, "device": "cpu", "attribs": {"mass": mass}}, "mass")
    >>> masses.fill_(5.0)
    >>> a.list(), b.list(), masses.shape
    ([5.0, 5.0], [5.0], (3,))
    """

    __treadle_builtin__ = "fabricarray"
    __slots__ = ()
    _element: Element
    buckets: array
    ends: array
    device: Device
    type: Bucketed

    def __new__(cls, data: Any = None, attrib: str | None = None, dtype: Any = Any, ndim: int | None = None) -> Any:
        if data is None:
            return ArrayAnnotation(dtype, 1 if ndim is None else ndim, "fabricarray")
        facts, where = _attribute(data, attrib)
        t, depth = _element_type(facts, attrib)
        e = element_of(t)
        if dtype not in (None, Any) and element(dtype).type is not e.type:
            raise ArrayError(f"Fabric attribute {attrib!r} has elements {e.cls.__name__}, not {dtype!r}")
        if ndim not in (None, 1 + depth):
            raise ArrayError(f"Fabric attribute {attrib!r} has {1 + depth} dimension(s), not {ndim}")
        parts = [facts["counts"], facts["pointers"], *([facts["array_lengths"]] if depth else [])]
        _check_buckets(facts, attrib, parts)
        made = object.__new__(cls)
        made._kept, made.access = data, facts.get("access", 2)
        return _fill(made, bucketed(t, 1 + depth), e, where, list(zip(*parts, strict=True)))

    def __class_getitem__(cls, item: Any) -> Any:
        return subscripted(item, 1, "fabricarray")

    # Facts -----------------------------------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """How many dimensions: 1, or 2 where the elements are arrays, each of its own length."""
        return self.type.ndim

    @property
    def total(self) -> int:
        """How many elements there are, as kernels are told."""
        return self.shape[0]

    is_contiguous = False  # that is known of what lies in buckets
    requires_grad = False
    grad = None

    def __repr__(self) -> str:
        return f"fabricarray(shape={self.shape}, dtype={self.dtype.__name__})"

    # Host access -----------------------------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[tuple[array, slice]]:
        """The buckets, and which elements they have."""
        if self.type.nested:
            raise ArrayError("the elements of this Fabric array are arrays; take them one by one, as in a[i]")
        begin = 0
        for part in self._arrays:
            yield part.data, slice(begin, begin + part.data.size)
            begin += part.data.size

    def memory(self) -> Iterator[array]:
        """The arrays in which the elements lie."""
        for part in self._arrays:
            if not self.type.nested:
                yield part.data
                continue
            for at, count in zip(part.addresses.list(), part.lengths.list(), strict=True):
                yield array(ptr=at, shape=count, dtype=self.dtype, device=self.device)

    def numpy(self) -> np.ndarray:
        """A NumPy array with a copy of the elements."""
        return self._rows()

    def _rows(self) -> np.ndarray:
        e = self._element
        return np.concatenate([np.zeros((0, *e.inner), e.dtype), *[part._rows() for part, _ in self._pieces()]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy().astype(dtype, copy=False)

    def contiguous(self) -> array:
        """A row-major array with a copy of the elements."""
        return _copied(self)

    def to(self, device: Any) -> Any:
        """This array if it lies on ``device``, else an array there with a copy of the elements."""
        return self if get_device(device) is self.device else self.contiguous().to(device)

    def __getitem__(self, key: Any) -> Any:
        """The element at an index, or an :class:`indexedfabricarray` by an array of int32."""
        if isinstance(key, array):
            return indexedfabricarray(self, key)
        part, at = self._found(key)
        if not self.type.nested:
            return part.data[at]
        return array(ptr=part.addresses[at], shape=part.lengths[at], dtype=self.dtype, device=self.device)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a value in the element at an index, or values in those at an array of int32."""
        if isinstance(key, array) or self.type.nested:
            self[key].assign(value)
        else:
            part, at = self._found(key)
            part.data[at] = value

    def _found(self, key: Any) -> tuple[_Bucket, int]:
        if not hasattr(key, "__index__"):
            raise ArrayError(f"Fabric arrays take an index or an array of int32, not {type(key).__name__}")
        at = key.__index__() + (self.size if key < 0 else 0)
        if not 0 <= at < self.size:
            raise IndexError(f"index {key} is outside of {self.size} elements")
        ends = self.ends.numpy()
        k = bisect.bisect_right(ends, at)
        return self._arrays[k], at - (int(ends[k - 1]) if k else 0)

    # Values ----------------------------------------------------------------------------------------------------------

    def zero_(self) -> None:
        """Set all bytes of all elements to zero."""
        for part, _ in self._pieces():
            part.zero_()

    def fill_(self, value: Any) -> None:
        """Set every element to ``value``: a number (for every component), or a vector or matrix."""
        for part, _ in self._pieces():
            part.fill_(value)

    def assign(self, src: Any) -> None:
        """Copy ``src``, an array or anything an array can be made from, into the elements. The sizes must agree."""
        rows = _given(src, self)
        for part, places in self._pieces():
            part.assign(_some(rows, places))


class indexedfabricarray(Shaped):
    """The elements of a :class:`fabricarray` whose places stand in a list of indices; also made by ``fa[indices]``.

    Args:
        fa: the array.
        indices: an array of int32 with one dimension.
        dtype, ndim: what ``fa`` must have. Without ``fa`` the call is an annotation, as of :class:`fabricarray`.

    Attributes: ``fa``, ``indices``, ``shape``, ``device``.

    Raises:
        ArrayError: ``fa`` is no Fabric array, or ``indices`` no such array.
    """

    __treadle_builtin__ = "indexedfabricarray"
    __slots__ = ()
    fa: fabricarray
    indices: array
    device: Device
    type: Bucketed

    def __new__(cls, fa: fabricarray | None = None, indices: array | None = None, dtype: Any = None,
                ndim: int | None = None) -> Any:  # fmt: skip
        if fa is None:
            return ArrayAnnotation(Any if dtype is None else dtype, 1 if ndim is None else ndim, "indexedfabricarray")
        if not isinstance(fa, fabricarray):
            raise ArrayError(f"an indexed Fabric array is one of a Fabric array, not of a {type(fa).__name__}")
        if not isinstance(indices, array) or indices.type.elem is not i32 or indices.ndim != 1:
            raise ArrayError(f"the indices of a Fabric array are an array of int32 with one dimension, not {indices!r}")
        if dtype not in (None, Any) and element(dtype) is not fa._element or ndim not in (None, fa.ndim):
            raise ArrayError(f"{fa!r} was asked to have dtype={dtype!r} and ndim={ndim}")
        made = object.__new__(cls)
        made.fa, made.indices, made.device, made.shape = fa, indices, fa.device, indices.shape
        made.type = bucketed(fa.type.elem, fa.ndim, True)
        return made

    def __class_getitem__(cls, item: Any) -> Any:
        return subscripted(item, 1, "indexedfabricarray")

    @property
    def _element(self) -> Element:
        return self.fa._element

    ndim = property(lambda self: self.fa.ndim, doc="How many dimensions, as of ``fa``.")
    buckets = property(lambda self: self.fa.buckets, doc="What kernels know of the buckets.")
    ends = property(lambda self: self.fa.ends, doc="How many elements the buckets up to each have together.")
    total = property(lambda self: self.fa.total, doc="How many elements ``fa`` has.")
    is_contiguous = requires_grad = False
    grad = None

    def __repr__(self) -> str:
        return f"indexedfabricarray(shape={self.shape}, dtype={self.dtype.__name__})"

    def _pieces(self) -> Iterator[tuple[indexedarray, np.ndarray]]:
        """The elements bucket by bucket, and which they are here.

        Raises:
            IndexError: an index outside of ``fa``.
        """
        chosen = self.indices.numpy()
        if chosen.size and not (0 <= chosen.min() and chosen.max() < self.fa.size):
            raise IndexError(f"an index from {chosen.min()} to {chosen.max()} is outside of {self.fa.size} elements")
        for part, held in self.fa._pieces():
            (places,) = np.nonzero((held.start <= chosen) & (chosen < held.stop))
            if places.size:
                yield indexedarray(part, array(chosen[places] - held.start, dtype=class_of(i32))), places

    def numpy(self) -> np.ndarray:
        """A NumPy array with a copy of the elements."""
        return self._rows()

    def _rows(self) -> np.ndarray:
        found = np.zeros((*self.shape, *self._element.inner), self._element.dtype)
        for part, places in self._pieces():
            found[places] = part._rows()
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy().astype(dtype, copy=False)

    def contiguous(self) -> array:
        """A row-major array with a copy of the elements."""
        return _copied(self)

    def to(self, device: Any) -> Any:
        """This array if it lies on ``device``, else an array there with a copy of the elements."""
        return self if get_device(device) is self.device else self.contiguous().to(device)

    def __getitem__(self, key: Any) -> Any:
        """The element at an index, or those at an array of int32."""
        if isinstance(key, array):
            return indexedfabricarray(self.fa, indexedarray(self.indices, key).contiguous())
        return self.fa[self.indices[key]]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a value in the element at an index, or values in those at an array of int32."""
        if isinstance(key, array):
            self[key].assign(value)
        else:
            self.fa[self.indices[key]] = value

    def zero_(self) -> None:
        """Set all bytes of all elements to zero."""
        for part, _ in self._pieces():
            part.zero_()

    def fill_(self, value: Any) -> None:
        """Set every element to ``value``: a number (for every component), or a vector or matrix."""
        for part, _ in self._pieces():
            part.fill_(value)

    def assign(self, src: Any) -> None:
        """Copy ``src``, an array or anything an array can be made from, into the elements. The sizes must agree."""
        rows = _given(src, self)
        for part, places in self._pieces():
            part.assign(_some(rows, places))


# Under the name of the field of its type, by which kernels know it.
setattr(indexedfabricarray, "indices[0]", property(lambda self: self.indices))


def fabricarrayarray(data: Any = None, attrib: str | None = None, dtype: Any = Any) -> Any:
    """A :class:`fabricarray` of two dimensions, whose elements are arrays; or its annotation."""
    return fabricarray(data, attrib, dtype, 2)


def indexedfabricarrayarray(fa: fabricarray | None = None, indices: array | None = None, dtype: Any = None) -> Any:
    """An :class:`indexedfabricarray` of two dimensions, whose elements are arrays; or its annotation."""
    return indexedfabricarray(fa, indices, dtype, 2)


def _attribute(data: Any, attrib: str | None) -> tuple[Mapping[str, Any], Device]:
    """What an interface says of an attribute, and where it lies."""
    face = data if isinstance(data, Mapping) else getattr(data, "__fabric_arrays_interface__", None)
    if face is None:
        raise ArrayError(f"a Fabric array is made from a dict or what has __fabric_arrays_interface__, not {data!r}")
    if face.get("version") != _VERSION:
        raise ArrayError(f"the Fabric interface has version {face.get('version')!r}; only {_VERSION} is known")
    facts = face["attribs"].get(attrib)
    if facts is None:
        raise ArrayError(f"there is no Fabric attribute {attrib!r}; there are {', '.join(face['attribs'])}")
    return facts, get_device(face["device"])


def _check_buckets(facts: Mapping[str, Any], attrib: str | None, parts: list[Any]) -> None:
    """Raise if an attribute does not say the same number of buckets everywhere, or has elements at no address."""
    sizes = [len(part) for part in parts]
    if len({*sizes}) > 1:
        said = ", ".join(f"{n} {what}" for n, what in zip(sizes, ("counts", "pointers", "array_lengths"), strict=False))
        raise ArrayError(f"Fabric attribute {attrib!r} has {said}: a bucket has one of each")
    for k, (count, pointer) in enumerate(zip(facts["counts"], facts["pointers"], strict=True)):
        if count and not pointer:
            raise ArrayError(f"Fabric attribute {attrib!r} has {count} elements in bucket {k}, whose pointer is null")


def _element_type(facts: Mapping[str, Any], attrib: str | None) -> tuple[Type, int]:
    """The type of an attribute's elements, and how deep arrays are nested in it."""
    what = f"Fabric attribute {attrib!r}"
    said = tuple(facts["type"])
    if len(said) != 5:
        raise ArrayError(f"{what}: its type must contain five elements, got {len(said)}: {said}")
    _, code, count, depth, role = said
    scalar = _SCALARS.get(code)
    if scalar is None or role in ("text", "path"):
        raise ArrayError(f"{what} has elements that are no numbers: {code!r}, role {role!r}")
    if depth not in (0, 1):
        raise ArrayError(f"{what} has arrays nested {depth} deep; only 1 is known")
    if count == 1:
        return scalar, depth
    if role in _SQUARE:
        n = math.isqrt(count)
        if n * n != count:
            raise ArrayError(f"{what}: a {role} must have a square element count, got {count}")
        return matrix(n, n, scalar), depth
    return quaternion(scalar) if (role, count) == ("quat", 4) else vector(count, scalar), depth


def _fill(made: fabricarray, t: Bucketed, e: Element, where: Device, parts: Sequence[Sequence[int]]) -> fabricarray:
    """Describe buckets, of which ``parts`` gives count and pointers, to hosts and kernels."""
    record = bucket(t.elem, t.nested)
    cls = _bucket_class(record)
    made._arrays = []
    for count, *pointers in parts:
        part = cls()
        dtypes = (class_of(u64), class_of(u64)) if t.nested else (e.cls,)
        for (name, _), pointer, dtype in zip(record.fields, pointers, dtypes, strict=True):
            setattr(part, name, array(ptr=int(pointer or 0), shape=int(count), dtype=dtype, device=where))
        made._arrays.append(part)
    counts = [int(count) for count, *_ in parts]
    made.buckets = allocate(element_of(record), (len(parts),), where, False)
    put, memory = packer(record), memoryview(made.buckets.numpy().view(np.uint8))
    for k, part in enumerate(made._arrays):
        put(memory, k * record.size, part)
    made.ends = array(np.cumsum([0, *counts])[1:], dtype=class_of(i32), device=where)
    made.type, made._element, made.device, made.shape = t, e, where, (sum(counts),)
    return made


@cache
def _bucket_class(record: Bucket) -> type[_Bucket]:
    """The class of buckets of one type."""
    made = type("Bucket", (_Bucket,), {"__treadle_type__": record})
    register_class(record, made)
    return made


def restored(t: Bucketed, found: Mapping[str, Any]) -> fabricarray | indexedfabricarray:
    """The array of type ``t`` from its fields, as memory held them; somebody else keeps what they lead to."""
    made = object.__new__(fabricarray)
    buckets: array = found["buckets"]
    made.buckets, made.ends, made.access, made._kept = buckets, found["ends"], 2, None
    made.type, made._element, made.device = bucketed(t.elem, t.ndim), element_of(t.elem), buckets.device
    made._arrays, ends = buckets.list(), found["ends"].numpy()
    for name, part in bucket(t.elem, t.nested).fields:
        for held in made._arrays:
            if getattr(held, name) is None:  # the bucket is empty
                setattr(held, name, allocate(element_of(part.elem), (0,), made.device, False))
    made.shape = (int(ends[-1]) if len(ends) else 0,)
    return made[found["indices[0]"]] if t.listed else made


def _copied(a: fabricarray | indexedfabricarray) -> array:
    made = allocate(a._element, a.shape, a.device, False)
    for part, places in a._pieces():
        _some(made, places).assign(part)
    return made


def _given(src: Any, dest: fabricarray | indexedfabricarray) -> array | np.ndarray:
    """The elements of ``src`` for those of ``dest``: an array, of which tapes know where it goes, or as NumPy has
    them."""
    e = dest._element
    same = isinstance(src, Shaped) and src._element.type is e.type
    if same and isinstance(src, array) and src.shape == dest.shape:
        return src
    rows = src._rows() if same else np.array(value_rows(src, e))
    shape = (*dest.shape, *e.inner)
    if rows.size != math.prod(shape):
        raise ArrayError(f"{rows.size} numbers cannot be assigned to elements of shape {shape}")
    return rows.reshape(shape)


def _some(rows: array | np.ndarray, places: slice | np.ndarray) -> Any:
    """The elements at ``places``."""
    if isinstance(rows, array) and isinstance(places, np.ndarray):
        return indexedarray(rows, array(places, dtype=class_of(i32), device=rows.device))
    return rows[places]
