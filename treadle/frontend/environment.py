"""The variables of a function while it is translated."""

from __future__ import annotations

from ..base.span import NOWHERE, Span
from ..ir.node import Value
from ..types.core import Type
from .constants import Operand

# Names of the translator's own variables; no Python identifier starts with "$".
STAY = "$stay"  # false once the innermost loop is left
BROKE = "$broke"  # true once the innermost loop is left by break, while somebody asks that
RETURNED = "$returned"  # true once a return inside a loop has run
RESULT = "$value"  # what was returned
ADJOINT = "$adjoint "  # begins the names of what gradient functions give back: the adjoints of the arguments
FLOW = "$flow"  # not a variable: among the live names it says that somebody asks whether control went on


class Variable:
    """What a name stands for at one place. Immutable: an assignment binds a new Variable.

    ``defined``: True, or a bool value of the program that says whether some path has assigned it.
    ``span``: where it was assigned first, for messages about its type.
    """

    __slots__ = ("defined", "operand", "span")

    def __init__(self, operand: Operand, defined: bool | Value = True, span: Span = NOWHERE):
        self.operand, self.defined, self.span = operand, defined, span

    @property
    def type(self) -> Type | None:
        """Its type; None for compile-time objects, for tuples, and while still unknown (first read inside a loop)."""
        return None if isinstance(self.operand, tuple) else self.operand.type


class Broken(Variable):
    """A variable whose assignment had an error. Reading it raises :class:`Cascade`: one mistake is told once."""

    __slots__ = ()

    def __init__(self, span: Span):
        super().__init__((), True, span)


class Unsettled(Broken):
    """A variable assigned from one whose type is not known yet; the loop around will be translated again."""

    __slots__ = ()


class Cascade(Exception):
    """A statement that cannot be translated because of an error already reported."""


class TypeNeeded(Exception):
    """A loop's body reads a name before anything told its type; the loop is then translated a second time."""

    def __init__(self, name: str, span: Span):
        super().__init__(name)
        self.name, self.span = name, span


Environment = dict[str, Variable]
