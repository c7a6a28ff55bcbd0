"""From what is known of each row to its stiffness, damping, impedance, regularisation and reference acceleration.

MuJoCo documentation, Computation, Constraint model, and Modeling, Solver parameters.
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.constants import MINVAL
from treadle.mujoco.constraint.kinds import (
    ELLIPTIC,
    EQUALITY,
    FRICTION_DOF,
    FRICTION_TENDON,
    LIMIT_JOINT,
    LIMIT_TENDON,
    MAXIMP,
    MINIMP,
    NO_REFSAFE,
    PYRAMIDAL,
)
from treadle.mujoco.constraint.rows import (
    DIAG,
    FRICTION,
    LOSS,
    MARGIN,
    NORM,
    POS,
    SOLIMP,
    SOLREF,
)

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def softness(real: Any) -> tuple[wp.Function, wp.Function]:
    """Kernel functions for impedance with its derivative, and for stiffness and damping, from a row's parameters."""
    numbers = types(real).spec

    @wp.func
    def impedance(known: numbers):
        """Impedance as a function of the violation, what it lacks of 1, and its derivative.

        Two powers joined at ``mid``. The second result has digits that the difference of 1 and the first would lose.
        """
        zero, one = real(0.0), real(1.0)
        low = wp.clamp(known[SOLIMP], real(MINIMP), real(MAXIMP))
        high = wp.clamp(known[SOLIMP + 1], real(MINIMP), real(MAXIMP))
        rest_low = wp.where(low < real(MAXIMP), one - low, real(MINIMP))
        rest_high = wp.where(high < real(MAXIMP), one - high, real(MINIMP))
        width = wp.max(known[SOLIMP + 2], zero)
        mid = wp.clamp(known[SOLIMP + 3], real(MINIMP), real(MAXIMP))
        power = wp.max(known[SOLIMP + 4], one)
        value, rest, slope = real(0.5) * (low + high), real(0.5) * (rest_low + rest_high), zero
        if low != high and width > real(MINVAL):
            x = (known[NORM] - known[MARGIN]) / width
            sign = one
            if x < zero:
                x, sign = -x, -one
            value, rest = high, rest_high
            if x <= zero:
                value, rest = low, rest_low
            elif x < one:
                y, dy = x, one
                if power != one:
                    early = x <= mid
                    side, part = wp.where(early, mid, one - mid), wp.where(early, x, one - x)
                    before = part / side
                    if wp.any_lane(power != real(2.0)):  # the default needs no powers of numbers
                        if power != real(2.0):
                            before = wp.pow(before, power - one)
                    y = wp.where(early, before * part, one - before * part)
                    dy = power * before
                value, rest = low + y * (high - low), rest_low + y * (rest_high - rest_low)
                slope = dy * sign * (high - low) / width
        return value, rest, slope

    @wp.func
    def stiffness(known: numbers, timestep: real, safe: bool):
        """Stiffness and damping: from time constant and damping ratio, or, if negative, as they are."""
        zero, tiny = real(0.0), real(MINVAL)
        time, ratio = known[SOLREF], known[SOLREF + 1]
        if (time > zero) != (ratio > zero):  # neither the one nor the other: MuJoCo's default
            time, ratio = real(0.02), real(1.0)
        high = wp.clamp(known[SOLIMP + 1], real(MINIMP), real(MAXIMP))
        k = -time / wp.max(tiny, high * high)
        b = -ratio / wp.max(tiny, high)
        if time > zero:
            if safe:
                time = wp.max(time, real(2.0) * timestep)
            k = real(1.0) / wp.max(tiny, high * high * time * time * ratio * ratio)
            b = real(2.0) / wp.max(tiny, high * time)
        return k, b

    return impedance, stiffness


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    t = types(real)
    vec4, numbers = t.vec4, t.spec
    impedance, stiffness = softness(real)

    @wp.kernel
    def begin_rows(nrow: ints, eq_efc_address: ints2):
        """No row yet."""
        w = wp.tid()
        nrow[w] = 0
        for e in range(eq_efc_address.shape[1]):
            eq_efc_address[w, e] = -1

    @wp.kernel
    def impedance_rows(
        opt_disableflags: int, opt_timestep: wp.array(dtype=real), opt_impratio: wp.array(dtype=real),
        nrow: ints, efc_type: ints2, efc_dim: ints2, efc_spec: wp.array2d(dtype=numbers),
        efc_pos: wp.array2d(dtype=real), efc_margin: wp.array2d(dtype=real), efc_frictionloss: wp.array2d(dtype=real),
        efc_friction: wp.array2d(dtype=real), efc_KBIP: wp.array2d(dtype=vec4), efc_diagA: wp.array2d(dtype=real),
        efc_R: wp.array2d(dtype=real), efc_D: wp.array2d(dtype=real), ne: ints, nf: ints, nl: ints, nefc: ints,
    ):  # fmt: skip
        """All that follows from what writers left of the rows."""
        w = wp.tid()
        zero, one = real(0.0), real(1.0)
        h, impratio = opt_timestep[row(w, opt_timestep)], wp.max(real(MINVAL), opt_impratio[row(w, opt_impratio)])
        count = wp.min(nrow[w], efc_type.shape[1])
        equalities, frictions, limits = int(0), int(0), int(0)
        shared = zero  # what rows of a contact take over from its first one
        for i in range(count):
            kind, dim, known = efc_type[w, i], efc_dim[w, i], efc_spec[w, i]
            imp, rest, slope = impedance(known)
            k, b = stiffness(known, h, (opt_disableflags & NO_REFSAFE) == 0)
            if kind == FRICTION_DOF or kind == FRICTION_TENDON or (kind == ELLIPTIC and dim == 0):
                k = zero

            # friction directions are softer than the normal by impratio; in a pyramid all edges share one number, and
            # in an ellipse R times the square of the friction coefficient is the same in all directions of friction
            r = wp.max(real(MINVAL), rest * known[DIAG] / imp)
            mu = known[FRICTION]
            if kind == PYRAMIDAL:
                if dim > 0:
                    shared = real(2.0) * mu * mu / impratio * r
                r = shared
            elif kind == ELLIPTIC:
                if dim > 0:
                    shared = r / impratio * mu * mu
                    mu = mu / wp.sqrt(impratio)
                else:
                    r = shared / (mu * mu)

            efc_pos[w, i] = known[POS]
            efc_margin[w, i] = known[MARGIN]
            efc_frictionloss[w, i] = known[LOSS]
            efc_friction[w, i] = mu
            efc_KBIP[w, i] = vec4(k, b, imp, slope)
            efc_R[w, i] = r
            efc_D[w, i] = one / r
            efc_diagA[w, i] = r * imp / rest
            if kind == EQUALITY:
                equalities = equalities + 1
            elif kind == FRICTION_DOF or kind == FRICTION_TENDON:
                frictions = frictions + 1
            elif kind == LIMIT_JOINT or kind == LIMIT_TENDON:
                limits = limits + 1
        ne[w] = equalities
        nf[w] = frictions
        nl[w] = limits
        nefc[w] = count

    @wp.kernel
    def reference(
        nefc: ints, efc_J: wp.array3d(dtype=real), qvel: wp.array2d(dtype=real), efc_pos: wp.array2d(dtype=real),
        efc_margin: wp.array2d(dtype=real), efc_KBIP: wp.array2d(dtype=vec4), efc_vel: wp.array2d(dtype=real),
        efc_aref: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Velocities of constraints, and the acceleration of a damped spring that pulls each where it should be."""
        w = wp.tid()
        for i in range(nefc[w]):
            vel = real(0.0)
            for k in range(qvel.shape[1]):
                vel = vel + efc_J[w, i, k] * qvel[w, k]
            soft = efc_KBIP[w, i]
            efc_vel[w, i] = vel
            efc_aref[w, i] = -soft[1] * vel - soft[0] * soft[2] * (efc_pos[w, i] - efc_margin[w, i])

    return dict(begin_rows=begin_rows, impedance=impedance_rows, reference=reference)
