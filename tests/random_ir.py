"""Random programs: kernels whose every path is defined, for comparing what must mean the same.

``program(seed)`` gives IR made directly; ``arguments(seed)`` arrays and numbers to run it on. A program has nested
loops, branches, leaves loops early, has vectors and matrices with run-time indices, arrays of its own, calls, and
stores at its own index or counts, so that any order of threads gives the same result.
"""

from __future__ import annotations

import random

import numpy as np

from treadle.builtins.registry import primitive
from treadle.ir import Block, Func, Value
from treadle.ir.builder import Builder
from treadle.types.core import Type, b1, f32, f64, fixed, i32, i64, matrix, u8, u32, vector, view

vec3, vec5, mat33 = vector(3, f32), vector(5, f32), matrix(3, 3, f32)
KINDS = (f32, i32, b1, vec3, vec5, mat33, f64, i64, u32, u8)
SIZE = 64  # elements of every array, a power of two so that a mask makes any integer an index
FLOAT, INTEGER = "add sub mul div min max", "add sub mul div mod floordiv min max bitand bitor bitxor shl shr"
BINARY = {f32: FLOAT, f64: FLOAT, **dict.fromkeys((i32, i64, u32, u8), INTEGER)}
UNARY = {f32: "neg abs sqrt floor", f64: "neg abs sqrt floor", i32: "neg abs invert", i64: "neg abs invert"}
PARAMS = (view(f32, 1), view(i32, 1), view(vec3, 1), view(f32, 1), view(i32, 1), view(vec3, 1), f32, i32, view(i32, 1))

for _name in f"{FLOAT} {INTEGER} neg abs sqrt floor invert eq ne lt le gt ge logical_not".split():
    primitive(_name)


def arguments(seed: int) -> list:
    """Arguments for ``program``: three arrays to read, three to write, a float, an int, and counters."""
    rng = np.random.default_rng(seed)
    floats = rng.standard_normal(SIZE).astype(np.float32)
    ints = rng.integers(-100, 100, SIZE).astype(np.int32)
    vectors = rng.standard_normal((SIZE, 3)).astype(np.float32)
    zeros = [np.zeros_like(a) for a in (floats, ints, vectors)]
    return [floats, ints, vectors, *zeros, float(np.float32(rng.standard_normal())), int(rng.integers(-9, 9)),
            np.zeros(SIZE, np.int32)]  # fmt: skip


GRID = (5, 9)  # of the kernels of rank 2: fewer threads than SIZE


def program(seed: int, size: int = 60, rank: int = 1) -> Func:
    """A random kernel of about ``size`` statements over ``PARAMS``, for up to SIZE threads, or for those of GRID."""
    rng = random.Random(seed)
    functions = [_Maker(rng, []).function(f"f{k}") for k in range(rng.randrange(3))]
    return _Maker(rng, functions).kernel(f"random{seed}", size, rank)


