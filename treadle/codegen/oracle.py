"""The meaning of every op: a plain interpreter of the IR, before or after ``scalarize``.

Threads run one after the other in linear order, each to its end. Scalars are NumPy scalars, computed by the ``ref`` of
their builtin; composites are tuples of their direct parts; a view is a :class:`Ref` to real memory, so that addresses,
views in structs and arrays given by pointer work as they do in machine code. Where machine code leaves a wrong index
undefined, the oracle raises.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..base.errors import (
    IndexOutOfRange,
    InternalError,
    KernelAssertionError,
    LaunchTypeError,
    TreadleError,
    UnassignedError,
)
from ..builtins.registry import primitive
from ..ir.node import Block, Func, Op, Value
from ..ir.scalars import boxed, converted, dtype_of
from ..types.core import STR, Fixed, Matrix, Scalar, Struct, Type, Vector, View, b1, bf16
from ..types.layout import children, leaves, offsets
from .oracle_block import SharedBlock

__all__ = ["Outcome", "Ref", "run"]


@dataclass(frozen=True, slots=True)
class Ref:
    """A view as a value: the address of its first element, its shape, and strides in bytes.

    ``plane``: bytes between the components of an element that lies in planes. ``keep`` holds the memory alive.
    """

    data: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    plane: int = 0
    grad: int = 0
    keep: Any = None


@dataclass(slots=True)
class Outcome:
    """What a run gave: per thread the values that the function yields (none for a kernel), and the printed text.
    ``counts``: how often each op was done, if that was asked for."""

    values: list[tuple] = field(default_factory=list)
    printed: str = ""
    counts: Counter[Op] | None = None


def run(func: Func, args: Sequence[Any], dim: int | Sequence[int] = 1, counted: bool = False) -> Outcome:
    """Run ``func`` for a grid of ``dim`` threads; arrays change in place.

    ``args``: one for each type of ``func.signature`` (or parameter): NumPy arrays for views, with the components of
    vectors and matrices as last dimensions and structured dtypes for structs, or a pair (array, gradient) of these;
    numbers; sequences for composites; dicts or sequences for structs. ``counted``: count how often ops are done. Raises
    the error of the first check that does not hold, and :class:`IndexOutOfRange` for an access outside a view.
    """
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    count = func.facts.get("threads", 1)
    signature = func.signature or tuple(p.type for p in func.params)
    given = [_argument(a, t) for a, t in zip(args, signature, strict=True)]
    if tuple(p.type for p in func.params) != signature:
        given = [leaf for a, t in zip(given, signature) for leaf in _flat(a, t)]
    outcome = Outcome(counts=Counter() if counted else None)
    with np.errstate(all="ignore"):
        for place in itertools.product(*map(range, dims)):
            if count == 1:
                outcome.values.append(_Thread(place, outcome).call(func, given))
            else:
                _run_block(func, given, place, outcome, SharedBlock(count))
    return outcome


def _run_block(func: Func, given: list[Any], place: tuple[int, ...], outcome: Outcome, block: SharedBlock) -> None:
    """One thread of the grid, as the threads of a block do its work (``passes/blocks``)."""
    outcome.values += block.run(lambda lane: _Thread(place, outcome, lane, block).call(func, given))[:1]


# ---- arguments and memory


def _argument(a: Any, t: Type) -> Any:
    """A host value as a value of type ``t``."""
    match t:
        case Scalar():
            return boxed(a, t)
        case View():
            if isinstance(a, Ref):
                return a
            if isinstance(a, tuple):
                own, grad = (_reference(x, t) for x in a)
                return replace(own, grad=grad.data, keep=(own.keep, grad.keep))
            return _reference(np.asarray(a), t)
        case Struct():
            fields = [a[n] for n, _ in t.fields] if isinstance(a, dict) else a
            return tuple(_argument(x, ft) for x, (_, ft) in zip(fields, t.fields, strict=True))
        case Vector() | Matrix():
            return tuple(boxed(x, t.elem) for x in np.asarray(a).reshape(t.n))
        case _:
            return tuple(_argument(x, part) for x, part in zip(a, children(t), strict=True))


def _reference(a: np.ndarray, t: View) -> Ref:
    inner = {Vector: 1, Matrix: 2}.get(type(t.elem), 0)
    if a.ndim != t.ndim + inner:
        raise LaunchTypeError(f"an array with {t.ndim + inner} dimensions is due for {t}, not {a.ndim}")
    strides = a.strides[: t.ndim]
    if any(s not in (None, r) and n > 1 for s, r, n in zip(t.strides, strides, a.shape)):
        raise LaunchTypeError(f"strides {strides} are not those of {t}")
    return Ref(a.ctypes.data, a.shape[: t.ndim], strides, a.strides[-1] if t.planar else 0, 0, a)


def _read_scalar(address: int, t: Scalar) -> np.generic:
    raw = (ctypes.c_char * t.size).from_address(address)
    if t is bf16:
        return np.uint32(int(np.frombuffer(raw, np.uint16)[0]) << 16).view(np.float32)
    if t is b1:
        return np.bool_(raw[0] != b"\0")
    return np.frombuffer(raw, dtype_of(t))[0]


def _write_scalar(address: int, x: np.generic, t: Scalar) -> None:
    data = x.view(np.uint32).astype(np.uint64) >> 16 if t is bf16 else x
    raw = data.astype(np.uint16).tobytes() if t is bf16 else data.tobytes()
    ctypes.memmove(address, raw, t.size)


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _read(address: int, t: Type, plane: int = 0) -> Any:
    if isinstance(t, Scalar):
        return _read_scalar(address, t)
    if isinstance(t, View):
        words = [_word(address + 8 * k) for k in range(3 + 2 * t.ndim)]
        return Ref(words[0], tuple(words[2 : 2 + t.ndim]), tuple(words[2 + t.ndim : -1]), words[-1], words[1])
    places = [k * plane for k in range(t.n)] if plane else offsets(t)
    return tuple(_read(address + at, part) for at, part in zip(places, children(t)))


def _write(address: int, x: Any, t: Type, plane: int = 0) -> None:
    if isinstance(t, Scalar):
        return _write_scalar(address, x, t)
    if isinstance(t, View):
        words = (x.data, x.grad, *x.shape, *x.strides, x.plane)
        ctypes.memmove(address, np.array(words, np.int64).tobytes(), t.size)
        return None
    places = [k * plane for k in range(t.n)] if plane else offsets(t)
    for at, part, p in zip(places, children(t), x):
        _write(address + at, p, part)
    return None


def _flat(x: Any, t: Type) -> list[Any]:
    """The leaves of a value."""
    if isinstance(t, Scalar | View):
        return [x]
    return [leaf for part, pt in zip(x, children(t)) for leaf in _flat(part, pt)]


def _nested(values: Any, t: Type) -> Any:
    """The value with these leaves, taken from an iterator."""
    if isinstance(t, Scalar | View):
        return next(values)
    return tuple(_nested(values, part) for part in children(t))


def _locate(v: Ref, indices: Sequence[Any], op: Op) -> int:
    """The address of an element."""
    address = v.data
    for axis, (i, n, stride) in enumerate(zip(indices, v.shape, v.strides)):
        i = int(i)
        if not 0 <= i < n:
            raise IndexOutOfRange(f"index {i} on axis {axis} of an array of shape {v.shape}", op.span)
        address += i * stride
    return address


# ---- threads

_ERRORS: dict[str, type[TreadleError]] = {
    "assert": KernelAssertionError, "index": IndexOutOfRange, "unassigned": UnassignedError,
    "component": IndexOutOfRange,
}  # fmt: skip
_UPDATES = {"add": "add", "sub": "sub", "min": "min", "max": "max", "and": "bitand", "or": "bitor", "xor": "bitxor"}


class _Thread:
    """One thread: its place on the grid, the values of the function it is in, and the stack and log of its gang.
    ``lane``: its number in ``block``, if it shares one."""

    def __init__(self, place: tuple[int, ...], outcome: Outcome, lane: int = 0, shared: SharedBlock | None = None):
        self.place, self.outcome, self.lane, self.shared = place, outcome, lane, shared
        self.stack: list[tuple[int, tuple]] = []
        self.log: list[tuple[int, tuple]] = []
        self.cursor = 0
        self.env: dict[Value, Any] = {}

    def call(self, func: Func, args: Sequence[Any]) -> tuple:
        outer, self.env = self.env, dict(zip(func.params, args, strict=True))
        try:
            return self.block(func.body)
        finally:
            self.env = outer

    def get(self, values: tuple[Value, ...]) -> list[Any]:
        return [self.env[v] for v in values]

    def block(self, block: Block, params: Sequence[Any] = ()) -> tuple:
        self.env.update(zip(block.params, params, strict=True))
        if self.outcome.counts is not None:
            self.outcome.counts.update(block.ops)
        for op in block.ops:
            rule = _RULES.get(op.name)
            values = rule(self, op, self.get(op.args)) if rule else (_primitive(op, self.get(op.args)),)
            if op.results:
                self.env.update(zip(op.results, values, strict=True))
        return tuple(self.get(block.yields))


def _by_part(f: Callable[..., Any], xs: list[Any], t: Type) -> Any:
    """``f`` on scalars, component by component where ``t`` is a composite; scalars go with each component."""
    if isinstance(t, Scalar):
        return boxed(f(*xs), t)
    parts = children(t)
    return tuple(_by_part(f, [x[k] if isinstance(x, tuple) else x for x in xs], p) for k, p in enumerate(parts))


def _primitive(op: Op, xs: list[Any]) -> Any:
    if any(x is None for x in xs):
        return None  # computed ahead from what nobody may look at, and not looked at either
    meaning = primitive(op.name).part("ref")
    if isinstance(op.result.type, Scalar) and isinstance(xs[0], tuple):  # comparison of composites
        tests = [meaning(a, b) for a, b in zip(*[_flat(x, a.type) for x, a in zip(xs, op.args)])]
        return np.bool_(all(tests) if op.name == "eq" else any(tests))
    return _by_part(meaning, xs, op.result.type)


def _const(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    value, t = op.attrs["value"], op.result.type
    return (value if t is STR else boxed(value, t),)


def _poison(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (None,)


def _make(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (tuple(xs),)


def _extract(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (None if xs[0] is None else xs[0][op.attrs["index"]],)


def _insert(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    parts = list(xs[0]) if xs[0] is not None else [None] * len(children(op.result.type))
    parts[op.attrs["index"]] = xs[1]
    return (tuple(parts),)


def _span_of_parts(t: Type, indices: list[Any], op: Op) -> slice:
    """Which of the direct parts of ``t`` the indices mean; one index of a matrix means a row."""
    shape = (t.n,) if isinstance(t, Vector) else (t.rows, t.cols) if isinstance(t, Matrix) else t.shape
    flat = 0
    for axis, (extent, i) in enumerate(zip(shape, indices)):
        if not 0 <= i < extent:
            raise IndexOutOfRange(f"index {i} on axis {axis} of a {t}", op.span)
        flat = flat * extent + int(i)
    width = t.cols if isinstance(t, Matrix) and len(indices) == 1 else 1
    return slice(flat * width, (flat + 1) * width)


def _pick(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    found = xs[0][_span_of_parts(op.args[0].type, xs[1:], op)]
    return (found if isinstance(op.result.type, Vector) and isinstance(op.args[0].type, Matrix) else found[0],)


def _put(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    t = op.args[0].type
    parts, where = [*(xs[0] or [None] * len(children(t)))], _span_of_parts(t, xs[2:], op)  # a poison has no parts yet
    parts[where] = xs[1] if isinstance(xs[1], tuple) and where.stop - where.start > 1 else (xs[1],)
    return (tuple(parts),)


def _cast(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    if xs[0] is None:
        return (None,)
    values = iter(_flat(xs[0], op.args[0].type))
    made = [converted(x, leaf.type) for x, leaf in zip(values, leaves(op.result.type))]
    return (_nested(iter(made), op.result.type),)


def _bitcast(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    if xs[0] is None:
        return (None,)
    raw = ctypes.create_string_buffer(8)
    _write_scalar(ctypes.addressof(raw), xs[0], op.args[0].type)
    return (_read_scalar(ctypes.addressof(raw), op.result.type),)


def _select(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (xs[1] if xs[0] else xs[2],)


def _tid(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (np.int32(thread.place[op.attrs["axis"]]),)


def _lanes_any(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (xs[0],)  # a gang of one


def _lane(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (np.int32(thread.lane),)


def _barrier(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    if thread.shared is None:
        raise InternalError("a barrier outside of a block", op.span)
    thread.shared.wait(thread.lane, op)
    return ()


# ---- views


def _local(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    t = op.attrs["type"]
    if op.attrs.get("shared") and thread.shared is not None:
        return (thread.shared.arrays.setdefault(op, Ref(*_allocate(t))),)
    return (Ref(*_allocate(t)),)


def _allocate(t: Fixed) -> tuple[int, tuple[int, ...], tuple[int, ...], int, int, Any]:
    memory = np.zeros(max(t.size, 1), np.uint8)
    return memory.ctypes.data, t.shape, _row_major(t.shape, t.elem.size), 0, 0, memory


def _row_major(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    strides = []
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(reversed(strides))


def _element(thread: _Thread, op: Op, v: Ref, indices: Sequence[Any]) -> int:
    """The address of the element that ``op`` touches."""
    t = op.args[0].type
    address = _locate(v, indices, op)
    if thread.shared is not None and not t.planar:
        thread.shared.touch(thread.lane, address, t.elem.size, op.name, op)
    return address


def _shuffle(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    if thread.shared is None:
        raise InternalError("a shuffle outside of a block", op.span)
    return (thread.shared.exchange(thread.lane, op, xs[0]),)


def _load(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    v, t = xs[0], op.args[0].type
    value = _read(_element(thread, op, v, xs[1:]), t.elem, v.plane if t.planar else 0)
    whole = len(op.results) == 1 and op.results[0].type is t.elem
    return (value,) if whole else tuple(_flat(value, t.elem))


def _store(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    v, t = xs[0], op.args[0].type
    values = xs[1 + t.ndim :]
    whole = len(values) == 1 and op.args[-1].type is t.elem
    value = values[0] if whole else _nested(iter(values), t.elem)
    _write(_element(thread, op, v, xs[1 : 1 + t.ndim]), value, t.elem, v.plane if t.planar else 0)
    return ()


def _atomic(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    v, t, kind = xs[0], op.args[0].type, op.attrs["op"]
    address, plane = _element(thread, op, v, xs[1 : 1 + t.ndim]), v.plane if t.planar else 0
    old = _read(address, t.elem, plane)
    x, *rest = xs[1 + t.ndim :]
    if kind == "exch":
        new = x
    elif kind == "cas":
        new = rest[0] if old == x else old
    else:
        new = _by_part(primitive(_UPDATES[kind]).part("ref"), [old, x], t.elem)
    _write(address, new, t.elem, plane)
    return (old,)


def _subview(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    v, *indices = xs
    first = op.attrs.get("axis", 0)
    last = first + len(indices)
    cut = replace(v, shape=v.shape[first:], strides=v.strides[first:])
    return (replace(v, data=_locate(cut, indices, op), shape=(*v.shape[:first], *v.shape[last:]),
                    strides=(*v.strides[:first], *v.strides[last:])),)  # fmt: skip


def _slice(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    v, start, step, length = xs[0], *map(int, xs[1:])
    axis = op.attrs["axis"]
    stride = v.strides[axis]
    return (replace(v, data=v.data + start * stride if length > 0 else v.data,
                    shape=(*v.shape[:axis], length, *v.shape[axis + 1 :]),
                    strides=(*v.strides[:axis], stride * step, *v.strides[axis + 1 :])),)  # fmt: skip


def _field(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    (v,), t, index = xs, op.args[0].type, op.attrs["index"]
    return (replace(v, data=v.data + (index * v.plane if t.planar else offsets(t.elem)[index]), plane=0),)


def _parts(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    (v,), t = xs, op.args[0].type
    shape = (t.elem.n,) if isinstance(t.elem, Vector) else (t.elem.rows, t.elem.cols)
    strides = _row_major(shape, v.plane if t.planar else t.elem.elem.size)
    return (replace(v, shape=v.shape + shape, strides=v.strides + strides, plane=0),)


def _shape(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (np.int32(xs[0].shape[op.attrs["axis"]]),)


def _address(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (np.uint64(xs[0].data),)


def _view_at(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    t, (data, *sizes) = op.result.type, map(int, xs)
    shape = tuple(sizes[: t.ndim])
    return (Ref(data, shape, tuple(sizes[t.ndim :]) or _row_major(shape, t.elem.size)),)


# ---- control flow


def _if(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return thread.block(op.regions[0 if xs[0] else 1])


def _for(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    """Runs while the counter lies before the stop, seen along the step; never if the step is 0."""
    start, stop, step = map(int, xs[:3])
    carried, kind = tuple(xs[3:]), dtype_of(op.args[0].type)
    for i in range(start, stop, step) if step else ():
        carried = thread.block(op.regions[0], (kind(i), *carried))
        if op.attrs.get("stays"):
            stay, *carried = carried
            if not stay:
                break
    return tuple(carried)


def _while(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    stay, carried = True, xs
    while stay:
        stay, *carried = thread.block(op.regions[0], carried)
    return tuple(carried)


def _call(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return thread.call(op.attrs["func"], xs)


# ---- gradients: memory beside memory, and the gang's stack and log


def _grad(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (replace(xs[0], data=xs[0].grad, grad=0),)


def _has_grad(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (np.bool_(xs[0].grad != 0),)


def _lanes_max(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (xs[0],)  # a gang of one


def _push(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    thread.stack.append((op.attrs["site"], tuple(xs)))
    return ()


def _pop(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return _of_site(op, *thread.stack.pop())


def _record(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    thread.log.append((op.attrs["site"], tuple(xs)))
    return ()


def _recall(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    thread.cursor += 1
    return _of_site(op, *thread.log[thread.cursor - 1])


def _of_site(op: Op, site: int, values: tuple) -> tuple:
    if site != op.attrs["site"]:
        raise InternalError(f"{op.name} of site {op.attrs['site']} met values of site {site}", op.span)
    return values


def _mark(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    return (np.int64(thread.cursor if op.attrs.get("read") else len(thread.log)),)


def _seek(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    thread.cursor = int(xs[0])
    return ()


def _print(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    # The lengths of C's conversions, as in %lld, mean nothing here.
    text = re.sub(r"(%[-+ #0-9.*]*)(?:hh?|ll?|[Lqjzt])(?=[a-zA-Z])", r"\1", op.attrs["format"])
    thread.outcome.printed += text % tuple(x if isinstance(x, str) else x.item() for x in xs)
    return ()


def _check(thread: _Thread, op: Op, xs: list[Any]) -> tuple:
    if not xs[0]:
        raise _ERRORS.get(op.attrs["kind"], InternalError)(op.attrs["message"], op.span)
    return ()


_RULES: dict[str, Callable[[_Thread, Op, list[Any]], tuple]] = {
    "const": _const, "poison": _poison, "make": _make, "extract": _extract, "insert": _insert, "pick": _pick,
    "put": _put, "cast": _cast, "bitcast": _bitcast, "select": _select, "tid": _tid, "lanes_any": _lanes_any,
    "lane": _lane, "barrier": _barrier, "shuffle": _shuffle,
    "local": _local, "load": _load, "store": _store, "atomic": _atomic, "subview": _subview, "slice": _slice,
    "field": _field, "parts": _parts, "shape": _shape, "address": _address, "view_at": _view_at, "if": _if, "for": _for,
    "while": _while, "call": _call, "print": _print, "check": _check, "grad": _grad, "has_grad": _has_grad,
    "lanes_max": _lanes_max, "push": _push, "pop": _pop, "record": _record, "recall": _recall, "mark": _mark,
    "seek": _seek,
}  # fmt: skip
