"""Electric motors: current, heat and friction within them, and a controller that sets their voltage.

With motor constant K, resistance R and velocity w the current is ``(V - K w) / R``, or follows it with the time
constant te; the torque is K times the current. The controller's voltage is what its torque would need:
``V = R / K torque + K w``, at most Vmax. Windings that warm up to T above the surroundings resist more. Friction is
that of bristles (C. Canudas de Wit and others, A new model for control of systems with friction, 1995): with
deflection z and ``g = Fc + (Fs - Fc) exp(-(w / vs)²)``, ``dz/dt = w - s0 |w| / g z`` and the torque is
``-(s0 z + s1 dz/dt)``; torque ripple is ``A sin(n length + phase)``. MuJoCo documentation, XML reference, dcmotor.

Activations, as far as a motor has them, in this order: the first control with its speed bounded, the integral of the
position's error, T, z, the current.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.actuation import pid, servo
from treadle.mujoco.algebra import row, types
from treadle.mujoco.constants import (
    ACTUATION,
    GAIN_DCMOTOR,
    INPUT_FF,
    INPUT_POS,
    INPUT_VEL,
    INPUT_VOLTAGE,
    MINVAL,
    TRN_JOINT,
    TRN_JOINTINPARENT,
    TRN_TENDON,
)
from treadle.mujoco.derivative import pattern

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)
CONTROLLED = wp.constant(int(INPUT_POS) | int(INPUT_VEL) | int(INPUT_FF))


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_dynamics(real), **_force(real), **_advance(real), **_derivative(real)}


@cache
def _motor(real: Any) -> SimpleNamespace:
    """A motor's numbers as the struct ``Motor``, and kernel functions on it, for one precision."""
    numbers, parameters = wp.array2d(dtype=real), wp.array3d(dtype=real)
    control, follow = servo(real).control, pid(real).follow

    @wp.struct
    class Motor:
        slewed: int  # places of activations, -1 if the motor has none
        integral: int
        warmth: int
        bristles: int
        current: int
        resistance: real  # of warm windings
        nominal: real
        constant: real
        lag: real

    @wp.func
    def motor(w: int, u: int, first: int, gainprm: parameters, dynprm: parameters, act: numbers):
        """The motor of an actuator whose activations begin at ``first``."""
        g, p = row(w, gainprm), row(w, dynprm)
        a = first
        m = Motor()
        m.slewed, m.integral, m.warmth, m.bristles, m.current = -1, -1, -1, -1, -1
        if first >= 0:
            if dynprm[p, u, 7] > real(0.0):
                m.slewed = a
                a = a + 1
            if gainprm[g, u, 5] > real(0.0):
                m.integral = a
                a = a + 1
            if dynprm[p, u, 2] > real(0.0):
                m.warmth = a
                a = a + 1
            if dynprm[p, u, 5] > real(0.0):
                m.bristles = a
                a = a + 1
            if dynprm[p, u, 0] > real(0.0):
                m.current = a
        m.nominal, m.constant, m.lag = gainprm[g, u, 0], gainprm[g, u, 1], dynprm[p, u, 0]
        m.resistance = m.nominal
        if m.warmth >= 0:
            above = act[w, m.warmth] + dynprm[p, u, 4] - gainprm[g, u, 3]
            m.resistance = m.nominal * (real(1.0) + gainprm[g, u, 2] * above)
        m.resistance = wp.max(m.resistance, real(MINVAL))
        return m

    @wp.func
    def first_control(
        m: Motor, w: int, u: int, c: int, given: bool, h: real, dynprm: parameters, ctrl_taken: numbers, act: numbers
    ):
        """The first control, changing no faster than it may."""
        signal = real(0.0)
        if given:
            signal = control(w, c, ctrl_taken)
        if m.slewed >= 0:
            signal = follow(signal, act[w, m.slewed], dynprm[row(w, dynprm), u, 7] * h)
        return signal

    @wp.func
    def voltage(
        m: Motor, w: int, u: int, c: int, spec: int, signal: real, length: real, speed: real, gainprm: parameters,
        ctrl_taken: numbers, act: numbers,
    ):  # fmt: skip
        """The voltage at the terminals, and whether the controller's is at its bound; ``signal``: the first control."""
        g = row(w, gainprm)
        volts, bound = signal, False
        if (spec & CONTROLLED) != 0:
            point, rate, forward, more = real(0.0), real(0.0), real(0.0), real(0.0)
            n = c
            for k in range(4):
                if (spec & (1 << k)) != 0:
                    given = signal
                    if n > c:
                        given = control(w, n, ctrl_taken)
                    if k == 0:
                        point = given
                    elif k == 1:
                        rate = given
                    elif k == 2:
                        forward = given
                    else:
                        more = given
                    n = n + 1
            torque = gainprm[g, u, 4] * (point - length) + gainprm[g, u, 6] * (rate - speed) + forward
            if m.integral >= 0:
                torque = torque + gainprm[g, u, 5] * act[w, m.integral]
            volts = m.nominal / m.constant * torque + m.constant * speed
            most = gainprm[g, u, 7]
            if most > real(0.0):
                bound = wp.abs(volts) >= most
                volts = wp.clamp(volts, -most, most)
            volts = volts + more
        elif (spec & INPUT_VOLTAGE) == 0:
            volts = real(0.0)
        return volts, bound

    @wp.func
    def slip(w: int, u: int, speed: real, dynprm: parameters, biasprm: parameters):
        """How fast deflected bristles go back, per deflection: ``-s0 |w| / g``."""
        b = row(w, biasprm)
        ratio = speed / wp.max(biasprm[b, u, 5], real(MINVAL))
        g = biasprm[b, u, 3] + (biasprm[b, u, 4] - biasprm[b, u, 3]) * wp.exp(-ratio * ratio)
        return -dynprm[row(w, dynprm), u, 5] * wp.abs(speed) / wp.max(g, real(MINVAL))

    @wp.func
    def next_act(
        m: Motor, w: int, u: int, a: int, speed: real, h: real, dynprm: parameters, biasprm: parameters,
        act: numbers, act_dot: numbers,
    ):  # fmt: skip
        """Activation ``a`` after a step: exactly for the current and the bristles at constant speed, else by Euler."""
        x, rate, p = act[w, a], act_dot[w, a], row(w, dynprm)
        found = x + rate * h
        if a == m.current:
            lag = wp.max(m.lag, real(MINVAL))
            found = x + rate * lag * (real(1.0) - wp.exp(-h / lag))
        elif a == m.bristles:
            decay = slip(w, u, speed, dynprm, biasprm)
            kept, time = wp.exp(decay * h), h
            if wp.abs(decay) > real(MINVAL):
                time = (kept - real(1.0)) / decay
            found = kept * x + time * speed
        elif a == m.integral and dynprm[p, u, 8] > real(0.0):
            found = wp.clamp(found, -dynprm[p, u, 8], dynprm[p, u, 8])
        return found

    return SimpleNamespace(
        Motor=Motor, motor=motor, first_control=first_control, voltage=voltage, slip=slip, next_act=next_act
    )


