"""Functions of matrices against NumPy."""

import numpy as np
import pytest

from treadle.types.core import f32, matrix, vector

from .kernels import run
from .samples import PRECISIONS, near, random


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
        a @ b, a @ b, np.einsum("nij,nj->ni", a, x), np.einsum("ni,nij->nj", x, a), a.transpose(0, 2, 1),
        np.linalg.det(a), np.broadcast_to(np.eye(n), a.shape), np.trace(a, axis1=1, axis2=2), (a * b).sum((1, 2)),
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
        ["x0 * x1", "x0 * x2", "wp.transpose(x0)", "wp.matrix_from_rows(x2, x2)", "wp.matrix_from_cols(x2, x2)",
         "wp.skew(x2) * x2"],
        [(m, a), (matrix(3, 4, t), b), (vector(3, t), x)],
        [matrix(2, 4, t), vector(2, t), matrix(3, 2, t), m, matrix(3, 2, t), vector(3, t)],
    )  # fmt: skip
    product = np.einsum("nij,nj->ni", a, x)
    wanted = [a @ b, product, a.transpose(0, 2, 1), np.stack([x, x], 1), np.stack([x, x], 2), 0 * x]
    for f, w in zip(found, wanted, strict=True):
        near(f, w, t)
