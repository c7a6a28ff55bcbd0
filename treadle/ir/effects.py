"""What memory a scalarized program touches, and the order of threads that follows from it.

Memory is told apart by *roots*: a parameter's path (``a``, ``s.field``), the gradient of one (``grad a``), an array of
the thread's own (``local 0``), or ``?``, which may be anything: a view made from an address, read from memory, or
chosen at run time, and the gradient of that. An access is at the
thread's *own index* where its indices hold every axis of the grid, each on the same dimension in all accesses to that
root: then no two threads meet there, and updates are plain reads and writes.

A kernel's order is

* **free** if no atomic's result is used, and no array is both updated at foreign indices and read or stored to, or
  updated by operations that do not commute: any gangs, any workers, and the same bits still;
* **counted** if results of integer add and sub are used, and a thread's amounts depend on nothing but memory that no
  other thread writes and results of counters counted before: amounts are summed chunk by chunk before the real run (by
  ``passes/counting.py``), so that each chunk knows where its counters start;
* **ordered** otherwise: compare-and-swap, exchange, waiting loops, used updates of floats, printing. One thread after
  the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..base.span import Span
from ..types.core import Scalar, Struct, View
from ..types.layout import children, leaves
from .node import Block, Func, Op, Value
from .ops import OPS
from .walk import callees, ops_of, uses_of

__all__ = [
    "GRAD", "UNKNOWN", "Effects", "Site", "Touch", "bounded", "counts_up", "data_of", "effects", "leaf_paths", "order",
    "without_prints",
]  # fmt: skip

UNKNOWN = "?"
GRAD = "grad "  # the root of a gradient: this, then the root of the data
_LOCAL = "local "


class Index(NamedTuple):
    """What is known of an integer: the thread's index on axis ``n`` ("tid"), the constant ``n`` ("const"), or that it
    depends on the launch's arguments alone ("uniform")."""

    kind: str
    n: int = 0


UNIFORM = Index("uniform")


@dataclass(slots=True)
class Touch:
    """How a root is touched: by loads, by plain stores, by atomic operations; and whether at own indices only.
    ``mixed``: an atomic may meet what loads read and stores write; it does not say that it is ``apart``."""

    read: bool = False
    written: bool = False
    accumulated: set[str] = field(default_factory=set)
    mixed: bool = False
    places: set[tuple[int, ...] | None] = field(default_factory=set)
    private: bool = False

    @property
    def own(self) -> bool:
        """No two threads meet in this memory."""
        return self.private or (len(self.places) == 1 and None not in self.places)

    @property
    def foreign(self) -> set[str]:
        """The atomic operations by which threads may meet."""
        return set() if self.own else self.accumulated


@dataclass(frozen=True, slots=True)
class Site:
    """One atomic operation. ``uniform``: its address depends on the launch's arguments alone. ``used``: somebody reads
    the old value. ``loop``: it may run more than once in a thread. ``sources``: the roots whose loads, and the sites
    (by number) whose results decide on its address, its amount and whether it runs. ``cell``: how many fields lead to
    the scalar within its root, they, and its indices, if those are constants. ``part``: these fields."""

    op: Op
    root: str
    kind: str
    type: Scalar
    uniform: bool
    used: bool
    loop: bool
    sources: frozenset[str | int]
    cell: tuple[int, ...] | None = None
    part: tuple[int, ...] = ()


Counter = tuple[str, "tuple[int, ...] | None"]


