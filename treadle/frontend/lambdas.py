"""Which lambda expression in a file a lambda function came from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType


@lru_cache(maxsize=16)
def _file(file: str, text: str) -> tuple[dict[int, list[ast.Lambda]], list[ast.stmt]]:
    """The lambdas of a file by the line they begin in, and its own imports. The whole file is read: a lambda may be
    inside any statement."""
    found: dict[int, list[ast.Lambda]] = {}
    tree = ast.parse(text, file)
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            found.setdefault(node.lineno, []).append(node)
    return found, list(_imports(tree.body))


def _imports(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for s in body:
        if isinstance(s, ast.Import | ast.ImportFrom):
            yield s
        elif isinstance(s, ast.If | ast.Try | ast.With):
            for part in ("body", "orelse", "finalbody"):
                yield from _imports(getattr(s, part, []))
            yield from _imports([inner for handler in getattr(s, "handlers", []) for inner in handler.body])


def lambdas_of(file: str, text: str, code: CodeType) -> list[ast.Lambda]:
    """The lambdas in a file with the content ``text`` that may be what ``code`` was made of: they begin in its line,
    and compiled again have the same instructions and constants."""
    try:
        found, imports = _file(file, text)
    except SyntaxError:  # what stands in the file now is not what was run
        return []
    return [node for node in found.get(code.co_firstlineno, []) if _same_code(node, code, imports)]


def _same_code(node: ast.Lambda, code: CodeType, imports: list[ast.stmt]) -> bool:
    """Imports are compiled along: Python calls attributes of modules in another way than methods."""
    captured = [ast.arg(name) for name in code.co_freevars]
    around = ast.FunctionDef(
        "around", ast.arguments([], captured, None, [], [], None, []), [ast.Return(node)], [], None, None
    )
    plain = [s for s in imports if not (isinstance(s, ast.ImportFrom) and s.module == "__future__")]
    tree = ast.fix_missing_locations(ast.Module([*plain, ast.copy_location(around, node)], []))
    outer = _inner(compile(tree, code.co_filename, "exec", dont_inherit=True))
    return outer is not None and _facts(_inner(outer)) == _facts(code)


def _inner(code: CodeType) -> CodeType | None:
    return next((c for c in code.co_consts if isinstance(c, CodeType)), None)


def _facts(code: CodeType | None) -> tuple | None:
    """What tells a code object from others, but for the name of the function around it."""
    if code is None:
        return None
    constants = tuple([
        _facts(c) if isinstance(c, CodeType) else repr(c)
        for c in code.co_consts if not isinstance(c, str) or ".<lambda>" not in c
    ])  # fmt: skip
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars


def function_of(node: ast.Lambda) -> ast.FunctionDef:
    """A function that returns the expression of ``node``, at its place."""
    back = ast.copy_location(ast.Return(node.body), node.body)
    made = ast.FunctionDef("lambda_", node.args, [back], [], None, None)
    return ast.copy_location(made, node)
