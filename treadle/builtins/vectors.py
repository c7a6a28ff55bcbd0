"""Functions of vectors. Where the length is free they are built component by component; the others are bodies."""

from ..types.core import b1, u32
from .language import sqrt, vector, where
from .patterns import C, Composite, Float, Mat, N, Quat, R, Scalar, Vec
from .registry import builtin, rule
from .terms import Term, make, terms, total
from .terms import dot as products

# -- products ----------------------------------------------------------------------------------------------------------


def _squares(b, x):
    """The sum of the squares of the components."""
    return products(terms(b, x), terms(b, x)).value


@builtin("vector math")
class dot:
    """The dot product: the sum of the products of components.

    >>> wp.dot(wp.vec3(1.0, 2.0, 3.0), wp.vec3(4.0, 5.0, 6.0))
    32.0
    """

    def sig(a: Vec(N, Scalar), b: Vec(N, Scalar)) -> Scalar: ...

    def emit(b, result, x, y):
        return products(terms(b, x), terms(b, y)).value


@builtin("quaternion math", "dot")
class dot_quaternions:
    """The dot product of quaternions, as of vectors with four components.

    >>> wp.dot(wp.quat(1.0, 2.0, 3.0, 4.0), wp.quat(1.0, 1.0, 1.0, 1.0))
    10.0
    """

    def sig(a: Quat(Float), b: Quat(Float)) -> Float: ...

    def emit(b, result, x, y):
        return products(terms(b, x), terms(b, y)).value


@builtin("vector math")
class cross:
    """The cross product, at right angles to both vectors.

    >>> wp.cross(wp.vec3(1.0, 0.0, 0.0), wp.vec3(0.0, 1.0, 0.0))
    vec3f([0.0, 0.0, 1.0])
    """

    def body(a: Vec(3, Scalar), b: Vec(3, Scalar)) -> Vec(3, Scalar):
        return vector(
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        )


@builtin("vector math")
class outer:
    """The outer product: the matrix of all products ``a[i] * b[j]``.

    >>> wp.outer(wp.vec2(1.0, 2.0), wp.vec2(3.0, 4.0))
    mat22f([[3.0, 4.0], [6.0, 8.0]])
    """

    def sig(a: Vec(R, Scalar), b: Vec(C, Scalar)) -> Mat(R, C, Scalar): ...

    def emit(b, result, x, y):
        return make(b, result, [p * q for p in terms(b, x) for q in terms(b, y)])


@builtin("vector math")
class cw_mul:
    """The product of each pair of components of two vectors or matrices.

    >>> wp.cw_mul(wp.vec2(1.0, 2.0), wp.vec2(3.0, 4.0))
    vec2f([3.0, 8.0])
    """

    def sig(a: Composite(Scalar), b: Composite(Scalar)) -> Composite(Scalar): ...

    def emit(b, result, x, y):
        return b.one("mul", (x, y), result)


@builtin("vector math")
class cw_div:
    """The quotient of each pair of components of two vectors or matrices.

    >>> wp.cw_div(wp.vec2(3.0, 8.0), wp.vec2(1.0, 2.0))
    vec2f([3.0, 4.0])
    """

    def sig(a: Composite(Scalar), b: Composite(Scalar)) -> Composite(Scalar): ...

    def emit(b, result, x, y):
        return b.one("div", (x, y), result)


# -- lengths -----------------------------------------------------------------------------------------------------------


@builtin("vector math")
class length_sq:
    """The squared length: the sum of the squares of the components.

    >>> wp.length_sq(wp.vec2(3.0, 4.0))
    25.0
    """

    def sig(a: Vec(N, Scalar)) -> Scalar: ...

    def emit(b, result, x):
        return _squares(b, x)


@builtin("quaternion math", "length_sq")
class length_sq_quaternion:
    """The squared length of a quaternion.

    >>> wp.length_sq(wp.quat(1.0, 1.0, 1.0, 1.0))
    4.0
    """

    def sig(a: Quat(Float)) -> Float: ...

    def emit(b, result, x):
        return _squares(b, x)


