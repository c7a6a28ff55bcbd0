"""Programs for known tables: what they read of them is put in, loops over them are unrolled, branches decided.

Tables are arrays of integers that do not change, and extents and numbers that are known. Then every index is known but
the thread's own, so that what one part of a program leaves in memory and another finds there is a value. All roundings
were decided before: results keep their bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..builtins.registry import primitive
from ..ir.node import NO_ATTRS, Block, Func, Op, Value
from ..ir.ops import CUTS, OPS
from ..ir.walk import ops_of, with_body
from ..types.core import Scalar, Type, View, i32
from .fold import folding
from .simplify import RULES, Knowing

__all__ = ["Known", "Unresolved", "resolve"]

LARGEST = 60_000  # ops of a program that is worth compiling


class Known(NamedTuple):
    """What is known of an array: its extents, and its content if that does not change."""

    shape: tuple[int, ...]
    content: np.ndarray | None = None


class Unresolved(Exception):
    """The program does something else than read and write elements of arrays, or becomes too large."""


def resolve(func: Func, arrays: Mapping[Value, Known], numbers: Mapping[Value, bool | int]) -> Func:
    """``func``, a lowered kernel, for ``arrays`` and ``numbers`` that are known among its parameters. Arrays of
    different parameters must lie apart.

    Raises:
        Unresolved: it cannot be done.
    """
    primitive("logical_not")  # known to the IR from here on
    walk = _Resolver({**folding(func), **RULES}, arrays)
    for param, value in numbers.items():
        walk.env[param] = walk.const(value, param.type)
    with np.errstate(all="ignore"):
        walk.ops(func.body.ops)
    return with_body(func, Block(func.body.params, (*walk.prelude, *walk.out), ()))


Place = tuple[Any, ...]  # indices of an element, of whatever type: numbers, or the value of the thread's index


def meet(one: Place, other: Place) -> bool:
    """Whether two places may be the same element: no index of them is two numbers."""
    return not any(a != b and isinstance(a, int) and isinstance(b, int) for a, b in zip(one, other, strict=True))


class _Resolver(Knowing):
    """``memory`` gives, of arrays and places in them, the values that are there for this thread. ``prelude`` has all
    constants, each once, and the thread's index."""

    __slots__ = ("arrays", "count", "memory", "own", "pool", "prelude")

    def __init__(self, rules: Mapping[str, Any], arrays: Mapping[Value, Known]):
        super().__init__(rules)
        self.arrays = arrays
        self.pool: dict[tuple[Type, Any], Value] = {}
        self.prelude: list[Op] = []
        self.memory: dict[Value, dict[Place, tuple[Value, ...]]] = {}
        self.own: Value | None = None  # the thread's index
        self.count = 0

    def const(self, value: bool | int | float, type: Type) -> Value:
        key = type, value.hex() if isinstance(value, float) else value
        found = self.pool.get(key)
        if found is None:
            found = self.pool[key] = Value(type)
            op = Op("const", (), (found,), {"value": value}, ())
            self.prelude.append(op)
            self.defs[found], self.consts[found] = op, value
        return found

    def put(self, op: Op) -> None:
        """Append an op."""
        self.counted()
        self.out.append(op)
        for r in op.results:
            self.defs[r] = op

    def counted(self) -> None:
        """One more op, or one more round of a loop."""
        self.count += 1
        if self.count > LARGEST:
            raise Unresolved

    def named(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """What stands for ``values`` now."""
        env = self.env
        return tuple([env.get(v, v) for v in values])

    def ops(self, ops: tuple[Op, ...]) -> None:
        """Append what ``ops`` do."""
        for op in ops:
            args = self.named(op.args)
            if op.name == "const":
                self.env[op.result] = self.const(op.attrs["value"], op.result.type)
            elif op.name == "if" and (truth := self.truth(args[0])) is not None:
                region = op.regions[not truth]
                self.ops(region.ops)
                self.env.update(zip(op.results, self.named(region.yields), strict=True))
            elif op.name == "for" and self.unrolled(op, args):
                continue
            elif op.regions:
                self.with_regions(op, args)
            else:
                self.plain(op, args)

    def unrolled(self, op: Op, args: tuple[Value, ...]) -> bool:
        """Append all rounds of a loop, if it is known how many there are."""
        bounds = [self.consts.get(v) for v in args[:3]]
        if None in bounds or not bounds[2] or op.attrs.get("stays"):
            return False
        (body,) = op.regions
        carried = args[3:]
        for i in range(*bounds):  # type: ignore[arg-type]
            self.counted()
            self.env.update(zip(body.params, (self.const(i, i32), *carried), strict=True))
            self.ops(body.ops)
            carried = self.named(body.yields)
        self.env.update(zip(op.results, carried, strict=True))
        return True

    def with_regions(self, op: Op, args: tuple[Value, ...]) -> None:
        """Append a branch that depends on what is not known, or a loop."""
        if any(isinstance(v.type, View) for v in (*op.results, *[p for region in op.regions for p in region.params])):
            raise Unresolved  # which array it is, is not known
        if op.name != "if":  # a later round finds what an earlier one wrote
            self.forget(op)
        before, truths, regions, ends = self.memory, self.truths, [], []
        for region, truth in zip(op.regions, (True, False), strict=False):
            outer, self.out = self.out, []
            self.memory, self.truths = {v: dict(places) for v, places in before.items()}, dict(truths)
            if op.name == "if":
                self.learn(args[0], truth)
            params = tuple([Value(p.type, p.name) for p in region.params])
            self.env.update(zip(region.params, params, strict=True))
            self.ops(region.ops)
            regions.append(Block(params, tuple(self.out), self.named(region.yields)))
            ends.append(self.memory)
            self.out = outer
        self.memory, self.truths = before, truths
        results = tuple([Value(r.type, r.name) for r in op.results])
        self.env.update(zip(op.results, results, strict=True))
        if op.name == "if" and self.handed(op, args, results, regions, ends):
            return
        self.forget(op)
        self.put(Op(op.name, args, results, op.attrs, tuple(regions), op.span))

    def handed(
        self, op: Op, args: tuple[Value, ...], results: tuple[Value, ...], regions: list[Block],
        ends: list[dict[Value, dict[Place, tuple[Value, ...]]]],
    ) -> bool:  # fmt: skip
        """Append a branch that hands on what it leaves in memory, to stores behind it; False where something that it
        stores to was not known before."""
        changed: dict[tuple[Value, Place], tuple[Value, ...]] = {}  # indices of what is stored to
        for region in regions:
            found = self.stores_of(region)
            if found is None:
                return False
            changed.update(found)
        if not all(place in end.get(array, ()) for array, place in changed for end in ends):
            return False
        made, left = [], []
        for region, end in zip(regions, ends, strict=True):
            values = [v for array, place in changed for v in end[array][place]]
            ops = tuple([inner for inner in region.ops if inner.name != "store"])
            made.append(Block((), ops, (*region.yields, *values)))
        for (array, place), indices in changed.items():
            values = tuple([Value(v.type, v.name) for v in ends[0][array][place]])
            left.append(Op("store", (array, *indices, *values), (), NO_ATTRS, (), op.span))
        handed = [v for store in left for v in store.args[1 + store.args[0].type.ndim :]]  # type: ignore[attr-defined]
        self.put(Op("if", args, (*results, *handed), op.attrs, tuple(made), op.span))
        for store in left:
            self.stored(store)
            self.put(store)
        return True

    def stores_of(self, region: Block) -> dict[tuple[Value, Place], tuple[Value, ...]] | None:
        """What a branch stores to, and its indices; None where its stores cannot go behind it: some stand in a region
        of their own, their place is not known, or a load behind one may find what it stored."""
        found: dict[tuple[Value, Place], tuple[Value, ...]] = {}
        for inner in region.ops:
            for op in ops_of(Block((), (inner,))):
                if op.name == "load":
                    array, place = op.args[0], self.place(op.args[1:])
                    if any(a is array and (place is None or meet(place, other)) for a, other in found):
                        return None
                elif OPS[op.name].writes:
                    array, *rest = op.args
                    indices = tuple(rest[: array.type.ndim])  # type: ignore[attr-defined]
                    place = self.place(indices)
                    if op is not inner or op.name != "store" or place is None:
                        return None
                    found[array, place] = indices
        return found

    def forget(self, op: Op) -> None:
        """Nothing is known any more of arrays to which the regions of ``op`` store."""
        for inner in ops_of(Block((), (op,))):
            if OPS[inner.name].writes:
                self.memory.pop(self.env.get(inner.args[0], inner.args[0]), None)

    def plain(self, op: Op, args: tuple[Value, ...]) -> None:
        """Append an op without regions, or what it comes to."""
        name = op.name
        if name in CUTS or name in ("atomic", "grad", "view_at", "print", "check") or OPS[name].tape:
            raise Unresolved
        if any(isinstance(a.type, View) for a in args) and name not in ("load", "store", "shape"):
            raise Unresolved
        if any(isinstance(r.type, View) for r in op.results) or op.attrs.get("axis") and name == "tid":
            raise Unresolved  # arrays in arrays; threads with two indices, which may be equal
        if name == "shape" and args[0] in self.arrays:
            self.env[op.result] = self.const(self.arrays[args[0]].shape[op.attrs["axis"]], op.result.type)
            return
        if name == "tid":
            if self.own is None:
                self.own = Value(op.result.type)
                self.prelude.append(Op(name, (), (self.own,), op.attrs, (), op.span))
            self.env[op.result] = self.own
            return
        new = Op(name, args, tuple([Value(r.type, r.name) for r in op.results]), op.attrs, (), op.span)
        found: tuple[Value, ...] | None = None
        if name == "load":
            found = self.loaded(new)
        elif name == "store":
            self.stored(new)
        elif (rule := self.rules.get(name)) is not None:
            self.op = new
            found = rule(self, new)
            new = self.op
        if found is None:
            self.put(new)
            found = new.results
        self.env.update(zip(op.results, found, strict=True))

    def place(self, indices: tuple[Value, ...]) -> Place | None:
        """Indices that are numbers or the thread's index; None where one is neither."""
        found = tuple([i if i is self.own else self.consts.get(i) for i in indices])
        return None if None in found else found

    def loaded(self, op: Op) -> tuple[Value, ...] | None:
        """What a load finds, if that is known; else it will be."""
        array, *indices = op.args
        place = self.place(tuple(indices))
        if place is None:
            return None
        known = self.arrays.get(array)
        if known is not None and known.content is not None:
            t = op.result.type
            assert isinstance(t, Scalar)
            # Indices out of range stand on paths that are never taken.
            if all(isinstance(i, int) and 0 <= i < n for i, n in zip(place, known.content.shape, strict=True)):
                return (self.const(known.content[place].item(), t),)
        places = self.memory.setdefault(array, {})
        if place in places:
            return places[place]
        places[place] = op.results
        return None

    def stored(self, op: Op) -> None:
        """Note what a store leaves."""
        array, rest = op.args[0], op.args[1:]
        rank = array.type.ndim  # type: ignore[attr-defined]
        place = self.place(rest[:rank])
        if place is None:
            self.memory.pop(array, None)
            return
        places = self.memory.setdefault(array, {})
        for other in [p for p in places if p != place and meet(p, place)]:  # may be the same element
            del places[other]
        places[place] = rest[rank:]
