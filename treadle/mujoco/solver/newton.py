"""Newton's method on the primal problem (MuJoCo documentation, Computation, Algorithms).

The Hessian ``M + J' diag(weights) J`` is assembled from the rows that have a weight in any world of a gang, and
factored as ``L L'``. Worlds that have converged keep what they have while others of their gang go on.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row
from treadle.mujoco.solver.cost import costs
from treadle.mujoco.solver.linesearch import linesearch
from treadle.mujoco.solver.products import products

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def _hessian(real: Any) -> SimpleNamespace:
    """The kernel functions ``assemble``, ``factor`` and ``solve`` for one precision.

    H lies as its rows up to the diagonal, one after the other.
    """
    matrix, cube = wp.array2d(dtype=real), wp.array3d(dtype=real)

    @wp.func
    def combine(
        w: int, i: int, acts: bool, efc_dim: ints2, J: cube, row_scale: matrix, row_share: matrix, mixed: matrix,
        combined: matrix,
    ):  # fmt: skip
        """``combined = row_scale J_i - row_share u``, where ``mixed`` is u, made at the first row of a contact.

        Zero where the row does not act: what lies in it is left from other steps.
        """
        scale, share, dim = row_scale[w, i], row_share[w, i], efc_dim[w, i]
        cone = acts and share != real(0.0)
        if cone and dim > 1:
            for k in range(J.shape[2]):
                u = real(0.0)
                for j in range(1, 6):
                    if j < dim:
                        u = u + row_share[w, i + j] * row_scale[w, i + j] * J[w, i + j, k]
                mixed[w, k] = u
        if wp.any_lane(cone):
            for k in range(J.shape[2]):
                y = scale * J[w, i, k]
                if cone:
                    y = y - share * mixed[w, k]
                combined[w, k] = wp.where(acts, y, real(0.0))
        else:
            for k in range(J.shape[2]):
                combined[w, k] = wp.where(acts, scale * J[w, i, k], real(0.0))

    @wp.func
    def assemble(
        w: int, n: int, rownnz: ints, rowadr: ints, colind: ints, M: matrix, efc_dim: ints2, J: cube,
        row_weight: matrix, row_scale: matrix, row_share: matrix, mixed: matrix, combined: matrix, H: matrix,
    ):  # fmt: skip
        """``H = M + sum_i weight_i y_i y_i'``."""
        nv = rownnz.shape[0]
        for a in range(nv):
            start = a * (a + 1) // 2
            for b in range(a + 1):
                H[w, start + b] = real(0.0)
            for e in range(rowadr[a], rowadr[a] + rownnz[a]):
                H[w, start + colind[e]] = M[w, e]
        i = int(0)
        while wp.any_lane(i < n):
            weight = real(0.0)
            if i < n:
                weight = row_weight[w, i]
            acts = weight != real(0.0)
            if wp.any_lane(acts):
                combine(w, i, acts, efc_dim, J, row_scale, row_share, mixed, combined)
                for a in range(nv):
                    y = weight * combined[w, a]
                    if wp.any_lane(y != real(0.0)):
                        start = a * (a + 1) // 2
                        for b in range(a + 1):
                            H[w, start + b] = H[w, start + b] + y * combined[w, b]
            i = i + 1

    @wp.func
    def factor(w: int, nv: int, H: matrix, inverse: matrix):
        """Replace H by L, and keep the inverse of its diagonal."""
        for a in range(nv):
            row_a = a * (a + 1) // 2
            for b in range(a):
                row_b = b * (b + 1) // 2
                y = H[w, row_a + b]
                for k in range(b):
                    y = y - H[w, row_a + k] * H[w, row_b + k]
                H[w, row_a + b] = y * inverse[w, b]
            y = H[w, row_a + a]
            for k in range(a):
                y = y - H[w, row_a + k] * H[w, row_a + k]
            inverse[w, a] = real(1.0) / wp.sqrt(y)

    @wp.func
    def solve(w: int, nv: int, H: matrix, inverse: matrix, x: matrix):
        """Replace x by the solution of ``L L' y = x``."""
        for a in range(nv):
            row_a = a * (a + 1) // 2
            y = x[w, a]
            for k in range(a):
                y = y - H[w, row_a + k] * x[w, k]
            x[w, a] = y * inverse[w, a]
        for back in range(nv):
            a = nv - 1 - back
            row_a = a * (a + 1) // 2
            y = x[w, a] * inverse[w, a]
            x[w, a] = y
            for k in range(a):
                x[w, k] = x[w, k] - H[w, row_a + k] * y

    return SimpleNamespace(assemble=assemble, factor=factor, solve=solve)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {"newton": _newton(real)}


