"""fwd_acceleration: all smooth forces, and the acceleration that they give."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, index, types
from treadle.mujoco.factor import factorisation

ints = wp.array(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    t, a = types(real), algebra(real)
    vec3, spatial, push_at = t.vec3, t.spatial, a.push_at
    solve = factorisation(real).solve

    @wp.kernel(gang_vectors=2)
    def fwd_acceleration(
        pushed: bool, body_parentid: ints, body_rootid: ints, body_dofadr: ints, body_dofnum: ints,
        M_rowadr: ints, M_rownnz: ints, M_colind: ints, qLD: wp.array2d(dtype=real), qLDiagInv: wp.array2d(dtype=real),
        qfrc_applied: wp.array2d(dtype=real), qfrc_bias: wp.array2d(dtype=real), qfrc_passive: wp.array2d(dtype=real),
        qfrc_actuator: wp.array2d(dtype=real), xfrc_applied: wp.array2d(dtype=spatial),
        xipos: wp.array2d(dtype=vec3), subtree_com: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial),
        qfrc_smooth: wp.array2d(dtype=real), qacc_smooth: wp.array2d(dtype=real), qacc: wp.array2d(dtype=real),
    ):  # fmt: skip
        """All smooth forces, and the acceleration they give: ``M qacc_smooth = qfrc_smooth``.

        Without constraints that is qacc.
        """
        w = wp.tid()
        nv = qfrc_smooth.shape[1]
        for i in range(nv):
            qfrc_smooth[w, i] = qfrc_passive[w, i] - qfrc_bias[w, i] + qfrc_applied[w, i] + qfrc_actuator[w, i]
        if pushed:  # a force on a body acts on every joint between the body and the world
            for b in range(1, body_parentid.shape[0]):
                push = push_at(xfrc_applied[w, b], xipos[w, b] - subtree_com[w, index(body_rootid[b])])
                above = b
                while above > 0:
                    first = index(body_dofadr[above])
                    for i in range(first, first + body_dofnum[above]):
                        qfrc_smooth[w, i] = qfrc_smooth[w, i] + wp.dot(cdof[w, i], push)
                    above = body_parentid[above]
        for i in range(nv):
            qacc_smooth[w, i] = qfrc_smooth[w, i]
        solve(w, M_rowadr, M_rownnz, M_colind, qLD, qLDiagInv, qacc_smooth)
        for i in range(nv):
            qacc[w, i] = qacc_smooth[w, i]

    return dict(fwd_acceleration=fwd_acceleration)
