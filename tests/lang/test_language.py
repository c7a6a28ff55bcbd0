"""Statements and expressions run as Python runs them; where C's meaning differs, kernels have C's."""

import math

import pytest

import treadle as wp

TRIPLE = (2, 3, 5)


@wp.func
def late(n: int, limit: int) -> int:
    found = int(-1)
    for i in range(n):
        if i * i > limit:
            found = i
            break
    else:
        found = 1000
    while n > 0:
        n -= 3
        if n == 2:
            break
    else:
        found += 10000
    for i in range(2):
        for j in range(4):
            if j == limit:
                break
        else:
            found += 100000
    return found


@wp.func
def over_parts(a: wp.vec3i, m: wp.mat22) -> int:
    total = int(0)
    for x in a:
        total = 10 * total + x
    for row in m:
        total = 10 * total + int(row[0] + row[1])
    for x in (a[0], 4):
        total = 10 * total + x
    for x in TRIPLE:
        total = 10 * total + x
    x, y, z = a
    (p, q), r = m, 7
    return total + x * y * z + int(p[1] * q[0]) + r


@wp.kernel
def statements(rows: wp.array2d[int], out: wp.array(dtype=int)):
    out[0] = late(10, 8)
    out[1] = late(3, 80)
    out[2] = late(8, 2)
    out[3] = over_parts(wp.vec3i(1, 2, 3), wp.mat22(1.0, 2.0, 3.0, 4.0))
    own = wp.zeros(shape=3, dtype=int)
    for k in range(3):
        own[k] = k + 1
    total = int(0)
    for x in own:
        total = 10 * total + x
    for row in rows:
        for x in row:
            if x == 3:
                continue
            total = 10 * total + x
    out[4] = total
    breakpoint()
    wp.breakpoint()
    out[5] = 0x9E3779B9
    out[6] = out[7] + 0xFFFFFFFF


def test_statements_run_as_in_python():
    rows, out = wp.array([[1, 2], [3, 4]], dtype=int), wp.zeros(8, dtype=int)
    wp.launch(statements, dim=1, inputs=[rows, out])
    late_values = [late.func(10, 8), late.func(3, 80), late.func(8, 2)]
    assert late_values == [3 + 10000 + 200000, 11000 + 200000, 2]
    parts = 123371 * 10000 + 4235
    assert out.numpy().tolist() == [*late_values, parts + 6 + 6 + 7, 123124, 0x9E3779B9 - 2**32, -1, 0]


@wp.kernel
def divisions(a: wp.array(dtype=int), b: wp.array(dtype=int), q: wp.array2d[int], x: wp.array2d[float]):
    i = wp.tid()
    q[i, 0] = a[i] / b[i]
    q[i, 1] = a[i] // b[i]
    q[i, 2] = a[i] % b[i]
    x[i, 0] = float(a[i]) / float(b[i])
    x[i, 1] = float(a[i]) // float(b[i])
    x[i, 2] = float(a[i]) % float(b[i])


def test_divisions_mean_what_they_mean_in_c():
    a, b = [7, -7, 7, -7, 6, -6], [2, 2, -2, -2, 3, 3]
    q, x = wp.zeros((6, 3), dtype=int), wp.zeros((6, 3), dtype=float)
    wp.launch(divisions, dim=6, inputs=[wp.array(a, dtype=int), wp.array(b, dtype=int), q, x])
    wanted = [[int(m / n), m // n, int(math.fmod(m, n))] for m, n in zip(a, b, strict=True)]
    assert q.numpy().tolist() == wanted
    assert x.numpy().tolist() == [[m / n, m // n, math.fmod(m, n)] for m, n in zip(a, b, strict=True)]
    for (m, n), row in zip(zip(a, b, strict=True), wanted, strict=True):  # constants, and calls from Python
        assert [wp.div(m, n), wp.floordiv(m, n), wp.mod(m, n)] == row


@wp.kernel
def named_constants(d: wp.array(dtype=wp.float64), f: wp.array(dtype=float)):
    x = 0.1
    n = 3
    v = wp.vec3d(x, x, 0.2)
    d[0] = v[0]
    d[1] = wp.float64(x)
    d[2] = wp.mat22d(x)[1, 1]
    d[3] = 0.1 + wp.float64(n)
    w = wp.vec3(n, n, 1.0)
    f[0] = w[1]
    f[1] = w[0:n][2]


def test_named_constants_are_as_exact_as_a_constructor_asks():
    d, f = wp.zeros(4, dtype=wp.float64), wp.zeros(2, dtype=float)
    wp.launch(named_constants, dim=1, inputs=[d, f])
    assert d.numpy().tolist() == [0.1, 0.1, 0.1, 3.1] and f.numpy().tolist() == [3.0, 1.0]

    @wp.kernel
    def mixed(d: wp.array(dtype=wp.float64), y: float):
        d[0] = wp.vec3d(y, y, y)[0]

    with pytest.raises(wp.KernelTypeError, match="float32"):
        wp.launch(mixed, dim=1, inputs=[d, 1.0])
