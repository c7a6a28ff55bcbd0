"""The program as each thread of a block runs it."""

from __future__ import annotations

from dataclasses import replace

from ...ir.node import NO_ATTRS, Block, Func, Op, Value
from ...ir.walk import ops_of, with_regions
from ...types.core import Fixed, Scalar, b1, fixed, i32, view
from ...types.layout import leaves
from .folding import Fold
from .footprint import Program, Root, Unsuited
from .plan import Plan

WARP = 32  # threads that shuffles reach
_GLOBAL: Root = (None, False)  # all memory that the block does not own: arrays may lie over each other

# How a thread was at a piece of memory since the last barrier.
_READ, _WROTE, _FIRST_READ, _FIRST_WROTE = "read", "wrote", "first read", "first wrote"
_MEETS = {
    _READ: {_WROTE, _FIRST_WROTE}, _WROTE: {_READ, _WROTE, _FIRST_READ, _FIRST_WROTE},
    _FIRST_READ: {_WROTE}, _FIRST_WROTE: {_READ, _WROTE},
}  # fmt: skip


def write(program: Program, plan: Plan, threads: int) -> Func:
    """The program for a thread of a block of ``threads``."""
    writer = _Writer(program, plan, threads)
    body = writer.block(program.func.body)
    body = Block((), (*writer.entry, *body.ops), body.yields)
    return replace(program.func, body=body, facts={**program.func.facts, "threads": threads})


