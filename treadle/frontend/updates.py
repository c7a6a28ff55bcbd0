"""Updates at the thread's own index need no atomic.

``a[i] += x`` and ``wp.atomic_add(a, i, x)`` add in one step, since other threads may update the same element. Where
every access to ``a`` in the whole kernel has the thread's own index on each grid axis at the same place, no other
thread can, and the update becomes a plain read, sum and write, which later phases can fuse with what is around it; the
old value, if somebody uses it, is what was read. The fact "updated" then names the arrays: a launch sees to it that no
two of them lie over each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from ..ir.builder import Builder
from ..ir.effects import leaf_paths
from ..ir.node import Block, Func, Op, Value
from ..ir.ops import CUTS
from ..ir.walk import ops_of, with_body, with_ops, with_regions
from ..types.core import Type, View
from ..types.layout import children, leaves

Pattern = tuple[int | None, ...]  # per dimension of the array, the grid axis whose index stands there
FOREIGN: Pattern = ()
PLAIN = {"add": "add", "sub": "sub", "min": "min", "max": "max", "and": "bitand", "or": "bitor", "xor": "bitxor"}

Root = tuple[Value, tuple[int, ...]]  # a parameter, and the path of parts that leads to the array in it


class _Views:
    """Where the views of a function come from: root and the own-index pattern of the indices fixed so far."""

    def __init__(self, func: Func):
        self.rank = func.facts.get("ndim", 0)
        self.axes: dict[Value, int] = {}
        self.made: dict[Value, tuple[Value, ...]] = {}
        self.origin: dict[Value, tuple[Root | None, Pattern | None]] = {
            p: ((p, ()), ()) for p in func.params if _holds_views(p.type)
        }

    def follow(self, op: Op) -> None:
        """Note what ``op`` derives from a known view or struct."""
        name = op.name
        if name == "tid":
            self.axes[op.results[0]] = op.attrs["axis"]
        elif name in CUTS and op.args[0] in self.origin:
            root, fixed = self.origin[op.args[0]]
            if name == "slice" or op.attrs.get("axis"):
                fixed = None
            elif name == "subview" and fixed is not None:
                fixed = (*fixed, *[self.axes.get(i) for i in op.args[1:]])
            self.origin[op.results[0]] = (root, fixed)
        elif name == "extract" and op.args[0] in self.origin:
            root, _ = self.origin[op.args[0]]
            self.origin[op.results[0]] = (root and (root[0], (*root[1], op.attrs["index"])), ())
        elif name == "make":
            self.made[op.results[0]] = op.args
        elif name == "extract" and op.args[0] in self.made:
            part = self.made[op.args[0]][op.attrs["index"]]
            if part in self.origin:
                self.origin[op.results[0]] = self.origin[part]

    def access(self, op: Op) -> tuple[Root | None, Pattern]:
        """The root and pattern of an access."""
        v = op.args[0]
        root, fixed = self.origin.get(v, (None, None))
        if root is None or fixed is None:
            return root, FOREIGN
        return root, (*fixed, *[self.axes.get(i) for i in op.args[1 : 1 + v.type.ndim]])[: _rank(root)]

    def own(self, patterns: set[Pattern]) -> bool:
        """Whether accesses with these patterns leave every element to one thread."""
        if not self.rank:
            return False
        return all(
            any(all(len(p) > place and p[place] == axis for p in patterns) for place in range(4))
            for axis in range(self.rank)
        )


@cache
def _holds_views(t: Type) -> bool:
    return any(isinstance(leaf.type, View) for leaf in leaves(t))


def _rank(root: Root) -> int:
    """The dimensions of the array that ``root`` names."""
    t = root[0].type
    for index in root[1]:
        t = children(t)[index]
    return t.ndim


def touched(func: Func) -> set[Root | None]:
    """The arrays that ``func``, and what it calls, reads or writes; None stands for one of unknown origin."""
    return set(_patterns(func)[0])


def _patterns(func: Func) -> tuple[dict[Root | None, set[Pattern]], _Views]:
    views, found = _Views(func), {}
    for op in ops_of(func.body):
        views.follow(op)
        if op.name in ("load", "store", "atomic") and op.args[0].type.space == "global":
            root, pattern = views.access(op)
            found.setdefault(root, set()).add(pattern)
        elif op.name == "call":
            for root in _touched_by_call(op, views):
                found.setdefault(root, set()).add(FOREIGN)
    return found, views


def _touched_by_call(op: Op, views: _Views) -> Iterable[Root | None]:
    """What a call touches, as roots of the caller."""
    if not any(_holds_views(a.type) for a in op.args):  # mathematics, mostly
        return
    func: Func = op.attrs["func"]
    for root in touched(func):
        if root is None:
            yield None
            continue
        param, path = root
        origin, _ = views.origin.get(op.args[func.params.index(param)], (None, None))
        yield origin and (origin[0], (*origin[1], *path))


def settle_updates(func: Func) -> Func:
    """``func`` with the atomics that need none made plain."""
    if not any(op.name == "atomic" for op in ops_of(func.body)):
        return func
    patterns, views = _patterns(func)
    if None in patterns:
        return func
    own = {root for root, seen in patterns.items() if views.own(seen)}
    if not own:
        return func
    settled: set[Root | None] = set()

    def settle(block: Block) -> Block:
        ops: list[Op] = []
        for op in block.ops:
            if op.name == "atomic" and op.attrs["op"] in PLAIN and views.access(op)[0] in own:
                settled.add(views.access(op)[0])
                ops.extend(_plain(op))
            else:
                ops.append(with_regions(op, tuple([settle(r) for r in op.regions])) if op.regions else op)
        return with_ops(block, tuple(ops))

    made = with_body(func, settle(func.body))
    where = [(p, leaf.path) for p in func.params for leaf in leaves(p.type)]
    names = tuple([name for root, name in zip(where, leaf_paths(func), strict=True) if root in settled])
    return replace(made, facts={**func.facts, "updated": names}) if names else func


def _plain(op: Op) -> list[Op]:
    """The read, the operation and the write that stand for one atomic."""
    b = Builder(op.span)
    view: View = op.args[0].type
    *where, x = op.args
    load = Op("load", tuple(where), op.results, span=op.span)
    after = b.one(PLAIN[op.attrs["op"]], (op.result, x), view.elem)
    b.op("store", (*where, after))
    return [load, *b.ops]
