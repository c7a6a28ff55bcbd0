"""Floor 2: the intermediate representation and what can be read off it."""

from .node import Block, Func, Op, Value

__all__ = ["Block", "Func", "Op", "Value"]
