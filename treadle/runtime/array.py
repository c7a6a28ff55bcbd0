"""The user's array: typed memory of 1 to 4 dimensions on a device, with NumPy as its neighbour.

An array is a pointer, a shape and strides in bytes over memory that it shares with its views. Its `type` is the view
type that kernels are compiled for, and `_desc` the same facts as bytes, which native launchers read in place.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..base.errors import ArrayError
from ..types.annotations import ArrayAnnotation, subscripted
from ..types.core import Struct, View
from ..types.numbers import bf16_values, seen_as
from ..types.records import READ_ONLY
from . import array_views as views
from . import capture, watch
from .allocators import MemoryKind
from .conversion import fill_rows, from_data, to_host
from .device import Device, get_device
from .elements import Element, element
from .foreign import lies_far, shared
from .memory import borrow, span
from .shaped import Shaped
from .writes import put_rows, put_value, put_zeros

_new = object.__new__
_ndarray = np.ndarray


def _packer(ndim: int) -> Callable[..., bytes]:
    """Packs view type id, data, grad, shape, strides and component stride; shape and strides fill 4 places each."""
    gap = 8 * (views.MAX_DIMS - ndim)
    return struct.Struct(f"<QQQ{ndim}q{gap}x{ndim}q{gap}xq").pack


COPY_IT = "work on a copy, wp.clone(a), or have one made from the start: wp.array(data, copy=True)"
_PACK = (None, *(_packer(n) for n in range(1, views.MAX_DIMS + 1)))


class array(Shaped):
    """An array of scalars, vectors, matrices, quaternions, transforms or structs.

    Args:
        data: a sequence, NumPy array, anything with ``__array_interface__``, or another array. Copied unless ``copy``
            is False and its layout can be used as it is.
        dtype: the element type, such as ``float``, ``wp.vec3`` or a struct class; taken from ``data`` if left out.
        shape: an int or up to four ints; with ``data`` it reshapes.
        strides: bytes from one element to the next in each dimension; row-major if left out. Not with ``data``.
        ptr: address of memory to use, with ``shape`` and ``dtype``; the caller keeps it alive, or gives a ``deleter``.
        capacity: bytes available at ``ptr``.
        device: where the memory lies; the current device if left out.
        copy: whether ``data`` is copied even where it could be shared.
        deleter: called with address and capacity when the array over ``ptr`` goes.
        ndim: dimensions of the annotation, where the call is one.
        grad: the array that holds the gradient; implies ``requires_grad``.
        requires_grad: whether a gradient of the same layout is kept, in ``grad``.
        component_stride: bytes from one component of an element to the next, which makes the array *planar*; beyond
            Warp. Only with ``ptr``.

    Without ``data``, ``shape`` and ``ptr`` the call is an annotation: ``def k(a: wp.array(dtype=float))``, also written
    ``wp.array[float]``.

    Raises:
        TypeError: ``dtype`` is no element type, or ``data`` cannot be converted to it.
        ArrayError: shape and data disagree.

    >>> import treadle as wp
    >>> a = wp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=wp.vec3)
    >>> a.shape, a[1]
    ((2,), vec3f([4.0, 5.0, 6.0]))
    """

    # `_ref`, `_capacity`, `_retain_grad`, `_left` (by a backward pass, see lang/reverse.py) and `_seen` (as NumPy shows
    # it, once a framework has asked for that) are left unset where nothing is to be said.
    __treadle_builtin__ = "array"  # what calling the class means inside a kernel
    __slots__ = ("_address", "_at", "_capacity", "_desc", "_element", "_grad", "_left", "_memory", "_ref",
                 "_retain_grad", "_seen", "component_stride", "strides")  # fmt: skip

    _retains = False  # whether any array ever asked to retain its gradient
    type: View
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: Device
    component_stride: int

    def __new__(cls, data: Any = None, dtype: Any = Any, shape: Any = None, strides: Any = None, ptr: int | None = None,
                capacity: int | None = None, device: Any = None, pinned: bool = False, copy: bool = True,
                deleter: Callable[[int, int], None] | None = None, ndim: int | None = None, grad: array | None = None,
                requires_grad: bool = False, retain_grad: bool = False,
                component_stride: int | None = None) -> Any:  # fmt: skip
        where = get_device(device)
        if data is not None:
            if ptr is not None:
                raise ArrayError("an array is made from data or from ptr, not from both")
            made = _from_values(data, dtype, shape, where, copy, pinned)
        elif ptr is not None:
            made = _from_pointer(ptr, dtype, shape, strides, component_stride, capacity, where, deleter)
        elif shape is not None:
            steps = views.forward(strides)
            made = allocate_with(element(dtype), views.normal_shape(shape), where, steps, pinned=pinned)
        else:
            return ArrayAnnotation(dtype, 1 if ndim is None else ndim)
        if grad is not None:
            made.grad = grad
        elif requires_grad and made._grad is None:
            made._adopt(_gradient_of(made))
            if not copy or ptr is not None:
                graded_late.add(made)
        if retain_grad:
            made.retain_grad = True
        return made

    def __class_getitem__(cls, item: Any) -> Any:
        return subscripted(item)

    def _become(self, made: array) -> None:
        super()._become(made)
        if made in graded_late:
            graded_late.add(self)

    # Facts -----------------------------------------------------------------------------------------------------------

    @property
    def ptr(self) -> int | None:
        """Address of the first element; None where there is none."""
        return self._address if 0 not in self.shape else None

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return views.product(self.shape) * self._element.size

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie row-major without gaps."""
        e = self._element
        dense = self.component_stride == e.component or e.inner == ()
        return dense and views.is_dense(self.shape, self.strides, e.size)

    @property
    def is_transposed(self) -> bool:
        """Whether the elements lie column-major without gaps."""
        return not self.is_contiguous and views.is_dense(self.shape[::-1], self.strides[::-1], self._element.size)

    @property
    def read_only(self) -> bool:
        """Whether the memory must not be changed, because who gave it says so: a NumPy array that is not writeable or
        a file mapped for reading, shared by ``copy=False``, an array of JAX, a DLPack tensor with that flag. Views and
        what is made of them inherit it. Kernels read such an array as any other; what writes to it raises. Beyond Warp.

        >>> import numpy as np
        >>> import treadle as wp
        >>> rows = np.arange(3.0, dtype=np.float32)
        >>> rows.flags.writeable = False
        >>> a = wp.array(rows, copy=False)
        >>> a.read_only, a[1:].read_only, wp.array(rows).read_only
        (True, True, False)
        """
        return bool(self._desc[0] & READ_ONLY)

    def _freeze(self) -> None:
        """Let an array that nobody has seen yet be read-only."""
        self._desc = bytes((self._desc[0] | READ_ONLY,)) + self._desc[1:]

    def _refuse_writes(self) -> NoReturn:
        raise ArrayError(f"{self!r} is read-only: the memory that it shares must not be changed", hint=COPY_IT)

    @property
    def memory_kind(self) -> MemoryKind:
        """What memory the elements lie in: that of the host, unless they lie on a GPU."""
        return MemoryKind(self.device.memory_kind(self._memory))

    @property
    def capacity(self) -> int:
        """Bytes of the memory that belongs to the array."""
        return getattr(self, "_capacity", self.nbytes)

    @property
    def retain_grad(self) -> bool:
        """Whether a tape keeps the gradient of this array although it is no input; only where there is a gradient."""
        return getattr(self, "_retain_grad", False) and self._grad is not None

    @retain_grad.setter
    def retain_grad(self, wanted: bool) -> None:
        if wanted and self._grad is None:
            raise ArrayError("there is no gradient to retain; set requires_grad first")
        self._retain_grad = bool(wanted)
        array._retains = array._retains or self._retain_grad

    def __repr__(self) -> str:
        name = getattr(self.dtype, "__name__", str(self.dtype))
        return f"array(shape={self.shape}, dtype={name})"

    # Host access -----------------------------------------------------------------------------------------------------

    def numpy(self) -> np.ndarray:
        """A NumPy array over the same memory, without a copy. Components of vectors and matrices are its last
        dimensions. Structs become records; bfloat16 is the type of ``ml_dtypes`` where a program has imported that,
        else its bits, uint16. The memory stays alive as long as either array does.
        """
        rows = self._rows("array.numpy()")
        return seen_as(rows) if self._element.halves else rows

    def _rows(self, what: str = "reading an array") -> np.ndarray:
        """The elements as :meth:`numpy` has them, in NumPy's words for the memory: a bfloat16 as its bits."""
        if capture.active:
            capture.refuse(what, device=self.device)
        if not self._address and self.size:
            raise ArrayError(f"{what}: the array has {self.size} elements, and its pointer is null")
        queue = self.device.queue
        return self._raw() if queue is None else queue.downloaded(self)

    def _raw(self) -> np.ndarray:
        """The same, without a look at whether the elements are what they will be."""
        e = self._element
        memory = self._memory
        if memory is None:
            memory = self._borrow()
        if not e.inner:
            return _ndarray(self.shape, e.dtype, memory, self._at, self.strides)
        component = self.component_stride
        inner = e.inner_strides if component == e.component else e.inner_steps(component)
        return _ndarray(self.shape + e.inner, e.dtype, memory, self._at, self.strides + inner)

    def _borrow(self) -> np.ndarray:
        """Byte buffer over memory that came as a bare address."""
        e = self._element
        inner = e.inner_steps(self.component_stride)
        low, high = span(self.shape + e.inner, self.strides + inner, e.dtype.itemsize)
        owner = getattr(self, "_ref", None)
        self._memory, self._at = borrow(self._address + low, high - low, owner, self.read_only), -low
        return self._memory

    def ipc_handle(self) -> bytes:
        """What another process makes an array over this memory of, with ``wp.from_ipc_handle``; for GPUs.

        Raises:
            DeviceError: the memory cannot be shared so.
        """
        return self.device.share(self)

    def cptr(self) -> Any:
        """A ctypes pointer to the first element, null where there is none. The array is contiguous, and outlives it.

        >>> import treadle as wp
        >>> wp.array([1.5, 2.5], dtype=float).cptr()[1]
        2.5
        """
        from .c_types import pointer_to

        self._dense("cptr")
        return pointer_to(self.ptr or 0, self._element.type)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.device.queue is not None:
            raise AttributeError(f"the array lies on {self.device}, which NumPy cannot reach; numpy() gives a copy")
        seen = self.numpy()
        return {**seen.__array_interface__, "strides": seen.strides}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.device.interface(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """What NumPy takes where it cannot share memory: a copy of an array that lies on a GPU."""
        return np.asarray(self.numpy(), dtype)

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:  # fmt: skip
        """A DLPack capsule over the same memory; see ``wp.to_dlpack``."""
        from .dlpack import export

        return export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Where the memory lies, in DLPack's words: the kind of device and its number."""
        return self.device.exchange_code, max(self.device.ordinal, 0)

    def __getitem__(self, key: Any) -> Any:
        """The view that ``key`` selects: an int removes its dimension. The element where all indices are ints, an
        :class:`indexedarray` where some are arrays of int32.
        """
        if isinstance(key, array) or (type(key) is tuple and any([isinstance(k, array) for k in key])):
            from .indexed import selected

            return selected(self, key)
        shape, strides, offset = views.index(self.shape, self.strides, key)
        if not shape:
            e = self._element
            if e.plain:
                return self._rows()[key].item()
            at = key if isinstance(key, tuple) else (key,)
            return to_host(self._rows()[tuple(k for k in at if k is not Ellipsis)].reshape(1, *e.inner), e)[0]
        made = self._view(shape, strides, offset)
        if self._grad is not None:
            made._adopt(self._grad._view(shape, strides, offset))
            if array._retains and self.retain_grad:
                made._retain_grad = True
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        """Store a value, a sequence or another array in the elements that ``key`` selects."""
        if isinstance(key, array) or (type(key) is tuple and any([isinstance(k, array) for k in key])):
            return self[key].assign(value)
        shape, strides, offset = views.index(self.shape, self.strides, key)
        if not shape:
            shape, strides, value = (1,), (self._element.size,), [value]
        target = self._view(shape, strides, offset)
        if watch.watchers and self._grad is not None:
            target._adopt(self._grad._view(shape, strides, offset))
        target._store(value)

    def _store(self, value: Any) -> None:
        if self._desc[0] & READ_ONLY:
            self._refuse_writes()
        if value is self:
            return
        if isinstance(getattr(value, "data", None), array):  # it is indexed
            from .indexed import take

            take(self, value)
        elif watch.watchers:
            watch.write(self, put_value, (value,), value if isinstance(value, array) else None)
        else:
            put_value(self, value)

    # Views -----------------------------------------------------------------------------------------------------------

    def _view(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, e: Element | None = None,
              component: int | None = None) -> array:  # fmt: skip
        """Another array over the same memory, ``offset`` bytes on. The gradient is not carried over."""
        e = e or self._element
        memory = self._memory
        if memory is None and self._address and self.size:
            memory = self._borrow()
        return build(e, shape, strides, self.component_stride if component is None else component,
                     self._address + offset, memory, self._at + offset, self.device,
                     getattr(self, "_ref", None) if type(self) is array else self, None,
                     self._desc[0] & READ_ONLY)  # fmt: skip

    def _as_if_writeable(self) -> array:
        """The same array without gradient for somebody who cannot be told that it is read-only, and changes nothing."""
        return build(self._element, self.shape, self.strides, self.component_stride, self._address, None, 0,
                     self.device, self, self.type)  # fmt: skip

    def _with_grad(self, change: Callable[[array], array]) -> array:
        made = change(self)
        if self._grad is not None:
            made._adopt(change(self._grad))
            if array._retains and self.retain_grad:
                made._retain_grad = True
        return made

    def _dense(self, what: str) -> None:
        if not self.is_contiguous:
            raise ArrayError(f"{what} needs an array without gaps in row-major order; call contiguous() first")

    def reshape(self, shape: Any) -> array:
        """The same elements with another shape, one extent of which may be -1. The array must be contiguous.

        Raises:
            ArrayError: the sizes differ, or the array is not contiguous.
        """
        self._dense("reshape")
        found = views.reshape(self.shape, shape)
        strides = views.dense_strides(found, self._element.size)
        return self._with_grad(lambda a: a._view(found, strides))

    def flatten(self) -> array:
        """The same elements in one dimension. The array must be contiguous."""
        if len(self.shape) == 1:
            return self
        self._dense("flatten")
        return self.reshape(self.size)

    def view(self, dtype: Any) -> array:
        """The same bytes read as another element type: one of equal size, the scalars of vectors and matrices, or
        vectors and matrices of scalars that fill the last dimensions.

        Raises:
            TypeError: the types do not fit each other.
        """
        e = element(dtype)
        shape, strides, component = views.reinterpreted(self._element, e, self.shape, self.strides,
                                                        self.component_stride)  # fmt: skip
        return self._with_grad(lambda a: a._view(shape, strides, 0, e, component))

    def transpose(self, axes: Any = None) -> array:
        """The same elements with the dimensions in another order; reversed if ``axes`` is left out."""
        order = tuple(reversed(range(self.ndim))) if axes is None else tuple(axes)
        if sorted(order) != list(range(self.ndim)):
            raise ArrayError(f"axes must name each of the {self.ndim} dimensions once, not {axes}")
        shape, strides = tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order)
        return self._with_grad(lambda a: a._view(shape, strides))

    def contiguous(self) -> array:
        """This array if it is contiguous, else a contiguous copy."""
        if self.is_contiguous:
            return self
        made = allocate(self._element, self.shape, self.device, self._grad is not None)
        made._store(self)
        return made

    def __copy__(self) -> array:
        return self._with_grad(lambda a: a._view(a.shape, a.strides))

    def __deepcopy__(self, memo: dict) -> array:
        made = allocate(self._element, self.shape, self.device, False)
        made._store(self)
        if self._grad is not None:
            made.grad = self._grad.__deepcopy__(memo)
        memo[id(self)] = made
        return made

    def __reduce__(self) -> tuple:
        return array, (np.ascontiguousarray(self._rows()), self.dtype, self.shape)

    def to(self, device: Any, requires_grad: bool | None = None) -> array:
        """This array if it lies on ``device``, else a copy there."""
        where = get_device(device)
        if where is self.device:
            return self
        made = allocate(
            self._element, self.shape, where, self.requires_grad if requires_grad is None else requires_grad
        )
        put_value(made, self)
        return made

    # Values ----------------------------------------------------------------------------------------------------------

    def zero_(self) -> None:
        """Set all bytes of all elements to zero."""
        if self._desc[0] & READ_ONLY:
            self._refuse_writes()
        if watch.watchers:
            watch.write(self, put_zeros, (), None)
        else:
            put_zeros(self)

    def _bytes(self) -> np.ndarray:
        if capture.active:
            capture.refuse("reading an array", device=self.device)
        if self.device.queue is not None:
            return np.frombuffer(self._rows().tobytes(), np.uint8)
        memory = self._borrow() if self._memory is None else self._memory
        return _ndarray((self.nbytes,), np.uint8, memory, self._at)

    def fill_(self, value: Any) -> None:
        """Set every element to ``value``: a number (for every component), a vector or matrix, or a struct instance."""
        if self._desc[0] & READ_ONLY:
            self._refuse_writes()
        rows = fill_rows(value, self._element)
        if watch.watchers:
            watch.write(self, put_rows, (np.array(rows),), None)
        else:
            put_rows(self, rows)

    def assign(self, src: Any) -> None:
        """Copy ``src``, an array or anything an array can be made from, into this array. The sizes must agree."""
        self._store(src)

    # Gradient --------------------------------------------------------------------------------------------------------

    @property
    def grad(self) -> array | None:
        """The array of the gradient, of the same shape and layout, or None."""
        return self._grad

    @grad.setter
    def grad(self, grad: array | None) -> None:
        if grad is None:
            self._grad = None
            self._describe()
            return
        if not isinstance(grad, array) or grad._element.type is not self._element.type or grad.shape != self.shape:
            raise ArrayError(f"the gradient of {self!r} must be an array of the same dtype and shape, not {grad!r}")
        if grad.strides != self.strides or grad.component_stride != self.component_stride:
            raise ArrayError(f"the gradient must have the strides of its array, {self.strides}, not {grad.strides}")
        if grad.read_only:
            grad._refuse_writes()
        self._adopt(grad)
        graded_late.add(self)

    def _adopt(self, grad: array) -> None:
        self._grad = grad
        self._describe()

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient is kept; setting it to True allocates one of zeros, to False drops it."""
        return self._grad is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if not wanted:
            self.grad = None
        elif self._grad is None:
            self._adopt(_gradient_of(self))
            graded_late.add(self)

    def _describe(self) -> None:
        """Write ``_desc`` anew. The id of a view type is its address: view types are memoised and never freed."""
        grad = self._grad
        mark = id(self.type) + self.device.mark + (self._desc[0] & READ_ONLY)
        self._desc = _PACK[len(self.shape)](mark, self._address, 0 if grad is None else grad._address,
                                            *self.shape, *self.strides, self.component_stride)  # fmt: skip


# Arrays that were given a gradient after they were made, or over memory that was there before: other arrays may show
# the same, and have no gradient or one of their own.
graded_late: weakref.WeakSet[array] = weakref.WeakSet()


def build(e: Element, shape: tuple[int, ...], strides: tuple[int, ...], component: int, ptr: int, memory: Any, at: int,
          device: Device, owner: Any = None, t: View | None = None, frozen: int = 0) -> array:  # fmt: skip
    """An array from its parts: no checks, no allocation. ``memory`` is a byte buffer with ``ptr`` at offset ``at``.
    ``frozen``: READ_ONLY where the memory must not be changed."""
    made = _new(array)
    made._element, made.shape, made.strides, made.component_stride, made._address = e, shape, strides, component, ptr
    made._memory, made._at, made.device, made._grad = memory, at, device, None
    if owner is not None:
        made._ref = owner
    made.type = t = t or e.view(strides, component)
    made._desc = _PACK[len(shape)](id(t) + device.mark + frozen, ptr, 0, *shape, *strides, component)
    return made


def allocate(e: Element, shape: tuple[int, ...], device: Device, requires_grad: bool, zeroed: bool = False,
             pinned: bool = False) -> array:  # fmt: skip
    """A new row-major array, its memory zeroed or untouched. ``pinned``: GPUs shall reach it by themselves."""
    size = e.size
    if len(shape) == 1:
        strides: tuple[int, ...] = (size,)
        nbytes = shape[0] * size
    else:
        strides = views.dense_strides(shape, size)
        nbytes = views.product(shape) * size
    memory, at, ptr = (device.pinned_memory if pinned else device.allocate)(nbytes, zeroed)
    made = build(e, shape, strides, e.component, ptr, memory, at, device, None, e.dense[len(shape)])
    if requires_grad:
        made._adopt(_gradient_of(made))
    return made


def allocate_with(e: Element, shape: tuple[int, ...], device: Device, strides: Any = None, component: int | None = None,
                  zeroed: bool = False, pinned: bool = False) -> array:  # fmt: skip
    """A new array with given strides, gaps and planes included."""
    if strides is None:
        return allocate(e, shape, device, False, zeroed, pinned)
    steps = views.checked_strides(strides, shape)
    component = e.component if component is None else component
    low, high = span(shape + e.inner, steps + e.inner_steps(component), e.dtype.itemsize)
    memory, at, ptr = (device.pinned_memory if pinned else device.allocate)(high - low, zeroed)
    made = build(e, shape, steps, component, ptr - low, memory, at - low, device)
    made._capacity = high - low
    return made


def _gradient_of(a: array) -> array:
    """A zeroed array with the layout of ``a``."""
    return allocate_with(a._element, a.shape, a.device, a.strides, a.component_stride, zeroed=True)


def _from_values(data: Any, dtype: Any, shape: Any, device: Device, copy: bool, pinned: bool = False) -> array:
    """An array of the elements of ``data``, sharing its memory where that is asked for and possible."""
    if not isinstance(data, np.ndarray) and isinstance(getattr(data, "data", None), array):  # it is indexed
        data, dtype = data.contiguous(), data.dtype if dtype is Any else dtype
    if not isinstance(data, array) and lies_far(data):
        data = shared(data)
    if isinstance(data, array):
        same = dtype is Any or element(dtype).type is data._element.type
        if same and not copy and device is data.device:
            return data._with_grad(lambda a: a._view(a.shape, a.strides)) if shape is None else data.reshape(shape)
        far = device.queue is not None and device is data.device
        if same and (watch.watchers or far):  # a copy, of which tapes are told, or that does not pass by the host
            source = data if shape is None else data.contiguous().reshape(shape)
            made = allocate(source._element, source.shape, device, False, pinned=pinned)
            made._store(source)
            return made
        dtype = data._element.cls if dtype is Any else dtype
        data = bf16_values(data._rows()) if data._element.halves and not element(dtype).halves else data._rows()
    rows, e = from_data(data, None if dtype is Any else element(dtype))
    outer = rows.shape[: rows.ndim - len(e.inner)]
    if shape is not None:
        outer = views.reshape(outer, shape)
        rows = rows.reshape(outer + e.inner)
    outer = views.normal_shape(outer)
    dense = rows.strides[len(outer) :] == e.inner_strides or 0 in rows.shape
    reachable = device.queue is None
    if not copy and reachable and isinstance(data, np.ndarray) and np.shares_memory(rows, data) and dense:
        low, high = span(rows.shape, rows.strides, e.dtype.itemsize)
        address = rows.__array_interface__["data"][0]
        frozen = not data.flags.writeable
        memory = borrow(address + low, high - low, rows, frozen)
        return build(e, outer, rows.strides[: len(outer)], e.component, address, memory, -low, device, rows, None,
                     READ_ONLY * frozen)  # fmt: skip
    made = allocate(e, outer, device, False, pinned=pinned)
    put_rows(made, rows)
    return made


def _from_pointer(ptr: int, dtype: Any, shape: Any, strides: Any, component: int | None, capacity: int | None,
                  device: Device, deleter: Callable[[int, int], None] | None) -> array:  # fmt: skip
    """An array over memory that belongs to somebody else."""
    e = element(dtype)
    if shape is None:
        raise ArrayError("an array over ptr needs a shape")
    shape = views.normal_shape(shape)
    steps = views.dense_strides(shape, e.size) if strides is None else views.checked_strides(strides, shape)
    if component is not None and isinstance(e.type, Struct):
        raise ArrayError("the fields of a struct lie together; a component stride is for vectors and matrices")
    made = build(e, shape, steps, e.component if component is None else component, int(ptr), None, 0, device)
    if capacity is not None:
        made._capacity = capacity
    if deleter is not None:
        made._ref = owner = _Owner()
        weakref.finalize(owner, deleter, made._address, made.capacity).atexit = False
    return made


class _Owner:
    """Lives as long as any array over memory with a deleter."""

    __slots__ = ("__weakref__",)
