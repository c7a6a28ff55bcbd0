"""What the builtins may ask of the frontend: programs made from bodies in the kernel language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ..builtins.registry import Record, as_written
from ..ir.node import Block, Func, Op
from ..ir.walk import UNDECIDED, with_body, with_ops, with_regions
from ..types.core import Type
from ..types.layout import has_floats


class Context:
    """Parses the bodies of builtins, once per list of types in a process.

    ``gradient``: how often the program that calls them will be differentiated.
    """

    def __init__(self, gradient: int):
        self.gradient = gradient
        self._made: dict[tuple[Callable, tuple[Type, ...]], Func] = {}

    def instantiate(self, body: Callable, types: Sequence[Type]) -> Func:
        """The program of ``body``, a Python function in the kernel language, for arguments of ``types``."""
        key = (body, tuple(types))
        func = self._made.get(key)
        if func is None:
            from .parse import parse_builtin

            func = parse_builtin(body, types, self.gradient)
            func = self._made[key] = unfused(func) if as_written(body) else func
        return func

    def call(self, record: Record, types: Sequence[Type]) -> dict[str, Any]:
        """The attributes of a call of ``record`` for arguments of ``types``: the function, and where the program will
        be differentiated what the record says of its derivative; elsewhere that it is "apart", if there is such."""
        body = record.part("body")
        if not record.has("adjoint"):
            return {"func": self.instantiate(body, types)}
        found = {"func": context_of(0).instantiate(body, types)}  # who differentiates it does not look inside
        results = [y.type for y in found["func"].body.yields]
        floats = {"tangent": [t for t in types if has_floats(t)], "adjoint": [t for t in results if has_floats(t)]}
        if not self.gradient and all(floats.values()):
            found["apart"] = UNDECIDED
        elif self.gradient and all(floats.values()):
            rules = context_of(self.gradient - 1)
            for name in filter(record.has, floats):
                found[name] = rules.instantiate(record.part(name), (*types, *results, *floats[name]))
        return found


@cache
def context_of(gradient: int) -> Context:
    """The context of programs that will be differentiated ``gradient`` times."""
    return Context(gradient)


CONTEXT = context_of(0)


def unfused(func: Func) -> Func:
    """``func`` with products that no later phase fuses with a sum."""

    def mark(block: Block) -> Block:
        ops = [
            exact(op) if op.name == "mul" else with_regions(op, tuple(mark(r) for r in op.regions))
            for op in block.ops
        ]  # fmt: skip
        return with_ops(block, tuple(ops))

    return with_body(func, mark(func.body))


def exact(op: Op) -> Op:
    """A product that no later phase fuses with a sum."""
    return Op(op.name, op.args, op.results, {**op.attrs, "exact": True}, (), op.span)