@dataclass(slots=True)
class Effects:
    """What a program does to memory.

    ``unconditional``: accesses that every thread makes, for one check at the launch instead of one in each thread:
    (root, dimension, "tid", axis of the grid) or (root, dimension, "const", index); ``spans``: their places.
    ``rounds``, for order "counted": which sites are counted in which round; ``single``: each counter has one site,
    outside loops. ``updated``: the parameters' arrays that are updated, at own indices or not, and gradients that are
    changed in any way. What is said here holds as long as no two of these lie over each other, and no gradient over
    an array of ``beside``, those whose data is touched beside gradients: a launch must look at that.
    """

    roots: dict[str, Touch]
    sites: tuple[Site, ...]
    unconditional: tuple[tuple[str, int, str, int], ...]
    prints: bool
    waits: bool
    bounded: bool
    order: str = ""
    rounds: tuple[tuple[int, ...], ...] = ()
    single: bool = False
    spans: tuple[Span, ...] = ()
    updated: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    def counter(self, site: Site) -> Counter:
        """What ``site`` updates, as far as it must be told apart: a cell of its array, or the whole array where one of
        its sites finds its place at run time."""
        kinds = {s.cell and (s.cell[0], len(s.cell)) for s in self.sites if s.root == site.root}
        return site.root, site.cell if len(kinds) == 1 else None


def effects(func: Func) -> Effects:
    """Read off a scalarized kernel (or function) what it touches, through the functions it calls."""
    found = _Walk(func).run()
    found.order = _decide(found)
    return found


def without_prints(found: Effects) -> str:
    """The order of threads where somebody else sorts what they print."""
    prints, found.prints = found.prints, False
    try:
        return _decide(found)
    finally:
        found.prints = prints


def order(func: Func) -> str:
    """The order of threads that ``func`` needs: "free", "counted" or "ordered"."""
    return effects(func).order


def bounded(func: Func) -> bool:
    """Whether every loop of ``func`` is sure to end: a ``while`` counts up to a limit that stands before it starts."""
    return effects(func).bounded


def leaf_paths(func: Func) -> tuple[str, ...]:
    """The name of each parameter of a scalarized function: ``a``, ``s.field``, ``v.0`` for components."""
    out = []
    for k, t in enumerate(func.signature or tuple(p.type for p in func.params)):
        name = func.names[k] if k < len(func.names) else f"argument {k}"
        for leaf in leaves(t):
            path, inner = name, t
            for i in leaf.path:
                path += f".{inner.fields[i][0] if isinstance(inner, Struct) else i}"
                inner = children(inner)[i]
            out.append(path)
    return tuple(out)


def data_of(root: str) -> str:
    """The root of the data that ``root`` is the gradient of; of data, itself."""
    return root.removeprefix(GRAD)


class Place(NamedTuple):
    """A view: its root, and the indices of the root's leading dimensions that it fixes; None if it is cut otherwise.
    ``part``: numbers of the fields on the way to what it shows of an element."""

    root: str
    rank: int
    fixed: tuple[Index | None, ...] | None = ()
    part: tuple[int, ...] = ()


