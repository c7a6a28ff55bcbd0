"""Arrays of a thread's own whose every index is known become plain values."""

from __future__ import annotations

from math import prod

from ..ir.node import Block, Func, Op, Value
from ..ir.walk import with_body, with_ops, with_regions
from ..types.core import Scalar, Type, b1
from ..types.layout import children, leaves

__all__ = ["promote_arrays"]

LARGEST = 1024  # scalars of an array that is promoted at all
LARGEST_MERGED = 128  # of one that a branch or a loop writes: each scalar is then a result or carried value of it

Slot = tuple[Value, int]  # an array, and the number of a scalar in it


def promote_arrays(func: Func) -> Func:
    """Turn own arrays that are only loaded from and stored to, at constant indices, into values, one a scalar.

    Stores become new values; branches and loops that store yield and carry them. Registers then hold what fits, and
    what was stored is known to all later passes.
    """
    arrays = _Arrays(func)
    if not arrays.places:
        return func
    walk = _Promoter(arrays, func)
    body = walk.block(func.body)
    return with_body(func, Block(body.params, (*walk.zeros.values(), *body.ops), body.yields))


class _Arrays:
    """Which arrays qualify. ``places`` gives for a view of one: the array, and which leaves of an element it shows.

    ``spots`` gives for a load or store the slots it touches, ``stored`` for a region those it writes.
    """

    def __init__(self, func: Func):
        self.consts: dict[Value, int] = {}
        self.places: dict[Value, tuple[Value, int, int]] = {}
        self.types: dict[Value, tuple[tuple[int, ...], tuple[Type, ...]]] = {}
        self.spots: dict[Op, list[Slot]] = {}
        self.stored: dict[Block, set[Slot]] = {}
        self.bad: set[Value] = set()
        self.survey(func.body, False)
        self.drop(func.body.yields)
        for array in self.bad:
            self.types.pop(array, None)
        self.places = {v: p for v, p in self.places.items() if p[0] in self.types}
        self.stored = {b: {s for s in slots if s[0] in self.types} for b, slots in self.stored.items()}

    def survey(self, block: Block, inner: bool) -> set[Slot]:
        written: set[Slot] = set()
        for op in block.ops:
            name = op.name
            if name == "const":
                self.consts[op.results[0]] = op.attrs["value"]
            elif name == "local":
                self.declare(op)
            elif name in ("load", "store") and op.args[0] in self.places:
                self.access(op, inner)
                self.drop(op.args[1:])
                if name == "store":
                    written.update(self.spots.get(op, ()))
            elif name == "field" and op.args[0] in self.places:
                array, first, _ = self.places[op.args[0]]
                parts, index = children(op.args[0].type.elem), op.attrs["index"]
                before = sum([len(leaves(t)) for t in parts[:index]])
                self.places[op.results[0]] = array, first + before, len(leaves(parts[index]))
            else:
                self.drop(op.args)
            for region in op.regions:
                written |= self.survey(region, True)
                self.drop(region.yields)
        self.stored[block] = written
        return written

    def declare(self, op: Op) -> None:
        t, array = op.attrs["type"], op.results[0]
        kinds = tuple([leaf.type for leaf in leaves(t.elem)])
        if prod(t.shape) * len(kinds) <= LARGEST and all(isinstance(k, Scalar) for k in kinds):
            self.types[array] = t.shape, kinds
            self.places[array] = array, 0, len(kinds)

    def access(self, op: Op, inner: bool) -> None:
        """Note the slots of a load or store, or that its array does not qualify."""
        array, first, count = self.places[op.args[0]]
        shape, kinds = self.types[array]
        flat = 0
        for extent, v in zip(shape, op.args[1 : 1 + len(shape)]):
            i = self.consts.get(v, -1)
            if not 0 <= i < extent:
                self.bad.add(array)
                return
            flat = flat * extent + i
        if inner and op.name == "store" and prod(shape) * len(kinds) > LARGEST_MERGED:
            self.bad.add(array)
            return
        start = flat * len(kinds) + first
        self.spots[op] = [(array, k) for k in range(start, start + count)]

    def drop(self, values: tuple[Value, ...]) -> None:
        """Arrays whose views go elsewhere do not qualify."""
        for v in values:
            if v in self.places:
                self.bad.add(self.places[v][0])


class _Promoter:
    """``now`` gives the value in each slot, ``env`` what stands for the results of loads."""

    def __init__(self, arrays: _Arrays, func: Func):
        self.arrays, self.span = arrays, func.span
        self.env: dict[Value, Value] = {}
        self.now: dict[Slot, Value] = {}
        self.zeros: dict[Type, Op] = {}

    def zero(self, t: Scalar) -> Value:
        if t not in self.zeros:
            value = False if t is b1 else 0.0 if t.is_float else 0
            self.zeros[t] = Op("const", (), (Value(t),), {"value": value}, (), self.span)
        return self.zeros[t].results[0]

    def renamed(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        env = self.env
        return tuple([env.get(v, v) for v in values])

    def block(self, block: Block) -> Block:
        out: list[Op] = []
        for op in block.ops:
            new = self.visit(op)
            if new is not None:
                out.append(new)
        return with_ops(block, tuple(out), self.renamed(block.yields))

    def visit(self, op: Op) -> Op | None:
        places, env = self.arrays.places, self.env
        if op.results and op.results[0] in places:  # the array itself, or the view of a part
            if op.name == "local":
                shape, kinds = self.arrays.types[op.results[0]]
                for k in range(prod(shape) * len(kinds)):
                    self.now[op.results[0], k] = self.zero(kinds[k % len(kinds)])
            return None
        if op.args and op.args[0] in places:
            spots = self.arrays.spots[op]
            if op.name == "load":
                env.update(zip(op.results, [self.now[s] for s in spots]))
            else:
                self.now.update(zip(spots, self.renamed(op.args[len(op.args) - len(spots) :])))
            return None
        for a in op.args:
            if a in env:
                op = Op(op.name, self.renamed(op.args), op.results, op.attrs, op.regions, op.span)
                break
        if op.regions:
            return self.branch(op) if op.name == "if" else self.loop(op)
        return op

    def merged(self, op: Op) -> list[Slot]:
        """The slots that the regions of ``op`` write and that exist outside, in a fixed order."""
        written = set().union(*[self.arrays.stored[region] for region in op.regions])
        return [slot for slot in self.now if slot in written] if written else []

    def branch(self, op: Op) -> Op:
        slots, before, regions = self.merged(op), self.now, []
        for region in op.regions:
            self.now = dict(before)
            made = self.block(region)
            regions.append(Block((), made.ops, (*made.yields, *[self.now[s] for s in slots])) if slots else made)
        self.now = before
        if not slots:
            return with_regions(op, tuple(regions))
        results = tuple([Value(before[s].type) for s in slots])
        self.now.update(zip(slots, results))
        return Op("if", op.args, (*op.results, *results), op.attrs, tuple(regions), op.span)

    def loop(self, op: Op) -> Op:
        slots, before = self.merged(op), self.now
        params = tuple([Value(before[s].type) for s in slots])
        self.now = {**before, **dict(zip(slots, params))}
        (body,) = op.regions
        made = self.block(body)
        handed = tuple([self.now[s] for s in slots])
        self.now = before
        if not slots:
            return with_regions(op, (made,))
        results = tuple([Value(p.type) for p in params])
        initial = tuple([before[s] for s in slots])
        self.now.update(zip(slots, results))
        region = Block((*body.params, *params), made.ops, (*made.yields, *handed))
        return Op(op.name, (*op.args, *initial), (*op.results, *results), op.attrs, (region,), op.span)
