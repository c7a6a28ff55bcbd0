"""How a kernel's atomic updates run on a GPU: in which passes, with which memory between them, and how each site is
written.

Bits are the same from run to run unless the kernel is compiled *relaxed*:

* at the thread's own index: an ordinary read and write;
* integers, minima and maxima, bits: the hardware's atomics, as their order does not matter;
* *sum*, floats at an address that all threads share: each hardware thread has a register, whose threads follow from the
  launch's size alone; the pass ``merge`` adds these up in a fixed tree;
* *exact*, floats at addresses that vary: each scalar has an accumulator that holds every float32 or float64 exactly, as
  integers, so that order does not matter; the pass ``fold`` rounds once (see ``exact.py``);
* *counter*, results of integer additions are used: hardware threads take ranges of threads; passes ``count`` add up
  what each range adds, passes ``scan`` say where each range starts;
* everything else: one thread runs the whole launch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...ir.effects import Effects, effects, without_prints
from ...ir.node import Func, Op
from ...types.core import Scalar, f32, f64
from ..emit.atomics import Plan, Planned, plan

SUM_THREADS, RANGE_THREADS = 1 << 17, 1 << 18  # hardware threads, at most, whose sums or ranges are put together
LIMBS = {f32: 9, f64: 66}  # 32-bit places of an exact accumulator; one word more has what is not finite


@dataclass(frozen=True, slots=True)
class Site:
    """How one atomic op is written: ``how`` is own, plain (one thread runs), hardware, sum, exact, counter, or joined
    (another op does it); ``index`` is its number among the sums, exact arrays or counters; ``row``: the ops it does."""

    how: str
    index: int = -1
    row: tuple[Op, ...] = ()


@dataclass(frozen=True, slots=True)
class Sum:
    """A float, or integer, that all threads update. ``item``: its memory, a scalar a hardware thread."""

    kind: str
    type: Scalar
    item: int


@dataclass(frozen=True, slots=True)
class Exact:
    """An array of floats that threads add to anywhere: the parameter, or its gradient."""

    type: Scalar
    param: int
    grad: bool
    item: int


@dataclass(frozen=True, slots=True)
class Counter:
    """``round``: in which it is counted; ``item``: its memory, a number a hardware thread."""

    type: Scalar
    round: int
    item: int


@dataclass(slots=True)
class Way:
    """``order``: free, counted or ordered. ``heads``: the item with the address of each sum and counter; -1: none."""

    order: str
    sites: dict[Op, Site] = field(default_factory=dict)
    sums: list[Sum] = field(default_factory=list)
    exact: list[Exact] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    counting: list[Func] = field(default_factory=list)
    scratch: list[dict[str, Any]] = field(default_factory=list)
    heads: int = -1

    @property
    def threads(self) -> int | None:
        """Hardware threads of a launch, at most, where results depend on them; None where they do not."""
        return RANGE_THREADS if self.counters else SUM_THREADS if self.sums else None

    def item(self, **facts: Any) -> int:
        """A new item of scratch memory; its number."""
        self.scratch.append(facts)
        return len(self.scratch) - 1


def find(func: Func, order: str, relaxed: bool, forced: bool) -> Way:
    """The way of ``func``. ``order``: what its effects ask for; ``forced``: threads run in order whatever they do."""
    found = effects(func)
    if relaxed:
        alone = {s.op for s in found.sites if found.roots[s.root].own and not forced}
        return Way("free", {s.op: Site("own" if s.op in alone else "hardware") for s in found.sites})
    if found.prints and order == "ordered" and not forced:
        order = without_prints(found)  # the host sorts what is printed
    planned = plan(func, order)
    if planned.order == "counted" and not _placed(found, planned):
        planned = plan(func, "ordered")
    made = _private(func, found, planned)
    return _private(func, found, plan(func, "ordered")) if made is None else made


def _placed(found: Effects, planned: Planned) -> bool:
    """Whether every counter has one address, and passes can count it."""
    counted = [found.sites[k] for numbers in found.rounds for k in numbers]
    places = [found.counter(s)[1] is not None or (found.single and s.uniform) for s in counted]
    return bool(planned.counting) and all(places) and (found.single or planned.draws)


def _private(func: Func, found: Effects, planned: Planned) -> Way | None:
    """The sites of ``planned`` as a GPU writes them; None where it has no way to keep their bits but one thread."""
    way = Way(planned.order, counting=planned.counting)
    sites = {s.op: s for s in found.sites}
    shared: dict[Any, int] = {}
    for op, one in planned.plans.items():
        if one.how in ("own", "joined"):
            way.sites[op] = Site(one.how, row=one.row)
        elif one.how == "serial":
            way.sites[op] = Site("plain")
        elif one.how == "sum":
            way.sites[op] = Site("sum", _sum(way, planned.items[one.item]["op"], sites[op].type))
        elif one.how in ("counted", "drawn"):
            way.sites[op] = Site("counter", _counter(way, found, sites[op], one, shared))
        elif not sites[op].type.is_float or sites[op].kind not in ("add", "sub"):
            way.sites[op] = Site("hardware", row=one.row)
        elif sites[op].type not in LIMBS:
            return None
        else:
            way.sites[op] = Site("exact", _exact(way, sites[op].type, one, planned.items, shared), one.row)
    count = len(way.sums) + len(way.counters)
    if count:
        way.heads = way.item(bytes=8 * count, per="launch", slots=1, zeroed=True)
    return way


def _sum(way: Way, kind: str, t: Scalar) -> int:
    way.sums.append(Sum(kind, t, way.item(bytes=t.size, per="thread", slots=1, zeroed=False)))
    return len(way.sums) - 1


def _exact(way: Way, t: Scalar, one: Plan, items: list[dict[str, Any]], shared: dict[Any, int]) -> int:
    key = "exact", one.param, one.grad
    if key not in shared:
        nbytes, path = 8 * (LIMBS[t] + 1), items[one.item]["path"]
        item = way.item(bytes=nbytes, per="scalar", path=path, size=t.size, zeroed=True)
        shared[key] = len(way.exact)
        way.exact.append(Exact(t, one.param, one.grad, item))
    return shared[key]


def _counter(way: Way, found: Effects, site: Any, one: Plan, shared: dict[Any, int]) -> int:
    key = "counter", found.counter(site)
    if key not in shared:
        shared[key] = len(way.counters)
        item = way.item(bytes=site.type.size, per="thread", slots=1, zeroed=False)
        way.counters.append(Counter(site.type, one.round, item))
    return shared[key]
