"""The dual problem: forces of constraints one after the other (PGS), and friction without slip afterwards.

Both minimise ``f'(A + R)f / 2 + f'b`` over admissible forces, where ``A = J M^-1 J'``, by rows or by contacts in turn
(MuJoCo documentation, Computation, Algorithms: PGS, noslip). A is never made: ``x = M^-1 J' f`` is kept up to date with
the vectors ``Y_i = M^-1 J_i'``, and ``J_i x`` is what A f has in row i.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row
from treadle.mujoco.constants import MINVAL
from treadle.mujoco.constraint.kinds import (
    CONE,
    ELLIPTIC,
    FRICTION_DOF,
    FRICTION_TENDON,
    LINEARNEG,
    LINEARPOS,
    PYRAMIDAL,
    QUADRATIC,
    SATISFIED,
)
from treadle.mujoco.factor import factorisation
from treadle.mujoco.solver.cost import costs
from treadle.mujoco.solver.disc import disc

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    made = (_dual_rows(real), _pgs(real), _noslip(real), _dual_states(real))
    return dict(zip(("dual_rows", "pgs", "noslip", "dual_states"), made))


def _dual_rows(real: Any) -> wp.Kernel:
    solve = factorisation(real).solve

    @wp.kernel
    def dual_rows(
        M_rownnz: ints, M_rowadr: ints, M_colind: ints, qLD: wp.array2d(dtype=real), qLDiagInv: wp.array2d(dtype=real),
        nefc: ints, efc_J: wp.array3d(dtype=real), efc_aref: wp.array2d(dtype=real),
        qacc_smooth: wp.array2d(dtype=real),
        efc_force: wp.array2d(dtype=real), efc_b: wp.array2d(dtype=real), solver_p: wp.array2d(dtype=real),
        efc_Y: wp.array3d(dtype=real), efc_A: wp.array2d(dtype=real), solver_x: wp.array2d(dtype=real),
    ):  # fmt: skip
        """``Y = M^-1 J'``, the diagonal of A, b, and ``x`` of the forces as they are."""
        w = wp.tid()
        n = nefc[w]
        nv = efc_J.shape[2]
        for k in range(nv):
            solver_x[w, k] = real(0.0)
        for i in range(n):
            for k in range(nv):
                solver_p[w, k] = efc_J[w, i, k]
            solve(w, M_rowadr, M_rownnz, M_colind, qLD, qLDiagInv, solver_p)
            a, b = real(0.0), -efc_aref[w, i]
            for k in range(nv):
                y = solver_p[w, k]
                efc_Y[w, i, k] = y
                a = a + efc_J[w, i, k] * y
                b = b + efc_J[w, i, k] * qacc_smooth[w, k]
                solver_x[w, k] = solver_x[w, k] + efc_force[w, i] * y
            efc_A[w, i] = a
            efc_b[w, i] = b

    return dual_rows


@cache
def _blocks(real: Any) -> SimpleNamespace:
    """Kernel functions on rows and contacts: ``pair``, ``change``, ``gather``, ``push``."""
    matrix, cube = wp.array2d(dtype=real), wp.array3d(dtype=real)
    vec6, mat66 = wp.types.vector(length=6, dtype=real), wp.types.matrix(shape=(6, 6), dtype=real)

    @wp.func
    def pair(w: int, i: int, j: int, J: cube, Y: cube):
        """``A_ij``."""
        y = real(0.0)
        for k in range(J.shape[2]):
            y = y + J[w, i, k] * Y[w, j, k]
        return y

    @wp.func
    def product(w: int, i: int, J: cube, x: matrix):
        """``(A f)_i``."""
        y = real(0.0)
        for k in range(J.shape[2]):
            y = y + J[w, i, k] * x[w, k]
        return y

    @wp.func
    def push(w: int, i: int, delta: real, Y: cube, x: matrix):
        """Account in x for a force that has grown by ``delta``."""
        for k in range(Y.shape[2]):
            x[w, k] = x[w, k] + delta * Y[w, i, k]

    @wp.func
    def block(w: int, i: int, dim: int, J: cube, Y: cube):
        """A of the rows of a contact, an identity where it has fewer than six."""
        a = mat66()
        for j in range(6):
            a[j, j] = real(1.0)
            for k in range(j + 1):
                if j < dim:
                    y = pair(w, i + j, i + k, J, Y)
                    a[j, k] = y
                    a[k, j] = y
        return a

    @wp.func
    def gather(w: int, i: int, dim: int, values: matrix):
        """The values of a contact's rows; zero beyond."""
        v = vec6()
        for j in range(6):
            if j < dim:
                v[j] = values[w, i + j]
        return v

    return SimpleNamespace(pair=pair, product=product, push=push, block=block, gather=gather, vec6=vec6, mat66=mat66)


