"""Programs of ``tests/bits.py`` whose threads add to one element after the other in loops: see ``emit/slots.py``."""

from __future__ import annotations

import numpy as np

import treadle as wp

Found = dict[str, np.ndarray]


def normal(*shape: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@wp.kernel
def mixed_kernel(x: wp.array(dtype=float), where: wp.array(dtype=int), table: wp.array(dtype=float), m: int, step: int):
    i = wp.tid()
    s = x[i]
    wp.atomic_add(table, where[i], 0.3 * s)
    for j in range(m):
        k = (j * step) % wp.len(table)
        if s > 0.05 * float(j) - 1.0:
            wp.atomic_add(table, k, s * float(j + 1))
        wp.atomic_sub(table, k, 0.125)
        if j == i % 7:
            wp.atomic_add(table, where[i], s)
    if i < wp.len(table):
        wp.atomic_add(table, i, s)


def mixed(n: int = 6_011, size: int = 203, m: int = 40, step: int = 3) -> Found:
    """At an address uniform in each round, under a condition and without; at places from a table; at the own index."""
    where = np.random.default_rng(31).integers(0, min(size, 203), n).astype(np.int32)
    table = wp.full(size, 0.5, dtype=float)
    wp.launch(mixed_kernel, dim=n, inputs=[wp.array(normal(n)), wp.array(where), table, m, step])
    return {"table": table.numpy()}


def mixed_expected(n: int = 6_011, size: int = 203, m: int = 40, step: int = 3) -> np.ndarray:
    """What :func:`mixed` finds, in float64."""
    x, where = normal(n).astype(float), np.random.default_rng(31).integers(0, min(size, 203), n)
    table = np.full(size, 0.5)
    np.add.at(table, where, 0.3 * x)
    np.add.at(table, where, np.where(np.arange(n) % 7 < m, x, 0.0))
    for j in range(m):
        table[j * step % size] += x[x > np.float32(0.05) * np.float32(j) - 1.0].sum() * (j + 1) - 0.125 * n
    count = min(n, size)
    table[:count] += x[:count]
    return table


@wp.kernel
def vectors_kernel(
    x: wp.array(dtype=float), count: wp.array(dtype=int), v: wp.array(dtype=wp.vec3), d: wp.array(dtype=wp.vec2d)
):
    i = wp.tid()
    for k in range(count[i]):
        wp.atomic_add(v, k, wp.vec3(x[i], x[i] * x[i], float(k)))
        if k % 2 == 0:
            wp.atomic_sub(v, wp.len(v) - 1 - k, wp.vec3(x[i], 1.0, x[i]))
        wp.atomic_add(d, k, wp.vec2d(wp.float64(x[i]), wp.float64(0.1)))
    wp.atomic_add(v, i % 5, wp.vec3(0.1, x[i], 0.3))


def vectors(n: int = 5_003) -> Found:
    """Vectors, in loops whose length varies by thread; doubles too. Some elements keep their -0.0."""
    count = np.random.default_rng(32).integers(0, 60, n).astype(np.int32)
    v, d = wp.full(130, wp.vec3(-0.0), dtype=wp.vec3), wp.zeros(60, dtype=wp.vec2d)
    wp.launch(vectors_kernel, dim=n, inputs=[wp.array(normal(n)), wp.array(count), v, d])
    return {"v": v.numpy(), "d": d.numpy()}


@wp.kernel
def beside_kernel(
    x: wp.array(dtype=float), where: wp.array(dtype=int), table: wp.array(dtype=wp.vec3), other: wp.array(dtype=float),
    total: wp.array(dtype=float), count: wp.array(dtype=int),
):
    i = wp.tid()
    for k in range(wp.len(table)):
        wp.atomic_add(table, k, wp.vec3(x[i], 0.1, float(k)) * x[i])
    wp.atomic_add(other, where[i], x[i])
    wp.atomic_add(other, where[i] // 2, 0.3)
    wp.atomic_add(total, 0, x[i])
    wp.atomic_add(count, where[i], 1)


def beside() -> Found:
    """Slots beside copies and sums, with few threads (copies are refused) and with many."""
    found = {}
    for n in (700, 40_003):
        where = wp.array(np.random.default_rng(33).integers(0, 90, n).astype(np.int32))
        table, other = wp.zeros(21, dtype=wp.vec3), wp.zeros(90, dtype=float)
        total, count = wp.zeros(1, dtype=float), wp.zeros(90, dtype=int)
        wp.launch(beside_kernel, dim=n, inputs=[wp.array(normal(n)), where, table, other, total, count])
        arrays = {"table": table, "other": other, "total": total, "count": count, "where": where}
        found |= {f"{name} {n}": a.numpy() for name, a in arrays.items()}
    return found


@wp.kernel
def grid_kernel(x: wp.array2d(dtype=float), table: wp.array2d(dtype=float), flat: wp.array(dtype=float)):
    i, j = wp.tid()
    for k in range(table.shape[0]):
        wp.atomic_add(table, k, 1, x[i, j] * float(k))
        wp.atomic_add(table, k, j % 3, 0.2)
        wp.atomic_add(flat, i % wp.len(flat), x[i, j])
        wp.atomic_add(flat, k % wp.len(flat), 0.01 * x[i, j])


def grids() -> Found:
    """Grids of rank 2 with long and short rows; targets dense, transposed and with gaps, from behind."""
    found = {}
    for rows, columns in ((50, 37), (400, 5), (30, 64), (3, 1001), (90, 16)):
        x, flat = wp.array(normal(rows, columns)), wp.zeros(11, dtype=float)
        base = wp.zeros((6, 40), dtype=float)
        tables = wp.zeros((20, 3), dtype=float), wp.zeros((3, 20), dtype=float).transpose(), base[:, ::13].transpose()
        for name, table in zip(("dense", "turned", "gaps"), tables, strict=True):
            wp.launch(grid_kernel, dim=(rows, columns), inputs=[x, table, flat])
            found[f"{name} {rows} {columns}"] = table.numpy()
        found[f"flat {rows} {columns}"], found[f"base {rows} {columns}"] = flat.numpy(), base.numpy()
    return found


@wp.kernel
def forces_kernel(x: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3), n: int):
    i = wp.tid()
    xi = x[i]
    a = wp.vec3(0.0, 0.0, 0.0)
    for j in range(n):
        d = x[j] - xi
        inverse = 1.0 / wp.sqrt(wp.dot(d, d) + 0.01)
        a += d * (inverse * inverse * inverse)
    f[i] = a


@wp.kernel
def layer_kernel(
    x: wp.array2d(dtype=float), w: wp.array2d(dtype=float), b: wp.array(dtype=float), y: wp.array2d(dtype=float)
):
    i = wp.tid()
    for r in range(w.shape[0]):
        s = b[r]
        for c in range(w.shape[1]):
            s += w[r, c] * x[i, c]
        y[i, r] = wp.tanh(s)


@wp.kernel
def squares_kernel(y: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(loss, 0, y[i, j] * y[i, j])


def gradients(n: int = 333) -> Found:
    """Gradients of bodies that attract each other, and of the weights of two layers."""
    x = wp.array(normal(n, 3), dtype=wp.vec3, requires_grad=True)
    f = wp.zeros(n, dtype=wp.vec3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(forces_kernel, dim=n, inputs=[x, f, n])
    tape.backward(grads={f: wp.array(normal(n, 3, seed=6), dtype=wp.vec3)})
    found = {"x": x.grad.numpy()}
    sizes, arrays = (9, 17, 5), []
    for a, b in zip(sizes, sizes[1:]):
        arrays += [wp.array(normal(b, a), requires_grad=True), wp.array(normal(b), requires_grad=True)]
    inputs = wp.array(normal(4 * n, 9), requires_grad=True)
    hidden, out = (wp.zeros((4 * n, k), dtype=float, requires_grad=True) for k in sizes[1:])
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(layer_kernel, dim=4 * n, inputs=[inputs, *arrays[:2], hidden])
        wp.launch(layer_kernel, dim=4 * n, inputs=[hidden, *arrays[2:], out])
        wp.launch(squares_kernel, dim=out.shape, inputs=[out, loss])
    tape.backward(loss)
    return found | {f"layer {k}": a.grad.numpy() for k, a in enumerate([*arrays, inputs])}


BEYOND = 1_200_000  # scalars whose slots take more memory than they may


def beyond() -> Found:
    """A table too large for slots: the same updates in another way."""
    return {"table": mixed(2_011, BEYOND)["table"][:203]}


PROGRAMS = {
    "mixed places": mixed,
    "few threads": lambda: mixed(70, 33),
    "vectors in loops": vectors,
    "slots beside copies": beside,
    "grids": grids,
    "gradients": gradients,
    "beyond slots": beyond,
}
