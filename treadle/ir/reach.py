"""Which elements of its arrays a scalarized kernel may read and write, as boxes that a launch works out in numbers.

An index is bounded from below and above by sums of constants, integer arguments and extents of the grid:
``traj[t + 1, i]`` touches row ``t + 1``, columns 0 to dim0 - 1. What is not such a sum may be anywhere in its
dimension. Tapes ask this to save what a launch overwrites and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..types.core import View
from ..types.layout import leaves
from .effects import leaf_paths
from .node import Block, Func, Op, Value
from .walk import callees, ops_of, uses_of

Key = tuple[str, int]  # ("dim", grid axis) or ("arg", number of the leaf parameter)


class Sum(NamedTuple):
    """``constant`` plus a multiple of each key's value."""

    constant: int
    terms: tuple[tuple[Key, int], ...] = ()

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        found = dict(self.terms)
        for key, n in other.terms:
            found[key] = found.get(key, 0) + factor * n
        kept = tuple(sorted((key, n) for key, n in found.items() if n))
        return Sum(self.constant + factor * other.constant, kept)


class Bounds(NamedTuple):
    """An integer from ``low`` to ``high``, both taken. ``axis``: it is the thread's index on that axis, exactly.
    ``counted``: it is an index that counts from the end where it is negative."""

    low: Sum
    high: Sum
    axis: int = -1
    counted: bool = False


Box = tuple["Bounds | None", ...]  # per dimension; None: anywhere


@dataclass(slots=True)
class Reach:
    """What may happen to one array. ``reads`` and ``writes``: boxes of elements; ``added``: the kinds of atomic
    operations on it. ``sure``: every thread stores to each place that ``writes`` holds for it; ``covers``: per
    dimension the grid axis that a sure store of whole elements goes along, or None."""

    reads: list[Box] = field(default_factory=list)
    writes: list[Box] = field(default_factory=list)
    added: set[str] = field(default_factory=set)
    loads: bool = False
    stores: bool = False
    sure: bool = True
    covers: tuple[int, ...] | None = None


def reach(func: Func) -> dict[str, Reach]:
    """What ``func`` touches, by the path of the array; ``?`` stands for memory that no parameter leads to."""
    walk = _Walk(func)
    walk.block(func.body)
    return walk.found


def facts_of(func: Func) -> dict[str, Any]:
    """The reach of a kernel as JSON-able facts for ``Binary.meta["touched"]``.

    ``arrays``: for each array parameter ``path`` (parameter, then fields), ``name``, ``reads`` and ``writes`` (a list
    of boxes, each dimension ``[low, high]`` or None; a bound is ``[constant, [[kind, where, factor]…]]`` with ``where``
    a grid axis or an argument's path; a third bound, 1, stands behind those of indices that count from the end where
    they are negative), ``loads``, ``stores``, ``added``, ``sure``, ``covers``. ``unknown``:
    "read" or "written" where memory is that no parameter leads to, the former also where rules of functions may look at
    any array; else "". ``mixed``: the paths of arrays that it may be, because they meet others in a name or their
    address is taken. ``held``: the arrays in elements of arrays that it may be, each as the place of the array and the
    fields of its elements; None where nothing is known.
    """
    walk = _Walk(func)
    walk.block(func.body)
    found, paths = walk.found, leaf_paths(func)
    where = [[k, *leaf.path] for k, t in enumerate(func.signature) for leaf in leaves(t)]
    views = [leaf.type for t in func.signature for leaf in leaves(t)]
    unknown = found.get("?")
    arrays = []
    for path, place, t in zip(paths, where, views, strict=True):
        touched = found.get(path)
        if not isinstance(t, View) or touched is None:
            continue
        arrays.append({
            "path": place, "name": path, "loads": touched.loads, "stores": touched.stores,
            "added": sorted(touched.added), "sure": touched.sure,
            "covers": None if touched.covers is None else [*touched.covers],
            "reads": _boxes(touched.reads, where), "writes": _boxes(touched.writes, where),
        })  # fmt: skip
    changed = unknown is not None and bool(unknown.writes)
    looked_at = unknown is not None or "ruled" in func.facts
    mixed = [place for path, place in zip(paths, where, strict=True) if path in walk.mixed]
    places = dict(zip(paths, where, strict=True))
    held = None if None in walk.held else [[places[root], [*fields]] for root, fields in sorted(walk.held)]
    said = "written" if changed else "read" if looked_at else ""
    return {"arrays": arrays, "unknown": said, "mixed": mixed, "held": held}


def _boxes(boxes: Iterable[Box], where: list[list[int]]) -> list[list[Any]]:
    """Boxes without doubles; a single one of nothing but None where one of them reaches everywhere."""

    def bound(s: Sum) -> list[Any]:
        return [s.constant, [[kind, where[n] if kind == "arg" else n, factor] for (kind, n), factor in s.terms]]

    unique = [*dict.fromkeys(tuple(b and (b.low, b.high, *[Sum(1)] * b.counted) for b in box) for box in boxes)]
    everywhere = [box for box in unique if all(b is None for b in box)]
    return [[b and [bound(s) for s in b] for b in box] for box in everywhere[:1] or unique]


