"""Vectors, matrices, rotations, transforms and spatial vectors against NumPy, in float32 and float64."""

import numpy as np
import pytest

from treadle.types.core import f32, f64, matrix, quaternion, transformation, u32, vector

from .kernels import name_of, run

COUNT = 40
PRECISIONS = pytest.mark.parametrize("t", [f32, f64], ids=name_of)


def random(shape, t, seed=0):
    return np.random.default_rng(seed).normal(size=(COUNT, *shape)).astype(np.float32 if t is f32 else np.float64)


def near(found, wanted, t):
    size = max(1.0, float(np.abs(wanted).max()))
    assert np.allclose(found, wanted, rtol=0, atol=(3e-6 if t is f32 else 1e-13) * size)


def unit(q):
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def rotation(q):
    """Rotation matrices of unit quaternions (x, y, z, w), by Euler and Rodrigues' formula ``I + 2w[u] + 2[u]²``."""
    u, w = q[:, :3], q[:, 3, None, None]
    cross = np.zeros((len(q), 3, 3), q.dtype)
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -u[:, 2], u[:, 1], -u[:, 0]
    cross -= cross.transpose(0, 2, 1)
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


@PRECISIONS
def test_vectors(t):
    v = vector(3, t)
    a, b = random((3,), t, 1), random((3,), t, 2)
    a[0] = 0
    dots = (a * b).sum(1)
    lengths = np.linalg.norm(a, axis=1)
    found = run(
        ["wp.dot(x0, x1)", "wp.cross(x0, x1)", "wp.length(x0)", "wp.length_sq(x0)", "wp.normalize(x0)", "wp.outer(x0, x1)",
         "wp.cw_mul(x0, x1)", "wp.cw_div(x0, x1)", "wp.min(x0)", "wp.max(x0)", "wp.min(x0, x1)", "wp.argmin(x0)",
         "wp.argmax(x0)", "wp.lerp(x0, x1, 0.25)", "wp.norm_l1(x0)", "x0 / 2.0 - 3.0 * x1"],
        [(v, a), (v, b)],
        [t, v, t, t, v, matrix(3, 3, t), v, v, t, t, v, u32, u32, v, t, v],
    )  # fmt: skip
    wanted = [
        dots, np.cross(a, b), lengths, lengths**2, a / np.maximum(lengths, 1e-30)[:, None], a[:, :, None] * b[:, None, :],
        a * b, a / b, a.min(1), a.max(1), np.minimum(a, b), a.argmin(1), a.argmax(1), a * 0.75 + b * 0.25,
        np.abs(a).sum(1), a / 2 - 3 * b,
    ]  # fmt: skip
    for f, w in zip(found, wanted, strict=True):
        near(f, w, t)


@PRECISIONS
@pytest.mark.parametrize("n", [2, 3, 4])
def test_square_matrices(t, n):
    m, v = matrix(n, n, t), vector(n, t)
    a, b, x = random((n, n), t, 1) + 2 * np.eye(n), random((n, n), t, 2), random((n,), t, 3)
    a = a.astype(b.dtype)
    found = run(
        ["x0 * x1", "x0 @ x1", "x0 * x2", "x2 * x0", "wp.transpose(x0)", "wp.determinant(x0)", "wp.inverse(x0) * x0",
         "wp.trace(x0)", "wp.ddot(x0, x1)", "wp.diag(x2)", "wp.get_diag(x0)", "x0 + x1 * 2.0"],
        [(m, a), (m, b), (v, x)],
        [m, m, v, v, m, t, m, t, t, m, v, m],
    )  # fmt: skip
    wanted = [
        a @ b, a @ b, np.einsum("nij,nj->ni", a, x), np.einsum("ni,nij->nj", x, a), a.transpose(0, 2, 1), np.linalg.det(a),
        np.broadcast_to(np.eye(n), a.shape), np.trace(a, axis1=1, axis2=2), (a * b).sum((1, 2)),
        x[:, :, None] * np.eye(n), np.diagonal(a, axis1=1, axis2=2), a + 2 * b,
    ]  # fmt: skip
    for i, (f, w) in enumerate(zip(found, wanted, strict=True)):
        if i == 6:
            worst = np.linalg.cond(a).max()
            assert np.abs(f - w).max() < worst * (1e-5 if t is f32 else 1e-13)
        else:
            near(f, w, t)


def test_a_singular_matrix_has_no_inverse():
    for n in (2, 3, 4):
        (found,) = run(["wp.inverse(x0)"], [(matrix(n, n, f32), np.ones((1, n, n), np.float32))], [matrix(n, n, f32)])
        assert not found.any()


