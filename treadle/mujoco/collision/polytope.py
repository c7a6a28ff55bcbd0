"""The expanding polytope: a convex hull inside the Minkowski difference of two solids that grows towards its surface.

G. van den Bergen, *Proximity Queries and Penetration Depth Computation on 3D Game Objects* (2001). Faces are kept as
plane and three vertices. Where faces that a new point sees are taken out, the border of the hole is a list of directed
edges, which is short: each face that goes takes out what it has in common with it, and adds its other edges.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.shapes import NEVER

PAST = 64**3  # added to the vertices of a face that is no candidate for the nearest any more
POINTS = 64  # numbers of vertices are six bits of a face's or an edge's
FACES = 2 * POINTS  # a closed surface of v vertices has 2 v - 4 triangles

ints = wp.array(dtype=int)


@cache
def polytopes(real: Any) -> SimpleNamespace:
    """Kernel functions ``begin expand nearest weights`` for one precision.

    Faces are three arrays: outward unit normals, distances from the origin, and vertices as ``i + 64 j + 4096 k``. A
    face without area has distance `NEVER`: it is neither the nearest nor ever seen. The nearest face only goes away
    from the origin, up to the least distance of a point along its face's normal; a face outside these bounds owes its
    place to rounding and is marked by `PAST`.
    """
    t = types(real)
    vec3 = t.vec3
    reals, vectors = wp.array(dtype=real), wp.array(dtype=vec3)

    @wp.func(inline=True)
    def put(
        i: int, j: int, k: int, last: vec3, at: int, low: real, high: real, x: vectors, normals: vectors,
        dists: reals, corners: ints,
    ):  # fmt: skip
        """Face number ``at`` of points i, j and k, the last of which lies at ``last``."""
        start = x[i]
        normal = wp.cross(x[j] - start, last - start)
        size = wp.length(normal)
        dist = real(NEVER)
        if size > real(1e-30):
            normal = normal / size
            dist = wp.dot(normal, start)
        normals[at] = normal
        dists[at] = dist
        corners[at] = i + 64 * j + 4096 * k + wp.where(dist < low or dist > high, PAST, 0)

    @wp.func(inline=True)
    def begin(x: vectors, normals: vectors, dists: reals, corners: ints):
        """The first three points as a flat polytope of two faces."""
        for k in range(2):
            put(0, 1 + k, 2 - k, x[2 - k], k, real(-NEVER), real(NEVER), x, normals, dists, corners)
        return 2

    @wp.func(inline=True)
    def remove(at: int, size: int, border: ints):
        """Take an edge out of the list, whose last one comes to its place."""
        border[at] = border[size - 1]
        return size - 1

    @wp.func(inline=True)
    def cut(c: int, always: bool, size: int, border: ints):
        """Let the border go around a face, too, if it adjoins what lies inside, or in any case: ``(whether, size)``."""
        i, j, k = c & 63, (c >> 6) & 63, (c >> 12) & 63
        first, second, third = int(-1), int(-1), int(-1)  # where the other side of its edges is
        for e in range(size):
            edge = border[e]
            first = wp.where(edge == j + 64 * i, e, first)
            second = wp.where(edge == k + 64 * j, e, second)
            third = wp.where(edge == i + 64 * k, e, third)
        taken = always or wp.max(first, wp.max(second, third)) >= 0
        if taken:
            room = size
            if first < 0:
                border[room] = i + 64 * j
                room += 1
            if second < 0:
                border[room] = j + 64 * k
                room += 1
            if third < 0:
                border[room] = k + 64 * i
                room += 1
            # From behind, as the last edge moves to where one is taken out.
            high = wp.max(first, wp.max(second, third))
            low = wp.min(first, wp.min(second, third))
            middle = first + second + third - high - low
            if high >= 0:
                room = remove(high, room, border)
            if middle >= 0:
                room = remove(middle, room, border)
            if low >= 0:
                room = remove(low, room, border)
            size = wp.min(room, FACES)
        return taken, size

    @wp.func(inline=True)
    def expand(
        new: int, first: int, count: int, low: real, high: real, slack: real, x: vectors, normals: vectors,
        dists: reals, corners: ints, border: ints, seen: ints, freed: ints,
    ):  # fmt: skip
        """Add point ``new``, which sees face ``first`` (-1: of the two of a flat polytope, one or the other).

        Faces that see it by more than ``slack`` and hang together with the first go, and faces to the border of the
        hole take their place. Gives the number of faces.
        """
        visible, last = int(0), x[new]
        for f in range(count):
            if f != first and wp.dot(normals[f], last) - dists[f] > slack:
                seen[visible] = f
                visible += 1
        if first < 0:
            first = wp.where(visible > 0, seen[0], 0)
        taken, size = cut(corners[first], True, 0, border)
        freed[0] = first
        gone = int(1)
        more = visible > 0
        while more:
            more = False
            left = int(0)
            for i in range(visible):
                f = seen[i]
                if f != first:
                    taken, size = cut(corners[f], False, size, border)
                    if taken:
                        freed[gone] = f
                        gone += 1
                        more = True
                    else:
                        seen[left] = f
                        left += 1
            visible = left
            more = more and visible > 0
        for e in range(size):
            edge, at = border[e], count
            if e < gone:
                at = freed[e]
            else:
                count += 1
            if at < FACES:
                put(edge & 63, edge >> 6, new, last, at, low, high, x, normals, dists, corners)
        for e in range(size, gone):  # a hole with two points inside has more faces than edges around it
            dists[freed[e]] = real(NEVER)
        return wp.min(count, FACES)

    @wp.func(inline=True)
    def nearest(count: int, dists: reals, corners: ints):
        """The face that is nearest to the origin, -1 if there is no candidate."""
        best, face = real(NEVER), int(-1)
        for f in range(count):
            if dists[f] < best and corners[f] < PAST:
                best, face = dists[f], f
        return face

    @wp.func(inline=True)
    def weights(p: vec3, a: vec3, b: vec3, c: vec3):
        """Weights of a point in the plane of a triangle: areas, as parts of the whole."""
        normal = wp.cross(b - a, c - a)
        whole = wp.dot(normal, normal)
        u = wp.dot(wp.cross(b - p, c - p), normal) / whole
        v = wp.dot(wp.cross(c - p, a - p), normal) / whole
        return vec3(u, v, real(1.0) - u - v)

    return SimpleNamespace(begin=begin, expand=expand, nearest=nearest, weights=weights)
