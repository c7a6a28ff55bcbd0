"""How points and frames of bodies move with each degree of freedom, and how that changes in time."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, types
from treadle.mujoco.constants import BALL, FREE

ints = wp.array(dtype=int)


@cache
def jacobians(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision: ``at_point``, ``motion_rate``, ``rate_at_point``.

    A column of ``cdof`` is the motion of a body per unit velocity of a degree of freedom, about the centre of mass of
    its tree; ``offset`` is the point as seen from there.
    """
    t, a = types(real), algebra(real)
    vec3, spatial = t.vec3, t.spatial
    rotation, translation, cross_motion = a.rotation, a.translation, a.cross_motion

    @wp.func
    def at_point(motion: spatial, offset: vec3):
        """Velocity of a point, fixed to a body that moves with ``motion``."""
        return translation(motion) + wp.cross(rotation(motion), offset)

    @wp.func
    def turns(k: int, jnt_type: ints, jnt_dofadr: ints, dof_jntid: ints):
        """Whether degree of freedom ``k`` is one of three of a ball, which turn about axes of the moving body."""
        j = dof_jntid[k]
        return jnt_type[j] == BALL or (jnt_type[j] == FREE and k >= jnt_dofadr[j] + 3)

    @wp.func
    def motion_rate(
        w: int, k: int, jnt_type: ints, jnt_dofadr: ints, dof_jntid: ints, dof_bodyid: ints,
        cdof: wp.array2d(dtype=spatial), cdof_dot: wp.array2d(dtype=spatial), cvel: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """Rate of change of ``cdof``: axes of balls are carried by the body itself, all others by its parent."""
        rate = cdof_dot[w, k]
        if turns(k, jnt_type, jnt_dofadr, dof_jntid):
            rate = cross_motion(cvel[w, dof_bodyid[k]], cdof[w, k])
        return rate

    @wp.func
    def rate_at_point(motion: spatial, rate: spatial, offset: vec3, velocity: vec3):
        """Rate of change of `at_point` for a point that moves with ``velocity``."""
        turned = translation(rate) + wp.cross(rotation(rate), offset)
        return turned + wp.cross(rotation(motion), velocity)

    return SimpleNamespace(at_point=at_point, rate_at_point=rate_at_point, motion_rate=motion_rate)
