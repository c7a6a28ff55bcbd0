"""The programs of ``gpu.py``, once for every module with treadle's interface and once for each library beside it.

``kernels.kernels(wp)`` makes the kernels for a module. Each function of a library gives the call to be timed, what
waits for it, and the result as NumPy.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np

STEPS = 256  # of the Mandelbrot set


def torch_programs():
    """PyTorch's own functions."""
    import torch

    where = torch.device("cuda:0")
    give = partial(torch.as_tensor, device=where)

    def saxpy(x, y, a):
        x, y = give(x), give(y)
        return lambda: y.add_(x, alpha=a), lambda: y.cpu().numpy()

    def histogram(x, bins):
        x, counts = give(x).long(), torch.zeros(bins, dtype=torch.long, device=where)
        return lambda: counts.add_(torch.bincount(x, minlength=bins)), lambda: counts.cpu().numpy()

    def scatter(x, w, bins):
        x, w, sums = give(x).long(), give(w), torch.zeros(bins, device=where)
        return lambda: sums.index_add_(0, x, w), lambda: sums.cpu().numpy()

    def total(w):
        w, out = give(w), torch.zeros(1, device=where)
        return lambda: out.add_(w.sum()), lambda: out.cpu().numpy()

    def nothing():
        one = torch.zeros(1, device=where)
        return lambda: one.zero_(), lambda: one.cpu().numpy()

    return SimpleNamespace(saxpy=saxpy, histogram=histogram, scatter=scatter, total=total, nothing=nothing,
                           wait=torch.cuda.synchronize)  # fmt: skip


def triton_programs():
    """The same kernels in Triton, launched on PyTorch's tensors."""
    import torch
    import triton
    from gpu_triton import mandelbrot_kernel, nbody_kernel, saxpy_kernel

    where = torch.device("cuda:0")
    give = partial(torch.as_tensor, device=where)

    def saxpy(x, y, a):
        x, y, n = give(x), give(y), len(x)
        grid = (triton.cdiv(n, 1024),)
        return lambda: saxpy_kernel[grid](x, y, a, n, BLOCK=1024), lambda: y.cpu().numpy()

    def nbody(p, m):
        n = len(p)
        planes, m, out = give(np.ascontiguousarray(p.T)), give(m), torch.zeros((3, n), device=where)
        grid = (triton.cdiv(n, 64),)
        return lambda: nbody_kernel[grid](planes, m, out, n, BLOCK=64, TILE=64), lambda: out.cpu().numpy().T

    def mandelbrot(size):
        counts = torch.zeros((size, size), dtype=torch.int32, device=where)
        grid = (triton.cdiv(size * size, 256),)
        return lambda: mandelbrot_kernel[grid](counts, size, STEPS, BLOCK=256), lambda: counts.cpu().numpy()

    return SimpleNamespace(saxpy=saxpy, nbody=nbody, mandelbrot=mandelbrot, wait=torch.cuda.synchronize)


_CUPY = """
extern "C" __global__ void nbody(const float* p, const float* m, float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = p[3*i], y = p[3*i+1], z = p[3*i+2], ax = 0, ay = 0, az = 0;
  for (int j = 0; j < n; ++j) {
    float dx = p[3*j] - x, dy = p[3*j+1] - y, dz = p[3*j+2] - z;
    float inv = 1.0f / sqrtf(dx*dx + dy*dy + dz*dz + 1.0e-3f);
    float s = m[j] * inv * inv * inv;
    ax += dx * s; ay += dy * s; az += dz * s;
  }
  a[3*i] = ax; a[3*i+1] = ay; a[3*i+2] = az;
}
extern "C" __global__ void mandelbrot(int* counts, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size * size) return;
  float cx = 3.0f * (i % size) / size - 2.0f, cy = 3.0f * (i / size) / size - 1.5f, x = 0, y = 0;
  int k = 0;
  while (k < 256 && x*x + y*y < 4.0f) { float t = x*x - y*y + cx; y = 2.0f*x*y + cy; x = t; ++k; }
  counts[i] = k;
}
extern "C" __global__ void nothing(int n) {}
"""


def cupy_programs():
    """CuPy's functions, and kernels in CUDA C++ by NVRTC."""
    import cupy

    module = cupy.RawModule(code=_CUPY)

    def saxpy(x, y, a):
        x, y = cupy.asarray(x), cupy.asarray(y)
        kernel = cupy.ElementwiseKernel("float32 a, float32 x", "float32 y", "y = a * x + y", "saxpy")
        return lambda: kernel(np.float32(a), x, y), lambda: y.get()

    def nbody(p, m):
        kernel, n = module.get_function("nbody"), len(p)
        p, m, a = cupy.asarray(p), cupy.asarray(m), cupy.zeros((n, 3), cupy.float32)
        return lambda: kernel((-(-n // 256),), (256,), (p, m, a, np.int32(n))), lambda: a.get()

    def mandelbrot(size):
        kernel, counts = module.get_function("mandelbrot"), cupy.zeros((size, size), cupy.int32)
        return lambda: kernel((-(-size * size // 256),), (256,), (counts, np.int32(size))), lambda: counts.get()

    def histogram(x, bins):
        x, counts = cupy.asarray(x), cupy.zeros(bins, cupy.int64)
        return lambda: cupy.add(counts, cupy.bincount(x, minlength=bins), out=counts), lambda: counts.get()

    def scatter(x, w, bins):
        x, w, sums = cupy.asarray(x), cupy.asarray(w), cupy.zeros(bins, cupy.float32)
        return lambda: cupy.add.at(sums, x, w), lambda: sums.get()

    def nothing():
        kernel = module.get_function("nothing")
        return lambda: kernel((1,), (32,), (np.int32(1),)), lambda: np.zeros(1)

    return SimpleNamespace(saxpy=saxpy, nbody=nbody, mandelbrot=mandelbrot, histogram=histogram, scatter=scatter,
                           nothing=nothing, wait=lambda: cupy.cuda.Device().synchronize())  # fmt: skip