class _Walk:
    """One abstract run. ``facts``: places of views, and indices; ``deps``: for each value bits, one for each source."""

    def __init__(self, func: Func):
        self.func = func
        self.ndim = func.facts.get("ndim", 0)
        self.facts: dict[Value, Place | Index | None] = {}
        self.consts: Consts = {}
        self.deps: dict[Value, int] = {}
        self.memory: dict[str, int] = {}  # what the contents of own arrays depend on
        self.bits: dict[str | int, int] = {}
        self.locals: dict[Op, str] = {}
        self.used = _read_values(func)
        self.deep = self.changed = False  # whether dependences matter, and whether new ones were found

    def run(self) -> Effects:
        for p, path in zip(self.func.params, leaf_paths(self.func)):
            self.facts[p] = Place(path, p.type.ndim) if isinstance(p.type, View) else UNIFORM
        self.once()
        used = any(s.used for s in self.sites)
        if used or any(t.read and not t.own and (t.written or t.accumulated) for t in self.roots.values()):
            self.deep = self.changed = True
        while self.changed:  # dependences through loops and own arrays: until nothing new is found
            self.changed = False
            self.once()
        found = Effects(self.roots, tuple(self.sites), tuple(self.unconditional), self.prints, False, self.bounded)
        found.spans = tuple(self.unconditional.values())
        self.name_updated(found)
        found.waits = any(_waited(found, source) for source in self.sources(self.stays))
        return found

    def name_updated(self, found: Effects) -> None:
        """What a launch must look at, where it lies over something else."""
        paths, settled = leaf_paths(self.func), self.func.facts.get("updated", ())
        touches = [(root, self.roots[root]) for root in [*paths, *[GRAD + p for p in paths]] if root in self.roots]
        gradients = [root for root, t in touches if root.startswith(GRAD) and (t.written or t.accumulated)]
        data = [root for root, t in touches if not root.startswith(GRAD)]
        found.updated = (*[p for p in paths if p in settled or (p in data and self.roots[p].accumulated)], *gradients)
        found.beside = tuple(data) if gradients else ()

    def once(self) -> None:
        """One walk over everything, from nothing but ``deps`` and ``memory``."""
        self.roots: dict[str, Touch] = {}
        self.sites: list[Site] = []
        self.unconditional: dict[tuple[str, int, str, int], Span] = {}
        self.prints, self.bounded, self.stays = False, True, 0
        self.control, self.depth, self.loops = 0, 0, 0
        self.block(self.func.body)

    # ---- sources

    def bit(self, source: str | int) -> int:
        return self.bits.setdefault(source, 1 << len(self.bits))

    def sources(self, mask: int) -> frozenset[str | int]:
        return frozenset([source for source, bit in self.bits.items() if mask & bit])

    def mask(self, values: tuple[Value, ...]) -> int:
        if not self.deep:
            return 0
        deps, mask = self.deps, 0
        for v in values:
            mask |= deps.get(v, 0)
        return mask

    def depend(self, v: Value, mask: int) -> None:
        if self.deep and mask and mask | self.deps.get(v, 0) != self.deps.get(v, 0):
            self.deps[v] = self.deps.get(v, 0) | mask
            self.changed = True

    def touch(self, root: str) -> Touch:
        if root not in self.roots:
            self.roots[root] = Touch(private=root.startswith(_LOCAL))
        return self.roots[root]

    # ---- ops

    def block(self, block: Block) -> None:
        handlers, facts = _HANDLERS, self.facts
        for op in block.ops:
            handler = handlers.get(op.name)
            if handler is not None:
                handler(self, op)
                continue
            if self.deep and (mask := self.mask(op.args)):
                for r in op.results:
                    self.depend(r, mask)
            for r in op.results:
                if isinstance(r.type, View):
                    facts[r] = Place(UNKNOWN, r.type.ndim)
                elif getattr(r.type, "is_int", False) and OPS[op.name].pure:  # only integers become indices
                    facts[r] = UNIFORM if all([_uniform(facts.get(a)) for a in op.args]) else None

    def const(self, op: Op) -> None:
        value = op.attrs["value"]
        self.consts[op.result] = value
        self.facts[op.result] = Index("const", value) if type(value) is int else UNIFORM

    def tid(self, op: Op) -> None:
        self.facts[op.result] = Index("tid", op.attrs["axis"])

    def cast(self, op: Op) -> None:
        (x,), r = op.args, op.result
        fact = self.facts.get(x)
        wider = r.type.is_int and x.type.is_int and r.type.bits >= x.type.bits
        self.facts[r] = fact if wider else UNIFORM if _uniform(fact) else None
        self.depend(r, self.mask(op.args))

    def shape(self, op: Op) -> None:
        place = self.place(op.args[0])
        self.facts[op.result] = UNIFORM if place.root != UNKNOWN and place.fixed is not None else None
        self.depend(op.result, self.mask(op.args))

    def local(self, op: Op) -> None:
        root = self.locals.setdefault(op, f"{_LOCAL}{len(self.locals)}")
        self.facts[op.result] = Place(root, op.result.type.ndim)

    def place(self, v: Value) -> Place:
        return self.facts.get(v) or Place(UNKNOWN, v.type.ndim)

    def subview(self, op: Op) -> None:
        v, *indices = op.args
        place = self.place(v)
        cut = place.fixed is None or op.attrs.get("axis")  # not the leading dimensions
        fixed = None if cut else (*place.fixed, *[self.facts.get(i) for i in indices])
        self.facts[op.result] = place._replace(fixed=fixed)
        self.depend(op.result, self.mask(op.args))

    def slice(self, op: Op) -> None:
        place = self.place(op.args[0])
        self.facts[op.result] = place._replace(fixed=None)
        self.depend(op.result, self.mask(op.args))

    def same_place(self, op: Op) -> None:
        place = self.place(op.args[0])
        self.facts[op.result] = place._replace(part=(*place.part, op.attrs["index"])) if op.name == "field" else place
        self.depend(op.result, self.mask(op.args))

    def grad(self, op: Op) -> None:
        place = self.place(op.args[0])
        self.facts[op.result] = place if place.root == UNKNOWN else place._replace(root=GRAD + data_of(place.root))
        self.depend(op.result, self.mask(op.args))

    # ---- accesses

    def access(self, op: Op) -> tuple[str, Touch]:
        """Note where ``op`` touches memory."""
        v = op.args[0]
        place, ndim = self.place(v), v.type.ndim
        touch = self.touch(place.root)
        if place.fixed is None:
            touch.places.add(None)
            return place.root, touch
        indices = [*place.fixed, *[self.facts.get(i) for i in op.args[1 : 1 + ndim]]][: place.rank]
        touch.places.add(self.own_place(indices))
        if not self.depth and not touch.private and place.root != UNKNOWN:
            for axis, i in enumerate(indices):
                if i is not None and i.kind != "uniform":
                    self.unconditional.setdefault((data_of(place.root), axis, i.kind, i.n), op.span)
        return place.root, touch

    def own_place(self, indices: list[Index | None]) -> tuple[int, ...] | None:
        """On which dimension each axis of the grid stands; None if one is missing."""
        where = {i.n: axis for axis, i in reversed([*enumerate(indices)]) if i is not None and i.kind == "tid"}
        return tuple([where[n] for n in range(self.ndim)]) if self.ndim and len(where) == self.ndim else None

    def load(self, op: Op) -> None:
        root, touch = self.access(op)
        touch.read = True
        mask = self.mask(op.args) | (self.memory.get(root, 0) if touch.private else self.bit(root))
        for r in op.results:
            self.facts[r] = Place(UNKNOWN, r.type.ndim) if isinstance(r.type, View) else None
            self.depend(r, mask)

    def store(self, op: Op) -> None:
        root, touch = self.access(op)
        touch.written = True
        self.remember(root, touch, op)

    def remember(self, root: str, touch: Touch, op: Op) -> None:
        """What stands in an own array depends on what was put there, and on whether that happened."""
        if touch.private and self.deep:
            mask = self.memory.get(root, 0) | self.mask(op.args) | self.control
            if mask != self.memory.get(root, 0):
                self.memory[root] = mask
                self.changed = True

    def atomic(self, op: Op) -> None:
        root, touch = self.access(op)
        touch.accumulated.add(op.attrs["op"])
        touch.mixed |= not op.attrs.get("apart")
        v, r = op.args[0], op.result
        self.facts[r] = None
        if touch.private:
            touch.read = touch.written = True
            self.remember(root, touch, op)
            self.depend(r, self.mask(op.args) | self.memory.get(root, 0))
            return
        place = self.place(v)
        indices = [*(place.fixed or ()), *[self.facts.get(i) for i in op.args[1 : 1 + v.type.ndim]]]
        uniform = root != UNKNOWN and place.fixed is not None and all([_uniform(i) for i in indices])
        mask = self.mask(op.args) | self.control
        number = len(self.sites)
        known = uniform and all([i.kind == "const" and i.n >= 0 for i in indices])
        cell = (len(place.part), *place.part, *[i.n for i in indices]) if known else None
        self.sites.append(Site(op, root, op.attrs["op"], v.type.elem, uniform, r in self.used, self.loops > 0,
                               self.sources(mask), cell, place.part))  # fmt: skip
        self.depend(r, mask | self.bit(number))

    def print(self, op: Op) -> None:
        self.prints = True

    # ---- regions

    def under(self, block: Block, mask: int, loop: bool = False) -> None:
        """Walk a region that runs or not, as ``mask`` decides."""
        control, self.control = self.control, self.control | mask
        self.depth += 1
        self.loops += loop
        self.block(block)
        self.loops -= loop
        self.depth -= 1
        self.control = control

    def merge(self, v: Value, sources: tuple[Value, ...], mask: int) -> None:
        """``v`` is one of ``sources``; ``mask`` decides which."""
        self.depend(v, self.mask(sources) | mask)
        if isinstance(v.type, View):
            others = {s for s in sources if s is not v}
            self.facts[v] = self.place(others.pop()) if len(others) == 1 else Place(UNKNOWN, v.type.ndim)
        else:
            self.facts[v] = None

    def branch(self, op: Op) -> None:
        mask = self.mask(op.args)
        for region in op.regions:
            self.under(region, mask)
        for r, a, b in zip(op.results, op.regions[0].yields, op.regions[1].yields):
            self.merge(r, (a, b), mask)

    def loop(self, op: Op) -> None:
        (body,) = op.regions
        n, counted = len(op.results), op.name == "for"
        initial, params = op.args[len(op.args) - n :], body.params[len(body.params) - n :]
        handed = body.yields[len(body.yields) - n :]
        stays = body.yields[: len(body.yields) - n]
        mask = (self.mask(op.args[:3]) if counted else 0) | self.mask(stays)
        if counted:
            self.depend(body.params[0], mask)
        for p, first, after in zip(params, initial, handed):
            self.merge(p, (first, after), mask)
        self.under(body, mask, loop=True)
        self.stays |= self.mask(stays)
        if not counted and not counts_up(op, self.consts):
            self.bounded = False
        for r, first, after in zip(op.results, initial, handed):
            self.merge(r, (first, after), mask)

    def call(self, op: Op) -> None:
        """A call is the callee's body with these arguments; dependences of all its calls are thrown together."""
        f = op.attrs["func"]
        for p, a in zip(f.params, op.args):
            self.facts[p] = self.facts.get(a)
            self.depend(p, self.mask((a,)))
        self.block(f.body)
        for r, y in zip(op.results, f.body.yields):
            self.facts[r] = self.facts.get(y)
            self.depend(r, self.mask((y,)))