def _dynamics(real: Any) -> dict[str, wp.Kernel]:
    f = _motor(real)
    motor, first_control, voltage, slip = f.motor, f.first_control, f.voltage, f.slip
    numbers, parameters = wp.array2d(dtype=real), wp.array3d(dtype=real)

    @wp.kernel
    def motor_dynamics(
        opt_disableflags: int, opt_timestep: wp.array(dtype=real), actuator_gaintype: ints, actuator_ctrladr: ints,
        actuator_ctrlnum: ints, actuator_ctrlspec: ints, actuator_actadr: ints, actuator_gainprm: parameters,
        actuator_dynprm: parameters, actuator_biasprm: parameters, actuator_outadr: ints, actuator_length: numbers,
        actuator_velocity: numbers, ctrl_taken: numbers, act: numbers, act_dot: numbers,
    ):  # fmt: skip
        """How fast activations of motors change."""
        w = wp.tid()
        h, p = opt_timestep[row(w, opt_timestep)], row(w, actuator_dynprm)
        for u in range(actuator_gaintype.shape[0]):
            a = actuator_actadr[u]
            if actuator_gaintype[u] == GAIN_DCMOTOR and a >= 0 and (opt_disableflags & ACTUATION) == 0:
                m = motor(w, u, a, actuator_gainprm, actuator_dynprm, act)
                length, speed = actuator_length[w, actuator_outadr[u]], actuator_velocity[w, actuator_outadr[u]]
                c, given = actuator_ctrladr[u], actuator_ctrlnum[u] > 0
                signal = first_control(m, w, u, c, given, h, actuator_dynprm, ctrl_taken, act)
                volts, bound = voltage(
                    m, w, u, c, actuator_ctrlspec[u], signal, length, speed, actuator_gainprm, ctrl_taken, act
                )
                current = (volts - m.constant * speed) / m.resistance
                if m.slewed >= 0:
                    act_dot[w, m.slewed] = (signal - act[w, m.slewed]) / h
                if m.integral >= 0:
                    rate, most, x = signal - length, actuator_dynprm[p, u, 8], act[w, m.integral]
                    if most > real(0.0) and x >= most:
                        rate = wp.min(rate, real(0.0))
                    elif most > real(0.0) and x <= -most:
                        rate = wp.max(rate, real(0.0))
                    act_dot[w, m.integral] = rate
                if m.current >= 0:
                    rate = (current - act[w, m.current]) / wp.max(m.lag, real(MINVAL))
                    most = actuator_dynprm[p, u, 1]
                    if most > real(0.0):
                        rate = wp.clamp(rate, -most, most)
                    act_dot[w, m.current] = rate
                    current = act[w, m.current]
                if m.warmth >= 0:
                    lost = act[w, m.warmth] / actuator_dynprm[p, u, 2]
                    act_dot[w, m.warmth] = (m.resistance * current * current - lost) / actuator_dynprm[p, u, 3]
                if m.bristles >= 0:
                    decay = slip(w, u, speed, actuator_dynprm, actuator_biasprm)
                    act_dot[w, m.bristles] = decay * act[w, m.bristles] + speed

    return dict(motor_dynamics=motor_dynamics)


