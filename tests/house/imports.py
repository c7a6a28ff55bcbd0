"""Which module imports which, read from the source text alone, and the rules that the imports must keep.

The walk reads every import statement of a tree, those inside functions and under ``TYPE_CHECKING`` included, and calls
of ``import_module`` and ``__import__`` with a literal name. A rule is a function from the list of imports to a list of
sentences, one for each violation; the tests ask for an empty list.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "treadle"

# The floors of the house: a module may import from lower floors and from its own room, never sideways or up.
# codegen and runtime share a floor because the two towers (compiler, machine) meet only in lang.
FLOORS: dict[str, int] = {
    "base": 0,
    "types": 1,
    "ir": 2,
    "builtins": 3,
    "frontend": 4,
    "passes": 5,
    "codegen": 6,
    "runtime": 6,
    "lang": 7,
    "": 8,  # the public face: treadle/__init__.py and the other files beside it
    "utils": 9,
    "interop": 10,
    "geometry": 10,
    "sparse": 10,
    "optim": 10,
    "mujoco": 11,
    "sim": 11,
    "fem": 11,
    "view": 12,
    "standin": 13,  # found as `warp` by processes that a program starts
    "compat": 13,  # answers for Warp's private names from all rooms; nothing below asks it
}

# Narrower than the floors: the machine tower knows no Python source, no IR and no compiler.
ONLY: dict[str, set[str]] = {"runtime": {"base", "types"}}

# A foreign library lives in the rooms named here; the standard library and numpy are at home everywhere.
FOREIGN: dict[str, set[str]] = {
    "llvmlite": {"codegen", "runtime"},
    "jax": {"interop"},
    "jaxlib": {"interop"},
    "torch": {"interop"},
    "mujoco": {"mujoco"},
    "cuda": {"runtime"},
    "pycparser": {"frontend"},
    "pxr": {"sim", "view"},
    "matplotlib": {"view"},
}

# Of the standard library, also what an older interpreter that runs this test does not have yet.
STANDARD = sys.stdlib_module_names | {"annotationlib", "tomllib"}


@dataclass(frozen=True)
class Import:
    """One import: ``module`` (at ``line`` of its file) imports ``target``; ``lazy`` if not run when the module is."""

    module: str
    target: str
    line: int
    lazy: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def modules(root: Path) -> dict[str, Path]:
    """The modules of the package in folder ``root``, by full name."""
    found = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room(module: str) -> str:
    """The room of a module: its first folder under the package, or '' for the public face."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else ""


def imports(root: Path) -> list[Import]:
    """Every import in the tree under ``root``."""
    names = modules(root)
    return [found for name, path in names.items() for found in _imports_of(name, path, names)]


def _imports_of(name: str, path: Path, names: dict[str, Path]) -> Iterator[Import]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node, lazy in _walk(ast.parse(path.read_text(encoding="utf-8"), str(path)), lazy=False):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            # `from treadle.ir import show` may name a module or something inside treadle/ir/__init__.py
            inside = [f"{origin}.{alias.name}" for alias in node.names]
            targets = sorted({full if full in names else origin for full in inside})
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__") and node.args:
            first = node.args[0]
            literal = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
            targets = [package + literal if literal.startswith(".") else literal] if literal else []
        else:
            continue
        for target in targets:
            yield Import(name, target, node.lineno, lazy)


def _walk(node: ast.AST, lazy: bool) -> Iterator[tuple[ast.AST, bool]]:
    yield node, lazy
    typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    inside = lazy or typing_only or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, inside)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _own(found: Import) -> bool:
    return found.target.split(".")[0] == PACKAGE


def pointing_up(found: list[Import]) -> list[str]:
    """Imports of a room on the same floor or a higher one, and those that a narrower rule forbids."""
    wrong = []
    for each in filter(_own, found):
        here, there = room(each.module), room(each.target)
        if here == there:
            continue
        if FLOORS[there] >= FLOORS[here]:
            wrong.append(f"{each}: {here or 'the face'} (floor {FLOORS[here]}) may not import {there or 'the face'}")
        elif here in ONLY and there not in ONLY[here]:
            wrong.append(f"{each}: {here} may import only {sorted(ONLY[here])}")
    return wrong


def unknown_rooms(root: Path) -> list[str]:
    """Folders of the package that have no floor."""
    folders = {path.parent.name for path in (root / PACKAGE).glob("*/*.py")}
    return [f"{PACKAGE}/{name} has no floor" for name in sorted(folders - set(FLOORS))]


def foreign_outside(found: list[Import]) -> list[str]:
    """Foreign libraries imported outside their rooms, and any that the house does not know."""
    wrong = []
    for each in found:
        top = each.target.split(".")[0]
        if top in STANDARD or top in (PACKAGE, "numpy"):
            continue
        if room(each.module) not in FOREIGN.get(top, set()):
            wrong.append(f"{each}: {top} belongs in {sorted(FOREIGN[top])}" if top in FOREIGN else f"{each}: unknown")
    return wrong


def rings(found: list[Import]) -> list[str]:
    """Groups of modules that import each other when they are loaded (imports inside functions do not count)."""
    graph: dict[str, set[str]] = {}
    for each in found:
        if _own(each) and not each.lazy and each.module != each.target:
            graph.setdefault(each.module, set()).add(each.target)
            graph.setdefault(each.target, set())
    return [" <-> ".join(sorted(group)) for group in _components(graph) if len(group) > 1]


def _components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected components: sets of nodes that reach each other (closure by repeated union)."""
    reach = {node: set(targets) for node, targets in graph.items()}
    changed = True
    while changed:
        changed = False
        for targets in reach.values():
            more = set().union(*(reach[target] for target in targets)) - targets
            if more:
                targets |= more
                changed = True
    groups: list[set[str]] = []
    for node in sorted(graph):
        if not any(node in group for group in groups):
            groups.append({node} | {other for other in reach[node] if node in reach[other]})
    return groups


def environment_reads(root: Path) -> list[str]:
    """Places outside ``base/config.py`` that touch the environment variables."""
    wrong = []
    for name, path in modules(root).items():
        if name == f"{PACKAGE}.base.config":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            touched = isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv", "putenv")
            if isinstance(node, ast.ImportFrom) and node.module == "os":
                touched = any(alias.name in ("environ", "environb", "getenv", "putenv") for alias in node.names)
            if touched:
                wrong.append(f"{name}:{node.lineno} touches the environment; base/config.py is the place")
    return wrong
