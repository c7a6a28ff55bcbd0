"""The point of a segment, triangle or tetrahedron that is nearest to the origin, by its weights."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.shapes import NEVER

LEAST = 1e-37  # keeps a triangle without area from dividing by 0


@cache
def simplices(real: Any) -> SimpleNamespace:
    """Kernel functions ``normal_of in_triangle in_simplex`` for one precision."""
    t = types(real)
    vec3, vec4 = t.vec3, t.vec4
    vectors = wp.array(dtype=vec3)

    @wp.func(inline=True)
    def normal_of(a: vec3, b: vec3, c: vec3):
        """The normal of a triangle, twice its area long, by the two shorter edges, which keep the most digits."""
        ab, bc, ca = b - a, c - b, a - c
        x, y, z = wp.length_sq(ab), wp.length_sq(bc), wp.length_sq(ca)
        one, other = ab, bc
        if x > y and x > z:
            one, other = bc, ca
        elif y > z:
            one, other = ca, ab
        return wp.cross(one, other)

    @wp.func(inline=True)
    def in_triangle(a: vec3, b: vec3, c: vec3):
        """Weights of the nearest point of a triangle (C. Ericson, *Real-Time Collision Detection*, 5.1.5).

        Each of the seven regions is tested, later ones overriding earlier ones. The areas are products of vectors
        along the normal: of thin triangles the book's products of products leave no digits in single precision.
        """
        zero, one = real(0.0), real(1.0)
        ab, ac = b - a, c - a
        ab_a, ac_a = -wp.dot(ab, a), -wp.dot(ac, a)
        ab_b, ac_b = -wp.dot(ab, b), -wp.dot(ac, b)
        ab_c, ac_c = -wp.dot(ab, c), -wp.dot(ac, c)
        n = normal_of(a, b, c)
        u, v, w = wp.dot(n, wp.cross(b, c)), wp.dot(n, wp.cross(c, a)), wp.dot(n, wp.cross(a, b))
        weights = vec3(u, v, w) / wp.max(u + v + w, real(LEAST))
        to_c, to_b = ac_b - ab_b, ab_c - ac_c
        if u <= zero and to_c >= zero and to_b >= zero:
            share = to_c / (to_c + to_b)
            weights = vec3(zero, one - share, share)
        if v <= zero and ac_a >= zero and ac_c <= zero:
            share = ac_a / (ac_a - ac_c)
            weights = vec3(one - share, zero, share)
        if w <= zero and ab_a >= zero and ab_b <= zero:
            share = ab_a / (ab_a - ab_b)
            weights = vec3(one - share, share, zero)
        if ac_c >= zero and ab_c <= ac_c:
            weights = vec3(zero, zero, one)
        if ab_b >= zero and ac_b <= ab_b:
            weights = vec3(zero, one, zero)
        if ab_a <= zero and ac_a <= zero:
            weights = vec3(one, zero, zero)
        return weights

    @wp.func(inline=True)
    def in_simplex(n: int, x: vectors):
        """Weights of the nearest point of the first ``n`` (1 to 4) of ``x``; none of them 0 only if it is inside."""
        zero, one = real(0.0), real(1.0)
        weights = vec4(one, zero, zero, zero)
        if n == 2:
            line = x[1] - x[0]
            share = wp.clamp(-wp.dot(x[0], line) / wp.dot(line, line), zero, one)
            weights = vec4(one - share, share, zero, zero)
        if n > 2:
            best = real(NEVER)
            inside = n == 4
            for k in range(4):
                i, j, l, o = wp.where(k == 3, 1, 0), wp.where(k < 2, 1, 2), wp.where(k == 0, 2, 3), 3 - k
                o = wp.where(k == 3, 0, o)
                if n == 4 or k == 0:
                    a, b, c = x[i], x[j], x[l]
                    normal = wp.cross(b - a, c - a)
                    beyond = -wp.dot(a, normal) * wp.dot(x[o] - a, normal) <= zero
                    if n == 3 or beyond:
                        inside = False
                        part = in_triangle(a, b, c)
                        gap = wp.length_sq(a * part[0] + b * part[1] + c * part[2])
                        if gap < best:
                            best = gap
                            if k == 0:
                                weights = vec4(part[0], part[1], part[2], zero)
                            elif k == 1:
                                weights = vec4(part[0], part[1], zero, part[2])
                            elif k == 2:
                                weights = vec4(part[0], zero, part[1], part[2])
                            else:
                                weights = vec4(zero, part[0], part[1], part[2])
            if inside:
                weights = vec4(one, one, one, one)
        return weights

    return SimpleNamespace(normal_of=normal_of, in_triangle=in_triangle, in_simplex=in_simplex)
