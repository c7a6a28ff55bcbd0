"""Functions of vectors against NumPy."""

import numpy as np

import treadle as wp
from treadle.types.core import matrix, u32, vector

from .kernels import run
from .samples import PRECISIONS, near, random


@PRECISIONS
def test_vectors(t):
    v = vector(3, t)
    a, b = random((3,), t, 1), random((3,), t, 2)
    a[0] = 0
    dots = (a * b).sum(1)
    lengths = np.linalg.norm(a, axis=1)
    found = run(
        ["wp.dot(x0, x1)", "wp.cross(x0, x1)", "wp.length(x0)", "wp.length_sq(x0)", "wp.normalize(x0)",
         "wp.outer(x0, x1)", "wp.cw_mul(x0, x1)", "wp.cw_div(x0, x1)",
         "wp.min(x0)", "wp.max(x0)", "wp.min(x0, x1)", "wp.argmin(x0)",
         "wp.argmax(x0)", "wp.lerp(x0, x1, 0.25)", "wp.norm_l1(x0)", "x0 / 2.0 - 3.0 * x1"],
        [(v, a), (v, b)],
        [t, v, t, t, v, matrix(3, 3, t), v, v, t, t, v, u32, u32, v, t, v],
    )  # fmt: skip
    wanted = [
        dots, np.cross(a, b), lengths, lengths**2, a / np.maximum(lengths, 1e-30)[:, None],
        a[:, :, None] * b[:, None, :], a * b, a / b, a.min(1), a.max(1), np.minimum(a, b), a.argmin(1), a.argmax(1),
        a * 0.75 + b * 0.25,
        np.abs(a).sum(1), a / 2 - 3 * b,
    ]  # fmt: skip
    for f, w in zip(found, wanted, strict=True):
        near(f, w, t)


def test_slices_may_be_empty():
    vec0, mat00 = wp.types.vector(0, float), wp.types.matrix((0, 0), float)

    @wp.kernel
    def ask(out: wp.array(dtype=int)):
        v, m = wp.vec4(1.0), wp.mat22(2.0)
        out[0] = len(v[5:]) + len(m[7:])
        out[1] = int(v[2:2] == vec0() and m[9:] == mat00() and m[:, 3:] == mat00())
        out[2] = int(v[2:2] != vec0() or m[9:] != mat00())

    out = wp.full(3, 9, dtype=int)
    wp.launch(ask, dim=1, inputs=[out])
    assert list(out.numpy()) == [0, 1, 0]
    assert wp.vec2(1.0, 2.0)[2:] == vec0() and wp.mat22(1.0)[5:] == mat00() and wp.mat22(1.0)[:, 2:] == mat00()
