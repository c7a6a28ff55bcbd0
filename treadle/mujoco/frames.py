"""Where geoms, sites, cameras and lights are, carried by bodies: the rest of kinematics, and camlight."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, index, row, types
from treadle.mujoco.constants import TARGETBODY, TARGETBODYCOM, TRACK, TRACKCOM

ints = wp.array(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_carried(real), **_watching(real)}


def _carried(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, quat, mat33 = t.vec3, t.quat, t.mat33
    mul_quat, quat_to_mat = a.mul_quat, a.quat_to_mat

    @wp.kernel(gang_vectors=2)
    def geom_frames(
        geom_bodyid: ints, geom_pos: wp.array2d(dtype=vec3), geom_quat: wp.array2d(dtype=quat),
        xpos: wp.array2d(dtype=vec3), xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        geom_xpos: wp.array2d(dtype=vec3), geom_xmat: wp.array2d(dtype=mat33),
    ):  # fmt: skip
        """Place every geom in the frame of its body."""
        w = wp.tid()
        for g in range(geom_bodyid.shape[0]):
            b = index(geom_bodyid[g])
            geom_xpos[w, g] = xpos[w, b] + xmat[w, b] * geom_pos[row(w, geom_pos), g]
            geom_xmat[w, g] = quat_to_mat(mul_quat(xquat[w, b], geom_quat[row(w, geom_quat), g]))

    @wp.kernel(gang_vectors=2)
    def site_frames(
        site_bodyid: ints, site_pos: wp.array2d(dtype=vec3), site_quat: wp.array2d(dtype=quat),
        xpos: wp.array2d(dtype=vec3), xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        site_xpos: wp.array2d(dtype=vec3), site_xmat: wp.array2d(dtype=mat33),
    ):  # fmt: skip
        """Place every site in the frame of its body."""
        w = wp.tid()
        for s in range(site_bodyid.shape[0]):
            b = index(site_bodyid[s])
            site_xpos[w, s] = xpos[w, b] + xmat[w, b] * site_pos[row(w, site_pos), s]
            site_xmat[w, s] = quat_to_mat(mul_quat(xquat[w, b], site_quat[row(w, site_quat), s]))

    return dict(geom_frames=geom_frames, site_frames=site_frames)


def _watching(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, quat, mat33 = t.vec3, t.quat, t.mat33
    mul_quat, quat_to_mat = a.mul_quat, a.quat_to_mat

    @wp.kernel
    def camera_frames(
        cam_mode: ints, cam_bodyid: ints, cam_targetbodyid: ints,
        cam_pos: wp.array2d(dtype=vec3), cam_quat: wp.array2d(dtype=quat), cam_poscom0: wp.array2d(dtype=vec3),
        cam_pos0: wp.array2d(dtype=vec3), cam_mat0: wp.array2d(dtype=mat33),
        xpos: wp.array2d(dtype=vec3), xquat: wp.array2d(dtype=quat), xmat: wp.array2d(dtype=mat33),
        subtree_com: wp.array2d(dtype=vec3), cam_xpos: wp.array2d(dtype=vec3), cam_xmat: wp.array2d(dtype=mat33),
    ):  # fmt: skip
        """Place every camera: fixed to its body, following it, or looking at another body.

        A camera looks along its negative z axis; one with a target keeps its x axis level.
        """
        w = wp.tid()
        for c in range(cam_mode.shape[0]):
            b = index(cam_bodyid[c])
            target = cam_targetbodyid[c]
            mode = cam_mode[c]
            pos = xpos[w, b] + xmat[w, b] * cam_pos[row(w, cam_pos), c]
            mat = quat_to_mat(mul_quat(xquat[w, b], cam_quat[row(w, cam_quat), c]))
            if mode == TRACK or mode == TRACKCOM:
                mat = cam_mat0[row(w, cam_mat0), c]
                pos = xpos[w, b] + cam_pos0[row(w, cam_pos0), c]
                if mode == TRACKCOM:
                    pos = subtree_com[w, b] + cam_poscom0[row(w, cam_poscom0), c]
            if (mode == TARGETBODY or mode == TARGETBODYCOM) and target >= 0:
                seen = xpos[w, target]
                if mode == TARGETBODYCOM:
                    seen = subtree_com[w, target]
                z = wp.normalize(pos - seen)
                x = wp.normalize(wp.cross(vec3(real(0.0), real(0.0), real(1.0)), z))
                y = wp.normalize(wp.cross(z, x))
                mat = mat33(x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2])
            cam_xpos[w, c] = pos
            cam_xmat[w, c] = mat

    @wp.kernel
    def light_frames(
        light_mode: ints, light_bodyid: ints, light_targetbodyid: ints,
        light_pos: wp.array2d(dtype=vec3), light_dir: wp.array2d(dtype=vec3), light_poscom0: wp.array2d(dtype=vec3),
        light_pos0: wp.array2d(dtype=vec3), light_dir0: wp.array2d(dtype=vec3),
        xpos: wp.array2d(dtype=vec3), xmat: wp.array2d(dtype=mat33), subtree_com: wp.array2d(dtype=vec3),
        light_xpos: wp.array2d(dtype=vec3), light_xdir: wp.array2d(dtype=vec3),
    ):  # fmt: skip
        """Place every light as `camera_frames` places cameras."""
        w = wp.tid()
        for c in range(light_mode.shape[0]):
            b = index(light_bodyid[c])
            target = light_targetbodyid[c]
            mode = light_mode[c]
            pos = xpos[w, b] + xmat[w, b] * light_pos[row(w, light_pos), c]
            way = xmat[w, b] * light_dir[row(w, light_dir), c]
            if mode == TRACK or mode == TRACKCOM:
                way = light_dir0[row(w, light_dir0), c]
                pos = xpos[w, b] + light_pos0[row(w, light_pos0), c]
                if mode == TRACKCOM:
                    pos = subtree_com[w, b] + light_poscom0[row(w, light_poscom0), c]
            if (mode == TARGETBODY or mode == TARGETBODYCOM) and target >= 0:
                seen = xpos[w, target]
                if mode == TARGETBODYCOM:
                    seen = subtree_com[w, target]
                way = seen - pos
            light_xpos[w, c] = pos
            light_xdir[w, c] = wp.normalize(way)

    return dict(camera_frames=camera_frames, light_frames=light_frames)
