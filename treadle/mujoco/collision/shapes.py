"""What the narrow phase shares: sizes of its results, and small functions on points, axes and spheres.

A narrow function of a pair of kinds takes ``(pos1, mat1, size1, pos2, mat2, size2, reach)`` and gives
``(dists, points, normals, tangent)``: up to k contacts, one a row. A distance of `NEVER` says that there is none in its
place. A normal points from the first geom to the second, the point lies midway between the two surfaces, and a tangent
other than zero is the direction that the second axis of the contact's frame is turned to.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types

NEVER = 1e10  # mjMAXVAL: the distance of a contact that is none
TINY = 1e-15  # mjMINVAL


@cache
def results(real: Any, k: int) -> SimpleNamespace:
    """The types ``dists`` (k), ``rows`` (k x 3) of up to ``k`` contacts."""
    return SimpleNamespace(dists=wp.types.vector(length=k, dtype=real), rows=wp.types.matrix(shape=(k, 3), dtype=real))


@cache
def shapes(real: Any) -> SimpleNamespace:
    """Kernel functions ``column spheres onto_plane along_segment sphere_box`` for one precision."""
    t = types(real)
    vec3, mat33 = t.vec3, t.mat33

    @wp.func
    def column(mat: mat33, k: int):
        return vec3(mat[0, k], mat[1, k], mat[2, k])

    @wp.func
    def spheres(a: vec3, ra: real, b: vec3, rb: real):
        """Two spheres: distance, point, normal; along x if they have one centre."""
        line = b - a
        apart = wp.length(line)
        normal = vec3(real(1.0), real(0.0), real(0.0))
        if apart > real(TINY):
            normal = line / apart
        dist = apart - ra - rb
        return dist, a + normal * (ra + real(0.5) * dist), normal

    @wp.func
    def onto_plane(normal: vec3, origin: vec3, centre: vec3, radius: real):
        """A plane and a sphere: distance and point."""
        dist = wp.dot(centre - origin, normal) - radius
        return dist, centre - normal * (radius + real(0.5) * dist)

    @wp.func
    def along_segment(centre: vec3, axis: vec3, half: real, x: vec3):
        """The point of a segment that is nearest to ``x``."""
        return centre + axis * wp.clamp(wp.dot(axis, x - centre), -half, half)

    @wp.func
    def sphere_box(centre: vec3, radius: real, pos: vec3, mat: mat33, size: vec3):
        """A sphere and a box: distance, point, normal towards the box.

        From outside the nearest point of the box decides; from inside the nearest face, the first of equals.
        """
        c = (centre - pos) * mat
        nearest = vec3(
            wp.clamp(c[0], -size[0], size[0]), wp.clamp(c[1], -size[1], size[1]), wp.clamp(c[2], -size[2], size[2])
        )
        line = nearest - c
        apart = wp.length(line)
        dist = apart - radius
        normal = line / wp.max(apart, real(TINY))
        point = real(0.5) * (nearest + c + normal * radius)
        if apart <= real(TINY):
            depth = real(2.0) * (size[0] + size[1] + size[2])
            for k in range(3):
                below = wp.abs(c[k] + size[k])
                if below < depth:
                    depth = below
                    normal = vec3(real(0.0), real(0.0), real(0.0))
                    normal[k] = real(1.0)
                above = wp.abs(size[k] - c[k])
                if above < depth:
                    depth = above
                    normal = vec3(real(0.0), real(0.0), real(0.0))
                    normal[k] = real(-1.0)
            dist = -depth - radius
            point = c + normal * (real(0.5) * (radius - depth))
        return dist, pos + mat * point, mat * normal

    return SimpleNamespace(
        column=column, spheres=spheres, onto_plane=onto_plane, along_segment=along_segment, sphere_box=sphere_box
    )
