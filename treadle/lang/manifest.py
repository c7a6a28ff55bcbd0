"""What a compile depended on, in a form that can be kept on disk and checked again without parsing anything.

A *node* describes one user function: the digest of its code, and for each outside name (or ``wp.static`` expression)
the parser met, the digest of the value it had, or the node of the function it was. Checking a node evaluates the names
again and compares; if everything agrees, compiling again would give the same program.
"""

from __future__ import annotations

import enum
import marshal
import types
import weakref
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from ..base.digest import digest
from ..frontend.names import MISSING, Manifest, look_up
from ..frontend.source import EMPTY, Source
from ..types.core import Struct, Type
from .function import Function
from .host import Builtin

# [code digest, [[text, [[constant name, value]…], value digest or [[Node, inline, [Node…]]…]]…]]: plain lists, which
# JSON keeps.
Node = list


class Unknown(Exception):
    """A value whose content cannot be named; what depends on it is compiled anew by every process."""


def code_digest(source: Source) -> str:
    """The digest of a function's code, its place in the file, its defaults and its declared types; found once."""
    found = _digests.get(source)
    if found is None:
        found = _digests[source] = _code_digest(source)
    if not source.defaults:
        return found
    return digest(found, *[f"{name}={value_digest(value)}" for name, value in source.defaults.items()])


_digests: weakref.WeakKeyDictionary[Source, str] = weakref.WeakKeyDictionary()


def _code_digest(source: Source) -> str:
    declared = ["" if t is None else _type_text(t) for t in source.parameter_types()]
    return digest(_code(source.code), source.file, source.qualname, repr((declared, result_text(source))))


def result_text(source: Source) -> str:
    """The text of what a function is declared to give back, whatever it is written as."""
    declared = source.return_type()
    if declared is EMPTY or declared is None:
        return "nothing" if declared is None else "anything"
    several = declared if isinstance(declared, tuple) else (declared,)
    own = " of its own" if source.gives_own_arrays() else ""
    return ";".join("Any" if t is None else _type_text(t) for t in several) + own


def _code(code: types.CodeType) -> bytes:
    """What tells a code object from others: instructions, constants, names and lines, as Python writes them to files.

    Later formats also say which objects are shared with the rest of the process, which differs from run to run.
    """
    try:
        return marshal.dumps(code, 2)
    except ValueError:  # constants that the old format lacks: slices, which Python 3.14 makes
        return marshal.dumps(code)


@cache
def _type_text(t: Type) -> str:
    """The text of a type with the fields of its structs."""
    if isinstance(t, Struct):
        return f"{t.name}{{{', '.join(f'{n}:{_type_text(ft)}' for n, ft in t.fields)}}}"
    elem = getattr(t, "elem", None)
    return f"{t.name}[{_type_text(elem)}]" if isinstance(elem, Struct) else t.name


def types_text(found: Iterable[Type]) -> str:
    """The text of several types, for a key."""
    return ";".join(_type_text(t) for t in found)


def value_digest(value: Any) -> str:
    """What stands for an outside value's content: its text where that is short, else the text's digest.

    Raises:
        Unknown: its content cannot be named.
    """
    if type(value) is Builtin:  # most are
        return f"builtin:{value.__name__}"
    return shortened(value_text(value))


def value_text(value: Any) -> str:
    """The content of an outside value as text.

    Raises:
        Unknown: it cannot be named.
    """
    return _text(value, 0)


def shortened(text: str) -> str:
    """``text``, or its digest where it is long."""
    return text if len(text) < 64 else digest(text)


_PLAIN = (bool, int, float, str, bytes, enum.Enum, type(None))


