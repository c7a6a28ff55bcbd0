"""What the syntax tells of variables that may share elements, see ``aliases``."""

from __future__ import annotations

import ast

VIEWS = frozenset("tile_view tile_transpose tile_reshape tile_squeeze tile_broadcast".split())

Names = frozenset[str]


def groups(tree: ast.FunctionDef) -> dict[str, Names]:
    """For each variable that may be a part of another, or have parts, all that may share elements with it."""
    found: dict[str, set[str]] = {}
    for s in ast.walk(tree):
        if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
            source = source_of(s.value)
            if source is not None:
                joined = found.get(source, {source}) | found.get(s.targets[0].id, {s.targets[0].id})
                found.update(dict.fromkeys(joined, joined))
    return {name: frozenset(names) for name, names in found.items()}


def source_of(node: ast.expr) -> str | None:
    """The variable of which ``node`` may be a part."""
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        given = [*node.args[:1], *[k.value for k in node.keywords if k.arg in ("t", "a")]]
        return source_of(given[0]) if name in VIEWS and given else None
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def last_name(node: ast.expr) -> str:
    """The name at the right end of ``a.b.name``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
