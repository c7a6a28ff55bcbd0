"""Which values of a scalarized program may change when its inputs change: the ones that need tangents.

A float is *active* if it may depend on an active input; memory is told apart by *roots*: a parameter that is a view, an
own array, the gradient of one of these, or memory that no parameter names: views read from memory (``LOADED``) and made
from an address (``ADDRESS``). A root is *hot* if it may hold active values. Where a view may be of several roots,
chosen at run time, one hot root heats them all, so that each choice has memory for its tangents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..ir.node import Block, Func, Op, Value
from ..ir.ops import CUTS
from ..ir.walk import is_float, once
from ..types.core import View

__all__ = ["ADDRESS", "LOADED", "Activity", "Marks", "Root", "activity", "gradient_of"]

LOADED, ADDRESS = "loaded", "address"  # memory that nothing can be said of
Root = Value | str | tuple  # a tuple ("grad", root) is the gradient of a root
Marks = tuple[int, ...]  # a parameter: 1 if it is active (a view: hot), and 2 more if the view's gradient is hot

FLAT = ("floor", "ceil", "trunc", "rint")  # their derivatives are zero wherever they exist


def gradient_of(roots: Iterable[Root]) -> frozenset[Root]:
    """The roots of the gradients of views of ``roots``."""
    return frozenset([r if r in (LOADED, ADDRESS) else ("grad", r) for r in roots])


@dataclass(slots=True)
class Activity:
    """``active`` floats, ``hot`` roots, ``roots`` of each view, for each call the ``marks`` of its arguments, and by
    site the ops that take back what was pushed or recorded (``taken``)."""

    active: set[Value] = field(default_factory=set)
    hot: set[Root] = field(default_factory=set)
    roots: dict[Value, frozenset[Root]] = field(default_factory=dict)
    marks: dict[Op, Marks] = field(default_factory=dict)
    taken: dict[int, list[Op]] = field(default_factory=dict)

    def is_hot(self, view: Value) -> bool:
        """Whether active values may lie behind ``view``."""
        return not self.hot.isdisjoint(self.roots[view])

    def mark(self, v: Value) -> int:
        """What a callee is told of its argument ``v``."""
        if isinstance(v.type, View):
            return self.is_hot(v) + 2 * (not self.hot.isdisjoint(gradient_of(self.roots[v])))
        return int(v in self.active)

    def carries(self, v: Value) -> bool:
        """Whether a tangent goes with ``v``: a float's, or the view of tangents that goes with a view."""
        return self.mark(v) > 0

    def kept(self, site: int) -> list[int]:
        """Which of the values that are pushed or recorded at ``site`` carry tangents where they are taken back."""
        return [k for op in self.taken.get(site, ())[:1] for k, r in enumerate(op.results) if self.carries(r)]


@once
def activity(func: Func, marks: Marks) -> Activity:
    """The activity of ``func`` for parameters of these ``marks``, through the functions that it calls."""
    return _Walk(func, marks).run()