def _text(value: Any, depth: int) -> str:
    if depth > 8:
        raise Unknown
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, type):
        t = getattr(value, "__treadle_type__", None)
        if isinstance(t, Type):
            return f"type:{_type_text(t)}"
        if issubclass(value, enum.Enum):
            return f"enum:{[(m.name, m.value) for m in value]!r}"
        return f"class:{value.__module__}.{value.__qualname__}"
    if isinstance(value, Type):
        return f"type:{_type_text(value)}"
    if isinstance(value, Builtin) or (callable(value) and hasattr(value, "__treadle_builtin__")):  # wp.zeros is both
        return f"builtin:{value.__name__}"
    if isinstance(value, types.ModuleType):
        return f"module:{value.__name__}"
    if type(value) is types.SimpleNamespace:  # as a module: what is looked up in it is named by itself
        return f"namespace:{sorted(vars(value))}"
    if isinstance(value, types.BuiltinFunctionType) or any(hasattr(value, mark) for mark in _MARKS):
        return f"python:{getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}:({','.join(_text(v, depth + 1) for v in value)})"
    if isinstance(value, dict):
        return f"dict:({','.join(f'{_text(k, depth + 1)}:{_text(v, depth + 1)}' for k, v in value.items())})"
    if isinstance(value, np.ndarray | np.generic):
        return f"numpy:{value.dtype.str}:{np.shape(value)}:{digest(np.ascontiguousarray(value).tobytes())}"
    return _object_text(value, depth)


_MARKS = ("__treadle_static__", "__treadle_grad__", "__treadle_adjoint__")  # of what the language itself provides


def _object_text(value: Any, depth: int) -> str:
    own = getattr(value, "treadle_type", None)
    t = own() if own is not None else getattr(type(value), "__treadle_type__", None)
    if isinstance(t, Struct):
        return f"{_type_text(t)}:({','.join(_text(getattr(value, n), depth + 1) for n in t.index)})"
    if isinstance(t, Type):
        return f"{t.name}:{value!r}"
    if isinstance(value, Function):
        return f"function:{_function_nodes(value)!r}"
    if hasattr(value, "__dataclass_fields__"):
        import dataclasses

        content = ",".join(_text(getattr(value, f.name), depth + 1) for f in dataclasses.fields(value))
        return f"{type(value).__module__}.{type(value).__qualname__}:({content})"
    raise Unknown


def node_of(source: Source, manifest: Manifest) -> Node:
    """The node of a function just compiled.

    Raises:
        Unknown: it depends on a value whose content cannot be named.
    """
    entries = []
    for entry in manifest:
        constants = [[name, value] for name, value in entry.constants]
        if not all(isinstance(v, bool | int | float | str) for _, v in constants):
            raise Unknown
        entries.append([entry.text, constants, _entry_value(entry.value)])
    return [code_digest(source), entries]


def _entry_value(value: Any) -> Any:
    return _function_nodes(value) if isinstance(value, Function) else value_digest(value)


_describing: list[Function] = []  # the functions whose nodes are being made, outermost first


def _function_nodes(f: Function) -> list:
    """For each overload its node, whether its body is to be copied into callers, and the nodes of its rules.

    The gradient function of ``f`` may call ``f``, which has no nodes then: they are being made.
    """
    if f in _describing:
        return []
    _describing.append(f)
    try:
        return [[_node(o), o.inline, [_node(rule) for rule in _rules(o)]] for o in f.overloads]
    finally:
        _describing.pop()


def _node(f: Function) -> Node:
    return node_of(f.source, f.manifest())


def _rules(f: Function) -> list[Function]:
    return [rule for rule in (f.adjoint, f.replay) if rule is not None]


def _function_holds(nodes: list, f: Function) -> bool:
    """Whether ``f`` is still what :func:`_function_nodes` described."""
    if not nodes:
        return True
    if len(nodes) != len(f.overloads):
        return False
    for (node, inline, rules), o in zip(nodes, f.overloads, strict=True):
        own = _rules(o)
        if inline != o.inline or len(rules) != len(own) or not holds(node, o.source):
            return False
        if not all(holds(node, rule.source) for node, rule in zip(rules, own, strict=True)):
            return False
    return True


def holds(node: Node, source: Source) -> bool:
    """Whether the function of ``source`` still has the code and sees the values that ``node`` describes."""
    try:
        return node[0] == code_digest(source) and _entries_hold(node[1], source)
    except Unknown:
        return False


def _entries_hold(entries: list, source: Source) -> bool:
    for text, constants, expected in entries:
        value = look_up(source, text, dict(constants))
        if isinstance(value, Function):
            if not isinstance(expected, list) or not _function_holds(expected, value):
                return False
        elif value is MISSING or value_digest(value) != expected:
            return False
    return True