def _force(real: Any) -> dict[str, wp.Kernel]:
    f, is_off = _motor(real), servo(real).is_off
    vec2, motor, first_control, voltage, next_act = types(real).vec2, f.motor, f.first_control, f.voltage, f.next_act
    numbers, parameters = wp.array2d(dtype=real), wp.array3d(dtype=real)

    @wp.kernel
    def motor_force(
        opt_disableflags: int, opt_disableactuator: int, opt_timestep: wp.array(dtype=real), actuator_group: ints,
        actuator_trntype: ints, actuator_gaintype: ints, actuator_ctrladr: ints, actuator_ctrlnum: ints,
        actuator_ctrlspec: ints, actuator_actadr: ints, actuator_actnum: ints, actuator_actearly: ints,
        actuator_actlimited: ints,
        actuator_actrange: wp.array2d(dtype=vec2), actuator_forcelimited: ints,
        actuator_forcerange: wp.array2d(dtype=vec2), actuator_gainprm: parameters, actuator_dynprm: parameters,
        actuator_biasprm: parameters, actuator_outadr: ints, actuator_length: numbers, actuator_velocity: numbers,
        ctrl_taken: numbers, act: numbers, act_dot: numbers, motor_slope: numbers, actuator_force: numbers,
    ):  # fmt: skip
        """Electric forces of motors within their limits; and ``motor_slope``, how they change with velocity."""
        w = wp.tid()
        h, p = opt_timestep[row(w, opt_timestep)], row(w, actuator_dynprm)
        for u in range(actuator_gaintype.shape[0]):
            if actuator_gaintype[u] == GAIN_DCMOTOR:
                a, out = actuator_actadr[u], actuator_outadr[u]
                m = motor(w, u, a, actuator_gainprm, actuator_dynprm, act)
                length, speed = actuator_length[w, out], actuator_velocity[w, out]
                c = actuator_ctrladr[u]
                signal = first_control(m, w, u, c, actuator_ctrlnum[u] > 0, h, actuator_dynprm, ctrl_taken, act)
                volts, bound = voltage(
                    m, w, u, c, actuator_ctrlspec[u], signal, length, speed, actuator_gainprm, ctrl_taken, act
                )
                per_volt = m.constant / m.resistance
                rise = real(0.0)  # of the voltage with velocity
                if (actuator_ctrlspec[u] & CONTROLLED) != 0 and not bound:
                    damping = actuator_gainprm[row(w, actuator_gainprm), u, 6]
                    rise = m.constant - damping * wp.max(m.nominal, real(MINVAL)) / m.constant
                force = per_volt * (volts - m.constant * speed)
                slope = per_volt * (rise - m.constant)
                if m.lag > real(0.0):
                    force, slope = real(0.0), real(0.0)
                    if a >= 0:
                        last = a + actuator_actnum[u] - 1
                        x = act[w, last]
                        if actuator_actearly[u] != 0:
                            x = next_act(m, w, u, last, speed, h, actuator_dynprm, actuator_biasprm, act, act_dot)
                            if actuator_actlimited[u] != 0:
                                limit = actuator_actrange[row(w, actuator_actrange), u]
                                x = wp.clamp(x, limit[0], limit[1])
                            most = actuator_dynprm[p, u, 1]
                            if most <= real(0.0) or wp.abs(act_dot[w, last]) < most:
                                slope = per_volt * (rise - m.constant) * (real(1.0) - wp.exp(-h / m.lag))
                        force = m.constant * x
                if actuator_forcelimited[u] != 0:
                    limit = actuator_forcerange[row(w, actuator_forcerange), u]
                    if force <= limit[0] or force >= limit[1]:
                        slope = real(0.0)
                    if actuator_trntype[u] != TRN_TENDON:
                        force = wp.clamp(force, limit[0], limit[1])
                if is_off(actuator_group[u], opt_disableactuator) or (opt_disableflags & ACTUATION) != 0:
                    force, slope = real(0.0), real(0.0)
                actuator_force[w, out] = force
                motor_slope[w, out] = slope

    @wp.kernel
    def motor_friction(
        opt_disableflags: int, opt_disableactuator: int, actuator_group: ints, actuator_gaintype: ints,
        actuator_actadr: ints, actuator_gainprm: parameters, actuator_dynprm: parameters, actuator_biasprm: parameters,
        actuator_outadr: ints, actuator_length: numbers, act: numbers, act_dot: numbers, motor_mech: numbers,
        actuator_force: numbers,
    ):  # fmt: skip
        """What no limit of the current bounds: ripple and friction."""
        w = wp.tid()
        b, p = row(w, actuator_biasprm), row(w, actuator_dynprm)
        for u in range(actuator_gaintype.shape[0]):
            if actuator_gaintype[u] == GAIN_DCMOTOR:
                out = actuator_outadr[u]
                force = actuator_biasprm[b, u, 0] * wp.sin(
                    actuator_biasprm[b, u, 1] * actuator_length[w, out] + actuator_biasprm[b, u, 2]
                )
                m = motor(w, u, actuator_actadr[u], actuator_gainprm, actuator_dynprm, act)
                if m.bristles >= 0:
                    force = force - actuator_dynprm[p, u, 5] * act[w, m.bristles]
                    force = force - actuator_dynprm[p, u, 6] * act_dot[w, m.bristles]
                if is_off(actuator_group[u], opt_disableactuator) or (opt_disableflags & ACTUATION) != 0:
                    force = real(0.0)
                motor_mech[w, out] = force
                actuator_force[w, out] = actuator_force[w, out] + force

    return dict(motor_force=motor_force, motor_friction=motor_friction)


