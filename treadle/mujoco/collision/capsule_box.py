"""A capsule and a box: the nearest points of the capsule's axis and the box, and a second contact along the axis.

The first contact is a sphere about the point of the axis that is nearest to the box. It is found among the ends of the
axis over the box's faces and the pairs of axis and edge (segments, as in C. Ericson, *Real-Time Collision Detection*,
5.1.9). The second is a sphere about the farthest point of the axis that still lies over what the first one touched:
which way to go from a corner or an edge is read off the signs of the axis in the box's frame, as MuJoCo does.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.shapes import NEVER, TINY, results, shapes

NONE = -4.0  # a step along the axis that says: no second contact
FAR = 1e30


@cache
def capsule_box(real: Any) -> wp.Function:
    """The narrow function of a capsule and a box for one precision."""
    t, s, two = types(real), shapes(real), results(real, 2)
    vec3, mat33 = t.vec3, t.mat33
    column, ball_box = s.column, s.sphere_box
    search, step = _search(real), _step(real)
    d2, r2 = two.dists, two.rows

    @wp.func
    def narrow(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        c = (pos1 - pos2) * mat2
        axis = column(mat1, 2) * mat2
        h = axis * size1[1]
        at, kind, edge, corner, along = search.nearest(c, h, size1[1], size2)
        move = real(NONE)
        if kind == 0:
            move = step.from_face(c, h, size2, at, edge)
        elif kind == 1:
            move = step.from_edge(h, axis, size2, at, edge, corner, along)
        elif kind == 2:
            move = step.from_corner(h, axis, size2, at, corner)
        dist, x, n = ball_box(pos2 + mat2 * (c + h * at), size1[0], pos2, mat2, size2)
        far, y, m = real(NEVER), vec3(), vec3()
        if move > real(-3.0):
            far, y, m = ball_box(pos2 + mat2 * (c + h * (at + move)), size1[0], pos2, mat2, size2)
        return (
            d2(dist, far),
            r2(x[0], x[1], x[2], y[0], y[1], y[2]),
            r2(n[0], n[1], n[2], m[0], m[1], m[2]),
            vec3(),
        )

    return narrow


def _search(real: Any) -> SimpleNamespace:
    """``nearest(c, h, half, s)``: where on the axis ``c + at h`` (at in [-1, 1]) it is nearest to the box ``s``.

    Gives ``(at, kind, edge, corner, along)``. Kind 0: an end over a face; ``edge`` is the face's axis, -1 inside. Kind
    1 and 2: over an edge or its end; ``edge`` is the edge's axis, ``corner`` the signs of its lower end (of the corner,
    for kind 2) as bits, ``along`` in [-1, 1] the place on the edge.
    """
    t = types(real)
    vec3 = t.vec3
    tie = TINY if real is wp.float64 else 1e-8  # squared distances that differ less are those of one corner

    @wp.func
    def clamp_edge(x1: real, x2: real, u: real, v: real, ma: real, mb: real, mc: real):
        """Places on edge and axis clamped one after the other, each time with the other's best reply.

        Also which end of the edge clamped it last (-1, 1; 0 none): it stays when the reply leaves that end again.
        """
        pinned = real(0.0)
        if x1 > real(1.0):
            x1, x2, pinned = real(1.0), (v - mb) / mc, real(1.0)
        elif x1 < real(-1.0):
            x1, x2, pinned = real(-1.0), (v + mb) / mc, real(-1.0)
        over = x2 > real(1.0)
        if over or x2 < real(-1.0):
            x2 = wp.where(over, real(1.0), real(-1.0))
            x1 = (u - mb * x2) / ma
            if x1 > real(1.0):
                x1, pinned = real(1.0), real(1.0)
            elif x1 < real(-1.0):
                x1, pinned = real(-1.0), real(-1.0)
        return vec3(x1, x2, pinned)

    @wp.func
    def nearest(c: vec3, h: vec3, half: real, s: vec3):
        best, at, along = real(FAR), real(0.0), real(0.0)
        kind, edge, corner = int(-1), int(-1), int(0)
        for k in range(2):
            end = real(2 * k - 1)
            tip = c + h * end
            inside = vec3(wp.clamp(tip[0], -s[0], s[0]), wp.clamp(tip[1], -s[1], s[1]), wp.clamp(tip[2], -s[2], s[2]))
            outside, last = int(0), int(-1)
            for j in range(3):
                if inside[j] != tip[j]:
                    outside += 1
                    last = j
            gap = wp.length_sq(inside - tip)
            if outside <= 1 and gap < best:
                best, at, kind, edge = gap, end, 0, last
        for i in range(8):
            for j in range(3):
                if i & (1 << j) == 0:
                    middle = vec3(
                        wp.where(i & 1 != 0, s[0], -s[0]),
                        wp.where(i & 2 != 0, s[1], -s[1]),
                        wp.where(i & 4 != 0, s[2], -s[2]),
                    )
                    middle[j] = real(0.0)
                    line = middle - c
                    u, v = -s[j] * line[j], wp.dot(h, line)
                    ma, mb, mc = s[j] * s[j], -s[j] * h[j], half * half
                    det = ma * mc - mb * mb
                    x = clamp_edge((mc * u - mb * v) / det, (ma * v - mb * u) / det, u, v, ma, mb, mc)
                    line = line - h * x[1]
                    line[j] += s[j] * x[0]
                    gap = wp.length_sq(line)
                    if wp.abs(det) >= real(TINY) and gap < best - real(tie):
                        best, at, along, edge = gap, x[1], x[0], j
                        kind = wp.where(x[2] == real(0.0), 1, 2)
                        corner = i + wp.where(x[2] > real(0.0), 1 << j, 0)
        return at, kind, edge, corner, along

    return SimpleNamespace(nearest=nearest)


def _step(real: Any) -> SimpleNamespace:
    """How far along the axis the second contact is: ``from_face from_edge from_corner``; `NONE` without one."""
    vec3 = types(real).vec3

    @wp.func
    def signs(h: vec3):
        return wp.where(h[0] > real(0.0), 1, 0) + wp.where(h[1] > real(0.0), 2, 0) + wp.where(h[2] > real(0.0), 4, 0)

    @wp.func
    def bit(mask: int):
        """Which single bit is set: 0, 1 or 2; -1 if none or several are."""
        return wp.where(mask == 1, 0, wp.where(mask == 2, 1, wp.where(mask == 4, 2, -1)))

    @wp.func
    def from_face(c: vec3, h: vec3, s: vec3, at: real, face: int):
        """From an end over a face to the other end, but not past the face's border."""
        if face < 0:
            return real(NONE)
        way = wp.where(at < real(0.0), real(1.0), real(-1.0))
        tip = c - h * way
        reach = real(2.0)
        for i in range(3):
            if i != face:
                up = (s[i] - tip[i]) / h[i] * way
                if up > real(0.0) and up < reach:
                    reach = up
                down = (-s[i] - tip[i]) / h[i] * way
                if down > real(0.0) and down < reach:
                    reach = down
        return reach * way

    @wp.func
    def from_edge(h: vec3, axis: vec3, s: vec3, at: real, edge: int, corner: int, along: real):
        """From an edge that the axis crosses to the side where it lies over the face that it is flatter to."""
        turned = (signs(h) ^ corner) & (7 - (1 << edge))
        if bit(turned) < 0:
            return real(NONE)
        steep, flat = (edge + 1) % 3, (edge + 2) % 3
        if wp.abs(axis[steep]) > wp.abs(axis[flat]):
            steep = flat
        flat = 3 - edge - steep
        ahead = turned & (1 << flat) != 0
        way = wp.where(ahead, real(1.0), real(-1.0))
        reach = wp.min(real(1.0) - way * at, real(2.0) * s[flat] / wp.abs(h[flat]))
        same = (signs(h) & (1 << edge) != 0) == ahead
        room = wp.where(same, real(1.0) - along, real(1.0) + along)
        return way * wp.min(reach, s[edge] * room / wp.abs(h[edge]))

    @wp.func
    def from_corner(h: vec3, axis: vec3, s: vec3, at: real, corner: int):
        """From a corner along the edge, or over the face, that the axis leans to."""
        turned = signs(h) ^ corner
        if turned == 0 or turned == 7:
            return real(NONE)
        way = real(1.0)
        if bit(turned) < 0:
            way = real(-1.0)
            turned = 7 - turned
        k = bit(turned)
        i, j = (k + 1) % 3, (k + 2) % 3
        if axis[k] * axis[k] > real(0.5):
            return way * wp.min(real(1.0) - way * at, real(2.0) * s[k] / wp.abs(h[k]))
        room = real(2.0) * wp.min(s[i] / wp.abs(h[i]), s[j] / wp.abs(h[j]))
        return -way * wp.min(real(1.0) + way * at, room)

    return SimpleNamespace(from_face=from_face, from_edge=from_edge, from_corner=from_corner)
