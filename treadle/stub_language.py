"""Type stubs of the kernel language: the value classes from the table of types, the builtins from their records.

Scalars are Python's numbers to a checker, as they are in kernels. Where a signature ties the type of a result to that
of an argument, a type variable says so; where it computes another type (the translation of a transform), there is an
overload for each. What takes its type from values (dtypes, shapes, tiles) is ``Any``.
"""

from __future__ import annotations

import ast
import itertools
from functools import cache
from typing import Any

from .base.errors import TreadleError
from .builtins import patterns
from .builtins.registry import EMPTY, Arg, Mismatch, Record, records, resolve
from .types import values
from .types.core import FLOATS, INTS, Matrix, Scalar, Type, Vector, b1, f32, i32

VARIABLES = """
_P = ParamSpec("_P", default=...)
_R = TypeVar("_R", default=Any)
_T = TypeVar("_T")
_E = TypeVar("_E", default=Any)
_N = TypeVar("_N", default=Literal[1])
_S = TypeVar("_S")
_Sizes = TypeVarTuple("_Sizes")
"""
_FEW = 4  # classes that a union lists by name

_BASES = '''
_Scalar = TypeVar("_Scalar", builtins.int, builtins.float)

class _Elements(Generic[_E]): ...

class _Threads(builtins.int):
    """What tid() gives: an index, or as many as it is assigned to."""
    def __iter__(self) -> Iterator[builtins.int]: ...

class _Composite(Generic[_S]):
    dtype: builtins.type
    @builtins.classmethod
    def from_ptr(cls, ptr: builtins.int) -> Self: ...
    def __array__(self, dtype: Any = ..., copy: builtins.bool | None = ...) -> np.ndarray[Any, Any]: ...
    def __bytes__(self) -> builtins.bytes: ...
    def __len__(self) -> builtins.int: ...
    def __neg__(self) -> Self: ...
    def __pos__(self) -> Self: ...
    def __rmul__(self, other: builtins.float, /) -> Self: ...
    def __rtruediv__(self, other: builtins.float, /) -> Self: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...

class _Line(_Composite[_S]):
    def __iter__(self) -> Iterator[_S]: ...
    @_overload
    def __getitem__(self, key: builtins.int, /) -> _S: ...
    @_overload
    def __getitem__(self, key: builtins.slice, /) -> Any: ...

class _Vector(_Line[_S]): ...
class _Quaternion(_Line[_S]): ...
class _Transform(_Line[_S]): ...

class _Matrix(_Composite[_S]):
    def __iter__(self) -> Iterator[Any]: ...
    @_overload
    def __getitem__(self, key: builtins.tuple[builtins.int, builtins.int], /) -> _S: ...
    @_overload
    def __getitem__(self, key: Any, /) -> Any: ...
    def get_row(self, i: builtins.int) -> Any: ...
    def get_col(self, j: builtins.int) -> Any: ...
    def set_row(self, i: builtins.int, value: Any) -> None: ...
    def set_col(self, j: builtins.int, value: Any) -> None: ...
'''
_FAMILIES = {"vec": "_Vector", "quat": "_Quaternion", "transform": "_Transform"}
_OPERATORS = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__matmul__": "mul", "__truediv__": "div", "__mod__": "mod",
    "__and__": "bitand", "__or__": "bitor", "__xor__": "bitxor", "__lshift__": "shl", "__rshift__": "shr",
}  # fmt: skip


# -- values ------------------------------------------------------------------------------------------------------------


@cache
def _classes() -> dict[Any, str]:
    """The named vectors, quaternions, transforms and matrices, each with the name of its class."""
    found = {t for t in values.names().values() if not isinstance(t, Scalar)}
    return {t: values.class_of(t).__name__ for t in sorted(found, key=lambda t: values.class_of(t).__name__)}


def values_text() -> str:
    """The classes of all values, and what else they are called."""
    parts = [_BASES, *(_class_text(t, name) for t, name in _classes().items())]
    for name, t in values.names().items():
        if isinstance(t, Scalar):
            parts.append(f"{name}: TypeAlias = {_number(t)}")
        elif name != _classes()[t]:
            parts.append(f"{name}: TypeAlias = {_classes()[t]}")
    return "\n".join(parts)


def _number(t: Any) -> str:
    return "builtins.bool" if t is b1 else "builtins.float" if t.is_float else "builtins.int"


