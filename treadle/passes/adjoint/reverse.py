"""Reverse mode: a program that computes what another one does, and then how its results depend on what it read.

A block is reversed in two halves. First it *runs again* (``_Run``), which gives every value that the second half needs;
then its ops are gone through from last to first, each handing the adjoints of its results on to its arguments. A region
is reversed inside a region: the reverse of an ``if`` is an ``if`` whose arms run again and are reversed; that of a loop
is a loop from the last round to the first, whose body runs again from the values that were carried into that round,
and is then reversed. These are *pushed* when a loop runs outside and *popped* in its reverse. So what is kept at any
time is the rounds of the loops around one point, and each level of nesting runs its blocks once more.

What memory held cannot be had again once the program has stored to it. The first run of all, the *outer* one, records
what it loads from memory that moves (``facts``); later runs recall it. See `ir.ops` for stack and log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from ...builtins.adjoint import Rules, contributions
from ...ir.builder import Builder
from ...ir.effects import effects, leaf_paths
from ...ir.node import Block, Func, Op, Value
from ...ir.walk import captured, is_float, once, ops_of
from ...types.core import Type, View, b1, i64
from ..fma import leave_products
from ..inline import drop_rules
from .calls import flatten_calls
from .chosen import chooses_views, run_choice
from .facts import UNKNOWN, Facts, refuse_handed_on, refuse_unrestored, survey
from .loops import reverse_loop, run_loop
from .memory import make_shadow, reverse_atomic, reverse_load, reverse_store
from .ruled import reverse_ruled, run_ruled, works_on_gradients

__all__ = ["reverse", "reverse_function"]


def reverse(func: Func, active: tuple[str, ...], aliased: tuple[str, ...] = (), again: bool = False) -> Func:
    """The adjoint kernel of a scalarized kernel: same parameters; it runs the kernel again and adds to the gradients
    of the arrays called ``active``. Stores and updates of the kernel are repeated only where it reads them itself.

    ``aliased``: arrays that may lie over each other, so that a store to one may change another. ``again``: the
    result will be differentiated itself, so that calls keep their rules.

    Raises:
        KernelGradientError: the derivative passes through an operation that has none; the message names the line.
    """
    func = leave_products(flatten_calls(func))
    params = {p: path for p, path in zip(func.params, leaf_paths(func)) if isinstance(p.type, View)}
    facts = survey(func, params, set(active), frozenset(aliased))
    touches = effects(func).roots
    own = {root for root, touch in touches.items() if touch.own and root != UNKNOWN}
    refuse_handed_on(facts, own)
    refuse_unrestored(facts)
    walk = Reverser(facts, own, again)
    with walk.scope():
        walk.reverse_block(func.body, outer=True)
        body = walk.b.block()
    roots = {name: tuple(sorted(getattr(walk, name))) for name in ("winners", "seen", "kept")}
    marks = {**func.facts, "adjoint": True, "replays": not aliased and not walk.kept, **roots}
    nameless = {"rereads": UNKNOWN in facts.moving, "nameless": facts.nameless}
    marks.update((name, True) for name, holds in nameless.items() if holds)
    made = replace(func, body=body, facts=marks)
    return made if again else drop_rules(made)


def reverse_function(func: Func, again: bool = False) -> Func:
    """The adjoint of a scalarized function that stores to no array; those that it reads are taken as given. Parameters:
    its own, then one adjoint for each float result; it yields one adjoint for each float parameter."""
    func = leave_products(flatten_calls(func))
    results = [y for y in func.body.yields if is_float(y)]
    floats = [p for p in func.params if is_float(p)]
    views = {p: str(k) for k, p in enumerate(func.params) if isinstance(p.type, View)}
    facts = survey(func, views, set(), frozenset(), set(floats), set(results))
    walk = Reverser(facts, set(), again)
    adjoints = tuple([Value(y.type, "adj") for y in results])
    with walk.scope():
        walk.replay(func.body, outer=True)
        for y, a in zip(results, adjoints):
            walk.add(y, a)
        walk.go_back(func.body)
        body = walk.b.block((), tuple([walk.adjoint(p) for p in floats]))
    params = (*func.params, *adjoints)
    names = (*func.names, *[f"adj_{k}" for k in range(len(adjoints))]) if func.names else ()
    made = Func(f"adjoint {func.name}", "function", params, body, (), names, dict(func.facts), func.span)
    return made if again else drop_rules(made)


@dataclass(slots=True)
class Scope:
    """What is known in one region of the new program.

    ``now``: the value that stands for a value of the old program, since its block last ran. ``adjoints``: what has been
    gathered for it. ``views``: the gradient's view of a view; ``there``: of a chosen one, whether there is a gradient.
    ``marks``: where the records of an op with regions begin. ``trips``: how often a loop ran.
    """

    now: dict[Value, Value] = field(default_factory=dict)
    adjoints: dict[Value, Value] = field(default_factory=dict)
    views: dict[Value, Value] = field(default_factory=dict)
    there: dict[Value, Value] = field(default_factory=dict)
    marks: dict[Op, Value] = field(default_factory=dict)
    trips: dict[Op, Value] = field(default_factory=dict)


class Reverser:
    """Writes the adjoint program. ``b`` appends to the block that is being made; ``scopes`` are those around it.

    ``outer`` says whether the code that is being written is part of the outer run. ``own``: roots that each thread
    touches at its own index alone. ``winners``: roots whose least or greatest updates were asked for their gradients;
    ``seen``: roots that rules of the user look at; ``kept``: that only these write, and what they leave stays.
    """

    def __init__(self, facts: Facts, own: set[str], again: bool):
        self.facts, self.own, self.again = facts, own, again
        self.b = Builder()
        self.scopes: list[Scope] = []
        self.outer = True
        self.winners: set[str] = set()
        self.seen: set[str] = set()
        self.kept: set[str] = set()
        self.numbers = count()
        self.sites: dict[Op, int] = {}

    # ---- scopes

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """A new region: its ops go to a builder of their own, adjoints gathered in it are its own."""
        before, self.b = self.b, Builder(self.b.span)
        self.scopes.append(Scope())
        try:
            yield self.scopes[-1]
        finally:
            self.scopes.pop()
            self.b = before

    def now(self, v: Value) -> Value:
        """The value that stands for ``v`` here."""
        for scope in reversed(self.scopes):
            if v in scope.now:
                return scope.now[v]
        return v

    def all_now(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple([self.now(v) for v in values])

    def known(self, table: str, key: object) -> Value | None:
        """The entry for ``key`` in the innermost scope that has one."""
        for scope in reversed(self.scopes):
            found = getattr(scope, table).get(key)
            if found is not None:
                return found
        return None

    def site(self, op: Op) -> int:
        """The number by which records of ``op`` are told apart."""
        return self.sites.setdefault(op, next(self.numbers))

    # ---- adjoints

    def is_active(self, v: Value) -> bool:
        return v in self.facts.active

    def add(self, v: Value, adjoint: Value | None) -> None:
        """Gather ``adjoint`` for ``v``."""
        if adjoint is None or v not in self.facts.active:
            return
        here = self.scopes[-1].adjoints
        before = here.get(v)
        here[v] = adjoint if before is None else self.b.one("add", (before, adjoint), v.type)

    def take(self, v: Value) -> Value | None:
        """What was gathered here for ``v``, whose maker is next: nobody adds to it from now on."""
        return self.scopes[-1].adjoints.pop(v, None)

    def zero(self, t: Type) -> Value:
        return self.b.const(0.0, t)

    def adjoint(self, v: Value) -> Value:
        """What was gathered here for ``v``, or zero."""
        found = self.scopes[-1].adjoints.get(v)
        return self.zero(v.type) if found is None else found

    # ---- running again

    def reverse_block(self, block: Block, outer: bool = False) -> None:
        """Run ``block`` again, then go back through it."""
        self.replay(block, outer)
        self.go_back(block)

    def replay(self, block: Block, outer: bool) -> None:
        """Run ``block`` again where its reverse will stand: its loops push what they carry."""
        before, self.outer = self.outer, outer
        for op in block.ops:
            if op in self.facts.records:
                self.scopes[-1].marks[op] = self.mark()
            if op.name in ("for", "while"):
                run_loop(self, op)
            else:
                self.run(op)
        self.outer = before

    def mark(self) -> Value:
        return self.b.one("mark", (), i64, **({} if self.outer else {"read": True}))

    def run(self, op: Op) -> None:
        """``op`` once more, with whatever is in its regions."""
        with self.b.at(op.span):
            match op.name:
                case "print" | "check":
                    return
                case "store":
                    if self.outer and self.facts.moves(op.args[0]):
                        self.copy(op)
                case "load" | "atomic":
                    self.read(op)
                case "if" if chooses_views(op):
                    run_choice(self, op)
                case "call" if op.regions:
                    run_ruled(self, op)
                case "call" if "replay" in op.attrs:
                    self.copy(op, attrs={"func": op.attrs["replay"]})
                case "call":
                    self.copy(op, attrs=None if self.again else {"func": op.attrs["func"]})
                case _:
                    self.copy(op, tuple([self.rerun(region) for region in op.regions]))

    def read(self, op: Op) -> None:
        """A load or an update: from memory that is still at any time, else from the log in all runs but the first."""
        recorded, moves = self.facts.recorded(op), self.facts.moves(op.args[0])
        if op.name == "atomic" and not (moves and self.outer) and not recorded:
            return  # nobody needs the update itself
        if moves and not self.outer:
            if recorded:
                results = self.b.op("recall", (), tuple([r.type for r in op.results]), site=self.site(op))
                self.scopes[-1].now.update(zip(op.results, results))
            return
        self.copy(op)
        if recorded:
            self.b.op("record", self.all_now(op.results), (), site=self.site(op))

    def copy(self, op: Op, regions: tuple[Block, ...] = (), attrs: dict | None = None) -> None:
        """``op`` with the values of now."""
        results = tuple([Value(r.type, r.name) for r in op.results])
        attrs = op.attrs if attrs is None else attrs
        self.b.ops.append(Op(op.name, self.all_now(op.args), results, attrs, regions, op.span))
        self.scopes[-1].now.update(zip(op.results, results))

    def rerun(self, region: Block) -> Block:
        """A region that runs again as it is."""
        with self.scope() as here:
            params = self.bind(here, region.params)
            for op in region.ops:
                self.run(op)
            return self.b.block(params, self.all_now(region.yields))

    def bind(self, here: Scope, params: tuple[Value, ...]) -> tuple[Value, ...]:
        """Parameters of a new region that stand for ``params``."""
        made = tuple([Value(p.type, p.name) for p in params])
        here.now.update(zip(params, made))
        return made

    # ---- going back

    def go_back(self, block: Block) -> None:
        """The adjoints of the results of each op, from the last to the first, go to its arguments."""
        self.outer = False
        for op in block.ops:
            if op.name == "local":
                make_shadow(self, op)
        for op in reversed(block.ops):
            with self.b.at(op.span):
                self.go_back_through(op)

    def go_back_through(self, op: Op) -> None:
        match op.name:
            case "load":
                reverse_load(self, op)
            case "store":
                reverse_store(self, op)
            case "atomic":
                reverse_atomic(self, op)
            case "if":
                self.reverse_if(op)
            case "for" | "while":
                reverse_loop(self, op)
            case "call" if op.regions:
                reverse_ruled(self, op)
            case "call":
                self.reverse_call(op)
            case _ if any(map(self.is_active, op.results)):
                self.reverse_plain(op)

    def reverse_plain(self, op: Op) -> None:
        """An operation on numbers."""
        adjoint = self.take(op.result)
        if adjoint is None:
            return
        args, result = self.all_now(op.args), self.now(op.result)
        match op.name:
            case "select":
                c, zero = args[0], self.zero(op.result.type)
                parts = [None, self.b.one("select", (c, adjoint, zero), op.result.type),
                         self.b.one("select", (c, zero, adjoint), op.result.type)]  # fmt: skip
            case "cast":
                parts = [self.b.one("cast", (adjoint,), op.args[0].type) if is_float(op.args[0]) else None]
            case _:
                wanted, guarded = [*map(self.is_active, op.args)], op in self.facts.guarded
                finite = [now for a, now in zip(op.args, args) if a not in self.facts.suspect] if guarded else ()
                rules = Rules(self.b, wanted, guarded, finite, self.again)
                parts = contributions(rules, op, args, result, adjoint)
        for a, part in zip(op.args, parts, strict=True):
            self.add(a, part)

    def guard(self, op: Op, adjoints: tuple[Value, ...], part: Value | None) -> Value | None:
        """``part``; 0 where all ``adjoints`` are 0 and the user's rule for ``op`` may make infinity of that."""
        if part is None or op not in self.facts.guarded or "adjoint" not in op.attrs:
            return part
        none = None
        for a in adjoints:
            is_zero = self.b.one("eq", (a, self.zero(a.type)), b1)
            none = is_zero if none is None else self.b.one("bitand", (none, is_zero), b1)
        return self.b.one("select", (none, self.zero(part.type), part), part.type)

    def reverse_if(self, op: Op) -> None:
        """The same choice; each arm runs again and is gone back through. Where a gang splits, the second arm finds its
        records behind those of the first, which therefore leaves the log as it found it after its run."""
        outside = self.captured(op)
        entering = {r: a for r in op.results if (a := self.take(r)) is not None}
        if not entering and not self.touches(op):
            return
        regions = []
        self.seek(op)
        for region in op.regions:
            with self.scope():
                self.replay(region, outer=False)
                behind = self.mark() if op in self.facts.records and not regions else None
                for r, y in zip(op.results, region.yields):
                    self.add(y, entering.get(r))
                self.go_back(region)
                if behind is not None:
                    self.b.op("seek", (behind,))
                regions.append(self.b.block((), tuple([self.adjoint(v) for v in outside])))
        types = tuple([v.type for v in outside])
        for v, part in zip(outside, self.b.op("if", self.all_now(op.args), types, tuple(regions))):
            self.add(v, part)

    def captured(self, op: Op) -> list[Value]:
        """The active values from outside that the regions of ``op`` read, in a fixed order."""
        return sorted(filter(self.is_active, captured(op)), key=self.facts.order.__getitem__)

    def touches(self, op: Op) -> bool:
        """Whether the reverse of ``op`` does something though none of its results has an adjoint."""
        return any(
            inner.name in ("store", "atomic") and self.facts.watched(inner.args[0])
            or inner.name == "call" and works_on_gradients(self, inner)
            for region in op.regions for inner in ops_of(region)
        )  # fmt: skip

    def seek(self, op: Op) -> None:
        """The next recall reads what ``op`` recorded."""
        if op in self.facts.records:
            self.b.op("seek", (self.known("marks", op),))

    def reverse_call(self, op: Op) -> None:
        """A call: by the rule that it carries, else by the adjoint of the function."""
        entering = [self.take(r) for r in op.results]
        if all(a is None for a in entering):
            return
        floats = [a for a in op.args if is_float(a)]
        pairs = zip(op.results, entering)
        adjoints = tuple([self.zero(r.type) if a is None else a for r, a in pairs if is_float(r)])
        self.call_adjoint(op, floats, adjoints)

    def call_adjoint(self, op: Op, floats: list[Value], adjoints: tuple[Value, ...]) -> None:
        """The adjoints of the float arguments of a call on numbers alone, given those of its float results."""
        rule = op.attrs.get("adjoint")
        if rule is None:
            args, rule = (*self.all_now(op.args), *adjoints), _function(op.attrs["func"], self.again)
        else:
            args = (*self.all_now(op.args), *self.all_now(op.results), *adjoints)
        parts = self.b.op("call", args, tuple([a.type for a in floats]), func=rule)
        for a, part in zip(floats, parts, strict=True):
            self.add(a, part if rule.facts.get("builtin") else self.guard(op, adjoints, part))


@once
def _function(func: Func, again: bool) -> Func:
    """The adjoint of a called function, made once."""
    from ..scalarize import lowered

    return lowered(reverse_function(func, again))
