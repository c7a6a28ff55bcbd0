"""Kernels as functions of JAX: values, batches, derivatives, meshes, errors."""

import doctest
import os
import subprocess
import sys

import numpy as np
import pytest

import treadle as wp

jax = pytest.importorskip("jax")
jnp = jax.numpy


@wp.kernel
def couple(x: wp.array(dtype=float), s: float, w: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    j = (i + 1) % x.shape[0]
    y[i] = wp.sin(x[i]) * x[j] * w[i] * s + w[j] * w[j]


def reference(x, s, w):
    return jnp.sin(x) * jnp.roll(x, -1) * w * s + jnp.roll(w, -1) ** 2


@wp.kernel
def rows(m: wp.array2d(dtype=float), total: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(total, i, m[i, j])


@wp.kernel
def highest(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_max(y, i // 3, x[i] * x[i])


@wp.kernel
def grow(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


@wp.struct
class Line:
    slope: float
    at: wp.vec2


@wp.kernel
def mixed(q: wp.array(dtype=wp.quat), line: Line, v: wp.vec3, o: wp.array(dtype=wp.vec3), n: wp.array(dtype=int)):
    i = wp.tid()
    o[i] = wp.quat_rotate(q[i], v) * line.slope + wp.vec3(line.at[0], line.at[1], 0.0)
    if i > 0:
        n[i] = i


@wp.kernel
def pick(x: wp.array(dtype=float), at: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[at[i]]


X = jnp.array([0.3, 0.7, 1.1])
W = jnp.array([1.0, 2.0, 3.0])


def own(x, s, w):
    return wp.jax_kernel(couple)(x, s, w)[0]


def close(a, b):
    jax.tree.map(lambda p, q: np.testing.assert_allclose(p, q, rtol=2e-5, atol=2e-5), a, b)


def alike(makes, *args):
    """What each of ``makes`` makes of the kernel and of the same in JAX, on ``args``: one program of XLA."""
    made = jax.jit(lambda *a: [[make(f)(*a) for make in makes] for f in (own, reference)])(*args)
    close(*made)


EVERY = (0, 1, 2)


def test_values_in_and_out_of_jit():
    alike([lambda f: f, lambda f: jax.jit(f)], X, 2.0, W)
    close(own(X, 2.0, W), reference(X, 2.0, W))


def test_derivatives_in_both_modes():
    alike(
        [
            lambda f: jax.grad(lambda *a: (f(*a) ** 2).sum(), argnums=EVERY),
            lambda f: lambda x, s, w: jax.jvp(f, (x, s, w), (w, 0.5, x)),
            lambda f: jax.jacfwd(f, argnums=EVERY),
            lambda f: jax.jacrev(f, argnums=(0, 2)),
        ],
        X, 2.0, W,
    )  # fmt: skip


def test_second_derivatives_in_any_order():
    def loss(f):
        return lambda x, w: (f(x, 2.0, w) ** 2).sum()

    alike(
        [
            lambda f: jax.hessian(loss(f), argnums=(0, 1)),
            lambda f: jax.grad(lambda x, w: (jax.grad(loss(f))(x, w) * w).sum(), argnums=(0, 1)),
            lambda f: jax.grad(lambda x, w: jax.jvp(lambda a: f(a, 2.0, w), (x,), (w * x,))[1].sum(), argnums=(0, 1)),
        ],
        X, W,
    )  # fmt: skip
    with pytest.raises(wp.KernelGradientError, match="derivative of kernel couple"):
        jax.jacfwd(jax.hessian(loss(own)))(X, W)
    with pytest.raises(wp.KernelGradientError, match="by forward mode alone"):
        jax.jacfwd(jax.jacfwd(lambda x: own(x, 2.0, W)))(X)


@wp.kernel
def cube(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s * s * s * x[i]


@wp.kernel
def bent(x: wp.array(dtype=float), s: float, v: wp.vec2, n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    total = x[i]
    for _ in range(n):
        total = total * s + wp.sin(s * v[0]) * v[1] * x[i]
    y[i] = total


def bent_of_jax(x, s, v, n=2):
    total = x
    for _ in range(n):
        total = total * s + jnp.sin(s * v[0]) * v[1] * x
    return total


SECOND = {
    "hessian": jax.hessian,
    "forward over reverse": lambda f: jax.jacfwd(jax.grad(f)),
    "reverse over reverse": lambda f: jax.jacrev(jax.grad(f)),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f)),
    "grad of grad": lambda f: jax.grad(lambda a: (jax.grad(f)(a) * jnp.cos(a)).sum()),
    "jvp of grad": lambda f: lambda a: jax.jvp(jax.grad(f), (a,), (jnp.ones_like(a),))[1],
}


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("second", SECOND.values(), ids=SECOND.keys())
def test_numbers_have_second_derivatives(second, jit):
    x, by_number = jnp.array([1.0, 2.0]), wp.jax_kernel(cube)
    assert jax.grad(lambda s: by_number(x, s)[0].sum())(2.0) == 36.0
    found = second(lambda s: by_number(x, s)[0].sum())
    if second is not SECOND["grad of grad"]:
        assert (jax.jit(found) if jit else found)(2.0) == 36.0
    own = wp.jax_kernel(bent)

    def loss(f):
        return lambda a: (f(x * a[3], a[0], a[1:3], 2) ** 2).sum() + f(x, a[0], jnp.ones(2), 2)[0]

    a = jnp.array([0.7, 0.3, -1.2, 0.9])
    mine, wanted = second(loss(lambda *args: own(*args)[0])), second(loss(bent_of_jax))
    np.testing.assert_allclose((jax.jit(mine) if jit else mine)(a), wanted(a), rtol=3e-5, atol=3e-5)
    many = jnp.stack([a, -a, 2.0 * a])
    np.testing.assert_allclose(jax.vmap(mine)(many), jax.vmap(wanted)(many), rtol=1e-4, atol=1e-4)


def test_second_derivatives_by_numbers_are_those_of_differences():
    with jax.enable_x64(True):

        @wp.kernel(module="unique")
        def wide(x: wp.array(dtype=wp.float64), s: wp.float64, y: wp.array(dtype=wp.float64)):
            i = wp.tid()
            y[i] = wp.exp(s * x[i]) * s

        x, f = jnp.array([0.3, -0.8], dtype=np.float64), wp.jax_kernel(wide)
        first = jax.grad(lambda s: (f(x, s)[0] ** 2).sum())
        slope = (first(0.5 + 1e-5) - first(0.5 - 1e-5)) / 2e-5
        for second in (jax.grad(first), jax.hessian(lambda s: (f(x, s)[0] ** 2).sum())):
            np.testing.assert_allclose(second(0.5), slope, rtol=1e-8)
        np.testing.assert_allclose(jax.jvp(first, (0.5,), (2.0,))[1], 2.0 * slope, rtol=1e-8)


def test_batches_nest_with_derivatives():
    xs, ss = jnp.stack([X, 2 * X]), jnp.array([1.0, 2.0, 3.0])

    def gradient(f):
        return jax.grad(lambda *a: f(*a).sum(), argnums=EVERY)

    alike(
        [
            lambda f: lambda x, s, w: jax.vmap(f, in_axes=(0, None, None))(x, 2.0, w),
            lambda f: lambda x, s, w: jax.vmap(f, in_axes=(1, None, None), out_axes=1)(x.T, 2.0, w),
            lambda f: jax.vmap(jax.vmap(f, in_axes=(None, 0, None)), in_axes=(0, None, None)),
            lambda f: lambda x, s, w: jax.vmap(gradient(f), in_axes=(0, None, None))(x, 2.0, w),
            lambda f: lambda x, s, w: jax.grad(
                lambda *a: jax.vmap(f, in_axes=(None, 0, None))(*a).sum(), argnums=EVERY)(x[0], s, w),
        ],
        xs, ss, W,
    )  # fmt: skip
    large = jnp.sin(jnp.arange(30000.0)).reshape(300, 100)  # worth all workers
    alike([lambda f: jax.vmap(f, in_axes=(0, None, None))], large, 2.0, jnp.cos(jnp.arange(100.0)))
    with pytest.raises(NotImplementedError, match="vmap_method is None"):
        jax.vmap(wp.jax_kernel(grow, in_out_argnames=["x"], vmap_method=None))(xs)


def test_arguments_that_are_read_and_written():
    f = wp.jax_kernel(rows, in_out_argnames=["total"])
    m = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    gradient = jax.grad(lambda m, t: (f(m, t)[0] ** 2).sum(), argnums=1)
    found = jax.jit(lambda m, t: (f(m[0], t)[0], jax.vmap(f, in_axes=(0, None))(m, t)[0], gradient(m[0], t)))(
        m, np.ones(3, np.float32)
    )
    close(found, (m[0].sum(1) + 1, m.sum(2) + 1, 2 * (m[0].sum(1) + 1)))
    g = wp.jax_kernel(grow, in_out_argnames=["x"])
    donating = jax.jit(lambda x: g(x)[0], donate_argnums=0)
    x = jnp.arange(1024.0)
    before = x.unsafe_buffer_pointer()
    y = donating(x)
    assert x.is_deleted() and y.unsafe_buffer_pointer() == before and float(y[5]) == 10.0

    def steps(x):
        body = jax.checkpoint(lambda c, _: (jnp.sin(g(c)[0]), None))
        return jax.lax.scan(body, x, None, length=3)[0].sum()

    def plain(x):
        for _ in range(3):
            x = jnp.sin(2 * x)
        return x.sum()

    close(*jax.jit(lambda x: (jax.grad(steps)(x), jax.grad(plain)(x)))(X))


def test_greatest_values_pass_gradients_to_who_won():
    f = wp.jax_kernel(highest, in_out_argnames=["y"])
    x, y = jnp.array([1.0, -3.0, 2.0, 5.0, 4.0, 0.0]), jnp.array([0.0, 100.0])
    loss = jax.grad(lambda x, y: (f(x, y)[0] * jnp.array([1.0, 10.0])).sum(), argnums=(0, 1))
    gx, gy = jax.jit(loss)(x, y)
    assert gx.tolist() == [0, -6, 0, 0, 0, 0] and gy.tolist() == [0, 10]


def test_vectors_structs_and_what_is_not_written():
    line = Line()
    line.slope, line.at = 2.0, wp.vec2(10.0, 20.0)
    f = wp.jax_kernel(mixed, num_outputs=2)
    q = jnp.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    o, n = jax.jit(lambda q, v: f(q, line, v))(q, jnp.array([1.0, 2.0, 3.0]))
    assert o.tolist() == [[8, 16, 6], [12, 24, 6]] and n.tolist() == [0, 1]
    assert f(q, line, wp.vec3(1.0, 2.0, 3.0))[0].tolist() == o.tolist()
    jacobian = jax.jit(jax.jacrev(lambda v: f(q, line, v)[0]))(jnp.ones(3))
    assert jacobian.shape == (2, 3, 3) and jacobian[1].tolist() == (2 * np.eye(3)).tolist()


def test_meshes_and_several_devices():
    if len(jax.devices()) < 2:
        pytest.skip("JAX was started with one device")
    spec = jax.sharding.PartitionSpec
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("r",))
    f = wp.jax_kernel(rows, in_out_argnames=["total"])
    m, w = np.arange(24.0, dtype=np.float32).reshape(6, 4), np.ones(3, np.float32)
    g = jax.shard_map(lambda m, t: f(m, t)[0], mesh=mesh, in_specs=(spec("r"), spec()), out_specs=spec("r"))
    found = jax.jit(lambda m, w: (g(m, w), jax.grad(lambda t: (g(m, t) ** 2).sum())(w)))(m, w)
    close(found, (m.sum(1) + 1, (2 * (m.sum(1) + 1)).reshape(2, 3).sum(0)))
    close(jax.pmap(lambda m: f(m, w)[0])(m.reshape(2, 3, 4)), (m.sum(1) + 1).reshape(2, 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wp.jax_kernel(couple)(X, 1.0), "takes 3 arguments"),
        (lambda: wp.jax_kernel(couple)(X.astype(jnp.int32), 1.0, W), "must hold float32, not int32"),
        (lambda: wp.jax_kernel(couple)(X[None], 1.0, W), "must have 1 dimensions, not the shape"),
        (lambda: wp.jax_kernel(rows)(jnp.ones((2, 2))), "output_dims"),
        (lambda: wp.jax_kernel(grow, in_out_argnames=["z"]), "did not match any function argument names"),
        (lambda: wp.jax_kernel(pick, num_outputs=5), "num_outputs"),
        (lambda: wp.jax_kernel(couple, launch_dims=7, output_dims=7)(X, 1.0, W), "out of bounds"),
        (lambda: wp.jax_kernel(lambda x: x), "takes a kernel"),
        (lambda: wp.jax_kernel(mixed, num_outputs=2)(jnp.ones((2, 3)), Line(), wp.vec3(), 1), "takes 3 arguments"),
        (lambda: wp.jax_kernel(couple, block_dim=0), "block_dim"),
        (lambda: wp.jax_kernel(rows, num_outputs=1)(jnp.ones((2, 2), jnp.float16)), "x.astype"),
        (lambda: wp.jax_kernel(rows, output_dims={"sum": 2}), "no argument 'sum'; its results are total"),
        (lambda: wp.jax_kernel(grow_wide, in_out_argnames=["x"])(np.ones(2)), "must hold float64, not float32"),
    ],
)
def test_what_does_not_fit_is_said(call, words):
    with pytest.raises((ValueError, TypeError, RuntimeError, IndexError), match=words):
        call()


@wp.kernel
def grow_wide(x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


def test_numbers_of_python_need_no_executable_each():
    f = wp.jax_kernel(couple)
    calls = len(f._calls)
    for s in (1.0, 2, np.float64(3.0), np.array(4.0, np.float32), jnp.float32(5.0)):
        close(f(X, s, W)[0], reference(X, float(s), W))
    assert len(f._calls) - calls <= 1


def test_inputs_are_not_written():
    with pytest.raises(wp.KernelValueError, match="in_out_argnames"):
        wp.jax_kernel(rows_into_input)(jnp.ones(2))


@wp.kernel
def rows_into_input(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 1.0
    y[i] = x[i]


def test_faults_reach_the_program(monkeypatch):
    monkeypatch.setattr(wp.config, "mode", "debug")
    with pytest.raises(Exception, match=r"index 7 is out of bounds of array 'x'"):
        jax.block_until_ready(jax.jit(wp.jax_kernel(pick, launch_dims=2))(X, jnp.array([0, 7], jnp.int32)))


def test_executables_on_disk_find_their_targets(tmp_path):
    """JAX's persistent cache: the second process compiles nothing that the first has."""
    program = tmp_path / "program.py"
    program.write_text(
        "import jax, sys\n"
        "import treadle as wp\n"
        "jax.config.update('jax_compilation_cache_dir', sys.argv[1])\n"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)\n"
        "jax.config.update('jax_persistent_cache_min_entry_size_bytes', 0)\n"
        "events = []\n"
        "jax.monitoring.register_event_listener(lambda name, **_: events.append(name))\n"
        "@wp.kernel\n"
        "def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n"
        "    y[i] = 3.0 * x[i]\n"
        "def body(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
        "    wp.launch(k, dim=x.shape, inputs=[x], outputs=[y])\n"
        "f = jax.jit(lambda x: wp.jax_kernel(k)(x)[0] + wp.jax_callable(body)(x)[0])\n"
        "assert f(jax.numpy.arange(3.0)).tolist() == [0, 6, 12]\n"
        "print(sum('cache_hits' in e for e in events), sum('cache_misses' in e for e in events))\n"
    )
    path = os.pathsep.join(sys.path)
    found = []
    for _ in range(2):
        done = subprocess.run([sys.executable, program, tmp_path / "cache"], capture_output=True, text=True,
                              timeout=100, env={**os.environ, "PYTHONPATH": path})  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.append([int(n) for n in done.stdout.split()])
    assert found[1][1] == 0 and found[1][0] == found[0][1] > 0


@pytest.mark.skipif(wp.is_cuda_available(), reason="numbers are part of what is compiled for a GPU")
def test_numbers_that_python_knows_are_no_calls_of_their_own():
    f, x = wp.jax_kernel(cube), jnp.arange(3.0)
    f(x, 1.0)
    count = len(f._calls)
    for k in range(3):
        assert jax.jit(lambda x, k=k: f(x, float(k))[0])(x).tolist() == [0.0, k**3, 2.0 * k**3]
    assert len(f._calls) == count


SAID = "INTERNAL: the work was interrupted by Ctrl-C"


def test_ctrl_c_ends_what_runs_and_python_hears_of_it():
    program = os.path.join(os.path.dirname(__file__), "endless.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=100,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    assert done.returncode == 0 and "ctypes callback" not in done.stderr, done.stderr
    *_, last = lines = done.stdout.splitlines()
    assert last == "24.0"
    names = "kernel", "graph", "batch", "python", "launch", "turns"
    for name, line in zip(names, lines[::2], strict=True):
        assert line in (f"{name} KeyboardInterrupt ", f"{name} KeyboardInterrupt {SAID!a}")


def test_examples():
    module = __import__("treadle.interop.jax_kernel", fromlist=["x"])
    assert doctest.testmod(module).failed == 0
