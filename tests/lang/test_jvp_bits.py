"""Values next to functions with rules of their own: bits of launches, of those with tangents, of adjoints."""

import numpy as np
import pytest

import treadle as wp


def bits_of_launches(T, V, M):
    """Kernels with products next to functions that have rules of their own: user's and builtins."""

    @wp.func
    def product(x: T, y: T):
        return x * y

    @wp.func_grad(product)
    def product_grad(x: T, y: T, adj: T):
        wp.adjoint[x] += y * adj
        wp.adjoint[y] += x * adj

    @wp.func
    def bent(x: T, y: T):
        return x + y * x

    @wp.func_grad(bent)
    def bent_grad(x: T, y: T, adj: T):
        wp.adjoint[x] += (T(1.0) + y) * adj
        wp.adjoint[y] += x * adj

    @wp.func
    def given_back(a: T, b: T, c: T):
        return a * b + product(c, a)

    @wp.func
    def handed_in(a: T, b: T, c: T):
        return bent(a * b, c) + bent(T(0.3), T(0.7) * c) - product(b, bent(T(1.0), a)) + a * b

    @wp.func
    def of_builtins(a: T, b: T, c: T):
        m = M(a, b, c, b, c, a, a + b, T(1.0), c)
        return a * b + wp.inverse(m)[0, 1] + wp.length(V(a * b, c, b)) * c + wp.normalize(V(a, b, c) * c)[1]

    @wp.func
    def in_loops(a: T, b: T, c: T):
        s = T(0.0)
        for j in range(3):
            s += product(a * T(j), b)
            s = s * c + bent(s, a * b)
        if s > a:
            s += a * b + product(a, b)
        return s

    def kernel_of(value):
        @wp.kernel(module="unique")
        def kernel(a: wp.array(dtype=T), b: wp.array(dtype=T), c: wp.array(dtype=T), k: wp.array(dtype=T),
                   z: wp.array(dtype=T)):  # fmt: skip
            i = wp.tid()
            z[i] = k[i] * (value(a[i], b[i], c[i]))

        return kernel

    return [kernel_of(value) for value in (given_back, handed_in, of_builtins, in_loops)]


@pytest.mark.parametrize(
    ("T", "V", "M"), [(wp.float32, wp.vec3f, wp.mat33f), (wp.float64, wp.vec3d, wp.mat33d)], ids=["f32", "f64"]
)
def test_values_next_to_functions_with_rules_have_the_bits_of_the_launch_forwards_and_backwards(T, V, M):
    rng = np.random.default_rng(1)
    inputs = [wp.array(rng.normal(size=4096), dtype=T, requires_grad=True) for _ in range(3)]
    one = wp.ones(4096, dtype=T, requires_grad=True)
    for kernel in bits_of_launches(T, V, M):
        plain, carried, taped = [wp.zeros(4096, dtype=T, requires_grad=True) for _ in range(3)]
        wp.launch(kernel, dim=4096, inputs=[*inputs, one], outputs=[plain])
        wp.jvp(kernel, dim=4096, inputs=[*inputs, one], outputs=[carried], tangents=inputs)
        np.testing.assert_array_equal(carried.numpy(), plain.numpy())
        with wp.Tape() as tape:
            wp.launch(kernel, dim=4096, inputs=[*inputs, one], outputs=[taped])
        taped.grad.fill_(1.0)
        tape.backward()
        np.testing.assert_array_equal(one.grad.numpy(), plain.numpy())  # the factor is what ran again
        tape.zero()
