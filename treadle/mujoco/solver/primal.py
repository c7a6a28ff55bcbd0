"""Newton's method and conjugate gradients on the primal problem (MuJoCo documentation, Computation, Algorithms).

Worlds that have converged keep what they have while others of their gang go on.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.constraint.live import narrowing
from treadle.mujoco.factor import factorisation
from treadle.mujoco.solver.bond_products import bond_products
from treadle.mujoco.solver.hessian import hessian
from treadle.mujoco.solver.line import lines
from treadle.mujoco.solver.products import products
from treadle.mujoco.solver.weights import weighing

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)
REBUILD = wp.constant(16)  # iterations after which the Hessian is summed up anew: what was taken off left rounding


@cache
def starting(real: Any) -> SimpleNamespace:
    """The kernel functions ``residuals`` and ``begin`` for one precision: where solvers begin."""
    matrix = wp.array2d(dtype=real)
    evaluate, mul, mul_b = weighing(real), products(real), bond_products(real).mul_b
    mul_mass, dot = mul.mul_mass, mul.dot

    @wp.func(inline=True)
    def residuals(
        w: int, rows: int, bonds: Any, jacobian: Any, qacc_warmstart: matrix, qacc_smooth: matrix, x: matrix,
        b: matrix, jar: matrix, jv: matrix,
    ):  # fmt: skip
        """``x`` of the step before, and ``jar = b + J x``."""
        for k in range(x.shape[1]):
            x[w, k] = qacc_warmstart[w, k] - qacc_smooth[w, k]
        mul_b(w, bonds, jacobian, x, jv)
        for i in range(rows):
            jar[w, i] = b[w, i] + jv[w, i]

    @wp.func(inline=True)
    def begin(
        w: int, running: bool, warm: bool, rows: int, elliptic: bool, bonds: Any, jacobian: Any, soft: Any,
        weights: Any, mass: Any, qacc_warmstart: matrix, qacc_smooth: matrix, state: ints2, x: matrix, Mx: matrix,
        b: matrix, jar: matrix, jv: matrix, force: matrix,
    ):  # fmt: skip
        """Begin at the acceleration of the step before, or, if that costs less, at that without constraints.

        Returns what `evaluate` does at the former, and whether that is where all begin.
        """
        for k in range(x.shape[1]):
            x[w, k] = qacc_warmstart[w, k] - qacc_smooth[w, k]
        mul_b(w, bonds, jacobian, x, jv)
        mul_mass(w, mass, x, Mx)
        cold, cost, changed, pieces, curved = real(0.0), real(0.0), int(0), int(0), False
        for turn in range(2):
            cold = cost
            for i in range(rows):
                start = b[w, i]
                if turn > 0:
                    start = start + jv[w, i]
                jar[w, i] = start
            cost, changed, pieces, curved = evaluate(w, bonds, elliptic, soft, weights, state, jar, force)
        hot = cost + real(0.5) * dot(w, x, Mx)
        warm = warm and running and hot < cold
        for k in range(x.shape[1]):
            x[w, k] = wp.where(warm, x[w, k], real(0.0))
            Mx[w, k] = wp.where(warm, Mx[w, k], real(0.0))
        for i in range(rows):
            jar[w, i] = wp.where(warm, jar[w, i], b[w, i])
        return cost, pieces, not wp.any_lane(running and not warm)

    return SimpleNamespace(residuals=residuals, begin=begin)


@cache
def settling(real: Any) -> wp.Function:
    """The kernel function ``settle`` for one precision: forces of constraints from the acceleration that was found."""
    matrix = wp.array2d(dtype=real)
    mul_mass, dot, single = products(real).mul_mass, products(real).dot, real is wp.float32

    @wp.func(inline=True)
    def settle(
        w: int, settled: bool, mass: Any, qfrc_smooth: matrix, qacc_smooth: matrix, x: matrix, Mx: matrix,
        grad: matrix, qacc: matrix, Mqacc: matrix, force: matrix,
    ):  # fmt: skip
        """``J' f``: what is left of ``M x`` is the gradient; in single precision, where that settled, all of ``M x``.

        Forces are what stiffness makes of a residual, and of its rounding, which ``H^-1`` took out of x again. Where x
        takes back most of ``qacc_smooth``, as at closed chains of light bodies, ``M (qacc_smooth + x) - qfrc_smooth``
        has fewer digits to lose; but where nothing constrains a joint, the force is nothing.
        """
        for c in range(x.shape[1]):
            force[w, c] = Mx[w, c] - grad[w, c]
        if single:
            for c in range(x.shape[1]):
                qacc[w, c] = qacc_smooth[w, c] + x[w, c]
            undone = settled and dot(w, x, x) > dot(w, qacc, qacc)
            if wp.any_lane(undone):
                mul_mass(w, mass, qacc, Mqacc)
            for c in range(x.shape[1]):
                far = undone and Mx[w, c] != real(0.0)
                mine = wp.where(far, Mqacc[w, c] - qfrc_smooth[w, c], Mx[w, c])
                force[w, c] = wp.where(settled, mine, force[w, c])

    return settle


@cache
def directions(real: Any) -> SimpleNamespace:
    """The kernel functions ``newton`` and ``conjugate`` for one precision: in which direction the next step goes."""
    matrix = wp.array2d(dtype=real)
    h, dot, precondition = hessian(real), products(real).dot, factorisation(real).solve
    anew, add_bonds, factor, solve = h.begin, h.add_bonds, h.factor, h.solve

    @wp.func(inline=True)
    def newton(
        w: int, fresh: bool, numbers: int, bonds: Any, jacobian: Any, columns: Any, tree: Any, mass: Any, weights: Any,
        grad: matrix, p: matrix, Z: matrix, H: matrix, L: matrix, diag: matrix,
    ):  # fmt: skip
        """``p = -H^-1 grad``, after H was brought up to date."""
        bond_weights, C, dC = weights
        if wp.any_lane(fresh):
            anew(w, fresh, tree, mass, H)
            for e in range(numbers):
                dC[w, e] = wp.where(fresh, C[w, e], dC[w, e])
        found = add_bonds(w, bonds, jacobian, columns, tree, bond_weights, dC, Z, H)
        if found != 0 or wp.any_lane(fresh):
            factor(w, tree, H, L, diag)
        for c in range(p.shape[1]):
            p[w, c] = -grad[w, c]
        solve(w, tree, L, diag, p)

    @wp.func(inline=True)
    def conjugate(
        w: int, size: real, mass: Any, qLD: matrix, qLDiagInv: matrix, grad: matrix, Mgrad: matrix, last: matrix,
        p: matrix,
    ):  # fmt: skip
        """Polak and Ribière's direction, preconditioned by M; gives the size of the gradient, for the next time."""
        rownnz, rowadr, colind, M, three = mass
        for c in range(p.shape[1]):
            Mgrad[w, c] = grad[w, c]
        precondition(w, rowadr, rownnz, colind, qLD, qLDiagInv, Mgrad)
        now = dot(w, grad, Mgrad)
        keep = wp.max((now - dot(w, Mgrad, last)) / size, real(0.0))
        for c in range(p.shape[1]):
            p[w, c] = keep * p[w, c] - Mgrad[w, c]
            last[w, c] = grad[w, c]
        return wp.max(now, real(1e-30))

    return SimpleNamespace(newton=newton, conjugate=conjugate)


