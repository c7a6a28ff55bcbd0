"""Actuators: activation dynamics, forces, and what they do to joints."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index, row, types
from treadle.mujoco.binding import launch
from treadle.mujoco.bounds import bounds
from treadle.mujoco.constants import (
    ACTUATION,
    BADCTRL,
    BALL,
    BIAS_AFFINE,
    BIAS_MUSCLE,
    CLAMPCTRL,
    DYN_FILTER,
    DYN_FILTEREXACT,
    DYN_INTEGRATOR,
    DYN_MUSCLE,
    DYN_NONE,
    DYN_PID,
    GAIN_AFFINE,
    GAIN_FIXED,
    GAIN_MUSCLE,
    GAIN_PID,
    INPUT_FF,
    INPUT_POS,
    INPUT_VEL,
    MINVAL,
    TRN_JOINT,
    TRN_JOINTINPARENT,
    TRN_SITE,
    TRN_TENDON,
)
from treadle.mujoco.data import Data
from treadle.mujoco.history import delayed_controls
from treadle.mujoco.model import Model
from treadle.mujoco.muscle import muscle

ints = wp.array(dtype=int)
pairs = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_controls(real), **_dynamics(real), **_force(real), **_spread(real)}


@cache
def servo(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision: ``period`` of a servo that turns, ``nearest``, ``next_act``, ``is_off`` and
    ``control``.
    """
    t = types(real)
    spatial, vec2 = t.spatial, t.vec2

    @wp.func
    def period(
        w: int, u: int, trntype: ints, trnid: pairs, outadr: ints, dyntype: ints, gaintype: ints, biastype: ints,
        jnt_type: ints, gainprm: wp.array3d(dtype=real), biasprm: wp.array3d(dtype=real),
        gear: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """A full turn in units of the actuator's length, if it is a position servo of a rotation; else 0.

        Such lengths are rotations, known up to full turns: a set point means the nearest of its like.
        """
        kind = dyntype[u]
        like = kind == DYN_NONE or kind == DYN_INTEGRATOR or kind == DYN_FILTER or kind == DYN_FILTEREXACT
        shape = gaintype[u] == GAIN_FIXED and biastype[u] == BIAS_AFFINE and like
        found = real(0.0)
        if shape and gainprm[row(w, gainprm), u, 0] == -biasprm[row(w, biasprm), u, 1]:
            g = gear[row(w, gear), outadr[u]]
            way = wp.sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2])
            turn = wp.sqrt(g[3] * g[3] + g[4] * g[4] + g[5] * g[5])
            if trntype[u] == TRN_SITE and trnid[u, 1] >= 0 and way == real(0.0):
                found = real(2.0 * wp.PI) * turn
            if trntype[u] == TRN_JOINT or trntype[u] == TRN_JOINTINPARENT:
                if jnt_type[trnid[u, 0]] == BALL:
                    found = real(2.0 * wp.PI) * way
        return found

    @wp.func
    def nearest(x: real, to: real, full: real):
        """``x`` plus as many full turns as bring it nearest to ``to``."""
        found = x
        if full > real(0.0):
            found = x - full * wp.round((x - to) / full)
        return found

    @wp.func
    def next_act(act: real, rate: real, kind: int, tau: real, limited: bool, limits: vec2, h: real):
        """The activation after ``h``: one Euler step, or a filter's exact approach, within its limits."""
        found = act + rate * h
        if kind == DYN_FILTEREXACT:
            t = wp.max(tau, real(MINVAL))
            found = act + rate * t * (real(1.0) - wp.exp(-h / t))
        if limited:
            found = wp.clamp(found, limits[0], limits[1])
        return found

    @wp.func
    def is_off(group: int, disabled: int):
        """Whether actuators of ``group`` are switched off."""
        return group >= 0 and group < 31 and ((disabled >> group) & 1) != 0

    @wp.func
    def control(w: int, c: int, ctrl_taken: wp.array2d(dtype=real)):
        """Control ``c``; 0 if there is none."""
        signal = real(0.0)
        if c < ctrl_taken.shape[1]:
            signal = ctrl_taken[w, c]
        return signal

    return SimpleNamespace(period=period, nearest=nearest, next_act=next_act, is_off=is_off, control=control)