class _Maker:
    """Writes one function. ``scopes`` holds, by type, the values in reach, innermost scope last."""

    def __init__(self, rng: random.Random, functions: list[Func]):
        self.rng, self.functions = rng, functions
        self.scopes: list[dict[Type, list[Value]]] = [{}]
        self.b = Builder()
        self.depth = 0

    # ---- values

    def know(self, *values: Value) -> None:
        for v in values:
            self.scopes[-1].setdefault(v.type, []).append(v)

    def any(self, t: Type) -> Value:
        """A value of type ``t`` that is in reach, or a new one."""
        found = [v for scope in self.scopes for v in scope.get(t, ())]
        if found and self.rng.random() < 0.9:
            return self.rng.choice(found[-12:])
        v = self.new(t)
        self.know(v)
        return v

    def new(self, t: Type) -> Value:
        rng, b = self.rng, self.b
        if t is f32 or t is f64:
            return b.const(float(np.float32(rng.choice([0.0, -0.0, 1.0, 2.0, -0.5, rng.uniform(-3, 3)]))), t)
        if t is i32 or t is i64:
            return b.const(rng.choice([0, 1, 2, -1, rng.randrange(-9, 9)]), t)
        if t is u32 or t is u8:
            return b.const(rng.randrange(256), t)
        if t is b1:
            return b.const(rng.random() < 0.5, b1)
        return b.one("make", tuple(self.any(f32) for _ in range(t.n)), t)

    def index(self, count: int = SIZE) -> Value:
        """An index below ``count``, a power of two."""
        return self.b.one("bitand", (self.any(i32), self.b.i32(count - 1)), i32)

    def small(self, count: int) -> Value:
        """An index below any ``count``."""
        rest = self.b.one("mod", (self.any(i32), self.b.i32(count)), i32)
        return self.b.one("abs", (rest,), i32)

    # ---- statements

    def statements(self, count: int) -> None:
        for _ in range(count):
            weights = (8, 3, 2, 2, 2, 2, 2, 1, 4, 1, 1, 2 if self.depth < 3 else 0, 2 if self.depth < 2 else 0)
            (make,) = self.rng.choices(_STATEMENTS, weights)
            make(self)

    def arithmetic(self) -> None:
        t = self.rng.choice((f32, f32, f32, i32, i32, f64, i64, u32, u8))
        if t in UNARY and self.rng.random() < 0.2:
            self.know(self.b.one(self.rng.choice(UNARY[t].split()), (self.any(t),), t))
        else:
            self.know(self.b.one(self.rng.choice(BINARY[t].split()), (self.any(t), self.any(t)), t))

    def compare(self) -> None:
        t = self.rng.choice((f32, i32, f64, i64, u32, u8))
        test = self.b.one(self.rng.choice(("eq", "ne", "lt", "le", "gt", "ge")), (self.any(t), self.any(t)), b1)
        self.know(test, self.b.one("logical_not", (test,), b1))
        t = self.rng.choice(KINDS)
        self.know(self.b.one("select", (test, self.any(t), self.any(t)), t))

    def convert(self) -> None:
        a, b = self.rng.choices((f32, i32, f64, i64, u32, u8, b1), k=2)
        self.know(self.b.one("cast", (self.any(a),), b))
        a, b = self.rng.choice(((f32, i32), (i32, f32), (f32, u32), (f64, i64)))
        self.know(self.b.one("bitcast", (self.any(a),), b))

    def component(self) -> None:
        t = self.rng.choice((vec3, vec5, mat33))
        c = self.any(t)
        indices = (self.small(3), self.small(3)) if t is mat33 else (self.small(t.n),)
        match self.rng.randrange(5):
            case 0:
                self.know(self.b.one("pick", (c, *indices), f32))
            case 1:
                self.know(self.b.one("put", (c, self.any(f32), *indices), t))
            case 2:
                self.know(self.b.extract(c, self.rng.randrange(t.n)))
            case 3:
                self.know(self.b.one("insert", (c, self.any(f32)), t, index=self.rng.randrange(t.n)))
            case 4 if t is mat33:
                self.know(self.b.one("pick", (c, indices[0]), vec3))

    def composite(self) -> None:
        t = self.rng.choice((vec3, vec5))
        self.know(self.b.one(self.rng.choice(("add", "sub")), (self.any(t), self.any(t)), t))
        self.know(self.b.one(self.rng.choice(("eq", "ne")), (self.any(t), self.any(t)), b1))

    def read(self) -> None:
        if self.arrays:
            array = self.rng.choice(self.arrays[:3])
            (value,) = self.b.op("load", (array, self.index()), (array.type.elem,))
            self.know(value)

    def write(self) -> None:
        if self.arrays:
            array = self.rng.choice(self.arrays[3:])
            if self.rng.random() < 0.5:
                self.know(*self.b.op("load", (array, self.own), (array.type.elem,)))
            self.b.op("store", (array, self.own, self.any(array.type.elem)))
            if array.type.elem is vec3 and self.rng.random() < 0.5:
                part = self.b.one("field", (array,), view(f32, 1, (12,)), index=self.rng.randrange(3))
                self.b.op("store", (part, self.own, self.any(f32)))

    def call(self) -> None:
        if self.functions:
            f = self.rng.choice(self.functions)
            args = tuple(self.any(p.type) for p in f.params)
            self.know(*self.b.op("call", args, tuple(y.type for y in f.body.yields), func=f))

    def piece(self) -> None:
        """An element of a slice."""
        if self.arrays:
            array, step = self.rng.choice(self.arrays[:3]), self.rng.choice((1, 2, 3, -1))
            start = self.b.one("add", (self.index(8), self.b.i32(20)), i32)
            rest = (start, self.b.i32(step), self.b.i32(8))
            strides = (array.type.elem.size * step,) if self.rng.random() < 0.5 else (None,)
            cut = self.b.one("slice", (array, *rest), view(array.type.elem, 1, strides), axis=0)
            self.know(*self.b.op("load", (cut, self.index(8)), (array.type.elem,)))

    def count(self) -> None:
        """An update of a counter that any thread may update."""
        if self.arrays:
            self.b.op("atomic", (self.counters, self.index(), self.any(i32)), (i32,), op="add")

    def own_array(self) -> None:
        elem = self.rng.choice((f32, vec3))
        (array,) = self.b.op("local", (), (view(elem, 1, space="local"),), type=fixed(elem, (8,)))
        for _ in range(self.rng.randrange(1, 4)):
            self.b.op("store", (array, self.index(8), self.any(elem)))
        if self.rng.random() < 0.8:
            self.know(*self.b.op("load", (array, self.index(8)), (elem,)))

    # ---- regions

    def region(self, params: tuple[Value, ...], yields: tuple[Type, ...], count: int, first: bool = False) -> Block:
        """A block of ``count`` statements over ``params``; ``first``: its first yield leaves a loop now and then."""
        outer, self.b = self.b, Builder()
        self.scopes.append({})
        self.depth += 1
        self.know(*params)
        self.statements(count)
        made = tuple(self.any(t) for t in yields)
        if first:
            made = (self.b.one("lt", (self.any(f32), self.any(f32)), b1), *made)
        block = self.b.block(params, made)
        self.depth -= 1
        self.scopes.pop()
        self.b = outer
        return block

    def branch(self) -> None:
        types = tuple(self.rng.choices(KINDS, k=self.rng.randrange(3)))
        c = self.any(b1)
        arms = tuple(self.region((), types, self.rng.randrange(5)) for _ in range(2))
        self.know(*self.b.op("if", (c,), types, arms))

    def loop(self) -> None:
        rng, b = self.rng, self.b
        types = tuple(rng.choices(KINDS, k=rng.randrange(1, 4)))
        start = tuple(self.any(t) for t in types)
        params = tuple(Value(t) for t in types)
        if rng.random() < 0.7:
            stays = rng.random() < 0.4
            stop = self.small(6) if rng.random() < 0.5 else b.i32(rng.randrange(6))
            bounds = (b.i32(rng.randrange(3)), stop, b.i32(1))
            body = self.region((Value(i32), *params), types, rng.randrange(1, 6), stays)
            attrs = {"stays": True} if stays else {}
            self.know(*b.op("for", (*bounds, *start), types, (body,), **attrs))
            return
        counter, zero = Value(i32), b.i32(0)
        body = self.region((counter, *params), (i32, *types), rng.randrange(1, 6), True)
        inner = Builder()
        inner.ops = list(body.ops)
        after = inner.one("add", (counter, inner.i32(1)), i32)
        below = inner.one("lt", (after, inner.i32(5)), b1)
        stay = inner.one("bitand", (below, body.yields[0]), b1)
        body = Block(body.params, tuple(inner.ops), (stay, after, *body.yields[2:]))
        self.know(*b.op("while", (zero, *start), (i32, *types), (body,)))

    # ---- functions

    arrays: tuple[Value, ...] = ()

    def function(self, name: str) -> Func:
        params = tuple(Value(t) for t in self.rng.choices((f32, i32, vec3), k=self.rng.randrange(1, 4)))
        self.know(*params)
        self.statements(self.rng.choice((4, 8, 30)))
        results = tuple(self.any(t) for t in self.rng.choices((f32, vec3), k=self.rng.randrange(1, 4)))
        return Func(name, "function", params, self.b.block((), results))

    def kernel(self, name: str, size: int, rank: int) -> Func:
        params = tuple(Value(t) for t in PARAMS)
        self.arrays = params[:6]
        self.own = self.b.one("tid", (), i32, axis=0)
        if rank == 2:
            column, row = self.b.one("tid", (), i32, axis=1), self.own
            start = self.b.one("mul", (row, self.b.i32(GRID[1])), i32)
            self.own = self.b.one("add", (start, column), i32)
            self.know(row, column)
        self.know(self.own, *params[6:8])
        self.counters = params[8]
        self.statements(size)
        for array in self.arrays[3:]:
            self.b.op("store", (array, self.own, self.any(array.type.elem)))
        return Func(name, "kernel", params, self.b.block(), PARAMS, tuple("abcxyzskn"), {"ndim": rank})


_STATEMENTS = (
    _Maker.arithmetic, _Maker.compare, _Maker.convert, _Maker.component, _Maker.composite, _Maker.read, _Maker.write,
    _Maker.own_array, _Maker.call, _Maker.piece, _Maker.count, _Maker.branch, _Maker.loop,
)  # fmt: skip
