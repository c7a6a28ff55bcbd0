"""The shapes of sites as regions of space: whether a point, or some point of a ray, lies inside."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.sensor.kinds import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE

FAR = wp.constant(1e20)


@cache
def shapes(real: Any) -> SimpleNamespace:
    """The kernel functions ``inside`` and ``met`` for one precision; points and rays are given in the site's frame."""
    t = types(real)
    vec2, vec3 = t.vec2, t.vec3

    @wp.func
    def inside(shape: int, size: vec3, p: vec3):
        """Whether a point lies in a shape."""
        found = False
        flat = p[0] * p[0] + p[1] * p[1]
        if shape == SPHERE:
            found = wp.dot(p, p) <= size[0] * size[0]
        elif shape == ELLIPSOID:
            q = vec3(p[0] / size[0], p[1] / size[1], p[2] / size[2])
            found = wp.dot(q, q) <= real(1.0)
        elif shape == BOX:
            found = wp.abs(p[0]) <= size[0] and wp.abs(p[1]) <= size[1] and wp.abs(p[2]) <= size[2]
        elif shape == CYLINDER:
            found = wp.abs(p[2]) <= size[1] and flat <= size[0] * size[0]
        elif shape == CAPSULE:
            beyond = wp.max(wp.abs(p[2]) - size[1], real(0.0))
            found = flat + beyond * beyond <= size[0] * size[0]
        return found

    @wp.func
    def between(p: real, v: real, half: real):
        """The times at which ``p + v t`` lies between ``-half`` and ``half``; from FAR to -FAR if at none."""
        times = vec2(real(FAR), -real(FAR))
        if v != real(0.0):
            a, b = (-half - p) / v, (half - p) / v
            times = vec2(wp.min(a, b), wp.max(a, b))
        elif wp.abs(p) <= half:
            times = vec2(-real(FAR), real(FAR))
        return times

    @wp.func
    def within(a: real, b: real, c: real):
        """The times at which ``a t^2 + 2 b t + c`` is not positive, where a is not negative."""
        times = vec2(real(FAR), -real(FAR))
        under = b * b - a * c
        if a > real(0.0):
            if under >= real(0.0):
                root = wp.sqrt(under)
                times = vec2((-b - root) / a, (-b + root) / a)
        elif c <= real(0.0):
            times = vec2(-real(FAR), real(FAR))
        return times

    @wp.func
    def both(a: vec2, b: vec2):
        return vec2(wp.max(a[0], b[0]), wp.min(a[1], b[1]))

    @wp.func
    def ahead(times: vec2):
        return times[0] <= times[1] and times[1] >= real(0.0)

    @wp.func
    def met(shape: int, size: vec3, p: vec3, v: vec3):
        """Whether the ray from p along v meets a shape; it does if p lies inside."""
        found = False
        r2 = size[0] * size[0]
        if shape == SPHERE:
            found = ahead(within(wp.dot(v, v), wp.dot(p, v), wp.dot(p, p) - r2))
        elif shape == ELLIPSOID:
            q = vec3(p[0] / size[0], p[1] / size[1], p[2] / size[2])
            u = vec3(v[0] / size[0], v[1] / size[1], v[2] / size[2])
            found = ahead(within(wp.dot(u, u), wp.dot(q, u), wp.dot(q, q) - real(1.0)))
        elif shape == BOX:
            times = both(between(p[0], v[0], size[0]), between(p[1], v[1], size[1]))
            found = ahead(both(times, between(p[2], v[2], size[2])))
        elif shape == CYLINDER or shape == CAPSULE:
            tube = within(v[0] * v[0] + v[1] * v[1], p[0] * v[0] + p[1] * v[1], p[0] * p[0] + p[1] * p[1] - r2)
            found = ahead(both(tube, between(p[2], v[2], size[1])))
            if shape == CAPSULE:
                for end in range(2):
                    c = vec3(p[0], p[1], p[2] + real(1 - 2 * end) * size[1])
                    found = found or ahead(within(wp.dot(v, v), wp.dot(c, v), wp.dot(c, c) - r2))
        return found

    return SimpleNamespace(inside=inside, met=met)