class _Walk:
    """Walks the program again and again until nothing new is found; facts only grow."""

    def __init__(self, func: Func, marks: Marks):
        self.func, self.facts, self.changed = func, Activity(), True
        self.sites: dict[int, list[Op]] = {}  # what was pushed or recorded, by site
        for p, mark in zip(func.params, marks, strict=True):
            if isinstance(p.type, View):
                self.view(p, {p})
                self.facts.hot.update([p] if mark & 1 else (), [("grad", p)] if mark & 2 else ())
            elif mark:
                self.facts.active.add(p)

    def run(self) -> Activity:
        while self.changed:
            self.changed = False
            self.block(self.func.body)
            for y in self.func.body.yields:  # an own array that is given back: the caller cannot know better
                if isinstance(y.type, View):
                    self.heat(self.facts.roots[y].difference(self.func.params))
        return self.facts

    # ---- what is learnt

    def activate(self, values: Iterable[Value]) -> None:
        new = {v for v in values if is_float(v)} - self.facts.active
        if new:
            self.facts.active |= new
            self.changed = True

    def heat(self, roots: Iterable[Root]) -> None:
        new = set(roots) - self.facts.hot - {LOADED, ADDRESS}
        if new:
            self.facts.hot |= new
            self.changed = True

    def view(self, v: Value, roots: Iterable[Root]) -> None:
        """``v`` may be of these ``roots``; all of them hot or none."""
        known = self.facts.roots.get(v)
        found = frozenset(roots) if known is None else known | frozenset(roots)
        if found != known:
            self.facts.roots[v] = found
            self.changed = True
        if len(found) > 1:
            for group in (found, gradient_of(found)):
                if not self.facts.hot.isdisjoint(group):
                    self.heat(group)

    def join(self, source: Value, target: Value) -> None:
        """``target`` may be what ``source`` is."""
        if isinstance(source.type, View):
            self.view(target, self.facts.roots.get(source, ()))
        elif source in self.facts.active:
            self.activate((target,))

    def any(self, values: Iterable[Value]) -> bool:
        return not self.facts.active.isdisjoint(values)

    # ---- ops

    def block(self, block: Block) -> None:
        for op in block.ops:
            rule = _RULES.get(op.name)
            if rule is not None:
                rule(self, op)
            elif op.name in CUTS:
                self.view(op.result, self.facts.roots[op.args[0]])
            elif op.results and op.name not in FLAT and self.any(op.args):
                self.activate(op.results)

    def poison(self, op: Op) -> None:
        self.fresh(op, ())

    def local(self, op: Op) -> None:
        self.fresh(op, (op.result,))

    def view_at(self, op: Op) -> None:
        self.fresh(op, (ADDRESS,))

    def fresh(self, op: Op, roots: tuple[Root, ...]) -> None:
        if isinstance(op.result.type, View):
            self.view(op.result, roots)

    def grad(self, op: Op) -> None:
        self.view(op.result, gradient_of(self.facts.roots[op.args[0]]))

    def select(self, op: Op) -> None:
        for source in op.args[1:]:
            self.join(source, op.result)

    def load(self, op: Op) -> None:
        if self.facts.is_hot(op.args[0]):
            self.activate(op.results)
        for r in op.results:
            if isinstance(r.type, View):
                self.view(r, (LOADED,))

    def store(self, op: Op) -> None:
        if self.any(op.args[1:]):
            self.heat(self.facts.roots[op.args[0]])

    def atomic(self, op: Op) -> None:
        self.store(op)
        self.load(op)

    def branch(self, op: Op) -> None:
        for region in op.regions:
            self.block(region)
            for y, r in zip(region.yields, op.results):
                self.join(y, r)

    def loop(self, op: Op) -> None:
        (body,), n = op.regions, len(op.results)
        first = len(body.yields) - n
        for source, p in zip(op.args[len(op.args) - n :], body.params[len(body.params) - n :]):
            self.join(source, p)
        self.block(body)
        for y, p, r in zip(body.yields[first:], body.params[len(body.params) - n :], op.results):
            self.join(y, p)
            self.join(p, r)

    def keep(self, op: Op) -> None:
        known = self.sites.setdefault(op.attrs["site"], [])
        if op not in known:
            known.append(op)
            self.changed = True

    def take(self, op: Op) -> None:
        known = self.facts.taken.setdefault(op.attrs["site"], [])
        if op not in known:
            known.append(op)
        for r in op.results:
            if isinstance(r.type, View):
                self.view(r, ())
        for kept in self.sites.get(op.attrs["site"], ()):
            for source, r in zip(kept.args, op.results):
                self.join(source, r)

    def call(self, op: Op) -> None:
        facts, callee = self.facts, op.attrs["func"]
        marks = facts.marks[op] = tuple([facts.mark(a) for a in op.args])
        if "tangent" in op.attrs or "adjoint" in op.attrs:
            if any(marks):
                self.activate(op.results)
            return
        inner = activity(callee, marks)
        of = dict(zip(callee.params, op.args))
        for p, a in of.items():
            if isinstance(p.type, View):
                mark = inner.mark(p)
                self.heat(facts.roots[a] if mark & 1 else ())
                self.heat(gradient_of(facts.roots[a]) if mark & 2 else ())
        for y, r in zip(callee.body.yields, op.results):
            if isinstance(r.type, View):
                for root in inner.roots[y]:
                    self.view(r, self.seen(root, of, r))
                self.view(r, ())
            elif y in inner.active:
                self.activate((r,))

    def seen(self, root: Root, of: dict[Value, Value], result: Value) -> Iterable[Root]:
        """The roots that ``root`` of a callee is for its caller; an own array has the result as its name."""
        if root in (LOADED, ADDRESS):
            return (root,)
        if isinstance(root, tuple):
            return gradient_of(self.seen(root[1], of, result))
        if root in of:
            return self.facts.roots[of[root]]
        self.heat((result,))
        return (result,)


_RULES = {
    "poison": _Walk.poison, "local": _Walk.local, "view_at": _Walk.view_at, "grad": _Walk.grad,
    "select": _Walk.select, "load": _Walk.load, "store": _Walk.store, "atomic": _Walk.atomic, "if": _Walk.branch,
    "for": _Walk.loop, "while": _Walk.loop, "push": _Walk.keep, "record": _Walk.keep, "pop": _Walk.take,
    "recall": _Walk.take, "call": _Walk.call,
}  # fmt: skip
