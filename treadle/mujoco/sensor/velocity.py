"""Sensors of velocities: the stage sensor_vel."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, types
from treadle.mujoco.sensor.kinds import KIND
from treadle.mujoco.sensor.objects import objects, outputs

ints = wp.array(dtype=int)

VELOCIMETER, GYRO, JOINTVEL, TENDONVEL = KIND.VELOCIMETER, KIND.GYRO, KIND.JOINTVEL, KIND.TENDONVEL
ACTUATORVEL, BALLANGVEL, E_KINETIC = KIND.ACTUATORVEL, KIND.BALLANGVEL, KIND.E_KINETIC
FRAMELINVEL, FRAMEANGVEL = KIND.FRAMELINVEL, KIND.FRAMEANGVEL
SUBTREELINVEL, SUBTREEANGMOM = KIND.SUBTREELINVEL, KIND.SUBTREEANGMOM


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    t, a, o, put3 = types(real), algebra(real), objects(real), outputs(real).put3
    vec3, mat33, spatial = t.vec3, t.mat33, t.spatial
    carrier, place, facing, moving, rotation, translation = (
        o.carrier, o.place, o.facing, o.moving, a.rotation, a.translation,
    )  # fmt: skip

    @wp.kernel
    def sensor_vel(
        sensor_type: ints, sensor_objtype: ints, sensor_objid: ints, sensor_reftype: ints, sensor_refid: ints,
        sensor_adr: ints, jnt_dofadr: ints, actuator_outadr: ints, geom_bodyid: ints, site_bodyid: ints,
        cam_bodyid: ints, body_rootid: ints, qvel: wp.array2d(dtype=real), xpos: wp.array2d(dtype=vec3),
        xmat: wp.array2d(dtype=mat33), xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33),
        geom_xpos: wp.array2d(dtype=vec3), geom_xmat: wp.array2d(dtype=mat33), site_xpos: wp.array2d(dtype=vec3),
        site_xmat: wp.array2d(dtype=mat33), cam_xpos: wp.array2d(dtype=vec3), cam_xmat: wp.array2d(dtype=mat33),
        subtree_com: wp.array2d(dtype=vec3), cvel: wp.array2d(dtype=spatial), ten_velocity: wp.array2d(dtype=real),
        actuator_velocity: wp.array2d(dtype=real), energy: wp.array2d(dtype=real),
        subtree_linvel: wp.array2d(dtype=vec3), subtree_angmom: wp.array2d(dtype=vec3),
        sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Velocities of joints, tendons, actuators, of objects and of subtrees."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            kind, i, at = sensor_type[s], sensor_objid[s], sensor_adr[s]
            what, reftype, ref = sensor_objtype[s], sensor_reftype[s], sensor_refid[s]
            if kind == JOINTVEL:
                sensordata[w, at] = qvel[w, jnt_dofadr[i]]
            elif kind == TENDONVEL:
                sensordata[w, at] = ten_velocity[w, i]
            elif kind == ACTUATORVEL:
                sensordata[w, at] = actuator_velocity[w, actuator_outadr[i]]
            elif kind == BALLANGVEL:
                for k in range(3):
                    sensordata[w, at + k] = qvel[w, jnt_dofadr[i] + k]
            elif kind == E_KINETIC:
                sensordata[w, at] = energy[w, 1]
            elif kind == SUBTREELINVEL:
                put3(w, at, subtree_linvel[w, i], sensordata)
            elif kind == SUBTREEANGMOM:
                put3(w, at, subtree_angmom[w, i], sensordata)
            elif kind == VELOCIMETER or kind == GYRO or kind == FRAMELINVEL or kind == FRAMEANGVEL:
                b = carrier(what, i, geom_bodyid, site_bodyid, cam_bodyid)
                p = place(w, what, i, xpos, xipos, geom_xpos, site_xpos, cam_xpos)
                v = moving(cvel[w, b], p - subtree_com[w, body_rootid[b]])
                m = facing(w, what, i, xmat, ximat, geom_xmat, site_xmat, cam_xmat)
                linear, angular = translation(v), rotation(v)
                if kind == FRAMELINVEL or kind == FRAMEANGVEL:
                    if ref >= 0:  # as seen from an object that moves and turns itself
                        b = carrier(reftype, ref, geom_bodyid, site_bodyid, cam_bodyid)
                        q = place(w, reftype, ref, xpos, xipos, geom_xpos, site_xpos, cam_xpos)
                        u = moving(cvel[w, b], q - subtree_com[w, body_rootid[b]])
                        m = facing(w, reftype, ref, xmat, ximat, geom_xmat, site_xmat, cam_xmat)
                        linear = linear - translation(u) + wp.cross(p - q, rotation(u))
                        angular = angular - rotation(u)
                if (kind != FRAMELINVEL and kind != FRAMEANGVEL) or ref >= 0:
                    linear = wp.transpose(m) * linear
                    angular = wp.transpose(m) * angular
                if kind == VELOCIMETER or kind == FRAMELINVEL:
                    put3(w, at, linear, sensordata)
                else:
                    put3(w, at, angular, sensordata)

    return dict(sensor_vel=sensor_vel)
