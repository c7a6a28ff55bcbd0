"""Running scalarized IR without the rest of the house: build, load, call, compare gang widths."""

from __future__ import annotations

import ctypes
import struct

import llvmlite.binding as llvm
import numpy as np

import treadle.builtins.operators
import treadle.builtins.scalar  # noqa: F401  (declare their ops)
from treadle.base.target import Target
from treadle.codegen import cpu
from treadle.codegen.emit.unit import Options
from treadle.ir.builder import Builder
from treadle.ir.node import Block, Func, Value
from treadle.types.core import Matrix, Scalar, Struct, Vector, View, b1, i32, view
from treadle.types.layout import leaves, offsets, pack
from treadle.types.records import SLOTS

WIDTHS = (1, 4, 8, 16)


class KernelBuilder:
    """A kernel written op by op: ``k = KernelBuilder((view(f32, 1), f32))``, then ``k.add(a, b)`` and so on."""

    def __init__(self, signature, ndim: int = 1, names=()):
        self.signature = tuple(signature)
        self.params = tuple(Value(leaf.type) for t in self.signature for leaf in leaves(t))
        self.names = tuple(names) or tuple(f"p{i}" for i in range(len(self.signature)))
        self.ndim = ndim
        self.b = Builder()

    def tid(self, axis: int = 0) -> Value:
        return self.b.one("tid", (), i32, axis=axis)

    def const(self, value, t: Scalar) -> Value:
        return self.b.const(value, t)

    def op(self, name: str, *args: Value) -> Value:
        kind = b1 if name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_not") else args[0].type
        return self.b.one(name, args, kind)

    def cast(self, x: Value, t: Scalar) -> Value:
        return self.b.one("cast", (x,), t)

    def select(self, c: Value, a: Value, b: Value) -> Value:
        return self.b.one("select", (c, a, b), a.type)

    def load(self, v: Value, *indices: Value):
        assert isinstance(v.type, View)
        found = self.b.op("load", (v, *indices), tuple(leaf.type for leaf in leaves(v.type.elem)))
        return found[0] if len(found) == 1 else found

    def store(self, v: Value, indices, *xs: Value) -> None:
        self.b.op("store", (v, *indices, *xs))

    def region(self, params, write) -> Block:
        """A block: ``write(*params)`` makes its ops and gives back what it yields."""
        outer, self.b = self.b, Builder()
        try:
            return self.b.block(tuple(params), tuple(write(*params)))
        finally:
            self.b = outer

    def if_(self, c: Value, then, other=lambda: ()):
        a, b = self.region((), then), self.region((), other)
        found = self.b.op("if", (c,), tuple(y.type for y in a.yields), (a, b))
        return found[0] if len(found) == 1 else found

    def while_(self, inits, write):
        """``write(*carried)`` gives (stay, carried…)."""
        body = self.region([Value(x.type) for x in inits], write)
        return self.b.op("while", tuple(inits), tuple(x.type for x in inits), (body,))

    def for_(self, start, stop, step, inits, write, stays: bool = False):
        body = self.region([Value(start.type), *[Value(x.type) for x in inits]], write)
        attrs = {"stays": True} if stays else {}
        return self.b.op("for", (start, stop, step, *inits), tuple(x.type for x in inits), (body,), **attrs)

    def func(self) -> Func:
        return Func("kernel", "kernel", self.params, Block((), tuple(self.b.ops), ()), self.signature, self.names,
                    {"ndim": self.ndim})  # fmt: skip


_engine = None


def engine():
    global _engine
    if _engine is None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _engine = llvm.create_lljit_compiler()
    return _engine


_count = 0


class Entry:
    """A built kernel in this process."""

    def __init__(self, func: Func, width: int, options: Options | None = None, target: Target | None = None):
        global _count
        _count += 1
        self.func, symbol = func, f"kernel{_count}"
        self.target = target or cpu.host_target(width)
        self.binary = cpu.build(func, self.target, options, symbol)
        library = llvm.JITLibraryBuilder().add_object_img(self.binary.code).add_current_process()
        self.tracker = library.export_symbol(symbol).link(engine(), symbol)
        kind = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        )
        self.call = kind(self.tracker[symbol])
        self.stop = ctypes.c_int32(0)
        self.fault = (ctypes.c_int64 * 11)()
        self.log = (ctypes.c_int64 * 3)()

    def arguments(self, args) -> ctypes.Array:
        starts, size = pack(self.func.signature)
        out = bytearray(size)
        for t, at, x in zip(self.func.signature, starts, args, strict=True):
            data = packed(t, x)
            out[at : at + len(data)] = data
        return ctypes.create_string_buffer(bytes(out), max(size, 8))

    def __call__(self, dims, *args, begin: int = 0, end: int | None = None, slots: bool = False) -> int:
        dims = tuple(dims) if isinstance(dims, tuple | list) else (dims,)
        size = int(np.prod(dims))
        shape = [*dims, *[1] * (5 - len(dims))][:4]
        launch = (ctypes.c_int64 * 10)(
            size, *shape, ctypes.addressof(self.stop), ctypes.addressof(self.fault), ctypes.addressof(self.log), 0, 0
        )
        buffer = self.arguments(args)
        private = _Private(self.binary.meta["atomics"], args, slots)
        status = self.call(
            ctypes.addressof(buffer), ctypes.addressof(launch), begin, size if end is None else end, private.address
        )
        private.merge()
        return status


