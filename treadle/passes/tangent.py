"""Forward mode: a program that carries the tangents of its values beside them.

``tangent`` works on scalarized programs. Whatever the program computes it computes still, bit for bit; each float that
may depend on an active input (``passes/activity``) gets a second value beside it, the directional derivative; memory
that may hold such floats gets memory of the same layout for their tangents, and each view of it a view of that. Control
flow follows the values alone. The result is a program like any other: the tangent of an adjoint gives second
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from ..base.errors import KernelGradientError
from ..base.span import NOWHERE, Span
from ..builtins.adjoint import Rules
from ..builtins.adjoint import tangent as derived
from ..ir.builder import Builder
from ..ir.effects import leaf_paths
from ..ir.node import Block, Func, Op, Value
from ..ir.ops import CUTS
from ..ir.walk import is_float, once, uses_of
from ..types.core import View, b1
from ..types.layout import has_tangent, leaves
from .activity import ADDRESS, LOADED, Marks, activity
from .fma import leave_products
from .inline import drop_rules, inline_small
from .ruled import has_rule, tangents_by_rule

__all__ = ["tangent"]


def tangent(func: Func, active: Collection[str], adjoint: bool = False) -> Func:
    """The program that runs kernel ``func`` on values and tangents.

    Args:
        func: a kernel after ``scalarize``; products that were to fuse have fused.
        active: the parameters whose tangents may differ from zero, by their paths (``ir.effects.leaf_paths``) or the
            beginnings of these; ``"grad a"`` for the gradient of array ``a``.
        adjoint: ``func`` is an adjoint, and what is asked for is the adjoint of the launch that carries tangents. The
            derivative of an adjoint is just that, once gradients change places: what ``func`` does with the gradient of
            an array belongs to its tangent, and the tangent of that to the array.

    Returns: a kernel with the parameters of ``func``, and after them one more of the same type for each that holds
        floats. Its fact "tangents" names the arrays (``"a"``, ``"grad a"``) whose tangents it reads or writes; no
        memory is needed for those of the others.

    Raises:
        KernelGradientError: the derivative is asked of something that has none, or none that is known.
    """
    func = leave_products(func)
    paths = leaf_paths(func)
    marks = tuple([
        _among(path, active) + 2 * (isinstance(p.type, View) and f"grad {path}" in active)
        for p, path in zip(func.params, paths, strict=True)
    ])  # fmt: skip
    walk = _Forward(func, marks, adjoint)
    signature = func.signature or tuple([p.type for p in func.params])
    params, extra, at = list(func.params), [], 0
    for k, t in enumerate(signature):
        own = func.params[at : at + len(leaves(t))]
        at += len(own)
        if has_tangent(t):
            extra.append(k)
            params += [walk.companion_of(p) for p in own]
    body = walk.body()
    hot = [f"{mark}{path}" for mark, of in (("", lambda p: p), ("grad ", lambda p: ("grad", p)))
           for p, path in zip(func.params, paths) if of(p) in walk.facts.hot]  # fmt: skip
    names = func.names or tuple([f"argument {k}" for k in range(len(signature))])
    made = Func(
        f"{func.name}_tangent", func.kind, tuple(params), body, (*signature, *[signature[k] for k in extra]),
        (*names, *[f"tangent of {names[k]}" for k in extra]), {**func.facts, "tangents": tuple(hot)}, func.span,
    )  # fmt: skip
    return inline_small(drop_rules(made))


def _among(path: str, active: Collection[str]) -> int:
    return int(any(path == a or path.startswith(f"{a}.") for a in active))


@once
def _function(func: Func, marks: Marks) -> Func:
    """``func`` with the tangents of the parameters that carry some after them, those of its results after these."""
    walk = _Forward(func, marks)
    extra = tuple([walk.companion_of(p) for p in func.params if walk.facts.carries(p)])
    body = walk.body(func.body.yields)
    params = (*func.params, *extra)
    return replace(func, name=f"{func.name}_tangent", params=params, body=body, names=(),
                   signature=tuple([p.type for p in params]))  # fmt: skip


class _Forward:
    """Rebuilds one function. ``dot`` gives the tangent of an active float, or the view of tangents of a view. ``swap``:
    gradients change places with their tangents."""

    def __init__(self, func: Func, marks: Marks, swap: bool = False):
        self.func, self.facts, self.swap = func, activity(func, marks), swap
        self.uses = uses_of(func.body)
        self.dot: dict[Value, Value] = {}
        self.poisons: set[Value] = set()
        self.b = Builder()

    def companion_of(self, p: Value) -> Value:
        """A new value of the type of ``p``, its tangent from here on if it carries one."""
        made = Value(p.type, p.name and f"{p.name}_dot")
        if self.facts.carries(p):
            self.dot[p] = made
        return made

    def body(self, yields: tuple[Value, ...] = ()) -> Block:
        return self.block(self.func.body, extra=tuple(self.carried(yields)))

    def carried(self, values: tuple[Value, ...]) -> list[Value]:
        return [v for v in values if self.facts.carries(v)]

    def dots(self, values: list[Value] | tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple([self.dot_of(v) for v in values])

    def dot_of(self, v: Value) -> Value:
        """The tangent of ``v``: of an inactive float zero."""
        found = self.dot.get(v)
        if found is not None:
            return found
        if isinstance(v.type, View) and self.facts.roots.get(v):
            raise KernelGradientError(
                "an array that may hold derivatives is chosen here together with one that was read out of an array or "
                "made from an address, and for that one there is no memory for tangents",
                self.b.span, "pass the array as an argument of its own",
            )  # fmt: skip
        if isinstance(v.type, View) or v in self.poisons:
            return self.b.one("poison", (), v.type)
        return self.b.const(0.0, v.type)

    # ---- walking

    def block(self, block: Block, params: tuple[Value, ...] = (), extra: tuple[Value, ...] = ()) -> Block:
        """``block`` with tangents; ``params`` come after its own, the tangents of ``extra`` are yielded last."""
        outer, self.b = self.b, Builder(self.b.span)
        for op in block.ops:
            self.b.span = op.span if op.span is not NOWHERE else outer.span
            rule = _RULES.get(op.name)
            if rule is not None:
                rule(self, op)
            elif op.name in CUTS:
                self.cut(op)
            else:
                self.primitive(op)
        yields = (*block.yields, *self.dots(extra))
        made, self.b = self.b, outer
        return Block((*block.params, *params), tuple(made.ops), yields)

    def keep(self, op: Op) -> None:
        self.b.ops.append(op)

    def beside(self, op: Op, args: tuple[Value, ...]) -> None:
        """``op`` once more on tangents; its result is the tangent of the result of ``op``."""
        made = self.dot[op.result] = Value(op.result.type)
        self.keep(Op(op.name, args, (made,), op.attrs, (), self.b.span))

    def primitive(self, op: Op) -> None:
        self.keep(op)
        if not op.results or op.results[0] not in self.facts.active:
            return
        found = derived(Rules(self.b), op, op.args, op.result, [self.dot.get(a) for a in op.args])
        if found is not None:
            self.dot[op.result] = found

    # ---- values

    def poison(self, op: Op) -> None:
        self.keep(op)
        self.poisons.add(op.result)

    def cast(self, op: Op) -> None:
        self.keep(op)
        if op.result in self.facts.active:
            self.beside(op, self.dots(op.args))

    def bitcast(self, op: Op) -> None:
        self.keep(op)
        if op.args[0] in self.facts.active:
            raise KernelGradientError("the bits of a float have no derivative", self.b.span,
                                      "compute what depends on the bits in a function with wp.func_grad")  # fmt: skip

    def select(self, op: Op) -> None:
        self.keep(op)
        if self.facts.carries(op.result):
            self.beside(op, (op.args[0], *self.dots(op.args[1:])))

    # ---- memory

    def cut(self, op: Op) -> None:
        """A view of a view."""
        self.keep(op)
        if self.facts.carries(op.result):
            self.beside(op, (self.dot_of(op.args[0]), *op.args[1:]))

    def grad(self, op: Op) -> None:
        """The gradient of a view, and beside it that of its tangents."""
        (v,) = op.args
        if not self.swap:
            return self.cut(op)
        if not self.facts.roots[v].isdisjoint((LOADED, ADDRESS)):
            raise _untold("needs the gradient of", op.span)
        self.keep(Op("grad", (self.dot_of(v),), op.results, op.attrs, (), op.span))
        self.dot[op.result] = self.b.one("grad", (v,), v.type)
        return None

    def local(self, op: Op) -> None:
        self.keep(op)
        if self.facts.carries(op.result):
            self.beside(op, ())

    def load(self, op: Op) -> None:
        self.keep(op)
        view, *indices = op.args
        if not any(is_float(r) for r in op.results):
            return
        if ADDRESS in self.facts.roots[view]:
            raise _untold("reads", op.span)
        if self.facts.is_hot(view):
            found = self.b.op("load", (self.dot_of(view), *indices), tuple([r.type for r in op.results]), **op.attrs)
            self.dot.update([(r, d) for r, d in zip(op.results, found) if is_float(r)])

    def store(self, op: Op) -> None:
        self.keep(op)
        view, first = op.args[0], 1 + op.args[0].type.ndim
        values = op.args[first:]
        if self.facts.is_hot(view) and any(is_float(v) for v in values):
            self.told(op)
            dots = [self.dot_of(v) if is_float(v) else v for v in values]
            self.b.op("store", (self.dot_of(view), *op.args[1:first], *dots), **op.attrs)
        elif any(v in self.facts.active for v in values):
            self.told(op)

    def told(self, op: Op) -> None:
        """Raise if the memory behind the view of ``op`` cannot be told."""
        if not self.facts.roots[op.args[0]].isdisjoint((LOADED, ADDRESS)):
            raise _untold("changes", op.span)

    def atomic(self, op: Op) -> None:
        """Sums pass tangents on; where one value replaces another its tangent does too, as long as threads run in
        order, which they do where an old float is looked at."""
        view, first = op.args[0], 1 + op.args[0].type.ndim
        indices, operands = op.args[1:first], op.args[first:]
        if not is_float(op.result) or not (self.facts.is_hot(view) or op.result in self.facts.active):
            if any(v in self.facts.active for v in operands):
                self.told(op)
            return self.keep(op)
        self.told(op)
        place, kind, used = (self.dot_of(view), *indices), op.attrs["op"], self.uses[op.result] > 0
        if kind in ("add", "sub", "exch"):
            self.keep(op)
            if used or kind == "exch" or operands[0] in self.dot:
                self.beside(op, (*place, self.dot_of(operands[0])))
            return None
        if used:
            self.dot[op.result] = self.b.one("load", place, op.result.type)
        self.keep(op)
        old, new = op.result, operands[-1]
        if kind == "cas":
            replaced = self.b.one("eq", (old, operands[0]), b1)
        else:
            better = self.b.one("lt" if kind == "min" else "gt", (new, old), b1)
            replaced = self.b.one("bitor", (better, self.b.one("ne", (old, old), b1)), b1)  # NaN gives way
        arm = Builder(self.b.span)
        with_dot = self.dot.get(new) or arm.const(0.0, new.type)
        arm.op("store", (*place, with_dot))
        self.b.op("if", (replaced,), (), (arm.block(), Block()))
        return None

    def keep_values(self, op: Op) -> None:
        """``push`` and ``record``: the tangents go with their values."""
        carried = self.site(op, op.args)
        self.keep(Op(op.name, (*op.args, *self.dots(carried)), (), op.attrs, (), op.span) if carried else op)

    def take_values(self, op: Op) -> None:
        """``pop`` and ``recall``."""
        extra = [self.companion_of(r) for r in self.carried(op.results)]
        self.keep(Op(op.name, (), (*op.results, *extra), op.attrs, (), op.span) if extra else op)

    def site(self, op: Op, values: tuple[Value, ...]) -> list[Value]:
        """Those of ``values`` whose results, where they are taken back, carry tangents."""
        carried = self.facts.kept(op.attrs["site"])
        return [v for k, v in enumerate(values) if k in carried]

    # ---- control flow

    def branch(self, op: Op) -> None:
        carried = self.carried(op.results)
        ends = [[r.yields[op.results.index(v)] for v in carried] for r in op.regions]
        regions = tuple([self.block(r, (), tuple(end)) for r, end in zip(op.regions, ends)])
        results = tuple([self.companion_of(v) for v in carried])
        self.keep(Op("if", op.args, (*op.results, *results), op.attrs, regions, op.span))

    def loop(self, op: Op) -> None:
        (body,), n = op.regions, len(op.results)
        slots = [k for k, r in enumerate(op.results) if self.facts.carries(r)]
        first = [len(values) - n for values in (op.args, body.params, body.yields)]
        initial = self.dots([op.args[first[0] + k] for k in slots])
        params = tuple([self.companion_of(body.params[first[1] + k]) for k in slots])
        region = self.block(body, params, tuple([body.yields[first[2] + k] for k in slots]))
        results = tuple([self.companion_of(op.results[k]) for k in slots])
        self.keep(Op(op.name, (*op.args, *initial), (*op.results, *results), op.attrs, (region,), op.span))

    # ---- calls

    def call(self, op: Op) -> None:
        marks = self.facts.marks[op]
        if not any(marks):
            return self.keep(op)
        if has_rule(op):
            self.keep(op)
            return self.by_rule(op)
        results = tuple([self.companion_of(r) for r in self.carried(op.results)])
        args = (*op.args, *self.dots(self.carried(op.args)))
        made = _function(op.attrs["func"], marks)
        return self.keep(Op("call", args, (*op.results, *results), {"func": made}, (), op.span))

    def by_rule(self, op: Op) -> None:
        """The tangents of the results of a call whose callee has a rule of its own."""
        found = tangents_by_rule(self.b, op, [self.dot.get(a) for a in op.args])
        self.dot.update([(r, d) for r, d in found.items() if r in self.facts.active])


def _untold(what: str, span: Span) -> KernelGradientError:
    return KernelGradientError(
        f"this {what} memory that no argument names, so that its tangents have no place",
        span, "pass the array as an argument of its own",
    )  # fmt: skip


_RULES: dict[str, Callable[[_Forward, Op], None]] = {
    **dict.fromkeys(("const", "tid", "shape", "address", "view_at", "lanes_any", "lanes_max", "has_grad", "print",
                     "check", "mark", "seek"), _Forward.keep),
    "poison": _Forward.poison, "cast": _Forward.cast, "bitcast": _Forward.bitcast, "select": _Forward.select,
    "grad": _Forward.grad, "local": _Forward.local, "load": _Forward.load, "store": _Forward.store,
    "atomic": _Forward.atomic, "push": _Forward.keep_values, "record": _Forward.keep_values,
    "pop": _Forward.take_values, "recall": _Forward.take_values, "if": _Forward.branch, "for": _Forward.loop,
    "while": _Forward.loop, "call": _Forward.call,
}  # fmt: skip
