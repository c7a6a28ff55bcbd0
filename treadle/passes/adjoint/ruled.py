"""Calls that work on memory and bring rules of their own: gradient and replay functions with array arguments.

Such a call owns a region (``calls.flatten_calls`` puts it there): the ops that run where the program runs again, the
body of the function or of what replays it. Going back, the rule's body takes its place. The rule reaches the gradient
of an array through ``grad`` of its parameter; where the array has none, what goes there is dropped.

A rule, and a replay function, see arrays as the launch left them. Where the kernel changes and reads an array itself,
so that it has to be put back before the kernel runs again, there is no such moment, and the rule is refused. A rule
may write arrays that the kernel does not work on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ...base.errors import KernelGradientError
from ...ir.node import Block, Func, Op, Value
from ...ir.ops import CUTS
from ...ir.walk import is_float, ops_of
from ...types.core import Scalar, View, b1
from ..inline import copied
from .calls import flatten_calls, reaches
from .facts import UNKNOWN
from .memory import gradient, has_gradient

if TYPE_CHECKING:
    from .reverse import Reverser

__all__ = ["reverse_ruled", "run_ruled", "works_on_gradients"]


def run_ruled(r: Reverser, op: Op) -> None:
    """The call once more."""
    (region,) = op.regions
    if "replay" in op.attrs:
        for inner in ops_of(region):
            if inner.name in ("load", "atomic"):
                _see_final(r, inner.args[0], op.attrs["replay"], inner)
        read = {a.root for a in r.facts.accesses if a.reads}
        replayed = {r.facts.root[inner.args[0]] for inner in ops_of(region) if inner.name in ("store", "atomic")}
        for v in _written_by(op):
            if r.facts.root[v] in read - replayed:  # what stands there the function left, not its replay function
                _see_final(r, v, op.attrs["replay"], op)
    for inner in region.ops:
        r.run(inner)
    r.scopes[-1].now.update(zip(op.results, r.all_now(region.yields)))


def works_on_gradients(r: Reverser, op: Op) -> bool:
    """Whether a call's rule may add to the gradient of an array."""
    return "adjoint" in op.attrs and any(isinstance(a.type, View) and r.facts.watched(a) for a in op.args)


def reverse_ruled(r: Reverser, op: Op) -> None:
    """The adjoints of the results, and the gradients of arrays, go through the rule."""
    callee, rule = op.attrs["func"], op.attrs.get("adjoint")
    entering = [r.take(v) for v in op.results]
    if all(a is None for a in entering) and not works_on_gradients(r, op):
        return
    if rule is None and reaches(callee):
        raise KernelGradientError(
            f"{callee.name} has a replay function and works on arrays, so that its derivative is not known", op.span,
            "give it a gradient function with @wp.func_grad",
        )  # fmt: skip
    pairs = zip(op.results, entering)
    adjoints = tuple([r.zero(v.type) if a is None else a for v, a in pairs if is_float(v)])
    floats = [a for a in op.args if is_float(a)]
    if rule is None:
        r.call_adjoint(op, floats, adjoints)
        return
    for a, part in zip(floats, _Rule(r, rule, op).write(adjoints), strict=True):
        r.add(a, part)


def _see_final(r: Reverser, v: Value, rule: Func, access: Op) -> None:
    """``rule`` reads memory through ``v``, a view of the old program: as the launch left it."""
    root = r.facts.root[v]
    unknown = root == UNKNOWN and any(a.writes and a.root == UNKNOWN for a in r.facts.accesses)
    if r.facts.moves(v) or unknown or (root != UNKNOWN and r.facts.changes(root)):
        raise KernelGradientError(
            f"{rule.name} reads {root!r}, which the kernel also reads and changes: what it left there is not known",
            access.span, "hand over what is needed as an argument or a result",
        )  # fmt: skip
    if root != UNKNOWN:
        r.seen.add(root)


def _written_by(op: Op) -> list[Value]:
    """The arrays among the arguments of a call that its function writes, or may write where it chooses among them."""
    callee = op.attrs["func"]
    anything = {p for p in callee.params if isinstance(p.type, View)}
    origin = {p: {p} for p in anything}  # of views that can show one array, or none, only
    written: set[Value] = set()
    for inner in ops_of(callee.body):
        if inner.name in CUTS:
            origin[inner.results[0]] = origin.get(inner.args[0], anything)
        elif inner.name == "local":
            origin[inner.results[0]] = set()
        elif inner.name in ("store", "atomic", "call"):
            views = inner.args if inner.name == "call" else inner.args[:1]
            written = written.union(*[origin.get(v, anything) for v in views if isinstance(v.type, View)])
    return [a for p, a in zip(callee.params, op.args, strict=True) if p in written]


