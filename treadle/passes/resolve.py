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


Place = tuple[Value, ...]  # indices of an element


class _Resolver(Knowing):
    """``memory`` gives, of arrays and places in them, the values that are there for this thread. ``prelude`` has all
    constants, each once, so that equal indices are the same values."""

    __slots__ = ("arrays", "count", "memory", "pool", "prelude", "shared")

    def __init__(self, rules: Mapping[str, Any], arrays: Mapping[Value, Known]):
        super().__init__(rules)
        self.arrays = arrays
        self.pool: dict[tuple[Type, Any], Value] = {}
        self.prelude: list[Op] = []
        self.memory: dict[Value, dict[Place, tuple[Value, ...]]] = {}
        self.shared: dict[Any, Value] = {}  # threads' indices, and addresses made from them
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
        self.count += 1
        if self.count > LARGEST:
            raise Unresolved
        self.out.append(op)
        for r in op.results:
            self.defs[r] = op

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
            self.env.update(zip(body.params, (self.const(i, i32), *carried), strict=True))
            self.ops(body.ops)
            carried = self.named(body.yields)
        self.env.update(zip(op.results, carried, strict=True))
        return True

    def with_regions(self, op: Op, args: tuple[Value, ...]) -> None:
        """Append a branch that depends on what is not known, or a loop."""
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
        changed: dict[tuple[Value, ...], None] = {}
        for region in regions:
            for inner in region.ops:
                if inner.regions and any(OPS[each.name].writes for each in ops_of(Block((), (inner,)))):
                    return False
                if inner.name == "store":
                    changed[inner.args[: 1 + inner.args[0].type.ndim]] = None  # type: ignore[attr-defined]
        if not all(place in end.get(array, ()) for array, *rest in changed for place in [tuple(rest)] for end in ends):
            return False
        made, left = [], []
        for region, end in zip(regions, ends, strict=True):
            values = [v for array, *place in changed for v in end[array][tuple(place)]]
            ops = tuple([inner for inner in region.ops if inner.name != "store"])
            made.append(Block((), ops, (*region.yields, *values)))
        for array, *place in changed:
            values = tuple([Value(v.type, v.name) for v in ends[0][array][tuple(place)]])
            left.append(Op("store", (array, *place, *values), (), NO_ATTRS, (), op.span))
        handed = [v for store in left for v in store.args[1 + store.args[0].type.ndim :]]  # type: ignore[attr-defined]
        self.put(Op("if", args, (*results, *handed), op.attrs, tuple(made), op.span))
        for store in left:
            self.stored(store)
            self.put(store)
        return True

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
        if name == "shape" and args[0] in self.arrays:
            self.env[op.result] = self.const(self.arrays[args[0]].shape[op.attrs["axis"]], op.result.type)
            return
        if name == "tid":
            key = name, op.attrs["axis"]
            if key not in self.shared:
                made = self.shared[key] = Value(op.result.type)
                self.prelude.append(Op(name, (), (made,), op.attrs, (), op.span))
            self.env[op.result] = self.shared[key]
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
        """Indices that are numbers, or a thread's own; None where one is neither."""
        own = self.shared.values()
        return indices if all(i in self.consts or i in own for i in indices) else None

    def loaded(self, op: Op) -> tuple[Value, ...] | None:
        """What a load finds, if that is known; else it will be."""
        array, *indices = op.args
        place = self.place(tuple(indices))
        if place is None:
            return None
        known = self.arrays.get(array)
        at = [self.consts.get(i) for i in place]
        if known is not None and known.content is not None and None not in at:
            t = op.result.type
            assert isinstance(t, Scalar)
            return (self.const(known.content[tuple(at)].item(), t),)
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
        own = [i in self.consts for i in place]
        places = self.memory.setdefault(array, {})
        if any([i in self.consts for i in other] != own for other in places):  # may be the same element
            places.clear()
        places[place] = rest[rank:]
