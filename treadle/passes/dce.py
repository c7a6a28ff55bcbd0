"""What nobody needs goes."""

from __future__ import annotations

from ..ir import ops
from ..ir.node import Block, Func, Op, Value
from ..ir.walk import once, ops_of, with_body, with_ops, with_regions
from ..types.core import View

__all__ = ["has_effect", "remove_dead"]


def remove_dead(func: Func) -> Func:
    """Drop ops whose results nobody needs, results of branches and carried values that nobody reads, and own arrays
    that are only written. Loops without effects end by assumption, as in C.

    A program with the fact "replays" writes to arrays only for itself (gradients are other memory): what it does not
    read there goes as well."""
    params = frozenset(func.params) if func.facts.get("replays") else frozenset()
    return with_body(func, _Sweeper(func.body, params).block(func.body))


@once
def has_effect(func: Func) -> bool:
    """Whether a call of ``func`` does more than give back values."""
    return any(_effect(op) for op in ops_of(func.body))


def _effect(op: Op) -> bool:
    if op.name == "call":
        return has_effect(op.attrs["func"])
    info = ops.OPS[op.name]
    return info.writes or info.orders or op.name == "check"


_OWN_WAYS = frozenset(("for", "while", "if", "push", "record", "pop", "recall", "local"))  # ops whose needs are special


