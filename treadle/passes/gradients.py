"""``wp.grad(f)(x)``: calls of a function's gradient become calls of its adjoint."""

from __future__ import annotations

from collections.abc import Iterator

from ..base.errors import KernelGradientError
from ..ir.builder import Builder
from ..ir.node import Block, Func, Op, Value
from ..ir.walk import once, ops_of, with_body, with_ops, with_regions
from ..types.core import Scalar, Type, View, b1
from ..types.layout import has_floats

__all__ = ["expand_gradients"]


def expand_gradients(func: Func) -> Func:
    """``func`` with the adjoint of the callee, asked with an adjoint of one for each result, in place of each call that
    is marked ``gradient``: how often the callee will be differentiated, this time counted.

    Raises:
        KernelGradientError: the callee has no derivative, or writes to memory.
    """
    if not any(op.name == "call" and op.attrs.get("gradient") for op in ops_of(func.body)):
        return func
    return with_body(func, _expanded(func.body, {}))


def _expanded(block: Block, env: dict[Value, Value]) -> Block:
    ops: list[Op] = []
    for op in block.ops:
        if not env.keys().isdisjoint(op.args):
            op = Op(op.name, tuple([env.get(a, a) for a in op.args]), op.results, op.attrs, op.regions, op.span)
        if op.regions:
            op = with_regions(op, tuple([_expanded(region, env) for region in op.regions]))
        elif op.name == "call" and op.attrs.get("gradient"):
            b = Builder(op.span)
            env.update(zip(op.results, _gradient(b, op)))
            ops.extend(b.ops)
            continue
        ops.append(op)
    return with_ops(block, tuple(ops), tuple([env.get(y, y) for y in block.yields]))


def _gradient(b: Builder, op: Op) -> list[Value]:
    """The results of ``op``, a call marked ``gradient``: one for each argument that has floats."""
    callee: Func = op.attrs["func"]
    adjoint = _adjoint(callee, op.attrs["gradient"] > 1)
    given = [leaf for a in op.args for leaf in _leaves(b, a)]
    seeds = [b.const(1.0, p.type) for p in adjoint.params[len(given) :]]
    types = tuple([y.type for y in adjoint.body.yields])
    made = iter(b.op("call", (*given, *seeds), types, func=adjoint))
    return [_filled(b, a, made) for a in op.args if has_floats(a.type)]


@once
def _adjoint(func: Func, again: bool) -> Func:
    """The adjoint of ``func`` on scalars and views; ``again``: it will be differentiated as well."""
    from .adjoint import reverse_function
    from .pipeline import NORMALIZE, PREPARE, run

    ready = run(PREPARE, run(NORMALIZE, func))
    for op in ops_of(ready.body):
        if op.name in ("store", "atomic") and op.args[0].type.space == "global":
            raise KernelGradientError(
                f"wp.grad of {func.name}, which writes to an array", op.span, "give the value back as a result"
            )
    return reverse_function(ready, again)


def _leaves(b: Builder, v: Value) -> Iterator[Value]:
    """The scalars and views that ``v`` is made of."""
    if isinstance(v.type, Scalar | View):
        yield v
        return
    for part in b.parts(v):
        yield from _leaves(b, part)


def _filled(b: Builder, like: Value, floats: Iterator[Value]) -> Value:
    """A value of the type of ``like``: its floats the next ones of ``floats``, its arrays its own, all else zero."""
    t: Type = like.type
    if isinstance(t, View):
        return like
    if isinstance(t, Scalar):
        return next(floats) if t.is_float else b.const(False if t is b1 else 0, t)
    return b.one("make", tuple([_filled(b, part, floats) for part in b.parts(like)]), t)
