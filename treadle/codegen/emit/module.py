"""The whole text of a module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.node import Func
from ..llvm import head
from .atomics import Part, Planned
from .calls import write_functions
from .kernel import write_kernel
from .unit import Machine, Options, Unit

LONG = 1000  # lines of text from which on the registers surely do not hold what functions work with


def write(func: Func, symbol: str, target: Machine, options: Options, triple: str, planned: Planned | None = None,
          counting: Sequence[Part] = ()) -> tuple[str, Unit]:  # fmt: skip
    """LLVM text for ``func``, a scalarized kernel, and what was learned on the way (fault sites, prints, atomics).
    ``counting``: entries that stand beside it, see :func:`counting_symbols`."""
    planned = planned or Planned(options.order)
    unit = Unit(func, symbol, target, options, plans=planned.plans, drawing=planned.drawing)
    bodies = _bodies(unit)
    for k, (part, name) in enumerate(zip(counting, counting_symbols(symbol, len(counting)), strict=True)):
        other = Unit(part.func, name, replace(target, width=part.width), options, plans=planned.plans,
                     stem=f"{name}_f", drawing=planned.drawing[:k])  # fmt: skip
        bodies += _bodies(other)
        unit.needs |= other.needs
        unit.helpers |= other.helpers
    return assemble(unit, bodies, triple), unit


def counting_symbols(symbol: str, count: int) -> tuple[str, ...]:
    """The names of the counting passes of kernel ``symbol``."""
    return tuple([f"{symbol}_count{k}" for k in range(count)])


def _bodies(unit: Unit) -> list[str]:
    unit.analyse()
    return [write_kernel(unit, unit.kernel), *write_functions(unit)]


def assemble(unit: Unit, bodies: list[str], triple: str) -> str:
    """Functions, helpers and declarations as one module."""
    long = sum([body.count("\n") for body in bodies]) > LONG
    attributes = f"{unit.target.attributes} {unit.target.keeping}" if long else unit.target.attributes
    return "\n".join([
        head(triple), *sorted(unit.needs), *unit.helpers, *bodies,
        f"attributes #0 = {{ {attributes} }}", "!0 = !{}", "",
    ])  # fmt: skip
