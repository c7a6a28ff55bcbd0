"""What keeps pairs from the narrow phase: bounding spheres, axes of capsules, oriented boxes.

A test says "apart" only where that is proved, with room for rounding; so results do not depend on it. All lanes of a
gang take the tests of a pair together, which are a few multiplications each; what they leave is worth a branch.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.pairs import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE
from treadle.mujoco.collision.shapes import shapes

ROOM = 1e-4  # of lengths, what is left to rounding
ASKEW = 1e-4  # square of the sine of the angle from which on the axes of two capsules span a third


@cache
def broad(real: Any) -> SimpleNamespace:
    """Kernel functions ``over_plane spheres capsules half_of boxes`` for one precision; most say "near"."""
    t = types(real)
    vec3, mat33 = t.vec3, t.mat33
    column = shapes(real).column

    @wp.func
    def over_plane(line: vec3, mat1: mat33, most: real):
        """Whether a ball of radius ``most`` at ``line`` from a plane's origin reaches below the plane."""
        return wp.dot(line, column(mat1, 2)) <= most

    @wp.func
    def spheres(line: vec3, most: real):
        """Whether two centres are at most ``most`` apart."""
        return wp.length_sq(line) <= most * most

    @wp.func
    def off_axis(line: vec3, axis: vec3, half: real):
        """Square of the distance between a point and a segment."""
        return wp.length_sq(line - axis * wp.clamp(wp.dot(line, axis), -half, half))

    @wp.func
    def capsules(line: vec3, mat1: mat33, size1: vec3, mat2: mat33, size2: vec3, reach: real):
        """Each capsule against the other's bounding sphere, then both against the axis that is square to theirs."""
        u, v = column(mat1, 2), column(mat2, 2)
        half1, half2 = size1[1], size2[1]
        thick = size1[0] + size2[0] + reach + real(ROOM) * (half1 + half2)
        near = off_axis(line, u, half1) <= (thick + half2) * (thick + half2)
        near = near and off_axis(line, v, half2) <= (thick + half1) * (thick + half1)
        across = wp.cross(u, v)
        square, along = wp.length_sq(across), wp.dot(line, across)
        return near and (square < real(ASKEW) or along * along <= thick * thick * square)

    @wp.func
    def half_of(kind: int, size: vec3, hull: vec3):
        """Half of the sides of a geom's box; ``hull`` is that of a mesh."""
        half = hull
        if kind == SPHERE:
            half = vec3(size[0], size[0], size[0])
        elif kind == CAPSULE:
            half = vec3(size[0], size[0], size[0] + size[1])
        elif kind == CYLINDER:
            half = vec3(size[0], size[0], size[1])
        elif kind == BOX or kind == ELLIPSOID:
            half = size
        return half

    @wp.func
    def boxes(line: vec3, mat1: mat33, a: vec3, mat2: mat33, b: vec3, reach: real):
        """Two boxes with half sides a and b, their middles ``line`` apart, along the three axes of each.

        S. Gottschalk, M. Lin, D. Manocha, *OBBTree* (1996); the nine axes across edges seldom say more.
        """
        turn = wp.transpose(mat1) * mat2
        to2, to1 = line * mat1, line * mat2
        most = reach + real(ROOM) * (a[0] + a[1] + a[2] + b[0] + b[1] + b[2])
        near = True
        for i in range(3):
            far = a[i] + wp.abs(turn[i, 0]) * b[0] + wp.abs(turn[i, 1]) * b[1] + wp.abs(turn[i, 2]) * b[2]
            near = near and wp.abs(to2[i]) <= far + most
            far = b[i] + wp.abs(turn[0, i]) * a[0] + wp.abs(turn[1, i]) * a[1] + wp.abs(turn[2, i]) * a[2]
            near = near and wp.abs(to1[i]) <= far + most
        return near

    return SimpleNamespace(over_plane=over_plane, spheres=spheres, capsules=capsules, half_of=half_of, boxes=boxes)
