"""Python statements for the statements of a snippet.

Names that begin with ``$`` are the operations by which C differs; ``parser`` knows what they do:
``$fit(place, value)`` converts a value to the type of the place it goes to, ``$element(array, value)`` to that of an
array's elements, ``$result(value)`` to the declared result, which ``$results(…)`` makes of several; ``$make(type, …)``
makes a value of a type, ``$number(type, n)`` is a literal, ``$array(shape, type)`` an array of the thread's own;
``$bits(type, value)`` reads the bits of a value anew, ``$copied(place, value)`` as those of the type of a place;
``$pointed(type, value)`` is memory at an address.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from ...base.errors import KernelSyntaxError
from ...base.span import Span
from .expressions import OPERATORS, Expressions, call, name, number, placed
from .text import LIST, Text

_IN_PLACE = {"+", "-", "&", "|", "^"}  # of memory: what several threads do at once adds up


def statements(text: Text, parameters: list[str], file: str) -> list[ast.stmt]:
    """The body of a function with ``parameters``.

    Raises:
        KernelSyntaxError: C that is wrong, or that snippets cannot have.
        ModuleNotFoundError: pycparser is not installed.
    """
    try:
        from pycparser import c_parser
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "wp.func_native reads C with the package pycparser: pip install 'treadle[native]'", name="pycparser"
        ) from error
    try:
        made = c_parser.CParser().parse(text.c)
    except c_parser.ParseError as error:
        places = [part for part in str(error).split(":") if part.strip().isdigit()]
        line = max(1, int(places[0]) - 1) if places else 1
        length = len(Span(file, line).text().rstrip())
        raise KernelSyntaxError(
            f"this is not the C that snippets can have: {str(error).split(':')[-1].strip()}",
            Span(file, line, 0, length),
            "snippets have scalars, vectors, arrays, expressions, if, for, while and calls of builtins",
        ) from None
    body = made.ext[-1].body.block_items or []
    return _Statements(text, parameters, file).block(body) or [placed(ast.Pass(), 1)]


class _Statements(Expressions):
    """Translation of the statements of one snippet."""

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, items: list[Any] | Any | None) -> list[ast.stmt]:
        """The statements of a block, in a scope of their own."""
        outer, self.out = self.out, []
        self.scopes.append({})
        for item in items if isinstance(items, list) else [] if items is None else [items]:
            self.statement(item)
        self.scopes.pop()
        made, self.out = self.out, outer
        return made

    def statement(self, node: Any) -> None:
        rule = _STATEMENTS.get(type(node).__name__)
        if rule is not None:
            rule(self, node)
        elif type(node).__name__ in ("Goto", "Label", "Typedef", "FuncDef"):
            self.refuse(node, f"'{type(node).__name__.lower()}'", "write if and else")
        else:
            self.emit(ast.Expr(self.expression(node)), node)

    def _compound(self, node: Any) -> None:
        self.out.extend(self.block(node.block_items))

    def _nothing(self, node: Any) -> None:
        """An empty statement, or ``(void)x``."""

    def _casted(self, node: Any) -> None:
        if getattr(getattr(node.to_type.type, "type", None), "names", None) != ["void"]:
            self.emit(ast.Expr(self.expression(node)), node)

    def _return(self, node: Any) -> None:
        if node.expr is None:
            self.emit(ast.Return(None), node)
        elif getattr(getattr(node.expr, "name", None), "name", "") == LIST:
            values = node.expr.args.exprs if node.expr.args is not None else []
            self.emit(ast.Return(call("$results", *map(self.expression, values))), node)
        else:
            self.emit(ast.Return(call("$result", self.expression(node.expr))), node)

    def _if(self, node: Any) -> None:
        test = self.expression(node.cond)
        yes, no = self.block(_items(node.iftrue)), self.block(_items(node.iffalse))
        self.emit(ast.If(test, yes or [ast.Pass()], no), node)

    def _switch(self, node: Any) -> None:
        """Branches, one for each group of labels. What a case goes on into stands in its branch too."""
        value = self._fresh("switched")
        self.emit(ast.Assign([ast.Name(value, ast.Store())], self.expression(node.cond)), node)
        cases: list[tuple[list[ast.expr] | None, Any]] = []  # labels, None with default; where the statements begin
        pieces: list[_Piece] = []
        labels: list[ast.expr] | None = []
        items = _items(node.stmt)
        for item in items if isinstance(items, list) else [items]:
            if type(item).__name__ not in ("Case", "Default"):
                self.refuse(item, "a statement in front of the first case")
            is_case = type(item).__name__ == "Case"
            labels = [*labels, self.expression(item.expr)] if is_case and labels is not None else None
            if item.stmts:  # else it goes on with the next one
                cases.append((labels, item))
                pieces.append(_Piece(item))
                labels = []
                if any(_breaks(s) for s in pieces[-1].inside):
                    self.refuse(item, "'break' in the middle of a case")
        bodies = [self._case(pieces[k:]) for k in range(len(pieces))]
        default = next((body for (labels, _), body in zip(cases, bodies, strict=True) if labels is None), [])
        for (labels, item), body in reversed([*zip(cases, bodies, strict=True)]):
            if labels is None:
                continue
            tests = [ast.Compare(name(value), [ast.Eq()], [label]) for label in labels]
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
            line = self.line(item)
            default = [placed(ast.If(test, body, default), line, max(1, len(Span(self.file, line).text().rstrip())))]
        self.out.extend(default)

    def _case(self, pieces: list[_Piece]) -> list[ast.stmt]:
        """The first of ``pieces``, and those after it until one ends."""
        outer, self.out = self.out, []
        self.scopes.append({})
        for piece in pieces:
            if piece.braced:
                self.out.extend(self.block(piece.inside))
            else:
                for each in piece.inside:
                    self.statement(each)
            if piece.ends:
                break
        self.scopes.pop()
        made, self.out = self.out, outer
        return made or [ast.Pass()]

    def _break(self, node: Any) -> None:
        self.emit(ast.Break(), node)

    def _continue(self, node: Any) -> None:
        self.out.extend(self.steps[-1]())
        self.emit(ast.Continue(), node)

    def _while(self, node: Any) -> None:
        self.steps.append(list)
        body = self.block(_items(node.stmt))
        self.steps.pop()
        self.emit(ast.While(self.expression(node.cond), body or [ast.Pass()], []), node)

    def _dowhile(self, node: Any) -> None:
        def leave() -> list[ast.stmt]:
            outer, self.out = self.out, []
            self.emit(ast.If(ast.UnaryOp(ast.Not(), self.expression(node.cond)), [ast.Break()], []), node)
            made, self.out = self.out, outer
            return made

        self.steps.append(leave)
        body = self.block(_items(node.stmt))
        self.steps.pop()
        self.emit(ast.While(ast.Constant(True), [*body, *leave()], []), node)

    def _for(self, node: Any) -> None:
        self.scopes.append({})
        counted = self._counted(node)
        if counted is not None:
            variable, bounds = counted
            self.steps.append(list)
            body = self.block(_items(node.stmt))
            self.steps.pop()
            target = ast.Name(variable, ast.Store())
            self.emit(ast.For(target, ast.Call(name("range"), bounds, []), body or [ast.Pass()], []), node)
        else:
            if node.init is not None:
                self.statement(node.init)

            def step() -> list[ast.stmt]:
                return self.block([node.next]) if node.next is not None else []

            self.steps.append(step)
            body = self.block(_items(node.stmt))
            self.steps.pop()
            test = self.expression(node.cond) if node.cond is not None else ast.Constant(True)
            self.emit(ast.While(test, [*body, *step()] or [ast.Pass()], []), node)
        self.scopes.pop()

    def _counted(self, node: Any) -> tuple[str, list[ast.expr]] | None:
        """For ``for (int i = a; i < b; i += c)``, where the body changes neither i nor what b consists of: the variable
        and the bounds of a range."""
        init, test, step = node.init, node.cond, node.next
        if type(init).__name__ != "DeclList" or len(init.decls) != 1 or init.decls[0].init is None:
            return None
        declared = init.decls[0]
        t = self._declared_type(declared.type)
        if not (getattr(t, "is_int", False) and t.bits == 32 and t.is_signed) or type(test).__name__ != "BinaryOp":
            return None
        width = _step(step, declared.name)
        if width is None or test.op not in ("<", "<=", ">", ">=") or (test.op[0] == "<") != (width > 0):
            return None
        if getattr(test.left, "name", None) != declared.name:
            return None
        changed = _changed(node.stmt)
        if declared.name in changed or _names(test.right) & (changed | {declared.name}) or _has_call(test.right):
            return None
        first = call("$make", name("int"), self.expression(declared.init))
        last = self.expression(test.right)
        if len(test.op) == 2:
            last = ast.BinOp(last, ast.Add(), number(1 if width > 0 else -1))
        last = call("$make", name("int"), last)
        return self.declare(declared.name), [first, last, *([number(width)] if width != 1 else [])]

    def _decllist(self, node: Any) -> None:
        for inner in node.decls:
            self.statement(inner)

    def _decl(self, node: Any) -> None:
        """A variable. One without a value is zero: C leaves it undefined."""
        kind = type(node.type).__name__
        if "static" in node.storage or kind == "FuncDecl":
            self.refuse(node, "a static variable" if kind != "FuncDecl" else "a declared function")
        if kind == "ArrayDecl":
            return self._array(node)
        if kind == "PtrDecl":
            return self._pointer(node)
        t = self._declared_type(node.type)
        if node.name in self.references and "const" not in node.quals and node.init is not None:
            self.scopes[-1][node.name] = self._steady(self.expression(node.init), node)
            return None
        value = self._initial(node, t)
        target = self.declare(node.name)
        if "const" in node.quals and node.init is not None and getattr(t, "is_int", False):
            n = self._value(node.init)
            self.known.update({target: n} if n is not None else {})
        return self.emit(ast.Assign([ast.Name(target, ast.Store())], value), node)

    def _initial(self, node: Any, t: Any) -> ast.expr:
        word = name(self._spelled(node.type))
        if node.init is None:
            if t is None:
                self.refuse(node, "'auto' without a value")
            if type(t).__name__ == "Fixed":
                return call("$array", ast.Constant(t.shape), name(self._scalar_name(t.elem)))
            return call("$make", word)
        if type(node.init).__name__ == "InitList":
            return call("$make", word, *map(self.expression, node.init.exprs or []))
        value = self.expression(node.init)
        return value if t is None else call("$make", word, value)

    def _array(self, node: Any) -> None:
        """An array of the thread's own."""
        shape, inner = [], node.type
        while type(inner).__name__ == "ArrayDecl":
            n = self._value(inner.dim)
            if n is None:
                self.refuse(node, "an array whose length is not a number", "write the number")
            shape.append(n)
            inner = inner.type
        target = self.declare(node.name)
        made = call("$array", ast.Constant(tuple(shape)), name(self._spelled(inner)))
        self.emit(ast.Assign([ast.Name(target, ast.Store())], made), node)
        if node.init is not None:
            if len(shape) != 1 or type(node.init).__name__ != "InitList":
                self.refuse(node, "this initial value of an array", "assign the elements")
            for k, x in enumerate(node.init.exprs or []):
                place = ast.Subscript(name(target), number(k), ast.Store())
                self.emit(ast.Assign([place], self._fit(place, self.expression(x))), node)

    def _pointer(self, node: Any) -> None:
        """A pointer stands for an array and a place in it; it cannot come to point elsewhere."""
        if node.init is None:
            self.refuse(node, "a pointer without a value")
        array, offset = self._place(node.init, node)
        if offset is not None:
            offset = self._steady(offset, node)
        target = self.declare(node.name)
        self.pointers[target] = array, offset

    def _assignment(self, node: Any) -> None:
        """An assignment, one in the middle of an expression apart."""
        if type(node.lvalue).__name__ == "ID":
            found = self._name(node.lvalue)
            if isinstance(found, ast.Name) and found.id in self.pointers:
                self.refuse(node, "a pointer that changes", "keep an index instead")
        if type(node.rvalue).__name__ == "Assignment":  # a = b = c
            self._assignment(node.rvalue)
            value = self.expression(node.rvalue.lvalue)
        else:
            value = self.expression(node.rvalue)
        self._set(node.lvalue, node.op[:-1], value, node)

    def _unaryop(self, node: Any) -> None:
        word = node.op.strip("p")
        if word in ("++", "--"):
            self._set(node.expr, word[0], number(1), node)
        else:
            self.emit(ast.Expr(self.expression(node)), node)

    def _exprlist(self, node: Any) -> None:
        for inner in node.exprs:
            self.statement(inner)

    def _set(self, lvalue: Any, op: str, value: ast.expr, node: Any) -> None:
        target = self.expression(lvalue)
        if not isinstance(target, ast.Name | ast.Subscript | ast.Attribute):
            self.refuse(node, "this target of an assignment")
        if op in _IN_PLACE and not isinstance(target, ast.Name):
            return self.emit(ast.AugAssign(_stored(target), OPERATORS[op](), self._fit(target, value)), node)
        if op:
            value = ast.BinOp(target, OPERATORS[op](), value)
        return self.emit(ast.Assign([_stored(target)], self._fit(target, value)), node)

    def _fit(self, target: ast.expr, value: ast.expr) -> ast.expr:
        return call("$fit", _loaded(target), value)

    def _funccall(self, node: Any) -> None:
        word, args = getattr(node.name, "name", ""), list(node.args.exprs) if node.args is not None else []
        if word == "memcpy" and len(args) == 3:  # the bits of one variable become another's
            target, source = (self.expression(a.expr if getattr(a, "op", "") == "&" else a) for a in args[:2])
            self.emit(ast.Assign([_stored(target)], call("$copied", _loaded(target), source)), node)
        elif word == "assert" and len(args) == 1:
            self.emit(ast.Assert(self.expression(args[0]), None), node)
        elif word == "store" and len(args) == 2:
            array, at = self._place(args[0], node)
            place = ast.Subscript(array, at if at is not None else number(0), ast.Store())
            self.emit(ast.Assign([place], self._fit(place, self.expression(args[1]))), node)
        else:
            self.emit(ast.Expr(self.expression(node)), node)


