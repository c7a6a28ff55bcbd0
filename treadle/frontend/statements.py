"""Statements: one method for each kind that the language has."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..ir.node import Value
from ..types.core import Array, Fixed, Indexed, Matrix, Scalar, Tuple, Type, Vector, View, b1
from ..types.spelling import spell
from .constants import FALSE, TRUE, Constant, Operand, adapted, constant_of, describe, is_foreign, type_in
from .control import Flow, operand_type
from .core import common_type
from .environment import BROKE, RESULT, RETURNED, STAY, Broken, Variable
from .expressions import OPERATORS
from .facts import Names
from .indexing import Memory
from .loops import Loops
from .source import EMPTY

ATOMIC = {ast.Add: "add", ast.Sub: "sub", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}

HINTS = {
    "With": "call functions instead; for timing use wp.ScopedTimer around the launch",
    "Try": "kernels raise nothing that they could catch; test the condition with if",
    "Raise": "use assert, or write an error code to an array",
    "FunctionDef": "define it outside of the kernel and decorate it with @wp.func",
    "ClassDef": "define it outside of the kernel and decorate it with @wp.struct",
    "Delete": "variables end by themselves",
    "Global": "kernels cannot assign global variables; write to an array",
    "Nonlocal": "kernels cannot assign captured variables; write to an array",
    "Import": "import at the top of the file", "ImportFrom": "import at the top of the file",
    "Match": "write if and elif",
}  # fmt: skip


class Statements(Loops):
    """Translation of single statements; :meth:`statement` answers their flow."""

    def statement(self, s: ast.stmt, live: Names) -> Flow:
        rule = RULES.get(type(s))
        if rule is None:
            name = type(s).__name__
            self.no_syntax(s, f"the statement '{_keyword(name)}'", HINTS.get(name, ""))
        return rule(self, s, live)

    # -- assignment --------------------------------------------------------------------------------------------------

    def _assign(self, s: ast.Assign, live: Names) -> Flow:
        targets = s.targets
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List) and self.is_tid(s.value):
            x: Operand | None = self.grid_index(len(targets[0].elts), s.value)
        else:
            x = self.expression(s.value)
        if x is None:
            self.fail(s.value, "this call returns nothing", "give the function a return statement")
        for target in targets:
            if isinstance(target, ast.Name) and self._parts_from_caller(target.id):
                what = f"elements of parameter {target.id!r} have changed, and those of the caller's tile with it"
                self.fail(target, f"{what}; now it cannot become another tile", "use a new name")
            self.assign(target, x, s)
        if self.facts.groups and len(targets) == 1 and isinstance(targets[0], ast.Name):
            self.linked(targets[0].id, s.value)
        return True

    def _parts_from_caller(self, name: str) -> bool:
        """A parameter that is a tile becomes another one: whether elements of the caller's have changed before."""
        return name not in self.source.references and self.shared.pop(name, False)

    def assign(self, target: ast.expr, x: Operand, s: ast.stmt) -> None:
        """``target = x``."""
        if isinstance(target, ast.Name):
            self.keep_function(target.id, x, target)
            self.bind(target.id, x, target)
        elif isinstance(target, ast.Tuple | ast.List):
            starred = next((t for t in target.elts if isinstance(t, ast.Starred)), None)
            if starred is not None:
                self.no_syntax(starred, "a starred target", "name each value")
            for inner, part in zip(target.elts, self.unpack(x, len(target.elts), target), strict=True):
                self.assign(inner, part, s)
        elif isinstance(target, ast.Subscript | ast.Attribute):
            self.write(self.reference(target), x, target)
        else:
            self.no_syntax(target, "this target of an assignment")

    def unpack(self, x: Operand, n: int, node: ast.expr) -> tuple[Operand, ...]:
        """The ``n`` parts of a tuple or vector, or rows of a matrix."""
        if isinstance(x, Constant) and x.type is None and isinstance(x.value, tuple | list):
            x = tuple(constant_of(v) for v in x.value)
        if operand_type(x) is not None and isinstance(operand_type(x), Tuple | Vector | Matrix):
            x = self.spread(x, node)
        if not isinstance(x, tuple):
            self.fail(node, f"{n} values are needed to unpack, here is one of type {describe(x)}")
        if len(x) != n:
            self.fail(node, f"{n} names cannot take {len(x)} values")
        return x

    def bind(self, name: str, x: Operand, node: ast.AST) -> None:
        """Let ``name`` stand for ``x``."""
        before = self.env.get(name)
        if isinstance(x, Constant):
            x = Constant(x.value, x.type, named=x.literal or x.named)  # a named number has the type it had then
        elif isinstance(x, Value):
            x.name = x.name or name
        span = self.span(node)
        if before is not None and not isinstance(before, Broken):
            old, new = operand_type(before.operand), operand_type(x)
            other_view = isinstance(old, View | Indexed) and isinstance(new, View | Indexed)
            if old is not None and new is not None and not other_view and common_type(old, new) is None:
                self.two_types(name, before, new, span, node)
            span = before.span
        self.env[name] = Variable(x, True, span)
        if name in self.shared:
            self.shared[name] = True

    def keep_function(self, name: str, x: Operand, node: ast.AST) -> None:
        """Refuse to let a name that means a function mean anything else: what a call calls is seen where the name was
        given its meaning. A statement that is translated again, in a loop that is unrolled, is no second meaning."""
        before = self.env.get(name)
        known = before.operand if isinstance(before, Variable) else None
        if not isinstance(known, Constant) or known.type is not None or before.span == self.span(node):
            return
        what = known.value
        if hasattr(what, "treadle_differentiated"):
            self.fail(node, f"Cannot reassign local {name!r}: it means what wp.grad gave", "use a new name")
        new = x.value if isinstance(x, Constant) else None
        if not _is_function(what) or new is what:
            return
        to = "another function" if _is_function(new) else "a non-function value"
        self.fail(node, f"rebinding function-valued local {name!r} to {to} leaves open what a call of it calls",
                  "use a new name")  # fmt: skip

    def _annotated(self, s: ast.AnnAssign, live: Names) -> Flow:
        if s.value is None:
            return True
        x = self.expression(s.value)
        t = self.annotated_type(s.annotation)
        if t is not None:
            if isinstance(x, Constant):
                x = adapted(x, t)
            have = operand_type(x) if x is not None else None
            if have is not t and not isinstance(have, View | Indexed):
                shown = "nothing" if x is None else describe(x)
                self.fail(s, f"the variable is declared {spell(t)}, the value is {shown}",
                          "convert the value, or leave the annotation out")  # fmt: skip
        self.assign(s.target, x, s)
        return True

    def annotated_type(self, node: ast.expr) -> Type | None:
        """The type an annotation inside the function means; None for ``Any``."""
        if isinstance(node, ast.Name | ast.Attribute):
            x = self.expression(node)
            found = type_in(x.value) if isinstance(x, Constant) else None
            if found is not None:
                return found
        return self.source.type_of(ast.unparse(node))

    def _augmented(self, s: ast.AugAssign, live: Names) -> Flow:
        target, kind = s.target, type(s.op)
        if isinstance(target, ast.Name):
            x, before = self.variable(target), self.env.get(target.id)
            self.keep_function(target.id, None, target)
            made = self.operator(s.op, x, self.expression(s.value), s)
            if target.id in self.source.references and operand_type(made) is not operand_type(x):
                what = f"this augmented assignment to ref parameter {target.id!r} gives {describe(made)}"
                self.fail(s, f"{what}, and it is {describe(x)}", "convert the value")
            self.bind(target.id, made, target)
            self.changed(target.id, before, s)
            return True
        ref = self.reference(target)
        x = self.expression(s.value)
        if isinstance(ref, Memory) and kind in ATOMIC and ref.view.type.space == "global" and ref.complete:
            elem = ref.view.type.elem
            own = self.overload_of(OPERATORS[kind], [Value(elem), x])
            if own is None and (kind in (ast.Add, ast.Sub) or (isinstance(elem, Scalar) and elem.is_int)):
                v = self.typed(x, elem, s.value, "the element")
                self.here(s).one("atomic", (ref.view, *ref.indices, v), elem, op=ATOMIC[kind])
                return True
        self.write(ref, self.operator(s.op, self.read(ref, target), x, s), target)
        return True

    # -- leaving -------------------------------------------------------------------------------------------------------

    def _return(self, s: ast.Return, live: Names) -> Flow:
        if s.value is not None and self.kind == "kernel":
            self.fail(s, "a kernel cannot return a value", "write it to an array; 'return' alone ends the thread")
        if s.value is not None and not (isinstance(s.value, ast.Constant) and s.value.value is None):
            self._result(self.expression(s.value), s)
        if self.depth:
            self.env[RETURNED] = Variable(TRUE)
            self.env[STAY] = Variable(FALSE)
        return False

    def _result(self, x: Operand | None, s: ast.Return) -> None:
        """Note the values returned, in the types declared or returned before."""
        declared = self.declared
        wanted: tuple = (
            () if declared is EMPTY or declared is None else declared if isinstance(declared, tuple) else (declared,)
        )
        if not wanted and self.returned is not None:
            wanted = self.returned[0]
        given = x if isinstance(x, tuple) else (x,)
        if isinstance(x, Value) and isinstance(x.type, Tuple):
            given = self.here(s).parts(x)
        values = [self.value(p, s, wanted[i] if i < len(wanted) else None) for i, p in enumerate(given)]
        types = tuple(v.type for v in values)
        if declared is None:
            why = "is declared to return" if self.differentiated is None else "is a gradient function and returns"
            self.fail(s, f"{self.source.name} {why} nothing")
        if declared is not EMPTY and not _agree(types, wanted):
            self.fail(s, self._broken_promise(wanted, types))
        if any(map(_lends, types, wanted)) and not self.source.gives_own_arrays():
            what = f"{self.source.name} is annotated to return an array, but the code returns a fixed-size array"
            hint = "annotate wp.fixedarray(dtype=…, shape=…)"
            self.fail(s, f"{what} of its own, of which the caller gets a copy", hint)
        if self.returned is None:
            self.returned = (types, self.span(s))
        elif self.returned[0] != types:
            first, where = self.returned
            both = [common_type(a, b) for a, b in zip(first, types, strict=False)]
            if None not in both and len(first) == len(types):  # arrays that lie in different ways
                self.returned = (tuple(both), where)
                values = [self.laid_out(v, t, s) for v, t in zip(values, both, strict=True)]
                return self._give(values, s)
            self.fail(s, f"{self.source.name} returns {_list(types)} here and {_list(first)} in line {where.line}",
                      "return the same types everywhere")  # fmt: skip
        self._give(values, s)

    def _broken_promise(self, wanted: tuple, types: tuple[Type, ...]) -> str:
        """What to say of a function that returns ``types`` where it is annotated with ``wanted``."""
        note = self.source.annotations.get("return")
        written = note.__name__ if type(note) is type else str(note)
        count = len(types)
        if isinstance(self.declared, tuple) and len(wanted) != count:
            note, what = f"a tuple of {len(wanted)} elements", f"{count} values"
        elif count > 1:
            many = f"a tuple with types `({_list(types)})`" if len(wanted) == count else f"{count} values"
            note, what = f"`{written}`", many
        else:
            note, what = f"`{written}`", f"a value of type `{_list(types)}`"
        return f"{self.source.name} is annotated to return {note}, but the code returns {what}."

    def _give(self, values: list[Value], s: ast.Return) -> None:
        self.env[RESULT] = Variable(values[0] if len(values) == 1 else tuple(values), True, self.span(s))

    def _break(self, s: ast.Break, live: Names) -> Flow:
        self.env[STAY] = Variable(FALSE)
        if BROKE in self.env:
            self.env[BROKE] = Variable(TRUE)
        return False

    def _continue(self, s: ast.Continue, live: Names) -> Flow:
        return False

    # -- the rest ------------------------------------------------------------------------------------------------------

    def _expression(self, s: ast.Expr, live: Names) -> Flow:
        if isinstance(s.value, ast.Constant):  # a docstring, or "..."
            return True
        x = self.expression(s.value)
        if isinstance(x, Constant) and isinstance(s.value, ast.Call) and self.is_static(s.value.func) and is_foreign(x):
            kind = type(x.value).__name__
            given = "None" if x.value is None else f"an {kind}" if kind[0] in "aeiouAEIOU" else f"a {kind}"
            self.fail(s, f"wp.static gives {given} here, which a kernel cannot hold, and nobody asks for a part of it",
                      "leave the statement out, or write what is to become of the value")  # fmt: skip
        return True

    def _pass(self, s: ast.Pass, live: Names) -> Flow:
        return True

    def _assert(self, s: ast.Assert, live: Names) -> Flow:
        ok = self.truth(self.expression(s.test), s.test)
        message = f"assert {ast.unparse(s.test)}"
        if s.msg is not None:
            text = self.expression(s.msg)
            if not isinstance(text, Constant):
                self.fail(s.msg, "the message of an assert must be known while compiling")
            message = f"{message}: {text.value}"
        if ok is not True:
            b = self.here(s)
            ok = b.const(False, b1) if ok is False else ok
            b.op("check", (ok,), kind="assert", message=message, optional=True)
        return True


