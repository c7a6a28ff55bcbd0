"""Faces and edges of solids, by the numbers of the support points that touched.

A face's number is ``2 k`` or ``2 k + 1`` for the upper or lower face of a box along axis k, 0 or 1 for the upper or
lower disc of a cylinder (which counts as a polygon of 16 sides), and the number of its polygon for a mesh.
"""

from __future__ import annotations

from functools import cache
from math import cos, pi, sin
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.pairs import BOX, CAPSULE, CYLINDER, MESH
from treadle.mujoco.collision.solids import solids

SIDES = 16  # of the polygon that stands for a disc
FLAT = 0.996  # cosine: planes whose normals differ by less lie on each other (5 degrees), as in MuJoCo
ALONG = sin(0.0889)  # sine: edges that rise less over a face lie along it

ints = wp.array(dtype=int)


@cache
def features(real: Any) -> SimpleNamespace:
    """Kernel functions ``dimension faces normal polygon edges edge`` for one precision."""
    t = types(real)
    vec3 = t.vec3
    Solid = solids(real).Solid
    vectors = wp.array(dtype=vec3)
    circle = wp.types.matrix(shape=(SIDES, 2), dtype=real)
    rim = [f(2 * pi * k / SIDES) for k in range(SIDES) for f in (cos, sin)]
    rim = wp.constant(circle(*rim))

    @wp.func
    def dimension(u: int, v: int, w: int):
        """How many different numbers there are: 1 a vertex, 2 an edge, 3 a face."""
        return wp.where(u == v, wp.where(u == w, 1, 2), wp.where(w == u or w == v, 2, 3))

    @wp.func(inline=True)
    def normal(s: Solid, face: int, hull_polynormal: vectors):
        """The outward normal of a face."""
        n = vec3()
        if s.kind == MESH:
            n = hull_polynormal[face]
        elif s.kind == BOX:
            n[face // 2] = wp.where(face % 2 == 0, real(1.0), real(-1.0))
        else:
            n[2] = wp.where(face == 0, real(1.0), real(-1.0))
        return s.mat * n

    @wp.func(inline=True)
    def listed(vertex: int, hull_mapadr: ints, hull_map: ints, into: ints):
        """The polygons that meet in a vertex: their number, and those in ``into``."""
        start = hull_mapadr[vertex]
        count = wp.min(hull_mapadr[vertex + 1] - start, into.shape[0])
        for k in range(count):
            into[k] = hull_map[start + k]
        return count

    @wp.func(inline=True)
    def shared(count: int, found: ints, vertex: int, hull_mapadr: ints, hull_map: ints, spare: ints):
        """Keep of the polygons ``found`` those that meet in a vertex, too; gives their number."""
        others = listed(vertex, hull_mapadr, hull_map, spare)
        kept = int(0)
        for k in range(count):
            p, meets = found[k], False
            for l in range(others):
                meets = meets or spare[l] == p
            if meets:
                found[kept] = p
                kept += 1
        return kept

    @wp.func(inline=True)
    def faces(
        s: Solid, dim: int, u: int, v: int, w: int, toward: vec3, hull_mapadr: ints, hull_map: ints, found: ints,
        spare: ints,
    ):  # fmt: skip
        """The faces that hold all touching points: their number, and those in ``found``."""
        count = int(0)
        if s.kind == MESH:
            count = listed(s.first + u, hull_mapadr, hull_map, found)
            if dim > 1:
                count = shared(count, found, s.first + v, hull_mapadr, hull_map, spare)
            if dim > 2:
                count = shared(count, found, s.first + w, hull_mapadr, hull_map, spare)
        elif s.kind == BOX:
            for k in range(3):
                bit = 1 << k
                if (u ^ v) & bit == 0 and (u ^ w) & bit == 0:
                    found[count] = 2 * k + wp.where(u & bit != 0, 0, 1)
                    count += 1
            if count == 0 or dim == 3 and count > 1:
                count = 0
                local = toward * s.mat
                for k in range(3):
                    if wp.abs(local[k]) > real(FLAT) * wp.length(local):
                        found[0] = 2 * k + wp.where(local[k] > real(0.0), 0, 1)
                        count = 1
        elif s.kind == CYLINDER and dim == 1:
            found[0] = u
            count = 1
        return count

    @wp.func(inline=True)
    def polygon(s: Solid, face: int, hull_vert: vectors, hull_polyadr: ints, hull_polyvert: ints, corners: vectors):
        """The corners of a face, clockwise as seen from outside: their number, and those in ``corners``."""
        count = int(4)
        if s.kind == MESH:
            start = hull_polyadr[face]
            count = wp.min(hull_polyadr[face + 1] - start, corners.shape[0])
            for k in range(count):
                corners[k] = s.pos + s.mat * hull_vert[s.first + hull_polyvert[start + count - 1 - k]]
        elif s.kind == BOX:
            k = face // 2
            side = wp.where(face % 2 == 0, real(1.0), real(-1.0))
            for c in range(4):  # where the walk begins decides which corners of a larger polygon are kept
                p, q = wp.where(c < 2, real(1.0), real(-1.0)), wp.where(c == 0 or c == 3, real(1.0), real(-1.0))
                u, v = wp.where(face == 5, q, -q), wp.where(face == 2, -p, p)
                if k == 0:
                    u, v = p, side * q
                x = vec3(u * s.size[0], wp.where(k == 0, u, v) * s.size[1], v * s.size[2])
                x[k] = side * s.size[k]
                corners[c] = s.pos + s.mat * x
        else:
            count = SIDES
            side = wp.where(face == 0, real(1.0), real(-1.0))
            for c in range(SIDES):
                corners[c] = s.pos + s.mat * vec3(
                    rim[c, 0] * s.size[0], -side * rim[c, 1] * s.size[0], side * s.size[1]
                )
        return count

    @wp.func(inline=True)
    def edges(s: Solid, dim: int, u: int, hull_mapadr: ints):
        """How many edges leave what touched: of a vertex all, else the one."""
        count = int(1)
        if s.kind == MESH and dim == 1:
            count = hull_mapadr[s.first + u + 1] - hull_mapadr[s.first + u]
        elif s.kind == BOX and dim == 1:
            count = 3
        return count

    @wp.func(inline=True)
    def edge(
        s: Solid, dim: int, u: int, v: int, k: int, point: vec3, hull_vert: vectors, hull_mapadr: ints,
        hull_map: ints, hull_polyadr: ints, hull_polyvert: ints,
    ):  # fmt: skip
        """Start and end of edge ``k``. ``point``, where the solid touches, places those of a cylinder or a capsule."""
        x, y = vec3(), vec3()
        if s.kind == MESH:
            other = v
            if dim == 1:
                p = hull_map[hull_mapadr[s.first + u] + k]
                start = hull_polyadr[p]
                last = hull_polyadr[p + 1] - 1
                for i in range(start, last + 1):
                    if hull_polyvert[i] == u:
                        other = hull_polyvert[wp.where(i == start, last, i - 1)]
            x, y = hull_vert[s.first + u], hull_vert[s.first + other]
        elif s.kind == BOX:
            other = wp.where(dim == 1, u ^ (1 << k), v)
            for i in range(3):
                x[i] = wp.where(u & (1 << i) != 0, s.size[i], -s.size[i])
                y[i] = wp.where(other & (1 << i) != 0, s.size[i], -s.size[i])
        else:
            x = (point - s.pos) * s.mat
            if s.kind == CYLINDER:
                scale = s.size[0] / wp.max(wp.sqrt(x[0] * x[0] + x[1] * x[1]), real(1e-15))
                x = vec3(x[0] * scale, x[1] * scale, real(0.0))
            side = real(-1.0)
            if s.kind == CYLINDER and u == 0:
                side = real(1.0)
            x[2] = side * s.size[1]
            y = vec3(x[0], x[1], -x[2])
        return s.pos + s.mat * x, s.pos + s.mat * y

    return SimpleNamespace(
        dimension=dimension, faces=faces, normal=normal, polygon=polygon, edges=edges, edge=edge, capsule=CAPSULE
    )
