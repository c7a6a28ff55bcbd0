"""What must be known of a program before it can go backwards.

* **Roots**: the memory behind each view, as ``ir.effects`` names it: a parameter's path, an own array, or ``?``.
* **Still and moving.** A root is *moving* if the program may read, after a store of its own, what it stored: the
  replay must store too, and what it reads must be recorded, since it cannot be read again later. All other roots are
  *still*: the replay leaves their stores out, and may read them as often as it likes. Own arrays always move.
* **Active** values are floats that depend on what has a gradient, and on which something with a gradient depends. Only
  they have adjoints.
* **Guarded** values reach a result only through a choice (``select``, ``min``, ``max``), and come of operations whose
  derivative may be infinite: a zero adjoint must stay zero there, although 0 · ∞ is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...base.errors import KernelGradientError
from ...builtins.registry import primitive
from ...ir.node import Block, Func, Op, Value
from ...ir.ops import CUTS, STRUCTURAL
from ...ir.walk import is_float, ops_of, uses_of
from ...types.core import View

__all__ = ["UNKNOWN", "Facts", "carried", "refuse_handed_on", "survey"]

UNKNOWN = "?"


@dataclass(slots=True)
class Access:
    """One load, store or atomic: its place in program order, and the loops around it."""

    op: Op
    root: str
    at: int
    loops: tuple[Op, ...]
    reads: bool
    writes: bool


@dataclass(slots=True)
class Facts:
    """``root`` of every view; ``makers`` of every value; ``moving`` roots; ``active`` values; ``guarded`` ops;
    ``suspect`` values, which need not be finite where all that the program reads is.

    ``records``: ops with regions in which a load is recorded, so that whoever repeats them reads the log. ``shadows``:
    own arrays that need a gradient. ``order``: of all values, by where they are made. ``aliased``: roots that may
    lie over each other. ``nameless``: whether a derivative passes through memory that no parameter names, where
    it is lost if there is no gradient.
    """

    root: dict[Value, str] = field(default_factory=dict)
    makers: dict[Value, Op] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    moving: set[str] = field(default_factory=set)
    active: set[Value] = field(default_factory=set)
    active_roots: set[str] = field(default_factory=set)
    guarded: set[Op] = field(default_factory=set)
    suspect: set[Value] = field(default_factory=set)
    records: set[Op] = field(default_factory=set)
    shadows: set[str] = field(default_factory=set)
    used: frozenset[Value] = frozenset()
    aliased: frozenset[str] = frozenset()
    nameless: bool = False
    order: dict[Value, int] = field(default_factory=dict)

    def moves(self, view: Value) -> bool:
        """Whether what lies behind ``view`` changes while the program runs, and is read again."""
        return self.root[view] in self.moving

    def recorded(self, op: Op) -> bool:
        """Whether the first run of ``op`` notes what it read."""
        return (
            op.name in ("load", "atomic") and self.moves(op.args[0]) and not self.used.isdisjoint(op.results)
        )

    def changes(self, root: str) -> bool:
        """Whether the kernel both reads and writes what lies behind ``root``: then it runs again on the content from
        before the launch, and nothing may ask for that from after it."""
        here = self.accesses_of(root)
        return any(a.reads for a in here) and any(a.writes for a in here)

    def accesses_of(self, root: str) -> list[Access]:
        """The accesses of the kernel to what lies behind ``root``, and to what may lie there."""

        def meets(other: str) -> bool:
            return other == root or UNKNOWN in (other, root) or {other, root} <= self.aliased

        return [a for a in self.accesses if meets(a.root)]

    def watched(self, view: Value) -> bool:
        """Whether what lies behind ``view`` has a gradient; own arrays have one where it matters."""
        root = self.root[view]
        return root in self.active_roots or root in self.shadows or root == UNKNOWN

    def private(self, view: Value) -> bool:
        """Whether ``view`` shows an array of the thread's own."""
        return self.root[view].startswith("local ")


