"""Spatial vectors: six numbers, the angular part first, for motions (ω, v) and for forces (τ, f).

R. Featherstone, *Rigid Body Dynamics Algorithms*, 2008, chapter 2.
"""

from .language import (
    cross,
    matrix,
    quat_rotate,
    transform_get_rotation,
    transform_get_translation,
    vector,
)
from .patterns import Float, Mat, Transform, Vec
from .registry import builtin


@builtin("spatial math")
class spatial_top:
    """The first three components: angular velocity, or torque.

    >>> wp.spatial_top(wp.spatial_vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    vec3f([1.0, 2.0, 3.0])
    """

    def body(svec: Vec(6, Float)) -> Vec(3, Float):
        return vector(svec[0], svec[1], svec[2])


@builtin("spatial math")
class spatial_bottom:
    """The last three components: linear velocity, or force.

    >>> wp.spatial_bottom(wp.spatial_vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    vec3f([4.0, 5.0, 6.0])
    """

    def body(svec: Vec(6, Float)) -> Vec(3, Float):
        return vector(svec[3], svec[4], svec[5])


@builtin("spatial math")
class spatial_dot:
    """The dot product of two spatial vectors; of a force and a motion: power.

    >>> wp.spatial_dot(wp.spatial_vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), wp.spatial_vector(1.0, 1.0, 1.0, 1.0, 1.0, 1.0))
    21.0
    """

    def body(a: Vec(6, Float), b: Vec(6, Float)) -> Float:
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]


@builtin("spatial math")
class spatial_cross:
    """The cross product of two motions: ``(ωa × ωb, va × ωb + ωa × vb)``.

    >>> a = wp.spatial_vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    >>> wp.spatial_cross(a, wp.spatial_vector(2.0, 1.0, 0.0, 1.0, 5.0, 7.0))
    spatial_vectorf([-3.0, 6.0, -3.0, -7.0, 8.0, -3.0])
    """

    def body(a: Vec(6, Float), b: Vec(6, Float)) -> Vec(6, Float):
        w = cross(spatial_top(a), spatial_top(b))
        v = cross(spatial_bottom(a), spatial_top(b)) + cross(spatial_top(a), spatial_bottom(b))
        return vector(w[0], w[1], w[2], v[0], v[1], v[2])


@builtin("spatial math")
class spatial_cross_dual:
    """The cross product of a motion and a force: ``(ω × τ + v × f, ω × f)``.

    >>> force = wp.spatial_vector(2.0, 1.0, 0.0, 1.0, 5.0, 7.0)
    >>> wp.spatial_cross_dual(wp.spatial_vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), force)
    spatial_vectorf([2.0, -16.0, 12.0, -1.0, -4.0, 3.0])
    """

    def body(a: Vec(6, Float), b: Vec(6, Float)) -> Vec(6, Float):
        w = cross(spatial_top(a), spatial_top(b)) + cross(spatial_bottom(a), spatial_bottom(b))
        v = cross(spatial_top(a), spatial_bottom(b))
        return vector(w[0], w[1], w[2], v[0], v[1], v[2])


@builtin("spatial math")
class velocity_at_point:
    """The velocity of the point ``r`` of a body that moves by ``qd``: ``ω × r + v``.

    >>> wp.velocity_at_point(wp.spatial_vector(0.0, 0.0, 1.0, 0.0, 0.0, 0.0), wp.vec3(1.0, 0.0, 0.0))
    vec3f([0.0, 1.0, 0.0])
    """

    def body(qd: Vec(6, Float), r: Vec(3, Float)) -> Vec(3, Float):
        return cross(spatial_top(qd), r) + spatial_bottom(qd)


@builtin("spatial math")
class transform_twist:
    """A motion seen from another frame: ``(q ω, q v + p × q ω)``.

    >>> wp.transform_twist(wp.transform_identity(), wp.spatial_vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    spatial_vectorf([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    """

    def body(t: Transform(Float), x: Vec(6, Float)) -> Vec(6, Float):
        turn = transform_get_rotation(t)
        w = quat_rotate(turn, spatial_top(x))
        v = quat_rotate(turn, spatial_bottom(x)) + cross(transform_get_translation(t), w)
        return vector(w[0], w[1], w[2], v[0], v[1], v[2])


@builtin("spatial math")
class transform_wrench:
    """A force seen from another frame: ``(q τ + p × q f, q f)``.

    >>> wp.transform_wrench(wp.transform_identity(), wp.spatial_vector(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    spatial_vectorf([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    """

    def body(t: Transform(Float), x: Vec(6, Float)) -> Vec(6, Float):
        turn = transform_get_rotation(t)
        v = quat_rotate(turn, spatial_bottom(x))
        w = quat_rotate(turn, spatial_top(x)) + cross(transform_get_translation(t), v)
        return vector(w[0], w[1], w[2], v[0], v[1], v[2])


@builtin("spatial math")
class spatial_adjoint:
    """The 6 × 6 matrix ``[[r, 0], [s, r]]``, which takes motions from one frame to another.

    >>> wp.spatial_adjoint(wp.identity(n=3, dtype=float), wp.identity(n=3, dtype=float))[3]
    spatial_vectorf([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    """

    def body(r: Mat(3, 3, Float), s: Mat(3, 3, Float)) -> Mat(6, 6, Float):
        return matrix(
            r[0, 0], r[0, 1], r[0, 2], 0.0, 0.0, 0.0,
            r[1, 0], r[1, 1], r[1, 2], 0.0, 0.0, 0.0,
            r[2, 0], r[2, 1], r[2, 2], 0.0, 0.0, 0.0,
            s[0, 0], s[0, 1], s[0, 2], r[0, 0], r[0, 1], r[0, 2],
            s[1, 0], s[1, 1], s[1, 2], r[1, 0], r[1, 1], r[1, 2],
            s[2, 0], s[2, 1], s[2, 2], r[2, 0], r[2, 1], r[2, 2],
            shape=(6, 6),
        )  # fmt: skip
