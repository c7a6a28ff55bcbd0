"""Spatial vectors against their definitions."""

import numpy as np

from treadle.types.core import transformation, vector

from .kernels import run
from .samples import PRECISIONS, near, random, rotation, unit


@PRECISIONS
def test_spatial_vectors(t):
    v, frame = vector(6, t), transformation(t)
    a, b, f = random((6,), t, 1), random((6,), t, 2), random((7,), t, 3)
    f[:, 3:] = unit(f[:, 3:])
    found = run(
        ["wp.spatial_cross(x0, x1)", "wp.spatial_cross_dual(x0, x1)", "wp.spatial_dot(x0, x1)",
         "wp.transform_twist(x2, x0)", "wp.transform_wrench(x2, x1)", "wp.velocity_at_point(x0, wp.spatial_top(x1))",
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
