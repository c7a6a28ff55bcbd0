"""Programs with a derivative, each of a kind that reverse mode must get right, with arguments to run them on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import treadle as wp

F = wp.float64
A = wp.array(dtype=F)
A2 = wp.array2d(dtype=F)
V = wp.array(dtype=wp.vec3d)


@wp.kernel
def straight(x: A, y: A, z: A):
    i = wp.tid()
    z[i] = x[i] * y[i] + x[i] / (y[i] + F(2.0))


@wp.kernel
def inplace(x: A, y: A):
    i = wp.tid()
    x[i] = x[i] * y[i]
    x[i] = x[i] * x[i]
    x[i] += y[i]


@wp.kernel
def branch(x: A, y: A):
    i = wp.tid()
    v = x[i]
    w = v * v
    if v > F(0.3):
        w = w * v
        if v > F(0.6):
            w = w + v * w
    else:
        w = w - v
    y[i] = w * v


@wp.kernel
def carried(x: A, y: A, n: int):
    i = wp.tid()
    v = x[i]
    p = F(1.0)
    for j in range(n):
        p = p * v + x[j]
        p = p * F(0.5)
    y[i] = p


@wp.kernel
def breaks(x: A, y: A, n: int):
    i = wp.tid()
    v = x[i]
    p = F(1.0)
    for j in range(n):
        p = p * v + x[i]
        if j > i:
            break
        if j == 1:
            continue
        p = p * p * F(0.5)
    y[i] = p


@wp.kernel
def whiles(x: A, y: A, n: int):
    i = wp.tid()
    p = x[i]
    k = int(0)
    while p < F(3.0):
        p = p * F(1.5) + x[0] * F(0.1)
        k += 1
        if k > n:
            break
    y[i] = p * x[i]


@wp.kernel
def nested(x: A, y: A, n: int):
    i = wp.tid()
    s = x[i]
    for a in range(n):
        t = s
        for b in range(a + 1):
            t = t * x[b] + s * F(0.3)
            for c in range(b):
                if c % 2 == 0:
                    t = t * F(0.9) + x[c] * t
        s = s * F(0.5) + t * F(0.1)
    y[i] = s


@wp.kernel
def inloop(x: A, v: A, n: int):
    i = wp.tid()
    for k in range(n):
        v[i] = v[i] - x[i] * x[i] * F(0.1)
        x[i] = x[i] + v[i] * F(0.2) * x[i]


@wp.kernel
def localarr(x: A, y: A, n: int):
    i = wp.tid()
    a = wp.zeros(shape=5, dtype=F)
    for k in range(5):
        a[k] = x[k] * F(0.5)
    for k in range(n):
        a[(k + i) % 5] = a[k % 5] * a[(k + 1) % 5] + x[i]
    s = F(0.0)
    for k in range(5):
        s += a[k] * a[(k + i) % 5]
    y[i] = s


@wp.kernel
def scat(x: A, y: A):
    i = wp.tid()
    wp.atomic_add(y, (i * 2) % 3, x[i] * x[i])
    wp.atomic_sub(y, 1, x[i] * x[3])


@wp.kernel
def traj(x: A2, n: int):
    i = wp.tid()
    for t in range(n):
        x[t + 1, i] = x[t, i] * x[t, i] * F(0.7) + F(0.1)


@wp.kernel
def oneshot(x: A, y: A):
    i = wp.tid()
    x[i] = F(2.0)
    y[i] = y[i] * y[i]


@wp.func
def poly(a: F, b: F):
    s = F(0.0)
    for k in range(3):
        s = s * a + b
    return s, a * b


@wp.func
def early(a: F):
    if a > F(0.5):
        return a * a
    return a * F(3.0)


@wp.kernel
def trig(x: A, y: A):
    i = wp.tid()
    v = x[i]
    y[i] = wp.sin(v) * wp.exp(v) + wp.sqrt(v) + wp.pow(v, F(2.5)) + wp.log(v) + wp.atan2(v, F(0.3))


@wp.kernel
def functions(x: A, y: A):
    i = wp.tid()
    p, q = poly(x[i], x[0])
    y[i] = p * q + early(x[i])


@wp.kernel
def vecs(x: V, y: V, z: A):
    i = wp.tid()
    d = x[(i + 1) % 3] - x[i]
    l = wp.length(d)
    n = wp.normalize(d)
    c = wp.cross(x[i], n)
    m = wp.outer(c, d)
    y[i] = m * c + n * l
    z[i] = wp.dot(n, c + x[i]) + m[1, 2]


@wp.kernel
def comp(x: V, y: V, n: int):
    i = wp.tid()
    v = x[i]
    for k in range(n):
        v[k % 3] = v[(k + 1) % 3] * v[k % 3] + F(0.1)
        v[1] += v[0]
    y[i] = v


@wp.kernel
def atom(x: V, y: V):
    i = wp.tid()
    wp.atomic_add(y, (i * 2) % 3, x[i] * x[i][0])


@wp.kernel
def guard(x: A, y: A):
    i = wp.tid()
    v = x[i] - F(0.5)
    y[i] = wp.where(v > F(0.0), wp.sqrt(v) * F(2.0) / v, v)


@wp.kernel
def minmax(x: A, y: A):
    i = wp.tid()
    y[i] = wp.min(wp.max(x[i], F(0.3)), F(0.7)) * wp.abs(x[i] - F(0.5)) + wp.clamp(x[i], F(0.2), F(0.4))


@wp.kernel
def stencil(u: A2, o: A2):
    i, j = wp.tid()
    if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
        o[i, j] = u[i - 1, j] * u[i + 1, j] + u[i, j - 1] * u[i, j + 1] - u[i, j] * u[i, j]


@wp.kernel
def slices(x: A2, y: A):
    i = wp.tid()
    row = x[i]
    s = F(0.0)
    for k in range(row.shape[0]):
        s = s + row[k] * row[(k + 1) % row.shape[0]]
    y[i] = s


@wp.kernel
def mats(x: wp.array(dtype=wp.mat33d), y: A):
    i = wp.tid()
    m = x[i]
    y[i] = wp.determinant(m) + wp.trace(wp.inverse(m) * wp.transpose(m))


@wp.kernel
def quats(x: wp.array(dtype=wp.quatd), v: V, y: V):
    i = wp.tid()
    q = wp.normalize(x[i])
    y[i] = wp.quat_rotate(q * q, v[i])


class Program(NamedTuple):
    """A kernel, its arguments, the launch's extents, and the arrays whose weighted sum is differentiated."""

    kernel: Any
    args: tuple
    dim: Any
    outputs: tuple[str, ...]