class _Rule:
    """The body of a rule, written where the call is gone back through.

    ``origin``: which view of the old program a view shows a part of. ``there``: of the views of gradients whether there
    is one, a bool where it is known, else a value of the program. ``env``: what stands for values of the rule.
    """

    def __init__(self, r: Reverser, rule: Func, op: Op):
        self.r, self.rule, self.call = r, flatten_calls(rule), op
        self.origin: dict[Value, Value] = {}
        self.there: dict[Value, bool | Value] = {}
        self.env: dict[Value, Value] = {}

    def write(self, adjoints: tuple[Value, ...]) -> tuple[Value, ...]:
        """Append the rule for these adjoints of the call's results; gives back those of its arguments."""
        r, op, own = self.r, self.call, []
        for v in (*op.args, *op.results):
            own.append(Value(v.type) if isinstance(v.type, View) else r.now(v))
            if isinstance(v.type, View):  # a value of its own each, though the call may pass a view twice
                self.origin[own[-1]] = v
                self.env[own[-1]] = r.now(v)
        body = copied(self.rule.body, dict(zip(self.rule.params, (*own, *adjoints), strict=True)))
        for inner in body.ops:
            self.op(inner)
        return self.all(body.yields)

    def all(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple([self.env.get(v, v) for v in values])

    def op(self, op: Op) -> None:
        with self.r.b.at(op.span):
            match op.name:
                case "grad":
                    self.grad(op)
                case "load" | "store" | "atomic" if op.args[0] in self.there:
                    self.access(op)
                case "load":
                    self.read(op)
                case "store" | "atomic" if op.args[0].type.space == "global":
                    self.write_array(op)
                case _:
                    self.plain(op)

    def plain(self, op: Op) -> None:
        """An op as it stands; views that it cuts stay what they are."""
        views = [a for a in op.args if a in self.there]
        if op.name in CUTS:
            (result,) = op.results
            if views:
                self.there[result] = self.there[op.args[0]]
            elif op.args[0] in self.origin:
                self.origin[result] = self.origin[op.args[0]]
        elif views and op.name not in ("shape", "address"):
            self.choose(op)
        regions = tuple([self.region(region) for region in op.regions])
        self.r.b.ops.append(Op(op.name, self.all(op.args), op.results, op.attrs, regions, op.span))

    def region(self, block: Block) -> Block:
        with self.r.scope():
            for op in block.ops:
                self.op(op)
            if any(y in self.there for y in block.yields):
                self.choose(block.ops[-1])
            return self.r.b.block(block.params, self.all(block.yields))

    def choose(self, op: Op) -> NoReturn:
        self.refuse(op, "chooses among the adjoints of arrays while it runs", "index each of them in a branch")

    def refuse(self, op: Op, what: str, hint: str) -> NoReturn:
        raise KernelGradientError(f"{self.rule.name} {what}", op.span, hint)

    def grad(self, op: Op) -> None:
        """``wp.adjoint[a]``: the gradient of an array of the call, or of one that the rule found in memory."""
        r, (v,) = self.r, op.args
        old = self.origin.get(v)
        if old is None:
            self.there[op.result] = r.b.one("has_grad", self.all(op.args), b1)
            return self.plain_result(op, r.b.one("grad", self.all(op.args), v.type))
        if not r.facts.watched(old):
            self.there[op.result] = False
            return self.plain_result(op, self.env.get(v, v))  # its shape is asked for, nothing else
        self.there[op.result] = has_gradient(r, old) if r.facts.root[old] == UNKNOWN else True
        self.plain_result(op, gradient(r, old))

    def plain_result(self, op: Op, made: Value) -> None:
        self.env[op.result] = made

    def access(self, op: Op) -> None:
        """The gradient of an array is read or added to, if there is one; nothing is zero."""
        r, there = self.r, self.there[op.args[0]]
        if there is True:
            return self.plain_access(op)
        if there is False:
            for v in op.results:
                self.env[v] = self.nothing(v)
            return
        with r.scope():
            results = tuple([Value(v.type) for v in op.results])
            r.b.ops.append(Op(op.name, self.all(op.args), results, op.attrs, (), op.span))
            some = r.b.block((), results)
        with r.scope():
            zeros = tuple([self.nothing(v) for v in op.results])
            none = r.b.block((), zeros)
        r.b.ops.append(Op("if", (there,), op.results, regions=(some, none), span=op.span))

    def plain_access(self, op: Op) -> None:
        self.r.b.ops.append(Op(op.name, self.all(op.args), op.results, op.attrs, (), op.span))

    def nothing(self, v: Value) -> Value:
        t = v.type
        if isinstance(t, Scalar):
            return self.r.b.const(0.0 if t.is_float else False if t is b1 else 0, t)
        return self.r.b.one("poison", (), t)

    def write_array(self, op: Op) -> None:
        """The rule writes an array itself: no derivative, but a count or a record of its own. The kernel, which runs
        again among the rules, must have nothing to do with it."""
        old = self.origin.get(op.args[0])
        if old is None or self.r.facts.root[old] == UNKNOWN or self.r.facts.accesses_of(self.r.facts.root[old]):
            self.refuse(op, "writes to an array that its kernel works on, or may work on",
                        "write to wp.adjoint[…], or to an array that only gradient functions use")  # fmt: skip
        self.r.kept.add(self.r.facts.root[old])
        self.plain_access(op)

    def read(self, op: Op) -> None:
        """The rule looks at an array."""
        old = self.origin.get(op.args[0])
        if old is not None:
            _see_final(self.r, old, self.rule, op)
        self.plain_access(op)
