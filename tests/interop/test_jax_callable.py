"""Functions that launch kernels as functions of JAX."""

import doctest
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import treadle as wp

jax = pytest.importorskip("jax")
jnp = jax.numpy
Mode = wp.JaxCallableGraphMode
calls = []


@wp.kernel
def scaled(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s * x[i] * x[i]


def twice(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    calls.append("twice")
    half = wp.empty_like(x)
    wp.launch(scaled, dim=x.shape, inputs=[x, s], outputs=[half])
    wp.launch(scaled, dim=x.shape, inputs=[half, s], outputs=[y])


def looks(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    calls.append("looks")
    wp.launch(scaled, dim=x.shape, inputs=[x, float(x.numpy().sum())], outputs=[y])


def own_gradient(x: wp.array(dtype=float), g: wp.array(dtype=float)):
    y = wp.zeros_like(x, requires_grad=True)
    a = wp.clone(x, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(scaled, dim=x.shape, inputs=[a, 3.0], outputs=[y])
    tape.backward(grads={y: wp.ones_like(y)})
    wp.copy(g, a.grad)


def collect(x: wp.array(dtype=float), total: wp.array(dtype=float), last: wp.array(dtype=float)):
    wp.copy(last, total)
    wp.launch(scaled, dim=x.shape, inputs=[x, 1.0], outputs=[total])


def own_graph(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    with wp.ScopedCapture() as capture:
        between = wp.zeros_like(x)
        wp.launch(scaled, dim=x.shape, inputs=[x, 1.0], outputs=[between])
    wp.capture_launch(capture.graph)
    wp.launch(scaled, dim=x.shape, inputs=[between, 2.0], outputs=[y])


def keeps(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.launch(scaled, dim=x.shape, inputs=[x, 1.0], outputs=[y])
    kept[:] = [x, y]


kept = []

X = jnp.arange(5.0)


def test_it_is_captured_once_for_a_shape():
    f = wp.jax_callable(twice)
    g = jax.jit(lambda x: f(x, 3.0)[0])
    calls.clear()
    for k in range(5):
        assert np.allclose(g(X + k), 27 * (X + k) ** 4)
    jax.jit(lambda x: f(x, 3.0)[0] + 1)(X)
    assert calls == ["twice"] and f.graph_cache_size == 1
    wp.clear_jax_callable_graph_cache(f)
    assert f.graph_cache_size == 0 and np.allclose(g(X), 27 * X**4) and calls == ["twice"] * 2
    assert f.graph_cache_size == 1 and np.allclose(g(X), 27 * X**4)
    few = wp.jax_callable(twice, graph_cache_max=2)
    kept = [jax.jit(lambda x: few(x, 1.0)[0]) for _ in range(4)]
    for _ in range(2):
        for n, h in enumerate(kept):
            assert np.allclose(h(X[: n + 1]), X[: n + 1] ** 4) and few.graph_cache_size <= 2


def test_every_mode_does_the_same():
    for mode in Mode:
        assert np.allclose(jax.jit(wp.jax_callable(twice, graph_mode=mode), static_argnums=1)(X, 2.0)[0], 8 * X**4)
        assert np.allclose(jax.jit(wp.jax_callable(own_gradient, graph_mode=int(mode)))(X)[0], 6 * X)
    calls.clear()
    f = jax.jit(wp.jax_callable(twice, graph_mode=Mode.NONE), static_argnums=1)
    for _ in range(3):
        f(X, 2.0)
    assert calls == ["twice"] * 3


def test_functions_may_capture_graphs_of_their_own():
    for mode in Mode:
        f = wp.jax_callable(own_graph, graph_mode=mode)
        assert np.allclose(jax.jit(f)(X)[0], 2 * X**4) and f.graph_cache_size == (mode != Mode.NONE)
    gradient = jax.jit(jax.grad(lambda x: wp.jax_callable(own_graph)(x)[0].sum()))
    assert np.allclose(gradient(X), 8 * X**3)


def test_arrays_that_a_function_keeps_stay():
    jax.jit(wp.jax_callable(keeps, graph_mode=Mode.NONE))(X)
    others = [jnp.full(5, k) for k in range(50)]
    assert kept[0].list() == X.tolist() and kept[1].list() == (X**2).tolist() and len(others) == 50


def test_a_batch_may_be_a_longer_first_axis():
    f = wp.jax_callable(twice, vmap_method="merge")
    rows = jnp.arange(12.0).reshape(3, 4)
    calls.clear()
    assert np.allclose(jax.jit(jax.vmap(lambda x: f(x, 2.0)[0]))(rows), 8 * rows**4) and calls == ["twice"]
    gradient = jax.vmap(jax.vmap(jax.grad(lambda x: f(x, 1.0)[0].sum())), in_axes=1, out_axes=1)
    assert np.allclose(gradient(rows[..., None]), 4 * rows[..., None] ** 3)

    def without(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        wp.copy(y, x)

    with pytest.raises(ValueError, match="vmap_method is one of"):
        wp.jax_callable(without, vmap_method="mixed")


def many(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    a = wp.clone(x)
    for _ in range(9):
        wp.launch(scaled, dim=x.shape, inputs=[a, 0.9], outputs=[a])
    wp.copy(y, a)


def test_schedules_keep_the_bits_of_gradients():
    rates = [wp.jax_callable(many, checkpoint=schedule) for schedule in ("all", 2, "sqrt", "64B")]
    found = [jax.jit(jax.grad(lambda x, f=f: f(x)[0].sum()))(X / 5) for f in rates]
    assert all(np.array_equal(found[0], other) for other in found[1:])
    with pytest.raises(ValueError, match="checkpoint is"):
        wp.jax_callable(many, checkpoint=-1)


def test_what_reads_on_the_host_is_called_each_time():
    f = wp.jax_callable(looks)
    calls.clear()
    with pytest.warns(UserWarning, match="cannot be captured") as told:
        g = jax.jit(f)
        first = g(X)[0]
        assert np.allclose(first, X.sum() * X**2) and np.allclose(g(X + 1)[0], (X + 1).sum() * (X + 1) ** 2)
        assert calls == ["looks"] * 3  # the capture that failed, and two calls
        assert np.allclose(g(X[:1])[0], X[:1] ** 3) and len(told) == 1  # other shapes, too


def test_reverse_mode_and_batches():
    f = wp.jax_callable(twice)
    close = np.testing.assert_allclose
    close(jax.jit(jax.grad(lambda x: f(x, 3.0)[0].sum()))(X), 108 * X**3, rtol=1e-5)
    rows = jnp.stack([X, X + 1])
    close(jax.vmap(lambda x: f(x, 3.0)[0])(rows), 27 * rows**4, rtol=1e-5)
    close(jax.vmap(jax.grad(lambda x: f(x, 3.0)[0].sum()))(rows), 108 * rows**3, rtol=1e-5)


def steps(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    """Copies, fills, a graph of its own, arrays stepped in place."""
    wp.launch(scaled, dim=x.shape, inputs=[x, 1.0], outputs=[z])
    wp.launch(mixed, dim=x.shape, inputs=[z], outputs=[y])
    with wp.ScopedCapture() as capture:
        b = wp.clone(y)
        wp.launch(mixed, dim=x.shape, inputs=[b], outputs=[y])
    wp.capture_launch(capture.graph)
    wp.copy(z, y, 1, 2, 3)
    z[1:2].fill_(0.0)


@wp.kernel
def mixed(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] += x[i] * x[i]


def steps_of_jax(x, y):
    z = x * x
    y = y + z * z
    y = y + y * y
    z = z.at[1:4].set(y[2:5]).at[1].set(0.0)
    return y, z


@pytest.mark.parametrize("mode", [Mode.JAX, Mode.NONE])
def test_forward_mode_and_second_derivatives(mode):
    f = wp.jax_callable(steps, 2, in_out_argnames=["y"], graph_mode=mode)
    w, start = jnp.linspace(0.5, 1.0, 5), (jnp.linspace(-0.6, 0.7, 5), jnp.linspace(0.5, -0.3, 5))

    def loss(f):
        return lambda x, y: sum([(a * w).sum() for a in f(x, y)])

    def derivatives(f):
        found = [jax.hessian(loss(f), (0, 1))(*start)]
        if mode:
            found.append(jax.jvp(f, start, (w, start[0])))
            found.append(jax.vmap(jax.jacfwd(f), in_axes=(0, None))(jnp.stack([start[0], w]), start[1]))
        return found

    found, wanted = (jax.jit(lambda f=f: derivatives(f))() for f in (f, steps_of_jax))
    if mode:
        found.append(jax.jit(jax.jacrev(jax.jacfwd(loss(f), (0, 1)), (0, 1)))(*start))
        wanted.append(wanted[0])
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_what_has_no_forward_mode_says_so():
    with pytest.raises(wp.KernelGradientError, match="forward mode through what a tape records"):
        jax.jvp(wp.jax_callable(own_gradient), (X,), (X,))
    with wp.ScopedCapture() as capture:
        wp.launch(scaled, dim=5, inputs=[total, 1.0], outputs=[total])

    def launches_a_graph(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        wp.capture_launch(capture.graph)
        wp.copy(y, x)

    with pytest.raises(wp.KernelGradientError, match="was not captured inside"):
        jax.jvp(wp.jax_callable(launches_a_graph), (X,), (X,))


@wp.kernel
def pass_on(x: wp.array(dtype=float), z: wp.array(dtype=float), w: wp.array(dtype=float), c: wp.array(dtype=int)):
    i = wp.tid()
    w[i] += z[i]
    if i == 0:
        c[0] -= 1


def loops(x: wp.array(dtype=float), n: wp.array(dtype=int), y: wp.array(dtype=float)):
    """y = x * n (n - 1) / 2; what a round leaves, the next one reads before it writes it."""
    c, z, w = wp.clone(n), wp.zeros(5, dtype=float), wp.zeros(5, dtype=float)

    def round():
        wp.launch(pass_on, dim=5, inputs=[x, z, w, c])
        wp.map(wp.add, z, x, out=z)

    wp.capture_while(c, round)
    wp.copy(y, w)


def branches(x: wp.array(dtype=float), n: wp.array(dtype=int), y: wp.array(dtype=float)):
    z = wp.zeros(5, dtype=float)
    wp.capture_if(n, lambda: wp.copy(z, x))
    wp.copy(y, z)


@pytest.mark.parametrize("f, factor", [(loops, lambda n: n * (n - 1) / 2), (branches, lambda n: float(n != 0))])
def test_tangents_go_through_bodies_as_often_as_they_run_and_reverse_mode_says_that_it_does_not(f, factor):
    called = wp.jax_callable(f)
    for n in (3, 0, 1, 4, 0):
        _, moved = jax.jvp(lambda x: called(x, jnp.array([n]))[0], (X,), (2 * X,))  # noqa: B023, used at once
        np.testing.assert_allclose(moved, 2 * X * factor(n), rtol=1e-6)
    with pytest.raises(wp.KernelGradientError, match="cannot go back through the body of wp.capture_"):
        jax.grad(lambda x: called(x, jnp.array([3]))[0].sum())(X)


total = wp.zeros(5, dtype=float)


def test_results_that_are_operands():
    f = wp.jax_callable(collect, num_outputs=2, in_out_argnames=["total"])
    total, last = jax.jit(f)(X, jnp.ones(5))
    assert total.tolist() == [0, 1, 4, 9, 16] and last.tolist() == [1] * 5
    g = wp.jax_callable(collect, num_outputs=2, in_out_argnames=["total"], output_dims={"last": 5})
    assert g(X, jnp.ones(5))[1].shape == (5,)


def wrong(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    raise RuntimeError("no such thing")


def bare(x, y: wp.array(dtype=float)):
    pass


def test_what_goes_wrong_is_said():
    with pytest.raises(wp.LaunchTypeError, match=r"scaled is a kernel(.|\n)*wp.jax_kernel\(scaled\)"):
        wp.jax_callable(scaled)
    with pytest.raises(RuntimeError, match="no such thing"):
        jax.jit(wp.jax_callable(wrong))(X)
    with pytest.raises(Exception, match="RuntimeError: no such thing"):
        jax.block_until_ready(jax.jit(wp.jax_callable(wrong, graph_mode=Mode.NONE))(X))
    with pytest.raises(wp.LaunchTypeError, match="argument 'x' of function bare has no type"):
        wp.jax_callable(bare)
    with pytest.raises(wp.LaunchTypeError, match="must be known while JAX traces"):
        jax.jit(wp.jax_callable(twice))(X, 2.0)
    with pytest.raises(wp.LaunchTypeError, match="must hold float32"):
        wp.jax_callable(twice)(X.astype(jnp.int32), 2.0)


def fills(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    x[1:3].fill_(7.0)
    wp.copy(y, x)


def launches_into(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.launch(scaled, dim=x.shape, inputs=[y, 1.0], outputs=[x])


@pytest.mark.parametrize("func", [fills, launches_into])
def test_inputs_are_not_written(func):
    x = jnp.arange(5.0)
    with pytest.raises(wp.KernelValueError, match=f"function {func.__name__} writes to its argument 'x', an input"):
        jax.jit(wp.jax_callable(func))(x)
    jax.block_until_ready(jax.jit(wp.jax_callable(func, graph_mode=Mode.NONE))(x))  # it has a copy
    assert x.tolist() == [0, 1, 2, 3, 4]


calls_made = wp.zeros(1, dtype=int)
weights = wp.array([1.0, 2.0, 3.0, 4.0, 5.0], dtype=float)


@wp.kernel
def weigh(x: wp.array(dtype=float), w: wp.array(dtype=float), n: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * w[i] + float(n[0])


@wp.kernel
def count(n: wp.array(dtype=int)):
    n[0] += 1


def with_state(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.launch(weigh, dim=5, inputs=[x, weights, calls_made], outputs=[y])
    wp.launch(count, dim=1, inputs=[calls_made])


def with_constants(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    zero = wp.zeros(1, dtype=int)
    wp.launch(weigh, dim=5, inputs=[x, weights, zero], outputs=[y])


def test_arrays_of_treadle_are_read_when_a_call_runs():
    f = wp.jax_callable(with_constants)
    g = jax.jit(lambda x: f(x)[0])
    assert np.allclose(g(X), X * np.arange(1, 6)) and np.allclose(jax.grad(lambda x: g(x).sum())(X), np.arange(1, 6))
    weights.fill_(2.0)
    assert np.allclose(g(X), 2 * X)
    weights.assign(np.arange(1.0, 6.0))


@pytest.mark.parametrize("clear", [False, True])
def test_arrays_of_treadle_that_are_written_are_state(clear):
    f = wp.jax_callable(with_state, has_side_effect=clear)
    g = jax.jit(lambda x: (f(x), x + 1)[1] if clear else [f(x), f(x)][0])
    calls_made.zero_()
    for n in range(1, 4):
        jax.block_until_ready(g(X))  # what nobody uses is done if that was asked for
        assert calls_made.list() == [n]
        if clear:
            wp.clear_jax_callable_graph_cache(f)
    rows = jax.vmap(lambda x: f(x)[0])(jnp.zeros((40, 5)))  # one after the other
    assert rows[:, 2].tolist() == [*range(3, 43)] and calls_made.list() == [43]
    with pytest.raises(wp.KernelGradientError, match="writes to an array that is no argument of it"):
        jax.jit(jax.grad(lambda x: f(x)[0].sum()))(X)
    assert calls_made.list() == [43]


def test_calls_that_write_to_state_are_alone():
    f = jax.jit(wp.jax_callable(with_state))
    jax.block_until_ready(f(X))
    calls_made.zero_()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: jax.block_until_ready(f(X)), range(400)))
    assert calls_made.list() == [400]


def counted(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    """Reads its state on the host, lets others run, and writes what it read, plus 1."""
    before = calls_made.list()[0]
    time.sleep(1e-3)
    y.assign(x.numpy() + before)
    calls_made.fill_(before + 1)


@pytest.mark.parametrize("mode", [Mode.NONE, Mode.JAX])  # the second falls back to the first
def test_calls_of_functions_that_are_not_captured_are_alone(mode):
    f = wp.jax_callable(counted, graph_mode=mode)
    g, h = jax.jit(lambda x: f(x)[0]), jax.jit(wp.jax_callable(with_state))
    calls_made.zero_()
    jax.block_until_ready(g(X))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: jax.block_until_ready([g, h][k % 2](X)), range(24)))
    assert calls_made.list() == [25]
    rows = jax.jit(jax.vmap(g))(jnp.zeros((6, 5)))  # one after the other
    assert rows[:, 0].tolist() == [*range(25, 31)]
    calls_made.zero_()
    assert calls_made.list() == [0] and jax.jit(lambda x: g(x) + g(x))(jnp.zeros(5)).tolist() == [1.0] * 5


@pytest.mark.parametrize("inner", [with_state, counted], ids=["captured", "called"])
def test_a_function_that_is_called_may_call_others_and_wait_for_them(inner):
    """XLA runs what it has much of on threads of its own; there too others may run while the caller has its turn, one
    at a time."""
    count = wp.jax_callable(inner, graph_mode=Mode.NONE if inner is counted else Mode.JAX)
    both = jax.jit(lambda x: count(x)[0] + count(2.0 * x)[0] + jnp.sin(x) @ (x[:, None] * x))

    def outer(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y.assign(np.asarray(both(jnp.asarray(x.numpy().copy()))))

    f, many = jax.jit(wp.jax_callable(outer, graph_mode=Mode.NONE)), jnp.ones(2000)
    jax.block_until_ready(both(many))  # compiled outside first
    calls_made.zero_()
    work = threading.Thread(target=lambda: [jax.block_until_ready(f(many)) for _ in range(3)], daemon=True)
    work.start()
    work.join(60)
    assert not work.is_alive() and calls_made.list() == [6]


def test_examples():
    module = __import__("treadle.interop.jax_callable", fromlist=["x"])
    assert doctest.testmod(module).failed == 0
