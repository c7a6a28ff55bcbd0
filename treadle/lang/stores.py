"""What a kernel may store to, by its source alone: known before anything is typed, so that what nobody needs is never
compiled.

The answer is on the safe side. A name leads to memory that something is stored to where it is the target of an
assignment with an index, or where it goes to a builtin or a function that may do so. What is computed is a number;
every other expression may lead to the same memory as the names in it.
"""

from __future__ import annotations

import ast
import builtins
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..base.digest import digest
from ..builtins.names import MODULES, UPDATING
from ..frontend.source import Source
from ..runtime import cache as disk
from ..runtime.array import array
from ..types.core import Array, Matrix, Scalar, Struct, Type, Vector
from .function import Function

# Files of builtins that take arrays to store to them, or to hand them on.
_ON_MEMORY = frozenset(("memory", "utility", "tiles", "tile_indexed", "tile_stacks", "dense", "generic"))
_PURE = frozenset(("len", "lower_bound", "any_lane", "max_lane"))  # those among these that only look at arguments
_CHOICES = frozenset(("where", "select"))


# Whether a callee may store to memory to which an argument leads, or to the very place that it names; and whether what
# it gives leads there.
Lead = tuple[int, bool]
_MEMORY, _PLACE = 1, 2
_NOWHERE: Lead = (0, False)


class Leads(NamedTuple):
    """The parameters of a function that lead to memory to which it may store, and those to which its result leads."""

    stored: frozenset[str]
    returned: frozenset[str]


def stores(source: Source) -> frozenset[str]:
    """The parameters that lead to memory to which the function, or what it calls, may store.

    >>> import treadle as wp
    >>> from treadle.lang.stores import stores
    >>> @wp.kernel
    ... def copy(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     b[i] = a[i]
    >>> sorted(stores(copy.source))
    ['b']
    """
    if source not in _stored:
        _stored[source] = _noted(source)
    return _stored[source]


def _noted(source: Source) -> frozenset[str]:
    """The same by a note in the cache, if there is one: a process whose kernels are all kept there does not parse those
    that it will not run."""
    from .identity import Identity
    from .targets import compiler_version

    identity = Identity()
    key = digest("stores", compiler_version(), identity.of(source))
    if identity.kept:  # some value stands there by its address
        return leads(source).stored
    kept = disk.note(key)
    if kept is None:
        kept = sorted(leads(source).stored)
        disk.keep_note(key, kept)
    return frozenset(kept)


def leads(source: Source, callers: tuple[Source, ...] = ()) -> Leads:
    """Where the parameters of a function lead. ``callers``: functions of which that is being found out."""
    found = _found.get(source)
    if found is not None:
        return found
    if source in callers:  # overloads that call each other
        every = frozenset([p.name for p in source.parameters()])
        return Leads(every, every)
    looked = _Finder(source, (*callers, source))
    found = Leads(looked.parameters_of(looked.stored), looked.parameters_of(looked.returned))
    _found[source] = found
    return found


_found: WeakKeyDictionary[Source, Leads] = WeakKeyDictionary()
_stored: WeakKeyDictionary[Source, frozenset[str]] = WeakKeyDictionary()


