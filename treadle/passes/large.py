"""Vectors and matrices too large for registers, and tiles, live in arrays of the thread's own; ops on them are loops.

A tile of any size gets an array: where all its indices are known, ``promote_arrays`` makes values of it again.
"""

from __future__ import annotations

from typing import Any

from ..base.errors import InternalError
from ..base.span import Span
from ..ir.node import NO_ATTRS, Block, Func, Op, Value
from ..ir.ops import STRUCTURAL
from ..ir.walk import ops_of, with_body
from ..types.core import Matrix, Scalar, Tile, Type, Vector, b1, fixed, i32, vector, view

__all__ = ["LARGEST", "place_large"]

LARGEST = 36  # scalars of a composite that is still held in registers: a 6 × 6 matrix
UNROLLED = 16  # components of a tile that are copied or computed one after the other, without a loop


def is_large(t: Type) -> bool:
    """Whether values of ``t`` are placed in memory."""
    return isinstance(t, Tile) or isinstance(t, Vector | Matrix) and t.n > LARGEST


def place_large(func: Func) -> Func:
    """Give each large vector or matrix an own array; loops over components replace the ops that made and read it.

    A change of one component is made in place where the value before it is not read again; so are those that a branch
    or a loop makes of a value which only it reads. Where a large value meets
    an op without a rule here (a call, a struct), it is a value of its components for that moment.
    """
    met = {v.type for v in func.params}  # a large value is a parameter, or a result somewhere
    for op in ops_of(func.body):
        for r in op.results:
            met.add(r.type)
    if not any(is_large(t) for t in met):
        return func
    placer = _Placer(func.span)
    placer.hold(func.params)
    first = placer.out
    body = placer.block(func.body)
    return with_body(func, Block((), (*placer.entry, *first, *body.ops), body.yields))


