"""Integrators: they take worlds from one time to the next."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.actuation import servo
from treadle.mujoco.algebra import algebra, index, row, types
from treadle.mujoco.bounds import bounds
from treadle.mujoco.constants import (
    AUTORESET,
    BALL,
    DAMPER,
    DYN_DCMOTOR,
    DYN_FILTER,
    DYN_FILTEREXACT,
    DYN_INTEGRATOR,
    DYN_PID,
    EULERDAMP,
    FREE,
    TRN_SO3,
)
from treadle.mujoco.drivetrain import drivetrain
from treadle.mujoco.factor import factorisation

ints = wp.array(dtype=int)
pairs = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_euler(real), **_runge_kutta(real), **_advance(real)}


@cache
def moving(real: Any) -> SimpleNamespace:
    """``place``, a kernel function for one precision."""
    t, a = types(real), algebra(real)
    vec3, quat, integrate_quat = t.vec3, t.quat, a.integrate_quat
    numbers = wp.array2d(dtype=real)

    @wp.func
    def place(w: int, jnt_type: ints, jnt_qposadr: ints, jnt_dofadr: ints, start: numbers, vel: numbers, h: real,
              end: numbers):  # fmt: skip
        """Positions ``end`` after moving from ``start`` with velocities ``vel`` during ``h``."""
        for j in range(jnt_type.shape[0]):
            i = index(jnt_dofadr[j])
            q = index(jnt_qposadr[j])
            if jnt_type[j] == FREE:
                for k in range(3):
                    end[w, q + k] = start[w, q + k] + h * vel[w, i + k]
                q = q + 3
                i = i + 3
            if jnt_type[j] == FREE or jnt_type[j] == BALL:
                before = quat(start[w, q], start[w, q + 1], start[w, q + 2], start[w, q + 3])
                after = integrate_quat(before, vec3(vel[w, i], vel[w, i + 1], vel[w, i + 2]), h)
                for k in range(4):
                    end[w, q + k] = after[k]
            else:
                end[w, q] = start[w, q] + h * vel[w, i]

    return SimpleNamespace(place=place)


def _euler(real: Any) -> dict[str, wp.Kernel]:
    t, train = types(real), drivetrain(real)
    vec2, spatial = t.vec2, t.spatial
    solving = factorisation(real)
    factor, solve = solving.factor, solving.solve
    added, added_poly, poly_slope = train.added, train.added_poly, train.poly_slope
    single = real is wp.float32

    @wp.kernel(gang_vectors=2)
    def euler(
        solves: bool, opt_disableflags: int, opt_timestep: wp.array(dtype=real), M_rowadr: ints, M_rownnz: ints,
        M_colind: ints, dof_jntid: ints, jnt_actuatorid: ints, actuator_trntype: ints, actuator_trnid: pairs,
        actuator_outadr: ints, actuator_damping: wp.array2d(dtype=real), actuator_dampingpoly: wp.array2d(dtype=vec2),
        actuator_gear: wp.array2d(dtype=spatial), dof_damping: wp.array2d(dtype=real),
        dof_dampingpoly: wp.array2d(dtype=vec2), M: wp.array2d(dtype=real),
        qfrc_smooth: wp.array2d(dtype=real), qfrc_constraint: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real),
        qacc: wp.array2d(dtype=real), solver_unsettled: ints, qH: wp.array2d(dtype=real),
        qHDiagInv: wp.array2d(dtype=real), qacc_integrated: wp.array2d(dtype=real),
    ):  # fmt: skip
        """The acceleration of a step of semi-implicit Euler.

        Joint damping is taken at the end of the step: ``(M + h diag(damping)) a = qfrc_smooth + qfrc_constraint``
        (MuJoCo documentation, Computation, Numerical integration); where there is none, ``a = qacc``. Where these are
        ``M qacc``, that is ``a = qacc - (M + h diag(damping))^-1 h diag(damping) qacc``, which in single precision
        loses nothing of forces that cancel; where the solver, if one of the primal problem ``solves``, stopped before,
        they are others.
        """
        w = wp.tid()
        h = opt_timestep[row(w, opt_timestep)]
        nv = qacc.shape[1]
        damped = False
        for i in range(nv):
            qacc_integrated[w, i] = qacc[w, i]
        if (opt_disableflags & EULERDAMP) == 0 and (opt_disableflags & DAMPER) == 0:
            for i in range(nv):
                j = index(dof_jntid[i])
                k = dof_damping[row(w, dof_damping), i] + added(
                    w, j, jnt_actuatorid[j], False, actuator_trntype, actuator_trnid, actuator_outadr, actuator_damping,
                    actuator_gear,
                )  # fmt: skip
                growth = dof_dampingpoly[row(w, dof_dampingpoly), i] + added_poly(
                    w, j, jnt_actuatorid[j], False,
                    actuator_trntype, actuator_trnid, actuator_outadr, actuator_dampingpoly, actuator_gear,
                )  # fmt: skip
                damping = h * poly_slope(k, growth, wp.abs(qvel[w, i]))
                damped = damped or damping != real(0.0)
                qHDiagInv[w, i] = damping  # until the factor is there
        if wp.any_lane(damped):
            settled = single
            if solves:
                settled = single and solver_unsettled[w] == 0
            for i in range(nv):
                start = index(M_rowadr[i])
                last = index(start + M_rownnz[i] - 1)
                for e in range(start, last + 1):
                    qH[w, e] = M[w, e]
                damping = qHDiagInv[w, i]
                qH[w, last] = qH[w, last] + damping
                force = qfrc_smooth[w, i] + qfrc_constraint[w, i]
                if single:
                    force = wp.where(settled, damping * qacc[w, i], force)
                qacc_integrated[w, i] = force
            factor(w, M_rowadr, M_rownnz, M_colind, qH, qHDiagInv)
            solve(w, M_rowadr, M_rownnz, M_colind, qH, qHDiagInv, qacc_integrated)
            for i in range(nv):
                found = qacc_integrated[w, i]
                if single:
                    found = wp.where(settled, qacc[w, i] - found, found)
                qacc_integrated[w, i] = wp.where(damped, found, qacc[w, i])

    return dict(euler=euler)


def _runge_kutta(real: Any) -> dict[str, wp.Kernel]:
    vec3, place, rate_of_rotation = types(real).vec3, moving(real).place, algebra(real).rate_of_rotation
    numbers = wp.array2d(dtype=real)

    @wp.kernel
    def rk_start(
        qpos: numbers, qvel: numbers, qacc: numbers, act: numbers, act_dot: numbers, actuator_length: numbers,
        actuator_velocity: numbers, rk_qpos: numbers, rk_qvel: numbers, rk_act: numbers, rk_length: numbers,
        rk_speed: numbers, time: wp.array(dtype=real), rk_time: wp.array(dtype=real),
        rk_rate: numbers, rk_act_dot: numbers, qvel_integrated: numbers, qacc_integrated: numbers,
    ):  # fmt: skip
        """Keep the state from which the step sets out; the first of four slopes counts a sixth."""
        w = wp.tid()
        rk_time[w] = time[w]
        sixth = real(1.0 / 6.0)
        for i in range(qpos.shape[1]):
            rk_qpos[w, i] = qpos[w, i]
        for i in range(qvel.shape[1]):
            rk_qvel[w, i] = qvel[w, i]
            rk_rate[w, i] = qvel[w, i]
            qvel_integrated[w, i] = sixth * qvel[w, i]
            qacc_integrated[w, i] = sixth * qacc[w, i]
        for i in range(act.shape[1]):
            rk_act[w, i] = act[w, i]
            rk_act_dot[w, i] = sixth * act_dot[w, i]
        for u in range(actuator_length.shape[1]):
            rk_length[w, u] = actuator_length[w, u]
            rk_speed[w, u] = actuator_velocity[w, u]

    @wp.kernel
    def rk_place(
        part: real, opt_timestep: wp.array(dtype=real), jnt_type: ints, jnt_qposadr: ints, jnt_dofadr: ints,
        qacc: numbers, act_dot: numbers, rk_qpos: numbers, rk_qvel: numbers, rk_act: numbers, rk_rate: numbers,
        rk_time: wp.array(dtype=real), time: wp.array(dtype=real), qpos: numbers, qvel: numbers, act: numbers,
    ):  # fmt: skip
        """The state at ``part`` of the step, along the slopes found last."""
        w = wp.tid()
        h = part * opt_timestep[row(w, opt_timestep)]
        time[w] = rk_time[w] + h
        place(w, jnt_type, jnt_qposadr, jnt_dofadr, rk_qpos, rk_rate, h, qpos)
        for i in range(qvel.shape[1]):
            qvel[w, i] = rk_qvel[w, i] + h * qacc[w, i]
        for i in range(act.shape[1]):
            act[w, i] = rk_act[w, i] + h * act_dot[w, i]

    @wp.kernel
    def rk_gather(
        part: real, share: real, opt_timestep: wp.array(dtype=real), jnt_type: ints, jnt_dofadr: ints,
        qvel: numbers, qacc: numbers, act_dot: numbers, rk_rate: numbers, rk_act_dot: numbers,
        qvel_integrated: numbers, qacc_integrated: numbers,
    ):  # fmt: skip
        """Add the slopes at ``part`` of the step, which count ``share``.

        Rotations are integrated as rotation vectors from the start of the step (H. Munthe-Kaas, 1998).
        """
        w = wp.tid()
        h = part * opt_timestep[row(w, opt_timestep)]
        for j in range(jnt_type.shape[0]):
            i = jnt_dofadr[j]
            if jnt_type[j] == FREE:
                for k in range(3):
                    rk_rate[w, i + k] = qvel[w, i + k]
                i = i + 3
            if jnt_type[j] == FREE or jnt_type[j] == BALL:
                turned = h * vec3(rk_rate[w, i], rk_rate[w, i + 1], rk_rate[w, i + 2])
                rate = rate_of_rotation(turned, vec3(qvel[w, i], qvel[w, i + 1], qvel[w, i + 2]))
                for k in range(3):
                    rk_rate[w, i + k] = rate[k]
            else:
                rk_rate[w, i] = qvel[w, i]
        for i in range(qvel.shape[1]):
            qvel_integrated[w, i] = qvel_integrated[w, i] + share * rk_rate[w, i]
            qacc_integrated[w, i] = qacc_integrated[w, i] + share * qacc[w, i]
        for i in range(act_dot.shape[1]):
            rk_act_dot[w, i] = rk_act_dot[w, i] + share * act_dot[w, i]

    @wp.kernel
    def rk_end(
        rk_qpos: numbers, rk_qvel: numbers, rk_act: numbers, qpos: numbers, qvel: numbers, act: numbers,
        rk_time: wp.array(dtype=real), time: wp.array(dtype=real),
    ):  # fmt: skip
        """Back to the state from which the step set out."""
        w = wp.tid()
        time[w] = rk_time[w]
        for i in range(qpos.shape[1]):
            qpos[w, i] = rk_qpos[w, i]
        for i in range(qvel.shape[1]):
            qvel[w, i] = rk_qvel[w, i]
        for i in range(act.shape[1]):
            act[w, i] = rk_act[w, i]

    return dict(rk_start=rk_start, rk_place=rk_place, rk_gather=rk_gather, rk_end=rk_end)


def _advance(real: Any) -> dict[str, wp.Kernel]:
    t, turning = types(real), servo(real)
    spatial, vec2 = t.spatial, t.vec2
    place, beyond = moving(real).place, bounds(real).beyond
    period, nearest, next_act, is_off = turning.period, turning.nearest, turning.next_act, turning.is_off

    @wp.kernel
    def advance_act(
        opt_disableactuator: int, opt_timestep: wp.array(dtype=real), jnt_type: ints,
        actuator_group: ints, actuator_trntype: ints, actuator_trnid: pairs, actuator_outadr: ints,
        actuator_dyntype: ints, actuator_gaintype: ints, actuator_biastype: ints,
        actuator_actadr: ints, actuator_actnum: ints, actuator_actlimited: ints,
        actuator_dynprm: wp.array3d(dtype=real), actuator_gainprm: wp.array3d(dtype=real),
        actuator_biasprm: wp.array3d(dtype=real), actuator_gear: wp.array2d(dtype=spatial),
        actuator_actrange: wp.array2d(dtype=vec2), actuator_length: wp.array2d(dtype=real),
        act_dot: wp.array2d(dtype=real), act: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Activations after the step; those of actuators that are switched off stay."""
        w = wp.tid()
        for u in range(actuator_trntype.shape[0]):
            a = actuator_actadr[u]
            if a >= 0:
                kind = actuator_dyntype[u]
                tau = actuator_dynprm[row(w, actuator_dynprm), u, 0]
                new = next_act(act[w, a], act_dot[w, a], kind, tau, actuator_actlimited[u] != 0,
                               actuator_actrange[row(w, actuator_actrange), u],
                               opt_timestep[row(w, opt_timestep)])  # fmt: skip
                if kind == DYN_INTEGRATOR or kind == DYN_FILTER or kind == DYN_FILTEREXACT:
                    full = period(w, u, actuator_trntype, actuator_trnid, actuator_outadr, actuator_dyntype,
                                  actuator_gaintype, actuator_biastype, jnt_type, actuator_gainprm, actuator_biasprm,
                                  actuator_gear)  # fmt: skip
                    new = nearest(new, actuator_length[w, actuator_outadr[u]], full)
                on = not is_off(actuator_group[u], opt_disableactuator)
                if on and kind != DYN_PID and kind != DYN_DCMOTOR and actuator_trntype[u] != TRN_SO3:
                    act[w, a] = new
                if on and kind == DYN_PID:
                    for i in range(a, a + actuator_actnum[u]):
                        act[w, i] = act[w, i] + opt_timestep[row(w, opt_timestep)] * act_dot[w, i]

    @wp.kernel(gang_vectors=2)
    def advance(
        given: bool, opt_disableflags: int, opt_timestep: wp.array(dtype=real), jnt_type: ints, jnt_qposadr: ints,
        jnt_dofadr: ints, qpos0: wp.array2d(dtype=real),
        qacc_integrated: wp.array2d(dtype=real), qvel_integrated: wp.array2d(dtype=real),
        qacc: wp.array2d(dtype=real), qacc_warmstart: wp.array2d(dtype=real), act: wp.array2d(dtype=real),
        qpos: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real), time: wp.array(dtype=real),
        warned: wp.array2d(dtype=int),
    ):  # fmt: skip
        """Velocities by the accelerations, then positions by the new velocities, or by ``given`` ones, and time.

        A world whose state is beyond all bounds is counted, and goes back to the reference pose.
        """
        w = wp.tid()
        h = opt_timestep[row(w, opt_timestep)]
        # 1, 2, 3: velocities, positions, accelerations, as MuJoCo would notice first what is highest; before a step
        # that led there it would notice what it ``began`` with
        lost, began = int(0), int(0)
        for i in range(qpos.shape[1]):
            began = wp.max(began, 2 * beyond(qpos[w, i]))
        for i in range(qvel.shape[1]):
            began = wp.max(began, beyond(qvel[w, i]))
            lost = wp.max(lost, 3 * beyond(qacc[w, i]))
            qacc_warmstart[w, i] = qacc[w, i]
            qvel[w, i] = qvel[w, i] + h * qacc_integrated[w, i]
            lost = wp.max(lost, beyond(qvel[w, i]))
            if not given:
                qvel_integrated[w, i] = qvel[w, i]
            else:
                qacc[w, i] = qacc_integrated[w, i]
        place(w, jnt_type, jnt_qposadr, jnt_dofadr, qpos, qvel_integrated, h, qpos)
        for i in range(qpos.shape[1]):
            lost = wp.max(lost, 2 * beyond(qpos[w, i]))
        time[w] = time[w] + h
        lost = wp.where(began > 0, began, lost)
        if lost > 0:
            warned[w, lost - 1] = warned[w, lost - 1] + 1
            if (opt_disableflags & AUTORESET) == 0:
                time[w] = real(0.0)
                for i in range(qpos.shape[1]):
                    qpos[w, i] = qpos0[row(w, qpos0), i]
                for i in range(qvel.shape[1]):
                    qvel[w, i] = real(0.0)
                    qacc_warmstart[w, i] = real(0.0)
                for i in range(act.shape[1]):
                    act[w, i] = real(0.0)

    return dict(advance_act=advance_act, advance=advance)
