"""``wp.static`` where a function is declared: an expression whose names all have values there is evaluated at once.

So kernels made in a loop each keep the value that a variable of the loop had. What depends on variables of the
function, or on names that have no value yet, waits for the compiler.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from ..base.errors import KernelTypeError, TreadleError
from ..base.span import Span

if TYPE_CHECKING:
    from .source import Source


def settled(source: Source) -> dict[ast.Call, Any]:
    """The calls of ``wp.static`` in the function that can be evaluated now, with their values, in the order written.

    Raises:
        KernelTypeError: the user's expression raised something.
    """
    if not _may_call(source):
        return {}
    names = {**vars(builtins), **source.globals, **source.closure}
    own = frozenset([*source.code.co_varnames, *source.code.co_cellvars])
    found: dict[ast.Call, Any] = {}
    for statement in source.tree.body:
        for call in _outermost(statement, names, own):
            found[call] = evaluated(source, call.args[0], names)
    return found


def _may_call(source: Source) -> bool:
    """Whether the function's code mentions ``wp.static`` under some name; tells without reading its text."""
    code, captured = source.code, source.closure if source.code.co_freevars else {}
    reached = [captured.get(n, source.globals.get(n)) for n in (*code.co_names, *code.co_freevars)]
    return "static" in code.co_names or any([_is_static(x) for x in reached])


def _is_static(x: Any) -> bool:
    return isinstance(x, FunctionType) and hasattr(x, "__treadle_static__")


def _outermost(node: ast.AST, names: Mapping[str, Any], own: frozenset[str]) -> Iterator[ast.Call]:
    """The calls of ``wp.static`` that can be evaluated, those inside others left out."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and _is_static(_named(node.func, names)):
        needed = free_names(node.args[0])
        if not needed & own and needed <= names.keys():
            yield node
            return
    for inner in ast.iter_child_nodes(node):
        yield from _outermost(inner, names, own)


def _named(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The object that a dotted name means."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    owner = _named(node.value, names) if isinstance(node, ast.Attribute) else None
    return getattr(owner, node.attr, None) if isinstance(owner, ModuleType | type) else None


@lru_cache(maxsize=4096)
def nodes_of(expr: ast.expr) -> tuple[ast.AST, ...]:
    """``expr`` and all that it is made of. A loop that is unrolled asks for that in every round."""
    return tuple(ast.walk(expr))


@lru_cache(maxsize=4096)
def free_names(expr: ast.expr) -> frozenset[str]:
    """The names that ``expr`` reads from around it."""
    nodes = nodes_of(expr)
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    return frozenset({n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} - bound)


@lru_cache(maxsize=4096)
def text_of(expr: ast.expr) -> str:
    """``expr`` as text."""
    return ast.unparse(expr)


@lru_cache(maxsize=4096)
def _code_of(expr: ast.expr) -> CodeType:
    return compile(ast.Expression(expr), "<wp.static>", "eval")


def evaluated(source: Source, expr: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of the Python expression ``expr``; whatever it raises is told at its place."""
    try:
        return eval(_code_of(expr), {"__builtins__": builtins, **names})
    except TreadleError:
        raise
    except Exception as error:
        place = Span(source.file, expr.lineno, expr.col_offset, expr.end_col_offset or 0)
        said = f"Error evaluating static expression: {error} ({type(error).__name__})"
        raise KernelTypeError(said, place, "wp.static sees what is known before the kernel runs") from error


def substituted(expr: ast.expr, values: Mapping[ast.Call, Any]) -> tuple[ast.expr, dict[str, Any]]:
    """``expr`` with names for the calls inside it that have been evaluated, and the values of these names."""
    inner = {id(n): k for k, n in enumerate(nodes_of(expr)) if n in values}
    if not inner:
        return expr, {}
    given = {f"$static{k}": values[n] for k, n in enumerate(nodes_of(expr)) if n in values}

    def copied(node: Any) -> Any:
        if isinstance(node, list):
            return [copied(x) for x in node]
        if not isinstance(node, ast.AST):
            return node
        if id(node) in inner:
            return ast.copy_location(ast.Name(f"$static{inner[id(node)]}", ast.Load()), node)
        made = type(node)(**{name: copied(value) for name, value in ast.iter_fields(node)})
        return ast.copy_location(made, node)

    return copied(expr), given