def _class_text(t: Any, name: str) -> str:
    number = _number(t.elem)
    lines = [f"class {name}({'_Matrix' if isinstance(t, Matrix) else _FAMILIES[t.tag]}[{number}]):"]
    if isinstance(t, Vector) and t.tag == "transform":
        (p,), (q,) = ([n for c, n in _classes().items() if isinstance(c, Vector) and c.elem is t.elem and fits(c)]
                      for fits in (lambda c: c.tag == "vec" and c.n == 3, lambda c: c.tag == "quat"))  # fmt: skip
        lines += ["    def __init__(self, *args: Any, p: Any = ..., q: Any = ...) -> None: ...",
                  f"    p: {p}", f"    q: {q}"]  # fmt: skip
    else:
        lines.append("    def __init__(self, *args: Any) -> None: ...")
    if isinstance(t, Vector) and t.n <= 4:
        lines += [f"    {letter}: {number}" for letter in "xyzw"[: t.n]]
    for method, operator in _OPERATORS.items():
        lines += _operator_lines(operator, method, t)
    return "\n".join(lines) + "\n"


def _operator_lines(operator: str, method: str, t: Any) -> list[str]:
    """A method with an overload for each type that the operator takes on its right."""
    right = [*([t.elem] if method != "__matmul__" else []), *(c for c in _classes() if c.elem is t.elem)]
    found = [(r, result) for r in right if (result := _result_for(operator, [t, r])) is not None]
    mark = ["    @_overload"] if len(found) > 1 else []
    return [line for r, result in found
            for line in (*mark, f"    def {method}(self, other: {_said(r)}, /) -> {_said(result)}: ...")]  # fmt: skip


def _result_for(name: str, types: list[Type]) -> Any:
    """The type of a builtin's result for arguments of these types; None where it takes none such, or gives nothing."""
    try:
        return resolve(name, [Arg(t) for t in types], {}, None).result
    except TreadleError:
        return None


def _said(t: Any) -> str:
    """A type as the stub spells it; Any for one without a name."""
    if t is None:
        return "None"
    if isinstance(t, tuple):
        return f"builtins.tuple[{', '.join(map(_said, t))}]"
    return _number(t) if isinstance(t, Scalar) else _classes().get(t, "Any")


# -- builtins ----------------------------------------------------------------------------------------------------------


def builtin_text(name: str) -> str:
    """All overloads of a builtin."""
    if name == "tid":
        return "def tid() -> _Threads: ..."
    signatures: dict[str, str] = {}  # by parameters: of two that look alike to a checker the first counts
    variables: dict[str, str] = {}
    found = [overload for record in records(name) for overload in _Record(record, variables).overloads()]
    found.sort(key=lambda each: (each[1] == "Any", each[0].count(": Any")))  # the loosest last
    for parameters, result in found:
        signatures.setdefault(parameters, result)
    mark = "@_overload\n" if len(signatures) > 1 else ""
    shown = [f"{mark}def {name}({parameters}) -> {result}: ..." for parameters, result in signatures.items()]
    return "\n".join([*variables.values(), *shown])


