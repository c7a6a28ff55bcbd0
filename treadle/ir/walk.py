"""Walking and rebuilding: the few traversals that every pass needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ..types.core import Scalar
from .node import Block, Func, Op, Value

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


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


def ops_of(block: Block) -> tuple[Op, ...]:
    """Every op in ``block`` and the regions below, outer before inner, in order. Passes ask again and again, so blocks
    remember it."""
    flat = block.flat
    if flat is None:
        found: list[Op] = []
        stack = [iter(block.ops)]
        while stack:
            for op in stack[-1]:
                found.append(op)
                if op.regions:
                    stack.extend([iter(region.ops) for region in reversed(op.regions)])
                    break
            else:
                stack.pop()
        flat = block.flat = tuple(found)
    return flat


def uses_of(block: Block) -> Counter[Value]:
    """How often each value is read in ``block`` and the regions below: by ops, and by yields."""
    read = [*block.yields]
    for op in ops_of(block):
        read += op.args
        for region in op.regions:
            read += region.yields
    return Counter(read)


_ITSELF: Any = object()


def once(find: Callable[Concatenate[Func, Asked], Found]) -> Callable[Concatenate[Func, Asked], Found]:
    """``find``, of which a function remembers what was found of it, for each ``asked``: as long as it lives itself, and
    no longer."""

    @wraps(find)
    def answer(func: Func, *asked: Asked.args) -> Found:
        known = func.known
        if known is None:
            known = func.known = {}
        key = (find, *asked) if asked else find
        if key not in known:
            found = find(func, *asked)
            known[key] = _ITSELF if found is func else found  # a function that kept itself would not go
        found = known[key]
        return func if found is _ITSELF else found

    return answer


@once
def names_of(func: Func) -> frozenset[str]:
    """The names of all ops in ``func``."""
    return frozenset([op.name for op in ops_of(func.body)])


# Attributes of a call that are functions: what stands for its derivative or its second run, and the callee.
RULES = ("adjoint", "tangent", "replay")
FUNCTIONS = ("func", *RULES)
# The attribute "apart": the callee has rules, though this program asks for none of them, so that its products must not
# fuse with the caller's. It says what becomes of the call once products have fused.
UNDECIDED, JOINED, CALLED = "undecided", "joined", "called"


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


def callees(func: Func) -> list[Func]:
    """The distinct functions ``func`` calls, directly or not, and the rules of its calls; each after those it calls
    itself."""
    found: list[Func] = []
    _gather(func, set(), found)
    return found


def _gather(func: Func, seen: set[Func], found: list[Func]) -> None:
    for op in ops_of(func.body):
        for callee in functions_of(op) if op.name == "call" else ():
            if callee not in seen:
                seen.add(callee)
                _gather(callee, seen, found)
                found.append(callee)


def captured(op: Op) -> set[Value]:
    """Values from outside that the regions of ``op`` read."""
    free: set[Value] = set()
    for region in op.regions:
        _outside(region, set(), free)
    return free


def _outside(block: Block, known: set[Value], free: set[Value]) -> None:
    """Add to ``free`` what ``block`` reads and neither makes nor finds in ``known``."""
    known = known | set(block.params)
    for op in block.ops:
        free.update([a for a in op.args if a not in known])
        for region in op.regions:
            _outside(region, known, free)
        known.update(op.results)
    free.update([y for y in block.yields if y not in known])
