"""A program with the things that programs say, for type checkers (and it runs): see ``test_stubs.py``."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

import treadle as wp

wp.init()
wp.config.verify_fp = False
wp.config.kernel_cache_dir = str(wp.config.kernel_cache_dir)


@wp.struct
class Particle:
    position: wp.vec3
    mass: float


@wp.func
def spring(x: wp.vec3, y: wp.vec3, stiffness: float) -> wp.vec3:
    d = y - x
    return wp.normalize(d) * (stiffness * (wp.length(d) - 1.0))


@wp.func
def both(x: float) -> tuple[float, float]:
    return wp.sin(x), wp.cos(x)


@wp.func
def turned(x: wp.ref[float]) -> None:
    x = -x


@wp.kernel
def move(x: wp.array[wp.vec3], v: wp.array[wp.vec3], m: wp.array[float], grid: wp.array2d[float], dt: float):
    i = wp.tid()
    s, c = both(m[i])
    f = spring(x[i], x[(i + 1) % x.shape[0]], 10.0) + wp.vec3(0.0, -9.81, 0.0) * m[i]
    v[i] += f * (dt / m[i])
    x[i] += v[i] * dt
    if x[i].y < 0.0 and wp.dot(v[i], v[i]) > 1.0e-6:
        p = x[i]
        p.y = 0.0
        p[2] = wp.max(p.z, 0.0)
        x[i] = p
    wp.atomic_add(m, i, s * c)
    grid[i, 0] = wp.clamp(grid[i, 1], 0.0, 1.0)
    row = grid[i]
    row[0] = float(i)
    turned(row[0])


@wp.kernel(enable_backward=False)
def rotate(q: wp.array[wp.quat], poses: wp.array[wp.transform], a: wp.array[wp.mat33], out: wp.array[wp.vec3]):
    i, j = wp.tid()
    R = wp.quat_to_matrix(q[i])
    w = R * wp.vec3(1.0, 2.0, 3.0)
    w = R @ w + wp.transform_get_translation(poses[j])
    w = wp.quat_rotate(q[i], w)
    w = wp.transform_point(poses[j], w)
    A = a[i] * R * 2.0 - wp.identity(n=3, dtype=float)
    U, sigma, V = wp.svd3(A)
    a[i] = U * wp.diag(sigma) * wp.transpose(V)
    out[i] = wp.cross(w, sigma) / wp.determinant(A)
    out[j] = wp.where(w[0] > 0.0, w, -w)
    state = wp.rand_init(42, i)
    r = wp.randf(state) * wp.sqrt(wp.abs(w.x)) + wp.min(1.0, w.y)
    n = (wp.int32(r) + int(wp.argmax(w))) % 3
    t = wp.transform(w, q[i])
    out[n] = t.p * t.q.w
    bits = wp.uint32(n) ^ wp.uint32(0x9E3779B9)
    a[n][0, 0] = float(bits >> wp.uint32(16))


@wp.kernel
def others(blocks: wp.array[wp.vec2, Literal[3]], factor: Any, chosen: wp.indexedarray[float]):
    i, j, k = wp.tid()
    blocks[i, j, k] = blocks[i, j, k] * factor + wp.vec2(1.0, 2.0)
    chosen[i] = chosen[i] + 1.0


@wp.func
def doubled(t: wp.tile[float, Literal[4]]):
    return t * 2.0


@wp.kernel
def tiles(x: wp.array[float], out: wp.array[float]):
    local = wp.zeros(shape=4, dtype=float)
    local[0] += x[0]
    wp.tile_store(out, doubled(wp.tile_load(x, shape=4)))
    out[0] = local[0]


n = 4
x = wp.zeros(n, dtype=wp.vec3, requires_grad=True)
v = wp.zeros_like(x)
m = wp.array(np.ones(n, dtype=np.float32), dtype=float, device="cpu")
grid = wp.empty((n, 2), dtype=float)
numbers = wp.array([1.0, 2.0], dtype=float)
tape = wp.Tape()
with tape:
    wp.launch(move, dim=n, inputs=[x, v, m, grid, 0.01])
q, poses = wp.full(n, wp.quat_identity(), dtype=wp.quat), wp.zeros(n, dtype=wp.transform)
wp.launch(rotate, dim=(n, n), inputs=[q, poses, wp.ones(n, dtype=wp.mat33)], outputs=[x], device="cpu")
wp.launch(others, dim=(1, 1, 1), inputs=[wp.zeros((1, 1, 1), dtype=wp.vec2), 2.0, m[wp.array([0], dtype=int)]])
wp.launch_tiled(tiles, dim=1, inputs=[m, wp.zeros_like(m)], block_dim=32)
tape.zero()
host: np.ndarray = x.numpy()
x.fill_(wp.vec3(0.0, 0.0, 0.0))
x.zero_()
x.assign(host)
y = wp.clone(x).reshape((2, 2)).transpose().contiguous().flatten()
size: int = x.size + x.shape[0] + x.ndim
grad = x.grad
if grad is not None:
    grad.zero_()
wp.copy(v, x)
z = m + m * 2.0
p = Particle()
p.mass = 2.0
total = wp.utils.array_sum(m)
wp.utils.array_scan(m, m, inclusive=True)
command = wp.launch(move, dim=n, inputs=[x, v, m, grid, 0.01], record_cmd=True)
vec5 = wp.types.vector(length=5, dtype=float)
third: float = vec5(1.0)[2] + wp.vec3d(1.0, 2.0, 3.0).x + wp.float64(2.0) + wp.pi + z.numpy()[0]
with wp.ScopedTimer("quiet", active=False), wp.ScopedDevice("cpu"):
    wp.synchronize()
force: wp.vec3 = spring(wp.vec3(), wp.vec3(1.0, 0.0, 0.0), 1.0)
height: float = force.y + wp.get_device().is_cpu
