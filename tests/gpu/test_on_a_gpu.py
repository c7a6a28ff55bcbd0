"""What a GPU computes beside what the CPU does: bit for bit where no sum is rounded in another order."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import IndexOutOfRange, KernelAssertionError

N = 1000


def on_both(kernel, dim, make, device, **options):
    """The arrays of ``make(device)`` after a launch, on the CPU and on the GPU."""
    found = []
    for where in ("cpu", device):
        args = make(where)
        wp.launch(kernel, dim, args, device=where, **options)
        found.append([a.numpy().copy() for a in args if isinstance(a, wp.array)])
    return found


def same(found, rtol=0.0):
    for a, b in zip(*found, strict=True):
        if rtol:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
        else:
            assert a.tobytes() == b.tobytes()


def numbers(n, seed=0):
    return np.random.default_rng(seed).normal(size=n).astype("f4")


@wp.kernel
def arithmetic(x: wp.array(dtype=float), y: wp.array2d(dtype=float)):
    i = wp.tid()
    v = x[i]
    y[i, 0] = wp.sin(v) + wp.cos(3.0 * v) + wp.tan(v)
    y[i, 1] = wp.exp(v) + wp.log(wp.abs(v) + 1.0) + wp.pow(wp.abs(v), 1.7)
    y[i, 2] = wp.sqrt(wp.abs(v)) / (v * v + 0.1) + wp.atan2(v, 2.0) + wp.asin(v * 0.1) + wp.tanh(v)
    n = int(v * 1000.0)
    y[i, 3] = float(n // 7 + n % 5) + wp.floor(v) + wp.round(v) + float(wp.clamp(n, -5, 5))
    a = wp.vec3(v, 1.0, 2.0 * v)
    q = wp.quat_from_axis_angle(wp.normalize(a), v)
    y[i, 4] = wp.quat_rotate(q, a)[1] + wp.determinant(wp.quat_to_matrix(q))
    y[i, 5] = wp.noise(wp.rand_init(i), v) + wp.randf(wp.rand_init(7, i))


def test_arithmetic_and_elementary_functions(device):
    make = lambda where: [wp.array(numbers(N), device=where), wp.zeros((N, 6), dtype=float, device=where)]
    same(on_both(arithmetic, N, make, device))


@wp.kernel
def control(x: wp.array(dtype=float), rounds: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    s = x[i]
    for k in range(rounds[i]):
        if s > 2.0:
            continue
        j = int(0)
        while j < 10:
            s = 0.9 * s + 0.2
            if s > 1.5:
                break
            j += 1
        s += float(k) * 0.01
    y[i] = s


def test_loops_and_branches(device):
    rounds = np.arange(N, dtype="i4") % 9
    make = lambda where: [wp.array(numbers(N), device=where), wp.array(rounds, device=where),
                          wp.zeros(N, dtype=float, device=where)]  # fmt: skip
    for block in (32, 256, 512):
        same(on_both(control, N, make, device, block_dim=block))


@wp.kernel
def places(a: wp.array3d(dtype=int)):
    i, j, k = wp.tid()
    a[i, j, k] = i * 100 + j * 10 + k


def test_grids_of_three_dimensions(device):
    same(on_both(places, (7, 5, 9), lambda where: [wp.zeros((7, 5, 9), dtype=int, device=where)], device))


@wp.kernel
def scatter(where: wp.array(dtype=int), x: wp.array(dtype=float), n: wp.array(dtype=int), sums: wp.array(dtype=float),
            low: wp.array(dtype=float), high: wp.array(dtype=float), bits: wp.array(dtype=wp.uint32),
            total: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    j = where[i]
    wp.atomic_add(n, j, 1)
    wp.atomic_add(sums, j, x[i])
    wp.atomic_min(low, j, x[i])
    wp.atomic_max(high, j, x[i])
    wp.atomic_xor(bits, j, wp.uint32(i))
    wp.atomic_add(total, 0, x[i])


def scattered(where, n=N, m=17):
    index = np.random.default_rng(1).integers(0, m, n).astype("i4")
    zeros = lambda dtype, k=m: wp.zeros(k, dtype=dtype, device=where)
    return [wp.array(index, device=where), wp.array(numbers(n), device=where), zeros(int), zeros(float), zeros(float),
            zeros(float), zeros(wp.uint32), zeros(float, 1)]  # fmt: skip


def test_atomics(device):
    (cpu, gpu) = on_both(scatter, N, scattered, device)
    for k in (2, 4, 5, 6):
        assert cpu[k].tobytes() == gpu[k].tobytes()
    same(([cpu[3], cpu[7]], [gpu[3], gpu[7]]), rtol=1e-4)


def test_sums_have_the_same_bits_from_run_to_run_whatever_the_blocks_are(device):
    found = set()
    for block in (64, 64, 256):
        args = scattered(device, 20_000)
        wp.launch(scatter, 20_000, args, device=device, block_dim=block)
        found.add(args[3].numpy().tobytes())
    index, x = args[0].numpy(), args[1].numpy()
    exact = [np.sum(x[index == j], dtype="f8") for j in range(17)]
    assert len(found) == 1 and np.allclose(args[3].numpy(), exact, rtol=2**-23, atol=0)


@wp.kernel
def take(x: wp.array(dtype=float), count: wp.array(dtype=int), out: wp.array(dtype=int)):
    i = wp.tid()
    if x[i] > 0.0:
        out[wp.atomic_add(count, 0, 1)] = i


def test_counters_give_places_in_thread_order(device):
    make = lambda where: [wp.array(numbers(N), device=where), wp.zeros(1, dtype=int, device=where),
                          wp.full(N, -1, dtype=int, device=where)]  # fmt: skip
    same(on_both(take, N, make, device))


@wp.kernel
def swap(last: wp.array(dtype=int), before: wp.array(dtype=int)):
    i = wp.tid()
    before[i] = wp.atomic_exch(last, 0, i)


def test_exchanges_run_in_thread_order(device):
    make = lambda where: [wp.full(1, -1, dtype=int, device=where), wp.zeros(64, dtype=int, device=where)]
    same(on_both(swap, 64, make, device))


@wp.kernel
def say(x: wp.array(dtype=float)):
    i = wp.tid()
    if i % 3 == 0:
        wp.printf("%d has %.2f\n", i, x[i])


def test_prints_come_in_thread_order(device):
    texts = []
    for where in ("cpu", device):
        with redirect_stdout(io.StringIO()) as text:
            wp.launch(say, 50, [wp.array(numbers(50), device=where)], device=where)
            wp.synchronize_device(where)
        texts.append(text.getvalue())
    assert texts[0] == texts[1] and texts[0].count("\n") == 17


@wp.kernel
def checked(x: wp.array(dtype=float), j: int):
    i = wp.tid()
    assert x[i] < 5.0, "too large"
    x[i + j] = 1.0


def test_checks_reach_python_with_the_line(device):
    x = wp.array(np.arange(10, dtype="f4"), device=device)
    wp.config.mode = "debug"
    try:
        with pytest.raises(KernelAssertionError, match="too large.*thread 5"):
            wp.launch(checked, 10, [x, 0], device=device)
            wp.synchronize_device(device)
        x.zero_()
        with pytest.raises(IndexOutOfRange, match="index 10 .*thread 7"):
            wp.launch(checked, 10, [x, 3], device=device)
            wp.synchronize_device(device)
    finally:
        wp.config.mode = "release"


def gradient(where):
    x = wp.array(numbers(N), device=where, requires_grad=True)
    rounds = wp.array(np.arange(N, dtype="i4") % 9, device=where)
    y = wp.zeros(N, dtype=float, device=where, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(control, N, [x, rounds, y], device=where)
    tape.backward(grads={y: wp.full(N, 1.0, dtype=float, device=where)})
    return x.grad.numpy()


def test_gradients_through_loops(device):
    assert gradient("cpu").tobytes() == gradient(device).tobytes()


@wp.kernel
def rows(a: wp.array2d(dtype=float), sums: wp.array(dtype=float)):
    i = wp.tid()
    row = wp.tile_load(a, shape=(1, 16), offset=(i, 0))
    wp.tile_store(sums, wp.tile_sum(row), offset=i)


def test_tiles(device):
    content = numbers(64 * 16).reshape(64, 16)
    found = []
    for where in ("cpu", device):
        a, sums = wp.array(content, device=where), wp.zeros(64, dtype=float, device=where)
        wp.launch_tiled(rows, dim=64, inputs=[a, sums], block_dim=32, device=where)
        found.append([sums.numpy()])
    same(found)


@wp.kernel
def product(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float),
            most: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    x, y = wp.tile_load(a, shape=(8, 8), offset=(8 * i, 0)), wp.tile_load(b, shape=(8, 8))
    total = wp.tile_zeros(shape=(8, 8), dtype=float)
    wp.tile_matmul(x, y, total)
    total = wp.tile_map(wp.sin, total)
    wp.tile_store(c, total, offset=(8 * i, 0))
    wp.tile_store(most, wp.tile_max(total), offset=i)


def test_blocks_share_the_work_on_tiles(device):
    """Products, gradients and reductions, in shared memory."""
    found = []
    for where in ("cpu", device):
        a, b, c = [wp.array(numbers(8 * n, n).reshape(n, 8), device=where, requires_grad=True) for n in (24, 8, 24)]
        most = wp.zeros(3, dtype=float, device=where)
        with wp.Tape() as tape:
            wp.launch_tiled(product, dim=3, inputs=[a, b], outputs=[c, most], block_dim=32, device=where)
        tape.backward(grads={c: wp.full((24, 8), 1.0, dtype=float, device=where)})
        found.append([c.numpy(), most.numpy(), a.grad.numpy()])
    same(found)
    if device != "cpu":
        program = product.in_blocks(-32).elsewhere
        assert any(v.program.entry.passes[0]["grid"] == "blocks" for o in program.values() for v in o.variants.values())


@wp.kernel
def halve(left: wp.array(dtype=int), x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 0.5 * x[i]
    if i == 0:
        left[0] -= 1


def test_graphs_with_loops(device):
    left, x = wp.full(1, 5, dtype=int, device=device), wp.full(N, 64.0, dtype=float, device=device)
    with wp.ScopedCapture(device=device) as capture:
        wp.capture_while(left, lambda: wp.launch(halve, N, [left, x], device=device))
    wp.capture_launch(capture.graph)
    assert left.numpy()[0] == 0 and (x.numpy() == 2.0).all()


def test_utilities(device):
    x = numbers(5000)
    keys, values = wp.array(np.r_[x, x], device=device), wp.array(np.arange(10_000, dtype="i4"), device=device)
    wp.utils.radix_sort_pairs(keys, values, 5000)
    assert (values.numpy()[:5000] == np.argsort(x, kind="stable")).all()
    counts = wp.array(np.arange(5000, dtype="i4"), device=device)
    sums = wp.zeros(5000, dtype=int, device=device)
    wp.utils.array_scan(counts, sums, inclusive=True)
    assert (sums.numpy() == np.cumsum(np.arange(5000))).all()


def test_arms_step_as_on_the_cpu(device):
    mujoco = pytest.importorskip("mujoco")
    import treadle.mujoco as mjw

    arm = '<geom type="capsule" size=".02" fromto="0 0 0 0 0 .3" contype="0"/>'
    hand = '<body pos="0 0 .3"><joint axis="1 0 0"/><geom type="box" size=".05 .02 .1" contype="0"/></body>'
    tree = f'<body><joint axis="0 1 0" damping=".1"/>{arm}{hand}</body>'
    mjm = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{tree}</worldbody></mujoco>")
    found = []
    for where in ("cpu", device):
        with wp.ScopedDevice(where):
            m, d = mjw.put_model(mjm), mjw.make_data(mjm, nworld=64)
            d.qpos.assign(numbers(64 * mjm.nq).reshape(64, -1))
            for _ in range(30):
                mjw.step(m, d)
            with wp.ScopedCapture(device=where) as capture:
                for _ in range(10):
                    mjw.step(m, d)
            for _ in range(2):
                wp.capture_launch(capture.graph)
            found.append([d.qpos.numpy(), d.qvel.numpy()])
    same(found, rtol=1e-5)


@wp.kernel
def squared(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s * x[i] * x[i]


@wp.kernel
def gathered(where: wp.array(dtype=int), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[where[i]]


def test_jax_launches_on_its_own_stream(device):
    """Kernels, numbers that JAX computes, gradients with sums of several passes, functions, and all of it in a loop."""
    jax = pytest.importorskip("jax")
    if jax.devices()[0].platform != "gpu":
        pytest.skip("JAX has no GPU here")
    jnp, where = jax.numpy, np.arange(N, dtype="i4") % 7
    square, gather = wp.jax_kernel(squared), wp.jax_kernel(gathered, launch_dims=N, output_dims=N)

    def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        half = wp.empty_like(x)
        wp.launch(squared, dim=x.shape, inputs=[x, 0.5], outputs=[half])
        wp.launch(squared, dim=x.shape, inputs=[half, 2.0], outputs=[y])

    x = jnp.linspace(0.0, 1.0, N)
    np.testing.assert_allclose(jax.jit(lambda x, s: square(x, s)[0] + 1.0)(x, 3.0), 3.0 * x * x + 1.0, rtol=1e-6)
    found = jax.grad(lambda x: jnp.sum(gather(where, x)[0] * jnp.arange(N)))(x[:7])
    np.testing.assert_allclose(found, np.bincount(where, np.arange(N)), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(wp.jax_callable(twice))(x)[0], 0.5 * np.asarray(x) ** 4, rtol=1e-5)
    last = jax.lax.fori_loop(0, 20, lambda k, x: square(x, 1.0)[0] + 0.1, x[:10])
    want = np.asarray(x[:10], dtype="f8")
    for _ in range(20):
        want = want * want + 0.1
    np.testing.assert_allclose(last, want, rtol=1e-4)


def test_pytorchs_tensors_come_in_the_order_of_its_stream(device):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            x, y = torch.ones(1 << 22, device=device), torch.zeros(1 << 22, device=device)
            for _ in range(20):
                x *= 1.01
                wp.launch(squared, dim=len(x), inputs=[x, 1.0], outputs=[y], device=device)
                x.copy_(y).sqrt_()
            total = float(x.double().mean())
        assert abs(total / 1.01**20 - 1.0) < 1e-4
        seen = wp.to_torch(wp.full(5, 3.0, dtype=float, device=device))
        assert seen.sum().item() == 15.0
