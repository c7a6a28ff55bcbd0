"""Type patterns: what the annotations of a builtin's signature mean.

A pattern matches a type and binds variables; one variable written twice asks for one type twice, so
``def sig(a: Vec(N, T), b: Vec(N, T)) -> T`` takes two vectors of equal length and scalar. A plain type means itself.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass

from ..types.core import (
    ARITHMETIC,
    FLOATS,
    INTS,
    SCALARS,
    Array,
    Fixed,
    Indexed,
    Matrix,
    Type,
    Vector,
    b1,
    matrix,
    quaternion,
    transformation,
    vector,
)
from ..types.core import (
    View as ViewType,
)
from ..types.promotion import adapts, literal_type
from ..types.spelling import spell

Bindings = dict


class Pattern:
    """Base of patterns."""

    def match(self, t: Type | None, bound: Bindings) -> bool:
        """Whether ``t`` fits; binds variables."""
        raise NotImplementedError

    def literal(self, value: object, bound: Bindings) -> Type | None:
        """The type the literal ``value`` takes here, or None where no literal fits."""
        return None

    def build(self, bound: Bindings) -> Type:
        """The type this pattern stands for once its variables are bound."""
        raise TypeError(f"{self} gives no result type")


@dataclass(frozen=True)
class Var(Pattern):
    """A type variable. ``allowed``: the scalars it ranges over; ``parts``: also composites made of such scalars.
    ``unlike``: what is said where two arguments of this type have different ones."""

    name: str
    allowed: tuple[Type, ...] | None = None
    parts: bool = False
    unlike: str = ""

    def __str__(self) -> str:
        return self.name

    def match(self, t, bound):
        known = bound.get(self.name)
        if known is not None:
            return known is t
        if t is None or not self._admits(t):
            return False
        bound[self.name] = t
        return True

    def _admits(self, t: Type) -> bool:
        if self.allowed is None:
            return True
        if self.parts and isinstance(t, Vector | Matrix):
            return t.elem in self.allowed
        return t in self.allowed

    def literal(self, value, bound):
        known = bound.get(self.name)
        if known is not None:
            return known if adapts(value, known) else None
        alone = literal_type(value)
        if self.allowed is not None and alone not in self.allowed:
            wide = [t for t in self.allowed if not (t.is_float and t.bits == 16)]  # no literal is narrow by itself
            alone = next((t for t in (*PREFERRED, *wide) if t in wide and adapts(value, t)), None)
        if alone is not None:
            bound[self.name] = alone
        return alone

    def build(self, bound):
        return bound[self.name]

    def choices(self) -> str:
        """The scalars allowed, for messages."""
        return ", ".join(spell(t) for t in self.allowed) if self.allowed else "any type"


PREFERRED = (b1, *(t for t in ARITHMETIC if t.name in ("i32", "f32")))


@dataclass(frozen=True)
class Dim:
    """A variable for a length."""

    name: str

    def __str__(self) -> str:
        return self.name


def _length(want: Dim | int, n: int, bound: Bindings) -> bool:
    return bound.setdefault(want.name, n) == n if isinstance(want, Dim) else want == n


def _known(want: Dim | int, bound: Bindings) -> int:
    return bound[want.name] if isinstance(want, Dim) else want


def _scalar(elem: Var | Type, bound: Bindings) -> Type:
    return elem.build(bound) if isinstance(elem, Pattern) else elem


def _matches(want: Pattern | Type, t: Type | None, bound: Bindings) -> bool:
    return want.match(t, bound) if isinstance(want, Pattern) else want is t


@dataclass(frozen=True)
class Vec(Pattern):
    """A vector of ``n`` scalars ``elem``."""

    n: Dim | int
    elem: Pattern | Type
    tag: typing.ClassVar[str] = "vec"

    def __str__(self) -> str:
        return f"Vec({self.n}, {self.elem})"

    def match(self, t, bound):
        return (isinstance(t, Vector) and t.tag == "vec" and _length(self.n, t.n, bound)
                and _matches(self.elem, t.elem, bound))  # fmt: skip

    def build(self, bound):
        return vector(_known(self.n, bound), _scalar(self.elem, bound))


@dataclass(frozen=True)
class Mat(Pattern):
    """A matrix of ``rows`` × ``cols`` scalars ``elem``."""

    rows: Dim | int
    cols: Dim | int
    elem: Pattern | Type

    def __str__(self) -> str:
        return f"Mat({self.rows}, {self.cols}, {self.elem})"

    def match(self, t, bound):
        return (isinstance(t, Matrix) and _length(self.rows, t.rows, bound) and _length(self.cols, t.cols, bound)
                and _matches(self.elem, t.elem, bound))  # fmt: skip

    def build(self, bound):
        return matrix(_known(self.rows, bound), _known(self.cols, bound), _scalar(self.elem, bound))


@dataclass(frozen=True)
class Quat(Pattern):
    """A quaternion of ``elem``."""

    elem: Pattern | Type

    def __str__(self) -> str:
        return f"Quat({self.elem})"

    def match(self, t, bound):
        return isinstance(t, Vector) and t.tag == "quat" and _matches(self.elem, t.elem, bound)

    def build(self, bound):
        return quaternion(_scalar(self.elem, bound))


@dataclass(frozen=True)
class Transform(Pattern):
    """A rigid transform of ``elem``."""

    elem: Pattern | Type

    def __str__(self) -> str:
        return f"Transform({self.elem})"

    def match(self, t, bound):
        return isinstance(t, Vector) and t.tag == "transform" and _matches(self.elem, t.elem, bound)

    def build(self, bound):
        return transformation(_scalar(self.elem, bound))


@dataclass(frozen=True)
class Composite(Pattern):
    """Any vector, quaternion, transform or matrix of ``elem``; as a result, that same type."""

    elem: Pattern | Type

    def __str__(self) -> str:
        return f"Composite({self.elem})"

    def match(self, t, bound):
        if not isinstance(t, Vector | Matrix) or bound.get("composite", t) is not t:
            return False
        bound["composite"] = t
        return _matches(self.elem, t.elem, bound)

    def build(self, bound):
        return bound["composite"]


@dataclass(frozen=True)
class View(Pattern):
    """Access to memory with ``ndim`` dimensions (None: any number) of elements ``elem``; perhaps ``indexed``."""

    elem: Pattern | Type
    ndim: int | None = 1
    indexed: bool = False

    def __str__(self) -> str:
        return f"array({self.elem})" if self.ndim in (None, 1) else f"array({self.elem}, ndim={self.ndim})"

    def match(self, t, bound):
        kinds = ViewType | Array | Fixed | Indexed if self.indexed else ViewType | Array | Fixed
        return (isinstance(t, kinds) and self.ndim in (None, _ndim(t))
                and _matches(self.elem, t.elem, bound))  # fmt: skip


def _ndim(t: ViewType | Array | Fixed | Indexed) -> int:
    return len(t.shape) if isinstance(t, Fixed) else t.ndim


@dataclass(frozen=True)
class Anything(Pattern):
    """Each use matches whatever it meets."""

    def __str__(self) -> str:
        return "Any"

    def match(self, t, bound):
        return t is not None

    def literal(self, value, bound):
        return literal_type(value)


@dataclass(frozen=True)
class OneOf(Pattern):
    """Each use matches any of some scalars, independently of other uses."""

    name: str
    allowed: tuple[Type, ...]

    def __str__(self) -> str:
        return self.name

    def match(self, t, bound):
        return t in self.allowed

    def literal(self, value, bound):
        return Var("", self.allowed).literal(value, {})

    def choices(self) -> str:
        return ", ".join(spell(t) for t in self.allowed)


@dataclass(frozen=True)
class Known(Pattern):
    """Something known while compiling (a dtype, a shape, a format, a function); passed on as its Python value.

    ``otherwise`` is what to say of an argument that is not known.
    """

    what: str = "a constant"
    otherwise: str = ""

    def __str__(self) -> str:
        return self.what

    def match(self, t, bound):
        return False


Scalar = Var("Scalar", ARITHMETIC)
Float = Var("Float", FLOATS)
Int = Var("Int", INTS)
E = Var("E")  # an element of an array
Num = Var("Num", ARITHMETIC, parts=True)  # a scalar, or a composite whose arithmetic goes by component
FloatNum = Var("Num", FLOATS, parts=True)
Same = Var("Same")
Any = Anything()
Index = OneOf("Int", INTS)
Condition = OneOf("bool", (b1, *INTS))
AnyScalar = OneOf("Scalar", SCALARS)
N, R, C, K = (Dim(n) for n in "NRCK")

__all__ = [
    "Any", "AnyScalar", "Bindings", "C", "Composite", "Condition", "E", "Float", "FloatNum", "Index", "Int", "K",
    "Known", "Mat", "N", "Num", "OneOf", "Pattern", "Quat", "R", "Same", "Scalar", "Transform", "Var", "Vec", "View",
]  # fmt: skip
