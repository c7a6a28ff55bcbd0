"""Quaternions, rotations and spatial vectors as kernel functions, for one precision.

Conventions are MuJoCo's. A quaternion is stored as (w, x, y, z). A spatial vector is (rotation, translation), a
motion or a force by use. A rigid body's inertia is ten numbers ``(Ixx Iyy Izz Ixy Ixz Iyz  mx my mz  m)``: the
rotational inertia about a reference point, mass times the offset of the centre of mass from that point, and the mass;
ten numbers because the inertias of bodies about one point add up component by component.

Spatial algebra follows R. Featherstone, *Rigid Body Dynamics Algorithms* (2008), chapter 2.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.constants import MINVAL
from treadle.types.core import Type, View
from treadle.types.limits import Limit, OpenType

COMPONENTS = {
    "int": 1, "real": 1, "vec2": 2, "vec3": 3, "vec4": 4, "vec5": 5, "quat": 4, "mat33": 9, "spatial": 6,
    "inertia": 10, "spec": 13, "double": 1,
}  # fmt: skip


class Rows(OpenType):
    """An annotation: arrays with a row for each world (``own``), or with one row for all worlds.

    The array's layout tells: the rows of worlds lie side by side, so that the type knows the first stride; of
    an array with one row it does not (`fields.Fields.allocate`).
    """

    __slots__ = ("own",)

    def __init__(self, own: bool):
        self.own = own
        self.limit = Limit(self.fits, "rows", own)

    def fits(self, t: Type) -> bool:
        """Whether arrays of type ``t`` are meant."""
        return isinstance(t, View) and (t.strides[0] is not None) is self.own

    def __repr__(self) -> str:
        return f"Rows(own={self.own})"


@wp.func
def row(w: int, field: Rows(own=False)):
    """Where a field of the model has the values of world ``w``: ``field[row(w, field), i]``.

    A constant 0, and the access uniform, as long as all worlds share the field; ``w``, and the access contiguous,
    once each has values of its own. The type of the array decides, so kernels are compiled anew where fields differ.
    """
    return 0


@wp.func
def row(w: int, field: Rows(own=True)):  # noqa: F811
    return w


@wp.func(inline=True)
def index(i: int):
    """A number from a table of indices. It is not negative, so that nobody need ask whether it counts from the end."""
    return wp.max(i, 0)


@cache
def types(real: Any) -> SimpleNamespace:
    """The value types of one precision: ``real vec2 vec3 vec4 vec5 quat mat33 spatial inertia``; ``double`` in both."""
    double = real is wp.float64
    return SimpleNamespace(
        real=real,
        double=wp.float64,
        vec2=wp.vec2d if double else wp.vec2,
        vec3=wp.vec3d if double else wp.vec3,
        vec4=wp.vec4d if double else wp.vec4,
        vec5=wp.types.vector(length=5, dtype=real),
        quat=wp.quatd if double else wp.quat,
        mat33=wp.mat33d if double else wp.mat33,
        spatial=wp.spatial_vectord if double else wp.spatial_vector,
        inertia=wp.types.vector(length=10, dtype=real),
        spec=wp.types.vector(length=13, dtype=real),  # what is known of a row of constraints (`constraint.rows`)
    )


@cache
def algebra(real: Any) -> SimpleNamespace:
    """The kernel functions of this module for ``real`` (``wp.float32`` or ``wp.float64``), as attributes."""
    turns = _rotations(real)
    return SimpleNamespace(**turns, **_spatial(real), **_about_axes(real, turns["mul_quat"], turns["turn_quat"]))


def _rotations(real: Any) -> dict[str, Any]:
    t = types(real)
    vec3, quat, mat33 = t.vec3, t.quat, t.mat33

    @wp.func
    def mul_quat(a: quat, b: quat):
        return quat(
            a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
        )

    @wp.func
    def turn_quat(axis: vec3, angle: real):
        """The rotation by ``angle`` about a unit axis."""
        half = angle * real(0.5)
        s = wp.sin(half)
        return quat(wp.cos(half), axis[0] * s, axis[1] * s, axis[2] * s)

    @wp.func
    def unit_quat(q: quat):
        scale = real(1.0) / wp.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
        return quat(q[0] * scale, q[1] * scale, q[2] * scale, q[3] * scale)

    @wp.func
    def quat_to_mat(q: quat):
        """The rotation matrix of a unit quaternion."""
        one = real(1.0)
        x2, y2, z2 = q[1] + q[1], q[2] + q[2], q[3] + q[3]
        wx, wy, wz = x2 * q[0], y2 * q[0], z2 * q[0]
        xx, xy, xz = x2 * q[1], y2 * q[1], z2 * q[1]
        yy, yz, zz = y2 * q[2], z2 * q[2], z2 * q[3]
        return mat33(
            one - (yy + zz), xy - wz, xz + wy,
            xy + wz, one - (xx + zz), yz - wx,
            xz - wy, yz + wx, one - (xx + yy),
        )  # fmt: skip

    @wp.func
    def column(m: mat33, k: int):
        """Column ``k`` of a rotation: where the frame's axis points."""
        return vec3(m[0, k], m[1, k], m[2, k])

    @wp.func
    def turn_vec(q: quat, v: vec3):
        """``v`` turned by a unit quaternion."""
        return quat_to_mat(q) * v

    @wp.func
    def conj_quat(q: quat):
        return quat(q[0], -q[1], -q[2], -q[3])

    @wp.func
    def quat_to_vel(q: quat):
        """The rotation vector of a unit quaternion: its axis times its angle, which is at most a half turn."""
        axis = vec3(q[1], q[2], q[3])
        s = wp.length(axis)
        if s > real(MINVAL):
            axis = axis / s
        else:
            axis = vec3(real(1.0), real(0.0), real(0.0))
        angle = real(2.0) * wp.atan2(s, q[0])
        if angle > real(wp.PI):
            angle = angle - real(2.0 * wp.PI)
        return axis * angle

    @wp.func
    def sub_quat(a: quat, b: quat):
        """The rotation vector, in the frame of ``b``, that turns ``b`` to ``a``."""
        return quat_to_vel(mul_quat(conj_quat(b), a))

    @wp.func
    def integrate_quat(q: quat, omega: vec3, h: real):
        """``q`` turned by the angular velocity ``omega``, in its own frame, during ``h``."""
        speed = wp.length(omega)
        axis = vec3(real(1.0), real(0.0), real(0.0))
        if speed > real(MINVAL):
            axis = omega / speed
        return mul_quat(unit_quat(q), turn_quat(axis, h * speed))

    @wp.func
    def rate_of_rotation(r: vec3, omega: vec3):
        """How fast the rotation vector ``r`` changes when what it turns rotates by ``omega``, in the turned frame.

        J. E. Bortz (1971): ``omega + r x omega / 2 + c r x (r x omega)``, ``c = (1 - (x/2) cot(x/2)) / x²``, x = |r|;
        c by its series where that is exact to the last digits.
        """
        square = wp.dot(r, r)
        x = wp.sqrt(square)
        if x > real(wp.PI):  # the same rotation by a smaller angle
            r = r * ((x - real(2.0 * wp.PI) * wp.floor(x / real(2.0 * wp.PI) + real(0.5))) / x)
            square = wp.dot(r, r)
            x = wp.sqrt(square)
        c = real(1.0 / 12.0) + square * (
            real(1.0 / 720.0) + square * (real(1.0 / 30240.0) + square * (real(1.0 / 1209600.0)
            + square * real(1.0 / 47900160.0)))
        )  # fmt: skip
        if square > real(0.04):
            half = real(0.5) * x
            c = (real(1.0) - half * wp.cos(half) / wp.sin(half)) / square
        across = wp.cross(r, omega)
        return omega + real(0.5) * across + c * wp.cross(r, across)

    return dict(
        rate_of_rotation=rate_of_rotation,
        mul_quat=mul_quat,
        turn_quat=turn_quat,
        unit_quat=unit_quat,
        quat_to_mat=quat_to_mat,
        column=column,
        turn_vec=turn_vec,
        conj_quat=conj_quat,
        quat_to_vel=quat_to_vel,
        sub_quat=sub_quat,
        integrate_quat=integrate_quat,
    )


