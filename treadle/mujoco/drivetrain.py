"""What actuators add to the joints and tendons that they drive: the inertia and the damping of their own parts."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index, row, types
from treadle.mujoco.constants import TRN_JOINT, TRN_JOINTINPARENT, TRN_TENDON

ints = wp.array(dtype=int)


@cache
def drivetrain(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision: ``added`` and ``added_poly`` of numbers and of pairs of coefficients."""
    spatial, vec2 = types(real).spatial, types(real).vec2

    @wp.func
    def drives(u: int, target: int, tendon: bool, trntype: ints, trnid: wp.array2d(dtype=int)):
        """Whether actuator ``u`` acts on the joint, or the tendon, ``target``."""
        kind = trntype[u]
        on_joint = kind == TRN_JOINT or kind == TRN_JOINTINPARENT
        return trnid[u, 0] == target and ((tendon and kind == TRN_TENDON) or (not tendon and on_joint))

    @wp.func
    def added(
        w: int, target: int, actuator: int, tendon: bool, trntype: ints, trnid: wp.array2d(dtype=int),
        outadr: ints, amount: wp.array2d(dtype=real), gear: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """The sum of ``amount`` over actuators that drive ``target``, each times its gear squared.

        ``actuator`` is the one that does, -1 for none, -2 for several.
        """
        total = real(0.0)
        if actuator >= 0:
            g = gear[row(w, gear), index(outadr[actuator])][0]
            total = amount[row(w, amount), actuator] * g * g
        if actuator < -1:
            for u in range(trntype.shape[0]):
                if drives(u, target, tendon, trntype, trnid):
                    g = gear[row(w, gear), outadr[u]][0]
                    total = total + amount[row(w, amount), u] * g * g
        return total

    @wp.func
    def added_poly(
        w: int, target: int, actuator: int, tendon: bool, trntype: ints, trnid: wp.array2d(dtype=int),
        outadr: ints, amount: wp.array2d(dtype=vec2), gear: wp.array2d(dtype=spatial),
    ):  # fmt: skip
        """`added` for pairs of coefficients."""
        total = vec2(real(0.0), real(0.0))
        if actuator >= 0:
            g = gear[row(w, gear), index(outadr[actuator])][0]
            total = amount[row(w, amount), actuator] * (g * g)
        if actuator < -1:
            for u in range(trntype.shape[0]):
                if drives(u, target, tendon, trntype, trnid):
                    g = gear[row(w, gear), outadr[u]][0]
                    total = total + amount[row(w, amount), u] * (g * g)
        return total

    @wp.func
    def poly(linear: real, coefficients: vec2, x: real):
        """A coefficient that grows with ``x``: MuJoCo's polynomial stiffness; damping takes ``|x|``."""
        return linear + x * (coefficients[0] + x * coefficients[1])

    @wp.func
    def poly_slope(linear: real, coefficients: vec2, x: real):
        """The derivative of ``x poly(x)``."""
        return linear + x * (real(2.0) * coefficients[0] + x * (real(3.0) * coefficients[1]))

    return SimpleNamespace(added=added, added_poly=added_poly, poly=poly, poly_slope=poly_slope)
