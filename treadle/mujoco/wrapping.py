"""How a tendon goes around a sphere or a cylinder: a problem in the plane of the arc.

MuJoCo documentation, Modeling, Spatial tendons. Points p0 and p1 outside a circle about the origin are joined by the
shortest path around it: two tangents and an arc. Of the two ways around, a side point chooses the one onto which the
path p0, side, p1 can be tightened; a side point within the geom makes the tendon pass through it instead, touching
the circle from inside at one point.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.constants import MINVAL

ROUNDS = wp.constant(20)  # of Newton's method
CONVERGED = wp.constant(1e-6)  # its tolerance


@cache
def wrapping(real: Any) -> SimpleNamespace:
    """The kernel function ``wrap`` for one precision."""
    t = types(real)
    vec2, vec3, mat33 = t.vec2, t.vec3, t.mat33
    plane = _plane(real)
    around, through = plane.around, plane.through
    zero, one, tiny = real(0.0), real(1.0), real(MINVAL)

    @wp.func
    def wrap(x0: vec3, x1: vec3, pos: vec3, mat: mat33, radius: real, cylinder: bool, sided: bool, side: vec3):
        """Length of the arc between the points where the tendon from ``x0`` to ``x1`` touches, and these two points.

        ``pos``, ``mat`` and ``radius`` are those of the geom; ``side`` counts if ``sided``. The length is -1 where the
        tendon goes straight.
        """
        local = wp.transpose(mat)
        p0 = local * (x0 - pos)
        p1 = local * (x1 - pos)
        to_side = local * (side - pos)
        first = vec3(one, zero, zero)
        second = vec3(zero, one, zero)
        if not cylinder:  # the plane through the centre and both points
            first = wp.normalize(p0)
            normal = wp.cross(p0, p1)
            size = wp.length(normal)
            if size < tiny:  # they lie on one line: any plane with it
                other = vec3(zero, one, one)
                a = wp.abs(first[0])
                if wp.abs(first[1]) > a and wp.abs(first[1]) > wp.abs(first[2]):
                    other = vec3(one, zero, one)
                if wp.abs(first[2]) > a and wp.abs(first[2]) > wp.abs(first[1]):
                    other = vec3(one, one, zero)
                normal = wp.cross(first, other)
            normal = wp.normalize(normal)
            second = wp.normalize(wp.cross(normal, first))
        e0 = vec2(wp.dot(p0, first), wp.dot(p0, second))
        e1 = vec2(wp.dot(p1, first), wp.dot(p1, second))
        s = vec2(wp.dot(to_side, first), wp.dot(to_side, second))
        away = wp.length(s)
        if away < tiny:
            s = vec2(radius, zero)
        else:
            s = s * (radius / away)
        length, t0, t1 = around(e0, e1, sided, s, radius)
        if sided and wp.length(to_side) < radius:
            length, t0, t1 = through(e0, e1, radius)
        if wp.length(p0) < tiny or wp.length(p1) < tiny:
            length = -one
        q0 = first * t0[0] + second * t0[1]
        q1 = first * t1[0] + second * t1[1]
        if cylinder and length >= zero:  # along its axis the tendon climbs evenly
            straight0 = wp.length(e0 - t0)
            straight1 = wp.length(e1 - t1)
            whole = straight0 + length + straight1
            climb = (p1[2] - p0[2]) / wp.max(whole, tiny)
            q0 = vec3(q0[0], q0[1], p0[2] + climb * straight0)
            q1 = vec3(q1[0], q1[1], p0[2] + climb * (straight0 + length))
            height = q1[2] - q0[2]
            length = wp.sqrt(length * length + height * height)
        return length, mat * q0 + pos, mat * q1 + pos

    return SimpleNamespace(wrap=wrap)


@cache
def _plane(real: Any) -> SimpleNamespace:
    """The problems in the plane: ``around`` and ``through`` a circle about the origin."""
    vec2 = types(real).vec2
    zero, half, one, two = real(0.0), real(0.5), real(1.0), real(2.0)
    tiny, pi = real(MINVAL), real(wp.PI)
    flat = real(1e-6 if real is wp.float32 else 0.0)  # angles below it have no reliable sense

    @wp.func
    def cross(a: vec2, b: vec2):
        return a[0] * b[1] - a[1] * b[0]

    @wp.func
    def sweep(a: vec2, b: vec2):
        """The angle from ``a`` to ``b`` about the origin, counterclockwise, between -pi and pi."""
        return wp.atan2(cross(a, b), wp.dot(a, b))

    @wp.func
    def touching(p: vec2, radius: real, sense: real):
        """Where a tangent from ``p`` touches the circle; ``sense`` 1 or -1 chooses which of the two."""
        square = wp.dot(p, p)
        reach = sense * radius * wp.sqrt(wp.max(square - radius * radius, zero))
        return (p * (radius * radius) + vec2(p[1], -p[0]) * reach) / wp.max(square, tiny)

    @wp.func
    def meet(a: vec2, b: vec2, c: vec2, d: vec2):
        """Whether the segments a b and c d meet."""
        u = b - a
        v = d - c
        area = cross(u, v)
        sense = wp.sign(area)
        w = a - c
        z = b - d
        start = cross(v, w) * sense >= zero and cross(v, z) * sense < zero
        end = cross(u, w) * sense >= zero and cross(u, z) * sense < zero
        return wp.abs(area) >= tiny and start and end

    @wp.func
    def around(p0: vec2, p1: vec2, sided: bool, side: vec2, radius: real):
        """Length of the arc and where it begins and ends; -1 where the segment from p0 to p1 stays clear."""
        square = radius * radius
        way = p1 - p0
        along = wp.dot(way, way)
        near = p0 + way * wp.clamp(-wp.dot(way, p0) / wp.max(along, tiny), zero, one)
        clear = wp.dot(near, near) > square
        winding = zero
        if sided:  # going straight turns about the centre as going by the side point does, or else by a full turn more
            winding = sweep(p0, side) + sweep(side, p1)
            clear = clear and wp.abs(winding - sweep(p0, p1)) < pi
        a0 = touching(p0, radius, one)
        a1 = touching(p1, radius, -one)
        b0 = touching(p0, radius, -one)
        b1 = touching(p1, radius, one)
        a_meets = meet(p0, a0, p1, a1)
        b_meets = meet(p0, b0, p1, b1)
        a_good = -wp.dot(a0 - a1, a0 - a1)
        b_good = -wp.dot(b0 - b1, b0 - b1)
        if a_meets:
            a_good = real(-10000.0)
        if b_meets:
            b_good = real(-10000.0)
        second = not a_good > b_good
        if sided:
            second = winding > zero
        t0 = a0
        t1 = a1
        meets = a_meets
        if second:
            t0 = b0
            t1 = b1
            meets = b_meets
        angle = wp.abs(sweep(t0, t1))
        turn = -cross(t0, t1)
        if angle > flat and ((turn > zero and second) or (turn < zero and not second)):
            angle = two * pi - angle
        if sided:
            angle = wp.abs(winding - sweep(p0, t0) - sweep(t1, p1))
        length = radius * angle
        inside = wp.dot(p0, p0) < square or wp.dot(p1, p1) < square
        if inside or clear or meets or radius < tiny or along < tiny:
            length = -one
        return length, t0, t1

    @wp.func
    def through(p0: vec2, p1: vec2, radius: real):
        """Length 0 and the point where the tendon touches the circle from inside, twice; -1 where it goes straight.

        With A = r/|p0|, B = r/|p1| and the angle G between the points, the point is found from the root of
        ``asin(A z) + asin(B z) - 2 asin(z) + G = 0`` by Newton's method for asin(z).
        """
        length0 = wp.length(p0)
        length1 = wp.length(p1)
        way = p1 - p0
        along = wp.dot(way, way)
        found = -one
        middle = wp.normalize(half * (p0 + p1)) * radius  # the answer where Newton's method fails
        straight = length0 <= radius or length1 <= radius or radius < tiny
        if along > tiny:
            a = -wp.dot(way, p0) / along
            near = p0 + way * a
            straight = straight or (a > zero and a < one and wp.length(near) <= radius)
        a = radius / wp.max(length0, tiny)
        b = radius / wp.max(length1, tiny)
        cosine = (length0 * length0 + length1 * length1 - along) / wp.max(two * length0 * length1, tiny)
        straight = straight or cosine < -one + tiny
        if not straight:
            found = zero
            gap = wp.acos(wp.clamp(cosine, -one, one))
            phi = half * pi
            value = wp.asin(wp.min(a, one)) + wp.asin(wp.min(b, one)) - pi + gap
            fine = cosine <= one - tiny and value <= zero
            rounds = int(0)
            while fine and rounds < ROUNDS and wp.abs(value) > real(CONVERGED):
                z = wp.sin(phi)
                slope = (
                    wp.cos(phi)
                    * (
                        a / wp.max(tiny, wp.sqrt(wp.max(one - z * z * a * a, zero)))
                        + b / wp.max(tiny, wp.sqrt(wp.max(one - z * z * b * b, zero)))
                    )
                    - two
                )
                new = phi - value / wp.min(slope, -tiny)
                fine = slope <= -tiny and new <= phi
                if fine:
                    phi = new
                    z = wp.sin(phi)
                    value = wp.asin(a * z) + wp.asin(b * z) - two * phi + gap
                    fine = value <= real(CONVERGED)
                rounds = rounds + 1
            if fine and rounds < ROUNDS:
                z = wp.sin(phi)
                start = wp.normalize(p1)
                angle = phi - wp.asin(b * z)
                if cross(p0, p1) > zero:
                    start = wp.normalize(p0)
                    angle = phi - wp.asin(a * z)
                c, s = wp.cos(angle), wp.sin(angle)
                middle = vec2(c * start[0] - s * start[1], s * start[0] + c * start[1]) * radius
        return found, middle, middle

    return SimpleNamespace(around=around, through=through)
