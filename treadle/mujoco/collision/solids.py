"""Convex solids by their support functions: the farthest point in a direction.

A sphere counts as its centre and a capsule as its axis; the radius is added to distances afterwards. That is exact: of
two solids of which one is swollen by r, distance and depth change by r and the direction does not.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.meshes import CELLS
from treadle.mujoco.collision.pairs import BOX, CAPSULE, CYLINDER, ELLIPSOID, HFIELD, MESH, SPHERE
from treadle.mujoco.collision.shapes import TINY

ints = wp.array(dtype=int)

SCANNED = 24  # up to so many vertices a hull is searched one by one, which all lanes do together; above it is climbed


@cache
def solids(real: Any) -> SimpleNamespace:
    """The struct ``Solid`` and the kernel functions ``support guess radius`` for one precision.

    A solid's kind, size and hull are the same in all worlds (unless sizes differ), so the choice of method is made once
    for a gang. ``first`` and ``count`` are the vertices of a mesh's hull.
    """
    t = types(real)
    vec3, mat33 = t.vec3, t.mat33
    vectors = wp.array(dtype=vec3)

    @wp.struct
    class Solid:
        kind: int
        size: vec3
        pos: vec3
        mat: mat33
        first: int
        count: int

    @wp.func(inline=True)
    def climb(d: vec3, first: int, start: int, hull_vert: vectors, hull_edgeadr: ints, hull_edge: ints):
        """The number of the vertex of a hull that is farthest along ``d``: from neighbour to neighbour, uphill."""
        best, top = start, wp.dot(hull_vert[first + start], d)
        at = int(-1)
        while best != at:
            at = best
            for e in range(hull_edgeadr[first + at], hull_edgeadr[first + at + 1]):
                height = wp.dot(hull_vert[first + hull_edge[e]], d)
                if height > top:
                    top, best = height, hull_edge[e]
        return best

    @wp.func(inline=True)
    def scan(d: vec3, first: int, count: int, hull_vert: vectors):
        best, top = int(0), wp.dot(hull_vert[first], d)
        for k in range(1, count):
            height = wp.dot(hull_vert[first + k], d)
            if height > top:
                top, best = height, k
        return best

    @wp.func(inline=True)
    def support(s: Solid, d: vec3, start: int, hull_vert: vectors, hull_edgeadr: ints, hull_edge: ints, prism: vectors):
        """The point of a solid that is farthest along ``d``, and its number: a vertex, an end or a corner's signs.

        ``start`` is the vertex of a hull from which it is climbed; the last answer is a good one. ``prism`` has the six
        corners of a part of a height field.
        """
        local = d * s.mat
        x, number = vec3(), int(0)
        up = wp.where(local[2] >= real(0.0), real(1.0), real(-1.0))
        if s.kind == CAPSULE:
            x = vec3(real(0.0), real(0.0), up * s.size[1])
        elif s.kind == ELLIPSOID:
            scaled = wp.cw_mul(local, s.size)
            x = wp.cw_mul(scaled / wp.max(wp.length(scaled), real(TINY)), s.size)
        elif s.kind == CYLINDER:
            across = wp.sqrt(local[0] * local[0] + local[1] * local[1])
            scale = s.size[0] / wp.max(across, real(TINY))
            x = vec3(local[0] * scale, local[1] * scale, up * s.size[1])
            number = wp.where(local[2] >= real(0.0), 0, 1)
        elif s.kind == BOX:
            x = vec3(
                wp.where(local[0] >= real(0.0), s.size[0], -s.size[0]),
                wp.where(local[1] >= real(0.0), s.size[1], -s.size[1]),
                up * s.size[2],
            )
            number = wp.where(x[0] > real(0.0), 1, 0) + wp.where(x[1] > real(0.0), 2, 0)
            number += wp.where(x[2] > real(0.0), 4, 0)
        elif s.kind == MESH:
            if s.count <= SCANNED:
                number = scan(local, s.first, s.count, hull_vert)
            else:
                number = climb(local, s.first, start, hull_vert, hull_edgeadr, hull_edge)
            x = hull_vert[s.first + number]
        elif s.kind == HFIELD:
            number = scan(local, 0, 6, prism)
            x = prism[number]
        return s.pos + s.mat * x, number

    @wp.func
    def guess(s: Solid, d: vec3, adr: int, hull_start: ints):
        """A vertex of a mesh that is far along ``d``, to start a climb from: that of the direction's cell on a cube."""
        vertex = int(0)
        if s.kind == MESH and s.count > SCANNED:
            local = d * s.mat
            k = wp.where(wp.abs(local[1]) > wp.abs(local[0]), 1, 0)
            if wp.abs(local[2]) > wp.abs(local[k]):
                k = 2
            scale = real(0.5 * CELLS) / wp.max(wp.abs(local[k]), real(TINY))
            u = wp.clamp(int(local[(k + 1) % 3] * scale + real(0.5 * CELLS)), 0, CELLS - 1)
            v = wp.clamp(int(local[(k + 2) % 3] * scale + real(0.5 * CELLS)), 0, CELLS - 1)
            side = 2 * k + wp.where(local[k] > real(0.0), 1, 0)
            vertex = hull_start[adr + (side * CELLS + u) * CELLS + v]
        return vertex

    @wp.func
    def radius(s: Solid):
        """By how much the solid is larger than what `support` answers for."""
        return wp.where(s.kind == SPHERE or s.kind == CAPSULE, s.size[0], real(0.0))

    return SimpleNamespace(Solid=Solid, support=support, guess=guess, radius=radius)
