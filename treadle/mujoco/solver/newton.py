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
        w: int, i: int, slot: int, weight: real, efc_dim: ints2, J: cube, row_scale: matrix, row_share: matrix,
        mixed: matrix, combined: cube,
    ):  # fmt: skip
        """Root of the weight times ``row_scale J_i - row_share u``; ``mixed`` is u, made at the first row of a contact.

        Zero where the row does not act: what lies in it is left from other steps.
        """
        acts, root = weight > real(0.0), wp.sqrt(weight)
        scale, share, dim = row_scale[w, i] * root, row_share[w, i] * root, efc_dim[w, i]
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
                combined[w, slot, k] = wp.where(acts, y, real(0.0))
        else:
            for k in range(J.shape[2]):
                combined[w, slot, k] = wp.where(acts, scale * J[w, i, k], real(0.0))

    @wp.func
    def assemble(
        w: int, n: int, rownnz: ints, rowadr: ints, colind: ints, M: matrix, efc_dim: ints2, J: cube,
        row_weight: matrix, row_scale: matrix, row_share: matrix, mixed: matrix, combined: cube, H: matrix,
    ):  # fmt: skip
        """``H = M + sum_i y_i y_i'``, four rows at a time."""
        nv = rownnz.shape[0]
        for a in range(nv):
            start = a * (a + 1) // 2
            for b in range(a + 1):
                H[w, start + b] = real(0.0)
            for e in range(rowadr[a], rowadr[a] + rownnz[a]):
                H[w, start + colind[e]] = M[w, e]
        i = int(0)
        while wp.any_lane(i < n):
            slot = int(0)
            while slot < 4 and wp.any_lane(i < n):
                weight = real(0.0)
                if i < n:
                    weight = row_weight[w, i]
                if wp.any_lane(weight > real(0.0)):
                    combine(w, i, slot, weight, efc_dim, J, row_scale, row_share, mixed, combined)
                    slot = slot + 1
                i = i + 1
            if slot > 0:
                for rest in range(slot, 4):
                    for k in range(nv):
                        combined[w, rest, k] = real(0.0)
                for a in range(nv):
                    y0, y1, y2, y3 = combined[w, 0, a], combined[w, 1, a], combined[w, 2, a], combined[w, 3, a]
                    size = wp.max(wp.max(wp.abs(y0), wp.abs(y1)), wp.max(wp.abs(y2), wp.abs(y3)))
                    if wp.any_lane(size > real(0.0)):
                        start = a * (a + 1) // 2
                        for b in range(a + 1):
                            h = H[w, start + b] + y0 * combined[w, 0, b] + y1 * combined[w, 1, b]
                            H[w, start + b] = h + y2 * combined[w, 2, b] + y3 * combined[w, 3, b]

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
    add_jt, dot = mul.add_jt, mul.dot
    evaluate, descend = costs(real).evaluate, linesearch(real).descend
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
        row_share: wp.array2d(dtype=real), cone_quad: wp.array2d(dtype=vec3), solver_rows: wp.array3d(dtype=real),
        solver_H: wp.array2d(dtype=real), solver_diag: wp.array2d(dtype=real), solver_niter: ints,
    ):  # fmt: skip
        """Minimise from ``solver_x``, where `start` left also the products with it."""
        w = wp.tid()
        nv, n = M_rownnz.shape[0], nefc[w]
        tolerance = opt_tolerance[row(w, opt_tolerance)]
        scale = real(1.0) / (meaninertia * real(wp.max(nv, 1)))
        running = n > 0
        count, k = int(0), int(0)
        a, slope, exact = real(0.0), real(0.0), False
        while k <= opt_iterations and wp.any_lane(running):
            cost, changed = evaluate(
                w, n, efc_type, efc_dim, efc_D, efc_frictionloss, efc_friction, solver_jar, efc_force, efc_state,
                row_weight, row_scale, row_share,
            )  # fmt: skip
            if k > 0:
                # what a step gains follows from slope and length; the difference of two costs would be rounding
                gain = real(-0.5) * a * slope
                if (exact and changed == 0) or scale * gain < tolerance or gain <= real(least) * cost:
                    running = False
            for c in range(nv):
                solver_grad[w, c] = solver_Mx[w, c]
            add_jt(w, n, efc_J, efc_force, real(-1.0), solver_grad)
            if scale * wp.sqrt(dot(w, solver_grad, solver_grad)) < tolerance:
                running = False
            if k < opt_iterations and wp.any_lane(running):
                assemble(
                    w, n, M_rownnz, M_rowadr, M_colind, M, efc_dim, efc_J, row_weight, row_scale, row_share,
                    solver_Mp, solver_rows, solver_H,
                )  # fmt: skip
                factor(w, nv, solver_H, solver_diag)
                for c in range(nv):
                    solver_p[w, c] = -solver_grad[w, c]
                solve(w, nv, solver_H, solver_diag, solver_p)
                flat = tolerance * opt_ls_tolerance[row(w, opt_ls_tolerance)] / scale
                a, slope, exact = descend(
                    w, n, running, opt_ls_iterations, flat, M_rownnz, M_rowadr, M_colind, M, efc_J, efc_type, efc_dim,
                    efc_D, efc_frictionloss, efc_friction, solver_x, solver_Mx, solver_jar, solver_p, solver_Mp,
                    solver_jv, cone_quad,
                )  # fmt: skip
                if running:
                    count = count + 1
            k = k + 1
        solver_niter[w] = count

    return newton
