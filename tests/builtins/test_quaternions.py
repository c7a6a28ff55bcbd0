"""Rotations against the formulas of Euler and Rodrigues."""

import numpy as np

import treadle as wp
from treadle.types.core import f32, matrix, quaternion, vector

from .kernels import run
from .samples import COUNT, PRECISIONS, near, random, rotation, unit


@PRECISIONS
def test_rotations(t):
    q, v = quaternion(t), vector(3, t)
    a, b, x = unit(random((4,), t, 1)), unit(random((4,), t, 2)), random((3,), t, 3)
    a[:4] = np.eye(4)[[3, 0, 1, 2]]  # no turn, and half turns about the axes
    found = run(
        ["wp.quat_to_matrix(x0)", "wp.quat_to_matrix(x0 * x1)", "wp.quat_rotate(x0, x2)", "wp.quat_rotate_inv(x0, x2)",
         "wp.quat_rotate(wp.quat_inverse(x0), x2)", "wp.quat_to_matrix(wp.quat_from_matrix(wp.quat_to_matrix(x0)))",
         "wp.normalize(3.0 * x0)", "wp.length(x0)", "wp.quat_slerp(x0, x1, 0.0)",
         "wp.quat_to_matrix(wp.quat_slerp(x0, x1, 1.0))"],
        [(q, a), (q, b), (v, x)],
        [matrix(3, 3, t), matrix(3, 3, t), v, v, v, matrix(3, 3, t), q, t, q, matrix(3, 3, t)],
    )  # fmt: skip
    r, s = rotation(a), rotation(b)
    forth, back = np.einsum("nij,nj->ni", r, x), np.einsum("nji,nj->ni", r, x)
    wanted = [r, r @ s, forth, back, back, r, a, np.ones(COUNT), a, s]
    for f, w in zip(found, wanted, strict=True):
        near(f, w, t)


@PRECISIONS
def test_twists_and_smallest_rotations(t):
    v = vector(3, t)
    axis, other = unit(random((3,), t, 1)), random((3,), t, 2)
    other[0], other[1], other[2] = -axis[0], axis[1], 2 * axis[2]
    angle = np.linspace(0.1, 3.0, COUNT).astype(axis.dtype)
    across = np.cross(axis, random((3,), t, 3))  # a turn about this axis has no share of the other
    expressions = [
        "wp.quat_twist_angle(x0, wp.quat_from_axis_angle(x0, x2))",
        "wp.quat_twist_angle_signed(x0, wp.quat_from_axis_angle(x0, -x2))",
        "wp.quat_twist_angle_signed(x0, wp.quat_from_axis_angle(wp.normalize(x3), x2))",
        "wp.quat_rotate(wp.quat_between_vectors(x0, x1), x0)",
        "wp.length(wp.quat_twist(x0, wp.quat_from_axis_angle(x0, x2)))",
    ]
    found = run(expressions, [(v, axis), (v, other), (t, angle), (v, across)], [t, t, t, v, t])
    wanted = [angle, -angle, 0 * angle, unit(other), np.ones(COUNT)]
    for f, w in zip(found, wanted, strict=True):
        assert np.allclose(f, w, atol=2e-3 if t is f32 else 1e-7)


@PRECISIONS
def test_axis_and_angle(t):
    q, v = quaternion(t), vector(3, t)
    axis = unit(random((3,), t, 1))
    angle = np.linspace(0.1, 6.2, COUNT).astype(axis.dtype)
    (made,) = run(["wp.quat_from_axis_angle(x0, x1)"], [(v, axis), (t, angle)], [q])
    near(made, np.concatenate([axis * np.sin(angle / 2)[:, None], np.cos(angle / 2)[:, None]], 1), t)
    found_axis, found_angle = run(["a", "b"], [(q, made)], [v, t], before="a, b = wp.quat_to_axis_angle(x0)")
    small = angle <= np.pi
    near(found_angle, np.where(small, angle, 2 * np.pi - angle), t)
    near(found_axis, np.where(small[:, None], axis, -axis), t)
    (rpy,) = run(["wp.quat_rpy(x0, 0.5 * x0, -x0)"], [(t, angle)], [q])
    turn = lambda i, a: np.concatenate([np.eye(3)[i] * np.sin(a / 2)[:, None], np.cos(a / 2)[:, None]], 1)
    wanted = rotation(turn(2, -angle)) @ rotation(turn(1, angle / 2)) @ rotation(turn(0, angle))
    near(rotation(rpy), wanted, t)


def test_small_twists_keep_their_digits():
    axis = wp.vec3(0.0, 0.0, 1.0)
    for angle in (1e-4, 5e-4, 2.0, 6.0):
        assert abs(wp.quat_twist_angle(axis, wp.quat_from_axis_angle(axis, angle)) - angle) < 2e-6 * angle


@PRECISIONS
def test_axis_and_angle_are_written_to_variables(t):
    q, v = quaternion(t), vector(3, t)
    turns = unit(random((4,), t, 5))
    written = "n = x1; a = x2; wp.quat_to_axis_angle(x0, n, a); m, b = wp.quat_to_axis_angle(x0)"
    empty = [(v, np.zeros((COUNT, 3), turns.dtype)), (t, np.zeros(COUNT, turns.dtype))]
    found = run(["n", "a", "m", "b"], [(q, turns), *empty], [v, t, v, t], before=written)
    assert np.array_equal(found[0], found[2]) and np.array_equal(found[1], found[3]) and found[1].all()


@PRECISIONS
def test_rotations_are_found_in_larger_matrices(t):
    turns = np.zeros((COUNT, 4, 4), random((1,), t).dtype)
    turns[:, :3, :3] = rotation(unit(random((4,), t, 6)))
    (found,) = run(["wp.quat_from_matrix(x0)"], [(matrix(4, 4, t), turns)], [quaternion(t)])
    near(rotation(found), turns[:, :3, :3], t)