_HANDLERS = {
    "const": _Walk.const, "tid": _Walk.tid, "cast": _Walk.cast, "shape": _Walk.shape, "local": _Walk.local,
    "subview": _Walk.subview, "slice": _Walk.slice, "field": _Walk.same_place, "parts": _Walk.same_place,
    "grad": _Walk.grad, "load": _Walk.load, "store": _Walk.store, "atomic": _Walk.atomic, "print": _Walk.print,
    "if": _Walk.branch, "for": _Walk.loop, "while": _Walk.loop, "call": _Walk.call,
}  # fmt: skip


def _uniform(fact: Place | Index | None) -> bool:
    """Whether a number depends on the launch's arguments alone."""
    return isinstance(fact, Index) and fact.kind != "tid"


def _read_values(func: Func) -> set[Value]:
    """The values that somebody reads, in ``func`` and in what it calls."""
    return {v for f in (*callees(func), func) for v in uses_of(f.body)}


# ---- loops that surely end


Consts = dict[Value, "bool | int | float | str"]


def counts_up(loop: Op, consts: Consts) -> bool:
    """Whether a ``while`` goes on only below a limit known before it, and a carried integer rises towards it.

    It may rise in the arm of an ``if`` that is taken whenever the loop goes on.
    """
    (body,) = loop.regions
    made = {r: op for op in ops_of(body) for r in op.results}
    terms = _terms(body.yields[0], made, consts)
    rising: set[Value] = set()
    for p, after in zip(body.params, body.yields[1:]):
        last = after
        while (op := made.get(last)) is not None and op.name == "if" and op.args[0] in terms:
            last = op.regions[0].yields[op.results.index(last)]
        if op is not None and op.name == "add" and op.args[0] is p and p.type.is_int and consts.get(op.args[1], 0) > 0:
            rising |= {p, after, last}
    inner = set(made).union(body.params)
    for test in [made[v] for v in terms if v in made and made[v].name in ("lt", "le", "gt", "ge")]:
        low, high = test.args if test.name in ("lt", "le") else test.args[::-1]
        if low in rising and (high not in inner or high in consts):
            return True
    return False