@cache
def pid(real: Any) -> SimpleNamespace:
    """Controllers by position, velocity and integral: kernel functions ``rates`` and ``drive`` for one precision.

    With set points p and v, a feed-forward f, length l and velocity s the force is
    ``kp (p - l) + kv (v - s) + ki x + f``; x is the integral of ``p - l``, which stops growing at ``imax``, and p
    follows its control by ``slewmax`` a second. ``-kp l - kv s`` is the actuator's affine bias. x and the last p are
    activations.
    """
    control = servo(real).control
    numbers, parameters = wp.array2d(dtype=real), wp.array3d(dtype=real)

    @wp.func
    def follow(wanted: real, last: real, most: real):
        return wp.clamp(wanted, last - most, last + most)

    @wp.func
    def rates(
        w: int, u: int, a: int, wanted: real, length: real, h: real, gainprm: parameters, dynprm: parameters,
        act: numbers, act_dot: numbers,
    ):  # fmt: skip
        """How fast its activations change: first the set point, if its speed is bounded, then the integral, if used."""
        g = row(w, dynprm)
        n = a
        point = wanted
        slew = dynprm[g, u, 1]
        if slew > real(0.0):
            point = follow(wanted, act[w, n], slew * h)
            act_dot[w, n] = (point - act[w, n]) / h
            n = n + 1
        if gainprm[row(w, gainprm), u, 0] != real(0.0):
            rate = point - length
            most = dynprm[g, u, 0]
            if most > real(0.0):
                if act[w, n] >= most:
                    rate = wp.min(rate, real(0.0))
                elif act[w, n] <= -most:
                    rate = wp.max(rate, real(0.0))
            act_dot[w, n] = rate

    @wp.func
    def drive(
        w: int, u: int, ctrladr: ints, ctrlspec: ints, a: int, h: real, gainprm: parameters, biasprm: parameters,
        dynprm: parameters, ctrl_taken: numbers, act: numbers,
    ):  # fmt: skip
        """The force but for the bias. Only inputs that ``ctrlspec`` names have a control."""
        b = row(w, biasprm)
        c = ctrladr[u]
        n = a
        force = real(0.0)
        if (ctrlspec[u] & INPUT_POS) != 0:
            point = control(w, c, ctrl_taken)
            slew = dynprm[row(w, dynprm), u, 1]
            if a >= 0 and slew > real(0.0):
                point = follow(point, act[w, n], slew * h)
                n = n + 1
            force = -biasprm[b, u, 1] * point
            c = c + 1
        if (ctrlspec[u] & INPUT_VEL) != 0:
            force = force - biasprm[b, u, 2] * control(w, c, ctrl_taken)
            c = c + 1
        if (ctrlspec[u] & INPUT_FF) != 0:
            force = force + control(w, c, ctrl_taken)
        ki = gainprm[row(w, gainprm), u, 0]
        if a >= 0 and ki != real(0.0):
            force = force + ki * act[w, n]
        return force

    return SimpleNamespace(rates=rates, drive=drive, follow=follow)


def take_controls(m: Model, d: Data, **other: Any) -> None:
    """The stage ``controls``: with delays, what actuators receive of them (`history`)."""
    if m.nhistory:
        other["ctrl"] = delayed_controls(m, d, **other)
    launch(kernels(d.real)["controls"], m, d, **other)


