"""The expanding polytope: a convex hull inside the Minkowski difference of two solids that grows towards its surface.

G. van den Bergen, *Proximity Queries and Penetration Depth Computation on 3D Game Objects* (2001). Faces are kept as
plane and three vertices; where faces that a new point sees are taken out, the border of the hole is found from the
edges themselves: an edge is on it if one of its two directions belongs to a face that went. For each vertex, one 64-bit
word has the vertices that such edges lead to, another those that they come from.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.shapes import NEVER

PAST = 64**3  # added to the vertices of a face that is no candidate for the nearest any more
POINTS = 64  # a word's bits are the vertices that an edge can lead to
FACES = 2 * POINTS  # a closed surface of v vertices has 2 v - 4 triangles

ints = wp.array(dtype=int)
words = wp.array(dtype=wp.uint64)


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
    def cut(c: int, into: words, out_of: words):
        """Note the three edges of a face that goes."""
        for e in range(3):
            a, b = (c >> (6 * e)) & 63, (c >> (6 * ((e + 1) % 3))) & 63
            out_of[a] |= wp.uint64(1) << wp.uint64(b)
            into[b] |= wp.uint64(1) << wp.uint64(a)

    @wp.func(inline=True)
    def adjoins(c: int, out_of: words):
        """Whether a face has an edge in common with those that went."""
        found = False
        for e in range(3):
            a, b = (c >> (6 * e)) & 63, (c >> (6 * ((e + 1) % 3))) & 63
            found = found or (out_of[b] >> wp.uint64(a)) & wp.uint64(1) != wp.uint64(0)
        return found

    @wp.func(inline=True)
    def expand(
        new: int, first: int, count: int, low: real, high: real, slack: real, x: vectors, normals: vectors,
        dists: reals, corners: ints, into: words, out_of: words, seen: ints, freed: ints,
    ):  # fmt: skip
        """Add point ``new``, which sees face ``first`` (-1: of the two of a flat polytope, one or the other).

        Faces that see it by more than ``slack`` and hang together with the first go, and faces to the border of the
        hole take their place. Gives the number of faces.
        """
        for v in range(new):
            into[v] = wp.uint64(0)
            out_of[v] = wp.uint64(0)
        visible, gone, last = int(0), int(0), x[new]
        for f in range(count):
            if f != first and wp.dot(normals[f], last) - dists[f] > slack:
                seen[visible] = f
                visible += 1
        if first < 0:
            first = wp.where(visible > 0, seen[0], 0)
        cut(corners[first], into, out_of)
        freed[0] = first
        gone = int(1)
        more = True
        while more:
            more = False
            for i in range(visible):
                f = seen[i]
                if f >= 0 and f != first and adjoins(corners[f], out_of):
                    cut(corners[f], into, out_of)
                    freed[gone] = f
                    gone += 1
                    seen[i] = -1
                    more = True
        made = int(0)  # edges of the border, in a list: all lanes make their faces of it together
        for a in range(new):
            border = out_of[a] & ~into[a]
            while border != wp.uint64(0):
                b = int(wp.bit_count((border & (~border + wp.uint64(1))) - wp.uint64(1)))
                border &= border - wp.uint64(1)
                if made < FACES:
                    seen[made] = a + 64 * b
                made += 1
        for e in range(wp.min(made, FACES)):
            edge, at = seen[e], count
            if e < gone:
                at = freed[e]
            else:
                count += 1
            if at < FACES:
                put(edge & 63, edge >> 6, new, last, at, low, high, x, normals, dists, corners)
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