class _Sweeper:
    """Marks what is needed, from effects backwards; then rebuilds blocks with that alone.

    ``owner`` gives the op that defines a value, as its result or as a parameter of its region; ``parent`` the op whose
    region an op lies in. ``writes`` keeps, for an own array or one of ``params``, the writes that matter only once
    somebody reads it.
    ``given`` and ``taken``: for a site of the gang's stack or log the op that puts values there and those that take
    them; ``kept`` which of the values somebody needs. A recall also moves on in the log, so that all of a site stay or
    none; ``seeks`` are those that the place it starts from depends on.
    """

    def __init__(self, body: Block, params: frozenset[Value] = frozenset()):
        self.params = params
        self.owner: dict[Value, Op] = {}
        self.parent: dict[Op, Op] = {}
        self.writes: dict[Value, list[Op]] = {}
        self.given: dict[int, Op] = {}
        self.taken: dict[int, list[Op]] = {}
        self.kept: dict[int, set[int]] = {}
        self.seeks: dict[Op, list[list[Op]]] = {}
        self.around: list[list[Op]] = []
        self.live: set[Value] = set()
        self.needed: set[Op] = set()
        self.todo: list[Value] = []
        effects: list[Op] = []
        self.survey(body, None, effects)
        for op in effects:
            self.need(op)
        self.mark(body.yields)
        while self.todo:
            self.trace(self.todo.pop())

    def survey(self, block: Block, parent: Op | None, effects: list[Op]) -> None:
        owner = self.owner
        self.around = [*self.around, []]
        for op in block.ops:
            for r in op.results:
                owner[r] = op
            if parent is not None:
                self.parent[op] = parent
            for region in op.regions:
                for p in region.params:
                    owner[p] = op
                self.survey(region, op, effects)
            if ops.OPS[op.name].tape:
                self.note(op)
            elif not op.regions and not ops.OPS[op.name].pure and _effect(op):
                array = self.read_later(op) if op.name in ("store", "atomic") else None
                if array is None:
                    effects.append(op)
                else:
                    self.writes.setdefault(array, []).append(op)

        self.around = self.around[:-1]

    def note(self, op: Op) -> None:
        """Where an op on the gang's stack or log belongs."""
        match op.name:
            case "push" | "record":
                self.given[op.attrs["site"]] = op
            case "pop" | "recall":
                self.taken.setdefault(op.attrs["site"], []).append(op)
                self.seeks[op] = self.around
            case "seek":
                self.around[-1].append(op)

    def take(self, op: Op, i: int) -> None:
        """Value ``i`` of what ``op`` takes from stack or log is needed."""
        site = op.attrs["site"]
        kept = self.kept.setdefault(site, set())
        if i in kept:
            return
        kept.add(i)
        given = self.given.get(site)
        if given is not None:  # else it was in a branch that never runs, and so is what takes it back
            self.need(given)
            self.mark((given.args[i],))
        if op.name == "recall":
            for other in self.taken[site]:
                self.need(other)
                for seek in [s for seeks in self.seeks[other] for s in seeks]:
                    self.need(seek)

    def root(self, v: Value) -> tuple[Value, str]:
        """What a view shows a part of, and the name of the op that makes that; of a parameter it is empty."""
        while (maker := self.owner.get(v)) is not None and maker.name in ops.CUTS:
            v = maker.args[0]
        return v, "" if maker is None else maker.name

    def read_later(self, op: Op) -> Value | None:
        """The array that ``op`` surely writes, if that matters only where somebody reads it."""
        v, maker = self.root(op.args[0])
        return v if (maker == "local" and op.name == "store") or v in self.params else None

    def read(self, op: Op) -> None:
        """``op`` looks at memory: what was written there is needed."""
        for a in op.args if op.name == "call" else op.args[:1]:
            v, maker = self.root(a) if isinstance(a.type, View) else (a, "local")
            own = maker in ("local", "grad")
            for p in () if own else (v,) if v in self.params else self.params:  # of another view nobody knows
                for write in self.writes.pop(p, ()):
                    self.need(write)

    def mark(self, values: tuple[Value, ...]) -> None:
        live, todo = self.live, self.todo
        for v in values:
            if v not in live:
                live.add(v)
                todo.append(v)

    def need(self, op: Op) -> None:
        """``op`` runs: so do the branches and loops around it, and what decides on them."""
        if op in self.needed:
            return
        self.needed.add(op)
        match op.name if op.name in _OWN_WAYS else "":
            case "for":
                self.mark(op.args[:3])
                if op.attrs.get("stays"):
                    self.mark(op.regions[0].yields[:1])
            case "while":
                self.mark(op.regions[0].yields[:1])
            case "push" | "record":
                pass  # what is taken again is needed
            case _:
                self.mark(op.args)
                if self.params and (ops.OPS[op.name].reads or op.name == "call"):
                    self.read(op)
        parent = self.parent.get(op)
        if parent is not None:
            self.need(parent)

    def trace(self, v: Value) -> None:
        """``v`` is needed: so is its maker, and where a region hands it on, what is handed."""
        op = self.owner.get(v)
        if op is None:
            return  # a parameter of the function
        self.need(op)
        if op.name not in _OWN_WAYS:
            return
        match op.name:
            case "if":
                i = op.results.index(v)
                self.mark((op.regions[0].yields[i], op.regions[1].yields[i]))
            case "for" | "while":
                i = op.results.index(v) if v in op.results else op.regions[0].params.index(v) - _hidden(op)
                if i >= 0:
                    args, params, yields, results = _slots(op)
                    self.mark((args[i], params[i], yields[i], results[i]))
            case "pop" | "recall":
                self.take(op, op.results.index(v))
            case "local":
                for store in self.writes.pop(v, ()):
                    self.need(store)

    def block(self, block: Block) -> Block:
        needed, out = self.needed, []
        for op in block.ops:
            if op not in needed:
                continue
            if op.name in ("pop", "recall") and op.attrs["site"] not in self.given:
                out += [Op("poison", (), (r,), span=op.span) for r in op.results if r in self.live]
            else:
                out.append(self.shrink(op) if op.regions else self.short(op) if "site" in op.attrs else op)
        return with_ops(block, tuple(out))

    def short(self, op: Op) -> Op:
        """An op on stack or log, with the values that are needed."""
        kept = self.kept.get(op.attrs["site"])
        if kept is None or len(kept) == len(op.args or op.results):
            return op
        args, results = (tuple([v for i, v in enumerate(vs) if i in kept]) for vs in (op.args, op.results))
        return Op(op.name, args, results, op.attrs, (), op.span)

    def shrink(self, op: Op) -> Op:
        """``op`` without the results that nobody needs."""
        live = self.live
        regions = tuple([self.block(r) for r in op.regions])
        kept = [i for i, r in enumerate(op.results) if r in live]
        if len(kept) == len(op.results):
            return with_regions(op, regions)
        results = tuple([op.results[i] for i in kept])
        if op.name == "if":
            regions = tuple([Block((), r.ops, tuple([r.yields[i] for i in kept])) for r in regions])
            return Op("if", op.args, results, op.attrs, regions, op.span)
        args, params, yields, _ = _slots(op)
        first = len(op.args) - len(args)
        (body,) = regions
        body = Block((*body.params[: _hidden(op)], *[params[i] for i in kept]), body.ops,
                     (*body.yields[: len(body.yields) - len(yields)], *[yields[i] for i in kept]))  # fmt: skip
        return Op(op.name, (*op.args[:first], *[args[i] for i in kept]), results, op.attrs, (body,), op.span)


def _hidden(op: Op) -> int:
    """How many parameters of a loop's region come before the carried ones: the counter of a ``for``."""
    return 1 if op.name == "for" else 0


def _slots(op: Op) -> tuple[tuple[Value, ...], tuple[Value, ...], tuple[Value, ...], tuple[Value, ...]]:
    """Initial, inner, handed-on and final values of a loop, carried value by carried value."""
    n = len(op.results)
    (body,) = op.regions
    return op.args[len(op.args) - n :], body.params[_hidden(op) :], body.yields[len(body.yields) - n :], op.results
