"""Rigid transforms (p, q): a rotation ``q``, then a translation by ``p``."""

from ..types.core import Type
from ..types.core import transformation as transform_type
from .constructors import identity_transform
from .language import (
    copysign,
    cross,
    dot,
    length,
    matrix,
    matrix_from_cols,
    quat_from_matrix,
    quat_inverse,
    quat_rotate,
    quat_to_matrix,
    quaternion,
    transformation,
    vector,
    where,
)
from .patterns import Float, Known, Mat, Quat, Transform, Vec
from .quaternions import float_type
from .registry import Arg, builtin


@builtin("transformations")
class transform_identity:
    """The transform that moves nothing.

    >>> wp.transform_identity()
    transformf([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    """

    def sig(dtype: Known("a float type") = float): ...

    def result(dtype: Arg) -> Type:
        return transform_type(float_type(dtype))

    def emit(b, result, dtype):
        return identity_transform(b, result)


@builtin("transformations")
class transform_get_translation:
    """The translation of a transform.

    >>> wp.transform_get_translation(wp.transform_identity())
    vec3f([0.0, 0.0, 0.0])
    """

    def body(xform: Transform(Float)) -> Vec(3, Float):
        return vector(xform[0], xform[1], xform[2])


@builtin("transformations")
class transform_get_rotation:
    """The rotation of a transform.

    >>> wp.transform_get_rotation(wp.transform_identity())
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    def body(xform: Transform(Float)) -> Quat(Float):
        return quaternion(xform[3], xform[4], xform[5], xform[6])


@builtin("transformations")
class transform_set_translation:
    """Give the transform in the variable ``xform`` the translation ``p``."""

    updates = ("xform",)

    def sig(xform: Transform(Float), p: Vec(3, Float)) -> None: ...

    def body(xform, p):
        return transformation(p, transform_get_rotation(xform))


@builtin("transformations")
class transform_set_rotation:
    """Give the transform in the variable ``xform`` the rotation ``q``."""

    updates = ("xform",)

    def sig(xform: Transform(Float), q: Quat(Float)) -> None: ...

    def body(xform, q):
        return transformation(transform_get_translation(xform), q)


@builtin("transformations")
class transform_multiply:
    """The motion ``b``, then the motion ``a``.

    >>> wp.transform_multiply(wp.transform_identity(), wp.transform_identity())
    transformf([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    """

    def body(a: Transform(Float), b: Transform(Float)) -> Transform(Float):
        turn = transform_get_rotation(a)
        return transformation(
            transform_get_translation(a) + quat_rotate(turn, transform_get_translation(b)),
            turn * transform_get_rotation(b),
        )


@builtin("operators", "mul")
class mul_transforms:
    """The motion ``b``, then the motion ``a``.

    >>> wp.mul(wp.transform_identity(), wp.transform_identity())
    transformf([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    """

    def body(a: Transform(Float), b: Transform(Float)) -> Transform(Float):
        return transform_multiply(a, b)


@builtin("transformations")
class transform_inverse:
    """The motion back.

    >>> wp.transform_inverse(wp.transform(wp.vec3(1.0, 2.0, 3.0), wp.quat_identity()))
    transformf([-1.0, -2.0, -3.0, -0.0, -0.0, -0.0, 1.0])
    """

    def body(xform: Transform(Float)) -> Transform(Float):
        back = quat_inverse(transform_get_rotation(xform))
        return transformation(-quat_rotate(back, transform_get_translation(xform)), back)


@builtin("transformations")
class transform_point:
    """Where the transform takes a point.

    >>> wp.transform_point(wp.transform(wp.vec3(1.0, 2.0, 3.0), wp.quat_identity()), wp.vec3(1.0, 0.0, 0.0))
    vec3f([2.0, 2.0, 3.0])
    """

    def body(xform: Transform(Float), point: Vec(3, Float)) -> Vec(3, Float):
        return transform_get_translation(xform) + quat_rotate(transform_get_rotation(xform), point)


@builtin("transformations", "transform_point")
class transform_point_matrix:
    """Where a 4 × 4 matrix takes a point: the matrix times (point, 1).

    >>> wp.transform_point(wp.identity(n=4, dtype=float), wp.vec3(1.0, 2.0, 3.0))
    vec3f([1.0, 2.0, 3.0])
    """

    synonyms = {"xform": "mat"}

    def body(mat: Mat(4, 4, Float), point: Vec(3, Float)) -> Vec(3, Float):
        return vector(
            mat[0, 0] * point[0] + mat[0, 1] * point[1] + mat[0, 2] * point[2] + mat[0, 3],
            mat[1, 0] * point[0] + mat[1, 1] * point[1] + mat[1, 2] * point[2] + mat[1, 3],
            mat[2, 0] * point[0] + mat[2, 1] * point[1] + mat[2, 2] * point[2] + mat[2, 3],
        )


@builtin("transformations")
class transform_vector:
    """How the transform turns a direction.

    >>> wp.transform_vector(wp.transform(wp.vec3(1.0, 2.0, 3.0), wp.quat_identity()), wp.vec3(1.0, 0.0, 0.0))
    vec3f([1.0, 0.0, 0.0])
    """

    def body(xform: Transform(Float), vec: Vec(3, Float)) -> Vec(3, Float):
        return quat_rotate(transform_get_rotation(xform), vec)


@builtin("transformations", "transform_vector")
class transform_vector_matrix:
    """What a 4 × 4 matrix makes of a direction: the matrix times (vec, 0).

    >>> wp.transform_vector(wp.identity(n=4, dtype=float), wp.vec3(1.0, 2.0, 3.0))
    vec3f([1.0, 2.0, 3.0])
    """

    synonyms = {"xform": "mat"}

    def body(mat: Mat(4, 4, Float), vec: Vec(3, Float)) -> Vec(3, Float):
        return vector(
            mat[0, 0] * vec[0] + mat[0, 1] * vec[1] + mat[0, 2] * vec[2],
            mat[1, 0] * vec[0] + mat[1, 1] * vec[1] + mat[1, 2] * vec[2],
            mat[2, 0] * vec[0] + mat[2, 1] * vec[1] + mat[2, 2] * vec[2],
        )


@builtin("transformations")
class transform_to_matrix:
    """The 4 × 4 matrix of a transform.

    >>> wp.transform_to_matrix(wp.transform_identity())[0]
    vec4f([1.0, 0.0, 0.0, 0.0])
    """

    def body(xform: Transform(Float)) -> Mat(4, 4, Float):
        r = quat_to_matrix(transform_get_rotation(xform))
        return matrix(
            r[0, 0], r[0, 1], r[0, 2], xform[0],
            r[1, 0], r[1, 1], r[1, 2], xform[1],
            r[2, 0], r[2, 1], r[2, 2], xform[2],
            0.0, 0.0, 0.0, 1.0,
            shape=(4, 4),
        )  # fmt: skip


@builtin("transformations")
class transform_from_matrix:
    """The transform of a 4 × 4 matrix that rotates and translates.

    >>> wp.transform_from_matrix(wp.identity(n=4, dtype=float))
    transformf([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    """

    def body(mat: Mat(4, 4, Float)) -> Transform(Float):
        return transformation(vector(mat[0, 3], mat[1, 3], mat[2, 3]), quat_from_matrix(mat))


@builtin("transformations")
class transform_compose:
    """The 4 × 4 matrix that scales, then turns, then moves.

    >>> wp.transform_compose(wp.vec3(1.0, 2.0, 3.0), wp.quat_identity(), wp.vec3(2.0, 2.0, 2.0))[0]
    vec4f([2.0, 0.0, 0.0, 1.0])
    """

    def body(position: Vec(3, Float), rotation: Quat(Float), scale: Vec(3, Float)) -> Mat(4, 4, Float):
        r = quat_to_matrix(rotation)
        return matrix(
            r[0, 0] * scale[0], r[0, 1] * scale[1], r[0, 2] * scale[2], position[0],
            r[1, 0] * scale[0], r[1, 1] * scale[1], r[1, 2] * scale[2], position[1],
            r[2, 0] * scale[0], r[2, 1] * scale[1], r[2, 2] * scale[2], position[2],
            0.0, 0.0, 0.0, 1.0,
            shape=(4, 4),
        )  # fmt: skip


def direction(column, size, instead):
    """A column of length ``size`` made a unit vector; ``instead`` if it is zero."""
    return where(size > 0.0, column / where(size > 0.0, size, 1.0), instead)


@builtin("transformations")
class transform_decompose:
    """Position, rotation and scale of a 4 × 4 matrix that scales, then turns, then moves: ``p, q, s = …``.

    The scale along x is negative if the matrix mirrors, so that ``transform_compose`` gives it back. A scale may be 0;
    the other two then tell the rotation.

    >>> wp.transform_decompose(wp.mat44(2.0, 0.0, 0.0, 1.0, 0.0, 3.0, 0.0, 1.0, 0.0, 0.0, 4.0, 1.0, 0.0, 0.0, 0.0, 1.0))
    (vec3f([1.0, 1.0, 1.0]), quatf([0.0, 0.0, 0.0, 1.0]), vec3f([2.0, 3.0, 4.0]))
    """

    def body(m: Mat(4, 4, Float)) -> (Vec(3, Float), Quat(Float), Vec(3, Float)):
        a = vector(m[0, 0], m[1, 0], m[2, 0])
        b = vector(m[0, 1], m[1, 1], m[2, 1])
        c = vector(m[0, 2], m[1, 2], m[2, 2])
        size = vector(length(a), length(b), length(c))
        side = copysign(1.0, dot(a, cross(b, c)))
        none = a * 0.0
        x, y, z = direction(a * side, size[0], none), direction(b, size[1], none), direction(c, size[2], none)
        x = direction(a * side, size[0], cross(y, z))
        y = direction(b, size[1], cross(z, x))
        z = direction(c, size[2], cross(x, y))
        turn = quat_from_matrix(matrix_from_cols(x, y, z))
        return vector(m[0, 3], m[1, 3], m[2, 3]), turn, vector(size[0] * side, size[1], size[2])