class _Placer:
    """``array`` gives the own array of a large value, ``env`` what stands for another value."""

    def __init__(self, span: Span):
        self.array: dict[Value, Value] = {}
        self.env: dict[Value, Value] = {}
        self.entry: list[Op] = []
        self.out: list[Op] = []
        self.span = span
        self.last: dict[Value, int] = {}  # the op of the current block that reads a value last
        self.mine: set[Value] = set()  # values that the current block defines
        self.at = 0

    # ---- making ops

    def op(self, name: str, args: tuple[Value, ...], types: tuple[Type, ...] = (), regions: tuple[Block, ...] = (),
           **attrs: Any) -> tuple[Value, ...]:
        results = tuple([Value(t) for t in types])
        self.out.append(Op(name, args, results, attrs or NO_ATTRS, regions, self.span))
        return results

    def one(self, name: str, args: tuple[Value, ...], t: Type, **attrs: Any) -> Value:
        return self.op(name, args, (t,), **attrs)[0]

    def number(self, n: int) -> Value:
        return self.one("const", (), i32, value=n)

    def fresh(self, t: Vector | Matrix) -> Value:
        """A new own array for a ``t``; it is made where the function begins."""
        result = Value(view(t.elem, 1, space="local"))
        self.entry.append(Op("local", (), (result,), {"type": fixed(t.elem, (t.n,))}, (), self.span))
        return result

    def each(self, count: int, write: Any, *carried: Value) -> tuple[Value, ...]:
        """A loop over ``count`` indices; ``write(index, carried…)`` makes its body and gives what it hands on."""
        index, inner = Value(i32), tuple([Value(c.type) for c in carried])
        bounds = (self.number(0), self.number(count), self.number(1))
        outer, self.out = self.out, []
        handed = tuple(write(index, *inner) or ())
        body, self.out = Block((index, *inner), tuple(self.out), handed), outer
        return self.op("for", (*bounds, *carried), tuple([c.type for c in carried]), (body,))

    def components(self, count: int, write: Any) -> None:
        """``write`` for each component of a value; those of a small tile one after the other."""
        if count > UNROLLED:
            self.each(count, write)
            return
        for k in range(count):
            write(self.number(k))

    def read(self, array: Value, index: Value) -> Value:
        return self.one("load", (array, index), array.type.elem)

    def copy(self, source: Value, target: Value, count: int) -> None:
        if source is not target:
            self.components(count, lambda k: self.op("store", (target, k, self.read(source, k))))

    # ---- values and arrays

    def value(self, v: Value) -> Value:
        """``v`` as one value, for ops that have no rule here."""
        v = self.env.get(v, v)
        array = self.array.get(v)
        if array is None:
            return v
        parts = tuple([self.read(array, self.number(k)) for k in range(v.type.n)])
        return self.one("make", parts, v.type)

    def hold(self, values: tuple[Value, ...]) -> None:
        """Store the large ones among ``values``, which came as values of their components."""
        for v in values:
            if is_large(v.type):
                array = self.array[v] = self.fresh(v.type)
                for k in range(v.type.n):
                    part = self.one("extract", (v,), v.type.elem, index=k)
                    self.op("store", (array, self.number(k), part))

    def dies(self, v: Value) -> bool:
        """Whether the op at hand is the last to read ``v``, whose array it may then change."""
        return v in self.mine and self.last.get(v) == self.at

    def changed(self, v: Value) -> Value:
        """An array with the components of ``v`` that may be written."""
        array = self.array[v]
        if self.dies(v):
            return array
        new = self.fresh(v.type)
        self.copy(array, new, v.type.n)
        return new

    # ---- walking

    def block(self, block: Block, finish: Any = None, lent: set[Value] | None = None) -> Block:
        """``block`` with large values in arrays. ``finish`` hands on its yields; outer values ``lent`` may change."""
        saved = self.out, self.last, self.mine, self.at
        self.out, self.last, self.mine = [], {}, {*block.params, *(lent or ())}
        for k, op in enumerate(block.ops):
            self.mine.update(op.results)
            for v in _read_by(op):
                self.last[v] = k
        for y in block.yields:
            self.last[y] = len(block.ops)
        for k, op in enumerate(block.ops):
            self.at, self.span = k, op.span
            self.visit(op)
        self.at = len(block.ops)
        yields = finish(block.yields) if finish else tuple([self.value(y) for y in block.yields])
        made = Block(block.params, tuple(self.out), yields)
        self.out, self.last, self.mine, self.at = saved
        return made

    def visit(self, op: Op) -> None:
        name = op.name
        if name in ("for", "while"):
            return self.loop(op)
        if name == "if":
            return self.branch(op)
        large = [v for v in (*op.args, *op.results) if is_large(v.type)]
        rule = _RULES.get(name, _Placer.by_component if name not in STRUCTURAL else None) if large else None
        if rule is None:
            args = tuple([self.value(a) for a in op.args])
            self.out.append(op if args == op.args else Op(name, args, op.results, op.attrs, op.regions, op.span))
            self.hold(op.results)
        else:
            rule(self, op)
        return None

    def plain(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple([self.env.get(v, v) for v in values])

    # ---- composites

    def make(self, op: Op) -> None:
        array = self.array[op.result] = self.fresh(op.result.type)
        for k, part in enumerate(self.plain(op.args)):
            self.op("store", (array, self.number(k), part))

    def extract(self, op: Op) -> None:
        self.env[op.result] = self.read(self.array[op.args[0]], self.number(op.attrs["index"]))

    def insert(self, op: Op) -> None:
        c, part = self.plain(op.args)
        array = self.array[op.result] = self.changed(c)
        self.op("store", (array, self.number(op.attrs["index"]), part))

    def poison(self, op: Op) -> None:
        self.array[op.result] = self.fresh(op.result.type)

    def place(self, t: Vector | Matrix, indices: tuple[Value, ...]) -> Value:
        """The number of the component (or of the first of a row) that ``indices`` mean."""
        i, *rest = [self.one("cast", (i,), i32) if i.type is not i32 else i for i in self.plain(indices)]
        if isinstance(t, Vector):
            return i
        start = self.one("mul", (i, self.number(t.cols)), i32)
        return self.one("add", (start, rest[0]), i32) if rest else start

    def pick(self, op: Op) -> None:
        c, r = op.args[0], op.result
        array, at = self.array[c], self.place(c.type, op.args[1:])
        if r.type is c.type.elem:
            self.env[r] = self.read(array, at)
        elif is_large(r.type):
            row = self.array[r] = self.fresh(r.type)
            self.each(r.type.n, lambda k: self.op("store", (row, k, self.read(array, self.one("add", (at, k), i32)))))
        else:
            spots = [self.one("add", (at, self.number(k)), i32) for k in range(r.type.n)]
            self.env[r] = self.one("make", tuple([self.read(array, spot) for spot in spots]), r.type)

    def put(self, op: Op) -> None:
        c, x = op.args[:2]
        at = self.place(c.type, op.args[2:])
        if isinstance(x.type, Scalar):
            array = self.array[op.result] = self.changed(c)
            self.op("store", (array, at, self.env.get(x, x)))
            return
        x = self.env.get(x, x)
        row = self.array.get(x)
        array = self.array[op.result] = self.changed(c)
        if row is not None:
            self.each(x.type.n, lambda k: self.op("store", (array, self.one("add", (at, k), i32), self.read(row, k))))
            return
        for k in range(x.type.n):
            part = self.one("extract", (x,), x.type.elem, index=k)
            self.op("store", (array, self.one("add", (at, self.number(k)), i32), part))

    # ---- computing

    def by_component(self, op: Op) -> None:
        """A primitive, a select or a cast, component by component; comparisons join what they find."""
        r = op.result
        if not is_large(r.type):
            return self.compare(op)
        args = self.plain(op.args)
        arrays = [self.array[a] if is_large(a.type) else None for a in args]
        spare = next((a for a, x in zip(args, arrays) if x is not None and a.type is r.type and self.dies(a)), None)
        target = self.array[r] = self.fresh(r.type) if spare is None else self.array[spare]

        def body(k: Value) -> None:
            inner = tuple([a if x is None else self.read(x, k) for a, x in zip(args, arrays)])
            self.op("store", (target, k, self.one(op.name, inner, r.type.elem, **op.attrs)))

        self.components(r.type.n, body)
        return None

    def compare(self, op: Op) -> None:
        """``eq`` or ``ne`` of two large values."""
        if op.name not in ("eq", "ne"):
            raise InternalError(f"{op.name} is not known to work on {op.args[0].type}", op.span)
        a, b = [self.array[x] for x in op.args]
        join, start = ("bitand", True) if op.name == "eq" else ("bitor", False)

        def body(k: Value, so_far: Value) -> tuple[Value, ...]:
            test = self.one(op.name, (self.read(a, k), self.read(b, k)), b1)
            return (self.one(join, (so_far, test), b1),)

        (self.env[op.result],) = self.each(op.args[0].type.n, body, self.one("const", (), b1, value=start))

    def cast(self, op: Op) -> None:
        """A value of another type; the same scalars in another shape are the same array."""
        (x,), r = op.args, op.result
        if is_large(x.type) and is_large(r.type) and x.type.elem is r.type.elem:
            self.array[r] = self.changed(x)
        else:
            self.by_component(op)

    # ---- memory

    def elements(self, v: Value, indices: tuple[Value, ...], t: Vector | Matrix, write: Any) -> None:
        """``write(view, indices, number)`` for each component of the element of ``v``."""
        inner = (None,) * (1 if isinstance(t, Vector) else 2)
        if not v.type.planar:
            inner = (t.elem.size,) if isinstance(t, Vector) else (t.cols * t.elem.size, t.elem.size)
        kind = view(t.elem, v.type.ndim + len(inner), (*v.type.strides, *inner), space=v.type.space)
        parts = self.one("parts", (v,), kind)
        if isinstance(t, Vector):
            self.each(t.n, lambda k: write(parts, (*indices, k), k))
            return

        def row(i: Value) -> None:
            start = self.one("mul", (i, self.number(t.cols)), i32)
            self.each(t.cols, lambda j: write(parts, (*indices, i, j), self.one("add", (start, j), i32)))

        self.each(t.rows, row)

    def load(self, op: Op) -> None:
        v, *indices = self.plain(op.args)
        array, t = self.fresh(op.result.type), op.result.type

        def body(parts: Value, places: tuple[Value, ...], k: Value) -> None:
            self.op("store", (array, k, self.one("load", (parts, *places), t.elem)))

        self.elements(v, tuple(indices), t, body)
        self.array[op.result] = array

    def store(self, op: Op) -> None:
        v, *indices, x = self.plain(op.args)
        array = self.array[x]

        def body(parts: Value, places: tuple[Value, ...], k: Value) -> None:
            self.op("store", (parts, *places, self.read(array, k)))

        self.elements(v, tuple(indices), x.type, body)

    # ---- control flow

    def moved(self, moves: list[tuple[Value, Value, int]]) -> None:
        """Copy arrays to others all at once; those that change places go by way of new ones."""
        targets = {target for source, target, _ in moves if source is not target}
        for k, (source, target, n) in enumerate(moves):
            if source is not target and source in targets:
                spare = self.out_of_place(source, n)
                moves[k] = spare, target, n
        for source, target, n in moves:
            self.copy(source, target, n)

    def out_of_place(self, source: Value, n: int) -> Value:
        """A copy of an array."""
        spare = self.fresh(vector(n, source.type.elem))
        self.copy(source, spare, n)
        return spare

    def branch(self, op: Op) -> None:
        """Each side puts its large yields into the arrays of the results: those of values that only it reads, if it
        changed them in place, else new ones."""
        lent = {v for v in _read_by(op) if is_large(v.type) and self.dies(v)}
        free = {self.array[v] for v in lent}
        targets: dict[Value, Value] = {}

        def finish(yields: tuple[Value, ...]) -> tuple[Value, ...]:
            moves = []
            for r, y in zip(op.results, yields):
                if is_large(r.type):
                    source = self.array[y]
                    if r not in targets:
                        targets[r] = source if source in free else self.fresh(r.type)
                        free.discard(source)
                    moves.append((source, targets[r], r.type.n))
            self.moved(moves)
            return tuple([self.value(y) for r, y in zip(op.results, yields) if r not in targets])

        regions = tuple([self.block(region, finish, lent) for region in op.regions])
        results = tuple([r for r in op.results if r not in targets])
        self.array.update(targets)
        self.out.append(Op("if", self.plain(op.args), results, op.attrs, regions, op.span))

    def loop(self, op: Op) -> None:
        """A large carried value has one array, which the body changes or copies its new value to: that of the value it
        begins with, if nothing else reads that."""
        (body,), n = op.regions, len(op.results)
        initial, params = op.args[len(op.args) - n :], body.params[len(body.params) - n :]
        inside, slots = _read_in(op), {}
        for k, r in enumerate(op.results):
            if is_large(r.type):
                v = initial[k]
                own = self.dies(v) and v not in inside and initial.count(v) == 1
                slots[k] = self.array[v] if own else self.fresh(r.type)
                self.copy(self.array[v], slots[k], r.type.n)
        for k, array in slots.items():
            self.array[params[k]] = array

        def finish(yields: tuple[Value, ...]) -> tuple[Value, ...]:
            first = len(yields) - n
            self.moved([(self.array[yields[first + k]], slot, op.results[k].type.n) for k, slot in slots.items()])
            return tuple([self.value(y) for k, y in enumerate(yields) if k - first not in slots])

        args = (*op.args[: len(op.args) - n], *[v for k, v in enumerate(initial) if k not in slots])
        made = self.block(body, finish)
        kept = (*body.params[: len(body.params) - n], *[p for k, p in enumerate(params) if k not in slots])
        results = tuple([r for k, r in enumerate(op.results) if k not in slots])
        self.array.update({op.results[k]: array for k, array in slots.items()})
        self.out.append(Op(op.name, tuple([self.value(a) for a in args]), results, op.attrs,
                           (Block(kept, made.ops, made.yields),), op.span))  # fmt: skip


def _read_by(op: Op) -> set[Value]:
    """What ``op`` and its regions read."""
    return {*op.args, *_read_in(op)}


def _read_in(op: Op) -> set[Value]:
    """What the regions of ``op`` read."""
    found: set[Value] = set()
    for region in op.regions:
        found.update(region.yields)
        for inner in ops_of(region):
            found.update(inner.args)
            for deeper in inner.regions:
                found.update(deeper.yields)
    return found


_RULES = {
    "make": _Placer.make, "extract": _Placer.extract, "insert": _Placer.insert, "poison": _Placer.poison,
    "pick": _Placer.pick, "put": _Placer.put, "select": _Placer.by_component, "cast": _Placer.cast,
    "load": _Placer.load, "store": _Placer.store,
}  # fmt: skip