def counted(select: Op, makers: Mapping[Value, Op]) -> Value | None:
    """The index that ``select`` counts from the end, if that is what it does: ``i + n`` where ``i`` is negative and
    ``i + n`` is not, else ``i``. (The pass ``count_from_end`` writes this.)"""
    test, moved, i = select.args
    less = makers.get(test)
    signs = makers.get(less.args[0]) if less is not None and less.name == "lt" else None
    if signs is None or signs.name != "bitand" or i not in signs.args or not _is_zero(makers.get(less.args[1])):
        return None
    other = makers.get(signs.args[signs.args[0] is i])
    inverted = other is not None and other.name == "invert" and other.args[0] is moved
    return i if inverted and (add := makers.get(moved)) is not None and add.name == "add" and i in add.args else None


def _is_zero(op: Op | None) -> bool:
    return op is not None and op.name == "const" and op.attrs["value"] == 0


# Operations of which the walk knows what their first argument, a view, leads to.
_KEEPS_ROOT = frozenset("load store atomic subview slice field parts grad shape".split())


class _Place(NamedTuple):
    """A view: the array it shows, the leading dimensions that are fixed (None: cut otherwise), whether it shows whole
    elements, or else which fields of theirs lead to it (None: not known). ``via``: root and fields of what held it, if
    that was an element of an array."""

    root: str
    rank: int
    fixed: tuple[Bounds | None, ...] | None = ()
    whole: bool = True
    fields: tuple[int, ...] | None = ()
    via: tuple[str, tuple[int, ...]] | None = None


