"""Sensors of positions: the stage sensor_pos."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.sensor.kinds import KIND
from treadle.mujoco.sensor.objects import objects, outputs
from treadle.mujoco.sensor.shapes import shapes

ints = wp.array(dtype=int)

MAGNETOMETER, JOINTPOS, TENDONPOS, ACTUATORPOS = KIND.MAGNETOMETER, KIND.JOINTPOS, KIND.TENDONPOS, KIND.ACTUATORPOS
FRAMEPOS, FRAMEQUAT, SUBTREECOM, INSIDESITE = KIND.FRAMEPOS, KIND.FRAMEQUAT, KIND.SUBTREECOM, KIND.INSIDESITE
XAXIS, YAXIS, ZAXIS, BALLQUAT = KIND.FRAMEXAXIS, KIND.FRAMEYAXIS, KIND.FRAMEZAXIS, KIND.BALLQUAT
E_POTENTIAL, CLOCK = KIND.E_POTENTIAL, KIND.CLOCK


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {"sensor_scalar_pos": _scalars(real), "sensor_frame_pos": _frames(real)}


def _scalars(real: Any) -> wp.Kernel:
    unit_quat, quat = algebra(real).unit_quat, types(real).quat

    @wp.kernel
    def sensor_scalar_pos(
        sensor_type: ints, sensor_objid: ints, sensor_adr: ints, jnt_qposadr: ints, actuator_outadr: ints,
        time: wp.array(dtype=real), qpos: wp.array2d(dtype=real), ten_length: wp.array2d(dtype=real),
        actuator_length: wp.array2d(dtype=real), energy: wp.array2d(dtype=real),
        sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Joints, tendons, actuators, potential energy and time."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            kind, i, at = sensor_type[s], sensor_objid[s], sensor_adr[s]
            if kind == JOINTPOS:
                sensordata[w, at] = qpos[w, jnt_qposadr[i]]
            elif kind == TENDONPOS:
                sensordata[w, at] = ten_length[w, i]
            elif kind == ACTUATORPOS:
                sensordata[w, at] = actuator_length[w, actuator_outadr[i]]
            elif kind == BALLQUAT:
                q = jnt_qposadr[i]
                turn = unit_quat(quat(qpos[w, q], qpos[w, q + 1], qpos[w, q + 2], qpos[w, q + 3]))
                for k in range(4):
                    sensordata[w, at + k] = turn[k]
            elif kind == E_POTENTIAL:
                sensordata[w, at] = energy[w, 0]
            elif kind == CLOCK:
                sensordata[w, at] = time[w]

    return sensor_scalar_pos


def _frames(real: Any) -> wp.Kernel:
    t, a, o, inside = types(real), algebra(real), objects(real), shapes(real).inside
    vec3, quat, mat33, mul_quat, put3 = t.vec3, t.quat, t.mat33, a.mul_quat, outputs(real).put3
    place, facing, turn = o.place, o.facing, o.turn

    @wp.kernel
    def sensor_frame_pos(
        sensor_type: ints, sensor_objtype: ints, sensor_objid: ints, sensor_reftype: ints, sensor_refid: ints,
        sensor_adr: ints, opt_magnetic: wp.array(dtype=vec3), geom_bodyid: ints, site_bodyid: ints, cam_bodyid: ints,
        site_type: ints, site_size: wp.array2d(dtype=vec3), body_iquat: wp.array2d(dtype=quat),
        geom_quat: wp.array2d(dtype=quat), site_quat: wp.array2d(dtype=quat), cam_quat: wp.array2d(dtype=quat),
        xpos: wp.array2d(dtype=vec3), xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33), geom_xpos: wp.array2d(dtype=vec3),
        geom_xmat: wp.array2d(dtype=mat33), site_xpos: wp.array2d(dtype=vec3), site_xmat: wp.array2d(dtype=mat33),
        cam_xpos: wp.array2d(dtype=vec3), cam_xmat: wp.array2d(dtype=mat33), subtree_com: wp.array2d(dtype=vec3),
        sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Positions and orientations of objects, in the world's frame or in that of another object."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            kind, i, at = sensor_type[s], sensor_objid[s], sensor_adr[s]
            what, reftype, ref = sensor_objtype[s], sensor_reftype[s], sensor_refid[s]
            if kind == MAGNETOMETER:
                put3(w, at, wp.transpose(site_xmat[w, i]) * opt_magnetic[row(w, opt_magnetic)], sensordata)
            elif kind == SUBTREECOM:
                put3(w, at, subtree_com[w, i], sensordata)
            elif kind == FRAMEPOS:
                p = place(w, what, i, xpos, xipos, geom_xpos, site_xpos, cam_xpos)
                if ref >= 0:
                    p = p - place(w, reftype, ref, xpos, xipos, geom_xpos, site_xpos, cam_xpos)
                    p = wp.transpose(facing(w, reftype, ref, xmat, ximat, geom_xmat, site_xmat, cam_xmat)) * p
                put3(w, at, p, sensordata)
            elif kind == XAXIS or kind == YAXIS or kind == ZAXIS:
                m = facing(w, what, i, xmat, ximat, geom_xmat, site_xmat, cam_xmat)
                if ref >= 0:
                    m = wp.transpose(facing(w, reftype, ref, xmat, ximat, geom_xmat, site_xmat, cam_xmat)) * m
                axis = vec3(m[0, 0], m[1, 0], m[2, 0])
                if kind == YAXIS:
                    axis = vec3(m[0, 1], m[1, 1], m[2, 1])
                elif kind == ZAXIS:
                    axis = vec3(m[0, 2], m[1, 2], m[2, 2])
                put3(w, at, axis, sensordata)
            elif kind == FRAMEQUAT:
                q = turn(
                    w, what, i, geom_bodyid, site_bodyid, cam_bodyid, body_iquat, geom_quat, site_quat, cam_quat, xquat
                )
                if ref >= 0:
                    back = turn(
                        w, reftype, ref, geom_bodyid, site_bodyid, cam_bodyid, body_iquat, geom_quat, site_quat,
                        cam_quat, xquat,
                    )  # fmt: skip
                    q = mul_quat(quat(back[0], -back[1], -back[2], -back[3]), q)
                for k in range(4):
                    sensordata[w, at + k] = q[k]
            elif kind == INSIDESITE:
                p = place(w, what, i, xpos, xipos, geom_xpos, site_xpos, cam_xpos) - site_xpos[w, ref]
                local = wp.transpose(site_xmat[w, ref]) * p
                found = inside(site_type[ref], site_size[row(w, site_size), ref], local)
                sensordata[w, at] = wp.where(found, real(1.0), real(0.0))

    return sensor_frame_pos
