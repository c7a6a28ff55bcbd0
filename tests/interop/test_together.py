"""Threads, JAX and PyTorch in one process, and processes that it forks."""

import os
import threading

import numpy as np
import pytest

import treadle as wp

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")
jnp = jax.numpy


@wp.kernel
def bent(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s * wp.sin(x[i])


def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    between = wp.empty_like(x)
    wp.launch(bent, dim=len(x), inputs=[x, 2.0], outputs=[between])
    wp.launch(bent, dim=len(x), inputs=[between, 1.0], outputs=[y])


in_jax, in_torch = wp.jax_callable(twice), wp.torch_function(bent)
gradient = jax.jit(jax.grad(lambda x: in_jax(x)[0].sum()))
X = np.linspace(0, 3, 30_000, dtype=np.float32)
WANTED = 2 * np.cos(X) * np.cos(2 * np.sin(X))


def rounds(number: int, failed: list) -> None:
    """Launches, graphs, JAX and PyTorch, by one thread."""
    try:
        x, y = wp.array(X, dtype=float), wp.zeros(len(X), dtype=float)
        t = torch.tensor(X, requires_grad=True)
        with wp.ScopedCapture() as capture:
            twice(x, y)
        for k in range(20):
            scale = float(number * 20 + k)
            wp.launch(bent, dim=len(X), inputs=[x, scale], outputs=[y])
            assert np.allclose(y.numpy(), scale * np.sin(X), rtol=1e-5, atol=1e-4)
            wp.capture_launch(capture.graph)
            assert np.allclose(y.numpy(), np.sin(2 * np.sin(X)), atol=1e-5)
            assert np.allclose(gradient(X), WANTED, atol=1e-5)
            t.grad = None
            in_torch(t, scale).sum().backward()
            assert np.allclose(t.grad, scale * np.cos(X), rtol=1e-5, atol=1e-4)
    except BaseException as error:
        failed.append(error)


def test_four_threads_launch_at_once_beside_jax_and_torch():
    failed: list = []
    threads = [threading.Thread(target=rounds, args=(k, failed)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed, failed[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_forked_processes_launch():
    gradient(X)
    x, y = wp.array(X, dtype=float), wp.zeros(len(X), dtype=float)
    wp.launch(bent, dim=len(X), inputs=[x, 1.0], outputs=[y])
    child = os.fork()
    if not child:  # what JAX started is not there; launches and graphs need none of it
        status = 1
        try:
            wp.launch(bent, dim=len(X), inputs=[x, 3.0], outputs=[y])
            with wp.ScopedCapture() as capture:
                wp.launch(bent, dim=len(X), inputs=[y, 2.0], outputs=[y])
            wp.capture_launch(capture.graph)
            status = int(not np.allclose(y.numpy(), 2 * np.sin(3 * np.sin(X)), atol=1e-5))
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.allclose(gradient(X), WANTED, atol=1e-5)


def test_double_precision():
    @wp.kernel
    def cubed(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
        i = wp.tid()
        y[i] = x[i] * x[i] * x[i]

    f = wp.jax_kernel(cubed)
    with pytest.raises(TypeError, match="jax_enable_x64"):
        f(jnp.ones(2))
    with jax.enable_x64(True):
        x = jnp.array([1.0, 1.0 + 2.0**-40])
        assert float(jax.grad(lambda x: f(x)[0].sum())(x)[1]) == 3 * float(x[1]) ** 2 and x.dtype == np.float64