def _advance(real: Any) -> dict[str, wp.Kernel]:
    f, is_off = _motor(real), servo(real).is_off
    motor, next_act = f.motor, f.next_act
    numbers, parameters = wp.array2d(dtype=real), wp.array3d(dtype=real)

    @wp.kernel
    def advance_motors(
        opt_disableactuator: int, opt_timestep: wp.array(dtype=real), actuator_group: ints, actuator_gaintype: ints,
        actuator_actadr: ints, actuator_actnum: ints, actuator_gainprm: parameters, actuator_dynprm: parameters,
        actuator_biasprm: parameters, actuator_outadr: ints, actuator_velocity: numbers, act_dot: numbers, act: numbers,
    ):  # fmt: skip
        """Activations of motors after the step."""
        w = wp.tid()
        h = opt_timestep[row(w, opt_timestep)]
        for u in range(actuator_gaintype.shape[0]):
            first = actuator_actadr[u]
            on = not is_off(actuator_group[u], opt_disableactuator)
            if actuator_gaintype[u] == GAIN_DCMOTOR and first >= 0 and on:
                m = motor(w, u, first, actuator_gainprm, actuator_dynprm, act)
                speed = actuator_velocity[w, actuator_outadr[u]]
                for a in range(first, first + actuator_actnum[u]):
                    act[w, a] = next_act(m, w, u, a, speed, h, actuator_dynprm, actuator_biasprm, act, act_dot)

    return dict(advance_motors=advance_motors)


