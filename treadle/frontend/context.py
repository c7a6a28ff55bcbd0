"""What the builtins may ask of the frontend: programs made from bodies in the kernel language."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..builtins.registry import as_written
from ..ir.node import Block, Func, Op
from ..ir.walk import with_body, with_ops, with_regions
from ..types.core import Type


class Context:
    """Parses the bodies of builtins, once per list of types in a process."""

    def __init__(self):
        self._made: dict[tuple[Callable, tuple[Type, ...]], Func] = {}

    def instantiate(self, body: Callable, types: Sequence[Type]) -> Func:
        """The program of ``body``, a Python function in the kernel language, for arguments of ``types``."""
        key = (body, tuple(types))
        func = self._made.get(key)
        if func is None:
            from .parse import parse_builtin

            func = parse_builtin(body, types)
            func = self._made[key] = unfused(func) if as_written(body) else func
        return func


def unfused(func: Func) -> Func:
    """``func`` with products that no later phase fuses with a sum."""

    def mark(block: Block) -> Block:
        ops = [
            Op(op.name, op.args, op.results, {"exact": True}, (), op.span) if op.name == "mul"
            else with_regions(op, tuple(mark(r) for r in op.regions))
            for op in block.ops
        ]  # fmt: skip
        return with_ops(block, tuple(ops))

    return with_body(func, mark(func.body))


CONTEXT = Context()