def _pgs(real: Any) -> wp.Kernel:
    blocks, bounds, on_disc = _blocks(real), costs(real).bounds, disc(real)
    product, push, block, gather = blocks.product, blocks.push, blocks.block, blocks.gather
    vec6, mat66 = blocks.vec6, blocks.mat66
    matrix, cube = wp.array2d(dtype=real), wp.array3d(dtype=real)

    @wp.func
    def along_ray(a: mat66, force: vec6, residual: vec6):
        """Let the force of a contact grow or shrink, but not turn; without a normal force, the normal alone moves."""
        moved = force
        if force[0] < real(MINVAL):
            moved = vec6()
            moved[0] = wp.max(force[0] - residual[0] / a[0, 0], real(0.0))
        else:
            bend = wp.dot(force, a * force)
            if bend >= real(MINVAL):
                moved = wp.max(real(1.0) - wp.dot(force, residual) / bend, real(0.0)) * force
        return moved

    @wp.func
    def sweep_contact(
        w: int, i: int, dim: int, J: cube, Y: cube, efc_R: matrix, efc_b: matrix, efc_friction: matrix,
        efc_force: matrix, x: matrix,
    ):  # fmt: skip
        """Improve the force of an elliptic contact; gives by how much the cost falls."""
        a = block(w, i, dim, J, Y)
        old, regular = gather(w, i, dim, efc_force), gather(w, i, dim, efc_R)
        residual = gather(w, i, dim, efc_b) + wp.cw_mul(regular, old)
        for j in range(6):
            a[j, j] = a[j, j] + regular[j]
            if j < dim:
                residual[j] = residual[j] + product(w, i + j, J, x)
        force = along_ray(a, old, residual)
        force = on_disc(a, force, residual + a * (force - old), gather(w, i, dim, efc_friction), dim)
        delta = force - old
        gain = -wp.dot(delta, residual + real(0.5) * (a * delta))
        if gain > real(0.0):
            for j in range(6):
                if j < dim:
                    efc_force[w, i + j] = force[j]
                    push(w, i + j, delta[j], Y, x)
        return wp.max(gain, real(0.0))

    @wp.kernel
    def pgs(
        opt_tolerance: wp.array(dtype=real), opt_iterations: int, meaninertia: real,
        nefc: ints, efc_type: ints2, efc_dim: ints2, efc_J: wp.array3d(dtype=real), efc_Y: wp.array3d(dtype=real),
        efc_A: wp.array2d(dtype=real), efc_R: wp.array2d(dtype=real), efc_b: wp.array2d(dtype=real),
        efc_frictionloss: wp.array2d(dtype=real), efc_friction: wp.array2d(dtype=real),
        efc_force: wp.array2d(dtype=real), solver_x: wp.array2d(dtype=real), solver_niter: ints,
    ):  # fmt: skip
        """Projected Gauss-Seidel: sweeps over all rows and contacts until they gain too little."""
        w = wp.tid()
        nv, n = efc_J.shape[2], nefc[w]
        tolerance = opt_tolerance[row(w, opt_tolerance)]
        scale = real(1.0) / (meaninertia * real(wp.max(nv, 1)))

        # a start that is worse than none is dropped
        cost = real(0.0)
        for i in range(n):
            f = efc_force[w, i]
            cost = cost + f * (efc_b[w, i] + real(0.5) * (product(w, i, efc_J, solver_x) + efc_R[w, i] * f))
        if cost > real(0.0):
            for i in range(n):
                efc_force[w, i] = real(0.0)
            for k in range(nv):
                solver_x[w, k] = real(0.0)

        running = n > 0
        count = int(0)
        while count < opt_iterations and running:
            gain = real(0.0)
            for i in range(n):
                dim = efc_dim[w, i]
                if efc_type[w, i] != ELLIPTIC:
                    low, high = bounds(efc_type[w, i], efc_frictionloss[w, i])
                    old, bend = efc_force[w, i], efc_A[w, i] + efc_R[w, i]
                    residual = product(w, i, efc_J, solver_x) + efc_R[w, i] * old + efc_b[w, i]
                    new = wp.clamp(old - residual / bend, low, high)
                    delta = new - old
                    efc_force[w, i] = new
                    push(w, i, delta, efc_Y, solver_x)
                    gain = gain - delta * (residual + real(0.5) * bend * delta)
                elif dim > 0:
                    gain = gain + sweep_contact(
                        w, i, dim, efc_J, efc_Y, efc_R, efc_b, efc_friction, efc_force, solver_x
                    )
            count = count + 1
            running = scale * gain >= tolerance
        solver_niter[w] = count

    return pgs