def _about_axes(real: Any, mul_quat: wp.Function, turn_quat: wp.Function) -> dict[str, Any]:
    """Turn about an axis of the body, and where that axis points: ``spin[k](q, axis, angle)``, ``along[k](mat, axis)``.

    ``k`` is 0, 1 or 2 for the axes x, y and z, which take half the work, and -1 (the last) for any unit ``axis``.
    """
    t = types(real)
    vec3, quat, mat33 = t.vec3, t.quat, t.mat33

    def about(k: int) -> tuple[wp.Function, wp.Function]:
        i, j, l = 1 + k, 1 + (k + 1) % 3, 1 + (k + 2) % 3

        @wp.func(inline=True)
        def spin(q: quat, axis: vec3, angle: real):
            half = angle * real(0.5)
            s, c = wp.sin(half), wp.cos(half)
            turned = quat(q[0] * c - q[i] * s, real(0.0), real(0.0), real(0.0))
            turned[i] = q[i] * c + q[0] * s
            turned[j] = q[j] * c + q[l] * s
            turned[l] = q[l] * c - q[j] * s
            return turned

        @wp.func
        def along(mat: mat33, axis: vec3):
            return vec3(mat[0, k], mat[1, k], mat[2, k])

        return spin, along

    @wp.func
    def spin_any(q: quat, axis: vec3, angle: real):
        return mul_quat(q, turn_quat(axis, angle))

    @wp.func
    def along_any(mat: mat33, axis: vec3):
        return mat * axis

    (sx, ax), (sy, ay), (sz, az) = about(0), about(1), about(2)
    return dict(spin=(sx, sy, sz, spin_any), along=(ax, ay, az, along_any))