_STATEMENTS: dict[str, Callable[[_Statements, Any], None]] = {
    "Compound": _Statements._compound, "EmptyStatement": _Statements._nothing, "Return": _Statements._return,
    "If": _Statements._if, "Break": _Statements._break, "Continue": _Statements._continue,
    "Switch": _Statements._switch, "While": _Statements._while, "DoWhile": _Statements._dowhile,
    "For": _Statements._for, "DeclList": _Statements._decllist, "Decl": _Statements._decl,
    "Assignment": _Statements._assignment, "UnaryOp": _Statements._unaryop, "ExprList": _Statements._exprlist,
    "FuncCall": _Statements._funccall, "Cast": _Statements._casted,
}  # fmt: skip


def _items(node: Any) -> Any:
    return node.block_items if type(node).__name__ == "Compound" else node


def _stored(node: ast.expr) -> ast.expr:
    """``node`` as the target of an assignment."""
    made = {ast.Name: lambda: ast.Name(node.id, ast.Store()),
            ast.Subscript: lambda: ast.Subscript(node.value, node.slice, ast.Store()),
            ast.Attribute: lambda: ast.Attribute(node.value, node.attr, ast.Store())}  # fmt: skip
    return ast.copy_location(made[type(node)](), node)


def _loaded(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Subscript):
        return ast.Subscript(node.value, node.slice, ast.Load())
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    return ast.Attribute(node.value, node.attr, ast.Load())


