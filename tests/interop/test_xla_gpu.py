"""JAX's calls on a GPU without one: the handler gets frames made by hand, the driver is a stand-in (``tests/runtime/
cuda/standin.py``), which proves what is given to which stream in which order, not what a GPU makes of it."""

import numpy as np
import pytest

import treadle as wp
from tests.interop.call_frame import EXECUTE, INITIALIZE, Frame
from tests.runtime.cuda.conftest import driver  # noqa: F401
from treadle.interop import xla

jax = pytest.importorskip("jax")


@wp.kernel
def tripled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 3.0 * x[i]


@wp.kernel
def scaled(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = s * x[i]


@wp.kernel
def scatter(where: wp.array(dtype=int), x: wp.array(dtype=float), sums: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(sums, where[i], x[i])


@wp.kernel
def picky(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    assert x[i] < 5.0, "too large"
    y[i] = x[i]


def lowered(function, *args):
    """The targets of a function for CUDA, in order, and the text that JAX gives to XLA."""
    before = set(xla._names)
    text = jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    return [xla._names[name] for name in xla._names if name not in before], text


def far(content, where="cuda:0"):
    return wp.array(np.asarray(content), device=where)


def test_a_launch_is_given_to_the_stream_of_the_call(driver):  # noqa: F811
    x = np.arange(6, dtype="f4")
    (target,), text = lowered(lambda x: wp.jax_kernel(tripled)(x), x)
    assert target.name in text and target.platform == "CUDA"
    for where in ("cuda:0", "cuda:1"):
        device = wp.get_device(where)
        a, y, stream = far(x, where), wp.full(6, 9.0, dtype=float, device=where), wp.Stream(device)
        wp.synchronize()
        frame = Frame([a.ptr], [y.ptr], stream.cuda_stream, device.ordinal)
        assert frame.traits(target) == 1  # it may become part of a graph of XLA's
        assert frame.call(target, INITIALIZE) == [] and "cuLaunchKernel" not in driver.names()
        driver.calls.clear()
        assert frame.call(target, EXECUTE) == []
        assert [name for name, _ in driver.calls] == ["cuCtxPushCurrent", "cuLaunchKernel", "cuCtxPopCurrent"]
        assert driver.calls[1][1][8] == stream.cuda_stream and not stream.is_complete
        stream.synchronize()
        assert y.list() == [0.0, 3.0, 6.0, 9.0, 12.0, 15.0]
        driver.calls.clear()
    said = Frame([1], [2], 0, 7).call(target, INITIALIZE)
    assert said == ["there is no device cuda:7; this machine has cuda:0 to cuda:1"]


def test_passes_share_a_result_and_batches_are_launched_in_a_row(driver):  # noqa: F811
    where, x = np.array([2, 0, 2, 1], "i4"), np.arange(8, dtype="f4").reshape(2, 4)
    f = wp.jax_kernel(scatter, launch_dims=4, output_dims=3)
    (target,), text = lowered(jax.vmap(lambda x: f(where, x)[0]), x)
    size = target._like.nbytes
    assert f"tensor<{size}xui8>" in text and size > 512
    a, i, sums = far(x), far(where), wp.full((2, 3), 9.0, dtype=float, device="cuda:0")
    shared = wp.full(size, 255, dtype=wp.uint8, device="cuda:0")
    wp.synchronize()
    frame = Frame([i.ptr, a.ptr], [sums.ptr, shared.ptr], wp.get_stream("cuda:0").cuda_stream)
    driver.calls.clear()
    assert frame.traits(target) == 1 and frame.call(target) == []
    names = [name for name in driver.names() if name.startswith(("cuLaunch", "cuMemset", "cuMemcpy", "cuMemAlloc"))]
    assert names == ["cuMemsetD8Async", *["cuMemsetD8Async", *["cuLaunchKernel"] * 3] * 2]
    wp.synchronize()
    assert sums.numpy().tolist() == [[1.0, 3.0, 2.0], [5.0, 7.0, 10.0]]


def test_numbers_of_jax_and_what_threads_report(driver):  # noqa: F811
    x = np.arange(6, dtype="f4")
    (target,), _ = lowered(lambda x, s: wp.jax_kernel(scaled)(x, s), x, np.float32(2.0))
    a, s, y = far(x), far(np.full(1, 4.0, "f4")), wp.zeros(6, dtype=float, device="cuda:0")
    wp.synchronize()
    frame = Frame([a.ptr, s.ptr], [y.ptr], wp.get_stream("cuda:0").cuda_stream)
    assert frame.traits(target) == 0 and frame.call(target) == []  # the host waits for the number
    assert y.list() == [0.0, 4.0, 8.0, 12.0, 16.0, 20.0]
    wp.config.mode = "debug"
    try:
        (target,), _ = lowered(lambda x: wp.jax_kernel(picky)(x)[0], x)
    finally:
        wp.config.mode = "release"
    frame = Frame([a.ptr], [y.ptr], wp.get_stream("cuda:0").cuda_stream)
    assert frame.call(target) == []
    with pytest.raises(wp.KernelAssertionError, match="too large.*thread 5"):
        wp.synchronize()
    assert frame.call(target) == []
    driver._run_all()
    (said,) = frame.call(target)  # the next call tells, where nobody asked
    assert "reported by a call before" in said and "too large" in said and "thread 5" in said
    with pytest.raises(wp.KernelAssertionError):
        wp.synchronize()


def test_functions_give_their_work_to_the_stream_of_the_call(driver):  # noqa: F811
    def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        half = wp.empty_like(x)
        wp.launch(tripled, dim=x.shape, inputs=[x], outputs=[half])
        wp.launch(tripled, dim=x.shape, inputs=[half], outputs=[y])
        if x.shape[0] == 2:
            raise ValueError("too short")

    for n in (3, 2):
        x = np.arange(n, dtype="f4")
        (target,), _ = lowered(lambda x: wp.jax_callable(twice)(x)[0], x)
        a, y, stream = far(x), wp.zeros(n, dtype=float, device="cuda:0"), wp.Stream("cuda:0")
        wp.synchronize()
        frame = Frame([a.ptr], [y.ptr], stream.cuda_stream)
        said = frame.call(target)
        if n == 2:
            assert said == ["ValueError: too short"]
            continue
        given = [args[8] for name, args in driver.calls if name == "cuLaunchKernel"]
        assert said == [] and frame.traits(target) == 0 and given[-2:] == [stream.cuda_stream] * 2
        assert wp.get_device() == "cpu" and y.list() == [0.0, 9.0, 18.0]