@PRECISIONS
def test_rectangular_matrices(t):
    a, b, x = random((2, 3), t, 1), random((3, 4), t, 2), random((3,), t, 3)
    m = matrix(2, 3, t)
    found = run(
        ["x0 * x1", "x0 * x2", "wp.transpose(x0)", "wp.matrix_from_rows(x2, x2)", "wp.matrix_from_cols(x2, x2)", "wp.skew(x2) * x2"],
        [(m, a), (matrix(3, 4, t), b), (vector(3, t), x)],
        [matrix(2, 4, t), vector(2, t), matrix(3, 2, t), m, matrix(3, 2, t), vector(3, t)],
    )
    wanted = [a @ b, np.einsum("nij,nj->ni", a, x), a.transpose(0, 2, 1), np.stack([x, x], 1), np.stack([x, x], 2), 0 * x]
    for f, w in zip(found, wanted, strict=True):
        near(f, w, t)


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


@PRECISIONS
def test_transforms(t):
    kind, v = transformation(t), vector(3, t)
    a, b, x = random((7,), t, 1), random((7,), t, 2), random((3,), t, 3)
    a[:, 3:], b[:, 3:] = unit(a[:, 3:]), unit(b[:, 3:])

    def homogeneous(p):
        m = np.zeros((COUNT, 4, 4), p.dtype)
        m[:, :3, :3], m[:, :3, 3], m[:, 3, 3] = rotation(p[:, 3:]), p[:, :3], 1
        return m

    found = run(
        ["wp.transform_to_matrix(x0 * x1)", "wp.transform_to_matrix(wp.transform_inverse(x0))", "wp.transform_point(x0, x2)",
         "wp.transform_vector(x0, x2)", "wp.transform_point(wp.transform_to_matrix(x0), x2)",
         "wp.transform_to_matrix(wp.transform_from_matrix(wp.transform_to_matrix(x0)))",
         "wp.transform_compose(wp.transform_get_translation(x0), wp.transform_get_rotation(x0), x2)"],
        [(kind, a), (kind, b), (v, x)],
        [matrix(4, 4, t), matrix(4, 4, t), v, v, v, matrix(4, 4, t), matrix(4, 4, t)],
    )  # fmt: skip
    m, n = homogeneous(a), homogeneous(b)
    point = np.einsum("nij,nj->ni", m[:, :3, :3], x) + a[:, :3]
    scale = np.concatenate([x, np.ones((COUNT, 1))], 1)[:, None, :]
    wanted = [m @ n, np.linalg.inv(m), point, point - a[:, :3], point, m, m * scale]
    for f, w in zip(found, wanted, strict=True):
        near(f, w, t)


def test_transforms_are_changed_in_place():
    kind, v = transformation(f32), vector(3, f32)
    a, x = random((7,), f32, 1), random((3,), f32, 2)
    (found,) = run(["x0"], [(kind, a), (v, x)], [kind], before="wp.transform_set_translation(x0, x1)")
    assert np.array_equal(found, np.concatenate([x, a[:, 3:]], 1))


@PRECISIONS
def test_spatial_vectors(t):
    v, frame = vector(6, t), transformation(t)
    a, b, f = random((6,), t, 1), random((6,), t, 2), random((7,), t, 3)
    f[:, 3:] = unit(f[:, 3:])
    found = run(
        ["wp.spatial_cross(x0, x1)", "wp.spatial_cross_dual(x0, x1)", "wp.spatial_dot(x0, x1)", "wp.transform_twist(x2, x0)",
         "wp.transform_wrench(x2, x1)", "wp.velocity_at_point(x0, wp.spatial_top(x1))",
         "wp.spatial_dot(wp.transform_twist(x2, x0), wp.transform_wrench(x2, x1))"],
        [(v, a), (v, b), (frame, f)],
        [v, v, t, v, v, vector(3, t), t],
    )  # fmt: skip
    w, u, p, q = a[:, :3], a[:, 3:], b[:, :3], b[:, 3:]
    r, shift = rotation(f[:, 3:]), f[:, :3]
    turn = lambda x: np.einsum("nij,nj->ni", r, x)
    wanted = [
        np.concatenate([np.cross(w, p), np.cross(u, p) + np.cross(w, q)], 1),
        np.concatenate([np.cross(w, p) + np.cross(u, q), np.cross(w, q)], 1),
        (a * b).sum(1),
        np.concatenate([turn(w), turn(u) + np.cross(shift, turn(w))], 1),
        np.concatenate([turn(p) + np.cross(shift, turn(q)), turn(q)], 1),
        np.cross(w, p) + u,
        (w * p + u * q).sum(1),  # power is the same in every frame
    ]
    for x, y in zip(found, wanted, strict=True):
        near(x, y, t)
