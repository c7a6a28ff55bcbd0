"""Delays: controls and outputs of sensors are kept in rings of samples with their times, and read from there.

A ring of n samples lies in ``history`` as MuJoCo's does: a number that is the sensor's own (when it last sampled), the
place of the newest sample, n times, n samples. MuJoCo documentation, Modeling, Delays.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.binding import launch
from treadle.mujoco.constants import CHART_QUAT, TRN_SO3
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model
from treadle.mujoco.sensor.kinds import KIND, STAGE_VEL

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)

E_KINETIC = KIND.E_KINETIC
HELD, LINEAR = wp.constant(0), wp.constant(1)  # how values between samples are found; 2: by cubics (Catmull, Rom)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_reading(real), **_keeping(real), **_beginning(real)}


def delayed_controls(m: Model, d: Data, **other: Any) -> wp.array:
    """What actuators receive of the controls: the field ``ctrl_delayed``."""
    launch(kernels(d.real)["delayed_controls"], m, d, **other)
    return d.field("ctrl_delayed")


def delay_sensors(m: Model, d: Data, stage: int, **other: Any) -> None:
    """What the sensors of a stage give after delays and pauses."""
    if m.nhistory:
        launch(kernels(d.real)["delayed_sensors"], m, d, stage=int(stage), **other)


def remember(m: Model, d: Data) -> None:
    """Before time goes on: keep the controls of the step, and what its sensors found."""
    launch(kernels(d.real)["remember"], m, d)


@cache
def ring(real: Any) -> SimpleNamespace:
    """Kernel functions ``read`` and ``insert`` for one precision; a ring begins at ``at`` in a world's history."""
    numbers = wp.array2d(dtype=real)
    absolute, relative = (1e-9, 0.0) if real is wp.float64 else (1e-7, 4e-7)

    @wp.func
    def same(a: real, b: real):
        """Whether two times are one but for rounding."""
        return wp.abs(a - b) <= real(absolute) + real(relative) * wp.max(wp.abs(a), wp.abs(b))

    @wp.func
    def due(last: real, period: real, t: real):
        """Whether a sensor that samples at intervals does so at time ``t``."""
        return last + period <= t + real(relative) * wp.abs(t)

    @wp.func
    def place(w: int, at: int, n: int, k: int, history: numbers):
        """Where sample ``k`` lies, 0 being the oldest."""
        return (int(history[w, at + 1]) + 1 + k) % n

    @wp.func
    def first_after(w: int, at: int, n: int, t: real, history: numbers):
        """The number of the first sample that is not before ``t``; n if all are."""
        found = int(0)
        while found < n and history[w, at + 2 + place(w, at, n, wp.min(found, n - 1), history)] < t:
            found = found + 1
        return found

    @wp.func
    def read(w: int, at: int, n: int, dim: int, t: real, how: int, history: numbers, first: int, into: numbers):
        """Write to ``into``, from ``first`` on, what was at time ``t``; before and after all samples the outermost."""
        times, values = at + 2, at + 2 + n
        i = wp.clamp(first_after(w, at, n, t, history), 0, n - 1)
        high = place(w, at, n, i, history)
        low = high
        if i > 0:
            low = place(w, at, n, i - 1, history)
        t_high, t_low = history[w, times + high], history[w, times + low]
        if i == 0 or t >= t_high or same(t, t_high):
            low, t_low = high, t_high
        elif same(t, t_low):
            high, t_high = low, t_low
        before, after, t_before, t_after = low, high, t_low, t_high
        if i > 1:
            before = place(w, at, n, i - 2, history)
            t_before = history[w, times + before]
        if i < n - 1:
            after = place(w, at, n, i + 1, history)
            t_after = history[w, times + after]
        span = t_high - t_low
        for d in range(dim):
            a, b = history[w, values + low * dim + d], history[w, values + high * dim + d]
            value = a
            if how != HELD and low != high:
                x = (t - t_low) / span
                value = a + x * (b - a)
                if how != LINEAR:
                    slope_a, slope_b = real(0.0), real(0.0)
                    if i > 1:
                        slope_a = span * (b - history[w, values + before * dim + d]) / (t_high - t_before)
                    if i < n - 1:
                        slope_b = span * (history[w, values + after * dim + d] - a) / (t_after - t_low)
                    y = real(1.0) - x
                    value = y * y * ((real(1.0) + real(2.0) * x) * a + x * slope_a)
                    value = value + x * x * ((real(3.0) - real(2.0) * x) * b - y * slope_b)
            into[w, first + d] = value

    @wp.func
    def insert(w: int, at: int, n: int, dim: int, t: real, source: numbers, first: int, history: numbers):
        """Add a sample at time ``t``, or put it in the place of one of that time; times only grow."""
        newest = int(history[w, at + 1])
        if not same(t, history[w, at + 2 + newest]):
            newest = (newest + 1) % n
            history[w, at + 1] = real(newest)
            history[w, at + 2 + newest] = t
        for d in range(dim):
            history[w, at + 2 + n + newest * dim + d] = source[w, first + d]

    return SimpleNamespace(read=read, insert=insert, due=due)