def _noslip(real: Any) -> wp.Kernel:
    blocks, on_disc = _blocks(real), disc(real)
    pair, product, push, block, gather = blocks.pair, blocks.product, blocks.push, blocks.block, blocks.gather
    matrix, cube = wp.array2d(dtype=real), wp.array3d(dtype=real)

    @wp.func
    def sweep_edges(w: int, i: int, J: cube, Y: cube, efc_A: matrix, efc_b: matrix, efc_force: matrix, x: matrix):
        """Move force between two opposite edges of a pyramid; gives by how much the cost falls."""
        a00, a11, a01 = efc_A[w, i], efc_A[w, i + 1], pair(w, i, i + 1, J, Y)
        old0, old1 = efc_force[w, i], efc_force[w, i + 1]
        residual0 = product(w, i, J, x) + efc_b[w, i]
        residual1 = product(w, i + 1, J, x) + efc_b[w, i + 1]
        mid, shift = real(0.5) * (old0 + old1), real(0.0)
        bend = a00 + a11 - real(2.0) * a01
        if bend >= real(MINVAL):
            shift = real(0.5) * (old0 - old1) - (residual0 - residual1) / bend
            shift = wp.clamp(shift, -mid, mid)
        delta0, delta1 = mid + shift - old0, mid - shift - old1
        change = delta0 * (residual0 + real(0.5) * a00 * delta0 + a01 * delta1)
        change = change + delta1 * (residual1 + real(0.5) * a11 * delta1)
        efc_force[w, i] = mid + shift
        efc_force[w, i + 1] = mid - shift
        push(w, i, delta0, Y, x)
        push(w, i + 1, delta1, Y, x)
        return -change

    @wp.func
    def sweep_cone(
        w: int, i: int, dim: int, J: cube, Y: cube, efc_b: matrix, efc_friction: matrix, efc_force: matrix, x: matrix,
    ):  # fmt: skip
        """Improve the friction of an elliptic contact under its normal force; gives by how much the cost falls."""
        a = block(w, i, dim, J, Y)
        old, residual = gather(w, i, dim, efc_force), gather(w, i, dim, efc_b)
        for j in range(6):
            if j < dim:
                residual[j] = residual[j] + product(w, i + j, J, x)
        force = on_disc(a, old, residual, gather(w, i, dim, efc_friction), dim)
        delta = force - old
        gain = -wp.dot(delta, residual + real(0.5) * (a * delta))
        for j in range(1, 6):
            if j < dim:
                efc_force[w, i + j] = force[j]
                push(w, i + j, delta[j], Y, x)
        return gain

    @wp.kernel
    def noslip(
        opt_noslip_tolerance: wp.array(dtype=real), opt_noslip_iterations: int, meaninertia: real,
        nefc: ints, efc_type: ints2, efc_dim: ints2, efc_J: wp.array3d(dtype=real), efc_Y: wp.array3d(dtype=real),
        efc_A: wp.array2d(dtype=real), efc_R: wp.array2d(dtype=real), efc_b: wp.array2d(dtype=real),
        efc_frictionloss: wp.array2d(dtype=real), efc_friction: wp.array2d(dtype=real),
        efc_force: wp.array2d(dtype=real), solver_x: wp.array2d(dtype=real), solver_niter: ints,
    ):  # fmt: skip
        """Sweeps over dry friction and the friction of contacts as if they were hard: without R."""
        w = wp.tid()
        nv, n = efc_J.shape[2], nefc[w]
        tolerance = opt_noslip_tolerance[row(w, opt_noslip_tolerance)]
        scale = real(1.0) / (meaninertia * real(wp.max(nv, 1)))
        gain = real(0.0)
        for i in range(n):  # the cost has changed by what R contributed
            gain = gain + real(0.5) * efc_R[w, i] * efc_force[w, i] * efc_force[w, i]
        running = n > 0
        count = int(0)
        while count < opt_noslip_iterations and running:
            edges = int(0)  # rows of a pyramid that are left
            for i in range(n):
                kind, dim = efc_type[w, i], efc_dim[w, i]
                if kind == FRICTION_DOF or kind == FRICTION_TENDON:
                    old, bend, loss = efc_force[w, i], efc_A[w, i], efc_frictionloss[w, i]
                    residual = product(w, i, efc_J, solver_x) + efc_b[w, i]
                    delta = wp.clamp(old - residual / wp.max(bend, real(MINVAL)), -loss, loss) - old
                    efc_force[w, i] = old + delta
                    push(w, i, delta, efc_Y, solver_x)
                    gain = gain - delta * (residual + real(0.5) * bend * delta)
                elif kind == PYRAMIDAL:
                    if dim > 0:
                        edges = dim
                    if edges % 2 == 0:
                        gain = gain + sweep_edges(w, i, efc_J, efc_Y, efc_A, efc_b, efc_force, solver_x)
                    edges = edges - 1
                elif kind == ELLIPTIC and dim > 0:
                    gain = gain + sweep_cone(w, i, dim, efc_J, efc_Y, efc_b, efc_friction, efc_force, solver_x)
            count = count + 1
            running = scale * gain >= tolerance
            gain = real(0.0)
        solver_niter[w] = solver_niter[w] + count

    return noslip


