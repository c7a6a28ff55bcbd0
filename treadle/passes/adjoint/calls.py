"""Calls that reach memory become their bodies, so that only functions of numbers are called.

One that carries a rule stays a call, but gets its body as a region: see ``ruled``.
"""

from __future__ import annotations

from ...ir.node import Block, Func, Op, Value
from ...ir.walk import ops_of, with_body, with_ops, with_regions
from ...types.core import View
from ..inline import copied

__all__ = ["flatten_calls", "reaches"]


def flatten_calls(func: Func) -> Func:
    """``func`` with the bodies of those functions in place of their calls, or inside them where they carry rules."""
    if all(op.name != "call" for op in ops_of(func.body)):
        return func
    return with_body(func, _flat(func.body, {}))


def _flat(block: Block, env: dict[Value, Value]) -> Block:
    out: list[Op] = []
    for op in block.ops:
        if not env.keys().isdisjoint(op.args):
            args = tuple([env.get(a, a) for a in op.args])
            op = Op(op.name, args, op.results, op.attrs, op.regions, op.span)
        if op.regions:
            op = with_regions(op, tuple([_flat(region, env) for region in op.regions]))
        elif op.name == "call" and any(map(reaches, _functions(op))):
            ruled = "adjoint" in op.attrs or "replay" in op.attrs
            callee = op.attrs.get("replay") or op.attrs["func"]
            inner = _flat(copied(callee.body, dict(zip(callee.params, op.args))), env)
            if ruled:
                out.append(with_regions(op, (inner,)))
                continue
            out.extend(inner.ops)
            env.update(zip(op.results, inner.yields))
            continue
        out.append(op)
    return with_ops(block, tuple(out), tuple([env.get(y, y) for y in block.yields]))


def _functions(op: Op) -> list[Func]:
    """What runs where ``op`` stands: forwards, again and backwards."""
    return [op.attrs[key] for key in ("func", "replay", "adjoint") if key in op.attrs]


def reaches(callee: Func) -> bool:
    """Whether ``callee`` touches memory other than its own arrays, or hands views about."""
    values = (*callee.params, *callee.body.yields)
    return any(isinstance(v.type, View) for v in values) or any(
        inner.name in ("view_at", "print", "lanes_any") or (inner.name == "call" and reaches(inner.attrs["func"]))
        for inner in ops_of(callee.body)
    )