def _terms(v: Value, made: dict[Value, Op], consts: Consts) -> set[Value]:
    """``v``, and where it is a conjunction the conditions in it."""
    op = made.get(v)
    if op is not None and (op.name == "bitand" or (op.name == "select" and consts.get(op.args[2]) is False)):
        return {v} | _terms(op.args[0], made, consts) | _terms(op.args[1], made, consts)
    return {v}


# ---- the order


def _waited(found: Effects, source: str | int) -> bool:
    """Whether a loop that goes on as ``source`` says may wait for another thread."""
    touch = found.roots.get(source) if isinstance(source, str) else None
    return touch is not None and not touch.own and (touch.written or bool(touch.accumulated))


def _decide(found: Effects) -> str:
    if found.prints or found.waits or _clash(found):
        return "ordered"
    counted = {s.root for s in found.sites if s.used and found.roots[s.root].foreign}
    if not counted:
        return "free"
    if not all(_countable(found, root) for root in counted):
        return "ordered"
    found.rounds = _rounds(found, counted)
    if not found.rounds:
        return "ordered"
    numbers = [k for r in found.rounds for k in r]
    alone = len(numbers) == len({found.counter(found.sites[k]) for k in numbers})
    found.single = alone and not any(found.sites[k].loop for k in numbers)
    return "counted"


