"""Finding contacts of pairs by formula, and the list that all methods write to.

A world's list has room for as many contacts as Data has; ``found_count`` goes on counting beyond it. Each method
appends the contacts of its pairs in the order of the table, and notes in ``found_end`` how many there are after it.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.collision.box_box import box_box
from treadle.mujoco.collision.capsule_box import capsule_box
from treadle.mujoco.collision.pairs import MOST
from treadle.mujoco.collision.round import among_round, with_plane
from treadle.mujoco.collision.shapes import shapes

ints = wp.array(dtype=int)


@cache
def listing(real: Any) -> SimpleNamespace:
    """Kernel functions ``append reach near`` for one precision."""
    t, s = types(real), shapes(real)
    vec3, mat33 = t.vec3, t.mat33
    reals, vectors = wp.array2d(dtype=real), wp.array2d(dtype=vec3)
    column = s.column

    @wp.func
    def append(
        w: int, pair: int, dist: real, point: vec3, normal: vec3, tangent: vec3,
        found_count: ints, found_pair: wp.array2d(dtype=int), found_dist: reals, found_pos: vectors,
        found_normal: vectors, found_tangent: vectors,
    ):  # fmt: skip
        n = found_count[w]
        if n < found_pair.shape[1]:
            found_pair[w, n] = pair
            found_dist[w, n] = dist
            found_pos[w, n] = point
            found_normal[w, n] = normal
            found_tangent[w, n] = tangent
        found_count[w] = n + 1

    @wp.func
    def margin_of(
        w: int, g1: int, g2: int, number: int, overridden: int, opt_o_margin: wp.array(dtype=real),
        geom_margin: reals, pair_margin: reals,
    ):  # fmt: skip
        """The distance below which contacts of a pair push: of the explicit pair, or the sum of both geoms'."""
        margin = real(0.0)
        if number >= 0:
            margin = pair_margin[row(w, pair_margin), number]
        else:
            margin = geom_margin[row(w, geom_margin), g1] + geom_margin[row(w, geom_margin), g2]
        if overridden != 0:
            margin = opt_o_margin[row(w, opt_o_margin)]
        return margin

    @wp.func
    def gap_of(w: int, g1: int, g2: int, number: int, geom_gap: reals, pair_gap: reals):
        """How much farther contacts of a pair are listed."""
        if number >= 0:
            return pair_gap[row(w, pair_gap), number]
        return geom_gap[row(w, geom_gap), g1] + geom_gap[row(w, geom_gap), g2]

    @wp.func
    def near(pos1: vec3, mat1: mat33, bound1: real, pos2: vec3, bound2: real, reach: real):
        """Whether bounding spheres are within reach; of a plane ``bound1`` is 0."""
        line = pos2 - pos1
        if bound1 > real(0.0):
            most = bound1 + bound2 + reach
            return wp.length_sq(line) <= most * most
        return wp.dot(line, column(mat1, 2)) <= bound2 + reach

    return SimpleNamespace(append=append, margin_of=margin_of, gap_of=gap_of, near=near)


@cache
def formula_kernel(name: str, real: Any) -> wp.Kernel:
    """The kernel that finds the contacts of all pairs of the method ``name``."""
    t, f = types(real), listing(real)
    vec3, mat33 = t.vec3, t.mat33
    reals, vectors = wp.array2d(dtype=real), wp.array2d(dtype=vec3)
    append, margin_of, gap_of, near = f.append, f.margin_of, f.gap_of, f.near
    narrow, most = _narrow(name, real), MOST[name]

    @wp.kernel
    def collide(
        first: int, last: int, slot: int, pairs_of_method: ints, pairs_geom1: ints, pairs_geom2: ints,
        pairs_explicit: ints, overridden: int, opt_o_margin: wp.array(dtype=real),
        geom_size: vectors, geom_rbound: reals, geom_margin: reals, geom_gap: reals,
        pair_margin: reals, pair_gap: reals, geom_xpos: vectors, geom_xmat: wp.array2d(dtype=mat33),
        found_count: ints, found_end: wp.array2d(dtype=int), found_pair: wp.array2d(dtype=int), found_dist: reals,
        found_pos: vectors, found_normal: vectors, found_tangent: vectors,
    ):  # fmt: skip
        w = wp.tid()
        for i in range(first, last):
            p = pairs_of_method[i]
            g1, g2, number = pairs_geom1[p], pairs_geom2[p], pairs_explicit[p]
            reach = margin_of(w, g1, g2, number, overridden, opt_o_margin, geom_margin, pair_margin)
            reach += gap_of(w, g1, g2, number, geom_gap, pair_gap)
            bound1, bound2 = geom_rbound[row(w, geom_rbound), g1], geom_rbound[row(w, geom_rbound), g2]
            pos1, pos2, mat1 = geom_xpos[w, g1], geom_xpos[w, g2], geom_xmat[w, g1]
            if near(pos1, mat1, bound1, pos2, bound2, reach):
                size1, size2 = geom_size[row(w, geom_size), g1], geom_size[row(w, geom_size), g2]
                dists, points, normals, tangent = narrow(pos1, mat1, size1, pos2, geom_xmat[w, g2], size2, reach)
                for k in range(most):
                    if dists[k] < reach:
                        append(
                            w, p, dists[k], points[k], normals[k], tangent, found_count, found_pair, found_dist,
                            found_pos, found_normal, found_tangent,
                        )  # fmt: skip
        found_end[w, slot] = found_count[w]

    return collide


def _narrow(name: str, real: Any) -> wp.Function:
    if name == "box_box":
        return box_box(real)
    if name == "capsule_box":
        return capsule_box(real)
    return getattr(with_plane(real) if name.startswith("plane") else among_round(real), name)