@cache
def descending(real: Any, by_newton: bool, narrows: bool) -> wp.Function:
    """The kernel function ``minimise`` for one precision, by Newton's method or by conjugate gradients; ``narrows``:
    nobody needs the whole lists of bonds later."""
    matrix, vec5 = wp.array2d(dtype=real), wp.types.vector(length=5, dtype=real)
    evaluate, descend = weighing(real), lines(real, by_newton).descend
    dot, add_bt = products(real).dot, bond_products(real).add_bt
    newton, conjugate = directions(real).newton, directions(real).conjugate
    arrange, narrow = hessian(real).arrange, narrowing(real)
    small = 1e-12 if real is wp.float64 else 1e-6  # of M x: a gradient that a Hessian with rounding in it may leave
    rough = 1e-4  # of M x: more than rounding leaves of a gradient in single precision
    single = real is wp.float32
    least = 1e-30 if real is wp.float64 else 1e-14  # a gain after which Newton's next step would be rounding

    @wp.func(inline=True)
    def minimise(
        w: int, running: bool, ready: bool, cost: real, pieces: int, rows: int, numbers: int, iterations: int,
        line_iterations: int, tolerance: real, flat: real, scale: real, elliptic: bool, bonds: Any, jacobian: Any,
        columns: Any, joins: Any, tree: Any, mass: Any, soft: Any, weights: Any, factors: Any, state: ints2,
        x: matrix, Mx: matrix, grad: matrix, kept: matrix, Mgrad: matrix, last: matrix, p: matrix, Mp: matrix,
        jar: matrix, jv: matrix, force: matrix, shapes: wp.array2d(dtype=vec5), Z: matrix, H: matrix, L: matrix,
        diag: matrix,
    ):  # fmt: skip
        """Move x, and what goes with it, to where the cost is least.

        Gives the number of steps, and whether more would lead on.
        Bonds that no running world has are left out from then on, as far as nobody needs the whole lists later.
        ``cost`` and ``pieces`` are what `evaluate` returned if the gang is ``ready``, with all that it wrote.
        """
        qLD, qLDiagInv = factors
        for c in range(x.shape[1]):
            grad[w, c] = real(0.0)  # in case that nobody runs
            if not by_newton:
                p[w, c] = real(0.0)
                last[w, c] = real(0.0)
        count, k = int(0), int(0)
        size = real(1.0)  # of the last gradient, by the preconditioner (conjugate gradients)
        a, slope, exact, fresh, changed, curved = real(0.0), real(0.0), False, True, int(0), False
        rest, most, refined = real(0.0), real(0.0), False
        every, listed, bond_kind, bond_dim, parts = bonds
        live, equal, sliding, limited = every, parts[0], parts[1], parts[2]
        early = False  # whether the world stopped when others went on, with its gradient ``kept``
        while k <= iterations and wp.any_lane(running):
            open = (live, listed, bond_kind, bond_dim, (equal, sliding, limited))  # bonds of worlds that are not done
            before = running
            if k > 0 or not ready:
                cost, changed, pieces, curved = evaluate(w, open, elliptic, soft, weights, state, jar, force)
            for c in range(x.shape[1]):
                grad[w, c] = Mx[w, c]
            add_bt(w, real(-1.0), open, jacobian, force, grad)
            rest = wp.sqrt(dot(w, grad, grad))
            most = wp.sqrt(dot(w, Mx, Mx))
            renewed, fresh = fresh, k % REBUILD == 0
            if k > 0:
                # what a step gains follows from slope and length; the difference of two costs would be rounding
                gain = real(-0.5) * a * slope
                if by_newton:
                    # in single precision the solution with any Hessian is refined once, by what it leaves
                    final, refined = refined if single else renewed, exact and changed == 0
                    solved = refined
                    if solved and not final and rest > real(small) * most:
                        solved, fresh = False, not renewed
                    if solved or scale * gain < tolerance or gain <= real(least) * cost:
                        running = False
                elif scale * gain < tolerance or a == real(0.0):
                    running = False
            if scale * rest < tolerance:
                running = False
            if k < iterations and wp.any_lane(running):
                if narrows:
                    if wp.any_lane(running != before):
                        for c in range(x.shape[1]):
                            kept[w, c] = wp.where(before and not running, grad[w, c], kept[w, c])
                        early = early or before != running
                        live, equal, sliding, limited = narrow(w, running, open, soft[0])
                        open = (live, listed, bond_kind, bond_dim, (equal, sliding, limited))
                if by_newton:
                    if k == 0:
                        arrange(w, open, joins, tree)
                    newton(
                        w, fresh, numbers, open, jacobian, columns, tree, mass, weights, grad, p, Z, H, L, diag
                    )  # fmt: skip
                else:
                    size = conjugate(w, size, mass, qLD, qLDiagInv, grad, Mgrad, last, p)
                a, slope, exact = descend(
                    w, running, k + 1 == iterations, rows, line_iterations, flat, pieces, elliptic, open, jacobian,
                    mass, soft, x, Mx, grad, jar, p, Mp, jv, shapes,
                )  # fmt: skip
                if running:
                    count = count + 1
            k = k + 1
        if narrows:
            for c in range(x.shape[1]):
                grad[w, c] = wp.where(early, kept[w, c], grad[w, c])
        return count, running and rest > real(rough) * most

    return minimise