def _newton(real: Any) -> wp.Kernel:
    hessian, mul, vec3 = _hessian(real), products(real), wp.types.vector(length=3, dtype=real)
    assemble, factor, solve = hessian.assemble, hessian.factor, hessian.solve
    mul_m, mul_j, add_jt, dot = mul.mul_m, mul.mul_j, mul.add_jt, mul.dot
    evaluate, search = costs(real).evaluate, linesearch(real).search
    least = 1e-30 if real is wp.float64 else 1e-14  # a gain after which Newton's next step would be rounding

    @wp.kernel
    def newton(
        opt_tolerance: wp.array(dtype=real), opt_ls_tolerance: wp.array(dtype=real), opt_iterations: int,
        opt_ls_iterations: int, meaninertia: real, M_rownnz: ints, M_rowadr: ints, M_colind: ints,
        nefc: ints, M: wp.array2d(dtype=real), efc_type: ints2, efc_dim: ints2,
        efc_J: wp.array3d(dtype=real), efc_D: wp.array2d(dtype=real), efc_frictionloss: wp.array2d(dtype=real),
        efc_friction: wp.array2d(dtype=real), efc_force: wp.array2d(dtype=real), efc_state: ints2,
        solver_x: wp.array2d(dtype=real), solver_Mx: wp.array2d(dtype=real), solver_jar: wp.array2d(dtype=real),
        solver_grad: wp.array2d(dtype=real), solver_p: wp.array2d(dtype=real), solver_Mp: wp.array2d(dtype=real),
        solver_jv: wp.array2d(dtype=real), row_weight: wp.array2d(dtype=real), row_scale: wp.array2d(dtype=real),
        row_share: wp.array2d(dtype=real), cone_quad: wp.array2d(dtype=vec3), solver_H: wp.array2d(dtype=real),
        solver_diag: wp.array2d(dtype=real), solver_niter: ints,
    ):  # fmt: skip
        """Minimise from ``solver_x``, where `start` left also the products with it."""
        w = wp.tid()
        nv, n = M_rownnz.shape[0], nefc[w]
        tolerance = opt_tolerance[row(w, opt_tolerance)]
        scale = real(1.0) / (meaninertia * real(wp.max(nv, 1)))
        cost, changed = evaluate(
            w, n, efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, solver_jar, efc_force, efc_state,
            row_weight, row_scale, row_share,
        )  # fmt: skip
        running = n > 0
        count = int(0)
        k = int(0)
        while k < opt_iterations and wp.any_lane(running):
            for c in range(nv):
                solver_grad[w, c] = solver_Mx[w, c]
            add_jt(w, n, efc_J, efc_force, real(-1.0), solver_grad)
            if scale * wp.sqrt(dot(w, solver_grad, solver_grad)) < tolerance:
                running = False
            if wp.any_lane(running):
                assemble(
                    w, n, M_rownnz, M_rowadr, M_colind, M, efc_dim, efc_J, row_weight, row_scale, row_share,
                    solver_Mp, solver_p, solver_H,
                )  # fmt: skip
                factor(w, nv, solver_H, solver_diag)
                for c in range(nv):
                    solver_p[w, c] = -solver_grad[w, c]
                solve(w, nv, solver_H, solver_diag, solver_p)
                mul_m(w, M_rownnz, M_rowadr, M_colind, M, solver_p, solver_Mp)
                mul_j(w, n, efc_J, solver_p, solver_jv)
                flat = tolerance * opt_ls_tolerance[row(w, opt_ls_tolerance)] / scale
                flat = flat * wp.sqrt(dot(w, solver_p, solver_p))
                a, slope, exact = search(
                    w, n, running, opt_ls_iterations, flat, dot(w, solver_p, solver_Mx), dot(w, solver_p, solver_Mp),
                    efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, solver_jar, solver_jv, cone_quad,
                )  # fmt: skip
                if running:
                    count = count + 1
                    for c in range(nv):
                        solver_x[w, c] = solver_x[w, c] + a * solver_p[w, c]
                        solver_Mx[w, c] = solver_Mx[w, c] + a * solver_Mp[w, c]
                    for i in range(n):
                        solver_jar[w, i] = solver_jar[w, i] + a * solver_jv[w, i]
                cost, changed = evaluate(
                    w, n, efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, solver_jar, efc_force, efc_state,
                    row_weight, row_scale, row_share,
                )  # fmt: skip
                # what a step gains follows from slope and length; the difference of two costs would be rounding
                gain = real(-0.5) * a * slope
                if (exact and changed == 0) or scale * gain < tolerance or gain <= real(least) * cost:
                    running = False
            k = k + 1
        solver_niter[w] = count

    return newton
