"""Composite bodies: all that moves along with a body, its inertia counted from that body's centre of mass.

Counted from the centre of mass of a whole tree, as `cinert` and `cdof` are, the inertia of a light part far out is a
small difference of large numbers, and the mass matrix loses its digits in single precision.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, index, row, types
from treadle.mujoco.constants import FREE, SLIDE

ints = wp.array(dtype=int)


@cache
def composite(real: Any) -> SimpleNamespace:
    """Kernel functions for one precision: ``gather``, and ``fill`` that makes a row of M."""
    t, a = types(real), algebra(real)
    vec3, mat33, spatial, inertia = t.vec3, t.mat33, t.spatial, t.inertia
    pair, rotation, translation = a.pair, a.rotation, a.translation
    place_inertia, mul_inertia = a.place_inertia, a.mul_inertia

    @wp.func
    def moved(i: inertia, o: vec3):
        """The inertia of a body counted from another point, from which the first is ``o``."""
        h, mass = vec3(i[6], i[7], i[8]), i[9]
        m = mass * o + real(2.0) * h  # m o o' + h o' + o h' on the diagonal
        x, y, z = m[0] * o[0], m[1] * o[1], m[2] * o[2]
        mo = mass * o
        return inertia(
            i[0] + (y + z), i[1] + (x + z), i[2] + (x + y),
            i[3] - (mo[0] * o[1] + (h[0] * o[1] + h[1] * o[0])),
            i[4] - (mo[0] * o[2] + (h[0] * o[2] + h[2] * o[0])),
            i[5] - (mo[1] * o[2] + (h[1] * o[2] + h[2] * o[1])),
            h[0] + mo[0], h[1] + mo[1], h[2] + mo[2], mass,
        )  # fmt: skip

    @wp.func
    def gather(
        w: int, body_parentid: ints, body_mass: wp.array2d(dtype=real), body_inertia: wp.array2d(dtype=vec3),
        ximat: wp.array2d(dtype=mat33), xipos: wp.array2d(dtype=vec3), own: wp.array2d(dtype=inertia),
    ):  # fmt: skip
        """The inertia of every composite body from its first body's centre of mass, in the world's axes."""
        nbody = body_parentid.shape[0]
        none = vec3(real(0.0), real(0.0), real(0.0))
        for b in range(1, nbody):
            own[w, b] = place_inertia(body_inertia[row(w, body_inertia), b], ximat[w, b], none,
                                      body_mass[row(w, body_mass), b])  # fmt: skip
        for i in range(nbody - 1):
            b = index(nbody - 1 - i)
            p = index(body_parentid[b])
            if p > 0:
                own[w, p] = own[w, p] + moved(own[w, b], xipos[w, b] - xipos[w, p])

    @wp.func
    def turns(i: int, kind: int, first: int):
        """Whether degree of freedom ``i`` of a joint turns bodies; else it moves them."""
        return kind != SLIDE and (kind != FREE or i >= first + 3)

    @wp.func
    def fill(
        w: int, i: int, body: int, start: int, last: int, colind: ints, dof_jntid: ints, jnt_type: ints,
        jnt_dofadr: ints, own: wp.array2d(dtype=inertia), xipos: wp.array2d(dtype=vec3),
        xanchor: wp.array2d(dtype=vec3), cdof: wp.array2d(dtype=spatial), M: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Row ``i`` of M: the momentum that ``i`` gives to the composite body ``body``, as its ancestors feel it."""
        centre = xipos[w, body]
        j = index(dof_jntid[i])
        motion = cdof[w, i]
        if turns(i, jnt_type[j], jnt_dofadr[j]):
            motion = pair(rotation(motion), wp.cross(rotation(motion), centre - xanchor[w, j]))
        momentum = mul_inertia(own[w, body], motion)
        for e in range(start, last + 1):
            k = index(colind[e])
            j = index(dof_jntid[k])
            if turns(k, jnt_type[j], jnt_dofadr[j]):
                twist = rotation(momentum) + wp.cross(centre - xanchor[w, j], translation(momentum))
                M[w, e] = wp.dot(rotation(cdof[w, k]), twist)
            else:
                M[w, e] = wp.dot(translation(cdof[w, k]), translation(momentum))

    return SimpleNamespace(gather=gather, fill=fill, turns=turns)
