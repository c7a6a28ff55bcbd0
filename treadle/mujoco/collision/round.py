"""Pairs that closed formulas solve: a plane with each solid, and spheres, capsules, cylinders and boxes with a sphere.

Formulas of nearest points are those of C. Ericson, *Real-Time Collision Detection* (2005), chapter 5; which points make
the contacts of a plane with a capsule, cylinder or box is MuJoCo's choice.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.shapes import NEVER, TINY, results, shapes

PARALLEL = 1e-8  # squared sine of the angle below which two segments count as parallel


@cache
def with_plane(real: Any) -> SimpleNamespace:
    """Narrow functions ``plane_sphere plane_capsule plane_ellipsoid plane_cylinder plane_box`` for one precision."""
    t, s = types(real), shapes(real)
    vec3, mat33 = t.vec3, t.mat33
    column, onto_plane = s.column, s.onto_plane
    one, two, four = results(real, 1), results(real, 2), results(real, 4)
    upright = TINY if real is wp.float64 else 1e-12  # squared sine below which a cylinder has no lowest point
    d1, r1, d2, r2, d4, r4 = one.dists, one.rows, two.dists, two.rows, four.dists, four.rows

    @wp.func
    def plane_sphere(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        n = column(mat1, 2)
        dist, x = onto_plane(n, pos1, pos2, size2[0])
        return d1(dist), r1(x[0], x[1], x[2]), r1(n[0], n[1], n[2]), vec3()

    @wp.func
    def plane_capsule(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        """The spheres at both ends; the frame is turned to the capsule's axis."""
        n, axis = column(mat1, 2), column(mat2, 2)
        near, x = onto_plane(n, pos1, pos2 + axis * size2[1], size2[0])
        far, y = onto_plane(n, pos1, pos2 - axis * size2[1], size2[0])
        return (
            d2(near, far),
            r2(x[0], x[1], x[2], y[0], y[1], y[2]),
            r2(n[0], n[1], n[2], n[0], n[1], n[2]),
            axis,
        )

    @wp.func
    def plane_ellipsoid(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        """The point whose normal is the plane's: ``s (s n) / |s n|`` from the centre, in the ellipsoid's frame."""
        n = column(mat1, 2)
        scaled = wp.cw_mul(n * mat2, size2)
        x = pos2 - mat2 * wp.cw_mul(scaled / wp.length(scaled), size2)
        dist = wp.dot(n, x - pos1)
        x = x - n * (real(0.5) * dist)
        return d1(dist), r1(x[0], x[1], x[2]), r1(n[0], n[1], n[2]), vec3()

    @wp.func
    def plane_cylinder(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        """The lowest points of both discs, and two more of the lower disc that complete an equilateral triangle."""
        n, axis = column(mat1, 2), column(mat2, 2)
        radius, half = size2[0], size2[1]
        up = wp.dot(n, axis)
        if up > real(0.0):
            axis = -axis
            up = -up
        low = axis * up - n  # the part of -n that is square to the axis
        square = wp.dot(low, low)
        if square < real(upright):
            low = column(mat2, 0) * radius
        else:
            low = low * (radius / wp.sqrt(square))
        sink = wp.dot(low, n)
        end = axis * half
        height = wp.dot(pos2 - pos1, n)
        side = wp.cross(low, end)
        side = side * (radius * real(0.8660254037844386) / wp.length(side))
        a, b = height + up * half + sink, height - up * half + sink
        c = height + up * half - real(0.5) * sink
        p = pos2 + low + end - n * (real(0.5) * a)
        q = pos2 + low - end - n * (real(0.5) * b)
        u = pos2 + side + end - real(0.5) * low - n * (real(0.5) * c)
        v = pos2 - side + end - real(0.5) * low - n * (real(0.5) * c)
        return (
            d4(a, b, c, c),
            r4(p[0], p[1], p[2], q[0], q[1], q[2], u[0], u[1], u[2], v[0], v[1], v[2]),
            r4(n[0], n[1], n[2], n[0], n[1], n[2], n[0], n[1], n[2], n[0], n[1], n[2]),
            vec3(),
        )

    @wp.func
    def plane_box(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        """The corners within reach that are not above the box's centre, at most four."""
        n = column(mat1, 2)
        height = wp.dot(pos2 - pos1, n)
        x, y, z = column(mat2, 0) * size2[0], column(mat2, 1) * size2[1], column(mat2, 2) * size2[2]
        dists, rows, normals = d4(), r4(), r4()
        for k in range(4):
            dists[k] = real(NEVER)
            normals[k] = n
        found = int(0)
        for k in range(8):
            corner = x * wp.where(k & 1 != 0, real(1.0), real(-1.0))
            corner += y * wp.where(k & 2 != 0, real(1.0), real(-1.0))
            corner += z * wp.where(k & 4 != 0, real(1.0), real(-1.0))
            rise = wp.dot(n, corner)
            dist = height + rise
            if dist <= reach and rise <= real(0.0) and found < 4:
                dists[found] = dist
                rows[found] = pos2 + corner - n * (real(0.5) * dist)
                found += 1
        return dists, rows, normals, vec3()

    return SimpleNamespace(
        plane_sphere=plane_sphere,
        plane_capsule=plane_capsule,
        plane_ellipsoid=plane_ellipsoid,
        plane_cylinder=plane_cylinder,
        plane_box=plane_box,
    )


@cache
def among_round(real: Any) -> SimpleNamespace:
    """Narrow functions ``sphere_sphere sphere_capsule sphere_cylinder sphere_box capsule_capsule``.

    Nearest points are counted from the first geom: far from the origin places in single precision are coarse, but not
    the ways between them, on which normals hang.
    """
    t, s = types(real), shapes(real)
    vec2, vec3, mat33 = t.vec2, t.vec3, t.mat33
    column, spheres, along_segment, onto_plane = s.column, s.spheres, s.along_segment, s.onto_plane
    ball_box = s.sphere_box
    one, two = results(real, 1), results(real, 2)
    d1, r1, d2, r2 = one.dists, one.rows, two.dists, two.rows

    @wp.func
    def sphere_sphere(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        dist, x, n = spheres(pos1, size1[0], pos2, size2[0])
        return d1(dist), r1(x[0], x[1], x[2]), r1(n[0], n[1], n[2]), vec3()

    @wp.func
    def sphere_capsule(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        near = along_segment(pos2 - pos1, column(mat2, 2), size2[1], vec3())
        dist, x, n = spheres(vec3(), size1[0], near, size2[0])
        x = x + pos1
        return d1(dist), r1(x[0], x[1], x[2]), r1(n[0], n[1], n[2]), vec3()

    @wp.func
    def sphere_cylinder(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        """Against the side, a cap, or the rim; from inside whichever of side and cap is nearer."""
        axis = column(mat2, 2)
        radius, half = size2[0], size2[1]
        line = pos1 - pos2
        along = wp.dot(line, axis)
        out = line - axis * along
        away = wp.length(out)
        side, cap = wp.abs(along) < half, away < radius
        if side and cap:
            cap = half - wp.abs(along) < radius - away
            side = not cap
        # The sphere meets another of radius r about a point of the axis or the rim, or the plane of a cap.
        up = wp.where(along > real(0.0), axis, -axis)
        rim = up * half + out * (radius / wp.max(away, real(TINY))) - line
        centre = wp.where(side, -out, rim)
        dist, x, n = spheres(vec3(), size1[0], centre, wp.where(side, radius, real(0.0)))
        if cap:
            dist, x = onto_plane(up, up * half - line, vec3(), size1[0])
            n = -up
        x = x + pos1
        return d1(dist), r1(x[0], x[1], x[2]), r1(n[0], n[1], n[2]), vec3()

    @wp.func
    def sphere_box(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        dist, x, n = ball_box(pos1, size1[0], pos2, mat2, size2)
        return d1(dist), r1(x[0], x[1], x[2]), r1(n[0], n[1], n[2]), vec3()

    @wp.func
    def settle(s: real, t: real, at_start: real, at_end: real):
        """Weights (s, t) with t clamped to [0, 1]; s then follows to the projection of that end, clamped as well."""
        if t < real(0.0):
            return vec2(wp.clamp(at_start, real(0.0), real(1.0)), real(0.0))
        if t > real(1.0):
            return vec2(wp.clamp(at_end, real(0.0), real(1.0)), real(1.0))
        return vec2(s, t)

    @wp.func
    def capsule_capsule(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        """The nearest points of the two segments; of parallel ones both ends of their overlap."""
        u, v = column(mat1, 2) * (real(2.0) * size1[1]), column(mat2, 2) * (real(2.0) * size2[1])
        a, c = real(-0.5) * u, (pos2 - pos1) - real(0.5) * v
        gap = a - c
        uu, vv, uv = wp.dot(u, u), wp.dot(v, v), wp.dot(u, v)
        vg, ug = wp.dot(v, gap), wp.dot(u, gap)
        # Where the second segment's ends project on the first; the determinant is |u x v|² (Lagrange's identity).
        start, end = -ug / uu, (uv - ug) / uu
        square = wp.cross(u, v)
        det = wp.dot(square, square)
        far = real(NEVER)
        y, m = vec3(), vec3()
        if det > real(PARALLEL) * uu * vv:
            s = wp.clamp(wp.dot(square, wp.cross(v, gap)) / det, real(0.0), real(1.0))
            at = settle(s, (uv * s + vg) / vv, start, end)
            dist, x, n = spheres(a + u * at[0], size1[0], c + v * at[1], size2[0])
        else:
            at = settle(real(0.0), vg / vv, start, end)
            dist, x, n = spheres(a + u * at[0], size1[0], c + v * at[1], size2[0])
            at = settle(real(1.0), (uv + vg) / vv, start, end)
            far, y, m = spheres(a + u * at[0], size1[0], c + v * at[1], size2[0])
        x, y = x + pos1, y + pos1
        return (
            d2(dist, far),
            r2(x[0], x[1], x[2], y[0], y[1], y[2]),
            r2(n[0], n[1], n[2], m[0], m[1], m[2]),
            vec3(),
        )

    return SimpleNamespace(
        sphere_sphere=sphere_sphere,
        sphere_capsule=sphere_capsule,
        sphere_cylinder=sphere_cylinder,
        sphere_box=sphere_box,
        capsule_capsule=capsule_capsule,
    )