def _clash(found: Effects) -> bool:
    """Whether results depend on how foreign updates mix with reads and stores, or with updates of another kind.

    A thread may store to an element and update it without a race, if no other thread comes there: ``p[i]`` may be a
    permutation. Updates that are held back, or made in a copy, would then come after a store that follows them: those
    of adjoint programs that are ``apart`` do not mind.
    """
    updated = [root for root, touch in found.roots.items() if touch.foreign]
    for root in updated:
        touch = found.roots[root]
        if (touch.mixed and (touch.read or touch.written)) or touch.foreign & {"exch", "cas"}:
            return True
        if len({"add" if kind == "sub" else kind for kind in touch.foreign}) > 1:
            return True
    unknown = found.roots.get(UNKNOWN)
    if unknown is None or not updated:
        return False
    others = [touch for root, touch in found.roots.items() if root != UNKNOWN and not touch.private]
    met = [unknown, *others] if UNKNOWN in updated else [unknown]
    return any(touch.read or touch.written for touch in met)


def _countable(found: Effects, root: str) -> bool:
    """Whether amounts added to ``root`` depend on nothing but what is given, the thread itself, and counters."""
    touch = found.roots[root]
    if root == UNKNOWN or touch.read or touch.written or not touch.accumulated <= {"add", "sub"}:
        return False
    for site in found.sites:
        if site.root != root:
            continue
        memory = [found.roots[s] for s in site.sources if isinstance(s, str)]
        foreign = any(not m.own and (m.written or m.accumulated) for m in memory)
        if not site.type.is_int or UNKNOWN in site.sources or foreign:
            return False
    return True


def _rounds(found: Effects, counted: set[str]) -> tuple[tuple[int, ...], ...]:
    """Sites of counted arrays, counter by counter so that each needs results from earlier ones only; empty if none
    such."""
    of = [found.counter(site) for site in found.sites]
    needs: dict[Counter, set[Counter]] = {of[k]: set() for k, site in enumerate(found.sites) if site.root in counted}
    for k, site in enumerate(found.sites):
        if site.root in counted:
            needs[of[k]] |= {of[source] for source in site.sources if isinstance(source, int)}
    rounds: list[tuple[int, ...]] = []
    done: set[Counter] = set()
    while len(done) < len(needs):
        ready = {counter for counter in needs if counter not in done and needs[counter] <= done}
        if not ready:
            return ()
        done |= ready
        rounds.append(tuple([k for k, counter in enumerate(of) if counter in ready]))
    return tuple(rounds)
