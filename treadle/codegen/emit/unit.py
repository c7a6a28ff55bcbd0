"""One module of LLVM text: a kernel, the functions it calls, and what they all share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...ir.node import Func, Op
from ...ir.walk import callees, ops_of
from ...passes.lanes import Lanes
from ...types.core import Scalar
from . import lasting
from .gangs import Form, Gangs

if TYPE_CHECKING:
    from .atomics import Plan


@dataclass(frozen=True, slots=True)
class Machine:
    """What the emitter must know of the processor.

    ``lanes``: 32-bit lanes of one register; a gang of ``width`` may take several.
    ``gathers``, ``scatters``: whether its own are worth using. ``mask_registers``: masks have registers of their own.
    ``masked_loads``: loads with a mask are as quick as others.
    ``slow_masked_stores``: they cost more than a store for each lane. ``attributes``: of all functions; ``keeping``: of
    those that are so long that they keep vectors on the stack. ``handlers``: what writes each op, where that is
    not as for a CPU.
    """

    kind: str
    width: int
    lanes: int = 0
    gathers: bool = False
    scatters: bool = False
    mask_registers: bool = False
    masked_loads: bool = False
    slow_masked_stores: bool = False
    attributes: str = "nounwind"
    keeping: str = ""
    handlers: Mapping[str, Callable[..., None]] | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """``rows``: gangs along the last grid axis. ``checked``: test every index. ``order``: free, counted or ordered.
    ``races``: look for races between threads, in checked kernels whose order is ordered. ``full``: every gang has all
    its lanes. ``alone``: there is but one thread. ``relaxed``: floats may be added up in any order."""

    rows: bool = False
    checked: bool = False
    order: str = "free"
    races: bool = False
    full: bool = False
    alone: bool = False
    relaxed: bool = False


@dataclass(slots=True)
class Unit:
    """``sites`` and ``prints`` describe, for the host, what a fault or log record means."""

    kernel: Func
    symbol: str
    target: Machine
    options: Options
    needs: set[str] = field(default_factory=set)
    helpers: dict[str, None] = field(default_factory=dict)
    sites: list[dict] = field(default_factory=list)
    prints: list[dict] = field(default_factory=list)
    numbers: dict[tuple[Op, str], int] = field(default_factory=dict)
    failing: dict[int, bool] = field(default_factory=dict)
    putting: dict[Func, frozenset[str]] = field(default_factory=dict)
    gangs: Gangs | None = None  # once it is analysed
    asked: list[tuple[Form, bool]] = field(default_factory=list)  # forms that are called, and whether by all lanes
    plans: dict[Op, Plan] = field(default_factory=dict)
    stem: str = "f"  # what the names of its functions begin with
    drawing: tuple[Func, ...] = ()  # the passes in which a gang tallies, before it runs
    tallying: int | None = None  # the number of the one that is being written
    lasting: frozenset[Op] = frozenset()  # the loops that ask for the stop flag after each block of rounds

    @property
    def width(self) -> int:
        return self.target.width

    def helper(self, text: str) -> None:
        """Have ``text``, a function of our own, in the module once."""
        self.helpers[text] = None

    @property
    def taped(self) -> bool:
        """Whether the program has a tape."""
        return self.tapes(self.kernel)

    def tapes(self, func: Func) -> bool:
        """Whether ``func``, or what it calls, works on the tape."""
        return bool(self.puts(func))

    def puts(self, func: Func) -> frozenset[str]:
        """By which ops ``func``, or what it calls, puts something on the tape: "push", "record"."""
        found = self.putting.get(func)
        if found is None:
            names = {op.name for f in (func, *callees(func)) for op in ops_of(f.body)}
            found = self.putting[func] = frozenset(names & {"push", "record"})
        return found

    def site(self, op: Op, kind: str, **facts) -> int:
        """The number of a place that may fail; the same for every copy of it."""
        if (op, kind) in self.numbers:
            return self.numbers[op, kind]
        number = self.numbers[op, kind] = len(self.sites)
        span = op.span
        self.sites.append({"kind": kind, "file": span.file, "line": span.line, "column": span.column,
                           "end_column": span.end_column, **facts})  # fmt: skip
        return number

    def printing(self, op: Op) -> int:
        """The number of a place that prints; its parts are types of values and texts."""
        functions = (self.kernel, *callees(self.kernel))
        texts = {r: o.attrs["value"] for f in functions for o in ops_of(f.body) if o.name == "const" for r in o.results}
        parts = [
            a.type.name if isinstance(a.type, Scalar) else {"text": texts[a]} if a in texts else "bool" for a in op.args
        ]
        self.prints.append({"format": op.attrs["format"], "values": parts})
        return len(self.prints) - 1

    def analyse(self) -> None:
        """Find the lane facts of the kernel and the forms of every function that it calls."""
        full = self.width == 1 or self.options.full
        self.lasting = lasting.loops(self)
        self.gangs = Gangs((self.kernel, *self.drawing), self.options.rows, self.width, full)

    def lanes(self, func: Func) -> Lanes:
        """The lane facts of an entry."""
        assert self.gangs is not None
        return self.gangs.lanes[func]

    def called(self, op: Op, lanes: Lanes, everyone: bool) -> tuple[Form, bool, str]:
        """For a call: the form that it takes, whether that is the text for all lanes, and its name."""
        assert self.gangs is not None
        form = self.gangs.form(op, lanes)
        whole = form.whole(everyone)
        if whole not in form.names:
            form.names[whole] = f"@{self.stem}{len(self.asked)}_{_plain(form.func.name)}"
            self.asked.append((form, whole))
        return form, whole, form.names[whole]


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name)  # what PTX takes