def _dual_states(real: Any) -> wp.Kernel:
    bounds = costs(real).bounds

    @wp.kernel
    def dual_states(
        nefc: ints, efc_type: ints2, efc_dim: ints2, efc_frictionloss: wp.array2d(dtype=real),
        efc_friction: wp.array2d(dtype=real), efc_force: wp.array2d(dtype=real), efc_state: ints2,
    ):  # fmt: skip
        """States as forces show them: at a bound or between; of elliptic contacts, on the cone's surface or inside."""
        w = wp.tid()
        shared = SATISFIED
        for i in range(nefc[w]):
            force, dim = efc_force[w, i], efc_dim[w, i]
            state = QUADRATIC
            if efc_type[w, i] == ELLIPTIC:
                if dim > 0:
                    square = real(0.0)
                    for j in range(1, 6):
                        if j < dim:
                            part = efc_force[w, i + j] / efc_friction[w, i + j]
                            square = square + part * part
                    shared = SATISFIED
                    if force > real(0.0):
                        shared = QUADRATIC
                        if square > real(1.0 - 1e-6) * force * force:
                            shared = CONE
                state = shared
            else:
                low, high = bounds(efc_type[w, i], efc_frictionloss[w, i])
                if force <= low:
                    state = SATISFIED
                    if low < real(0.0):
                        state = LINEARPOS
                elif force >= high:
                    state = LINEARNEG
            efc_state[w, i] = state

    return dual_states
