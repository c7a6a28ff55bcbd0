"""Two boxes: the separating axis test, then a clipped face or the nearest points of two edges.

S. Gottschalk, M. Lin, D. Manocha, *OBBTree* (1996) has the fifteen axes; a face that wins is clipped against the side
planes of the other box's face by the method of I. Sutherland and G. Hodgman (1974). A face is preferred to an edge that
is hardly better, as in MuJoCo: a face gives several contacts, and resting boxes do not alternate between the two.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.collision.shapes import NEVER, TINY, results, shapes

MOST = 8  # a rectangle clipped by four half-planes has at most eight corners
EDGE_BIAS = 1e-6  # by how much of its depth an edge must beat the best axis so far
ALIGNED = 0.99  # cosine above which an edge's axis repeats that of the best face ...
FACE_LEAD = 0.05  # ... which then wins, unless it is deeper by more than this part of its depth
SINGLE = SimpleNamespace(apart=1e-6, parallel=1e-7, sign=1e-5, twin=1e-10)
DOUBLE = SimpleNamespace(apart=1e-12, parallel=1e-12, sign=1e-10, twin=1e-20)


@cache
def box_box(real: Any) -> wp.Function:
    """The narrow function of two boxes for one precision."""
    t, eight = types(real), results(real, MOST)
    vec3, mat33 = t.vec3, t.mat33
    separate, edges, face = _separate(real), _edges(real), _face(real)
    d8, r8 = eight.dists, eight.rows
    slack = (DOUBLE if real is wp.float64 else SINGLE).apart

    @wp.func
    def narrow(pos1: vec3, mat1: mat33, size1: vec3, pos2: vec3, mat2: mat33, size2: vec3, reach: real):
        turn = wp.transpose(mat1) * mat2
        to2, to1 = (pos2 - pos1) * mat1, (pos1 - pos2) * mat2
        sizes = size1[0] + size1[1] + size1[2] + size2[0] + size2[1] + size2[2]
        most = reach + real(slack) * sizes
        code, apart, axis = separate(turn, to2, to1, size1, size2)
        dists, rows, normals = d8(), r8(), r8()
        for k in range(MOST):
            dists[k] = real(NEVER)
        if apart <= most and code >= 6:
            dist, middle, axis = edges(turn, to2, size1, size2, axis, (code - 6) // 3, (code - 6) % 3)
            dists[0] = wp.where(dist > most, real(NEVER), wp.min(dist, reach))
            rows[0] = pos1 + mat1 * middle
            normals[0] = mat1 * axis
        elif apart <= most and code < 3:
            normal = vec3()
            dists, rows, normal = face(code, to2, turn, size1, size2, reach)
            for k in range(MOST):
                rows[k] = pos1 + mat1 * rows[k]
                normals[k] = mat1 * normal
        elif apart <= most:
            normal = vec3()
            dists, rows, normal = face(code - 3, to1, wp.transpose(turn), size2, size1, reach)
            for k in range(MOST):
                rows[k] = pos2 + mat2 * rows[k]
                normals[k] = -(mat2 * normal)
        return dists, rows, normals, vec3()

    return narrow


def _separate(real: Any) -> wp.Function:
    """The axis along which two boxes are farthest apart, or overlap least.

    Gives ``(code, apart, axis)``: code 0 to 2 the axes of the first box, 3 to 5 of the second, 6 + 3 i + j the cross
    product of axis i with axis j, for which ``axis`` is its unit vector in the first box's frame.
    """
    t = types(real)
    vec3, mat33 = t.vec3, t.mat33
    parallel = (DOUBLE if real is wp.float64 else SINGLE).parallel

    @wp.func
    def separate(turn: mat33, to2: vec3, to1: vec3, a: vec3, b: vec3):
        best, code = real(-NEVER), int(0)
        for i in range(3):
            reach = wp.abs(turn[i, 0]) * b[0] + wp.abs(turn[i, 1]) * b[1] + wp.abs(turn[i, 2]) * b[2]
            apart = wp.abs(to2[i]) - a[i] - reach
            if apart > best:
                best, code = apart, i
        for j in range(3):
            reach = wp.abs(turn[0, j]) * a[0] + wp.abs(turn[1, j]) * a[1] + wp.abs(turn[2, j]) * a[2]
            apart = wp.abs(to1[j]) - b[j] - reach
            if apart > best:
                best, code = apart, 3 + j
        face, face_code, axis, most = best, code, vec3(), best
        for i in range(3):
            i1, i2 = (i + 1) % 3, (i + 2) % 3
            for j in range(3):
                j1, j2 = (j + 1) % 3, (j + 2) % 3
                x, y = -turn[i2, j], turn[i1, j]  # components i1, i2 of the cross product; component i is 0
                square = x * x + y * y
                scale = real(1.0) / wp.sqrt(wp.max(square, real(TINY)))
                x, y = x * scale, y * scale
                reach1 = a[i1] * wp.abs(x) + a[i2] * wp.abs(y)
                reach2 = b[j1] * wp.abs(x * turn[i1, j1] + y * turn[i2, j1])
                reach2 += b[j2] * wp.abs(x * turn[i1, j2] + y * turn[i2, j2])
                apart = wp.abs(x * to2[i1] + y * to2[i2]) - reach1 - reach2
                if square >= real(parallel):
                    most = wp.max(most, apart)
                    if apart - real(EDGE_BIAS) * wp.abs(apart) > best and apart > face:
                        best, code = apart, 6 + 3 * i + j
                        axis = vec3()
                        axis[i1] = x
                        axis[i2] = y
        if code >= 6:
            alike = wp.abs(wp.dot(axis, vec3(turn[0, 0], turn[1, 0], turn[2, 0])))
            if face_code < 3:
                alike = wp.abs(axis[face_code])
            else:
                k = face_code - 3
                alike = wp.abs(axis[0] * turn[0, k] + axis[1] * turn[1, k] + axis[2] * turn[2, k])
            if alike > real(ALIGNED) and best < face + real(FACE_LEAD) * wp.abs(face) + real(TINY):
                code = face_code
        return code, most, axis

    return separate


def _edges(real: Any) -> wp.Function:
    """Distance along the axis, middle and axis from the first box to the second, of the two edges that support it.

    All in the first box's frame. An axis component near 0 says nothing of the corner it should choose: then both edges
    are tried and the nearer pair is taken.
    """
    t = types(real)
    vec2, vec3, mat33 = t.vec2, t.vec3, t.mat33
    unsure = (DOUBLE if real is wp.float64 else SINGLE).sign

    @wp.func
    def places(e: vec3, d: vec3, i: int, half1: real, half2: real):
        """Where on the edges along axis i and ``d`` they are nearest, their middles ``e`` apart."""
        b = d[i]
        along2 = wp.dot(d, e)
        s, square = real(0.0), real(1.0) - b * b
        if square >= real(TINY):
            s = (e[i] - b * along2) / square
        s = wp.clamp(s, -half1, half1)
        at = wp.clamp(b * s - along2, -half2, half2)
        return vec2(wp.clamp(e[i] + b * at, -half1, half1), at)

    @wp.func
    def corner(along: vec3, size: vec3, k: int, flip: int):
        """The middle of the edge along axis k whose signs ``along`` has, the sign of component ``flip`` turned."""
        x = vec3(
            wp.where(along[0] >= real(0.0), size[0], -size[0]),
            wp.where(along[1] >= real(0.0), size[1], -size[1]),
            wp.where(along[2] >= real(0.0), size[2], -size[2]),
        )
        x[k] = real(0.0)
        if flip >= 0:
            x[flip] = -x[flip]
        return x

    @wp.func
    def doubtful(axis: vec3, k: int):
        """The component other than k whose sign rounding decides, else -1."""
        k1, k2 = (k + 1) % 3, (k + 2) % 3
        found = int(-1)
        if wp.abs(axis[k2]) < real(unsure):
            found = k2
        if wp.abs(axis[k1]) < real(unsure):
            found = k1
        return found

    @wp.func
    def edges(turn: mat33, to2: vec3, a: vec3, b: vec3, axis: vec3, i: int, j: int):
        if wp.dot(axis, to2) < real(0.0):
            axis = -axis
        axis2 = axis * turn
        d = vec3(turn[0, j], turn[1, j], turn[2, j])
        flip1, flip2 = doubtful(axis, i), doubtful(axis2, j)
        best, p, q = real(NEVER), vec3(), vec3()
        for k in range(4):
            turned1, turned2 = k // 2 != 0, k % 2 != 0
            if (flip1 >= 0 or not turned1) and (flip2 >= 0 or not turned2):
                x = corner(axis, a, i, wp.where(turned1, flip1, -1))
                y = turn * corner(-axis2, b, j, wp.where(turned2, flip2, -1)) + to2
                at = places(y - x, d, i, a[i], b[j])
                x[i] = at[0]
                y = y + d * at[1]
                gap = wp.length_sq(y - x)
                if gap < best:
                    best, p, q = gap, x, y
        return wp.dot(q - p, axis), (p + q) * real(0.5), axis

    return edges


def _face(real: Any) -> wp.Function:
    """The contacts of a face of a box with the other box, in the first one's frame: ``(dists, rows, normal)``."""
    t, eight, s = types(real), results(real, MOST), shapes(real)
    vec3, mat33 = t.vec3, t.mat33
    column = s.column
    d8, r8 = eight.dists, eight.rows
    twin = (DOUBLE if real is wp.float64 else SINGLE).twin

    @wp.func
    def clip(n: int, polygon: r8, k: int, sign: real, limit: real):
        """The part of a polygon where ``sign x[k] <= limit``: its number of corners, and those."""
        kept, m = r8(), int(0)
        for i in range(n):
            following = wp.where(i + 1 == n, 0, i + 1)
            p, q = polygon[i], polygon[following]
            dp, dq = sign * polygon[i, k] - limit, sign * polygon[following, k] - limit
            if dp <= real(0.0) and m < MOST:
                kept[m] = p
                m += 1
            if dp * dq < real(0.0) and m < MOST:
                kept[m] = p + (q - p) * (dp / (dp - dq))
                m += 1
        return m, kept

    @wp.func
    def face(k: int, to: vec3, turn: mat33, a: vec3, b: vec3, reach: real):
        """``a`` has the face with axis k, ``b`` lies at ``to`` and is turned by ``turn``."""
        kx, ky = (k + 1) % 3, (k + 2) % 3
        side = wp.where(to[k] >= real(0.0), real(1.0), real(-1.0))
        facing = int(0)
        for c in range(1, 3):
            if wp.abs(turn[k, c]) > wp.abs(turn[k, facing]):
                facing = c
        u, v = (facing + 1) % 3, (facing + 2) % 3
        out = wp.where(side * turn[k, facing] > real(0.0), real(-1.0), real(1.0))
        middle = to + column(turn, facing) * (out * b[facing])
        du, dv = column(turn, u) * b[u], column(turn, v) * b[v]
        # Corners of the other box's face as (x, y, height above this face).
        polygon = r8()
        for c in range(4):
            su = wp.where(c == 0 or c == 3, real(1.0), real(-1.0))
            sv = wp.where(c < 2, real(1.0), real(-1.0))
            x = middle + du * su + dv * sv
            polygon[c] = vec3(x[kx], x[ky], side * x[k] - a[k])
        n, polygon = clip(4, polygon, 0, real(1.0), a[kx])
        n, polygon = clip(n, polygon, 0, real(-1.0), a[kx])
        n, polygon = clip(n, polygon, 1, real(1.0), a[ky])
        n, polygon = clip(n, polygon, 1, real(-1.0), a[ky])
        near = real(twin) * (a[kx] * a[kx] + a[ky] * a[ky])
        dists, rows, found = d8(), r8(), int(0)
        for c in range(MOST):
            dists[c] = real(NEVER)
        for c in range(n):
            fresh = polygon[c, 2] <= reach
            for e in range(c):
                dx, dy = polygon[e, 0] - polygon[c, 0], polygon[e, 1] - polygon[c, 1]
                if polygon[e, 2] <= reach and dx * dx + dy * dy < near:
                    fresh = False
            if fresh:
                dists[found] = polygon[c, 2]
                x = vec3()
                x[kx] = polygon[c, 0]
                x[ky] = polygon[c, 1]
                x[k] = side * (a[k] + real(0.5) * polygon[c, 2])
                rows[found] = x
                found += 1
        normal = vec3()
        normal[k] = side
        return dists, rows, normal

    return face
