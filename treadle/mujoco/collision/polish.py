"""Curved surfaces: the normal that GJK or the polytope found, made exact by Newton's method.

A polytope in a curved surface finds the depth to its tolerance but the normal only to the root of it. With h(n) the
support function of the difference of the two solids and y(n) its point, the depth is the least h over unit vectors, and
there y is along n. Newton's method on the part of y across n needs the derivative of y, which two more support points
give; its matrix is that derivative less h. Where one solid has an edge that lies across, y jumps in that direction and
only turns about the edge count; where it has a face, the normal is the face's already.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.pairs import BOX, CAPSULE, CYLINDER, HFIELD, MESH
from treadle.mujoco.collision.shapes import TINY, shapes
from treadle.mujoco.collision.solids import solids

ROUNDS = 5
ALIKE = 0.999  # cosine above which a face's normal is taken for the one that was found
SHORT = 1e-6  # what counts as no edge, of the square of the size, and as parallel
STRIDE = 0.1  # rad: the most that one round turns the normal


@cache
def polish(real: Any) -> SimpleNamespace:
    """Kernel functions ``across turn`` for one precision, and the steps and bounds that go with them."""
    t = types(real)
    vec3 = t.vec3
    vectors = wp.array(dtype=vec3)
    Solid, column = solids(real).Solid, shapes(real).column
    double = real is wp.float64
    wide = 2e-2 if double else 1e-1  # of the size of the solids: what is wider is part of a face

    @wp.func(inline=True)
    def straight(s: Solid, line: vec3):
        """The part of a line between two support points of a solid that lies along a straight edge of it."""
        along = vec3()
        if s.kind == BOX or s.kind == MESH or s.kind == HFIELD:
            along = line
        elif s.kind == CAPSULE or s.kind == CYLINDER:
            axis = column(s.mat, 2)
            along = axis * wp.dot(axis, line)
        return along

    @wp.func(inline=True)
    def face(s: Solid, u: vec3, v: vec3, n: vec3):
        """The normal, on the side of ``n``, of a flat face that two lines between support points span, else 0."""
        normal = vec3()
        if s.kind == BOX or s.kind == MESH or s.kind == HFIELD:
            normal = wp.cross(u, v)
            if wp.length_sq(normal) < real(SHORT * SHORT) * wp.length_sq(u) * wp.length_sq(v):
                normal = vec3()
        elif s.kind == CYLINDER:
            normal = column(s.mat, 2)
        normal = normal / wp.max(wp.length(normal), real(TINY))
        return wp.where(wp.dot(normal, n) < real(0.0), -normal, normal)

    @wp.func(inline=True)
    def across(a: Solid, b: Solid, x: vectors, xa: vectors, i: int, j: int, k: int, n: vec3, scale: real):
        """In how many directions across ``n`` the surface curves where points i, j, k touch, and two directions.

        Two, those of any two unit vectors; one, the first, the second being along an edge; none on a face. Last comes
        whether the edge is one of ``a``.
        """
        count, edge, own = int(2), vec3(), False
        for side in range(3):
            p, q = wp.where(side == 0, i, wp.where(side == 1, j, k)), wp.where(side == 0, j, wp.where(side == 1, k, i))
            line, line_a = x[q] - x[p], xa[q] - xa[p]
            part_a = straight(a, line_a)
            part = part_a - straight(b, line_a - line)
            if wp.length(line - part) > real(wide) * scale:
                count = 0
            if wp.length_sq(part) > real(SHORT) * scale * scale:
                if count == 1 and wp.length(wp.cross(part, edge)) > real(SHORT) * wp.length(part) * wp.length(edge):
                    count = 0
                count = wp.min(count, 1)
                edge = part
                own = wp.length_sq(part_a) > real(0.25) * wp.length_sq(part)
        second = edge
        if count == 2:
            second = wp.where(
                wp.abs(n[0]) < real(0.6), vec3(real(1.0), real(0.0), real(0.0)), vec3(real(0.0), real(1.0), real(0.0))
            )
            second = wp.cross(n, second)
        second = second / wp.max(wp.length(second), real(TINY))
        first = wp.cross(second, n)
        return count, first / wp.max(wp.length(first), real(TINY)), second, own

    @wp.func(inline=True)
    def facing(a: Solid, b: Solid, x: vectors, xa: vectors, i: int, j: int, k: int, n: vec3):
        """The normal of a face of one of the solids on which points i, j, k lie: ``(found, whether of a, normal)``."""
        u, v = xa[j] - xa[i], xa[k] - xa[i]
        face_a, face_b = face(a, u, v, n), face(b, u - (x[j] - x[i]), v - (x[k] - x[i]), n)
        own = wp.dot(face_a, n) > real(ALIKE)
        other = wp.dot(face_b, n) > real(ALIKE)
        return own != other, own, wp.where(own, face_a, face_b)

    @wp.func(inline=True)
    def turn(n: vec3, count: int, first: vec3, second: vec3, y: vec3, y1: vec3, y2: vec3, step: real):
        """The normal after one round, from the support points along n, n + step first and n + step second."""
        h = wp.dot(n, y)
        a = wp.dot(first, y1 - y) / step - h
        f = wp.dot(first, y)
        move = -f / wp.where(wp.abs(a) < real(TINY), real(TINY), a) * first
        if count == 2:
            b, c = wp.dot(first, y2 - y) / step, wp.dot(second, y1 - y) / step
            d, g = wp.dot(second, y2 - y) / step - h, wp.dot(second, y)
            det = a * d - b * c
            det = wp.where(wp.abs(det) < real(TINY), real(TINY), det)
            move = first * ((b * g - d * f) / det) + second * ((c * f - a * g) / det)
        size = wp.length(move)
        if size > real(STRIDE):
            move = move * (real(STRIDE) / size)
        return wp.normalize(n + move)

    return SimpleNamespace(
        across=across,
        facing=facing,
        turn=turn,
        step=1e-5 if double else 3e-3,
        fine=1e-13 if double else 1e-7,
        good=1e-7 if double else 1e-4,
    )