def _spatial(real: Any) -> dict[str, Any]:
    t = types(real)
    vec3, mat33, spatial, inertia = t.vec3, t.mat33, t.spatial, t.inertia

    @wp.func
    def pair(rotation: vec3, translation: vec3):
        return spatial(rotation[0], rotation[1], rotation[2], translation[0], translation[1], translation[2])

    @wp.func
    def rotation(s: spatial):
        return vec3(s[0], s[1], s[2])

    @wp.func
    def translation(s: spatial):
        return vec3(s[3], s[4], s[5])

    @wp.func
    def cross_motion(v: spatial, m: spatial):
        """Rate of change of a motion ``m`` carried along by the velocity ``v`` (Featherstone 2.31)."""
        w = rotation(v)
        return pair(
            wp.cross(w, rotation(m)),
            wp.cross(w, translation(m)) + wp.cross(translation(v), rotation(m)),
        )

    @wp.func
    def cross_force(v: spatial, f: spatial):
        """Rate of change of a force ``f`` carried along by the velocity ``v`` (Featherstone 2.32)."""
        w = rotation(v)
        return pair(
            wp.cross(w, rotation(f)) + wp.cross(translation(v), translation(f)),
            wp.cross(w, translation(f)),
        )

    @wp.func(inline=True)
    def mul_inertia(i: inertia, v: spatial):
        """Momentum of a body that moves with ``v = (w, u)``: ``(I w + mc x u, m u - mc x w)`` (Featherstone 2.63)."""
        w, u = rotation(v), translation(v)
        mc = vec3(i[6], i[7], i[8])
        turned = vec3(
            i[0] * w[0] + i[3] * w[1] + i[4] * w[2],
            i[3] * w[0] + i[1] * w[1] + i[5] * w[2],
            i[4] * w[0] + i[5] * w[1] + i[2] * w[2],
        )
        return pair(turned + wp.cross(mc, u), i[9] * u - wp.cross(mc, w))

    @wp.func
    def push_at(xfrc: spatial, offset: vec3):
        """MuJoCo's (force, torque) at ``offset`` from the reference point, as a spatial force about that point."""
        force, torque = rotation(xfrc), translation(xfrc)
        return pair(torque + wp.cross(offset, force), force)

    @wp.func(inline=True)
    def place_inertia(principal: vec3, mat: mat33, offset: vec3, mass: real):
        """Ten numbers of a body: principal moments along the axes of ``mat``, centre of mass at ``offset``.

        The parallel axis theorem: ``R diag(p) R' + m (|o|^2 1 - o o')``.
        """
        x = vec3(mat[0, 0] * principal[0], mat[0, 1] * principal[1], mat[0, 2] * principal[2])
        y = vec3(mat[1, 0] * principal[0], mat[1, 1] * principal[1], mat[1, 2] * principal[2])
        z = vec3(mat[2, 0] * principal[0], mat[2, 1] * principal[1], mat[2, 2] * principal[2])
        row0 = vec3(mat[0, 0], mat[0, 1], mat[0, 2])
        row1 = vec3(mat[1, 0], mat[1, 1], mat[1, 2])
        row2 = vec3(mat[2, 0], mat[2, 1], mat[2, 2])
        mo = mass * offset
        return inertia(
            wp.dot(x, row0) + (mo[1] * offset[1] + mo[2] * offset[2]),
            wp.dot(y, row1) + (mo[0] * offset[0] + mo[2] * offset[2]),
            wp.dot(z, row2) + (mo[0] * offset[0] + mo[1] * offset[1]),
            wp.dot(x, row1) - mo[0] * offset[1],
            wp.dot(x, row2) - mo[0] * offset[2],
            wp.dot(y, row2) - mo[1] * offset[2],
            mo[0], mo[1], mo[2], mass,
        )  # fmt: skip

    return dict(
        pair=pair,
        rotation=rotation,
        translation=translation,
        cross_motion=cross_motion,
        cross_force=cross_force,
        mul_inertia=mul_inertia,
        push_at=push_at,
        place_inertia=place_inertia,
    )
