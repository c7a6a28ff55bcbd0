"""Stages that give forces and accelerations and advance time: fwd_actuation, fwd_acceleration, euler."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, types
from treadle.mujoco.constants import ACTUATION, BIAS_AFFINE, CLAMPCTRL, DAMPER, EULERDAMP, GAIN_AFFINE
from treadle.mujoco.factor import factorisation

ints = wp.array(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_actuation(real), **_acceleration(real), **_euler(real)}


def _actuation(real: Any) -> dict[str, wp.Kernel]:
    vec2 = types(real).vec2

    @wp.kernel
    def fwd_actuation(
        opt_disableflags: int, actuator_trnid: ints, actuator_ctrllimited: ints, actuator_forcelimited: ints,
        actuator_gaintype: ints, actuator_biastype: ints, jnt_dofadr: ints, jnt_actfrclimited: ints,
        actuator_gear: wp.array2d(dtype=real), actuator_gainprm: wp.array3d(dtype=real),
        actuator_biasprm: wp.array3d(dtype=real), actuator_ctrlrange: wp.array2d(dtype=vec2),
        actuator_forcerange: wp.array2d(dtype=vec2), jnt_actfrcrange: wp.array2d(dtype=vec2),
        ctrl: wp.array2d(dtype=real),
        actuator_length: wp.array2d(dtype=real), actuator_velocity: wp.array2d(dtype=real),
        actuator_force: wp.array2d(dtype=real), qfrc_actuator: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Force of each actuator, ``gain * ctrl + bias``, both affine in length and velocity; its share of joints."""
        w = wp.tid()
        for i in range(qfrc_actuator.shape[1]):
            qfrc_actuator[w, i] = real(0.0)
        for u in range(actuator_trnid.shape[0]):
            force = real(0.0)
            if (opt_disableflags & ACTUATION) == 0:
                length = actuator_length[w, u]
                speed = actuator_velocity[w, u]
                signal = ctrl[w, u]
                if actuator_ctrllimited[u] != 0 and (opt_disableflags & CLAMPCTRL) == 0:
                    signal = wp.clamp(signal, actuator_ctrlrange[0, u][0], actuator_ctrlrange[0, u][1])
                gain = actuator_gainprm[0, u, 0]
                if actuator_gaintype[u] == GAIN_AFFINE:
                    gain = gain + actuator_gainprm[0, u, 1] * length + actuator_gainprm[0, u, 2] * speed
                force = gain * signal
                if actuator_biastype[u] == BIAS_AFFINE:
                    force = force + actuator_biasprm[0, u, 0]
                    force = force + actuator_biasprm[0, u, 1] * length + actuator_biasprm[0, u, 2] * speed
                if actuator_forcelimited[u] != 0:
                    force = wp.clamp(force, actuator_forcerange[0, u][0], actuator_forcerange[0, u][1])
            actuator_force[w, u] = force
            i = jnt_dofadr[actuator_trnid[u]]
            qfrc_actuator[w, i] = qfrc_actuator[w, i] + actuator_gear[0, u] * force
        for j in range(jnt_dofadr.shape[0]):
            if jnt_actfrclimited[j] != 0:
                i = jnt_dofadr[j]
                qfrc_actuator[w, i] = wp.clamp(qfrc_actuator[w, i], jnt_actfrcrange[0, j][0], jnt_actfrcrange[0, j][1])

    return dict(fwd_actuation=fwd_actuation)


