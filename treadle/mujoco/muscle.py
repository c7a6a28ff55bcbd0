"""Muscles: force by length and velocity, passive force, and activation dynamics, for one precision.

MuJoCo's model (documentation, Modeling, Muscles): a peak force times a length curve times a velocity curve times the
activation, with curves made of parabolas; and a filter whose time constants depend on the activation, after M. Millard
and others, *Flexing computational muscle* (2013).
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.constants import MINVAL


@cache
def muscle(real: Any) -> SimpleNamespace:
    """Kernel functions ``active``, ``active_slope`` (by velocity), ``passive``, ``filtered`` for one precision.

    The numbers of muscle ``u`` are row ``g`` of ``prm``: (range, range, force, scale, lmin, lmax, vmax, fpmax, fvmax).
    """
    vec2 = types(real).vec2
    numbers = wp.array3d(dtype=real)
    zero, half, one, two = real(0.0), real(0.5), real(1.0), real(2.0)
    tiny = real(MINVAL)

    @wp.func
    def peak(prm: numbers, g: int, u: int, acc0: real):
        """Peak force at rest; where it is not given, what accelerates the reference pose by ``scale``."""
        force = prm[g, u, 2]
        if force < zero:
            force = prm[g, u, 3] / wp.max(tiny, acc0)
        return force

    @wp.func
    def optimal(prm: numbers, g: int, u: int, lengthrange: vec2):
        """The length at which the muscle is strongest, m."""
        return (lengthrange[1] - lengthrange[0]) / wp.max(tiny, prm[g, u, 1] - prm[g, u, 0])

    @wp.func
    def by_length(x: real, lower: real, upper: real):
        """The length curve: two parabolas up to 1 at 1, two down again."""
        a = half * (lower + one)
        b = half * (one + upper)
        found = zero
        if x >= lower and x <= upper:
            if x <= a:
                y = (x - lower) / wp.max(tiny, a - lower)
                found = half * y * y
            elif x <= one:
                y = (one - x) / wp.max(tiny, one - a)
                found = one - half * y * y
            elif x <= b:
                y = (x - one) / wp.max(tiny, b - one)
                found = one - half * y * y
            else:
                y = (upper - x) / wp.max(tiny, upper - b)
                found = half * y * y
        return found

    @wp.func
    def by_velocity(v: real, fvmax: real):
        """The velocity curve: nothing when shortening at full speed, 1 at rest, ``fvmax`` when lengthening fast."""
        y = fvmax - one
        found = fvmax
        if v <= -one:
            found = zero
        elif v <= zero:
            found = (v + one) * (v + one)
        elif v <= y:
            found = fvmax - (y - v) * (y - v) / wp.max(tiny, y)
        return found

    @wp.func
    def by_velocity_slope(v: real, fvmax: real):
        """Its derivative."""
        y = fvmax - one
        found = zero
        if v > -one:
            if v <= zero:
                found = two * (v + one)
            elif v <= y:
                found = two * (y - v) / wp.max(tiny, y)
        return found

    @wp.func
    def active(length: real, velocity: real, lengthrange: vec2, acc0: real, prm: numbers, g: int, u: int):
        """Force at full activation; negative, as muscles pull."""
        scale = optimal(prm, g, u, lengthrange)
        x = prm[g, u, 0] + (length - lengthrange[0]) / wp.max(tiny, scale)
        v = velocity / wp.max(tiny, scale * prm[g, u, 6])
        return -peak(prm, g, u, acc0) * by_length(x, prm[g, u, 4], prm[g, u, 5]) * by_velocity(v, prm[g, u, 8])

    @wp.func
    def active_slope(length: real, velocity: real, lengthrange: vec2, acc0: real, prm: numbers, g: int, u: int):
        """The derivative of `active` by velocity."""
        scale = optimal(prm, g, u, lengthrange)
        x = prm[g, u, 0] + (length - lengthrange[0]) / wp.max(tiny, scale)
        rate = wp.max(tiny, scale * prm[g, u, 6])
        slope = by_velocity_slope(velocity / rate, prm[g, u, 8])
        return -peak(prm, g, u, acc0) * by_length(x, prm[g, u, 4], prm[g, u, 5]) * slope / rate

    @wp.func
    def passive(length: real, lengthrange: vec2, acc0: real, prm: numbers, g: int, u: int):
        """Force of the stretched muscle: a parabola halfway to its longest, a line beyond."""
        x = prm[g, u, 0] + (length - lengthrange[0]) / wp.max(tiny, optimal(prm, g, u, lengthrange))
        b = half * (one + prm[g, u, 5])
        found = zero
        if x > one:
            if x <= b:
                y = (x - one) / wp.max(tiny, b - one)
                found = half * y * y
            else:
                found = half + (x - b) / wp.max(tiny, b - one)
        return -peak(prm, g, u, acc0) * prm[g, u, 7] * found

    @wp.func
    def smooth_step(x: real):
        """From 0 to 1 as x goes from 0 to 1, flat to the second derivative at both ends."""
        y = wp.clamp(x, zero, one)
        return y * y * y * (real(3.0) * y * (two * y - real(5.0)) + real(10.0))

    @wp.func
    def filtered(control: real, activation: real, rise: real, fall: real, width: real):
        """Rate of change of the activation towards ``control``; ``width`` smooths the switch between two speeds."""
        now = half + real(1.5) * wp.clamp(activation, zero, one)
        excess = wp.clamp(control, zero, one) - activation
        tau = fall / now
        if width < tiny:
            if excess > zero:
                tau = rise * now
        else:
            tau = tau + (rise * now - tau) * smooth_step(excess / width + half)
        return excess / wp.max(tiny, tau)

    return SimpleNamespace(active=active, active_slope=active_slope, passive=passive, filtered=filtered)
