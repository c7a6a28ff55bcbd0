"""Sensors of accelerations and forces: the stage sensor_acc, without that of contacts."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.constants import TRN_TENDON
from treadle.mujoco.sensor.kinds import KIND
from treadle.mujoco.sensor.objects import objects, outputs
from treadle.mujoco.sensor.shapes import shapes

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)

TOUCH, ACCELEROMETER, FORCE, TORQUE = KIND.TOUCH, KIND.ACCELEROMETER, KIND.FORCE, KIND.TORQUE
ACTUATORFRC, JOINTACTFRC, TENDONACTFRC = KIND.ACTUATORFRC, KIND.JOINTACTFRC, KIND.TENDONACTFRC
FRAMELINACC, FRAMEANGACC = KIND.FRAMELINACC, KIND.FRAMEANGACC


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {"sensor_force": _forces(real), "sensor_touch": _touch(real), "sensor_frame_acc": _frames(real)}


def _forces(real: Any) -> wp.Kernel:
    @wp.kernel
    def sensor_force(
        sensor_type: ints, sensor_objid: ints, sensor_adr: ints, jnt_dofadr: ints, actuator_outadr: ints,
        actuator_trntype: ints, actuator_trnid: ints2, actuator_force: wp.array2d(dtype=real),
        qfrc_actuator: wp.array2d(dtype=real), sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Forces of actuators, of actuators on joints and tendons."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            kind, i, at = sensor_type[s], sensor_objid[s], sensor_adr[s]
            if kind == ACTUATORFRC:
                sensordata[w, at] = actuator_force[w, actuator_outadr[i]]
            elif kind == JOINTACTFRC:
                sensordata[w, at] = qfrc_actuator[w, jnt_dofadr[i]]
            elif kind == TENDONACTFRC:
                total = real(0.0)
                for u in range(actuator_trntype.shape[0]):
                    if actuator_trntype[u] == TRN_TENDON and actuator_trnid[u, 0] == i:
                        total = total + actuator_force[w, actuator_outadr[u]]
                sensordata[w, at] = total

    return sensor_force


def _touch(real: Any) -> wp.Kernel:
    t, met = types(real), shapes(real).met
    vec3, mat33, spatial = t.vec3, t.mat33, t.spatial

    @wp.kernel
    def sensor_touch(
        sensor_type: ints, sensor_objid: ints, sensor_adr: ints, geom_bodyid: ints, site_bodyid: ints, site_type: ints,
        site_size: wp.array2d(dtype=vec3), site_xpos: wp.array2d(dtype=vec3), site_xmat: wp.array2d(dtype=mat33),
        ncon: ints, contact_pos: wp.array2d(dtype=vec3), contact_frame: wp.array2d(dtype=mat33),
        contact_geom1: ints2, contact_geom2: ints2, contact_efc_address: ints2,
        contact_wrench: wp.array2d(dtype=spatial), sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Normal forces of contacts of the site's body whose line, out of the body, meets the site."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            if sensor_type[s] == TOUCH:
                site = sensor_objid[s]
                b = site_bodyid[site]
                total = real(0.0)
                for c in range(ncon[w]):
                    b1, b2 = geom_bodyid[contact_geom1[w, c]], geom_bodyid[contact_geom2[w, c]]
                    force = contact_wrench[w, c][0]
                    if contact_efc_address[w, c] >= 0 and (b == b1 or b == b2) and force > real(0.0):
                        frame = contact_frame[w, c]
                        ray = vec3(frame[0, 0], frame[0, 1], frame[0, 2])
                        if b == b2:
                            ray = -ray
                        back = wp.transpose(site_xmat[w, site])
                        from_site = back * (contact_pos[w, c] - site_xpos[w, site])
                        if met(site_type[site], site_size[row(w, site_size), site], from_site, back * ray):
                            total = total + force
                sensordata[w, sensor_adr[s]] = total

    return sensor_touch


def _frames(real: Any) -> wp.Kernel:
    t, a, o, put3 = types(real), algebra(real), objects(real), outputs(real).put3
    vec3, mat33, spatial = t.vec3, t.mat33, t.spatial
    carrier, place, moving, rotation, translation = o.carrier, o.place, o.moving, a.rotation, a.translation

    @wp.kernel
    def sensor_frame_acc(
        sensor_type: ints, sensor_objtype: ints, sensor_objid: ints, sensor_adr: ints, geom_bodyid: ints,
        site_bodyid: ints, cam_bodyid: ints, body_rootid: ints, xpos: wp.array2d(dtype=vec3),
        xipos: wp.array2d(dtype=vec3), geom_xpos: wp.array2d(dtype=vec3), site_xpos: wp.array2d(dtype=vec3),
        site_xmat: wp.array2d(dtype=mat33), cam_xpos: wp.array2d(dtype=vec3), subtree_com: wp.array2d(dtype=vec3),
        cvel: wp.array2d(dtype=spatial), cacc: wp.array2d(dtype=spatial), cfrc_int: wp.array2d(dtype=spatial),
        sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Accelerations of objects, as felt, against free fall, and the force between a site's body and its parent."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            kind, what, i, at = sensor_type[s], sensor_objtype[s], sensor_objid[s], sensor_adr[s]
            if kind == FORCE or kind == TORQUE:
                b = site_bodyid[i]
                frc = cfrc_int[w, b]
                value = translation(frc)
                if kind == TORQUE:
                    offset = site_xpos[w, i] - subtree_com[w, body_rootid[b]]
                    value = rotation(frc) - wp.cross(offset, translation(frc))
                put3(w, at, wp.transpose(site_xmat[w, i]) * value, sensordata)
            elif kind == ACCELEROMETER or kind == FRAMELINACC or kind == FRAMEANGACC:
                b = carrier(what, i, geom_bodyid, site_bodyid, cam_bodyid)
                p = place(w, what, i, xpos, xipos, geom_xpos, site_xpos, cam_xpos)
                offset = p - subtree_com[w, body_rootid[b]]
                v, acc = moving(cvel[w, b], offset), moving(cacc[w, b], offset)
                # a spatial acceleration says how the velocity at a fixed place changes; the object moves on
                linear = translation(acc) + wp.cross(rotation(v), translation(v))
                if kind == ACCELEROMETER:
                    put3(w, at, wp.transpose(site_xmat[w, i]) * linear, sensordata)
                elif kind == FRAMELINACC:
                    put3(w, at, linear, sensordata)
                else:
                    put3(w, at, rotation(acc), sensordata)

    return sensor_frame_acc