def survey(func: Func, params: dict[Value, str], active: set[str], aliased: frozenset[str],
           seeds: set[Value] = frozenset(), wanted: set[Value] = frozenset()) -> Facts:  # fmt: skip
    """The facts of a scalarized ``func``.

    ``params`` names the roots of its view parameters; ``active`` the roots with a gradient. ``aliased``: roots that
    may lie over each other. ``seeds``: parameters that carry derivatives, ``wanted``: values whose adjoints come from
    outside.
    """
    order = {p: k for k, p in enumerate(func.params)}
    used = frozenset(uses_of(func.body))
    facts = Facts(root=dict(params), order=order, aliased=aliased, active_roots=set(active), used=used)
    _Roots(facts).block(func.body, ())
    _find_moving(facts)
    for op in _recorded(func.body, facts):
        facts.records.add(op)
    _find_active(func, facts, seeds, wanted)
    _find_guarded(func, facts, wanted)
    return facts


class _Roots:
    """One walk: roots of views, makers of values, and the accesses in program order."""

    def __init__(self, facts: Facts):
        self.facts, self.at, self.locals = facts, 0, 0

    def block(self, block: Block, loops: tuple[Op, ...]) -> None:
        facts = self.facts
        for op in block.ops:
            self.at += 1
            for r in op.results:
                facts.makers[r] = op
                facts.order[r] = len(facts.order)
                if isinstance(r.type, View):
                    facts.root[r] = self.root(op)
            if op.name in ("load", "store", "atomic"):
                read = op.name != "store" and not facts.used.isdisjoint(op.results)
                facts.accesses.append(Access(op, facts.root[op.args[0]], self.at, loops, read, op.name != "load"))
            for region in op.regions:
                for p in region.params:
                    facts.order[p] = len(facts.order)
                    if isinstance(p.type, View):
                        facts.root[p] = UNKNOWN
                self.block(region, (*loops, op) if op.name in ("for", "while") else loops)

    def root(self, op: Op) -> str:
        if op.name == "grad" or op.name in CUTS:
            return self.facts.root[op.args[0]]
        if op.name == "local":
            self.locals += 1
            return f"local {self.locals - 1}"
        return UNKNOWN


def _find_moving(facts: Facts) -> None:
    """Roots of which a load may follow a store; an atomic whose result somebody reads is a load as well."""
    groups: dict[str, list[Access]] = {}
    anywhere = any(a.writes and a.root == UNKNOWN for a in facts.accesses)
    for a in facts.accesses:
        own = a.root.startswith("local ")
        together = not own and (anywhere or a.root in facts.aliased)
        groups.setdefault("" if together else a.root, []).append(a)
        if own:
            facts.moving.add(a.root)
    if UNKNOWN in groups:  # views of unknown memory may show whatever is stored to
        groups[UNKNOWN] += [a for a in facts.accesses if a.writes and not a.root.startswith("local ")]
    for accesses in groups.values():
        stores = [a for a in accesses if a.writes]
        if any(a.reads and any(_follows(a, s) for s in stores) for a in accesses):
            facts.moving.update({a.root for a in accesses})


def _follows(load: Access, store: Access) -> bool:
    return load.at >= store.at or bool(set(load.loops) & set(store.loops))


def _recorded(block: Block, facts: Facts) -> list[Op]:
    """Every op with regions in which something is recorded, at whatever depth."""
    found = []
    for op in block.ops:
        if op.regions and any(facts.recorded(inner) for region in op.regions for inner in ops_of(region)):
            found.append(op)
            for region in op.regions:
                found += _recorded(region, facts)
    return found


# ---- activity


class _Spread:
    """Grows ``values`` and ``roots`` until nothing new is found."""

    def __init__(self, facts: Facts, values: set[Value]):
        self.facts, self.values, self.roots, self.changed = facts, set(values), set(), True

    def add(self, *values: Value) -> None:
        for v in values:
            if v not in self.values and is_float(v):
                self.values.add(v)
                self.changed = True

    def add_root(self, root: str) -> None:
        if root not in self.roots:
            self.roots.add(root)
            self.changed = True

    def has(self, values: tuple[Value, ...]) -> bool:
        return not self.values.isdisjoint(values)

    def watched(self, view: Value) -> bool:
        """Whether what lies behind ``view`` has a gradient."""
        root = self.facts.root[view]
        return root in self.facts.active_roots or root in self.roots or root == UNKNOWN

    def links(self, op: Op) -> list[tuple[tuple[Value, ...], tuple[Value, ...]]]:
        """What of an op with regions becomes what: pairs of (sources, targets), one carried value or result a pair."""
        if op.name == "if":
            return [((a, b), (r,)) for r, a, b in zip(op.results, *[region.yields for region in op.regions])]
        return [((a, y), (p, r)) for a, p, y, r in zip(*carried(op))]