class _Walk:
    def __init__(self, func: Func):
        self.found: dict[str, Reach] = {}
        self.places: dict[Value, _Place] = {}
        self.bounds: dict[Value, Bounds] = {}
        self.makers: dict[Value, Op] = {}
        self.ends: dict[Value, tuple[Value, int, Bounds]] = {}  # what counts from the end of an axis of a view
        self.mixed: set[str] = set()  # roots of views that go on under names of which nothing is known
        self.held: set[tuple[str, tuple[int, ...]] | None] = set()  # arrays in elements that are written
        self.depth = 0
        self.used = {v for f in (func, *callees(func)) for v in uses_of(f.body)}
        for n, (p, path) in enumerate(zip(func.params, leaf_paths(func), strict=True)):
            if isinstance(p.type, View):
                self.places[p] = _Place(path, p.type.ndim)
            elif getattr(p.type, "is_int", False):
                s = Sum(0, ((("arg", n), 1),))
                self.bounds[p] = Bounds(s, s)

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.makers.update(dict.fromkeys(op.results, op))
            self.mix(op.args[op.name in _KEEPS_ROOT :] if op.name != "call" else ())
            rule = getattr(self, f"on_{op.name}", None)
            if rule is not None:
                rule(op)
            elif op.regions:
                self.under(op)

        self.mix(block.yields)

    def mix(self, values: Iterable[Value]) -> None:
        """Note the arrays among ``values`` of which the walk loses sight."""
        self.mixed.update([self.places[v].root for v in values if v in self.places])

    def under(self, op: Op) -> None:
        self.depth += 1
        for region in op.regions:
            self.block(region)
        self.depth -= 1

    # ---- integers
    # Whole numbers stand for those of the program, which wrap around: a launch takes bounds beyond 32 bits to be
    # anywhere. Narrower ones wrap earlier, so nothing is said of what is computed from them in their own type.

    def learn(self, op: Op, found: Bounds) -> None:
        if op.result.type.bits >= 32:
            self.bounds[op.result] = found

    def on_const(self, op: Op) -> None:
        value = op.attrs["value"]
        if type(value) is int:
            self.bounds[op.result] = Bounds(Sum(value), Sum(value))

    def on_tid(self, op: Op) -> None:
        axis = op.attrs["axis"]
        self.bounds[op.result] = Bounds(Sum(0), Sum(-1, ((("dim", axis), 1),)), axis)

    def on_cast(self, op: Op) -> None:
        (x,), r = op.args, op.result
        if x in self.bounds and r.type.is_int and r.type.bits >= x.type.bits:
            self.learn(op, self.bounds[x])

    def on_add(self, op: Op) -> None:
        a, b = (self.bounds.get(x) for x in op.args)
        if a and b:
            self.learn(op, Bounds(a.low.plus(b.low), a.high.plus(b.high)))

    def on_sub(self, op: Op) -> None:
        a, b = (self.bounds.get(x) for x in op.args)
        if a and b:
            self.learn(op, Bounds(a.low.plus(b.high, -1), a.high.plus(b.low, -1)))

    def on_mul(self, op: Op) -> None:
        a, b = (self.bounds.get(x) for x in op.args)
        if not (a and b):
            return
        if b.low.terms or b.low != b.high:
            a, b = b, a
        if b.low.terms or b.low != b.high:
            return
        zero, n = Sum(0), b.low.constant
        low, high = zero.plus(a.low, n), zero.plus(a.high, n)
        self.learn(op, Bounds(low, high) if n >= 0 else Bounds(high, low))

    def on_select(self, op: Op) -> None:
        self.ends.pop(op.result, None)
        i = counted(op, self.makers)
        if i is None or i not in self.bounds:
            return
        one, other = self.makers[op.args[1]].args
        extent = self.makers.get(other if one is i else one)
        while extent is not None and extent.name == "cast":
            extent = self.makers.get(extent.args[0])
        if extent is not None and extent.name == "shape":
            self.ends[op.result] = extent.args[0], extent.attrs["axis"], self.bounds[i]

    def index(self, view: Value, axis: int, i: Value) -> Bounds | None:
        """The bounds of ``i``, an index of ``view`` along ``axis``."""
        end = self.ends.get(i)
        if end is not None and end[:2] == (view, axis):
            return end[2]._replace(axis=-1, counted=True)
        return self.bounds.get(i)

    def on_for(self, op: Op) -> None:
        start, stop, step = (self.bounds.get(x) for x in op.args[:3])
        self.bounds.pop(op.regions[0].params[0], None)
        if start and stop and step and not step.low.terms and step.low == step.high and step.low.constant > 0:
            self.bounds[op.regions[0].params[0]] = Bounds(start.low, stop.high.plus(Sum(-1)))
        self.under(op)

    # ---- views

    def place(self, v: Value) -> _Place:
        return self.places.get(v) or _Place("?", v.type.ndim, None, False)

    def on_local(self, op: Op) -> None:
        self.places[op.result] = _Place("", op.result.type.ndim, None)

    def on_grad(self, op: Op) -> None:
        place = self.place(op.args[0])
        self.places[op.result] = place._replace(root=f"grad {place.root}" if place.root else "")

    def on_subview(self, op: Op) -> None:
        place = self.place(op.args[0])
        cut = place.fixed is None or op.attrs.get("axis")
        fixed = None if cut else (*place.fixed, *[self.index(op.args[0], k, i) for k, i in enumerate(op.args[1:])])
        self.places[op.result] = place._replace(fixed=fixed)

    def on_slice(self, op: Op) -> None:
        self.places[op.result] = self.place(op.args[0])._replace(fixed=None)

    def on_field(self, op: Op) -> None:
        place = self.place(op.args[0])
        fields = None if place.fields is None else (*place.fields, op.attrs["index"])
        self.places[op.result] = place._replace(whole=False, fields=fields)

    def on_parts(self, op: Op) -> None:
        self.places[op.result] = self.place(op.args[0])._replace(whole=False, fields=None)

    # ---- accesses

    def access(self, op: Op) -> tuple[Reach | None, Box, _Place]:
        v = op.args[0]
        place = self.place(v)
        if place.root == "":  # the thread's own
            return None, (), place
        touched = self.found.setdefault(place.root, Reach())
        if place.fixed is None:
            return touched, (None,) * place.rank, place
        own = [self.index(v, k, i) for k, i in enumerate(op.args[1 : 1 + v.type.ndim])]
        indices = [*place.fixed, *own]
        return touched, tuple(indices[: place.rank]), place

    def sure(self, box: Box) -> bool:
        """Whether an access here reaches all of ``box``; what counts from both ends leaves the middle out."""
        return not self.depth and all([b is not None and not (b.counted and b.low != b.high) for b in box])

    def hold(self, place: _Place) -> None:
        """Note that something is stored there, if it is an array that some element has."""
        if place.root == "?":
            self.held.add(place.via)

    def on_load(self, op: Op) -> None:
        touched, box, place = self.access(op)
        if touched is not None:
            touched.loads = True
            touched.reads.append(box)
        for found in op.results:
            if isinstance(found.type, View):
                known = place.root not in ("", "?") and place.fields is not None and len(op.results) == 1
                via = (place.root, place.fields) if known else None
                self.places[found] = _Place("?", found.type.ndim, None, False, None, via)

    def on_store(self, op: Op) -> None:
        touched, box, place = self.access(op)
        if touched is None:
            return
        self.hold(place)
        touched.stores = True
        touched.writes.append(box)
        touched.sure &= self.sure(box)
        axes = [b.axis if b else -1 for b in box]
        if not self.depth and place.whole and -1 not in axes and len({*axes}) == len(axes):
            touched.covers = tuple(axes)

    def on_atomic(self, op: Op) -> None:
        touched, box, place = self.access(op)
        self.hold(place)
        if touched is not None:
            touched.added.add(op.attrs["op"])
            if not self.used.isdisjoint(op.results):  # what it found there matters
                touched.loads = True
                touched.reads.append(box)
            touched.writes.append(box)
            touched.sure &= self.sure(box)

    def on_call(self, op: Op) -> None:
        f = op.attrs["func"]
        for inner in (f.params, *[o.results for o in ops_of(f.body)]):  # another call may have left what it knew
            for v in inner:
                self.places.pop(v, None)
                self.bounds.pop(v, None)
        for p, a in zip(f.params, op.args, strict=True):
            if a in self.places:
                self.places[p] = self.places[a]
            if a in self.bounds:
                self.bounds[p] = self.bounds[a]
        self.depth += 1  # returns of a function are not looked at
        self.block(f.body)
        self.depth -= 1
