"""Rotations as three angles about the axes x, y, z, which are numbered 0, 1, 2."""

import math

from ..types.core import i32
from .language import atan2, cos, length, quaternion, sin, vector, where
from .patterns import Float, Quat, Vec
from .registry import builtin

PI = math.pi


def picked(v, i):
    """Component ``i`` of a vector of three."""
    return where(i == 0, v[0], where(i == 1, v[1], v[2]))


def about(axis, angle):
    """The rotation by ``angle`` about axis number ``axis``."""
    s = sin(angle * 0.5)
    zero = s * 0.0
    x, y, z = where(axis == 0, s, zero), where(axis == 1, s, zero), where(axis == 2, s, zero)
    return quaternion(x, y, z, cos(angle * 0.5))


@builtin("quaternion math")
class quat_from_euler:
    """The rotation by ``e[i]`` about axis ``i``, then ``e[j]`` about axis ``j``, then ``e[k]`` about axis ``k``.

    Angles are in radians and belong to axes, not to the order; axes are numbers 0 to 2 and stay fixed. If ``i`` = ``k``
    the first and the third angle are both ``e[i]``.

    >>> wp.quat_from_euler(wp.vec3(0.0, 0.0, 0.0), 0, 1, 2)
    quatf([0.0, 0.0, 0.0, 1.0])
    """

    def body(e: Vec(3, Float), i: i32, j: i32, k: i32) -> Quat(Float):
        return about(k, picked(e, k)) * about(j, picked(e, j)) * about(i, picked(e, i))


@builtin("quaternion math")
class quat_to_euler:
    """The angles of a rotation about the fixed axes ``i``, ``j``, ``k``, in that order: ``quat_from_euler`` backwards.

    ``e[i]`` is the first angle, ``e[j]`` the second (-π/2 to π/2; 0 to π if ``i`` = ``k``), the component left the
    third; the first and the third are from -2π to 2π. Where only their sum or difference is determined they share it
    evenly, and the derivative of the half that is not determined is 0.

    E. Bernardes and S. Viollet, "Quaternion to Euler angles conversion: a direct, general and computationally efficient
    method", 2022.

    >>> wp.quat_to_euler(wp.quat_identity(), 0, 1, 2)
    vec3f([0.0, 0.0, 0.0])
    """

    def body(q: Quat(Float), i: i32, j: i32, k: i32) -> Vec(3, Float):
        other = 3 - i - j
        u = vector(q[0], q[1], q[2])
        w = q[3]
        x = picked(u, i)
        y = picked(u, j)
        z = picked(u, other)
        z = where(j == (i + 1) % 3, z, -z)  # as if i, j and the other axis were right-handed
        cyclic = i == k
        a = where(cyclic, w, w - y)
        b = where(cyclic, x, x + z)
        c = where(cyclic, y, w + y)
        d = where(cyclic, z, z - x)
        half_sum = atan2(b, a)
        half_difference = atan2(d, c)
        # The second angle is twice that between (m, n) and the first axis, less π/2 if the axes differ.
        m = length(vector(a, b))
        n = length(vector(c, d))
        first = half_sum - half_difference
        second = 2.0 * atan2(where(cyclic, n, n - m), where(cyclic, m, n + m))
        third = half_sum + half_difference
        third = where(cyclic or j == (i + 1) % 3, third, -third)
        return vector(
            where(i == 0, first, where(j == 0, second, third)),
            where(i == 1, first, where(j == 1, second, third)),
            where(i == 2, first, where(j == 2, second, third)),
        )


def turned(angle):
    """An angle from -2π to 2π as one from -π to π."""
    return where(angle > PI, angle - 2.0 * PI, where(angle < -PI, angle + 2.0 * PI, angle))


@builtin("quaternion math")
class quat_to_rpy:
    """Roll, pitch and yaw of a rotation: the angles about the fixed axes x, y and z, in that order (radians).

    Roll and yaw are from -π to π, pitch from -π/2 to π/2; see ``quat_to_euler`` for a pitch of ±π/2.

    >>> wp.quat_to_rpy(wp.quat_identity())
    vec3f([0.0, 0.0, 0.0])
    """

    def body(q: Quat(Float)) -> Vec(3, Float):
        e = quat_to_euler(q, 0, 1, 2)
        return vector(turned(e[0]), e[1], turned(e[2]))
