"""Walking and rebuilding: the few traversals that every pass needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from ..types.core import Scalar
from .node import Block, Func, Op, Value


def is_float(v: Value) -> bool:
    """Whether ``v`` is a number that may have a derivative."""
    return isinstance(v.type, Scalar) and v.type.is_float


def with_regions(op: Op, regions: tuple[Block, ...]) -> Op:
    """``op`` with other regions; the same op if nothing changed."""
    if regions == op.regions:  # blocks, ops and values compare by identity
        return op
    return Op(op.name, op.args, op.results, op.attrs, regions, op.span)


def with_args(op: Op, args: tuple[Value, ...]) -> Op:
    """``op`` with other arguments; the same op if nothing changed."""
    if args == op.args:
        return op
    return Op(op.name, args, op.results, op.attrs, op.regions, op.span)


def with_ops(block: Block, ops: tuple[Op, ...], yields: tuple[Value, ...] | None = None) -> Block:
    """``block`` with other ops (and yields); the same block if nothing changed."""
    yields = block.yields if yields is None else yields
    if ops == block.ops and yields == block.yields:
        return block
    return Block(block.params, ops, yields)


def with_body(func: Func, body: Block) -> Func:
    """``func`` with another body; the same function if nothing changed."""
    if body is func.body:
        return func
    return Func(func.name, func.kind, func.params, body, func.signature, func.names, func.facts, func.span)


def ops_of(block: Block) -> Iterator[Op]:
    """Every op in ``block`` and the regions below, outer before inner, in order."""
    stack = [iter(block.ops)]
    while stack:
        for op in stack[-1]:
            yield op
            if op.regions:
                stack.extend([iter(region.ops) for region in reversed(op.regions)])
                break
        else:
            stack.pop()


def uses_of(block: Block) -> Counter[Value]:
    """How often each value is read in ``block`` and the regions below: by ops, and by yields."""
    read = [*block.yields]
    for op in ops_of(block):
        read += op.args
        for region in op.regions:
            read += region.yields
    return Counter(read)


# Attributes of a call that are functions: what stands for its derivative or its second run, and the callee.
RULES = ("adjoint", "tangent", "replay")
FUNCTIONS = ("func", *RULES)


def functions_of(op: Op) -> list[Func]:
    """The functions that a call brings along: its callee and its rules. None for other ops."""
    attrs = op.attrs
    return [attrs[key] for key in FUNCTIONS if key in attrs] if op.name == "call" else []


def with_functions(op: Op, change: Callable[[Func], Func]) -> Op:
    """A call with ``change`` applied to its callee and to its rules; the same op if nothing changed."""
    attrs = {key: change(f) if key in FUNCTIONS else f for key, f in op.attrs.items()}
    if all(attrs[key] is op.attrs[key] for key in attrs):
        return op
    return Op(op.name, op.args, op.results, attrs, op.regions, op.span)


def callees(func: Func) -> Iterator[Func]:
    """The distinct functions ``func`` calls, directly or not, and the rules of its calls; each after those it calls
    itself."""
    seen: set[int] = set()

    def visit(f: Func) -> Iterator[Func]:
        for op in ops_of(f.body):
            for callee in functions_of(op) if op.name == "call" else ():
                if id(callee) not in seen:
                    seen.add(id(callee))
                    yield from visit(callee)
                    yield callee

    yield from visit(func)


def captured(op: Op) -> set[Value]:
    """Values from outside that the regions of ``op`` read."""
    free: set[Value] = set()

    def visit(block: Block, known: set[Value]) -> None:
        known = known | set(block.params)
        for inner in block.ops:
            free.update(a for a in inner.args if a not in known)
            for region in inner.regions:
                visit(region, known)
            known.update(inner.results)
        free.update(y for y in block.yields if y not in known)

    for region in op.regions:
        visit(region, set())
    return free
