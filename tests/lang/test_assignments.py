"""Assignments to parts of values and of elements: what they change, and that derivatives know it."""

import numpy as np

import treadle as wp


@wp.struct
class Body:
    v: wp.vec3d
    m: wp.mat33d
    t: wp.transformd


@wp.func
def seen(m: wp.mat33d):
    total = m[0, 0]
    for i in range(3):
        for j in range(3):
            total += m[i, j] * (wp.float64(i) * 0.7 - wp.float64(j) * 0.3 + 1.0)
    return total


@wp.kernel
def assign(
    xs: wp.array(dtype=wp.float64), vs: wp.array(dtype=wp.vec3d), ms: wp.array(dtype=wp.mat33d),
    ts: wp.array(dtype=wp.transformd), bodies: wp.array(dtype=Body), out: wp.array2d(dtype=wp.float64),
):  # fmt: skip
    i = wp.tid()
    x = xs[i]
    v = wp.vec3d(x, 2.0 * x, x * x)

    a = v
    a[1] = x * x * x  # components, by constant and by run-time index, by name, through slices
    a[i] *= x
    a.z -= x
    a[0:2] += wp.vec2d(x, 1.0)
    a[::2] = wp.vec2d(a[0] * x, a[2])
    out[i, 0] = wp.dot(a, v)

    m = wp.outer(v, v)
    m[0] = v * x  # rows, columns, blocks, single numbers
    m[i] += v
    m[:, 1] = v / x
    m[1:, :2] = wp.mat22d(x, 1.0, 2.0, x * x)
    m[2, 2] = x
    m[i, i] *= x
    m[1][0] = x * x
    m[-1] /= x
    out[i, 1] = seen(m)

    q = wp.quatd(x, 0.5, 0.25, 1.0)
    q.w = x * x
    q[i] += x
    t = wp.transformd(v, q)
    t.p = t.p * x
    t.q *= x
    t.p.x = x
    t[5] += x
    out[i, 2] = wp.dot(t.p, v) + wp.dot(t.q, q)

    s = Body()
    s.v = v
    s.v[1] = x * x
    s.m[i] = v
    s.t.p = s.v * x
    out[i, 3] = wp.dot(s.v, s.t.p) + seen(s.m)

    vs[i].y = x  # elements of arrays
    vs[i][0] += x
    ms[i][1] = v
    ms[i][0, 2] *= x
    ts[i].p = v * x
    bodies[i].v = v
    bodies[i].v[2] = x * x
    bodies[i].m[i, 1] = x
    bodies[i].t.q = q
    b = bodies[i]
    out[i, 4] = wp.dot(vs[i], v) + seen(ms[i]) + wp.dot(ts[i].p, v) + wp.dot(b.v, v) + seen(b.m) + b.t[3] * x


def run(xs, requires_grad=False):
    rng = np.random.default_rng(1)
    given = [
        wp.array(rng.random((2, *inner)), dtype=dtype, requires_grad=requires_grad)
        for inner, dtype in (((3,), wp.vec3d), ((3, 3), wp.mat33d), ((7,), wp.transformd))
    ]
    bodies = wp.zeros(2, dtype=Body, requires_grad=requires_grad)
    out = wp.zeros((2, 5), dtype=wp.float64, requires_grad=requires_grad)
    wp.launch(assign, dim=2, inputs=[xs, *given, bodies, out])
    return out


def by_hand(x, i):
    """The first two results again, with NumPy."""
    v = np.array([x, 2 * x, x * x])
    a = v.copy()
    a[1] = x**3
    a[i] *= x
    a[2] -= x
    a[0:2] += (x, 1.0)
    a[::2] = a[0] * x, a[2]
    m = np.outer(v, v)
    m[0] = v * x
    m[i] += v
    m[:, 1] = v / x
    m[1:, :2] = ((x, 1.0), (2.0, x * x))
    m[2, 2] = x
    m[i, i] *= x
    m[1, 0] = x * x
    m[-1] /= x
    weights = np.add.outer(np.arange(3) * 0.7, np.arange(3) * -0.3) + 1.0
    return a @ v, m[0, 0] + (m * weights).sum()


def test_parts_are_assigned_and_derivatives_follow():
    at = np.array([0.8, 1.3])
    xs = wp.array(at, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        out = run(xs, requires_grad=True)
    for i in range(2):
        np.testing.assert_allclose(out.numpy()[i, :2], by_hand(at[i], i), rtol=1e-12)
    step = 1e-6
    up, down = (run(wp.array(at + d, dtype=wp.float64)).numpy() for d in (step, -step))
    for k in range(5):
        tape.zero()
        seed = np.zeros((2, 5))
        seed[:, k] = 1.0
        tape.backward(grads={out: wp.array(seed, dtype=wp.float64)})
        np.testing.assert_allclose(xs.grad.numpy(), (up - down)[:, k] / (2 * step), rtol=1e-6, err_msg=f"result {k}")