def _reading(real: Any) -> dict[str, wp.Kernel]:
    vec2, read, due = types(real).vec2, ring(real).read, ring(real).due
    numbers = wp.array2d(dtype=real)

    @wp.kernel
    def delayed_controls(
        actuator_ctrladr: ints, actuator_ctrlnum: ints, actuator_history: ints2, actuator_historyadr: ints,
        actuator_delay: numbers, time: wp.array(dtype=real), history: numbers, ctrl: numbers, ctrl_delayed: numbers,
    ):  # fmt: skip
        """Controls as actuators receive them."""
        w = wp.tid()
        for c in range(ctrl.shape[1]):
            ctrl_delayed[w, c] = ctrl[w, c]
        for u in range(actuator_ctrladr.shape[0]):
            delay = actuator_delay[row(w, actuator_delay), u]
            n, how = actuator_history[u, 0], actuator_history[u, 1]
            if n > 0 and delay > real(0.0):
                read(w, actuator_historyadr[u], n, actuator_ctrlnum[u], time[w] - delay, how, history,
                     actuator_ctrladr[u], ctrl_delayed)  # fmt: skip

    @wp.kernel
    def delayed_sensors(
        stage: int, sensor_type: ints, sensor_needstage: ints, sensor_adr: ints, sensor_dim: ints,
        sensor_history: ints2, sensor_historyadr: ints, sensor_delay: numbers, sensor_interval: wp.array2d(dtype=vec2),
        time: wp.array(dtype=real), history: numbers, sensor_fresh: numbers, sensordata: numbers,
    ):  # fmt: skip
        """What sensors of a stage found is put aside; they give what they found before, if they have delay or pause."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            n, at, when = sensor_history[s, 0], sensor_adr[s], sensor_needstage[s]
            if sensor_type[s] == E_KINETIC:  # we have it only with velocities
                when = STAGE_VEL
            if n > 0 and when == stage:
                for k in range(at, at + sensor_dim[s]):
                    sensor_fresh[w, k] = sensordata[w, k]
                delay = sensor_delay[row(w, sensor_delay), s]
                period = sensor_interval[row(w, sensor_interval), s][0]
                pausing = period > real(0.0) and not due(history[w, sensor_historyadr[s]], period, time[w])
                if delay > real(0.0) or pausing:
                    read(w, sensor_historyadr[s], n, sensor_dim[s], time[w] - delay, sensor_history[s, 1], history, at,
                         sensordata)  # fmt: skip

    return dict(delayed_controls=delayed_controls, delayed_sensors=delayed_sensors)


def _keeping(real: Any) -> dict[str, wp.Kernel]:
    vec2, insert, due = types(real).vec2, ring(real).insert, ring(real).due
    numbers = wp.array2d(dtype=real)

    @wp.kernel
    def remember(
        actuator_ctrladr: ints, actuator_ctrlnum: ints, actuator_history: ints2, actuator_historyadr: ints,
        sensor_adr: ints, sensor_dim: ints, sensor_history: ints2, sensor_historyadr: ints,
        sensor_interval: wp.array2d(dtype=vec2), time: wp.array(dtype=real), ctrl: numbers, sensor_fresh: numbers,
        history: numbers,
    ):  # fmt: skip
        """Keep the controls of a step, and what its sensors found."""
        w = wp.tid()
        for u in range(actuator_ctrladr.shape[0]):
            n = actuator_history[u, 0]
            if n > 0:
                insert(w, actuator_historyadr[u], n, actuator_ctrlnum[u], time[w], ctrl, actuator_ctrladr[u], history)
        for s in range(sensor_adr.shape[0]):
            n, at = sensor_history[s, 0], sensor_historyadr[s]
            if n > 0:
                period, samples = sensor_interval[row(w, sensor_interval), s][0], True
                if period > real(0.0):
                    samples = due(history[w, at], period, time[w])
                    if samples:
                        history[w, at] = history[w, at] + period
                if samples:
                    insert(w, at, n, sensor_dim[s], time[w], sensor_fresh, sensor_adr[s], history)

    return dict(remember=remember)


def _beginning(real: Any) -> dict[str, wp.Kernel]:
    vec2 = types(real).vec2
    numbers = wp.array2d(dtype=real)

    @wp.kernel
    def begin_history(
        reset_key: ints, opt_timestep: wp.array(dtype=real), actuator_trntype: ints, actuator_ctrlnum: ints,
        actuator_ctrlspec: ints, actuator_history: ints2, actuator_historyadr: ints, sensor_dim: ints,
        sensor_history: ints2, sensor_historyadr: ints, sensor_interval: wp.array2d(dtype=vec2), history: numbers,
    ):  # fmt: skip
        """In worlds that are reset: samples of zeros, up to one step, or one interval, before the start."""
        w = wp.tid()
        h = opt_timestep[row(w, opt_timestep)]
        zero = real(0.0)
        if reset_key[w] > -2:
            for k in range(history.shape[1]):
                history[w, k] = zero
            for u in range(actuator_history.shape[0]):
                n, at = actuator_history[u, 0], actuator_historyadr[u]
                for k in range(n):
                    history[w, at + 1] = real(n - 1)
                    history[w, at + 2 + k] = -h * real(n - k)
                    if actuator_trntype[u] == TRN_SO3 and actuator_ctrlspec[u] == CHART_QUAT:
                        history[w, at + 2 + n + k * actuator_ctrlnum[u]] = real(1.0)
            for s in range(sensor_history.shape[0]):
                n, at = sensor_history[s, 0], sensor_historyadr[s]
                interval = sensor_interval[row(w, sensor_interval), s]
                start = wp.where(interval[1] != zero, interval[1], -interval[0])
                later = zero  # the next sample's time, in steps
                for back in range(n):
                    k = n - 1 - back
                    steps = -real(back + 1)
                    if interval[0] > h:  # the first step at which the sample could have been taken
                        exact = (start - interval[0] * real(back)) / h
                        near = wp.round(exact)
                        steps = wp.where(wp.abs(exact - near) <= real(1e-6) * (real(1.0) + wp.abs(exact)), near,
                                         wp.ceil(exact))  # fmt: skip
                        if back > 0:
                            steps = wp.min(steps, later - real(1.0))
                    elif interval[0] > zero and interval[1] != zero:
                        steps = -real(back)
                    later = steps
                    history[w, at + 1] = real(n - 1)
                    history[w, at + 2 + k] = steps * h
                if n > 0:
                    history[w, at] = wp.where(interval[0] > zero, start, -h)

    return dict(begin_history=begin_history)
