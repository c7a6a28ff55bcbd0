"""The whole text of a module."""

from __future__ import annotations

from ...ir.node import Func, Op
from .atomics import Plan
from .calls import write_function
from .kernel import write_kernel
from .unit import Machine, Options, Unit


def write(func: Func, symbol: str, target: Machine, options: Options, triple: str,
          plans: dict[Op, Plan] | None = None) -> tuple[str, Unit]:  # fmt: skip
    """LLVM text for ``func``, a scalarized kernel, and what was learned on the way (fault sites, prints, atomics)."""
    unit = Unit(func, symbol, target, options, plans=plans or {})
    functions = unit.analyse()
    bodies = [write_kernel(unit, func)]
    bodies.extend(write_function(unit, f) for f in functions)
    return assemble(unit, bodies, triple), unit


def assemble(unit: Unit, bodies: list[str], triple: str) -> str:
    """Functions, helpers and declarations as one module."""
    return "\n".join([
        f'target triple = "{triple}"', *sorted(unit.needs), *unit.helpers, *bodies,
        f"attributes #0 = {{ {unit.target.attributes} }}", "!0 = !{}", "",
    ])  # fmt: skip