def _keyword(name: str) -> str:
    return {"FunctionDef": "def", "ClassDef": "class", "Delete": "del", "ImportFrom": "import", "AsyncFor": "async for",
            "AsyncWith": "async with", "AsyncFunctionDef": "async def"}.get(name, name.lower())  # fmt: skip


def _list(types: tuple[Type, ...]) -> str:
    return ", ".join(spell(t) for t in types)


def _is_function(x: object) -> bool:
    """Whether ``x`` is a function of the kernel language."""
    return hasattr(x, "treadle_function") or hasattr(x, "__treadle_builtin__")


def _lends(t: Type, wanted: Type | None) -> bool:
    """Whether an array of a function's own is returned where one in memory is declared."""
    return isinstance(t, View) and t.space == "local" and isinstance(wanted, Array)


def _agree(types: tuple[Type, ...], wanted: tuple) -> bool:
    """Whether the types returned are the declared ones; Any and arrays of any layout are left to the caller."""
    return len(types) == len(wanted) and all([_is_declared(t, w) for t, w in zip(types, wanted, strict=True)])


def _is_declared(t: Type, wanted: Type | None) -> bool:
    if wanted is None or wanted is t:
        return True
    if isinstance(t, View | Indexed):
        ndim = len(wanted.shape) if isinstance(wanted, Fixed) else getattr(wanted, "ndim", 0)
        return ndim == t.ndim and wanted.elem in (None, t.elem)
    return isinstance(t, type(wanted)) and t.name == wanted.name


RULES: dict[type[ast.stmt], Callable[[Statements, ast.stmt, Names], Flow]] = {
    ast.Assign: Statements._assign, ast.AnnAssign: Statements._annotated, ast.AugAssign: Statements._augmented,
    ast.For: Statements._for, ast.While: Statements._while, ast.Return: Statements._return,
    ast.Break: Statements._break, ast.Continue: Statements._continue, ast.Expr: Statements._expression,
    ast.Pass: Statements._pass, ast.Assert: Statements._assert,
}  # fmt: skip
