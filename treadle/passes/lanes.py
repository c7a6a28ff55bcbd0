"""What the lanes of a gang have in common: uniform, contiguous and varying values, and which control flow diverges.

An analysis beside the IR, not a rewriting pass. Every value gets its *lane step*: 0 when all running lanes hold the
same value (uniform), an integer k when lane l holds ``start + k·l`` (contiguous: an address in it is a wide access),
None when nothing is known (varying). Three observations keep loops uniform:

* **Two faces.** In a loop whose lanes leave at different times, running lanes have run equally many rounds: a counter
  is uniform *inside* even though its value *after* the loop differs by lane.
* **Leaving arm.** In a loop whose stay flag is false on one side of an ``if``, lanes that take that side never see the
  next round; the results that only feed the next round need no blend and keep the lane step of the staying side.
* **Conjunctions.** The uniform parts of ``u and v`` are told apart from the varying ones, so code can branch on the
  former.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..ir.node import Block, Func, Op, Value
from ..ir.walk import ops_of, uses_of
from ..types.core import Scalar, b1

# Lane steps beyond this are called varying: start + step·lane then never wraps around 32 bits on its way to an address.
_LARGEST_STEP = 1 << 18

BASE = "base"  # the lane step of a view whose pointer varies while shape and strides are uniform

Step = int | None | str


class Given(NamedTuple):
    """What lanes have in common in the arguments of a call: lane steps, and which are known not to wrap around."""

    steps: tuple[Step, ...]
    exact: tuple[bool, ...]

    def join(self, other: Given) -> Given:
        """What arguments of either kind have in common."""
        exact = [a and b for a, b in zip(self.exact, other.exact, strict=True)]
        return Given(tuple(map(join, self.steps, other.steps)), tuple(exact))


# The lane steps of what a function gives back for such arguments.
Called = Callable[[Func, Given], tuple[Step, ...]]


@dataclass(slots=True)
class Leaving:
    """An ``if`` in a loop whose lanes leave the loop on one side.

    ``stay``: the region (0 or 1) whose lanes may stay. ``free``: the results that are not blended, each with the
    carried parameter it becomes. ``last``: nothing with an effect follows it in the loop, and every carried value that
    is read after the loop is among ``free`` or unchanged: when no lane stays, control may go straight to the loop's
    exit.
    """

    stay: int
    free: dict[int, Value]
    last: bool = False


@dataclass(slots=True)
class Lanes:
    """The facts. ``steps`` has every value of the function; ``divergent`` the ``if`` and loop ops that split a gang.

    ``sites``: by what takes back ("pop", "recall") and site, the lane steps of the values that lie there. ``exact``:
    i32 values that surely do not wrap around within a gang."""

    steps: dict[Value, Step]
    divergent: set[Op] = field(default_factory=set)
    sites: dict[tuple[str, int], tuple[Step, ...]] = field(default_factory=dict)
    exact: set[Value] = field(default_factory=set)
    leaving: dict[Op, Leaving] = field(default_factory=dict)
    uses: dict[Value, int] = field(default_factory=dict)

    def uniform(self, value: Value) -> bool:
        """Whether all running lanes hold the same ``value``."""
        return self.steps[value] == 0

    def given(self, call: Op) -> Given:
        """What is known of the arguments of ``call``."""
        return Given(tuple([self.steps[a] for a in call.args]), tuple([a in self.exact for a in call.args]))


def analyse(
    func: Func, rows: bool = False, params: Given | None = None, width: int = 8, ndim: int | None = None,
    called: Called | None = None,
) -> Lanes:  # fmt: skip
    """The lane facts of ``func`` (scalarized).

    ``rows``: gangs run along the last axis of the grid, so that outer axes are uniform. ``params``: what is known of a
    function's parameters (a kernel's are uniform). ``width`` 1 makes everything uniform; all other widths have the same
    facts. ``ndim``: the rank of the grid, where it is not for ``func`` itself (a called function) to say. ``called``:
    who knows what functions give back; without, that is varying.
    """
    lanes = Lanes(dict.fromkeys(func.params, 0), uses=uses_of(func.body))
    if params is not None:
        lanes.steps.update(zip(func.params, params.steps, strict=True))
        lanes.exact.update([p for p, exact in zip(func.params, params.exact, strict=True) if exact])
    for op in ops_of(func.body):
        if op.name in ("for", "while"):
            _find_leaving(op, lanes)
    rank = func.facts.get("ndim", 0) if ndim is None else ndim
    before: dict | None = None
    while before != lanes.sites:  # what a site holds is known once everything that is put there was seen
        before = dict(lanes.sites)
        _Analysis(lanes, rank, rows, width == 1, called).block(func.body)
    return lanes


class _Analysis:
    """One forward walk; a loop repeats until the lane steps of its carried values stand."""

    def __init__(self, lanes: Lanes, ndim: int, rows: bool, single: bool, called: Called | None):
        self.lanes, self.steps, self.ndim, self.rows, self.single = lanes, lanes.steps, ndim, rows, single
        self.constants: dict[Value, int] = {}
        self.called = called

    def block(self, block: Block) -> None:
        for op in block.ops:
            rule = _RULES.get(op.name)
            if rule is not None:
                rule(self, op)
            else:
                self.primitive(op)

    def all_uniform(self, values: Iterable[Value]) -> bool:
        return all(self.steps[v] == 0 for v in values)

    def set(self, op: Op, step: Step) -> None:
        for r in op.results:
            self.steps[r] = step

    def primitive(self, op: Op) -> None:
        """Arithmetic of uniform values is uniform; integer sums keep lane steps."""
        if self.all_uniform(op.args):
            self.set(op, 0)
            return
        rule = _ARITHMETIC.get(op.name)
        step = None
        if (
            rule is not None
            and all(_wide_int(v) for v in (*op.args, *op.results))
            and all(isinstance(self.steps[a], int) for a in op.args)
        ):
            step = rule(self, op)
            if step is not None and abs(step) > _LARGEST_STEP:
                step = None
        self.set(op, step)

    # One rule for each structural op that is not plain arithmetic.

    def const(self, op: Op) -> None:
        self.set(op, 0)
        if isinstance(op.attrs["value"], int):
            self.constants[op.results[0]] = int(op.attrs["value"])

    def tid(self, op: Op) -> None:
        self.lanes.exact.add(op.results[0])
        if self.single:
            self.set(op, 0)
        elif self.ndim <= 1:
            self.set(op, 1 if op.attrs["axis"] == 0 else 0)
        elif self.rows:
            self.set(op, 1 if op.attrs["axis"] == self.ndim - 1 else 0)
        else:
            self.set(op, None)

    def cast(self, op: Op) -> None:
        source, target = op.args[0], op.results[0]
        step = self.steps[source]
        wide = _wide_int(source) and _wide_int(target)
        if step and not (wide and (source.type.bits >= target.type.bits or source in self.lanes.exact)):
            step = None
        self.set(op, step)

    def select(self, op: Op) -> None:
        c, a, b = op.args
        same = self.steps[a] == self.steps[b]
        self.set(op, self.steps[a] if a is b or (same and self.steps[c] == 0) else None)

    def load(self, op: Op) -> None:
        # Equal addresses give equal values, whoever stored there; a thread's own arrays differ by lane.
        own = op.args[0].type.space == "local" and not self.single
        self.set(op, None if own or not self.all_uniform(op.args) else 0)

    def atomic(self, op: Op) -> None:
        self.set(op, 0 if self.single else None)

    def local(self, op: Op) -> None:
        self.set(op, 0)

    def address(self, op: Op) -> None:
        own = op.args[0].type.space == "local" and not self.single  # each lane has an array of its own
        self.set(op, 0 if not own and self.all_uniform(op.args) else None)

    def derived_view(self, op: Op) -> None:
        view = self.steps[op.args[0]]
        if self.all_uniform(op.args):
            self.set(op, 0)
        elif op.name == "slice" and not self.all_uniform(op.args[1:]):
            self.set(op, None)
        else:
            self.set(op, None if view is None else BASE)

    def shape(self, op: Op) -> None:
        self.set(op, None if self.steps[op.args[0]] is None else 0)

    def any_lane(self, op: Op) -> None:
        self.set(op, 0)

    def grad(self, op: Op) -> None:
        self.set(op, self.steps[op.args[0]])  # its pointer lies beside the data's, and varies as that does

    def has_grad(self, op: Op) -> None:
        self.set(op, 0 if self.steps[op.args[0]] == 0 else None)

    def put(self, op: Op) -> None:
        """What a site of the stack or log holds varies as its values do, those of all places that put some there."""
        key = (_TAKES[op.name], op.attrs["site"])
        steps = tuple([self.steps[a] for a in op.args])
        known = self.lanes.sites.get(key)
        self.lanes.sites[key] = steps if known is None else tuple(map(join, known, steps))

    def take(self, op: Op) -> None:
        found = self.lanes.sites.get((op.name, op.attrs["site"]))
        for r, step in zip(op.results, found or (0,) * len(op.results), strict=True):
            self.steps[r] = step

    def call(self, op: Op) -> None:
        if self.single or self.called is None:
            self.set(op, 0 if self.single else None)
            return
        steps = self.called(op.attrs["func"], self.lanes.given(op))
        self.steps.update(zip(op.results, steps, strict=True))

    def branch(self, op: Op) -> None:
        for region in op.regions:
            self.block(region)
        diverges = self.steps[op.args[0]] != 0
        if diverges:
            self.lanes.divergent.add(op)
        leaving = self.lanes.leaving.get(op) if diverges else None
        for i, r in enumerate(op.results):
            a, b = op.regions[0].yields[i], op.regions[1].yields[i]
            if a is b:
                self.steps[r] = self.steps[a]
            elif leaving is not None and i in leaving.free:
                self.steps[r] = self.steps[(a, b)[leaving.stay]]
            else:
                self.steps[r] = None if diverges else join(self.steps[a], self.steps[b])

    def loop(self, op: Op) -> None:
        region, head = op.regions[0], 3 if op.name == "for" else 0
        if head:
            self.steps[region.params[0]] = self.counter(op)
        carried, inits = region.params[head // 3 :], op.args[head:]
        stays = op.name == "while" or op.attrs.get("stays", False)
        for p, a in zip(carried, inits, strict=True):
            self.steps[p] = self.steps[a]
        while True:
            self.block(region)
            changed = False
            for p, y in zip(carried, region.yields[1 if stays else 0 :], strict=True):
                step = join(self.steps[p], self.steps[y])
                if step != self.steps[p]:
                    self.steps[p], changed = step, True
            if not changed:
                break
        diverges = not self.all_uniform(op.args[:head])
        if diverges or (stays and self.steps[region.yields[0]] != 0):
            self.lanes.divergent.add(op)
            for r, p, y in zip(op.results, carried, region.yields[1 if stays else 0 :], strict=True):
                self.steps[r] = self.steps[p] if y is p else None
        else:
            for r, p in zip(op.results, carried, strict=True):
                self.steps[r] = self.steps[p]

    def counter(self, op: Op) -> int | None:
        start, _, step = (self.steps[a] for a in op.args[:3])
        return start if step == 0 and (start == 0 or _wide_int(op.args[0])) else None


def join(a: Step, b: Step) -> Step:
    """The lane step of a value that is one or the other, the same choice in all lanes."""
    if a == b:
        return a
    return BASE if {a, b} == {0, BASE} else None


def _wide_int(value: Value) -> bool:
    return isinstance(value.type, Scalar) and value.type.is_int and value.type.bits >= 32


def _multiply(a: _Analysis, op: Op) -> int | None:
    x, y = op.args
    if x in a.constants:
        x, y = y, x
    return a.steps[x] * a.constants[y] if y in a.constants else None


def _shift(a: _Analysis, op: Op) -> int | None:
    amount = a.constants.get(op.args[1], -1)
    return a.steps[op.args[0]] << amount if 0 <= amount < 31 else None


_ARITHMETIC = {
    "add": lambda a, op: a.steps[op.args[0]] + a.steps[op.args[1]],
    "sub": lambda a, op: a.steps[op.args[0]] - a.steps[op.args[1]],
    "neg": lambda a, op: -a.steps[op.args[0]],
    "mul": _multiply,
    "shl": _shift,
}

_TAKES = {"push": "pop", "record": "recall"}

_RULES = {
    "const": _Analysis.const, "tid": _Analysis.tid, "cast": _Analysis.cast, "select": _Analysis.select,
    "load": _Analysis.load, "atomic": _Analysis.atomic, "local": _Analysis.local, "address": _Analysis.address,
    "subview": _Analysis.derived_view,
    "slice": _Analysis.derived_view, "field": _Analysis.derived_view, "parts": _Analysis.derived_view,
    "shape": _Analysis.shape, "lanes_any": _Analysis.any_lane, "lanes_max": _Analysis.any_lane,
    "mark": _Analysis.any_lane, "grad": _Analysis.grad, "has_grad": _Analysis.has_grad, "push": _Analysis.put,
    "record": _Analysis.put, "pop": _Analysis.take, "recall": _Analysis.take, "call": _Analysis.call,
    "if": _Analysis.branch, "for": _Analysis.loop, "while": _Analysis.loop,
}  # fmt: skip


# --- leaving arms ---------------------------------------------------------------------------------------------


def _find_leaving(loop: Op, lanes: Lanes) -> None:
    """Record the ``if`` ops of ``loop`` that lanes leave it by."""
    if loop.name == "for" and not loop.attrs.get("stays", False):
        return
    region = loop.regions[0]
    carried = region.params[1:] if loop.name == "for" else region.params
    index = {id(y): j for j, y in enumerate(region.yields[1:])}
    _visit(region, region.yields[0], index, loop, carried, lanes)
    if region.ops:
        op = region.ops[-1]
        found = lanes.leaving.get(op)
        if found is not None:
            kept = {op.results[i] for i in found.free}
            found.last = all(
                not lanes.uses.get(r, 0) or y in kept or y is p
                for r, y, p in zip(loop.results, region.yields[1:], carried, strict=True)
            )


def _visit(
    block: Block, stay: Value, index: dict[int, int], loop: Op, carried: tuple[Value, ...], lanes: Lanes
) -> None:
    """``index``: which carried value each yield of ``block`` becomes; ``stay``: the flag that ``block`` hands on."""
    made = {r: op for op in block.ops for r in op.results}
    needed = conjuncts(stay, made)
    for op in block.ops:
        if op.name != "if":
            continue
        side = _staying_side(op, needed, made)
        if side is None:
            continue
        free: dict[int, Value] = {}
        inner: dict[int, int] = {}
        for i, r in enumerate(op.results):
            j = index.get(id(r))
            if j is None or lanes.uses.get(r, 0) != 1:
                continue
            if not lanes.uses.get(loop.results[j], 0) or op.regions[1 - side].yields[i] is carried[j]:
                free[i] = carried[j]
                inner[id(op.regions[side].yields[i])] = j
        lanes.leaving[op] = Leaving(side, free)
        for i, r in enumerate(op.results):
            if r in needed:
                _visit(op.regions[side], op.regions[side].yields[i], inner, loop, carried, lanes)


def _staying_side(op: Op, needed: set[Value], made: dict[Value, Op]) -> int | None:
    """The region of ``op`` whose lanes may stay, if those of the other one surely leave."""
    if op.args[0] in needed:
        return 0
    if any(v in made and made[v].name == "logical_not" and made[v].args[0] is op.args[0] for v in needed):
        return 1
    for i, r in enumerate(op.results):
        if r in needed:
            for side in (0, 1):
                if is_false(op.regions[1 - side].yields[i], op.regions[1 - side], made):
                    return side
    return None


def conjuncts(value: Value, made: dict[Value, Op]) -> set[Value]:
    """Values of ``made`` (or ``value`` itself) that must all be true for ``value`` to be true."""
    found = {value}
    op = made.get(value)
    if op is None:
        return found
    if op.name == "bitand" and value.type is b1:
        for a in op.args:
            found |= conjuncts(a, made)
    elif op.name == "select" and is_false(op.args[2], None, made):
        found |= conjuncts(op.args[0], made) | conjuncts(op.args[1], made)
    elif op.name == "if":
        i = op.results.index(value)
        if is_false(op.regions[1].yields[i], op.regions[1], made):
            found |= conjuncts(op.args[0], made)
    return found


def is_false(value: Value, block: Block | None, made: dict[Value, Op]) -> bool:
    """Whether ``value`` is the constant False."""
    op = made.get(value)
    if op is None and block is not None:
        op = next((o for o in block.ops if value in o.results), None)
    return op is not None and op.name == "const" and op.attrs["value"] is False
