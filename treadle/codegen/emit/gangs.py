"""Which forms of each called function are written: one for each kind of call.

A gang function gets a uniform argument as one scalar, a contiguous one as its first lane and a varying one as a vector,
so that what is a wide access at the caller's index is one in the callee too. Calls whose arguments agree in that share
a form. A function of which this would make too much code has a single form, for what all of its calls have in common.
Each form has up to two texts, with a mask and for calls by all lanes of a gang.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

from ...ir.node import Block, Func, Op
from ...ir.walk import names_of, ops_of
from ...passes.inline import size
from ...passes.lanes import Given, Lanes, Step, analyse

ROOM = 600  # ops of all forms of a function, or of both texts of a form, where there is more than one


@dataclass(slots=True, eq=False)
class Form:
    """``func`` for the arguments ``given``. ``results``: the lane steps of what it gives back. ``parted``: whether some
    calls lie where a gang has split; None before a call was seen. ``names``: of its texts, by whether all lanes run."""

    func: Func
    given: Given
    lanes: Lanes
    results: tuple[Step, ...]
    parted: bool | None = None
    names: dict[bool, str] = field(default_factory=dict)

    def whole(self, everyone: bool) -> bool:
        """Whether a call by ``everyone`` (else by some lanes) takes the text for all lanes."""
        return everyone and not (self.parted and 2 * size(self.func) > ROOM)


class Gangs:
    """The forms of all functions that ``entries`` call, found before any is written. ``full``: entries have no mask.

    What a call gives back depends on its form, and the form of other calls on that. So the analysis is repeated until
    no common form has become more general on the way, and there is room for all forms. It asks for forms that no call
    has in the end, as long as it does not know better of what loops carry: these count for nothing.
    """

    def __init__(self, entries: Iterable[Func], rows: bool, width: int, full: bool):
        self.rows, self.width = rows, width
        self.lanes: dict[Func, Lanes] = {}
        self.forms: dict[Func, dict[Given, Form]] = {}
        self.common: dict[Func, Given] = {}  # of each function with a single form: for what arguments
        entries = list(entries)
        self.ndim = entries[0].facts.get("ndim", 0)
        before = None
        while before != self.common:
            before = dict(self.common)
            self.forms.clear()
            for func in entries:
                self.lanes[func] = analyse(func, rows, None, width, None, self._called)
            for func, forms in self._used(entries).items():
                if func not in self.common and len(forms) > 1 and len(forms) * size(func) > ROOM:
                    self.common[func] = reduce(Given.join, [form.given for form in forms])
        for func in entries:
            self._part(func.body, self.lanes[func], not full)

    def form(self, op: Op, lanes: Lanes) -> Form:
        """The form that the call ``op`` takes, where ``lanes`` are the facts around it."""
        return self._form(op.attrs["func"], lanes.given(op))

    def _called(self, func: Func, given: Given) -> tuple[Step, ...]:
        return self._form(func, given).results

    def _form(self, func: Func, given: Given) -> Form:
        forms = self.forms.setdefault(func, {})
        if func in self.common:
            given = self.common[func] = given.join(self.common[func])
        if given not in forms:
            lanes = analyse(func, self.rows, given, self.width, self.ndim, self._called)
            forms[given] = Form(func, given, lanes, tuple([lanes.steps[y] for y in func.body.yields]))
        return forms[given]

    def _used(self, entries: Iterable[Func]) -> dict[Func, set[Form]]:
        """The forms of each function that calls have, as far as is known."""
        used: dict[Func, set[Form]] = {}
        waiting = [(func, self.lanes[func]) for func in entries]
        while waiting:
            func, lanes = waiting.pop()
            for op in ops_of(func.body) if "call" in names_of(func) else ():
                if op.name == "call":
                    form = self.form(op, lanes)
                    forms = used.setdefault(form.func, set())
                    if form not in forms:
                        forms.add(form)
                        waiting.append((form.func, form.lanes))
        return used

    def _part(self, block: Block, lanes: Lanes, parted: bool) -> None:
        """Note which forms are called where a gang has split. ``parted``: ``block`` lies in such a place."""
        for op in block.ops:
            for region in op.regions:
                self._part(region, lanes, parted or op in lanes.divergent)
            if op.name == "call":
                form = self.form(op, lanes)
                if form.parted is None or (parted and not form.parted):
                    form.parted = parted
                    self._part(form.func.body, form.lanes, parted)
