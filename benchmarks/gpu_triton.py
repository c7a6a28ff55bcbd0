"""Kernels in Triton for ``gpu_peers.py``; Triton reads their source from a file of their own."""

import triton
import triton.language as tl


@triton.jit
def saxpy_kernel(x, y, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(y + at, a * tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def nbody_kernel(p, m, out, n, BLOCK: tl.constexpr, TILE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y, z = tl.load(p + i), tl.load(p + n + i), tl.load(p + 2 * n + i)
    ax = tl.zeros((BLOCK,), tl.float32)
    ay = tl.zeros((BLOCK,), tl.float32)
    az = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, TILE):
        j = start + tl.arange(0, TILE)
        dx = tl.load(p + j)[None, :] - x[:, None]
        dy = tl.load(p + n + j)[None, :] - y[:, None]
        dz = tl.load(p + 2 * n + j)[None, :] - z[:, None]
        inv = 1.0 / tl.sqrt(dx * dx + dy * dy + dz * dz + 1.0e-3)
        s = tl.load(m + j)[None, :] * inv * inv * inv
        ax += tl.sum(dx * s, 1)
        ay += tl.sum(dy * s, 1)
        az += tl.sum(dz * s, 1)
    tl.store(out + i, ax)
    tl.store(out + n + i, ay)
    tl.store(out + 2 * n + i, az)


@triton.jit
def mandelbrot_kernel(counts, size, steps, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx = 3.0 * (i % size).to(tl.float32) / size - 2.0
    cy = 3.0 * (i // size).to(tl.float32) / size - 1.5
    x = tl.zeros((BLOCK,), tl.float32)
    y = tl.zeros((BLOCK,), tl.float32)
    k = tl.zeros((BLOCK,), tl.int32)
    for _ in range(steps):
        inside = x * x + y * y < 4.0
        t = x * x - y * y + cx
        y = tl.where(inside, 2.0 * x * y + cy, y)
        x = tl.where(inside, t, x)
        k += inside.to(tl.int32)
    tl.store(counts + i, k, i < size * size)
