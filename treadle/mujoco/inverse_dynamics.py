"""Inverse dynamics: the forces that give the accelerations at hand."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row
from treadle.mujoco.factor import factorisation
from treadle.mujoco.solver.cost import costs
from treadle.mujoco.solver.products import products

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_constraint(real), **_inverse(real), **_undo(real)}


def _undo(real: Any) -> dict[str, wp.Kernel]:
    mul_m, solve = products(real).mul_m, factorisation(real).solve

    @wp.kernel
    def undo_product(
        opt_timestep: wp.array(dtype=real), M_rownnz: ints, M_rowadr: ints, M_colind: ints, M: wp.array2d(dtype=real),
        D_rownnz: ints, D_rowadr: ints, D_colind: ints, qDeriv: wp.array2d(dtype=real), qacc: wp.array2d(dtype=real),
        qacc_continuous: wp.array2d(dtype=real),
    ):  # fmt: skip
        """``(M - h D) qacc`` (`discrete`)."""
        w = wp.tid()
        h = opt_timestep[row(w, opt_timestep)]
        mul_m(w, M_rownnz, M_rowadr, M_colind, M, qacc, qacc_continuous)
        for i in range(qacc.shape[1]):
            y = real(0.0)
            for e in range(D_rowadr[i], D_rowadr[i] + D_rownnz[i]):
                y = y + qDeriv[w, e] * qacc[w, D_colind[e]]
            qacc_continuous[w, i] = qacc_continuous[w, i] - h * y

    @wp.kernel
    def undo_solve(
        M_rownnz: ints, M_rowadr: ints, M_colind: ints, qLD: wp.array2d(dtype=real), qLDiagInv: wp.array2d(dtype=real),
        qacc_continuous: wp.array2d(dtype=real),
    ):  # fmt: skip
        """The acceleration to that force."""
        w = wp.tid()
        solve(w, M_rowadr, M_rownnz, M_colind, qLD, qLDiagInv, qacc_continuous)

    return dict(undo_product=undo_product, undo_solve=undo_solve)


def _constraint(real: Any) -> dict[str, wp.Kernel]:
    mul, evaluate = products(real), costs(real).evaluate
    mul_j, add_jt = mul.mul_j, mul.add_jt

    @wp.kernel
    def inv_constraint(
        nefc: ints, efc_type: ints2, efc_dim: ints2, efc_J: wp.array3d(dtype=real), efc_D: wp.array2d(dtype=real),
        efc_aref: wp.array2d(dtype=real), efc_frictionloss: wp.array2d(dtype=real),
        efc_friction: wp.array2d(dtype=real), qacc: wp.array2d(dtype=real), efc_force: wp.array2d(dtype=real),
        efc_state: ints2, solver_jar: wp.array2d(dtype=real), qfrc_constraint: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Forces of constraints at known accelerations: they follow in closed form (`solver.cost`)."""
        w = wp.tid()
        n = nefc[w]
        mul_j(w, n, efc_J, qacc, solver_jar)
        for i in range(n):
            solver_jar[w, i] = solver_jar[w, i] - efc_aref[w, i]
        evaluate(
            w, n, efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, solver_jar, efc_force, efc_state,
        )  # fmt: skip
        for k in range(qacc.shape[1]):
            qfrc_constraint[w, k] = real(0.0)
        add_jt(w, n, efc_J, efc_force, real(1.0), qfrc_constraint)

    return dict(inv_constraint=inv_constraint)


def _inverse(real: Any) -> dict[str, wp.Kernel]:
    mul_m = products(real).mul_m

    @wp.kernel
    def inverse(
        M_rownnz: ints, M_rowadr: ints, M_colind: ints, M: wp.array2d(dtype=real), qacc: wp.array2d(dtype=real),
        qfrc_bias: wp.array2d(dtype=real), qfrc_passive: wp.array2d(dtype=real),
        qfrc_constraint: wp.array2d(dtype=real), qfrc_inverse: wp.array2d(dtype=real),
    ):  # fmt: skip
        """``M qacc + qfrc_bias - qfrc_passive - qfrc_constraint``."""
        w = wp.tid()
        mul_m(w, M_rownnz, M_rowadr, M_colind, M, qacc, qfrc_inverse)
        for i in range(qacc.shape[1]):
            known = qfrc_bias[w, i] - qfrc_passive[w, i] - qfrc_constraint[w, i]
            qfrc_inverse[w, i] = qfrc_inverse[w, i] + known

    return dict(inverse=inverse)