class _Writer:
    """``pending``: how memory was used since the last barrier."""

    def __init__(self, program: Program, plan: Plan, threads: int):
        self.program, self.plan, self.threads = program, plan, threads
        self.entry: list[Op] = []
        self.out: list[Op] = []
        self.pending: dict[Root, set[str]] = {}
        self.span = program.func.span
        self.numbers: dict[tuple, Value] = {}
        self.lane = self._top("lane", (), i32)
        self.first = self._top("eq", (self.lane, self._number(0, i32)), b1)

    # ---- ops

    def _top(self, name: str, args: tuple[Value, ...], t: Scalar, **attrs: object) -> Value:
        """A value made where the function begins, once."""
        key = (name, args, t, *attrs.values())
        if key not in self.numbers:
            self.numbers[key] = Value(t)
            self.entry.append(Op(name, args, (self.numbers[key],), attrs or NO_ATTRS, (), self.span))
        return self.numbers[key]

    def _number(self, value: int, t: Scalar) -> Value:
        return self._top("const", (), t, value=value)

    def _one(self, name: str, args: tuple[Value, ...], t: Scalar, **attrs: object) -> Value:
        made = Value(t)
        self.out.append(Op(name, args, (made,), attrs or NO_ATTRS, (), self.span))
        return made

    # ---- barriers

    def _touch(self, root: Root, how: str) -> None:
        self.pending.setdefault(self._key(root), set()).add(how)

    def _key(self, root: Root) -> Root:
        return root if self.program.own(root) else _GLOBAL

    def _before(self, roots: dict[Root, set[str]]) -> None:
        """A barrier, if what comes could meet what other threads did to the same memory."""
        if any([_MEETS[how] & self.pending.get(self._key(r), set()) for r, hows in roots.items() for how in hows]):
            self._barrier()
        for root, hows in roots.items():
            for how in hows:
                self._touch(root, how)

    def _barrier(self) -> None:
        self.out.append(Op("barrier", (), (), NO_ATTRS, (), self.span))
        self.pending = {}

    def _settled(self) -> None:
        if self.pending:
            self._barrier()

    def _roots(self, op: Op, first: bool) -> dict[Root, set[str]]:
        touched, found = self.program.of(op), {}
        for roots, how in ((touched.reads, _FIRST_READ if first else _READ),
                           (touched.writes, _FIRST_WROTE if first else _WROTE)):  # fmt: skip
            for root in roots:
                if not self.program.own(root) or root[0] in self.plan.shared:
                    found.setdefault(root, set()).add(how)
        return found

    # ---- blocks

    def block(self, block: Block, last: bool = True) -> Block:
        """``block``; all its work is done when it ends, if it is ``last``."""
        outer, self.out = self.out, []
        for op in block.ops:
            self.span = op.span
            self._op(op)
        if last:
            self._settled()
        made = Block(block.params, tuple(self.out), block.yields)
        self.out = outer
        return made

    def _op(self, op: Op) -> None:
        if op in self.plan.tops:
            self._before(self._roots(op, False))
            self.out.append(self._divided(op))
        elif op in self.plan.folds:
            self._before(self._roots(op, False))
            self._fold(op, self.plan.folds[op])
        elif op in self.plan.alone:
            self._alone(op)
        elif op.name == "if" and op in self.plan.joint:
            self._branch(op)
        elif op in self.plan.joint:
            self._settled()
            regions = tuple([self.block(region) for region in op.regions])
            self.out.append(Op(op.name, op.args, op.results, op.attrs, regions, op.span))
        elif op.name == "local" and op.results[0] in self.plan.shared:
            self._shared(op)
        else:
            self._before(self._roots(op, False))
            self.out.append(op)

    def _branch(self, op: Op) -> None:
        before, after, regions = self.pending, {}, []
        for region in op.regions:
            self.pending = {root: set(hows) for root, hows in before.items()}
            regions.append(self.block(region, last=False))
            for root, hows in self.pending.items():
                after.setdefault(root, set()).update(hows)
        self.pending = after
        self.out.append(Op(op.name, op.args, op.results, op.attrs, tuple(regions), op.span))

    def _shared(self, op: Op) -> None:
        """An array that the block has once, cleared together."""
        (array,), kind = op.results, op.attrs["type"]
        self.entry.append(Op("local", (), (array,), {"type": kind, "blank": True, "shared": True}, (), op.span))
        if op.attrs.get("blank"):
            return
        if len(kind.shape) != 1:
            raise Unsuited
        self._before({(array, False): {_WROTE}})
        zeros = tuple([self._number(0.0 if leaf.type.is_float else False if leaf.type is b1 else 0, leaf.type)
                       for leaf in leaves(kind.elem)])  # fmt: skip
        index = Value(i32)
        store = Op("store", (array, index, *zeros), (), NO_ATTRS, (), op.span)
        bounds = self.lane, self._number(kind.shape[0], i32), self._number(self.threads, i32)
        self.out.append(Op("for", bounds, (), NO_ATTRS, (Block((index,), (store,)),), op.span))

    # ---- by the first thread

    def _alone(self, op: Op) -> None:
        """The first thread does it, and tells the others what it found."""
        told = [r for r in op.results if r in self.program.used]
        inner = {r: Value(r.type) for r in op.results}
        ops = [Op(op.name, op.args, tuple(inner.values()), op.attrs, op.regions, op.span)]
        cells = [self._cell(r.type) for r in told]  # type: ignore[arg-type]
        roots = self._roots(op, True)
        for cell, r in zip(cells, told, strict=True):
            roots[cell, False] = {_FIRST_WROTE}
            ops.append(Op("store", (cell, self._number(0, i32), inner[r]), (), NO_ATTRS, (), op.span))
        self._before(roots)
        self.out.append(Op("if", (self.first,), (), NO_ATTRS, (Block((), tuple(ops)), Block()), op.span))
        for cell, r in zip(cells, told, strict=True):
            self._before({(cell, False): {_READ}})
            self.out.append(Op("load", (cell, self._number(0, i32)), (r,), NO_ATTRS, (), op.span))

    def _cell(self, t: Scalar, count: int = 1) -> Value:
        """A shared array of ``count`` numbers."""
        made = Value(view(t, 1, space="local"))
        kind: Fixed = fixed(t, (count,))
        self.entry.append(Op("local", (), (made,), {"type": kind, "blank": True, "shared": True}, (), self.span))
        self.program.made[made] = self.entry[-1]
        return made

    # ---- loops that join all their rounds

    def _fold(self, op: Op, fold: Fold) -> None:
        """Each thread joins a run of rounds; then 32 threads that run in step join theirs by shuffles, and all of them
        what these found. Threads without rounds are the last ones."""
        start, stop, step, initial = op.args
        t, kind = start.type, initial.type
        run = -(-fold.rounds // self.threads)
        down = self.program.made[step].attrs["value"]
        lane = self.lane if t is i32 else self._top("cast", (self.lane,), t)
        first = self._one("add", (start, self._one("mul", (lane, self._number(run * down, t)), t)), t)
        last = self._one("add", (first, self._number(run * down, t)), t)
        last = self._one("min" if down > 0 else "max", (last, stop), t)
        found = self._run(op, fold, first, last, step)
        steps = [1 << k for k in range(5) if 1 << k < self.threads]
        for by in steps:
            other = self._one("shuffle", (found,), kind, by=by)
            upper = self._top("ne", (self._top("bitand", (self.lane, self._number(by, i32)), i32),
                                     self._number(0, i32)), b1)  # fmt: skip
            joined = self._one(fold.join.name, (self._one("select", (upper, other, found), kind),
                                                self._one("select", (upper, found, other), kind)), kind)  # fmt: skip
            beyond = self._top("bitor", (self._top("bitand", (self.lane, self._number(-2 * by, i32)), i32),
                                         self._number(by, i32)), i32)  # fmt: skip
            some = self._top("lt", (beyond, self._number(-(-fold.rounds // run), i32)), b1)
            found = self._one("select", (some, joined, found), kind)
        self._join_warps(op, fold, found, -(-fold.rounds // run))

    def _run(self, op: Op, fold: Fold, first: Value, last: Value, step: Value) -> Value:
        """What the rounds from ``first`` to ``last`` give; nothing that matters where there are none."""
        (region,) = op.regions
        begun, carried, any_, fresh = Value(b1), region.params[1], Value(b1), Value(op.results[0].type)
        true = self._number(True, b1)
        chosen = Value(carried.type)
        pick = Op("select", (begun, fold.join.result, fold.value), (chosen,), NO_ATTRS, (), op.span)
        body = Block((region.params[0], carried, begun), (*region.ops, pick), (chosen, true))
        args = first, last, step, op.args[3], self._number(False, b1)
        self.out.append(Op("for", args, (fresh, any_), NO_ATTRS, (body,), op.span))
        return fresh

    def _join_warps(self, op: Op, fold: Fold, found: Value, busy: int) -> None:
        """``op``'s result, from what each 32 threads found, of which ``busy`` had rounds."""
        total, kind = op.args[3], op.args[3].type
        if self.threads > WARP:
            cell = self._cell(kind, self.threads // WARP)
            self._before({(cell, False): {_WROTE}})
            warp = self._top("shr", (self.lane, self._number(WARP.bit_length() - 1, i32)), i32)
            place = self._top("bitand", (self.lane, self._number(WARP - 1, i32)), i32)
            leads = self._top("eq", (place, self._number(0, i32)), b1)
            store = Op("store", (cell, warp, found), (), NO_ATTRS, (), op.span)
            self.out.append(Op("if", (leads,), (), NO_ATTRS, (Block((), (store,)), Block()), op.span))
            self._before({(cell, False): {_READ}})
            for k in range(-(-busy // WARP) - 1):
                other = Value(kind)
                self.out.append(Op("load", (cell, self._number(k, i32)), (other,), NO_ATTRS, (), op.span))
                total = self._one(fold.join.name, (total, other), kind)
            found = Value(kind)
            place = self._number(-(-busy // WARP) - 1, i32)
            self.out.append(Op("load", (cell, place), (found,), NO_ATTRS, (), op.span))
        self.out.append(Op(fold.join.name, (total, found), op.results, NO_ATTRS, (), op.span))

    # ---- divided loops

    def _divided(self, op: Op) -> Op:
        """A loop, and those in it, with the rounds of this thread."""
        part, start, stop, step = self.plan.parts[op], *op.args[:3]
        t, down = start.type, self.program.made[step].attrs["value"] < 0
        mine = self.lane
        if part.shift:
            mine = self._top("shr", (mine, self._number(part.shift, i32)), i32)
        elif part.width < self.threads:
            mine = self._top("bitand", (mine, self._number(part.width - 1, i32)), i32)
        if t is not i32:
            mine = self._top("cast", (mine,), t)
        if down and part.rounds is not None:  # the last of its rounds comes first
            left = self._top("sub", (self._number(part.rounds - 1, t), mine), t)
            mine = self._top("bitand", (left, self._number(part.width - 1, t)), t)
        begin = self._one("sub" if down else "add", (start, mine), t)
        by = self._number(-part.width if down else part.width, t)
        return Op("for", (begin, stop, by), (), op.attrs, (self._inside(op.regions[0]),), op.span)

    def _inside(self, block: Block) -> Block:
        """A block of a divided loop."""
        outer, self.out = self.out, []
        for op in block.ops:
            if op in self.plan.parts:
                op = self._divided(op)
            elif any([inner in self.plan.parts for region in op.regions for inner in ops_of(region)]):
                op = with_regions(op, tuple([self._inside(region) for region in op.regions]))
            self.out.append(op)
        made, self.out = Block(block.params, tuple(self.out), block.yields), outer
        return made
