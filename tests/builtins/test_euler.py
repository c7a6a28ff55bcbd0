"""Euler's angles, against products of rotations about single axes, for every order of axes."""

import itertools

import numpy as np
import pytest

import treadle as wp
from treadle.types.core import f32, quaternion, vector

from .kernels import run
from .samples import COUNT, PRECISIONS, near, random, rotation, unit

ORDERS = [(i, j, k) for i, j, k in itertools.product(range(3), repeat=3) if i != j != k]


def about(axis: int, angle: np.ndarray) -> np.ndarray:
    """Rotation matrices about one axis."""
    q = np.zeros((len(angle), 4))
    q[:, axis], q[:, 3] = np.sin(angle / 2), np.cos(angle / 2)
    return rotation(q)


@PRECISIONS
def test_angles_make_a_rotation(t):
    q, v = quaternion(t), vector(3, t)
    e = 2 * random((3,), t, 1)
    found = run([f"wp.quat_from_euler(x0, {i}, {j}, {k})" for i, j, k in ORDERS], [(v, e)], [q] * len(ORDERS))
    for made, (i, j, k) in zip(found, ORDERS, strict=True):
        near(rotation(made), about(k, e[:, k]) @ about(j, e[:, j]) @ about(i, e[:, i]), t)


@PRECISIONS
def test_a_rotation_gives_its_angles_back(t):
    q, v = quaternion(t), vector(3, t)
    turns = unit(random((4,), t, 2))
    turns[:4] = np.eye(4)[[3, 0, 1, 2]]
    for n, axis in enumerate((0, 1, 2)):  # a right angle about each axis, where two of the angles are one
        turns[4 + n] = turns[7 + n] = 0
        turns[4 + n, [axis, 3]], turns[7 + n, [axis, 3]] = np.sqrt([0.5, 0.5]), np.sqrt([0.5, 0.5]) * [-1, 1]
    found = run([f"wp.quat_to_euler(x0, {i}, {j}, {k})" for i, j, k in ORDERS], [(q, turns)], [v] * len(ORDERS))
    for e, (i, j, k) in zip(found, ORDERS, strict=True):
        near(about(k, e[:, 3 - i - j]) @ about(j, e[:, j]) @ about(i, e[:, i]), rotation(turns), t)
        low, high = (0, np.pi) if i == k else (-np.pi / 2, np.pi / 2)
        assert (e[:, j] >= low - 1e-6).all() and (e[:, j] <= high + 1e-6).all()
        assert (np.abs(e) <= 2 * np.pi + 1e-5).all()


@PRECISIONS
def test_roll_pitch_and_yaw(t):
    v = vector(3, t)
    e = random((3,), t, 3)
    e[:, 1] = np.clip(e[:, 1], -1.5, 1.5)
    e[:, [0, 2]] = np.clip(e[:, [0, 2]], -3.1, 3.1)
    (found,) = run(["wp.quat_to_rpy(wp.quat_rpy(x0[0], x0[1], x0[2]))"], [(v, e)], [v])
    assert np.allclose(found, e, rtol=0, atol=3e-5 if t is f32 else 1e-13)
    steep = np.zeros((COUNT, 3), e.dtype)
    steep[:, 0], steep[:, 1] = e[:, 0], np.pi / 2
    expressions = ["wp.quat_rpy(r[0], r[1], r[2])", "wp.quat_rpy(x0[0], x0[1], x0[2])"]
    before = "r = wp.quat_to_rpy(wp.quat_rpy(x0[0], x0[1], x0[2]))"
    again, wanted = run(expressions, [(v, steep)], [quaternion(t)] * 2, before=before)
    assert np.allclose(rotation(again), rotation(wanted), rtol=0, atol=2e-3 if t is f32 else 1e-7)


def test_axes_may_be_known_at_run_time_only():
    @wp.kernel
    def turn(e: wp.vec3, order: wp.vec3i, out: wp.array(dtype=wp.quat)):
        out[0] = wp.quat_from_euler(e, order[0], order[1], order[2])
        out[1] = wp.quat_from_euler(wp.quat_to_euler(out[0], order[0], order[1], order[2]), 2, 0, 1)

    out = wp.zeros(2, dtype=wp.quat)
    wp.launch(turn, dim=1, inputs=[wp.vec3(0.1, 0.2, 0.3), wp.vec3i(2, 0, 1), out])
    assert np.allclose(out.numpy()[0], out.numpy()[1], atol=1e-6)


@pytest.mark.parametrize("angle", [0.0, 0.5])
def test_where_two_angles_are_one_the_derivative_is_finite(angle):
    @wp.kernel
    def angles(q: wp.array(dtype=wp.quatd), e: wp.array(dtype=wp.vec3d)):
        e[0] = wp.quat_to_euler(q[0], 0, 1, 2)

    half = np.pi / 4
    turn = wp.quat_from_axis_angle(wp.vec3d(0.0, 1.0, 0.0), wp.float64(2 * half))
    q = wp.array([turn * wp.quat_from_axis_angle(wp.vec3d(1.0, 0.0, 0.0), wp.float64(angle))], dtype=wp.quatd,
                 requires_grad=True)  # fmt: skip
    e = wp.zeros(1, dtype=wp.vec3d, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(angles, dim=1, inputs=[q, e])
    tape.backward(grads={e: wp.array([wp.vec3d(1.0, 0.0, -1.0)], dtype=wp.vec3d)})
    assert np.isfinite(q.grad.numpy()).all() and q.grad.numpy().any()