def carried(op: Op) -> tuple[tuple[Value, ...], tuple[Value, ...], tuple[Value, ...], tuple[Value, ...]]:
    """Of a loop the initial, the inner, the handed-on and the final values, carried value by carried value."""
    (body,), n = op.regions, len(op.results)
    first = 1 if op.name == "for" else 0
    return op.args[len(op.args) - n :], body.params[first:], body.yields[len(body.yields) - n :], op.results


class _Varied(_Spread):
    """Forwards: values that depend on memory with a gradient, or on a seed."""

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        for region in op.regions if op.name != "call" else ():  # a rule says what depends on what
            self.block(region)
        match op.name:
            case "load":
                if self.watched(op.args[0]):
                    self.add(*op.results)
            case "store" | "atomic":
                root = self.facts.root[op.args[0]]
                if self.has(op.args) and root in self.facts.moving:
                    self.add_root(root)
                if op.name == "atomic" and self.watched(op.args[0]):
                    self.add(*op.results)
            case "if" | "for" | "while":
                for sources, targets in self.links(op):
                    if self.has((*sources, *targets)):
                        self.add(*targets)
            case "call":
                views = [a for a in op.args if isinstance(a.type, View)]
                if self.has(op.args) or any(self.watched(v) for v in views):
                    self.add(*op.results)
                    for root in [self.facts.root[v] for v in views]:
                        if root in self.facts.moving:
                            self.add_root(root)
            case _:
                if self.has(op.args):
                    self.add(*op.results)


class _Useful(_Spread):
    """Backwards: values on which memory with a gradient depends, or a result that is asked for."""

    def block(self, block: Block) -> None:
        for op in reversed(block.ops):
            self.op(op)

    def op(self, op: Op) -> None:
        match op.name:
            case "load":
                if self.has(op.results):
                    self.add_root(self.facts.root[op.args[0]])
            case "store" | "atomic":
                if self.watched(op.args[0]):
                    self.add(*op.args[1:])
            case "if" | "for" | "while":
                for sources, targets in self.links(op):
                    if self.has(targets):
                        self.add(*sources)
            case "call":
                views = [a for a in op.args if isinstance(a.type, View)]
                if self.has(op.results) or any(self.watched(v) for v in views):
                    self.add(*op.args)
                    for v in views:
                        self.add_root(self.facts.root[v])
            case _:
                if self.has(op.results):
                    self.add(*op.args)
        for region in reversed(op.regions) if op.name != "call" else ():
            self.block(region)

    def watched(self, view: Value) -> bool:
        root = self.facts.root[view]
        own = root.startswith("local ")
        return root in self.roots if own else super().watched(view)


def _find_active(func: Func, facts: Facts, seeds: set[Value], wanted: set[Value]) -> None:
    varied, useful = _Varied(facts, set(seeds)), _Useful(facts, {v for v in wanted if is_float(v)})
    for spread in (varied, useful):
        while spread.changed:
            spread.changed = False
            spread.block(func.body)
    facts.active = varied.values & useful.values
    facts.shadows = {root for root in varied.roots & useful.roots if root.startswith("local ")}
    _refuse_lost(facts, varied, useful)


def _refuse_lost(facts: Facts, varied: _Varied, useful: _Useful) -> None:
    """A derivative that would pass through an array without a gradient is an error, not a zero."""
    reads = [a for a in facts.accesses if a.root == UNKNOWN and a.op.name == "load"]
    facts.nameless = UNKNOWN in varied.roots and any([useful.has(a.op.results) for a in reads])
    for a in facts.accesses:
        lost = a.root in varied.roots and a.root not in facts.active_roots and a.root != UNKNOWN
        if lost and not a.root.startswith("local ") and a.op.name == "load" and useful.has(a.op.results):
            raise KernelGradientError(
                f"the derivative passes through {a.root!r}, which the kernel stores to and reads again, "
                "but this array has no gradient", a.op.span, "make it with requires_grad=True",
            )  # fmt: skip


