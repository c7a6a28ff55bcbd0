"""The implicit integrators: ``(M - h dF/dv) a = F``, with all derivatives or without those of Coriolis forces."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.factor import factorisation
from treadle.mujoco.fluid import drag_on_body

ints = wp.array(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {
        **_symmetric(real),
        **_general(real),
        "free_bodies": _free_bodies(real, wet=False),
        "free_bodies_in_fluid": _free_bodies(real, wet=True),
        "undo_free_bodies": _free_bodies(real, wet=False, undo=True),
        "undo_free_bodies_in_fluid": _free_bodies(real, wet=True, undo=True),
    }


def _symmetric(real: Any) -> dict[str, wp.Kernel]:
    solving = factorisation(real)
    factor, solve = solving.factor, solving.solve

    @wp.kernel
    def implicitfast(
        opt_timestep: wp.array(dtype=real), M_rowadr: ints, M_rownnz: ints, M_colind: ints, mapD2M: ints,
        M: wp.array2d(dtype=real), qDeriv: wp.array2d(dtype=real),
        qfrc_smooth: wp.array2d(dtype=real), qfrc_constraint: wp.array2d(dtype=real),
        qH: wp.array2d(dtype=real), qHDiagInv: wp.array2d(dtype=real), qacc_integrated: wp.array2d(dtype=real),
    ):  # fmt: skip
        """The acceleration of a step; the matrix is symmetric, as of the forces only dampers and actuators count."""
        w = wp.tid()
        h = opt_timestep[row(w, opt_timestep)]
        for e in range(M_colind.shape[0]):
            qH[w, e] = M[w, e] - h * qDeriv[w, mapD2M[e]]
        for i in range(M_rowadr.shape[0]):
            qacc_integrated[w, i] = qfrc_smooth[w, i] + qfrc_constraint[w, i]
        factor(w, M_rowadr, M_rownnz, M_colind, qH, qHDiagInv)
        solve(w, M_rowadr, M_rownnz, M_colind, qH, qHDiagInv, qacc_integrated)

    return dict(implicitfast=implicitfast)


def _general(real: Any) -> dict[str, wp.Kernel]:
    @wp.kernel
    def implicit(
        opt_timestep: wp.array(dtype=real), D_rowadr: ints, D_rownnz: ints, D_colind: ints, D_diag: ints,
        D_mirror: ints, mapM2D: ints, M: wp.array2d(dtype=real), qDeriv: wp.array2d(dtype=real),
        qfrc_smooth: wp.array2d(dtype=real), qfrc_constraint: wp.array2d(dtype=real),
        qLU: wp.array2d(dtype=real), qacc_integrated: wp.array2d(dtype=real),
    ):  # fmt: skip
        """The acceleration of a step, from the full matrix: a product of an upper and a lower triangle.

        As in `factor`, taking the last row first makes nothing outside the pattern of trees.
        """
        w = wp.tid()
        h = opt_timestep[row(w, opt_timestep)]
        nv = D_rowadr.shape[0]
        for e in range(D_colind.shape[0]):
            qLU[w, e] = -h * qDeriv[w, e]
            if mapM2D[e] >= 0:
                qLU[w, e] = qLU[w, e] + M[w, mapM2D[e]]
        for i in range(nv):
            qacc_integrated[w, i] = qfrc_smooth[w, i] + qfrc_constraint[w, i]
        for back in range(nv):
            k = nv - 1 - back
            first = D_rowadr[k]
            diagonal = first + D_diag[k]
            inverse = real(1.0) / qLU[w, diagonal]
            for e in range(first, diagonal):
                i = D_colind[e]
                above = D_mirror[e]
                share = qLU[w, above] * inverse
                qLU[w, above] = share
                x = D_rowadr[i]
                for f in range(first, diagonal):
                    while D_colind[x] < D_colind[f]:  # the row of an ancestor has all of these columns
                        x = x + 1
                    qLU[w, x] = qLU[w, x] - share * qLU[w, f]
                qacc_integrated[w, i] = qacc_integrated[w, i] - share * qacc_integrated[w, k]
        for k in range(nv):
            diagonal = D_rowadr[k] + D_diag[k]
            y = qacc_integrated[w, k]
            for e in range(D_rowadr[k], diagonal):
                y = y - qLU[w, e] * qacc_integrated[w, D_colind[e]]
            qacc_integrated[w, k] = y / qLU[w, diagonal]

    return dict(implicit=implicit)


@cache
def _small(real: Any) -> SimpleNamespace:
    """For systems of six equations: the type ``six`` of their matrices, and ``solve``."""
    six = wp.types.matrix(shape=(6, 6), dtype=real)
    vec6 = wp.types.vector(length=6, dtype=real)

    @wp.func
    def solve(A: six, b: vec6):
        """The solution of ``A x = b`` for an almost symmetric, positive definite A."""
        m = A
        x = b
        for k in range(6):
            inverse = real(1.0) / m[k, k]
            for i in range(k + 1, 6):
                share = m[i, k] * inverse
                for j in range(k + 1, 6):
                    m[i, j] = m[i, j] - share * m[k, j]
                x[i] = x[i] - share * x[k]
        for back in range(6):
            i = 5 - back
            y = x[i]
            for j in range(i + 1, 6):
                y = y - m[i, j] * x[j]
            x[i] = y / m[i, i]
        return x

    return SimpleNamespace(six=six, solve=solve)


@cache
def _gyroscopic(real: Any) -> wp.Function:
    """The kernel function ``gyroscopic`` for one precision."""
    t = types(real)
    vec3, mat33, inertia, six, column = t.vec3, t.mat33, t.inertia, _small(real).six, algebra(real).column

    @wp.func
    def turned(I: inertia, x: vec3):
        return vec3(
            I[0] * x[0] + I[3] * x[1] + I[4] * x[2],
            I[3] * x[0] + I[1] * x[1] + I[5] * x[2],
            I[4] * x[0] + I[5] * x[1] + I[2] * x[2],
        )

    @wp.func
    def gyroscopic(R: mat33, s: vec3, I: inertia, rates: vec3):
        """How the forces that keep a free body turning at ``rates`` about its axes R change with its velocities.

        With turning velocity w, centre of mass at s, mass m and inertia I about it, all in the world's axes, the
        force on the centre is ``m w x (w x s)`` and the torque ``w x I w + s x m w x (w x s)``.
        """
        found = six()
        omega = R * rates
        momentum = turned(I, omega)
        for c in range(3):  # by the turning velocity along each axis of the body
            e = column(R, c)
            centre = wp.cross(e, wp.cross(omega, s)) + wp.cross(omega, wp.cross(e, s))
            torque = wp.cross(e, momentum) + wp.cross(omega, turned(I, e)) + wp.cross(s, centre) * I[9]
            local = wp.transpose(R) * torque
            for r in range(3):
                found[r, 3 + c] = I[9] * centre[r]
                found[3 + r, 3 + c] = local[r]
        return found

    return gyroscopic


def _free_bodies(real: Any, wet: bool, undo: bool = False) -> wp.Kernel:
    """Steps of bodies that float; ``undo``: the force for a known acceleration over the step (`discrete`)."""
    t, small = types(real), _small(real)
    vec3, mat33, spatial, inertia = t.vec3, t.mat33, t.spatial, t.inertia
    vec6 = wp.types.vector(length=6, dtype=real)
    solve, gyroscopic, drag = small.solve, _gyroscopic(real), drag_on_body(real)

    @wp.kernel
    def free_bodies(
        opt_density: wp.array(dtype=real), opt_viscosity: wp.array(dtype=real), opt_wind: wp.array(dtype=vec3),
        opt_timestep: wp.array(dtype=real), body_rootid: ints, body_floats: ints, body_swims: ints, body_dofadr: ints,
        body_geomadr: ints, body_geomnum: ints, body_mass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3),
        geom_type: ints, geom_size: wp.array2d(dtype=vec3), geom_fluid: wp.array2d(dtype=real),
        xipos: wp.array2d(dtype=vec3), ximat: wp.array2d(dtype=mat33), geom_xpos: wp.array2d(dtype=vec3),
        geom_xmat: wp.array2d(dtype=mat33), cvel: wp.array2d(dtype=spatial), cdof: wp.array2d(dtype=spatial),
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, M: wp.array2d(dtype=real),
        D_rowadr: ints, D_rownnz: ints, D_colind: ints, qDeriv: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real),
        xpos: wp.array2d(dtype=vec3), xmat: wp.array2d(dtype=mat33),
        subtree_com: wp.array2d(dtype=vec3), crb: wp.array2d(dtype=inertia),
        qfrc_smooth: wp.array2d(dtype=real), qfrc_constraint: wp.array2d(dtype=real),
        qacc: wp.array2d(dtype=real), qacc_continuous: wp.array2d(dtype=real), qacc_integrated: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Bodies that float freely are solved by themselves, with the derivatives of their gyroscopic forces."""
        w = wp.tid()
        h = opt_timestep[row(w, opt_timestep)]
        for b in range(1, body_floats.shape[0]):
            if body_floats[b] != 0:
                first = body_dofadr[b]
                rates = vec3(qvel[w, first + 3], qvel[w, first + 4], qvel[w, first + 5])
                A = gyroscopic(xmat[w, b], subtree_com[w, b] - xpos[w, b], crb[w, b], rates)
                if wp.static(wet):
                    for c in range(b, body_floats.shape[0]):
                        if body_rootid[c] == b:
                            A = A - drag(
                                w, c, first, opt_density, opt_viscosity, opt_wind, body_rootid, body_geomadr,
                                body_geomnum, body_swims, body_mass, body_inertia, geom_type, geom_size, geom_fluid,
                                xipos, ximat, geom_xpos, geom_xmat, subtree_com, cvel, cdof,
                            )  # fmt: skip
                A = A * h
                rhs = vec6()
                for r in range(6):
                    i = first + r
                    for e in range(M_rowadr[i], M_rowadr[i] + M_rownnz[i]):
                        c = M_colind[e] - first
                        A[r, c] = A[r, c] + M[w, e]
                        if c != r:
                            A[c, r] = A[c, r] + M[w, e]
                    for e in range(D_rowadr[i], D_rowadr[i] + D_rownnz[i]):
                        c = D_colind[e] - first
                        A[r, c] = A[r, c] - h * qDeriv[w, e]
                    rhs[r] = qfrc_smooth[w, i] + qfrc_constraint[w, i]
                if wp.static(undo):
                    for r in range(6):
                        y = real(0.0)
                        for c in range(6):
                            y = y + A[r, c] * qacc[w, first + c]
                        qacc_continuous[w, first + r] = y
                else:
                    x = solve(A, rhs)
                    for r in range(6):
                        qacc_integrated[w, first + r] = x[r]

    return free_bodies