def _step(node: Any, variable: str) -> int | None:
    """By how much ``i++``, ``i += 2`` change ``variable``, if that is a number."""
    if type(node).__name__ == "UnaryOp" and getattr(node.expr, "name", None) == variable:
        return {"++": 1, "--": -1}.get(node.op.strip("p"))
    if type(node).__name__ == "Assignment" and getattr(node.lvalue, "name", None) == variable:
        if node.op in ("+=", "-=") and type(node.rvalue).__name__ == "Constant" and node.rvalue.value.isdigit():
            return int(node.rvalue.value) * (1 if node.op == "+=" else -1)
    return None


def _walk(node: Any) -> Iterator[Any]:
    if node is not None:
        yield node
        for _, inner in node.children():
            yield from _walk(inner)


class _Piece:
    """The statements of one case of a ``switch``, without the ``break`` at their end."""

    def __init__(self, item: Any):
        self.braced = len(item.stmts) == 1 and type(item.stmts[0]).__name__ == "Compound"
        inside = (item.stmts[0].block_items or []) if self.braced else item.stmts
        end = type(inside[-1]).__name__ if inside else ""
        self.ends = end in ("Break", "Return", "Continue")
        self.inside = inside[:-1] if end == "Break" else inside


def _breaks(node: Any) -> bool:
    """Whether ``node`` leaves what is around it by ``break``."""
    kind = type(node).__name__
    if kind in ("For", "While", "DoWhile", "Switch"):
        return False
    return kind == "Break" or any(_breaks(inner) for _, inner in node.children())


def _names(node: Any) -> set[str]:
    return {n.name for n in _walk(node) if type(n).__name__ == "ID"}


def _has_call(node: Any) -> bool:
    return any(type(n).__name__ == "FuncCall" for n in _walk(node))


def _changed(node: Any) -> set[str]:
    """The names that assignments in ``node`` begin with."""
    found: set[str] = set()
    for n in _walk(node):
        kind = type(n).__name__
        if kind == "Assignment":
            found |= _names(n.lvalue)
        elif kind == "UnaryOp" and (n.op.strip("p") in ("++", "--") or n.op == "&"):
            found |= _names(n.expr)
    return found
