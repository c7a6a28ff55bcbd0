"""Where solvers begin and what they leave: the warm start, and accelerations and forces in the end."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.constraint.kinds import NO_WARMSTART
from treadle.mujoco.solver.cost import costs
from treadle.mujoco.solver.products import products

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {"warm_start": _warm_start(real), "finish": _finish(real)}


def _warm_start(real: Any) -> wp.Kernel:
    mul, evaluate = products(real), costs(real).evaluate
    mul_m, mul_j, dot = mul.mul_m, mul.mul_j, mul.dot

    @wp.kernel
    def warm_start(
        opt_disableflags: int, M_rownnz: ints, M_rowadr: ints, M_colind: ints, nefc: ints, M: wp.array2d(dtype=real),
        qacc_smooth: wp.array2d(dtype=real), qacc_warmstart: wp.array2d(dtype=real),
        efc_type: ints2, efc_dim: ints2, efc_J: wp.array3d(dtype=real), efc_D: wp.array2d(dtype=real),
        efc_aref: wp.array2d(dtype=real), efc_frictionloss: wp.array2d(dtype=real),
        efc_friction: wp.array2d(dtype=real), efc_b: wp.array2d(dtype=real), efc_force: wp.array2d(dtype=real),
        efc_state: ints2, solver_x: wp.array2d(dtype=real), solver_Mx: wp.array2d(dtype=real),
        solver_jar: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Begin at the acceleration of the step before, or, if that costs less, at that without constraints."""
        w = wp.tid()
        nv, n = qacc_smooth.shape[1], nefc[w]
        mul_j(w, n, efc_J, qacc_smooth, efc_b)
        for i in range(n):
            efc_b[w, i] = efc_b[w, i] - efc_aref[w, i]
            solver_jar[w, i] = efc_b[w, i]
        warm = n > 0 and (opt_disableflags & NO_WARMSTART) == 0
        if wp.any_lane(warm):
            cold = evaluate(
                w, n, efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, solver_jar, efc_force, efc_state,
            )  # fmt: skip
            for k in range(nv):
                solver_x[w, k] = qacc_warmstart[w, k] - qacc_smooth[w, k]
            mul_m(w, M_rownnz, M_rowadr, M_colind, M, solver_x, solver_Mx)
            mul_j(w, n, efc_J, solver_x, solver_jar)
            for i in range(n):
                solver_jar[w, i] = solver_jar[w, i] + efc_b[w, i]
            hot = evaluate(
                w, n, efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, solver_jar, efc_force, efc_state,
            )  # fmt: skip
            warm = warm and hot + real(0.5) * dot(w, solver_x, solver_Mx) < cold
        if not warm:
            for k in range(nv):
                solver_x[w, k] = real(0.0)
                solver_Mx[w, k] = real(0.0)
            for i in range(n):
                solver_jar[w, i] = efc_b[w, i]

    return warm_start


def _finish(real: Any) -> wp.Kernel:
    add_jt = products(real).add_jt

    @wp.kernel
    def finish(
        nefc: ints, efc_J: wp.array3d(dtype=real), efc_force: wp.array2d(dtype=real),
        qacc_smooth: wp.array2d(dtype=real), solver_x: wp.array2d(dtype=real),
        qacc: wp.array2d(dtype=real), qfrc_constraint: wp.array2d(dtype=real),
    ):  # fmt: skip
        """The acceleration, and what forces of constraints do to joints."""
        w = wp.tid()
        for k in range(qacc.shape[1]):
            qacc[w, k] = qacc_smooth[w, k] + solver_x[w, k]
            qfrc_constraint[w, k] = real(0.0)
        add_jt(w, nefc[w], efc_J, efc_force, real(1.0), qfrc_constraint)

    return finish
