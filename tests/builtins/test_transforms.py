"""Rigid transforms against 4 × 4 matrices."""

import numpy as np

import treadle as wp
from treadle.types.core import f32, matrix, quaternion, transformation, vector

from .kernels import run
from .samples import COUNT, PRECISIONS, near, random, rotation, unit


def test_transforms_are_changed_in_place():
    kind, v = transformation(f32), vector(3, f32)
    a, x = random((7,), f32, 1), random((3,), f32, 2)
    (found,) = run(["x0"], [(kind, a), (v, x)], [kind], before="wp.transform_set_translation(x0, x1)")
    assert np.array_equal(found, np.concatenate([x, a[:, 3:]], 1))
    t = wp.transform_identity()
    wp.transform_set_rotation(t, wp.quat(1.0, 0.0, 0.0, 0.0))
    wp.transform_set_translation(t, wp.vec3(4.0, 5.0, 6.0))
    assert list(t) == [4, 5, 6, 1, 0, 0, 0]


def test_transforms_are_made_of_nothing_or_of_one_number():
    @wp.kernel
    def make(out: wp.array(dtype=wp.transformd)):
        out[0] = wp.transformd()
        out[1] = wp.transformd(wp.float64(2.5))
        out[2] = wp.transformd(wp.transform(1.5))

    out = wp.zeros(3, dtype=wp.transformd)
    wp.launch(make, dim=1, inputs=[out])
    assert np.array_equal(out.numpy(), np.repeat([[0.0], [2.5], [1.5]], 7, axis=1))
    assert list(wp.transform()) == [0, 0, 0, 0, 0, 0, 1] and list(wp.transform(1.5)) == [1.5] * 7


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
        ["wp.transform_to_matrix(x0 * x1)", "wp.transform_to_matrix(wp.transform_inverse(x0))",
         "wp.transform_point(x0, x2)", "wp.transform_vector(x0, x2)",
         "wp.transform_point(wp.transform_to_matrix(x0), x2)",
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


@PRECISIONS
def test_matrices_are_taken_apart_and_put_together(t):
    q, v, m = quaternion(t), vector(3, t), matrix(4, 4, t)
    turn, place, scale = unit(random((4,), t, 1)), random((3,), t, 2), random((3,), t, 3)
    scale[:3] = np.abs(scale[:3])
    for k in range(3):  # a scale of 0: the rotation follows from the others
        scale[3 + k] = np.abs(scale[3 + k])
        scale[3 + k, k] = 0
    composed = "wp.transform_compose(x0, x1, x2)"
    found = run(
        ["p", "r", "s", composed, "wp.transform_compose(p, r, s)"], [(v, place), (q, turn), (v, scale)],
        [v, q, v, m, m], before=f"p, r, s = wp.transform_decompose({composed})",
    )  # fmt: skip
    assert np.array_equal(found[0], place)
    near(np.abs(found[2]), np.abs(scale), t)
    near(found[4], found[3], t)
    kept = (scale >= 0).all(axis=1)  # others are one of four rotations
    near(rotation(found[1])[kept], rotation(turn)[kept], t)
    assert kept.sum() > 6 and (found[2][:, 1:] >= 0).all()
