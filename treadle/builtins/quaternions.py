"""Quaternions (x, y, z, w) as rotations. Only those of length 1 are rotations; none is normalised in silence."""

from ..types.annotations import type_of
from ..types.core import FLOATS, Type
from ..types.core import quaternion as quaternion_type
from .constructors import identity_quaternion
from .language import (
    abs,
    atan2,
    copysign,
    cos,
    cross,
    dot,
    length,
    matrix,
    normalize,
    quaternion,
    sin,
    sqrt,
    vector,
    where,
)
from .patterns import Float, Known, Mat, Quat, Vec
from .registry import Arg, Mismatch, builtin


def float_type(dtype: Arg) -> Type:
    """The float type that the argument ``dtype`` means; raises Mismatch if it is none."""
    t = type_of(dtype.value)
    if t not in FLOATS:
        raise Mismatch(f"argument 'dtype' must be a float type, not {dtype.show()}")
    return t


@builtin("operators", "mul")
class mul_quaternions:
    """The rotation ``b``, then the rotation ``a``: Hamilton's product.

    >>> wp.mul(wp.quat(1.0, 0.0, 0.0, 0.0), wp.quat(0.0, 1.0, 0.0, 0.0))
    quatf([0.0, 0.0, 1.0, 0.0])
    """

    def body(a: Quat(Float), b: Quat(Float)) -> Quat(Float):
        return quaternion(
            a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
            a[3] * b[1] + a[1] * b[3] + a[2] * b[0] - a[0] * b[2],
            a[3] * b[2] + a[2] * b[3] + a[0] * b[1] - a[1] * b[0],
            a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
        )


@builtin("quaternion math")
class quat_identity:
    """The rotation that turns nothing.

    >>> wp.quat_identity()
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    def sig(dtype: Known("a float type") = float): ...

    def result(dtype: Arg) -> Type:
        return quaternion_type(float_type(dtype))

    def emit(b, result, dtype):
        return identity_quaternion(b, result.elem)


@builtin("quaternion math")
class quat_inverse:
    """The rotation back: the conjugate of a unit quaternion.

    >>> wp.quat_inverse(wp.quat(1.0, 0.0, 0.0, 0.0))
    quatf([-1.0, -0.0, -0.0, 0.0])
    """

    def body(quat: Quat(Float)) -> Quat(Float):
        return quaternion(-quat[0], -quat[1], -quat[2], quat[3])


@builtin("quaternion math")
class quat_rotate:
    """The vector ``vec`` turned by ``quat``.

    For q = (u, w): ``v (2w² - 1) + 2w (u × v) + 2u (u · v)``.

    >>> wp.quat_rotate(wp.quat(0.0, 0.0, 1.0, 0.0), wp.vec3(1.0, 2.0, 3.0))
    vec3f([-1.0, -2.0, 3.0])
    """

    def body(quat: Quat(Float), vec: Vec(3, Float)) -> Vec(3, Float):
        u = vector(quat[0], quat[1], quat[2])
        w = quat[3]
        return vec * (2.0 * w * w - 1.0) + cross(u, vec) * (2.0 * w) + u * (2.0 * dot(u, vec))


@builtin("quaternion math")
class quat_rotate_inv:
    """The vector ``vec`` turned back by ``quat``.

    >>> wp.quat_rotate_inv(wp.quat(0.0, 0.0, 1.0, 0.0), wp.vec3(1.0, 2.0, 3.0))
    vec3f([-1.0, -2.0, 3.0])
    """

    def body(quat: Quat(Float), vec: Vec(3, Float)) -> Vec(3, Float):
        u = vector(quat[0], quat[1], quat[2])
        w = quat[3]
        return vec * (2.0 * w * w - 1.0) - cross(u, vec) * (2.0 * w) + u * (2.0 * dot(u, vec))


@builtin("quaternion math")
class quat_from_axis_angle:
    """The rotation by ``angle`` (radians) about ``axis``, a vector of length 1.

    >>> wp.quat_from_axis_angle(wp.vec3(0.0, 0.0, 1.0), 0.0)
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    def body(axis: Vec(3, Float), angle: Float) -> Quat(Float):
        half = angle * 0.5
        s = sin(half)
        return quaternion(axis[0] * s, axis[1] * s, axis[2] * s, cos(half))


