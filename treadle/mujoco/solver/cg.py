"""Conjugate gradients on the primal problem, with the mass matrix as preconditioner.

The directions are Polak and Ribiere's, never turned back (J. Nocedal, S. Wright, *Numerical Optimization*, 2006, 5.2).
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row
from treadle.mujoco.factor import factorisation
from treadle.mujoco.solver.cost import costs
from treadle.mujoco.solver.linesearch import linesearch
from treadle.mujoco.solver.products import products

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {"cg": _cg(real)}


def _cg(real: Any) -> wp.Kernel:
    mul, vec3, solve = products(real), wp.types.vector(length=3, dtype=real), factorisation(real).solve
    add_jt, dot = mul.add_jt, mul.dot
    evaluate, descend = costs(real).evaluate, linesearch(real).descend

    @wp.kernel
    def cg(
        opt_tolerance: wp.array(dtype=real), opt_ls_tolerance: wp.array(dtype=real), opt_iterations: int,
        opt_ls_iterations: int, meaninertia: real, M_rownnz: ints, M_rowadr: ints, M_colind: ints,
        nefc: ints, M: wp.array2d(dtype=real), qLD: wp.array2d(dtype=real), qLDiagInv: wp.array2d(dtype=real),
        efc_type: ints2, efc_dim: ints2,
        efc_J: wp.array3d(dtype=real), efc_D: wp.array2d(dtype=real), efc_frictionloss: wp.array2d(dtype=real),
        efc_friction: wp.array2d(dtype=real), efc_force: wp.array2d(dtype=real), efc_state: ints2,
        solver_x: wp.array2d(dtype=real), solver_Mx: wp.array2d(dtype=real), solver_jar: wp.array2d(dtype=real),
        solver_grad: wp.array2d(dtype=real), solver_Mgrad: wp.array2d(dtype=real), solver_last: wp.array2d(dtype=real),
        solver_p: wp.array2d(dtype=real), solver_Mp: wp.array2d(dtype=real),
        solver_jv: wp.array2d(dtype=real), row_weight: wp.array2d(dtype=real), row_scale: wp.array2d(dtype=real),
        row_share: wp.array2d(dtype=real), cone_quad: wp.array2d(dtype=vec3), solver_niter: ints,
    ):  # fmt: skip
        """Minimise from ``solver_x``, where `warm_start` left also the products with it."""
        w = wp.tid()
        nv, n = M_rownnz.shape[0], nefc[w]
        tolerance = opt_tolerance[row(w, opt_tolerance)]
        scale = real(1.0) / (meaninertia * real(wp.max(nv, 1)))
        for c in range(nv):
            solver_p[w, c] = real(0.0)
            solver_last[w, c] = real(0.0)
        size = real(1.0)  # of the last gradient, by the preconditioner
        running = n > 0
        count = int(0)
        k = int(0)
        while k < opt_iterations and wp.any_lane(running):
            cost, changed = evaluate(
                w, n, efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, solver_jar, efc_force, efc_state,
                row_weight, row_scale, row_share,
            )  # fmt: skip
            for c in range(nv):
                solver_grad[w, c] = solver_Mx[w, c]
            add_jt(w, n, efc_J, efc_force, real(-1.0), solver_grad)
            if scale * wp.sqrt(dot(w, solver_grad, solver_grad)) < tolerance:
                running = False
            for c in range(nv):
                solver_Mgrad[w, c] = solver_grad[w, c]
            solve(w, M_rowadr, M_rownnz, M_colind, qLD, qLDiagInv, solver_Mgrad)
            now = dot(w, solver_grad, solver_Mgrad)
            keep = wp.max((now - dot(w, solver_Mgrad, solver_last)) / size, real(0.0))
            size = wp.max(now, real(1e-30))
            for c in range(nv):
                solver_p[w, c] = keep * solver_p[w, c] - solver_Mgrad[w, c]
                solver_last[w, c] = solver_grad[w, c]
            flat = tolerance * opt_ls_tolerance[row(w, opt_ls_tolerance)] / scale
            a, slope, exact = descend(
                w, n, running, opt_ls_iterations, flat, M_rownnz, M_rowadr, M_colind, M, efc_J, efc_type, efc_dim,
                efc_D, efc_frictionloss, efc_friction, solver_x, solver_Mx, solver_jar, solver_p, solver_Mp, solver_jv,
                cone_quad,
            )  # fmt: skip
            if running:
                count = count + 1
                if real(-0.5) * scale * a * slope < tolerance or a == real(0.0):
                    running = False
            k = k + 1
        solver_niter[w] = count
        cost, changed = evaluate(
            w, n, efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, solver_jar, efc_force, efc_state,
            row_weight, row_scale, row_share,
        )  # fmt: skip

    return cg
