"""Names from outside the function: captured variables, globals, modules, attributes; and the manifest of them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from ..base.errors import KernelAttributeError, KernelNameError
from .source import Source
from .statics import evaluated, free_names, substituted, text_of

MISSING = object()
STATIC = "static "  # before the number of a ``wp.static`` expression that was evaluated where its function was declared


class Entry(NamedTuple):
    """One thing a compile looked up outside: a dotted name, or the text of a ``wp.static`` expression with the loop
    constants it saw, and the value found."""

    text: str
    constants: tuple[tuple[str, Any], ...]
    value: Any


class Manifest:
    """Everything one compile of one function found outside of it. While :func:`look_up` finds equal values, compiling
    again would give the same program.
    """

    def __init__(self):
        self.entries: dict[tuple[str, tuple], Entry] = {}

    def record(self, text: str, value: Any, constants: tuple[tuple[str, Any], ...] = ()) -> None:
        """Note that ``text`` gave ``value``."""
        self.entries[text, constants] = Entry(text, constants, value)

    def __iter__(self):
        return iter(self.entries.values())


def look_up(source: Source, text: str, constants: Mapping[str, Any]) -> Any:
    """What the manifest text ``text`` gives now for the function of ``source``; :data:`MISSING` where it fails."""
    if text.startswith(STATIC):
        values, place = [*source.statics.values()], int(text[len(STATIC) :])
        return values[place] if place < len(values) else MISSING
    if not constants and text.replace(".", "").isidentifier():  # most are dotted names
        first, *path = text.split(".")
        value = source.closure.get(first, MISSING) if source.code.co_freevars else MISSING
        if value is MISSING:
            value = source.globals.get(first, MISSING)
        if value is MISSING:
            value = getattr(builtins, first, MISSING)
        for name in path:
            value = getattr(value, name, MISSING)
        return value
    try:
        return eval(_compiled(text), {"__builtins__": builtins, **source.globals, **source.closure, **constants})
    except Exception:  # any failure of the user's expression means that it no longer gives a value
        return MISSING


_code: dict[str, CodeType] = {}


def _compiled(text: str) -> CodeType:
    code = _code.get(text)
    if code is None:
        code = _code[text] = compile(text, "<manifest>", "eval")
    return code


class Outside:
    """Looks names up as Python would: captured variables, then globals, then Python's builtins."""

    def __init__(self, source: Source, manifest: Manifest):
        self.source, self.globals, self.closure, self.manifest = source, source.globals, source.closure, manifest
        self.found: dict[str, Any] = {}

    def name(self, name: str) -> Any:
        """The value of ``name``.

        Raises:
            KernelNameError: nothing has that name.
        """
        value = self.find(name)
        if value is MISSING:
            what = f"Referencing undefined symbol: {name} is neither a variable of the function nor a name around it"
            raise KernelNameError(what, hint=near(name, [*self.closure, *self.globals]))
        return value

    def find(self, name: str) -> Any:
        """The value of ``name``; :data:`MISSING` where nothing has that name."""
        value = self.found.get(name, MISSING)
        if value is not MISSING:
            return value
        for names in (self.closure, self.globals, vars(builtins)):
            if name in names:
                value = self.found[name] = names[name]
                self.manifest.record(name, value)
                return value
        return MISSING

    def attribute(self, owner: Any, name: str, path: str) -> Any:
        """The attribute ``name`` of an outside object; ``path`` is the dotted text that leads to it."""
        value = getattr(owner, name, MISSING)
        if value is MISSING:
            shown = getattr(owner, "__name__", None) or type(owner).__name__
            why = getattr(owner, "__treadle_absent__", lambda name: "")(name)  # what the owner itself says of it
            said = f"{shown} has no {name!r}: {why}" if why else f"`{name}` is not an attribute of {shown}"
            if isinstance(owner, ModuleType) and path:
                said = f"Could not find function {path}: {said}"
            raise KernelAttributeError(said, hint="" if why else near(name, dir(owner)))
        if path:
            self.manifest.record(path, value)
        return value

    def static(self, call: ast.Call, constants: dict[str, Any]) -> Any:
        """The value of a call of ``wp.static``, where ``constants`` are the variables that are known."""
        if call in self.source.statics:
            place, value = [*self.source.statics].index(call), self.source.statics[call]
            self.manifest.record(f"{STATIC}{place}", value)
            return value
        expr, given = substituted(call.args[0], self.source.statics)
        names = free_names(call.args[0])
        known = {}
        for scope in (self.globals, self.closure, constants):
            known.update([(name, scope[name]) for name in names if name in scope])
        value = evaluated(self.source, expr, {**known, **given})
        used = tuple([(k, v) for k, v in constants.items() if k in names])
        self.manifest.record(text_of(call.args[0]), value, used)
        return value


def near(name: str, names: list[str]) -> str:
    """A hint with the names that look like ``name``."""
    import difflib

    close = difflib.get_close_matches(name, names, 3)
    return f"did you mean {' or '.join(close)}?" if close else ""
