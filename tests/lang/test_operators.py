"""Functions named as operators are, ``add`` or ``mul``: operators are these where their types fit."""

import numpy as np

import treadle as wp


@wp.func
def add(x: float, y: float) -> float:
    return 100.0 * x + y


@wp.func
def sub(x: wp.vec2, y: wp.vec2) -> wp.vec2:
    return x - y - wp.vec2(1.0, 1.0)


@wp.kernel
def user_operators(x: wp.array(dtype=float), n: wp.array(dtype=int), v: wp.array(dtype=wp.vec2)):
    x[0] = x[0] + 1.0
    x[1] += 1.0
    n[0] = n[0] + 1
    v[0] = v[0] - v[0]
    v[1].x += 3.0


def test_operators_are_the_users_functions_where_their_types_fit():
    x, n, v = wp.array([2.0, 3.0], dtype=float), wp.zeros(1, dtype=int), wp.zeros(2, dtype=wp.vec2)
    wp.launch(user_operators, dim=1, inputs=[x, n, v])
    assert x.numpy().tolist() == [201.0, 301.0] and n.numpy().tolist() == [1]
    assert np.array_equal(v.numpy(), [[-1.0, -1.0], [3.0, 0.0]])