def _controls(real: Any) -> dict[str, wp.Kernel]:
    vec2, beyond = types(real).vec2, bounds(real).beyond

    @wp.kernel(gang_vectors=2)
    def controls(
        opt_disableflags: int, actuator_ctrllimited: ints, actuator_ctrlrange: wp.array2d(dtype=vec2),
        ctrl: wp.array2d(dtype=real), ctrl_taken: wp.array2d(dtype=real), warned: wp.array2d(dtype=int),
    ):  # fmt: skip
        """Controls within their ranges. If one is beyond all bounds then, the world is without any, and that counts."""
        w = wp.tid()
        bad = int(0)
        for c in range(ctrl.shape[1]):
            signal = ctrl[w, c]
            if actuator_ctrllimited[c] != 0 and (opt_disableflags & CLAMPCTRL) == 0:
                limit = actuator_ctrlrange[row(w, actuator_ctrlrange), c]
                signal = wp.clamp(signal, limit[0], limit[1])
            ctrl_taken[w, c] = signal
            bad = wp.max(bad, wp.where(wp.isnan(ctrl[w, c]), 1, beyond(signal)))  # no range has nan
        if bad > 0:
            for c in range(ctrl.shape[1]):
                ctrl_taken[w, c] = real(0.0)
            if (opt_disableflags & ACTUATION) == 0:
                warned[w, BADCTRL] = warned[w, BADCTRL] + 1

    return dict(controls=controls)


def _dynamics(real: Any) -> dict[str, wp.Kernel]:
    spatial, turning = types(real).spatial, servo(real)
    period, nearest, control, filtered = turning.period, turning.nearest, turning.control, muscle(real).filtered
    pid_rates = pid(real).rates

    @wp.kernel
    def act_dynamics(
        opt_disableflags: int, opt_timestep: wp.array(dtype=real), jnt_type: ints,
        actuator_trntype: ints, actuator_trnid: pairs, actuator_outadr: ints,
        actuator_dyntype: ints, actuator_gaintype: ints, actuator_biastype: ints,
        actuator_ctrladr: ints, actuator_actadr: ints, actuator_actnum: ints,
        actuator_dynprm: wp.array3d(dtype=real), actuator_gainprm: wp.array3d(dtype=real),
        actuator_biasprm: wp.array3d(dtype=real), actuator_gear: wp.array2d(dtype=spatial),
        actuator_length: wp.array2d(dtype=real),
        ctrl_taken: wp.array2d(dtype=real), act: wp.array2d(dtype=real), act_dot: wp.array2d(dtype=real),
    ):  # fmt: skip
        """How fast activations change."""
        w = wp.tid()
        for u in range(actuator_trntype.shape[0]):
            a = actuator_actadr[u]
            if a >= 0:
                c = actuator_ctrladr[u]
                signal = control(w, c, ctrl_taken)
                kind = actuator_dyntype[u]
                g = row(w, actuator_dynprm)
                rate = real(0.0)
                if kind == DYN_INTEGRATOR:
                    rate = signal
                if kind == DYN_FILTER or kind == DYN_FILTEREXACT:
                    full = period(w, u, actuator_trntype, actuator_trnid, actuator_outadr, actuator_dyntype,
                                  actuator_gaintype, actuator_biastype, jnt_type, actuator_gainprm, actuator_biasprm,
                                  actuator_gear)  # fmt: skip
                    rate = (nearest(signal, act[w, a], full) - act[w, a]) / wp.max(
                        actuator_dynprm[g, u, 0], real(MINVAL)
                    )
                if kind == DYN_MUSCLE:
                    rate = filtered(
                        signal, act[w, a], actuator_dynprm[g, u, 0], actuator_dynprm[g, u, 1], actuator_dynprm[g, u, 2]
                    )
                act_dot[w, a] = rate
                if kind == DYN_PID:
                    length = actuator_length[w, actuator_outadr[u]]
                    pid_rates(w, u, a, signal, length, opt_timestep[row(w, opt_timestep)], actuator_gainprm,
                              actuator_dynprm, act, act_dot)  # fmt: skip
                if (opt_disableflags & ACTUATION) != 0:
                    for k in range(actuator_actnum[u]):
                        act_dot[w, a + k] = real(0.0)

    return dict(act_dynamics=act_dynamics)