class _Private:
    """Private memory of one chunk, as the launch driver makes it: copies and counters are the arrays themselves, sums
    are merged by halves, slots too where the launch has some."""

    def __init__(self, items, args, slots):
        self.items, self.sums = items, []
        pointers = []
        for item in items:
            kept = None
            if item["kind"] in ("copy", "count"):
                pointers.append(_target(item, args).ctypes.data)
            elif item["kind"] == "slots":
                array = _target(item, args)
                if slots:
                    kept = array, np.full((array.size, SLOTS), -0.0, array.dtype)
                pointers.append(kept[1].ctypes.data if slots else 0)
            else:
                t = np.dtype(f"{item['scalar'][0]}{int(item['scalar'][1:]) // 8}")
                area = np.zeros(64 + 64 * 8, np.uint8)
                part = area[64 : 64 + 64 * t.itemsize].view(t)
                part[:] = identity(item["op"], t)
                kept = area, part
                pointers.append(area.ctypes.data)
            self.sums.append(kept)
        self.pointers = np.array(pointers or [0], np.int64)
        self.address = self.pointers.ctypes.data

    def merge(self) -> None:
        for item, found in zip(self.items, self.sums, strict=True):
            if found is None:
                continue
            area, part = found
            apply = _APPLY[item["op"]]
            if item["kind"] == "slots":
                area += _folded(np.add, part.T).reshape(area.shape)
                continue
            address = int(area[:8].view(np.int64)[0])
            if not address:
                continue
            kind = np.ctypeslib.as_ctypes_type(part.dtype)
            target = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(kind)), (1,))
            target[0] = apply(target[0], _folded(apply, part))


_APPLY = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
          "xor": np.bitwise_xor}  # fmt: skip


def _target(item, args) -> np.ndarray:
    array = args[item["path"][0]]
    return array[item["path"][-1] == "grad"] if isinstance(array, tuple) else array


def _folded(apply, parts: np.ndarray):
    """``parts`` put together by halves."""
    while len(parts) > 1:
        parts = apply(parts[: len(parts) // 2], parts[len(parts) // 2 :])
    return parts[0]


def identity(op: str, t: np.dtype):
    """The value that leaves others unchanged."""
    if op in ("add", "or", "xor"):
        return 0
    if op == "and":
        return ~t.type(0)
    limits = np.finfo(t) if t.kind == "f" else np.iinfo(t)
    return limits.max if op == "min" else limits.min


_CODES = {"bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
          "f16": "e", "f32": "f", "f64": "d"}  # fmt: skip


def packed(t, x) -> bytes:
    """An argument as a kernel reads it. Arrays of vectors have their components as last axes; planar ones too. A pair
    is an array and its gradient, a list the fields of a struct."""
    if isinstance(t, View):
        x, gradient = x if isinstance(x, tuple) else (x, None)
        grad = 0 if gradient is None else gradient.ctypes.data
        strides = list(x.strides[: t.ndim])
        component = x.strides[-1] if t.planar else 0
        return struct.pack(f"<{3 + 2 * t.ndim}q", x.ctypes.data, grad, *x.shape[: t.ndim], *strides, component)
    if isinstance(t, Scalar):
        return struct.pack("<" + _CODES[t.name], x)
    if isinstance(t, Struct):
        out = bytearray(t.size)
        for at, (_, kind), value in zip(offsets(t), t.fields, x, strict=True):
            data = packed(kind, value)
            out[at : at + len(data)] = data
        return bytes(out)
    if isinstance(t, Vector | Matrix):
        return b"".join(packed(t.elem, y) for y in np.ravel(x))
    raise TypeError(t)


def arrays_of(args) -> list[np.ndarray]:
    """The arrays among the arguments, each gradient after its array."""
    flat = [a for given in args for a in (given if isinstance(given, tuple) else (given,))]
    return [a for a in flat if isinstance(a, np.ndarray)]


def same_on_all_widths(func: Func, dims, make, options: Options | None = None, widths=WIDTHS, **launch):
    """Run ``func`` on ``make()`` for every width; the arguments after the run, equal bit for bit."""
    first = None
    for width in widths:
        args = make()
        assert Entry(func, width, options)(dims, *args, **launch) == 0
        arrays = arrays_of(args)
        if first is None:
            first = arrays
        else:
            for a, b in zip(first, arrays, strict=True):
                assert a.tobytes() == b.tobytes(), f"width {width} differs from width {widths[0]}"
    return first


def agrees_with_oracle(func: Func, dims, make, *found) -> None:
    """Whether the last arrays of ``make()``, after the oracle ran ``func`` on them, are ``found`` bit for bit."""
    from treadle.codegen import oracle

    args = make()
    oracle.run(func, args, dims)
    arrays = arrays_of(args)
    for a, b in zip(arrays[-len(found) :], found, strict=True):
        assert a.tobytes() == b.tobytes()


__all__ = ["WIDTHS", "Entry", "KernelBuilder", "agrees_with_oracle", "same_on_all_widths", "view"]
