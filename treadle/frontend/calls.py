"""Calls: builtins, user functions, constructors and casts, and the few that mean something to the frontend itself."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..base.errors import KernelGradientError, KernelNameError, KernelSyntaxError, TreadleError
from ..builtins import registry
from ..ir.node import Func, Op, Value
from ..types import values
from ..types.core import STR, Indexed, Matrix, Scalar, Struct, Tile, Tuple, Type, Vector, fixed, i32, u64, view
from ..types.spelling import spell
from .arguments import Arguments, called
from .constants import FUNCTION, Constant, Operand, constant_of, describe, plain, type_in
from .context import context_of
from .control import operand_type
from .core import common_type
from .environment import Variable
from .expressions import RULES
from .facts import root_name
from .gradients import Gradients
from .names import MISSING
from .references import Given, Memory
from .slicing import below
from .statics import nodes_of

PYTHON: dict[Any, str] = {
    abs: "abs", min: "min", max: "max", pow: "pow", round: "round", len: "len", print: "print",
    breakpoint: "breakpoint",
}  # fmt: skip


class Calls(Gradients):
    """Translation of calls."""

    def _call(self, node: ast.Call) -> Operand | None:
        if node in self.source.statics:  # whatever that name means by now
            return constant_of(self.outside.static(node, {}))
        callee = self.operand(node.func)
        if not isinstance(callee, Constant) or callee.type is not None:
            self.fail(node, f"{describe(callee)} cannot be called")
        target = callee.value
        if getattr(target, "__treadle_static__", False):
            return self._static(node)
        if getattr(target, "__treadle_grad__", False):
            return self.gradient_of(target, node)
        if hasattr(target, "treadle_differentiated"):
            return self.call_gradient(target.treadle_differentiated, node)
        if target is type:
            return self._type(node)
        t = type_in(target)
        if t is not None:
            return self._construct(t, node)
        if hasattr(target, "treadle_function"):
            before = len(self.lent)
            made = self.call_user(target, self.arguments(node, lends=True), node)
            self.take_back(before)
            return made
        name = getattr(target, "__treadle_builtin__", None) or self._python_name(target)
        if name is None and self.builtin and isinstance(target, FunctionType):
            return self._call_body(target, node)
        if name is None:
            self._not_callable(target, node)
        own = OWN.get(name)
        if own is not None:
            return own(self, node)
        given = self.arguments(node)
        return self.builtin_call(name, given.args, given.kwargs, node, given.places)

    def _call_body(self, body: FunctionType, node: ast.Call) -> Operand | None:
        """Call a function that the body of a builtin shares with others."""
        given = [self.value(self.operand(a), a) for a in node.args]
        func = context_of(self.options.gradient).instantiate(body, [v.type for v in given])
        results = self.here(node).op("call", tuple(given), tuple(y.type for y in func.body.yields), func=func)
        return results if len(results) > 1 else results[0] if results else None

    def _python_name(self, target: Any) -> str | None:
        """The builtin that stands for a Python function: ``abs``, ``math.sin``."""
        try:
            found = PYTHON.get(target)
        except TypeError:  # unhashable
            return None
        home = getattr(target, "__module__", "")
        if found is None and home in ("math", values.__name__):  # also the makers of vector types, wp.types.vector
            name = {"fabs": "abs", "fmod": "mod"}.get(target.__name__, target.__name__)
            return name if registry.exists(name) else None
        return found

    def _not_callable(self, target: Any, node: ast.Call) -> None:
        name = getattr(target, "__name__", None) or type(target).__name__
        shown = called(node)
        if target is range:
            self.no_syntax(node, "range outside of a for statement", "write for i in range(n)")
        if hasattr(target, "declared_variants") or type(target).__name__ == "Kernel":
            self.fail(
                node, f"{shown} is a kernel and cannot be called from a kernel", "make it a function with @wp.func"
            )
        if callable(target):
            what = f"{shown} is a Python function, not one of the kernel language"
            hint = f"write wp.{name}" if registry.exists(name) else "decorate it with @wp.func"
            self.fail(node, what, hint, KernelNameError)
        self.fail(node, f"{shown} ({name}) cannot be called")

    # -- what callee is meant, without translating it ------------------------------------------------------------------

    def callee_of(self, node: ast.expr) -> Any:
        """The outside object that ``node`` names, or :data:`MISSING`."""
        if isinstance(node, ast.Name):
            v = self.env.get(node.id)
            if v is not None:
                return v.operand.value if isinstance(v.operand, Constant) else MISSING
            return self.named(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.callee_of(node.value)
            return MISSING if owner is MISSING else getattr(owner, node.attr, MISSING)
        return MISSING

    def callee_is(self, node: ast.expr, wanted: Any) -> bool:
        """Whether ``node`` names the object ``wanted``."""
        return self.callee_of(node) is wanted

    def is_static(self, node: ast.expr) -> bool:
        """Whether ``node`` names ``wp.static``."""
        return bool(getattr(self.callee_of(node), "__treadle_static__", False))

    def is_tid(self, node: ast.expr) -> bool:
        """Whether ``node`` is ``wp.tid()``."""
        return isinstance(node, ast.Call) and getattr(self.callee_of(node.func), "__treadle_builtin__", None) == "tid"

    # -- wp.static, wp.tid, print --------------------------------------------------------------------------------------

    def _static(self, node: ast.Call) -> Operand:
        """``wp.static(expr)``: what Python makes of ``expr`` now."""
        if len(node.args) != 1 or node.keywords:
            self.fail(node, "wp.static takes one expression")
        expr = node.args[0]
        known = {name: v.operand.value for name, v in self.env.items() if isinstance(v.operand, Constant)}
        known.update(self._measured(expr))
        for inner in nodes_of(expr):
            if isinstance(inner, ast.Name) and inner.id in self.env and inner.id not in known:
                self.fail(inner, f"wp.static cannot see {inner.id!r}: its value is known only at run time",
                          "use constants, and variables of loops with constant bounds", KernelNameError)  # fmt: skip
        try:
            return constant_of(self.outside.static(node, known))
        except TreadleError as error:
            raise self.placed(error, node) from None

    def _measured(self, expr: ast.expr) -> dict[str, Measured]:
        """Stand-ins for run-time variables of which ``expr`` asks only the length, as in ``len(v)``."""
        found = {}
        for call in nodes_of(expr):
            if isinstance(call, ast.Call) and len(call.args) == 1 and self.callee_is(call.func, len):
                v = self.env.get(call.args[0].id) if isinstance(call.args[0], ast.Name) else None
                n = known_length(v.operand) if v is not None else None
                if n is not None and not isinstance(v.operand, Constant):
                    found[call.args[0].id] = Measured(n)
        return found

    def grid_index(self, n: int, node: ast.AST) -> tuple[Value, ...]:
        """``n`` values of ``wp.tid()``."""
        if not 1 <= n <= 4:
            self.fail(node, f"a grid has 1 to 4 dimensions, not {n}")
        self.ask_rank(n, node)
        b = self.here(node)
        return tuple(b.one("tid", (), i32, axis=axis) for axis in range(n))

    def ask_rank(self, n: int, node: ast.AST) -> None:
        """Note that a grid of rank ``n`` is needed. Who asks for fewer indices gets the first ones."""
        self.ndim = max(n, self.ndim or 0)

    def _len(self, node: ast.Call) -> Operand | None:
        """``len(x)``: known, but for arrays."""
        given = self.arguments(node)
        n = known_length(given.args[0]) if len(given.args) == 1 and not given.kwargs else None
        if n is not None:
            return Constant(n, i32, True)
        return self.builtin_call("len", given.args, given.kwargs, node, given.places)

    def _address_of(self, node: ast.Call) -> Operand:
        """``wp.address_of(a[i].x)``: where an element of an array, or a part of one, lies."""
        if len(node.args) != 1 or node.keywords:
            self.fail(node, "wp.address_of takes one element of an array, or a part of one")
        ref = self.reference(node.args[0])
        if not isinstance(ref, Memory) or not ref.complete or ref.view.type.space != "global":
            what = "variables have an address only while a function runs that it is given to as an argument"
            self.fail(node.args[0], what, self.declaration(node.args[0]) or "write f(wp.address_of(x))")
        b = self.here(node)
        one = b.one("subview", (ref.view, *ref.indices), below(ref.view.type, len(ref.indices)))
        return b.one("address", (one,), u64)

    def lend(self, node: ast.Call) -> Operand | None:
        """``wp.address_of(x)`` as an argument: a variable, or a part of one, lies in memory while the function runs."""
        name = getattr(self.callee_of(node.func), "__treadle_builtin__", None)
        if name != "address_of" or len(node.args) != 1 or node.keywords:
            return None
        place = node.args[0]
        ref = self.reference(place)
        if root_name(place) not in self.env or isinstance(ref, Memory | Given) or self.declaration(place):
            return None
        t = self.type_of(ref)
        if not isinstance(t, Scalar):
            self.fail(place, f"only scalars are given by address: this is {spell(t)}", "give the address of a part")
        if self.options.gradient and t.is_float:
            self.fail(place, "what is given by address has no derivative", "pass it by reference, with wp.ref",
                      KernelGradientError)  # fmt: skip
        b = self.here(place)
        own = Value(view(t, 1, space="local"))
        b.ops.append(Op("local", (), (own,), {"type": fixed(t, (1,))}, (), b.span))
        address = b.one("address", (own,), u64)
        memory = Memory(b.one("view_at", (address, b.i32(1)), view(t, 1)), (b.i32(0),))
        self.write(memory, self.read(ref, place), place)
        self.lent.append((ref, memory, place))
        return address

    def take_back(self, count: int) -> None:
        """Give variables lent since there were ``count`` the values that the function left in memory."""
        for ref, memory, place in self.lent[count:]:
            self.write(ref, self.read(memory, place), place)
        del self.lent[count:]

    def _tid(self, node: ast.Call) -> Operand:
        if node.args or node.keywords:
            self.fail(node, "wp.tid takes no arguments", "write i, j = wp.tid()")
        return self.grid_index(1, node)[0]

    # -- constructors --------------------------------------------------------------------------------------------------

    def _construct(self, t: Type, node: ast.Call) -> Operand:
        args, kwargs, places = self.arguments(node)
        if isinstance(t, Scalar) and len(args) == 1 and not kwargs and isinstance(args[0], Constant):
            x = args[0]
            if isinstance(x.type, Scalar):
                return self._cast(x, t, node)
        if isinstance(t, Struct):
            args = [self._field(x, ft, n) for x, (_, ft), n in zip(args, t.fields, places, strict=False)] + args[
                len(t.fields) :
            ]
            kwargs = {k: self._field(x, dict(t.fields).get(k), node) for k, x in kwargs.items()}
        elif not isinstance(t, Scalar):
            args = [Constant(x.value, x.type, True) if isinstance(x, Constant) and x.named else x for x in args]
        given = [self.arg(x, n) for x, n in zip([*args, *kwargs.values()], places, strict=True)]
        named = dict(zip(kwargs, given[len(args) :], strict=True))
        try:
            match = registry.constructor(t, given[: len(args)], named, context_of(self.options.gradient))
        except TreadleError as error:
            raise self.placed(error, node) from None
        return self.emit(match, [*args, *kwargs.values()], node, places)

    def _field(self, x: Operand, t: Type | None, node: ast.AST) -> Operand:
        """``x`` as a field of type ``t`` takes it: arrays, and structs with arrays, of any layout."""
        if not isinstance(x, Value) or x.type is t or t is None:
            return x
        if isinstance(t, Indexed):
            return self.typed(x, t, node, "the field")
        return self.laid_out(x, t, node) if common_type(x.type, t) is t else x

    def _type(self, node: ast.Call) -> Constant:
        """``type(x)``: the class of ``x``, which can be called to convert or make a value."""
        if len(node.args) != 1 or node.keywords:
            self.fail(node, "type takes one value")
        x = self.operand(node.args[0])
        t = operand_type(x)
        if t is None:
            self.fail(node, f"{describe(x)} has no type to build with")
        return Constant(t, None)

    def _cast(self, x: Constant, t: Scalar, node: ast.AST) -> Constant:
        """A known number in type ``t``."""
        if t.is_int and isinstance(x.value, float) and not abs(x.value) < 2.0**64:
            self.fail(node, f"{x.value} does not fit into {spell(t)}")
        return Constant(plain(x.value, t), t)

    # -- user functions ------------------------------------------------------------------------------------------------

    def call_user(self, target: Any, arguments: Arguments, node: ast.expr) -> Operand | None:
        """Call a function of the user."""
        func, ready, rules = self.instance(target, arguments, node, self.options.gradient)
        results = self.here(node).op("call", ready, tuple(y.type for y in func.body.yields), func=func, **rules)
        alters = func.facts.get("alters", ())
        if alters:
            count, given = len(results) - len(alters), self.bound(target, arguments, node)
            for index, new in zip(alters, results[count:], strict=True):
                self.altered(given[index][1], new)
            results = results[:count]
        return results if len(results) > 1 else results[0] if results else None

    def instance(
        self, target: Any, arguments: Arguments, node: ast.expr, gradient: int
    ) -> tuple[Func, tuple[Value, ...], dict[str, Any]]:
        """The program of the user's function ``target`` for ``arguments``, and the values to call it with.

        ``target.treadle_parameters`` are its parameters (:class:`Parameter`). ``target.treadle_function(types,
        constants, gradient)`` gives its program for these argument types, where ``constants[i]`` is the
        :class:`Constant` given there, or None. Where it is to be differentiated ``target.treadle_rules(types,
        constants, gradient)`` gives what the user wrote for that: the attributes "adjoint" and "replay" of a call;
        where it is not, "apart", if there are such.
        """
        given = self.bound(target, arguments, node)
        for which in getattr(target, "treadle_references", ())[::2]:
            self._by_reference(given[which][1], which, node)
        types, constants = [], []
        for x, place in given:
            constants.append(x if isinstance(x, Constant) else None)
            if isinstance(x, Constant) and x.type is None:
                word = getattr(x.value, "__treadle_builtin__", None)
                if word in ("tid", "printf"):  # what they are given must be seen where they are called
                    self.fail(place, f"unsupported built-in function {word!r} as an argument", "call it by its name")
                types.append(FUNCTION if callable(x.value) and not isinstance(x.value, type) else None)
            else:
                t = operand_type(x)
                if t is None:
                    self.fail(place, f"{describe(x)} cannot be passed to a function")
                types.append(t)
        try:
            func: Func = target.treadle_function(tuple(types), tuple(constants), gradient)
            rules = target.treadle_rules(tuple(types), tuple(constants), gradient)
        except RecursionError:
            raise KernelSyntaxError(f"{called(node)} calls itself without end", self.span(node)) from None
        except TreadleError as error:
            raise self.placed(error, node) from None
        self.ruled |= bool(func.facts.get("ruled"))
        if func.facts.get("ndim"):
            self.ask_rank(func.facts["ndim"], node)
        passed = [(x, place) for x, place in given if not self._known_only(x)]
        ready = []
        for (x, place), t, name in zip(passed, func.signature, func.names, strict=True):
            ready.append(self.typed(x, t, place, f"argument {name!r} of {func.name}"))
        return func, tuple(ready), rules

    def _by_reference(self, place: ast.expr, which: int, node: ast.expr) -> None:
        """Refuse an argument that cannot be passed by reference, since nothing would be left of what is written."""
        root = root_name(place)
        if root not in self.env:
            self.fail(place, f"argument {which + 1} of {called(node)} is passed by reference: it must be a variable, "
                      "or an element or a part of one", "assign it to a variable first")  # fmt: skip
        if place not in self.facts.updated:
            self.fail(node, f"{called(node)} changes an argument passed by reference", "call it by its own name")

    def declaration(self, node: ast.expr) -> str:
        """How to give a variable that was set to a plain number a type of its own; nothing for any other."""
        v = self.env.get(node.id) if isinstance(node, ast.Name) else None
        x = v.operand if isinstance(v, Variable) else None
        if not isinstance(x, Constant) or not x.named:
            return ""
        return f"declare it with its type: {node.id} = wp.{spell(x.type)}({x.value!r})"

    def overload_of(self, name: str, operands: list[Operand]) -> Any:
        """The user's function that has the name of an operator, such as ``mul``, where it is meant: one of operands is
        a struct, or its annotations take these types. In its own body the operator is the language's."""
        if self.builtin or (name not in self.outside.globals and name not in self.outside.closure):
            return None
        target = self.outside.find(name)
        if not hasattr(target, "treadle_function"):
            return None
        if any([isinstance(x, Value) and isinstance(x.type, Struct) for x in operands]):
            return target
        constants = [x if isinstance(x, Constant) else None for x in operands]
        types = [operand_type(x) for x in operands]
        takes = [o.source is not self.source and o.accepts(types, constants) for o in getattr(target, "overloads", ())]
        return target if None not in types and any(takes) else None

    def call_overload(self, target: Any, operands: list[Operand], node: ast.expr) -> Operand:
        """An operator by the user's function ``target``."""
        made = self.call_user(target, Arguments(operands, {}, [node] * len(operands)), node)
        return self.operand_of(made, node)

    def _known_only(self, x: Operand) -> bool:
        """Whether an argument exists only while compiling: a function, a type, a text."""
        return isinstance(x, Constant) and (x.type is None or x.type is STR)


class Measured:
    """Stands in ``wp.static`` for a value that is known only at run time, but whose length is known."""

    __slots__ = ("length",)

    def __init__(self, length: int):
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measured) and other.length == self.length

    __hash__ = object.__hash__


def known_length(x: Operand) -> int | None:
    """How many parts ``x`` has, where that is known while compiling."""
    if isinstance(x, tuple):
        return len(x)
    if isinstance(x, Constant) and x.type is None and isinstance(x.value, tuple | list | dict):
        return len(x.value)
    match x.type:
        case Matrix() as t:
            return t.rows
        case Tile() as t:
            return t.shape[0]
        case Vector() as t:
            return t.n
        case Tuple() as t:
            return len(t.items)
    return None


OWN: dict[str, Callable[[Calls, ast.Call], Operand | None]] = {
    "tid": Calls._tid, "address_of": Calls._address_of, "len": Calls._len, "print": Calls._print,
    "printf": Calls._printf,
}  # fmt: skip

RULES[ast.Call] = Calls._call
