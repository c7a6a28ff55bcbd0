"""Where the bodies, geoms, sites and cameras are that sensors look at, and how they move."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.sensor.kinds import BODY, CAMERA, GEOM, SITE, XBODY

ints = wp.array(dtype=int)


@cache
def objects(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision: ``carrier place facing turn moving``.

    An object is named by its kind, mjtObj, and its number; a body (``BODY``) is meant with its inertial frame, one of
    kind ``XBODY`` with its own.
    """
    t, a = types(real), algebra(real)
    vec3, quat, mat33, spatial = t.vec3, t.quat, t.mat33, t.spatial
    vectors, quats, matrices = wp.array2d(dtype=vec3), wp.array2d(dtype=quat), wp.array2d(dtype=mat33)
    mul_quat, pair, rotation, translation = a.mul_quat, a.pair, a.rotation, a.translation

    @wp.func
    def carrier(kind: int, i: int, geom_bodyid: ints, site_bodyid: ints, cam_bodyid: ints):
        """The body that carries an object."""
        b = i
        if kind == GEOM:
            b = geom_bodyid[i]
        elif kind == SITE:
            b = site_bodyid[i]
        elif kind == CAMERA:
            b = cam_bodyid[i]
        return b

    @wp.func
    def place(
        w: int, kind: int, i: int, xpos: vectors, xipos: vectors, geom_xpos: vectors, site_xpos: vectors,
        cam_xpos: vectors,
    ):  # fmt: skip
        """Where an object is."""
        p = vec3(real(0.0), real(0.0), real(0.0))
        if kind == XBODY:
            p = xpos[w, i]
        elif kind == BODY:
            p = xipos[w, i]
        elif kind == GEOM:
            p = geom_xpos[w, i]
        elif kind == SITE:
            p = site_xpos[w, i]
        elif kind == CAMERA:
            p = cam_xpos[w, i]
        return p

    @wp.func
    def facing(
        w: int, kind: int, i: int, xmat: matrices, ximat: matrices, geom_xmat: matrices, site_xmat: matrices,
        cam_xmat: matrices,
    ):  # fmt: skip
        """The orientation of an object, as a matrix."""
        m = mat33(
            real(1.0), real(0.0), real(0.0), real(0.0), real(1.0), real(0.0), real(0.0), real(0.0), real(1.0)
        )  # fmt: skip
        if kind == XBODY:
            m = xmat[w, i]
        elif kind == BODY:
            m = ximat[w, i]
        elif kind == GEOM:
            m = geom_xmat[w, i]
        elif kind == SITE:
            m = site_xmat[w, i]
        elif kind == CAMERA:
            m = cam_xmat[w, i]
        return m

    @wp.func
    def turn(
        w: int, kind: int, i: int, geom_bodyid: ints, site_bodyid: ints, cam_bodyid: ints, body_iquat: quats,
        geom_quat: quats, site_quat: quats, cam_quat: quats, xquat: quats,
    ):  # fmt: skip
        """The orientation of an object, as a quaternion."""
        q = quat(real(1.0), real(0.0), real(0.0), real(0.0))
        if kind == XBODY:
            q = xquat[w, i]
        elif kind == BODY:
            q = mul_quat(xquat[w, i], body_iquat[row(w, body_iquat), i])
        elif kind == GEOM:
            q = mul_quat(xquat[w, geom_bodyid[i]], geom_quat[row(w, geom_quat), i])
        elif kind == SITE:
            q = mul_quat(xquat[w, site_bodyid[i]], site_quat[row(w, site_quat), i])
        elif kind == CAMERA:
            q = mul_quat(xquat[w, cam_bodyid[i]], cam_quat[row(w, cam_quat), i])
        return q

    @wp.func
    def moving(motion: spatial, offset: vec3):
        """A motion about another point, ``offset`` away from that about which it is given."""
        return pair(rotation(motion), translation(motion) + wp.cross(rotation(motion), offset))

    return SimpleNamespace(carrier=carrier, place=place, facing=facing, turn=turn, moving=moving)


@cache
def outputs(real: Any) -> SimpleNamespace:
    """The kernel function ``put3`` that writes a vector to ``sensordata``, for one precision."""
    vec3 = types(real).vec3

    @wp.func
    def put3(w: int, at: int, v: vec3, sensordata: wp.array2d(dtype=real)):
        sensordata[w, at] = v[0]
        sensordata[w, at + 1] = v[1]
        sensordata[w, at + 2] = v[2]

    return SimpleNamespace(put3=put3)
