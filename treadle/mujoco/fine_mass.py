"""The mass matrix and its factor by double precision, for models of single precision whose matrix asks for it.

Where joints follow each other with next to no mass between them, as in a shoulder, the factor's diagonal holds small
differences of large numbers: what is left to move by itself once all other joints give way. Rounding M to single
precision loses such a number; rounding inertias and axes does not, as it moves both large numbers alike. So M goes
from inertias and axes to its factor in double precision, and only the results are rounded.
"""

from functools import cache
from typing import Any

import mujoco
import numpy as np

import treadle as wp
from treadle.mujoco.algebra import algebra, index, row, types
from treadle.mujoco.constants import SINGULAR
from treadle.mujoco.drivetrain import drivetrain
from treadle.mujoco.factor import factorisation

ints = wp.array(dtype=int)
double = wp.float64
LEAST = 1 / 200  # of an element of M's diagonal that is left in D, below which single precision has not four digits


def asks(mjm: mujoco.MjModel) -> bool:
    """Whether the mass matrix of a model does, in its reference pose."""
    mjd = mujoco.MjData(mjm)
    for part in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_tendon, mujoco.mj_makeM, mujoco.mj_factorM):
        part(mjm, mjd)
    diagonal = mjm.M_rowadr + mjm.M_rownnz - 1
    return bool(np.any(mjd.qLD[diagonal] < LEAST * mjd.M[diagonal]))


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file, for a model of one precision, by the names of the stages whose place they take."""
    added = drivetrain(real).added
    spatial, inertia = types(real).spatial, types(real).inertia
    wide, mul_inertia = types(double), algebra(double).mul_inertia
    factor = factorisation(double).factor

    @wp.func
    def widened(v: spatial):
        return wide.spatial(double(v[0]), double(v[1]), double(v[2]), double(v[3]), double(v[4]), double(v[5]))

    @wp.func
    def held(w: int, b: int, crb: wp.array3d(dtype=double)):
        return wide.inertia(crb[w, b, 0], crb[w, b, 1], crb[w, b, 2], crb[w, b, 3], crb[w, b, 4], crb[w, b, 5],
                            crb[w, b, 6], crb[w, b, 7], crb[w, b, 8], crb[w, b, 9])  # fmt: skip

    @wp.kernel
    def fine_crb(
        body_parentid: ints, dof_bodyid: ints, dof_jntid: ints, jnt_actuatorid: ints,
        actuator_trntype: ints, actuator_trnid: wp.array2d(dtype=int), actuator_outadr: ints,
        actuator_armature: wp.array2d(dtype=real), actuator_gear: wp.array2d(dtype=spatial),
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, dof_armature: wp.array2d(dtype=real),
        cinert: wp.array2d(dtype=inertia), cdof: wp.array2d(dtype=spatial), crb: wp.array2d(dtype=inertia),
        fine_crb: wp.array3d(dtype=double), fine_M: wp.array2d(dtype=double), M: wp.array2d(dtype=real),
    ):  # fmt: skip
        """`position.crb`."""
        w = wp.tid()
        nbody = body_parentid.shape[0]
        for b in range(nbody):
            for k in range(10):
                fine_crb[w, b, k] = double(cinert[w, b][k])
        for i in range(nbody):
            b = index(nbody - 1 - i)
            p = index(body_parentid[b])
            for k in range(10):
                if p > 0:
                    fine_crb[w, p, k] = fine_crb[w, p, k] + fine_crb[w, b, k]
                crb[w, b][k] = real(fine_crb[w, b, k])
        for i in range(dof_bodyid.shape[0]):
            momentum = mul_inertia(held(w, index(dof_bodyid[i]), fine_crb), widened(cdof[w, i]))
            start = index(M_rowadr[i])
            last = index(start + M_rownnz[i] - 1)
            j = index(dof_jntid[i])
            rotor = added(w, j, jnt_actuatorid[j], False, actuator_trntype, actuator_trnid, actuator_outadr,
                          actuator_armature, actuator_gear)  # fmt: skip
            for e in range(start, last + 1):
                fine_M[w, e] = wp.dot(widened(cdof[w, index(M_colind[e])]), momentum)
            fine_M[w, last] = fine_M[w, last] + double(dof_armature[row(w, dof_armature), i] + rotor)
            for e in range(start, last + 1):
                M[w, e] = real(fine_M[w, e])

    @wp.kernel
    def fine_tendon_armature(
        tendon_actuatorid: ints, actuator_trntype: ints, actuator_trnid: wp.array2d(dtype=int), actuator_outadr: ints,
        actuator_armature: wp.array2d(dtype=real), actuator_gear: wp.array2d(dtype=spatial),
        tendon_armature: wp.array2d(dtype=real), ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints,
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, ten_J: wp.array2d(dtype=real),
        fine_M: wp.array2d(dtype=double), M: wp.array2d(dtype=real),
    ):  # fmt: skip
        """`position.tendon_armature`."""
        w = wp.tid()
        for k in range(tendon_actuatorid.shape[0]):
            rotor = added(w, k, tendon_actuatorid[k], True, actuator_trntype, actuator_trnid, actuator_outadr,
                          actuator_armature, actuator_gear)  # fmt: skip
            rotor = rotor + tendon_armature[row(w, tendon_armature), k]
            first = ten_J_rowadr[k]
            if rotor != real(0.0):
                for x in range(first, first + ten_J_rownnz[k]):
                    i = ten_J_colind[x]
                    share = double(rotor) * double(ten_J[w, x])
                    y = first
                    for e in range(M_rowadr[i], M_rowadr[i] + M_rownnz[i]):  # both rows are in ascending order
                        while y < x and ten_J_colind[y] < M_colind[e]:
                            y = y + 1
                        if ten_J_colind[y] == M_colind[e]:
                            fine_M[w, e] = fine_M[w, e] + share * double(ten_J[w, y])
                            M[w, e] = real(fine_M[w, e])

    @wp.kernel
    def fine_factor_m(
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, fine_M: wp.array2d(dtype=double),
        fine_LD: wp.array2d(dtype=double), fine_DiagInv: wp.array2d(dtype=double),
        qLD: wp.array2d(dtype=real), qLDiagInv: wp.array2d(dtype=real), warned: wp.array2d(dtype=int),
    ):  # fmt: skip
        """`position.factor_m`."""
        w = wp.tid()
        for e in range(M_colind.shape[0]):
            fine_LD[w, e] = fine_M[w, e]
        singular = factor(w, M_rowadr, M_rownnz, M_colind, fine_LD, fine_DiagInv)
        for e in range(M_colind.shape[0]):
            qLD[w, e] = real(fine_LD[w, e])
        for i in range(M_rowadr.shape[0]):
            qLDiagInv[w, i] = real(fine_DiagInv[w, i])
        if singular > 0:
            warned[w, SINGULAR] = warned[w, SINGULAR] + 1

    return dict(crb=fine_crb, tendon_armature=fine_tendon_armature, factor_m=fine_factor_m)