def _force(real: Any) -> dict[str, wp.Kernel]:
    t, turning, fibre = types(real), servo(real), muscle(real)
    spatial, vec2 = t.spatial, t.vec2
    period, nearest, next_act, is_off = turning.period, turning.nearest, turning.next_act, turning.is_off
    active, passive, control, drive = fibre.active, fibre.passive, turning.control, pid(real).drive

    @wp.kernel(gang_vectors=2)
    def fwd_actuation(
        opt_disableflags: int, opt_disableactuator: int, opt_timestep: wp.array(dtype=real), jnt_type: ints,
        actuator_trntype: ints, actuator_trnid: pairs, actuator_outadr: ints, actuator_dyntype: ints,
        actuator_gaintype: ints, actuator_biastype: ints, actuator_ctrladr: ints, actuator_ctrlspec: ints,
        actuator_actadr: ints, actuator_actlimited: ints, actuator_actearly: ints, actuator_forcelimited: ints,
        actuator_group: ints, actuator_dynprm: wp.array3d(dtype=real), actuator_gainprm: wp.array3d(dtype=real),
        actuator_biasprm: wp.array3d(dtype=real), actuator_gear: wp.array2d(dtype=spatial),
        actuator_actrange: wp.array2d(dtype=vec2), actuator_forcerange: wp.array2d(dtype=vec2),
        actuator_lengthrange: wp.array2d(dtype=vec2), actuator_acc0: wp.array2d(dtype=real),
        ctrl_taken: wp.array2d(dtype=real), act: wp.array2d(dtype=real), act_dot: wp.array2d(dtype=real),
        actuator_length: wp.array2d(dtype=real), actuator_velocity: wp.array2d(dtype=real),
        actuator_force: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Force of each actuator, ``gain * input + bias``, the input being its control or its activation."""
        w = wp.tid()
        for u in range(actuator_trntype.shape[0]):
            out = index(actuator_outadr[u])
            length = actuator_length[w, out]
            speed = actuator_velocity[w, out]
            c = actuator_ctrladr[u]
            signal = control(w, c, ctrl_taken)
            a = actuator_actadr[u]
            if a >= 0:
                signal = act[w, a]
                if actuator_actearly[u] != 0:
                    tau = actuator_dynprm[row(w, actuator_dynprm), u, 0]
                    signal = next_act(signal, act_dot[w, a], actuator_dyntype[u], tau, actuator_actlimited[u] != 0,
                                      actuator_actrange[row(w, actuator_actrange), u],
                                      opt_timestep[row(w, opt_timestep)])  # fmt: skip
            full = period(w, u, actuator_trntype, actuator_trnid, actuator_outadr, actuator_dyntype, actuator_gaintype,
                          actuator_biastype, jnt_type, actuator_gainprm, actuator_biasprm,
                          actuator_gear)  # fmt: skip
            signal = nearest(signal, length, full)
            lengths = actuator_lengthrange[row(w, actuator_lengthrange), out]
            acc0 = actuator_acc0[row(w, actuator_acc0), out]
            g = row(w, actuator_gainprm)
            gain = actuator_gainprm[g, u, 0]
            if actuator_gaintype[u] == GAIN_AFFINE:
                gain = gain + actuator_gainprm[g, u, 1] * length + actuator_gainprm[g, u, 2] * speed
            if actuator_gaintype[u] == GAIN_MUSCLE:
                gain = active(length, speed, lengths, acc0, actuator_gainprm, g, u)
            force = gain * signal
            if actuator_gaintype[u] == GAIN_PID:
                force = drive(w, u, actuator_ctrladr, actuator_ctrlspec, a, opt_timestep[row(w, opt_timestep)],
                              actuator_gainprm, actuator_biasprm, actuator_dynprm, ctrl_taken, act)  # fmt: skip
            g = row(w, actuator_biasprm)
            if actuator_biastype[u] == BIAS_AFFINE:
                force = force + actuator_biasprm[g, u, 0]
                force = force + actuator_biasprm[g, u, 1] * length + actuator_biasprm[g, u, 2] * speed
            if actuator_biastype[u] == BIAS_MUSCLE:
                force = force + passive(length, lengths, acc0, actuator_biasprm, g, u)
            if actuator_forcelimited[u] != 0 and actuator_trntype[u] != TRN_TENDON:
                limit = actuator_forcerange[row(w, actuator_forcerange), u]
                force = wp.clamp(force, limit[0], limit[1])
            if is_off(actuator_group[u], opt_disableactuator) or (opt_disableflags & ACTUATION) != 0:
                force = real(0.0)
            actuator_force[w, out] = force

    return dict(fwd_actuation=fwd_actuation)


def _spread(real: Any) -> dict[str, wp.Kernel]:
    vec2 = types(real).vec2

    @wp.kernel
    def tendon_force_limits(
        actuator_trntype: ints, actuator_trnid: pairs, actuator_outadr: ints, actuator_forcelimited: ints,
        tendon_actfrclimited: ints, actuator_forcerange: wp.array2d(dtype=vec2),
        tendon_actfrcrange: wp.array2d(dtype=vec2), actuator_force: wp.array2d(dtype=real),
    ):  # fmt: skip
        """All actuators of a tendon together pull within its range: they share what is too much in proportion."""
        w = wp.tid()
        for k in range(tendon_actfrclimited.shape[0]):
            total = real(0.0)
            for u in range(actuator_trntype.shape[0]):
                if actuator_trntype[u] == TRN_TENDON and actuator_trnid[u, 0] == k:
                    total = total + actuator_force[w, actuator_outadr[u]]
            scale = real(1.0)
            if tendon_actfrclimited[k] != 0:
                limit = tendon_actfrcrange[row(w, tendon_actfrcrange), k]
                if total < limit[0]:
                    scale = limit[0] / total
                if total > limit[1]:
                    scale = limit[1] / total
            for u in range(actuator_trntype.shape[0]):
                if actuator_trntype[u] == TRN_TENDON and actuator_trnid[u, 0] == k:
                    force = actuator_force[w, actuator_outadr[u]] * scale
                    if actuator_forcelimited[u] != 0:
                        limit = actuator_forcerange[row(w, actuator_forcerange), u]
                        force = wp.clamp(force, limit[0], limit[1])
                    actuator_force[w, actuator_outadr[u]] = force

    @wp.kernel(gang_vectors=2)
    def actuator_forces_on_joints(
        opt_disableflags: int, dof_jntid: ints, jnt_actgravcomp: ints, jnt_actfrclimited: ints,
        jnt_actfrcrange: wp.array2d(dtype=vec2), moment_rowadr: ints, moment_rownnz: ints, moment_colind: ints,
        actuator_moment: wp.array2d(dtype=real), actuator_force: wp.array2d(dtype=real),
        qfrc_gravcomp: wp.array2d(dtype=real), qfrc_actuator: wp.array2d(dtype=real),
    ):  # fmt: skip
        """``qfrc_actuator``: moments times forces, within the limits of joints."""
        w = wp.tid()
        for i in range(dof_jntid.shape[0]):
            qfrc_actuator[w, i] = real(0.0)
        for u in range(moment_rowadr.shape[0]):
            first = index(moment_rowadr[u])
            for e in range(first, first + moment_rownnz[u]):
                i = index(moment_colind[e])
                qfrc_actuator[w, i] = qfrc_actuator[w, i] + actuator_moment[w, e] * actuator_force[w, u]
        for i in range(dof_jntid.shape[0]):
            j = index(dof_jntid[i])
            force = qfrc_actuator[w, i]
            if (opt_disableflags & ACTUATION) == 0:
                if jnt_actgravcomp[j] != 0:
                    force = force + qfrc_gravcomp[w, i]
                if jnt_actfrclimited[j] != 0:
                    limit = jnt_actfrcrange[row(w, jnt_actfrcrange), j]
                    force = wp.clamp(force, limit[0], limit[1])
            qfrc_actuator[w, i] = force

    return dict(tendon_force_limits=tendon_force_limits, actuator_forces_on_joints=actuator_forces_on_joints)