@builtin("vector math")
class length:
    """The Euclidean length of a vector or quaternion. The derivative at zero is 0.

    >>> wp.length(wp.vec2(3.0, 4.0))
    5.0
    """

    def sig(a: Vec(N, Float)) -> Float: ...

    def emit(b, result, x):
        return b.one("sqrt", (_squares(b, x),), result)


@builtin("quaternion math", "length")
class length_quaternion:
    """The length of a quaternion; 1 for a rotation.

    >>> wp.length(wp.quat(1.0, 1.0, 1.0, 1.0))
    2.0
    """

    def sig(a: Quat(Float)) -> Float: ...

    def emit(b, result, x):
        return b.one("sqrt", (_squares(b, x),), result)


@builtin("vector math")
class normalize:
    """The vector of length 1 in the direction of ``a``; the zero vector if ``a`` is zero, and so is the derivative.

    >>> wp.normalize(wp.vec2(3.0, 4.0))
    vec2f([0.6000000238418579, 0.800000011920929])
    """

    adjoint = tangent = rule("of_normalize")

    def body(a: Vec(N, Float)) -> Vec(N, Float):
        size = length(a)
        return a / where(size > 0.0, size, 1.0)


@builtin("quaternion math", "normalize")
class normalize_quaternion:
    """The quaternion of length 1 in the direction of ``a``; the identity if ``a`` is zero, where the derivative is 0.

    >>> wp.normalize(wp.quat(0.0, 0.0, 0.0, 2.0))
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    adjoint = tangent = rule("of_normalize")

    def body(a: Quat(Float)) -> Quat(Float):
        size = length(a)
        some = size > 0.0
        q = a / where(some, size, 1.0)
        q[3] = where(some, q[3], 1.0)
        return q


@builtin("vector math")
class norm_l1:
    """The sum of the absolute values of the components. The derivative for a component that is 0 is 0.

    >>> wp.norm_l1(wp.vec2(3.0, -4.0))
    7.0
    """

    def sig(v: Vec(N, Float)) -> Float: ...

    def emit(b, result, x):
        return total(Term(b, b.one("abs", (part,), result)) for part in b.parts(x)).value


@builtin("vector math")
class norm_l2:
    """The Euclidean length.

    >>> wp.norm_l2(wp.vec2(3.0, 4.0))
    5.0
    """

    def body(v: Vec(N, Float)) -> Float:
        return length(v)


@builtin("vector math")
class norm_huber:
    """Huber's norm: half the squared length within ``delta`` of zero, growing linearly from there on.

    ``½|v|²`` where ``|v| ≤ δ``, else ``δ (|v| - ½δ)`` (P. Huber, "Robust estimation of a location parameter", 1964).

    >>> wp.norm_huber(wp.vec2(3.0, 4.0), 1.0)
    4.5
    """

    def body(v: Vec(N, Float), delta: Float = 1.0) -> Float:
        a = dot(v, v)
        if a <= delta * delta:
            return 0.5 * a
        return delta * (sqrt(a) - 0.5 * delta)


@builtin("vector math")
class norm_pseudo_huber:
    """A smooth stand-in for Huber's norm: ``δ √(1 + |v|²/δ²)``.

    >>> wp.norm_pseudo_huber(wp.vec2(3.0, 4.0), 1.0)
    5.099019527435303
    """

    def body(v: Vec(N, Float), delta: Float = 1.0) -> Float:
        return delta * sqrt(1.0 + dot(v, v) / (delta * delta))


@builtin("vector math")
class smooth_normalize:
    """``v`` divided by its pseudo-Huber norm: smooth through zero.

    >>> wp.smooth_normalize(wp.vec2(0.0, 0.0), 1.0)
    vec2f([0.0, 0.0])
    """

    def body(v: Vec(N, Float), delta: Float = 1.0) -> Vec(N, Float):
        return v / norm_pseudo_huber(v, delta)


# -- by component ------------------------------------------------------------------------------------------------------


def _reduce(name: str, word: str) -> None:
    """Register ``min(v)`` or ``max(v)``: the smallest or largest component."""

    def sig(a: Vec(N, Scalar)) -> Scalar: ...

    def emit(b, result, x):
        first, *rest = b.parts(x)
        for part in rest:
            first = b.one(name, (first, part), result)
        return first

    doc = f"""The {word} component of a vector.

    >>> wp.{name}(wp.vec3(2.0, 1.0, 3.0))
    {"1.0" if name == "min" else "3.0"}
    """
    members = {"__doc__": doc, "__module__": __name__, "sig": sig, "emit": emit}
    builtin("vector math", name)(type(f"{name}_component", (), members))


def _position(name: str, less: str, word: str) -> None:
    """Register ``argmin(v)`` or ``argmax(v)``: where the smallest or largest component is, the first of equals."""

    def sig(a: Vec(N, Scalar)) -> u32: ...

    def emit(b, result, x):
        best, *rest = b.parts(x)
        where_best = b.const(0, u32)
        for i, part in enumerate(rest, 1):
            better = b.one(less, (part, best), b1)
            best = b.one("select", (better, part, best), part.type)
            where_best = b.one("select", (better, b.const(i, u32), where_best), u32)
        return where_best

    doc = f"""The index of the {word} component of a vector, as an uint32; the first if there are several.

    >>> wp.{name}(wp.vec3(2.0, 1.0, 3.0))
    {"uint32(1)" if name == "argmin" else "uint32(2)"}
    """
    members = {"__doc__": doc, "__module__": __name__, "sig": sig, "emit": emit}
    builtin("vector math", name)(type(name, (), members))


_reduce("min", "smallest")
_reduce("max", "largest")
_position("argmin", "lt", "smallest")
_position("argmax", "gt", "largest")


def _test(name: str, join: str, phrase: str) -> None:
    """Register ``isnan``, ``isinf`` and ``isfinite`` of vectors, quaternions and matrices."""

    def sig(a: Composite(Float)) -> b1: ...

    def emit(b, result, x):
        first, *rest = [b.one(name, (part,), b1) for part in b.parts(x)]
        for part in rest:
            first = b.one(join, (first, part), b1)
        return first

    doc = f"""Whether {phrase}.

    >>> wp.{name}(wp.vec2(1.0, 2.0))
    {name == "isfinite"}
    """
    members = {"__doc__": doc, "__module__": __name__, "sig": sig, "emit": emit}
    builtin("vector math", name)(type(f"{name}_parts", (), members))


_test("isnan", "bitor", "any component is NaN")
_test("isinf", "bitor", "any component is infinite")
_test("isfinite", "bitand", "all components are finite")


@builtin("vector math", "sign")
class sign_components:
    """The sign of each component: -1 below zero, else 1.

    >>> wp.sign(wp.vec2(-3.0, 4.0))
    vec2f([-1.0, 1.0])
    """

    def sig(x: Composite(Scalar)) -> Composite(Scalar): ...

    def emit(b, result, x):
        elem = result.elem
        number = float if elem.is_float else int
        if elem.kind == "u":  # nothing is below zero
            return b.one("make", (b.const(1, elem),) * result.n, result)
        minus, nothing, one = (b.const(number(s), elem) for s in (-1, 0, 1))
        signs = [b.one("select", (b.one("lt", (part, nothing), b1), minus, one), elem) for part in b.parts(x)]
        return b.one("make", tuple(signs), result)


@builtin("utility", "lerp")
class lerp_components:
    """``a (1 - t) + b t`` of each pair of components: vectors, matrices, quaternions, transforms.

    >>> wp.lerp(wp.vec2(0.0, 1.0), wp.vec2(2.0, 3.0), 0.5)
    vec2f([1.0, 2.0])
    """

    def body(a: Composite(Float), b: Composite(Float), t: Float) -> Composite(Float):
        return a * (1.0 - t) + b * t
