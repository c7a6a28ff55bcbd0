"""Vectors, matrices, quaternions, transforms, structs and tuples become the scalars and views they are made of.

Afterwards every value is a scalar or a view: parameters, results, carried values, calls. A ``load`` has one result, a
``store`` one argument for each leaf of the element (``types.layout.leaves``). A component that a run-time index picks
is chosen by selects among up to four, else read from a ``local`` array into which the composite is stored once, where
it is defined; ``put`` changes up to sixteen components by selects, more by way of such an array. What is too large for
all this has been given an own array by ``place_large`` before.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import prod

from ..base.errors import InternalError
from ..ir.node import NO_ATTRS, Block, Func, Op, Value
from ..ir.walk import FUNCTIONS, once, ops_of, with_args
from ..types.core import Matrix, Scalar, Struct, Type, Vector, View, b1, fixed, i32, view
from ..types.layout import children, leaves

__all__ = ["scalarize"]

PICK_BY_SELECTS = 4
PUT_BY_SELECTS = 16


def scalarize(func: Func) -> Func:
    """``func`` on scalars and views alone; the functions it calls are lowered wholly, each once."""
    return _Scalarizer(func).run()


@once
def lowered(func: Func) -> Func:
    """``func`` after all passes that come before code generation."""
    from .pipeline import LOWER, run

    return run(LOWER, func)


@cache
def _leaf_types(t: Type) -> tuple[Type, ...]:
    return tuple([leaf.type for leaf in leaves(t)])


@cache
def _ranges(t: Type) -> tuple[slice, ...]:
    """Where the leaves of each direct part stand among those of ``t``."""
    at, out = 0, []
    for part in children(t):
        n = len(_leaf_types(part))
        out.append(slice(at, at + n))
        at += n
    return tuple(out)


def _shape(t: Type, rank: int) -> tuple[int, ...]:
    """The extents that ``rank`` indices of ``t`` range over: one index of a matrix ranges over its rows."""
    shape = (t.n,) if isinstance(t, Vector) else (t.rows, t.cols) if isinstance(t, Matrix) else getattr(t, "shape", ())
    return shape[:rank]


def _plain(t: Type) -> bool:
    return isinstance(t, Scalar | View) or not (isinstance(t, Vector | Matrix | Struct) or children(t))


class _Scalarizer:
    """``parts`` gives the leaves that stand for a value; a value that is not in it stands for itself.

    ``spilled`` gives the own array that holds a composite from whose components a run-time index picks.
    """

    def __init__(self, func: Func):
        self.func = func
        self.parts: dict[Value, tuple[Value, ...]] = {}
        self.known: dict[Value, int] = {}
        self.entry: list[Op] = []
        self.out: list[Op] = []
        self.spilled: dict[Value, Value] = {}
        self.picked: set[Value] = set()
        self.span = func.span

    def run(self) -> Func:
        f = self.func
        for op in ops_of(f.body):
            if op.name == "const" and op.result.type is i32:
                self.known[op.result] = op.attrs["value"]
            elif op.name == "pick" and self.choices(op.args[0].type, op.args[1:]) > PICK_BY_SELECTS:
                self.picked.add(op.args[0])
        params = self.fresh(f.params)
        self.spill(f.params)
        ops = self.out
        body = self.block(f.body)
        body = Block((), (*self.entry, *ops, *body.ops), body.yields)
        signature = f.signature or tuple([p.type for p in f.params])
        return Func(f.name, f.kind, params, body, signature, f.names, f.facts, f.span)

    # ---- values

    def flat(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """The leaves of all ``values``, one after the other."""
        parts = self.parts
        for v in values:
            if v in parts:
                return tuple([leaf for v in values for leaf in parts.get(v, (v,))])
        return values

    def fresh(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """New leaves for the composites among ``values``; all leaves."""
        for v in values:
            if not _plain(v.type):
                self.parts[v] = tuple([Value(t, v.name) for t in _leaf_types(v.type)])
        return self.flat(values)

    def define(self, value: Value, parts: tuple[Value, ...]) -> None:
        self.parts[value] = parts
        if value in self.picked:
            self.spill((value,))

    def emit(self, name: str, args: tuple[Value, ...], type: Type, **attrs: object) -> Value:
        result = Value(type)
        self.out.append(Op(name, args, (result,), attrs or NO_ATTRS, (), self.span))
        return result

    def number(self, value: int) -> Value:
        result = self.emit("const", (), i32, value=value)
        self.known[result] = value
        return result

    # ---- walking

    def block(self, block: Block) -> Block:
        outer, self.out = self.out, []
        params = self.fresh(block.params)
        parts, handlers = self.parts, _HANDLERS
        self.spill(block.params)
        for op in block.ops:
            self.span = op.span
            handler = handlers.get(op.name)
            if handler is not None:
                handler(self, op)
                continue
            for v in op.results:
                if not _plain(v.type):
                    self.by_leaf(op)
                    break
            else:
                for a in op.args:
                    if a in parts:
                        self.leafless(op)
                        break
                else:
                    self.out.append(op)
        ops, self.out = self.out, outer
        return Block(params, tuple(ops), self.flat(block.yields))

    def by_leaf(self, op: Op) -> None:
        """A primitive that works by component; a scalar among composites goes with each."""
        (r,) = op.results
        columns = [self.parts.get(a, (a,)) for a in op.args]
        types = _leaf_types(r.type)
        made = []
        for k, t in enumerate(types):
            args = tuple([c[k] if len(c) == len(types) else c[0] for c in columns])
            made.append(self.emit(op.name, args, t, **op.attrs))
        self.define(r, tuple(made))

    def leafless(self, op: Op) -> None:
        """An op with scalar results: renamed arguments, or a comparison of composites."""
        args = self.flat(op.args)
        if len(args) == len(op.args):
            self.out.append(with_args(op, args))
            return
        if op.name not in ("eq", "ne"):
            raise InternalError(f"{op.name} is not known to work on {op.args[0].type}", op.span)
        half = len(args) // 2
        tests = [self.emit(op.name, pair, b1) for pair in zip(args[:half], args[half:])]
        whole = tests[0]
        for t in tests[1:]:
            whole = self.emit("bitand" if op.name == "eq" else "bitor", (whole, t), b1)
        self.parts[op.result] = (whole,)

    def rebuilt(self, op: Op, regions: tuple[Block, ...] = ()) -> None:
        """The op with leaves for its arguments and results."""
        args = self.flat(op.args)
        results = self.fresh(op.results)
        same = args is op.args and results is op.results and regions == op.regions
        self.out.append(op if same else Op(op.name, args, results, op.attrs, regions, op.span))
        self.spill(op.results)

    # ---- composites

    def make(self, op: Op) -> None:
        self.define(op.result, self.flat(op.args))

    def extract(self, op: Op) -> None:
        (c,) = op.args
        self.define(op.result, self.parts[c][_ranges(c.type)[op.attrs["index"]]])

    def insert(self, op: Op) -> None:
        c, part = op.args
        where, old = _ranges(c.type)[op.attrs["index"]], self.parts[c]
        self.define(op.result, (*old[: where.start], *self.flat((part,)), *old[where.stop :]))

    def poison(self, op: Op) -> None:
        self.define(op.result, tuple([self.emit("poison", (), t) for t in _leaf_types(op.result.type)]))

    def select(self, op: Op) -> None:
        c, a, b = op.args
        if a not in self.parts and b not in self.parts:
            return self.out.append(with_args(op, self.flat(op.args)))
        (c,) = self.flat((c,))
        pairs = zip(self.flat((a,)), self.flat((b,)))
        self.define(op.result, tuple([self.emit("select", (c, x, y), x.type) for x, y in pairs]))

    # ---- components at run-time indices

    def choices(self, t: Type, indices: tuple[Value, ...]) -> int:
        """Among how many components ``indices`` choose, as far as they are not known."""
        count = 1
        for extent, i in zip(_shape(t, len(indices)), indices):
            count *= 1 if 0 <= self.known.get(i, -1) < extent else extent
        return count

    def flat_index(self, extents: tuple[int, ...], indices: tuple[Value, ...]) -> Value:
        """Row by row, where ``indices`` point."""
        total: Value | None = None
        for extent, i in zip(extents, indices):
            i = self.emit("cast", (i,), i32) if i.type is not i32 else i
            if total is None:
                total = i
            else:
                total = self.emit("add", (self.emit("mul", (total, self.number(extent)), i32), i), i32)
        return total if total is not None else self.number(0)

    def candidates(self, t: Type, indices: tuple[Value, ...]) -> tuple[list[int], Value]:
        """The components that may be meant, by their numbers, and a value that counts along them."""
        shape = _shape(t, len(indices))
        ranges, extents, free = [], [], []
        for extent, i in zip(shape, indices):
            at = self.known.get(i, -1)
            if 0 <= at < extent:
                ranges.append(range(at, at + 1))
            else:
                ranges.append(range(extent))
                extents.append(extent)
                free.append(i)
        numbers = []
        for place in product(*ranges):
            number = 0
            for extent, i in zip(shape, place):
                number = number * extent + i
            numbers.append(number)
        return numbers, self.flat_index(tuple(extents), tuple(free))

    def pick(self, op: Op) -> None:
        c, *indices = op.args
        where = self.flat(tuple(indices))
        parts = self.parts[c]
        width = len(parts) // prod(_shape(c.type, len(where)))
        if self.choices(c.type, tuple(indices)) > PICK_BY_SELECTS:
            at = self.flat_index(_shape(c.type, len(where)), where)
            if width > 1:
                at = self.emit("mul", (at, self.number(width)), i32)
            array, made = self.spilled[c], []
            for k in range(width):
                place = at if k == 0 else self.emit("add", (at, self.number(k)), i32)
                made.append(self.emit("load", (array, place), parts[0].type))
            return self.define(op.result, tuple(made))
        numbers, at = self.candidates(c.type, where)
        tests = [self.emit("eq", (at, self.number(k)), b1) for k in range(len(numbers) - 1)]
        made = []
        for w in range(width):
            chosen = parts[numbers[-1] * width + w]
            for test, number in zip(reversed(tests), reversed(numbers[:-1])):
                chosen = self.emit("select", (test, parts[number * width + w], chosen), chosen.type)
            made.append(chosen)
        self.define(op.result, tuple(made))

    def put(self, op: Op) -> None:
        c, x, *indices = op.args
        where = self.flat(tuple(indices))
        parts, new = list(self.parts[c]), self.flat((x,))
        width = len(new)
        numbers, at = self.candidates(c.type, where)
        if len(numbers) <= PUT_BY_SELECTS:
            for k, number in enumerate(numbers):
                test = self.emit("eq", (at, self.number(k)), b1) if len(numbers) > 1 else None
                for w in range(width):
                    spot = number * width + w
                    parts[spot] = self.emit("select", (test, new[w], parts[spot]), new[w].type) if test else new[w]
            return self.define(op.result, tuple(parts))
        array = self.array(c)
        self.fill(array, self.parts[c])
        first = self.flat_index(_shape(c.type, len(where)), where)
        first = self.emit("mul", (first, self.number(width)), i32) if width > 1 else first
        for w in range(width):
            place = self.emit("add", (first, self.number(w)), i32) if w else first
            self.out.append(Op("store", (array, place, new[w]), (), NO_ATTRS, (), self.span))
        read = [self.emit("load", (array, self.number(k)), p.type) for k, p in enumerate(parts)]
        self.define(op.result, tuple(read))

    def spill(self, values: tuple[Value, ...]) -> None:
        """Store those of ``values`` that run-time indices pick from into arrays of their own."""
        if not self.picked:
            return
        for v in values:
            if v in self.picked:
                array = self.spilled[v] = self.array(v)
                self.fill(array, self.parts[v])

    def array(self, composite: Value) -> Value:
        """An own array for the components of ``composite``, made once where the function begins."""
        parts = self.parts[composite]
        elem = parts[0].type
        result = Value(view(elem, 1, space="local"), composite.name)
        kind = fixed(elem, (len(parts),))
        self.entry.append(Op("local", (), (result,), {"type": kind}, (), self.span))
        return result

    def fill(self, array: Value, parts: tuple[Value, ...]) -> None:
        for k, p in enumerate(parts):
            self.out.append(Op("store", (array, self.number(k), p), (), NO_ATTRS, (), self.span))

    # ---- memory, control flow, calls

    def atomic(self, op: Op) -> None:
        v = op.args[0].type
        assert isinstance(v, View)
        if isinstance(v.elem, Scalar):
            return self.out.append(with_args(op, self.flat(op.args)))
        root, *indices = self.flat(op.args[: 1 + v.ndim])
        operands = [self.flat((x,)) for x in op.args[1 + v.ndim :]]
        old = []
        for k, leaf in enumerate(leaves(v.elem)):
            at, t = root, v
            for index in leaf.path:
                t = view(children(t.elem)[index], t.ndim, t.strides, space=t.space)
                at = self.emit("field", (at,), t, index=index)
            old.append(self.emit("atomic", (at, *indices, *[x[k] for x in operands]), leaf.type, **op.attrs))
        self.define(op.result, tuple(old))

    def branch(self, op: Op) -> None:
        self.rebuilt(op, tuple([self.block(r) for r in op.regions]))

    def call(self, op: Op) -> None:
        given = sum(len(_leaf_types(v.type)) for v in (*op.args, *op.results))
        attrs = dict(op.attrs)
        for key in FUNCTIONS:
            if key in attrs:
                f = lowered(attrs[key])
                attrs[key] = _of_numbers(f, given) if key in ("adjoint", "tangent") else f
        self.rebuilt(Op("call", op.args, op.results, attrs, (), op.span))


@once
def _of_numbers(rule: Func, given: int) -> Func:
    """A lowered rule for a derivative: its parameters after the first ``given`` are adjoints or tangents, and so is
    what it yields. Of a struct those lose the parts that are no floats."""
    moving = rule.params[given:]
    lost = [p for p in moving if not _is_float(p.type)]
    if not lost and all(_is_float(y.type) for y in rule.body.yields):
        return rule
    zeros = tuple([_nothing(p, rule) for p in lost])
    params = (*rule.params[:given], *[p for p in moving if _is_float(p.type)])
    yields = tuple([y for y in rule.body.yields if _is_float(y.type)])
    body = Block((), (*zeros, *rule.body.ops), yields)
    return Func(rule.name, rule.kind, params, body, (), (), rule.facts, rule.span)


def _nothing(p: Value, rule: Func) -> Op:
    """The op that makes ``p``, the derivative of what has none."""
    if isinstance(p.type, Scalar):
        return Op("const", (), (p,), {"value": False if p.type is b1 else 0}, (), rule.span)
    return Op("poison", (), (p,), NO_ATTRS, (), rule.span)


def _is_float(t: Type) -> bool:
    return isinstance(t, Scalar) and t.is_float


_HANDLERS = {
    **dict.fromkeys(("load", "store", "print", "check"), _Scalarizer.rebuilt),
    **dict.fromkeys(("if", "for", "while"), _Scalarizer.branch),
    "make": _Scalarizer.make, "extract": _Scalarizer.extract, "insert": _Scalarizer.insert,
    "poison": _Scalarizer.poison, "select": _Scalarizer.select, "pick": _Scalarizer.pick, "put": _Scalarizer.put,
    "atomic": _Scalarizer.atomic, "call": _Scalarizer.call,
}  # fmt: skip
