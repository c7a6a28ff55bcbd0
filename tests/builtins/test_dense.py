"""Dense algebra of one thread: against NumPy, and through to the derivatives."""

import numpy as np

import treadle as wp

Floats = wp.array(dtype=float)


@wp.kernel
def multiply(m: int, n: int, p: int, t1: int, t2: int, A: Floats, B: Floats, C: Floats):
    wp.dense_gemm(m, n, p, t1, t2, A, B, C)


@wp.kernel
def factor_and_solve(n: int, A: Floats, extra: float, L: Floats, b: Floats, x: Floats):
    wp.dense_chol(n, A, extra, L)
    wp.dense_solve(n, A, L, b, x)


def test_products_of_matrices_kept_either_way():
    rng = np.random.default_rng(1)
    for t1, t2 in ((0, 0), (0, 1), (1, 0), (1, 1)):
        a, b = rng.random((4, 2) if t1 else (2, 4)), rng.random((3, 4) if t2 else (4, 3))
        c = wp.full(6, 9.0, dtype=float)
        given = [wp.array(x.ravel(), dtype=float) for x in (a, b)]
        wp.launch(multiply, dim=1, inputs=[2, 3, 4, t1, t2, *given, c])
        np.testing.assert_allclose(c.numpy().reshape(2, 3), (a.T if t1 else a) @ (b.T if t2 else b), rtol=1e-6)


def test_a_system_is_solved_and_its_derivatives_go_through_the_factor():
    rng = np.random.default_rng(2)
    half = rng.random((3, 3))
    whole, extra, right = half @ half.T + np.eye(3), 0.5, np.array([1.0, 2.0, 3.0])
    A = wp.array(whole.ravel(), dtype=float, requires_grad=True)
    b = wp.array(right, dtype=float, requires_grad=True)
    L, x = wp.full(9, 7.0, dtype=float, requires_grad=True), wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(factor_and_solve, dim=1, inputs=[3, A, extra, L, b, x])
    system = whole + extra * np.eye(3)
    lower = np.linalg.cholesky(system)
    np.testing.assert_allclose(L.numpy().reshape(3, 3), np.where(np.tri(3) > 0, lower, 7.0), rtol=1e-5)
    solution = np.linalg.solve(system, right)
    np.testing.assert_allclose(x.numpy(), solution, rtol=1e-5)
    tape.backward(grads={x: wp.ones(3, dtype=float)})
    flow = np.linalg.solve(system, np.ones(3))  # of b; that of the symmetric A is -flow xᵀ, seen by its lower half
    np.testing.assert_allclose(b.grad.numpy(), flow, rtol=1e-5)
    both = -np.outer(flow, solution)
    wanted = np.tril(both + both.T) - np.diag(np.diag(both))
    np.testing.assert_allclose(A.grad.numpy().reshape(3, 3), wanted, rtol=1e-4, atol=1e-6)
