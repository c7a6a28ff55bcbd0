"""``indexedarray``: some elements of an array, by lists of indices along its dimensions, as an array of their own.

It copies nothing: reading and writing it reads and writes the array that it shows. Kernels take it as the view of that
array and one view for each list of indices; see :class:`treadle.types.core.Indexed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import ArrayError
from ..types.annotations import ArrayAnnotation, subscripted
from ..types.core import Indexed, bf16, i32, indexed
from . import array_views as views
from . import capture, hooks, watch
from .array import allocate, array
from .conversion import fill_rows, value_rows
from .device import Device, get_device
from .elements import Element, element
from .shaped import Shaped
from .writes import put_rows, put_selected

_new, _ALL = object.__new__, slice(None)


class indexedarray(Shaped):
    """The elements of ``data`` whose place along each dimension stands in a list of indices.

    Element ``[i, j]`` is ``data[indices[0][i], indices[1][j]]``; a dimension whose indices are None is left as it is.
    An index may stand in a list several times. The gradient is that of ``data``, at the same elements. The same is made
    by ``data[rows, :, columns]`` where ``rows`` and ``columns`` are arrays of int32.

    Args:
        data: an array of any element type with one to four dimensions.
        indices: a one-dimensional array of int32 for the first dimension, or a list with one, or None, for each of the
            leading dimensions.
        dtype, ndim: what ``data`` must have; without ``data`` the call is an annotation, ``def k(a:
            wp.indexedarray(dtype=float))``, also written ``wp.indexedarray[float]`` or, for two dimensions,
            ``wp.indexedarray2d[float]``.

    Attributes: ``data``; ``indices``, a tuple with an array or None for each dimension; ``shape``, ``device``.

    Raises:
        ArrayError: ``data`` is no array, or indices are no one-dimensional arrays of int32, or too many.

    >>> import treadle as wp
    >>> a = wp.array([0.0, 10.0, 20.0, 30.0], dtype=float)
    >>> odd = wp.indexedarray(a, wp.array([1, 3], dtype=int))
    >>> odd.fill_(-1.0)
    >>> a.list()
    [0.0, -1.0, 20.0, -1.0]
    """

    __treadle_builtin__ = "indexedarray"
    __slots__ = ()
    data: array
    indices: tuple[array | None, ...]
    shape: tuple[int, ...]
    device: Device
    type: Indexed

    def __new__(cls, data: array | None = None, indices: array | Sequence[array | None] | None = None,
                dtype: Any = None, ndim: int | None = None) -> Any:  # fmt: skip
        if data is None:
            return ArrayAnnotation(Any if dtype is None else dtype, 1 if ndim is None else ndim, "indexedarray")
        if not isinstance(data, array):
            raise ArrayError(f"the data of an indexed array is an array, not {type(data).__name__}")
        if dtype not in (None, Any) and element(dtype) is not data._element:
            raise ArrayError(f"an indexed array of {data.dtype.__name__} was asked to have another dtype: {dtype!r}")
        if ndim is not None and ndim != data.ndim:
            raise ArrayError(f"an indexed array of {ndim} dimensions was given {data.ndim}-dimensional data")
        given = indices if isinstance(indices, list | tuple) else [indices]
        if len(given) > data.ndim:
            raise ArrayError(f"{len(given)} lists of indices for an array of {data.ndim} dimensions")
        found = [_checked(places, data.device) for places in given]
        return _build(cls, data, (*found, *[None] * (data.ndim - len(found))))

    def __class_getitem__(cls, item: Any) -> Any:
        return subscripted(item, 1, "indexedarray")

    def __reduce__(self) -> tuple:
        return indexedarray, (self.data, self.indices)

    # Facts -----------------------------------------------------------------------------------------------------------

    @property
    def _element(self) -> Element:
        return self.data._element

    @property
    def read_only(self) -> bool:
        """Whether the elements must not be changed; as ``data``."""
        return self.data.read_only

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements are known to lie row-major without gaps; they are not."""
        return False

    @property
    def requires_grad(self) -> bool:
        """Whether ``data`` keeps a gradient; can be set."""
        return self.data.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.data.requires_grad = wanted

    @property
    def grad(self) -> indexedarray | None:
        """The same elements of the gradient of ``data``, or None."""
        grad = self.data.grad
        return None if grad is None else _build(indexedarray, grad, self.indices)

    def __repr__(self) -> str:
        return f"indexedarray(shape={self.shape}, dtype={getattr(self.dtype, '__name__', self.dtype)})"

    # What kernels are given ------------------------------------------------------------------------------------------

    def _places(self, axis: int) -> array:
        """The indices of dimension ``axis``, written out where it has no list."""
        found = self.indices[axis]
        if found is None:
            found = self._identities.get(axis)
        if found is None:  # it lives as long as this array, so that kernels find it
            found = self._identities[axis] = array(np.arange(self.shape[axis], dtype=np.int32), device=self.device)
        return found

    def _with_data(self, data: array) -> indexedarray:
        """The same elements of another array of the same shape."""
        return _build(indexedarray, data, self.indices)

    # Host access -----------------------------------------------------------------------------------------------------

    def _where(self) -> tuple:
        """What selects the elements from NumPy's view of ``data``.

        Raises:
            IndexError: an index outside of ``data``.
        """
        chosen = [None if places is None else places.numpy() for places in self.indices]
        for axis, rows in enumerate(chosen):
            extent = self.data.shape[axis]
            if rows is not None and rows.size and not (0 <= rows.min() and rows.max() < extent):
                wrong = int(rows[(rows < 0) | (rows >= extent)][0])
                raise IndexError(f"index {wrong}, of the indices of dimension {axis}, is outside its extent {extent}")
        if sum([rows is not None for rows in chosen]) <= 1:
            return tuple([slice(None) if rows is None else rows for rows in chosen])
        every = [np.arange(n) if rows is None else rows for rows, n in zip(chosen, self.data.shape, strict=True)]
        return np.ix_(*every)

    def numpy(self) -> np.ndarray:
        """A NumPy array with a copy of the elements."""
        return np.array(self.data.numpy()[self._where()])

    def _rows(self) -> np.ndarray:
        return np.array(self.data._rows()[self._where()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy().astype(dtype, copy=False)

    def contiguous(self) -> array:
        """A row-major array with a copy of the elements."""
        made = allocate(self._element, self.shape, self.device, self.requires_grad)
        take(made, self)
        return made

    def to(self, device: Any) -> Any:
        """This array if it lies on ``device``, else an array there with a copy of the elements."""
        return self if get_device(device) is self.device else self.contiguous().to(device)

    def __getitem__(self, key: Any) -> Any:
        """What ``key`` selects, as of an array: indices take dimensions away, slices and arrays of int32 keep them."""
        cut, places = _cut(self.data, self.indices, key)
        return _seen(self.data, cut, places)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a value, a sequence or another array in the elements that ``key`` selects."""
        cut, places = _cut(self.data, self.indices, key)
        if places:
            _seen(self.data, cut, places).assign(value)
        else:
            self.data[cut] = value

    # Values ----------------------------------------------------------------------------------------------------------

    def zero_(self) -> None:
        """Set all bytes of all elements to zero."""
        self._put(np.zeros((), self._element.dtype))

    def fill_(self, value: Any) -> None:
        """Set every element to ``value``: a number (for every component), a vector or matrix, or a struct instance."""
        self._put(np.array(fill_rows(value, self._element)))

    def assign(self, src: Any) -> None:
        """Copy ``src``, an array or anything an array can be made from, into the elements. The sizes must agree."""
        take(self, src)

    def _put(self, rows: np.ndarray) -> None:
        if self.data.read_only:
            self.data._refuse_writes()
        if _later(self):
            made = allocate(self._element, (1,) * len(self.shape), self.device, False)
            put_rows(made, rows)
            hooks.move(self, made._view(self.shape, (0,) * len(self.shape)), False)
            return
        _write(self.data, (rows, (*self.shape, *self._element.inner), self._where(), Ellipsis), None)


# Under the names of the fields of its type, by which kernels know its parts.
for _axis in range(views.MAX_DIMS):
    setattr(indexedarray, f"indices[{_axis}]", property(lambda self, axis=_axis: self._places(axis)))


def _build(cls: type, data: array, indices: tuple[array | None, ...]) -> indexedarray:
    made = _new(cls)
    made.data, made.indices, made.device, made._identities = data, indices, data.device, {}
    made.shape = tuple([n if places is None else places.shape[0] for places, n in zip(indices, data.shape)])
    made._parts = (data, *[places for places in indices if places is not None])  # as native launchers pack them
    made.type = indexed(data.type, tuple([None if places is None else places.type for places in indices]))
    return made


def _checked(places: Any, device: Device) -> array | None:
    """``places`` if it can be a list of indices, or None."""
    if places is None:
        return None
    if not isinstance(places, array) or places.type.elem is not i32 or places.ndim != 1:
        what = repr(places) if isinstance(places, array) else f"a {type(places).__name__}"
        raise ArrayError(f"the indices of an array stand in one-dimensional arrays of int32, not in {what}")
    if places.device is not device:
        raise ArrayError(f"indices on {places.device} for an array on {device}")
    return places


def _cut(data: array, indices: Sequence[array | None], key: Any) -> tuple[tuple, list[array | None]]:
    """What ``[key]`` means of ``data`` by lists of ``indices``: what cuts ``data``, and the lists (or
    None) of the dimensions that are left."""
    keys = views.spread(key if type(key) is tuple else (key,), data.ndim)
    cut: list[Any] = []
    left: list[array | None] = []
    for axis, (k, places) in enumerate(zip(keys, indices, strict=True)):
        if isinstance(k, array):
            cut.append(_ALL)
            left.append(_checked(k, data.device) if places is None else _composed(places, _checked(k, data.device)))
        elif type(k) is slice:
            cut.append(k if places is None else _ALL)
            left.append(None if places is None else places[k])
        else:
            cut.append(k if places is None else _inside(places[k], axis, data.shape[axis]))
    return tuple(cut), left


def _composed(places: array, chosen: array) -> array:
    """The list of the ``chosen`` items of the list ``places``."""
    return indexedarray(places, chosen).contiguous()


def _inside(at: int, axis: int, extent: int) -> int:
    if not 0 <= at < extent:
        raise IndexError(f"index {at}, of the indices of dimension {axis}, is outside its extent {extent}")
    return at


def _seen(data: array, cut: tuple, places: list[array | None]) -> Any:
    """What is left of ``data`` by its lists of indices; what is left itself where there are none."""
    if any([k != _ALL for k in cut]):
        data = data[cut]
    return data if all([p is None for p in places]) else _build(indexedarray, data, tuple(places))


def selected(a: array, key: Any) -> Any:
    """``a[key]`` where arrays of indices are in ``key``."""
    cut, places = _cut(a, (None,) * a.ndim, key)
    return _seen(a, cut, places)


def take(dest: array | indexedarray, src: Any) -> None:
    """Copy all elements of ``src`` to ``dest``, one of which is indexed."""
    if dest.read_only:
        (dest.data if isinstance(dest, indexedarray) else dest)._refuse_writes()
    if _later(dest):
        _take_later(dest, src)
        return
    e = dest._element
    target, to = (dest.data, dest._where()) if isinstance(dest, indexedarray) else (dest, Ellipsis)
    shape = (*dest.shape, *e.inner)
    if isinstance(src, array | indexedarray) and _goes(src._element, e):
        source, at = (src.data, src._where()) if isinstance(src, indexedarray) else (src, Ellipsis)
        _write(target, (source, shape, to, at), source)
    else:
        _write(target, (np.array(value_rows(src, e)), shape, to, Ellipsis), None)


def _later(dest: array | indexedarray) -> bool:
    """Whether what is done to ``dest`` is written down, so that nobody can look at indices now."""
    now = capture.sink(dest.device) if capture.active else None
    return now is not None and now.writes_down


def _take_later(dest: array | indexedarray, src: Any) -> None:
    """:func:`take` in a capture. What is copied lies aside for a moment: source and target may lie over each other."""
    if isinstance(src, indexedarray):
        made = allocate(src._element, src.shape, src.device, False)
        hooks.move(made, src, False)
        src = made
    if isinstance(dest, indexedarray):
        aside = allocate(dest._element, dest.shape, dest.device, False)
        aside.assign(src)
        hooks.move(dest, aside, True)
    else:
        dest.assign(src)


def _goes(src: Element, dest: Element) -> bool:
    """Whether NumPy converts elements of ``src`` to those of ``dest`` as it should."""
    halves = [getattr(e.type, "elem", e.type) is bf16 for e in (src, dest)]
    plain = src.dtype.fields is None and dest.dtype.fields is None and not any(halves)
    return src.type is dest.type or (plain and src.inner == dest.inner)


def _write(target: array, args: tuple, source: array | None) -> None:
    if watch.watchers:  # who may do it again, or go back, when other indices stand there
        rows, shape, to, at = args
        watch.write(target, put_selected, (rows, shape, _apart(to), _apart(at)), source)
    else:
        put_selected(target, *args)


def _apart(where: Any) -> Any:
    """A copy of what selects elements: the lists of indices as they are now."""
    return where if where is Ellipsis else tuple([w if isinstance(w, slice) else w.copy() for w in where])