def _derivative(real: Any) -> dict[str, wp.Kernel]:
    vec2, add_outer = types(real).vec2, pattern(real).add_outer
    numbers, parameters = wp.array2d(dtype=real), wp.array3d(dtype=real)
    close = real(1e-5 if real is wp.float32 else 1e-12)

    @wp.kernel
    def deriv_motors(
        actuator_trntype: ints, actuator_trnid: ints2, actuator_gaintype: ints, actuator_outadr: ints,
        tendon_actfrclimited: ints, tendon_actfrcrange: wp.array2d(dtype=vec2), jnt_actfrclimited: ints,
        jnt_actfrcrange: wp.array2d(dtype=vec2), jnt_dofadr: ints, actuator_dynprm: parameters,
        moment_rowadr: ints, moment_rownnz: ints, moment_colind: ints, actuator_moment: numbers,
        actuator_force: numbers, motor_mech: numbers, motor_slope: numbers, qfrc_actuator: numbers,
        D_rowadr: ints, D_rownnz: ints, D_colind: ints, qDeriv: numbers,
    ):  # fmt: skip
        """Motors: electric forces but for those at a limit of tendons, and the damping of bristles."""
        w = wp.tid()
        for u in range(actuator_trntype.shape[0]):
            if actuator_gaintype[u] == GAIN_DCMOTOR:
                out, kind, target = actuator_outadr[u], actuator_trntype[u], actuator_trnid[u, 0]
                slope = motor_slope[w, out]
                if kind == TRN_TENDON:
                    if tendon_actfrclimited[target] != 0:
                        total = real(0.0)
                        for v in range(actuator_trntype.shape[0]):
                            if actuator_trntype[v] == TRN_TENDON and actuator_trnid[v, 0] == target:
                                i = actuator_outadr[v]
                                total = total + actuator_force[w, i] - motor_mech[w, i]
                        limit = tendon_actfrcrange[row(w, tendon_actfrcrange), target]
                        low, high = limit[0] + close * wp.abs(limit[0]), limit[1] - close * wp.abs(limit[1])
                        if total <= low or total >= high:
                            slope = real(0.0)
                slope = slope - wp.max(actuator_dynprm[row(w, actuator_dynprm), u, 6], real(0.0))
                if kind == TRN_JOINT or kind == TRN_JOINTINPARENT:
                    if jnt_actfrclimited[target] != 0:
                        limit = jnt_actfrcrange[row(w, jnt_actfrcrange), target]
                        force = qfrc_actuator[w, jnt_dofadr[target]]
                        if force <= limit[0] or force >= limit[1]:
                            slope = real(0.0)
                if slope != real(0.0):
                    add_outer(w, moment_rowadr[out], moment_rownnz[out], moment_colind, actuator_moment, slope,
                              D_rowadr, D_rownnz, D_colind, qDeriv)  # fmt: skip

    return dict(deriv_motors=deriv_motors)
