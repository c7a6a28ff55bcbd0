"""The intermediate representation: four immutable classes.

A ``Func`` has parameters and a body ``Block``; a block is a list of ``Op`` and what it yields; an op reads and makes
``Value``. Control flow is an op with blocks inside ("regions"). All of them compare by identity; nobody changes one
after it is made: a pass builds new ops and keeps the old result values, so that users need no renaming.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..base.span import NOWHERE, Span
from ..types.core import Type

NO_ATTRS: dict[str, Any] = {}  # shared by all ops without attributes; never written to


@dataclass(slots=True, eq=False)
class Value:
    """The result of an op, a parameter of a block, or a parameter of a function. ``name`` only helps the reader."""

    type: Type
    name: str = ""

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self))[-5:]}:{self.type}"


@dataclass(slots=True, eq=False)
class Op:
    """One operation. ``name`` is looked up in ``ir.ops`` (structure) and in the builtins registry (mathematics).

    ``attrs`` are facts known while compiling (a constant, an index, a callee); ``span`` the place in the user's source.
    """

    name: str
    args: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    attrs: dict[str, Any] = field(default_factory=lambda: NO_ATTRS)
    regions: tuple[Block, ...] = ()
    span: Span = NOWHERE

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value


@dataclass(slots=True, eq=False)
class Block:
    """Straight code. ``params`` are bound by the op that owns the block, ``yields`` handed back to it."""

    params: tuple[Value, ...] = ()
    ops: tuple[Op, ...] = ()
    yields: tuple[Value, ...] = ()
    flat: tuple[Op, ...] | None = field(default=None, init=False, repr=False)  # for `ir.walk.ops_of` alone


@dataclass(slots=True, eq=False)
class Func:
    """A kernel or a function. Its results are what ``body`` yields.

    ``kind`` is "kernel" or "function". ``signature`` keeps the parameter types as the user declared them (before
    composites were taken apart), which fixes how arguments are packed. ``names`` are the parameters' names.
    ``facts``: plain data passes leave for later ones (grid rank "ndim", "checked" …); part of the printed text.
    ``known`` is for `ir.walk.once` alone.
    """

    name: str
    kind: str
    params: tuple[Value, ...]
    body: Block
    signature: tuple[Type, ...] = ()
    names: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    span: Span = NOWHERE
    known: dict[Any, Any] | None = field(default=None, init=False, repr=False)