@builtin("quaternion math")
class quat_to_axis_angle:
    """The axis and the angle, 0 to π, of a rotation; a zero axis if it turns nothing, where the derivatives are 0.

    At half a turn, where the angle has its largest value, its derivative by the last component is 0.

    >>> wp.quat_to_axis_angle(wp.quat_identity())
    (vec3f([0.0, 0.0, 0.0]), 0.0)
    """

    def body(quat: Quat(Float)) -> (Vec(3, Float), Float):
        u = vector(quat[0], quat[1], quat[2])
        w = quat[3]
        side = copysign(1.0, w)  # q and -q are one rotation; the one with w ≥ 0 turns by π at most
        return normalize(u) * side, 2.0 * atan2(length(u), abs(w))


@builtin("quaternion math", "quat_to_axis_angle")
class quat_to_axis_angle_into:
    """The same, written to the variables ``axis`` and ``angle``."""

    updates = ("axis", "angle")

    def sig(quat: Quat(Float), axis: Vec(3, Float), angle: Float) -> None: ...

    def body(quat, axis, angle):
        return quat_to_axis_angle(quat)


@builtin("quaternion math")
class quat_rpy:
    """The rotation by ``roll`` about x, then ``pitch`` about y, then ``yaw`` about z (radians, fixed axes).

    >>> wp.quat_rpy(0.0, 0.0, 0.0)
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    def body(roll: Float, pitch: Float, yaw: Float) -> Quat(Float):
        sr = sin(roll * 0.5)
        cr = cos(roll * 0.5)
        sp = sin(pitch * 0.5)
        cp = cos(pitch * 0.5)
        sy = sin(yaw * 0.5)
        cy = cos(yaw * 0.5)
        return quaternion(
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        )


@builtin("quaternion math")
class quat_to_matrix:
    """The rotation as a matrix; its columns are the turned unit vectors.

    >>> wp.quat_to_matrix(wp.quat_identity())
    mat33f([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """

    def body(quat: Quat(Float)) -> Mat(3, 3, Float):
        x = quat[0]
        y = quat[1]
        z = quat[2]
        w = quat[3]
        c = 2.0 * w * w - 1.0
        return matrix(
            c + 2.0 * x * x, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
            2.0 * (x * y + w * z), c + 2.0 * y * y, 2.0 * (y * z - w * x),
            2.0 * (x * z - w * y), 2.0 * (y * z + w * x), c + 2.0 * z * z,
            shape=(3, 3),
        )  # fmt: skip


@builtin("quaternion math")
class quat_from_matrix:
    """The rotation that a rotation matrix stands for.

    Of the four components the largest is found first, then the others from it, so that nothing cancels
    (S. Shepperd, "Quaternion from rotation matrix", 1978).

    >>> wp.quat_from_matrix(wp.identity(n=3, dtype=float))
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    def body(mat: Mat(3, 3, Float)) -> Quat(Float):
        t = mat[0, 0] + mat[1, 1] + mat[2, 2]
        x = mat[2, 1] - mat[1, 2]
        y = mat[0, 2] - mat[2, 0]
        z = mat[1, 0] - mat[0, 1]
        w = 1.0 + t
        if t < 0.0:
            if mat[0, 0] >= mat[1, 1] and mat[0, 0] >= mat[2, 2]:
                w = x
                x = 1.0 + mat[0, 0] - mat[1, 1] - mat[2, 2]
                y = mat[0, 1] + mat[1, 0]
                z = mat[0, 2] + mat[2, 0]
            elif mat[1, 1] >= mat[2, 2]:
                w = y
                x = mat[0, 1] + mat[1, 0]
                y = 1.0 - mat[0, 0] + mat[1, 1] - mat[2, 2]
                z = mat[1, 2] + mat[2, 1]
            else:
                w = z
                x = mat[0, 2] + mat[2, 0]
                y = mat[1, 2] + mat[2, 1]
                z = 1.0 - mat[0, 0] - mat[1, 1] + mat[2, 2]
        return normalize(quaternion(x, y, z, w))


@builtin("quaternion math", "quat_from_matrix")
class quat_from_matrix4:
    """The rotation in the upper left of a 4 × 4 matrix.

    >>> wp.quat_from_matrix(wp.identity(n=4, dtype=float))
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    def body(mat: Mat(4, 4, Float)) -> Quat(Float):
        x, y, z = mat[0], mat[1], mat[2]
        return quat_from_matrix(matrix(x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2], shape=(3, 3)))


@builtin("quaternion math")
class quat_slerp:
    """The rotation a share ``t`` of the way from ``a`` to ``b``, along the shorter arc and at constant speed.

    The rotation from ``a`` to ``b`` is ``(u, w)`` with half its angle φ between |u| and w; to a share of it belong
    ``u sin(t φ)/|u|``, whose limit is ``t u``, and ``cos(t φ)``.

    >>> wp.quat_slerp(wp.quat_identity(), wp.quat_identity(), 0.5)
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    def body(a: Quat(Float), b: Quat(Float), t: Float) -> Quat(Float):
        way = quat_inverse(a) * b
        side = copysign(1.0, way[3])  # q and -q are one rotation; the one with w ≥ 0 turns by π at most
        u = vector(way[0], way[1], way[2]) * side
        size = length(u)
        half = t * atan2(size, way[3] * side)
        share = where(size > 0.0, sin(half) / where(size > 0.0, size, 1.0), t)
        return a * quaternion(u[0] * share, u[1] * share, u[2] * share, cos(half))


@builtin("quaternion math")
class quat_twist:
    """The part of a rotation that turns about ``axis``, a vector of length 1; the rest turns ``axis`` itself.

    >>> wp.quat_twist(wp.vec3(0.0, 0.0, 1.0), wp.quat_identity())
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    def body(axis: Vec(3, Float), q: Quat(Float)) -> Quat(Float):
        a = axis * dot(axis, vector(q[0], q[1], q[2]))
        return normalize(quaternion(a[0], a[1], a[2], q[3]))


@builtin("quaternion math")
class quat_twist_angle:
    """The angle, 0 to 2π, by which a rotation turns about ``axis``, a vector of length 1. Its derivative at 0 is 0.

    >>> wp.quat_twist_angle(wp.vec3(0.0, 0.0, 1.0), wp.quat_identity())
    0.0
    """

    def body(axis: Vec(3, Float), q: Quat(Float)) -> Float:
        return 2.0 * atan2(abs(dot(axis, vector(q[0], q[1], q[2]))), q[3])


@builtin("quaternion math")
class quat_twist_angle_signed:
    """The angle, -2π to 2π, by which a rotation turns about ``axis``; positive where it turns with it.

    >>> wp.quat_twist_angle_signed(wp.vec3(0.0, 0.0, 1.0), wp.quat_identity())
    0.0
    """

    def body(axis: Vec(3, Float), q: Quat(Float)) -> Float:
        return 2.0 * atan2(dot(axis, vector(q[0], q[1], q[2])), q[3])


@builtin("quaternion math")
class quat_between_vectors:
    """The smallest rotation that turns the direction of ``a`` into that of ``b``.

    ``(a × b, |a||b| + a · b)``, normalised; half a turn about a perpendicular axis where they point in opposite ways.

    >>> wp.quat_between_vectors(wp.vec3(0.0, 1.0, 0.0), wp.vec3(0.0, -1.0, 0.0))
    quatf([0.0, -0.0, 1.0, 0.0])
    """

    def body(a: Vec(3, Float), b: Vec(3, Float)) -> Quat(Float):
        size = sqrt(dot(a, a) * dot(b, b))
        w = size + dot(a, b)
        axis = cross(a, b)
        if w < 1.0e-6 * size:  # opposite: any axis at right angles to a, away from its largest component
            w = w * 0.0
            if abs(a[0]) > abs(a[2]):
                axis = vector(-a[1], a[0], a[2] * 0.0)
            else:
                axis = vector(a[0] * 0.0, -a[2], a[1])
        return normalize(quaternion(axis[0], axis[1], axis[2], w))
