"""How actuators act: their lengths, their moments, which are the lengths' derivatives, and their velocities."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constants import (
    BALL,
    FREE,
    TRN_JOINT,
    TRN_JOINTINPARENT,
)

ints = wp.array(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_transmission(real), **_velocity(real)}


def _transmission(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, quat, spatial = t.vec3, t.quat, t.spatial
    unit_quat, quat_to_vel, quat_to_mat = a.unit_quat, a.quat_to_vel, a.quat_to_mat

    @wp.kernel
    def transmission(
        actuator_trntype: ints, actuator_trnid: wp.array2d(dtype=int), actuator_gear: wp.array2d(dtype=spatial),
        moment_rowadr: ints, jnt_type: ints, jnt_qposadr: ints, qpos: wp.array2d(dtype=real),
        actuator_length: wp.array2d(dtype=real), actuator_moment: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Lengths and moments of actuators: of joints for now the gear times the position."""
        w = wp.tid()
        for u in range(actuator_trntype.shape[0]):
            kind = actuator_trntype[u]
            gear = actuator_gear[row(w, actuator_gear), u]
            e = moment_rowadr[u]
            length = real(0.0)
            if kind == TRN_JOINT or kind == TRN_JOINTINPARENT:
                j = actuator_trnid[u, 0]
                q = jnt_qposadr[j]
                if jnt_type[j] == FREE:
                    turning = vec3(gear[3], gear[4], gear[5])
                    if kind == TRN_JOINTINPARENT:
                        turn = unit_quat(quat(qpos[w, q + 3], qpos[w, q + 4], qpos[w, q + 5], qpos[w, q + 6]))
                        turning = wp.transpose(quat_to_mat(turn)) * turning
                    for k in range(3):
                        actuator_moment[w, e + k] = gear[k]
                        actuator_moment[w, e + 3 + k] = turning[k]
                elif jnt_type[j] == BALL:
                    turn = unit_quat(quat(qpos[w, q], qpos[w, q + 1], qpos[w, q + 2], qpos[w, q + 3]))
                    way = vec3(gear[0], gear[1], gear[2])
                    if kind == TRN_JOINTINPARENT:
                        way = wp.transpose(quat_to_mat(turn)) * way
                    length = wp.dot(way, quat_to_vel(turn))
                    for k in range(3):
                        actuator_moment[w, e + k] = way[k]
                else:
                    length = gear[0] * qpos[w, q]
                    actuator_moment[w, e] = gear[0]
            actuator_length[w, u] = length

    return dict(transmission=transmission)


def _velocity(real: Any) -> dict[str, wp.Kernel]:
    @wp.kernel
    def actuator_vel(
        moment_rowadr: ints, moment_rownnz: ints, moment_colind: ints, actuator_moment: wp.array2d(dtype=real),
        qvel: wp.array2d(dtype=real), actuator_velocity: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Velocity of each actuator: its moments times the velocities of joints."""
        w = wp.tid()
        for u in range(moment_rowadr.shape[0]):
            speed = real(0.0)
            for e in range(moment_rowadr[u], moment_rowadr[u] + moment_rownnz[u]):
                speed = speed + actuator_moment[w, e] * qvel[w, moment_colind[e]]
            actuator_velocity[w, u] = speed

    return dict(actuator_vel=actuator_vel)