def refuse_handed_on(facts: Facts, own: set[str]) -> None:
    """With a lock, or whatever else is made of exchanges, one thread may read what another one stored. Then adjoints
    had to run from the last thread to the first; they run from the first, and each is done before the next begins.
    ``own``: roots that each thread touches at its own index alone."""
    swaps = [a for a in facts.accesses if a.op.attrs.get("op") in ("cas", "exch")]
    for a in facts.accesses if swaps else ():
        shared = a.root not in own and not a.root.startswith("local ")
        if a.op.name == "load" and shared and not facts.active.isdisjoint(a.op.results) and facts.changes(a.root):
            raise KernelGradientError(
                f"with atomic_{swaps[0].op.attrs['op']} threads may hand values on to each other in {a.root!r}; the "
                "derivative through that is not known", a.op.span, "use atomic_add, or one thread with a loop",
            )  # fmt: skip


def refuse_unrestored(facts: Facts) -> None:
    """The kernel runs again on what its arrays held before the launch, arrays in elements among them. Of memory that an
    address alone leads to nobody can put that back, so it must not be read before it is overwritten."""
    nameless = [a for a in facts.accesses if a.root == UNKNOWN and _is_nameless(facts, a.op.args[0])]
    stores = [a for a in nameless if a.writes]
    for a in nameless:
        if a.reads and any(s.at >= a.at or set(a.loops) & set(s.loops) for s in stores):
            raise KernelGradientError(
                "the kernel reads and overwrites memory that an address alone leads to; a tape cannot put back what "
                "stood there", a.op.span, "pass the array as an argument",
            )  # fmt: skip


def _is_nameless(facts: Facts, view: Value) -> bool:
    """Whether ``view`` was made of an address, or read out of memory behind one."""
    while (maker := facts.makers.get(view)) is not None and maker.name in CUTS:
        view = maker.args[0]
    if maker is not None and maker.name == "if":
        k = maker.results.index(view)
        return any(_is_nameless(facts, region.yields[k]) for region in maker.regions)
    if maker is not None and maker.name == "load":
        return _is_nameless(facts, maker.args[0])
    return maker is not None and maker.name == "view_at"


# ---- choices


def unbounded(op: Op) -> bool:
    """Whether the derivative of ``op`` may be infinite, or NaN, for finite arguments."""
    if op.name == "call":
        return True
    return op.name not in STRUCTURAL and bool(primitive(op.name).part("unbounded"))


def chooses(op: Op) -> bool:
    """Whether the result of ``op`` is one of its arguments."""
    return op.name == "select" or (op.name not in STRUCTURAL and bool(primitive(op.name).part("chooses")))


def _find_guarded(func: Func, facts: Facts, wanted: set[Value]) -> None:
    """Ops whose adjoint a choice may have set to zero while their derivative need not be finite. What a function is
    asked for its caller may have chosen or not."""
    ops = [op for op in ops_of(func.body)]
    suspect, masked, size = facts.suspect, set(wanted), -1
    while size != len(suspect):
        size = len(suspect)
        for op in ops:
            sources = [y for region in op.regions for y in region.yields] if op.regions else op.args
            if op.name != "load" and (unbounded(op) or not suspect.isdisjoint(sources)):
                suspect.update(filter(is_float, op.results))
                for region in op.regions:
                    suspect.update(filter(is_float, region.params))
    size = -1
    while size != len(masked):
        size = len(masked)
        for op in reversed(ops):
            through = chooses(op) or not masked.isdisjoint(op.results)
            if through:
                masked.update(filter(is_float, op.args))
                for region in op.regions:
                    masked.update(filter(is_float, region.yields))
    facts.guarded = {
        op for op in ops
        if not op.regions and not masked.isdisjoint(op.results) and (unbounded(op) or not suspect.isdisjoint(op.args))
    }  # fmt: skip