def programs() -> list[Program]:
    rng = np.random.default_rng(0)

    def some(*shape: int) -> np.ndarray:
        return rng.uniform(0.1, 1.0, shape)

    x, y, x3, none, none3 = some(5), some(5), some(3, 3), np.zeros(5), np.zeros((3, 3))
    return [
        Program(straight, (x, y, none), 5, ("z",)), Program(inplace, (x, y), 5, ("x",)),
        Program(branch, (x, none), 5, ("y",)), Program(carried, (x, none, 4), 5, ("y",)),
        Program(breaks, (x, none, 6), 5, ("y",)), Program(whiles, (x, none, 6), 5, ("y",)),
        Program(nested, (x, none, 4), 5, ("y",)), Program(inloop, (x, y, 4), 5, ("x", "v")),
        Program(localarr, (x, none, 7), 5, ("y",)), Program(scat, (x, np.zeros(3)), 5, ("y",)),
        Program(traj, (some(5, 5), 4), 5, ("x",)), Program(oneshot, (x, y), 5, ("x", "y")),
        Program(trig, (x, none), 5, ("y",)), Program(functions, (x, none), 5, ("y",)),
        Program(vecs, (x3, none3, np.zeros(3)), 3, ("y", "z")), Program(comp, (x3, none3, 4), 3, ("y",)),
        Program(atom, (x3, none3), 3, ("y",)), Program(guard, (x, none), 5, ("y",)),
        Program(minmax, (x, none), 5, ("y",)), Program(stencil, (some(5, 5), np.zeros((5, 5))), (5, 5), ("o",)),
        Program(slices, (some(5, 4), none), 5, ("y",)), Program(mats, (some(3, 3, 3), np.zeros(3)), 3, ("y",)),
        Program(quats, (some(3, 4), x3, none3), 3, ("y",)),
    ]  # fmt: skip
