"""Finding contacts of pairs by formula, and the slots that all methods write to.

Each pair has a slot for each contact that its method can make, at the same place in all worlds, so that a gang writes
one vector. ``slot_count`` says how many of them, from the first on, are contacts; what lies in the others means
nothing.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.collision.box_box import box_box
from treadle.mujoco.collision.broad import broad
from treadle.mujoco.collision.capsule_box import capsule_box
from treadle.mujoco.collision.pairs import MOST
from treadle.mujoco.collision.round import among_round, with_plane
from treadle.mujoco.collision.shapes import results

ints, ints2 = wp.array(dtype=int), wp.array2d(dtype=int)

SCATTERED = ("plane_capsule", "plane_cylinder", "capsule_capsule", "capsule_box")  # what is no contact may come first


@cache
def listing(real: Any) -> SimpleNamespace:
    """Kernel functions ``pair_at put reach_of margin_of`` for one precision."""
    vec3 = types(real).vec3
    reals, vectors = wp.array2d(dtype=real), wp.array2d(dtype=vec3)

    @wp.func
    def pair_at(i: int, pairs_of_method: ints, pairs_geom1: ints, pairs_geom2: ints):
        """A pair and its geoms. None of the numbers is negative, which spares each access the question."""
        p = wp.max(pairs_of_method[wp.max(i, 0)], 0)
        return p, wp.max(pairs_geom1[p], 0), wp.max(pairs_geom2[p], 0)

    @wp.func
    def put(
        w: int, slot: int, dist: real, point: vec3, normal: vec3, tangent: vec3, slot_dist: reals, slot_pos: vectors,
        slot_normal: vectors, slot_tangent: vectors,
    ):  # fmt: skip
        slot_dist[w, slot] = dist
        slot_pos[w, slot] = point
        slot_normal[w, slot] = normal
        slot_tangent[w, slot] = tangent

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
    def reach_of(
        w: int, g1: int, g2: int, number: int, overridden: int, opt_o_margin: wp.array(dtype=real),
        geom_margin: reals, pair_margin: reals, geom_gap: reals, pair_gap: reals,
    ):  # fmt: skip
        """The distance below which contacts of a pair are listed: the gap is added."""
        margin = margin_of(w, g1, g2, number, overridden, opt_o_margin, geom_margin, pair_margin)
        if number >= 0:
            return margin + pair_gap[row(w, pair_gap), number]
        return margin + geom_gap[row(w, geom_gap), g1] + geom_gap[row(w, geom_gap), g2]

    return SimpleNamespace(pair_at=pair_at, put=put, margin_of=margin_of, reach_of=reach_of)


@cache
def formula_kernel(name: str, real: Any) -> wp.Kernel:
    """The kernel that finds the contacts of all pairs of the method ``name``."""
    t, f = types(real), listing(real)
    vec3, mat33 = t.vec3, t.mat33
    reals, vectors = wp.array2d(dtype=real), wp.array2d(dtype=vec3)
    pair_at, put, reach_of = f.pair_at, f.put, f.reach_of
    narrow, most, far = _narrow(name, real), MOST[name], _far(name, real)
    in_order = ordered(real, most) if name in SCATTERED else _as_they_are(real, most)

    @wp.kernel
    def collide(
        first: int, last: int, pairs_of_method: ints, pairs_geom1: ints, pairs_geom2: ints, pairs_explicit: ints,
        pairs_slot: ints, overridden: int, opt_o_margin: wp.array(dtype=real), geom_size: vectors, geom_rbound: reals,
        geom_margin: reals, geom_gap: reals, pair_margin: reals, pair_gap: reals, geom_xpos: vectors,
        geom_xmat: wp.array2d(dtype=mat33), slot_count: ints2, slot_dist: reals, slot_pos: vectors,
        slot_normal: vectors, slot_tangent: vectors,
    ):  # fmt: skip
        w = wp.tid()
        for i in range(first, last):
            p, g1, g2 = pair_at(i, pairs_of_method, pairs_geom1, pairs_geom2)
            reach = reach_of(
                w, g1, g2, pairs_explicit[p], overridden, opt_o_margin, geom_margin, pair_margin, geom_gap, pair_gap
            )  # fmt: skip
            pos1, mat1, pos2 = geom_xpos[w, g1], geom_xmat[w, g1], geom_xpos[w, g2]
            bound = geom_rbound[row(w, geom_rbound), g1] + geom_rbound[row(w, geom_rbound), g2] + reach
            near = far.first(pos2 - pos1, mat1, bound)
            count = int(0)
            if wp.any_lane(near):
                size1, size2 = geom_size[row(w, geom_size), g1], geom_size[row(w, geom_size), g2]
                mat2 = geom_xmat[w, g2]
                near = near and far.second(pos2 - pos1, mat1, size1, mat2, size2, reach)
                if wp.any_lane(near):
                    dists, points, normals, tangent = narrow(pos1, mat1, size1, pos2, mat2, size2, reach)
                    dists, points, normals = in_order(dists, points, normals, reach)
                    for k in range(most):
                        if near and dists[k] <= reach:
                            count += 1
                    start = wp.max(pairs_slot[p], 0)
                    for k in range(most):
                        if wp.any_lane(k < count):
                            put(
                                w, start + k, dists[k], points[k], normals[k], tangent, slot_dist, slot_pos,
                                slot_normal, slot_tangent,
                            )  # fmt: skip
            slot_count[w, p] = count

    return collide


def _narrow(name: str, real: Any) -> wp.Function:
    if name == "box_box":
        return box_box(real)
    if name == "capsule_box":
        return capsule_box(real)
    return getattr(with_plane(real) if name.startswith("plane") else among_round(real), name)


def _far(name: str, real: Any) -> SimpleNamespace:
    """The tests before the narrow phase: ``first(line, mat1, bound)``, and ``second`` of what that leaves."""
    t, b = types(real), broad(real)
    vec3, mat33 = t.vec3, t.mat33
    spheres, boxes, capsules, over_plane = b.spheres, b.boxes, b.capsules, b.over_plane

    @wp.func
    def among_solids(line: vec3, mat1: mat33, bound: real):
        return spheres(line, bound)

    @wp.func
    def always(line: vec3, mat1: mat33, size1: vec3, mat2: mat33, size2: vec3, reach: real):
        return True

    @wp.func
    def capsule_with_box(line: vec3, mat1: mat33, size1: vec3, mat2: mat33, size2: vec3, reach: real):
        half = vec3(size1[0], size1[0], size1[0] + size1[1])
        return boxes(line, mat1, half, mat2, size2, reach)

    second = {"box_box": boxes, "capsule_capsule": capsules, "capsule_box": capsule_with_box}.get(name, always)
    return SimpleNamespace(first=over_plane if name.startswith("plane") else among_solids, second=second)


@cache
def ordered(real: Any, most: int) -> wp.Function:
    """Brings what is a contact to the front, in its order: a function of ``(dists, points, normals, reach)``."""
    made = results(real, most)
    numbers, rows = made.dists, made.rows

    @wp.func
    def to_the_front(dists: numbers, points: rows, normals: rows, reach: real):
        for turn in range(most - 1):
            for k in range(most - 1 - turn):
                if dists[k] > reach and dists[k + 1] <= reach:
                    dist, point, normal = dists[k], points[k], normals[k]
                    dists[k], points[k], normals[k] = dists[k + 1], points[k + 1], normals[k + 1]
                    dists[k + 1], points[k + 1], normals[k + 1] = dist, point, normal
        return dists, points, normals

    return to_the_front


def _as_they_are(real: Any, most: int) -> wp.Function:
    made = results(real, most)
    numbers, rows = made.dists, made.rows

    @wp.func
    def as_they_are(dists: numbers, points: rows, normals: rows, reach: real):
        return dists, points, normals

    return as_they_are