class _Record:
    """The overloads of one record; the type variables that they need go into ``variables``, by name."""

    def __init__(self, record: Record, variables: dict[str, str]):
        self.record, self.variables = record, variables
        self.params = record.signature.params
        self.result = record.signature.result
        self.counts: dict[str, int] = {}  # how often each pattern occurs
        for pattern in [*(p.pattern for p in self.params), *_parts(self.result)]:
            self.counts[str(pattern)] = self.counts.get(str(pattern), 0) + 1

    def overloads(self) -> list[tuple[str, str]]:
        """Pairs of parameters and result."""
        given = {str(p.pattern) for p in self.params}
        computed = [r for r in _parts(self.result) if _composite(r) and str(r) not in given]
        if not computed:
            return [(self._parameters({}), self._result())]
        return [*self._enumerated(), (self._parameters(None), "Any")]

    def _parameters(self, chosen: dict[str, str] | None) -> str:
        """The list of parameters. ``chosen``: classes by pattern; None for the loosest types."""
        shown = []
        for p in self.params:
            loose = chosen is None and _composite(p.pattern)
            said = "Any" if loose else (chosen or {}).get(str(p.pattern)) or self._pattern(p.pattern)
            star, default = "*" if p.variadic else "", "" if p.default is EMPTY else " = ..."
            shown.append(f"{star}{p.name}: {said}{default}")
        return ", ".join(shown)

    def _enumerated(self) -> list[tuple[str, str]]:
        """An overload for every choice of named classes whose result has a name as well."""
        asked: dict[str, Any] = {str(p.pattern): p.pattern for p in self.params if _composite(p.pattern)}
        found: list[tuple[str, str]] = []
        if not asked:  # made of numbers, of which a checker does not know how wide they are
            return found
        for types in itertools.product(*(_matching(p) for p in asked.values())):
            bound: dict[str, Any] = {}
            if all(p.match(t, bound) for p, t in zip(asked.values(), types)):
                parts = [r.build(bound) if isinstance(r, patterns.Pattern) else r for r in _parts(self.result)]
                result = tuple(parts) if isinstance(self.result, tuple) else parts[0]
                if "Any" not in _said(result):
                    chosen = {key: _classes()[t] for key, t in zip(asked, types)}
                    found.append((self._parameters(chosen), _said(result)))
        return found

    def _result(self) -> str:
        if self.result is EMPTY:
            return self._ruled()
        if isinstance(self.result, tuple):
            return f"builtins.tuple[{', '.join(map(self._pattern, self.result))}]"
        return "None" if self.result is None else self._pattern(self.result)

    def _ruled(self) -> str:
        """The result that a rule computes, by what it says of samples: always one type, or that of an argument."""
        if self.record.part("result") is None or any(isinstance(p.pattern, patterns.Known) for p in self.params):
            return "Any"
        seen = []
        for sample in (f32, next(t for t, name in _classes().items() if name == "vec3f")):
            types = [_sample(p.pattern, sample) for p in self.params]
            try:
                seen.append((types, self.record.match([Arg(t) for t in types], {}, None).result))
            except (TreadleError, Mismatch):
                continue
        results = {result for _, result in seen}
        for k, p in enumerate(self.params):
            if len(results) > 1 and all(types[k] is result for types, result in seen):
                return self._pattern(p.pattern)
        return _said(results.pop()) if len(results) == 1 and len(seen) > 1 else "Any"

    def _pattern(self, p: Any) -> str:
        """What a parameter or a result is to a checker."""
        if isinstance(p, Type):
            return _said(p)
        if isinstance(p, patterns.OneOf):
            return _numbers(p.allowed)
        if isinstance(p, patterns.View):
            return f"_Elements[{self._pattern(p.elem)}]"
        if isinstance(p, patterns.Var):
            return self._variable_or_number(p)
        return self._composite(p) if _composite(p) else "Any"

    def _variable_or_number(self, p: patterns.Var) -> str:
        if p.allowed is None:
            return self._variable(p.name, []) if self.counts.get(str(p), 0) != 1 or self.result is EMPTY else "Any"
        if p.parts:
            kinds = sorted({_number(t) for t in p.allowed}, reverse=True)
            return self._variable(f"{p.name}_{len(p.allowed)}", [*kinds, *map(_classes().get, _matching(p))])
        both = set(p.allowed) & set(INTS) and set(p.allowed) & set(FLOATS)
        return "_Scalar" if both else _numbers(p.allowed)

    def _composite(self, p: Any) -> str:
        names = [_classes()[t] for t in _matching(p)]
        family = _family(p)
        if isinstance(self.result, patterns.Var) and self.result is p.elem and self._pattern(p.elem) == "_Scalar":
            return f"{family}[_Scalar]"  # a number of the kind that the components are
        if self.counts[str(p)] > 1:
            return self._variable("".join(c if c.isalnum() else "_" for c in str(p)), names)
        return " | ".join(names) if 0 < len(names) <= _FEW else f"{family}[Any]"

    def _variable(self, name: str, choices: list[Any]) -> str:
        """A type variable over some types, all if there are none; one choice stands for itself."""
        if len(choices) == 1:
            return choices[0]
        own = f"_{name.strip('_')}_in_{self.record.name}"
        self.variables[own] = f"{own} = TypeVar({', '.join([repr(own), *choices])})"
        return own


def _parts(result: Any) -> list[Any]:
    return [] if result is EMPTY or result is None else list(result) if isinstance(result, tuple) else [result]


def _composite(p: Any) -> bool:
    kinds = patterns.Vec | patterns.Mat | patterns.Quat | patterns.Transform | patterns.Composite
    return isinstance(p, kinds)


def _family(p: Any) -> str:
    by_kind = {patterns.Vec: "_Vector", patterns.Mat: "_Matrix", patterns.Quat: "_Quaternion",
               patterns.Transform: "_Transform"}  # fmt: skip
    return by_kind.get(type(p), "_Composite")


def _matching(p: Any) -> list[Type]:
    """The named types that a pattern matches by itself."""
    return [t for t in _classes() if p.match(t, {})]


def _numbers(allowed: Any) -> str:
    return "builtins.float" if set(allowed) & set(FLOATS) else "builtins.int"


def _sample(p: Any, sample: Type) -> Any:
    """A type for a parameter, on which a rule can be tried."""
    from .types.core import array

    if isinstance(p, Type):
        return p
    if isinstance(p, patterns.View):
        return array(_sample(p.elem, sample), p.ndim or 1)
    if isinstance(p, patterns.Var):
        return sample
    if isinstance(p, patterns.OneOf):
        return b1 if b1 in p.allowed else i32
    if isinstance(p, patterns.Anything):
        return i32
    return next(iter(_matching(p)), sample) if _composite(p) else sample


def declared(class_text: str) -> list[str]:
    """The names of the members in the text of a class."""
    (node,) = ast.parse(class_text).body
    assert isinstance(node, ast.ClassDef)
    return [x.name if isinstance(x, ast.FunctionDef) else x.target.id  # type: ignore[attr-defined, union-attr]
            for x in node.body]  # fmt: skip
