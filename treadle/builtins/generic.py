"""Constructors whose type follows from their arguments: ``vector(x, y)``, ``matrix(…, shape=(2, 2))``; and casts."""

from ..ir.builder import Builder
from ..types.annotations import type_of
from ..types.core import FLOATS, SCALARS, Matrix, Scalar, Type, Vector, f32, i32
from ..types.core import matrix as matrix_type
from ..types.core import quaternion as quaternion_type
from ..types.core import transformation as transform_type
from ..types.core import vector as vector_type
from ..types.layout import leaves
from ..types.spelling import spell
from .bits import reinterpreted
from .constructors import construct
from .patterns import Any, Known
from .registry import Arg, Match, Mismatch, builtin


def component_type(args: list[Arg], dtype: Arg | None) -> Scalar:
    """The scalar type of a composite of ``args``: ``dtype`` if given, else that of the first that is no literal."""
    if dtype is not None:
        t = type_of(dtype.value)
        if t not in SCALARS:
            raise Mismatch(f"argument 'dtype' must be a scalar type, not {dtype.show()}")
        return t
    for arg in args:
        if not arg.literal and isinstance(arg.type, Scalar | Vector | Matrix):
            return arg.type if isinstance(arg.type, Scalar) else arg.type.elem
    return f32 if any(isinstance(a.value, float) for a in args) or not args else i32


def _named(kwargs: dict[str, Arg], *names: str) -> list[Arg | None]:
    """The keyword arguments ``names``; raises Mismatch for any other."""
    unknown = [name for name in kwargs if name not in names]
    if unknown:
        raise Mismatch(f"there is no parameter {unknown[0]!r}")
    return [kwargs.get(name) for name in names]


def _made(name: str, t: Type, args: list[Arg], kwargs: dict[str, Arg], context) -> Match:
    """The constructor of ``t`` for ``args``; keywords carry no values."""
    found = construct(t, args, {}, context)
    return Match(name, [*found.types, *[None] * len(kwargs)], t, lambda b, values: found.emit(b, values[: len(args)]))


@builtin("vector math")
class vector:
    """A vector of the given components. ``length`` and ``dtype``, if given, say what they otherwise tell themselves.

    >>> wp.vector(1.0, 2.0)
    vec2f([1.0, 2.0])
    """

    def sig(*args: Any, length: Known("a constant int") = 0, dtype: Known("a scalar type") = None): ...

    def match(args, kwargs, context):
        length, dtype = _named(kwargs, "length", "dtype")
        elem = component_type(args, dtype)
        parts = sum(a.type.n if isinstance(a.type, Vector | Matrix) else 1 for a in args)
        n = parts if length is None else length.value
        if not isinstance(n, int) or n < 1:
            raise Mismatch("argument 'length' must be a positive constant")
        return _made("vector", vector_type(n, elem), args, kwargs, context)


@builtin("vector math")
class matrix:
    """A matrix of the given components, row by row.

    >>> wp.matrix(1.0, 2.0, 3.0, 4.0, shape=(2, 2))
    mat22f([[1.0, 2.0], [3.0, 4.0]])
    """

    def sig(*args: Any, shape: Known("two constant ints") = None, dtype: Known("a scalar type") = None): ...

    def match(args, kwargs, context):
        shape, dtype = _named(kwargs, "shape", "dtype")
        if shape is None:
            if len(args) == 1 and isinstance(args[0].type, Matrix):
                rows, cols = args[0].type.rows, args[0].type.cols
            else:
                raise Mismatch("argument 'shape' is missing", "write shape=(rows, columns)")
        else:
            rows, cols = shape.value
        return _made("matrix", matrix_type(rows, cols, component_type(args, dtype)), args, kwargs, context)


@builtin("quaternion math")
class quaternion:
    """A quaternion of x, y, z, w, or of a vector and w.

    >>> wp.quaternion(0.0, 0.0, 0.0, 1.0)
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    def sig(*args: Any, dtype: Known("a float type") = None): ...

    def match(args, kwargs, context):
        (dtype,) = _named(kwargs, "dtype")
        return _made("quaternion", quaternion_type(_float(args, dtype)), args, kwargs, context)


@builtin("transformations")
class transformation:
    """A rigid transform of a position and a rotation, or of seven numbers.

    >>> wp.transformation(wp.vec3(1.0, 2.0, 3.0), wp.quat_identity())
    transformf([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0])
    """

    def sig(*args: Any, dtype: Known("a float type") = None): ...

    def match(args, kwargs, context):
        named = {name: kwargs[name] for name in ("p", "q") if name in kwargs}
        _named(kwargs, "p", "q", "dtype")
        t = transform_type(_float([*args, *named.values()], kwargs.get("dtype")))
        found = construct(t, args, named, context)
        where = [*range(len(args)), *(len(args) + i for i, name in enumerate(kwargs) if name in named)]
        types: list[Type | None] = [None] * (len(args) + len(kwargs))
        for place, wanted in zip(where, found.types, strict=True):
            types[place] = wanted
        return Match("transformation", types, t, lambda b, values: found.emit(b, [values[i] for i in where]))


def _float(args: list[Arg], dtype: Arg | None) -> Scalar:
    elem = component_type(args, dtype)
    if elem in FLOATS:
        return elem
    if all(a.literal for a in args):
        return f32
    raise Mismatch(f"components must be floats, not {spell(elem)}")


@builtin("utility")
class cast:
    """The bytes of ``a`` read as a ``dtype`` of the same size: numbers, vectors, matrices and structs of them.

    >>> wp.cast(1.0, int)
    1065353216
    """

    def sig(a: Any, dtype: Known("a type")): ...

    def result(a: Arg, dtype: Arg) -> Type:
        t = type_of(dtype.value)
        for shown, whole in ((a.show(), a.type), (spell(t), t)):
            if whole is None or not leaves(whole) or not all([isinstance(leaf.type, Scalar) for leaf in leaves(whole)]):
                raise Mismatch(f"a {shown} has no bytes to read in another way")
        if a.type.size != t.size:
            raise Mismatch(f"a {a.show()} and a {spell(t)} differ in size")
        return t

    def emit(b: Builder, result, a, dtype):
        return reinterpreted(b, a, result)
