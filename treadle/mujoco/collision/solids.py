"""Convex solids by their support functions: the farthest point in a direction.

A sphere counts as its centre and a capsule as its axis; the radius is added to distances afterwards. That is exact: of
two solids of which one is swollen by r, distance and depth change by r and the direction does not.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index, types
from treadle.mujoco.collision.cells import CELLS
from treadle.mujoco.collision.pairs import BOX, CAPSULE, CYLINDER, ELLIPSOID, HFIELD, MESH, SPHERE
from treadle.mujoco.collision.shapes import TINY

ints = wp.array(dtype=int)


@cache
def solids(real: Any) -> SimpleNamespace:
    """The struct ``Solid`` and the kernel functions ``support radius`` for one precision.

    A solid's kind, size and hull are the same in all worlds (unless sizes differ), so the choice of method is made once
    for a gang. ``first`` and ``count`` are the vertices of a mesh's hull, ``cells`` is the first of its cells.
    """
    t = types(real)
    vec3, vec4, mat33 = t.vec3, t.vec4, t.mat33
    vectors, vec4s = wp.array(dtype=vec3), wp.array(dtype=vec4)

    @wp.struct
    class Solid:
        kind: int
        size: vec3
        pos: vec3
        mat: mat33
        first: int
        count: int
        cells: int

    @wp.func(inline=True)
    def scan(d: vec3, count: int, points: vectors):
        best, top = int(0), wp.dot(points[0], d)
        for k in range(1, count):
            height = wp.dot(points[k], d)
            if height > top:
                top, best = height, k
        return best

    @wp.func(inline=True)
    def leaving(d: vec3):
        """Where a direction leaves a cube: the side, two coordinates on it in cells, and half an edge along ``d``."""
        k = wp.where(wp.abs(d[1]) > wp.abs(d[0]), 1, 0)
        k = wp.where(wp.abs(d[2]) > wp.max(wp.abs(d[0]), wp.abs(d[1])), 2, k)
        along, across, up = d[0], d[1], d[2]
        if k == 1:
            along, across, up = d[1], d[2], d[0]
        if k == 2:
            along, across, up = d[2], d[0], d[1]
        scale = real(0.5 * CELLS) / wp.max(wp.abs(along), real(TINY))
        side = 2 * k + wp.where(along > real(0.0), 1, 0)
        return side, across * scale + real(0.5 * CELLS), up * scale + real(0.5 * CELLS), wp.abs(along)

    @wp.func(inline=True)
    def cell_of(side: int, x: real, y: real):
        """The cell of a side, and where in it the point x, y lies, as parts of its edges."""
        u, v = wp.clamp(int(x), 0, CELLS - 1), wp.clamp(int(y), 0, CELLS - 1)
        return (side * CELLS + u) * CELLS + v, x - real(u), y - real(v)

    @wp.func(inline=True)
    def point_of(v: vec4):
        return vec3(v[0], v[1], v[2])

    @wp.func(inline=True)
    def look_up(d: vec3, cells: int, hull_celladr: ints, hull_far: vec4s):
        """The vertex of a hull that is farthest along ``d``, and its number.

        The first of each lane's list comes for all lanes at once, as memory is slow to answer; what more there is in
        lists, of one cell after the other.
        """
        side, u, v, along = leaving(d)
        cell, right, up = cell_of(side, u, v)
        left = cells + cell
        best = index(hull_celladr[left])
        top = wp.dot(point_of(hull_far[best]), d)
        if hull_celladr[left + 1] - best == 1:
            left = int(-1)
        while wp.any_lane(left >= 0):
            cell = wp.max_lane(left)
            highest, place = top, best
            for k in range(index(hull_celladr[cell]) + 1, hull_celladr[cell + 1]):
                height = wp.dot(point_of(hull_far[k]), d)
                if height > highest:
                    highest, place = height, k
            if left == cell:
                best, left = place, -1
        found = hull_far[best]
        return point_of(found), int(found[3])

    @wp.func(inline=True)
    def support(s: Solid, d: vec3, hull_celladr: ints, hull_far: vec4s, prism: vectors):
        """The point of a solid that is farthest along ``d``, and its number: a vertex, an end or a corner's signs.

        ``prism`` has the six corners of a part of a height field.
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
            x, number = look_up(local, s.cells, hull_celladr, hull_far)
        elif s.kind == HFIELD:
            number = scan(local, 6, prism)
            x = prism[number]
        return s.pos + s.mat * x, number

    @wp.func(inline=True)
    def height(kind: int, size: vec3, cells: int, d: vec3, hull_tops: vec4s):
        """How far a solid reaches along ``d``, in its frame, times the length of ``d``. Hulls reach less far than this:
        where a function is convex, and so is this one of ``d``, it is below a mean of what it is at corners.
        """
        high = size[0] * wp.length(d)
        if kind == CAPSULE:
            high += wp.abs(d[2]) * size[1]
        elif kind == CYLINDER:
            high = size[0] * wp.sqrt(d[0] * d[0] + d[1] * d[1]) + wp.abs(d[2]) * size[1]
        elif kind == ELLIPSOID:
            high = wp.length(wp.cw_mul(d, size))
        elif kind == BOX:
            high = wp.abs(d[0]) * size[0] + wp.abs(d[1]) * size[1] + wp.abs(d[2]) * size[2]
        elif kind == MESH:
            side, x, y, along = leaving(d)
            cell, u, v = cell_of(side, x, y)
            top = hull_tops[cells + cell]
            near = top[0] + v * (top[1] - top[0])
            high = along * (near + u * (top[2] + v * (top[3] - top[2]) - near))
        return high

    @wp.func
    def radius(s: Solid):
        """By how much the solid is larger than what `support` answers for."""
        return wp.where(s.kind == SPHERE or s.kind == CAPSULE, s.size[0], real(0.0))

    return SimpleNamespace(Solid=Solid, support=support, height=height, radius=radius)