def _acceleration(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    vec3, spatial, push_at = t.vec3, t.spatial, a.push_at
    solve = factorisation(real).solve

    @wp.kernel
    def fwd_acceleration(
        pushed: bool, body_parentid: ints, body_rootid: ints, body_dofadr: ints, body_dofnum: ints,
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, qLD: wp.array2d(dtype=real), qLDiagInv: wp.array2d(dtype=real),
        qfrc_applied: wp.array2d(dtype=real), qfrc_bias: wp.array2d(dtype=real), qfrc_passive: wp.array2d(dtype=real),
        qfrc_actuator: wp.array2d(dtype=real), xfrc_applied: wp.array2d(dtype=spatial),
        xipos: wp.array2d(dtype=vec3), subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial),
        qfrc_smooth: wp.array2d(dtype=real), qacc_smooth: wp.array2d(dtype=real), qacc: wp.array2d(dtype=real),
    ):  # fmt: skip
        """All smooth forces, and the acceleration they give: ``M qacc_smooth = qfrc_smooth``.

        Without constraints that is qacc.
        """
        w = wp.tid()
        nv = qfrc_smooth.shape[1]
        for i in range(nv):
            qfrc_smooth[w, i] = qfrc_passive[w, i] - qfrc_bias[w, i] + qfrc_applied[w, i] + qfrc_actuator[w, i]
        if pushed:  # a force on a body acts on every joint between the body and the world
            for b in range(1, body_parentid.shape[0]):
                push = push_at(xfrc_applied[w, b], xipos[w, b] - subtree_com[w, body_rootid[b]])
                above = b
                while above > 0:
                    for i in range(body_dofadr[above], body_dofadr[above] + body_dofnum[above]):
                        qfrc_smooth[w, i] = qfrc_smooth[w, i] + wp.dot(cdof[w, i], push)
                    above = body_parentid[above]
        for i in range(nv):
            qacc_smooth[w, i] = qfrc_smooth[w, i]
        solve(w, M_rowadr, M_rownnz, M_colind, qLD, qLDiagInv, qacc_smooth)
        for i in range(nv):
            qacc[w, i] = qacc_smooth[w, i]

    return dict(fwd_acceleration=fwd_acceleration)


def _euler(real: Any) -> dict[str, wp.Kernel]:
    solving = factorisation(real)
    factor, solve = solving.factor, solving.solve

    @wp.kernel
    def euler(
        opt_disableflags: int, opt_timestep: wp.array(dtype=real), M_rowadr: ints, M_rownnz: ints, M_colind: ints,
        dof_damping: wp.array2d(dtype=real), M: wp.array2d(dtype=real),
        qfrc_smooth: wp.array2d(dtype=real), qacc: wp.array2d(dtype=real),
        qH: wp.array2d(dtype=real), qHDiagInv: wp.array2d(dtype=real), qacc_euler: wp.array2d(dtype=real),
        qpos: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real), time: wp.array(dtype=real),
    ):  # fmt: skip
        """Semi-implicit Euler: velocities first, then positions with the new velocities.

        Joint damping is taken at the end of the step: ``(M + h diag(damping)) a = qfrc_smooth``
        (MuJoCo documentation, Computation, Numerical integration).
        """
        w = wp.tid()
        h = opt_timestep[0]
        nv = qacc.shape[1]
        for i in range(nv):
            qacc_euler[w, i] = qacc[w, i]
        if (opt_disableflags & EULERDAMP) == 0 and (opt_disableflags & DAMPER) == 0:
            for i in range(nv):
                last = M_rowadr[i] + M_rownnz[i] - 1
                for e in range(M_rowadr[i], last + 1):
                    qH[w, e] = M[w, e]
                qH[w, last] = qH[w, last] + h * dof_damping[0, i]
                qacc_euler[w, i] = qfrc_smooth[w, i]
            factor(w, M_rowadr, M_rownnz, M_colind, qH, qHDiagInv)
            solve(w, M_rowadr, M_rownnz, M_colind, qH, qHDiagInv, qacc_euler)
        for i in range(nv):
            qvel[w, i] = qvel[w, i] + h * qacc_euler[w, i]
        # hinges and slides only: a position is a number, and the joint's velocity is its derivative
        for i in range(nv):
            qpos[w, i] = qpos[w, i] + h * qvel[w, i]
        time[w] = time[w] + h

    return dict(euler=euler)