class _Finder:
    """``callers``: the function itself, and those on the way to it. ``aliases``: for each variable, the names to whose
    memory it may lead."""

    def __init__(self, source: Source, callers: tuple[Source, ...]):
        self.callers = callers
        self.globals, self.closure = source.globals, source.closure
        types = dict(zip([p.name for p in source.parameters()], source.parameter_types(), strict=True))
        self.parameters = frozenset(types)
        # Of arrays whose elements are numbers or made of numbers: how many indices lead to one.
        self.ranks = {name: t.ndim for name, t in types.items() if isinstance(t, Array) and _lead_nowhere(t.elem)}
        self.stored: set[str] = set()
        self.returned: set[str] = set()
        self.aliases: dict[str, set[str]] = {}
        self.callees: dict[str, Any] = {}  # by how they are called: what is known of each
        waiting: list[ast.AST] = [*source.tree.body]
        while waiting:
            node = waiting.pop()
            look = _LOOKS.get(type(node))
            if look is not None:
                look(self, node)
            for name in node._fields:
                part = getattr(node, name)
                if type(part) is list:
                    waiting += [each for each in part if type(each) not in _LEAVES]
                elif isinstance(part, ast.AST) and type(part) not in _LEAVES:
                    waiting.append(part)

    def parameters_of(self, names: set[str]) -> frozenset[str]:
        """The parameters to whose memory ``names`` may lead."""
        found, waiting = set(), [*names]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.aliases.get(name, ())
        return frozenset(found & self.parameters)

    # --- statements

    def target(self, node: Any) -> None:
        if type(node.ctx) is not ast.Load:
            self.stored |= self.led(node, True)

    def assignment(self, node: Any) -> None:
        led = self.led(node.iter if isinstance(node, ast.For) else node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for name in _bound(target) if led else ():
                self.aliases.setdefault(name, set()).update(led)

    def result(self, node: ast.Return) -> None:
        self.returned |= self.led(node.value)

    def call(self, node: ast.Call) -> None:
        for argument, lead in self._arguments(node):
            if lead[0]:
                self.stored |= self.led(argument, lead[0] is _PLACE)

    # --- expressions

    def led(self, node: ast.expr | None, stored: bool = False) -> set[str]:
        """The names to whose memory the value of an expression may lead; ``stored``: or the place that it names, which
        is in an array where the value is an element of that."""
        if isinstance(node, ast.Name):
            return {node.id}
        if isinstance(node, ast.BinOp | ast.Constant):
            return set()
        if not stored and isinstance(node, ast.Subscript) and self._is_element(node):
            return set()
        if isinstance(node, ast.Subscript | ast.Attribute | ast.Starred | ast.NamedExpr):
            return self.led(node.value, stored)
        if isinstance(node, ast.Tuple | ast.List):
            return set().union(*map(self.led, node.elts))
        if isinstance(node, ast.IfExp | ast.BoolOp):
            parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
            return set().union(*map(self.led, parts))
        if isinstance(node, ast.Call):
            return set().union(*[self.led(argument) for argument, lead in self._arguments(node) if lead[1]])
        return set()

    def _is_element(self, node: ast.Subscript) -> bool:
        """Whether what is read is an element of a parameter, and no array."""
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        rank = self.ranks.get(node.value.id) if isinstance(node.value, ast.Name) else None
        return rank == len(indices) and not any([isinstance(i, ast.Slice | ast.Starred) for i in indices])

    def _arguments(self, node: ast.Call) -> list[tuple[ast.expr, Lead]]:
        """The arguments of a call that lead somewhere, and how."""
        known = self._callee(node.func)
        if known is _NOWHERE:
            return []
        given = [*enumerate(node.args), *[(k.arg, k.value) for k in node.keywords]]
        if isinstance(known, tuple):
            return [(argument, known) for argument in (node.func, *[argument for _, argument in given])]
        return [(argument, known[key]) for key, argument in given if key in known]

    def _callee(self, node: ast.expr) -> Lead | dict[int | str, Lead]:
        """How arguments lead somewhere: by position and by name, or all in the same way."""
        text = node.id if isinstance(node, ast.Name) else ast.dump(node)
        found = self.callees.get(text)
        if found is None:
            callee = self._value(node)
            known = _of_function(callee, self.callers) if isinstance(callee, Function) else _of_builtin(callee)
            found = self.callees[text] = known
        return found

    def _value(self, node: ast.expr) -> Any:
        """What a name, or one in a module, means; None where that is not known."""
        if isinstance(node, ast.Name):
            value = self.closure.get(node.id, self.globals.get(node.id))
            return getattr(builtins, node.id, None) if value is None else value
        owner = self._value(node.value) if isinstance(node, ast.Attribute) else None
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType | SimpleNamespace) else None


_SIGNS = (ast.operator, ast.cmpop, ast.unaryop, ast.boolop, ast.expr_context)
_LEAVES = frozenset((ast.Name, ast.Constant, *[sign for signs in _SIGNS for sign in signs.__subclasses__()]))
_LOOKS = {
    **dict.fromkeys((ast.Subscript, ast.Attribute), _Finder.target),
    **dict.fromkeys((ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For), _Finder.assignment),
    ast.Return: _Finder.result, ast.Call: _Finder.call,
}  # fmt: skip


def _of_function(callee: Function, callers: tuple[Source, ...]) -> dict[int | str, Lead]:
    """By position and by name."""
    found: dict[int | str, Lead] = {}
    for overload in callee.overloads:
        source, inside = overload.source, leads(overload.source, callers)
        for k, p in enumerate(source.parameters()):
            stored = _PLACE if p.name in source.references else _MEMORY * (p.name in inside.stored)
            returned = p.name in inside.returned
            for key in (k, p.name) if stored or returned else ():
                known = found.get(key, _NOWHERE)
                found[key] = max(known[0], stored), known[1] or returned
    return found


def _lead_nowhere(elem: Type | None) -> bool:
    """Whether elements of a type are numbers, or made of numbers."""
    return isinstance(elem, Scalar | Vector | Matrix)


def _bound(target: ast.expr) -> set[str]:
    """The variables that an assignment gives another value, or a field with one."""
    if isinstance(target, ast.Tuple | ast.List):
        return set().union(*map(_bound, target.elts))
    while isinstance(target, ast.Attribute | ast.Starred):
        target = target.value
    return {target.id} if isinstance(target, ast.Name) else set()


def _of_builtin(callee: Any) -> Lead:
    """How all arguments of something that is no function of the language lead somewhere."""
    name = getattr(callee, "__treadle_builtin__", "") or getattr(callee, "__name__", "")
    if isinstance(getattr(callee, "__treadle_type__", None), Struct):  # arrays may be fields
        return 0, True
    if name in _PURE or (isinstance(callee, type) and callee is not array):
        return _NOWHERE
    if name in _CHOICES:
        return 0, True
    if name in UPDATING:
        return _PLACE, True
    return _NOWHERE if name in MODULES and _ON_MEMORY.isdisjoint(MODULES[name]) else (_MEMORY, True)
