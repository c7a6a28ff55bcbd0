"""Kernels that several benchmarks time, made for every module with treadle's interface."""

from types import SimpleNamespace


def kernels(wp) -> SimpleNamespace:
    """The kernels, for treadle or Warp."""

    @wp.kernel
    def nothing(n: int):
        i = wp.tid()  # noqa: F841

    @wp.kernel
    def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    @wp.kernel
    def nbody(p: wp.array(dtype=wp.vec3), m: wp.array(dtype=float), a: wp.array(dtype=wp.vec3), n: int):
        i = wp.tid()
        here = p[i]
        total = wp.vec3(0.0, 0.0, 0.0)
        for j in range(n):
            d = p[j] - here
            inv = 1.0 / wp.sqrt(wp.dot(d, d) + 1.0e-3)
            total += d * (m[j] * inv * inv * inv)
        a[i] = total

    @wp.kernel
    def mandelbrot(counts: wp.array2d(dtype=int), size: int):
        row, column = wp.tid()
        cx = 3.0 * float(column) / float(size) - 2.0
        cy = 3.0 * float(row) / float(size) - 1.5
        x = float(0.0)
        y = float(0.0)
        k = int(0)
        while k < 256 and x * x + y * y < 4.0:
            t = x * x - y * y + cx
            y = 2.0 * x * y + cy
            x = t
            k += 1
        counts[row, column] = k

    @wp.kernel
    def histogram(x: wp.array(dtype=int), counts: wp.array(dtype=int)):
        i = wp.tid()
        wp.atomic_add(counts, x[i], 1)

    @wp.kernel
    def scatter(x: wp.array(dtype=int), w: wp.array(dtype=float), sums: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_add(sums, x[i], w[i])

    @wp.kernel
    def total(w: wp.array(dtype=float), sums: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_add(sums, 0, w[i])

    return SimpleNamespace(**{name: one for name, one in locals().items() if name != "wp"})
