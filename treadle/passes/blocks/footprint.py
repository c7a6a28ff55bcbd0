"""What a piece of a scalarized program touches: roots of memory, the tape, and things that only one thread may do."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...ir.node import Block, Func, Op, Value
from ...ir.ops import CUTS, info
from ...ir.walk import callees, ops_of
from ...types.core import View

Root = tuple[Value | None, bool]  # an array of the thread's own or a parameter, and whether its gradient is meant
Site = tuple[bool, int]  # of the log, or of the stack; its number
UNKNOWN: Root = (None, False)


class Unsuited(Exception):
    """The program cannot be shared by the threads of a block; it stays as it is."""


@dataclass(slots=True)
class Footprint:
    """``alone``: prints, or calls what does more than compute. ``taped``: works on stack or log, at these ``sites``."""

    reads: set[Root] = field(default_factory=set)
    writes: set[Root] = field(default_factory=set)
    sites: set[Site] = field(default_factory=set)
    alone: bool = False
    taped: bool = False


def site_of(op: Op) -> Site | None:
    """The site of stack or log at which an op puts or takes something; None for others."""
    takes = op.name in ("push", "pop", "record", "recall")
    return (op.name in ("record", "recall"), op.attrs["site"]) if takes else None


class Program:
    """Where the values of a program come from. ``made``: the op of each value; ``around``: the regions' ops that stand
    around each op, outermost first; ``counter``: the loop of which a value is the counter."""

    def __init__(self, func: Func):
        self.func = func
        self.made: dict[Value, Op] = {}
        self.counter: dict[Value, Op] = {}
        self.around: dict[Op, tuple[Op, ...]] = {}
        self.used = {a for op in ops_of(func.body) for a in (*op.args, *[y for r in op.regions for y in r.yields])}
        self._prints: dict[Op, Footprint] = {}
        self._visit(func.body, ())

    def _visit(self, block: Block, around: tuple[Op, ...]) -> None:
        for op in block.ops:
            self.around[op] = around
            self.made.update(dict.fromkeys(op.results, op))
            for region in op.regions:
                if op.name == "for":
                    self.counter[region.params[0]] = op
                self._visit(region, (*around, op))

    def root(self, view: Value) -> Root:
        """The memory that a view shows.

        Raises:
            Unsuited: it may be one of several arrays of the thread's own.
        """
        grad = False
        while (op := self.made.get(view)) is not None and (op.name in CUTS or op.name == "grad"):
            grad |= op.name == "grad"
            view = op.args[0]
        if (op is not None and op.name == "local") or view in self.func.params:
            return view, grad
        if view.type.space == "local":
            raise Unsuited
        return UNKNOWN

    def own(self, root: Root) -> bool:
        """Whether it is an array of the thread's own."""
        return root[0] is not None and root[0].type.space == "local"

    def of(self, op: Op) -> Footprint:
        """What ``op`` touches, and what stands in its regions."""
        found = self._prints.get(op)
        if found is None:
            found = self._prints[op] = Footprint()
            for one in (op, *[inner for region in op.regions for inner in ops_of(region)]):
                self._add(one, found)
        return found

    def _add(self, op: Op, found: Footprint) -> None:
        facts = info(op.name)
        if op.name in ("load", "store", "atomic"):
            root = self.root(op.args[0])
            if facts.reads:
                found.reads.add(root)
            if facts.writes:
                found.writes.add(root)
        elif op.name == "call":
            if any([isinstance(a.type, View) and a.type.space == "local" for a in op.args]):
                raise Unsuited
            func = op.attrs["func"]
            inside = [o for f in (func, *callees(func)) for o in ops_of(f.body)]
            found.sites |= {site for o in inside if (site := site_of(o)) is not None}
            found.taped |= any([info(o.name).tape for o in inside])
            if any([info(o.name).writes or info(o.name).orders for o in inside]):
                found.alone = True
            elif any([info(o.name).reads for o in inside]):
                found.reads.add(UNKNOWN)
        found.taped |= facts.tape
        found.alone |= facts.orders
        if (site := site_of(op)) is not None:
            found.sites.add(site)
