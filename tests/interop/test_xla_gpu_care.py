"""What holds of JAX's calls on a GPU whoever makes them, and whatever fails; on the stand-in for the driver.

Kernels have targets as long as the process lives, so each test has arrays of a length of its own."""

import threading

import numpy as np
import pytest

import treadle as wp
from tests.interop.call_frame import EXECUTE, INITIALIZE, Frame
from tests.interop.test_xla_gpu import far, lowered, picky, scaled, scatter, tripled
from tests.runtime.cuda.conftest import driver  # noqa: F401
from tests.runtime.cuda.standin_parts import Refused
from treadle.runtime import prints

jax = pytest.importorskip("jax")


@wp.kernel
def waves(n: wp.array(dtype=int), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    for _ in range(n[i]):
        v = wp.sin(v)
    y[i] = v


@wp.kernel
def negated(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = -x[i]


def current():
    """The handle of the current stream of ``cuda:0``."""
    return wp.get_stream("cuda:0").cuda_stream


def slope(n, x):
    """The derivative of ``waves``."""
    found = np.ones_like(x)
    for k in range(n.max()):
        found, x = np.where(k < n, found * np.cos(x), found), np.where(k < n, np.sin(x), x)
    return found


def test_memory_between_passes_stays_as_it_was_agreed(driver):  # noqa: F811
    """XLA allocates what the call needed when JAX compiled it, however much launches have needed since, on whichever
    GPU; what is compiled later gets more."""
    x, few, many = np.linspace(0.2, 1.4, 4, dtype="f4"), np.array([2, 3, 1, 2], "i4"), np.full(4, 20_000, "i4")

    def made(**options):
        f = wp.jax_kernel(waves, **options)
        return lowered(lambda x, n: jax.grad(lambda x: f(n, x)[0].sum())(x), x, few)[0][-1]

    target = made()
    size = target._like.nbytes

    def called(target, where, rounds):
        n, a, seed, grad = (far(t, where) for t in (rounds, x, np.ones(4, "f4"), np.zeros(4, "f4")))
        wp.synchronize()
        between = wp.full(target._like.nbytes, 255, dtype=wp.uint8, device=where)
        frame = Frame([n.ptr, a.ptr, seed.ptr], [grad.ptr, seed.ptr, between.ptr], wp.get_stream(where).cuda_stream,
                      wp.get_device(where).ordinal)  # fmt: skip
        assert frame.call(target) == []
        np.testing.assert_allclose(grad.numpy(), slope(rounds, x), rtol=1e-4)

    for where in ("cuda:0", "cuda:1"):  # a launch of treadle's own needs more first
        n, a, y = far(many, where), far(x, where), wp.zeros(4, dtype=float, device=where)
        a.requires_grad = y.requires_grad = True
        with wp.Tape() as tape:
            wp.launch(waves, dim=4, inputs=[n, a, y], device=where)
        tape.backward(grads={y: wp.ones(4, dtype=float, device=where)})
        called(target, where, few)
        called(target, where, many)
    assert target._like.nbytes == size
    later = made(has_side_effect=True)
    assert later is not target and later._like.nbytes > size
    called(later, "cuda:0", many)


def test_what_goes_wrong_while_a_gpu_is_prepared_is_told(driver, monkeypatch):  # noqa: F811
    x = np.arange(4, dtype="f4")
    (target,), _ = lowered(lambda x: wp.jax_kernel(tripled)(x), x)
    frame = Frame([1], [2], 0, 1)

    def fails(device):
        raise TypeError("odd \udc80")

    monkeypatch.setattr(target, "_program", fails)
    assert frame.call(target, INITIALIZE) == ["TypeError: odd \\udc80"]
    assert frame.call(target, EXECUTE) == ["TypeError: odd \\udc80"]
    monkeypatch.setattr(target, "load", lambda number: None)
    assert frame.call(target, EXECUTE) == ["treadle has not prepared this function for the GPU that it is called on"]


def test_threads_that_prepare_a_gpu_do_so_once(driver, monkeypatch):  # noqa: F811
    """What one has made calls may be using already."""
    x = np.arange(5, dtype="f4")
    (target,), _ = lowered(lambda x: wp.jax_kernel(tripled)(x), x)
    made, real, both = [], target._program, threading.Barrier(2)

    def program(device):
        made.append(device)
        with_two = threading.Event()
        with_two.wait(0.2)  # the other one comes meanwhile
        return real(device)

    monkeypatch.setattr(target, "_program", program)

    def load():
        both.wait()
        target.load(1)
        records.append(target._gpus[1])

    records: list[int] = []
    threads = [threading.Thread(target=load) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(made) == 1 and records[0] == records[1] == target._gpus[1] != 0


def test_a_context_that_cannot_be_entered_is_not_left(driver, monkeypatch):  # noqa: F811
    x = np.arange(7, dtype="f4")
    (target,), _ = lowered(lambda x: wp.jax_kernel(tripled)(x), x)
    (called,), _ = lowered(lambda x: wp.jax_callable(copied)(x), x)
    a, y, device = far(x), wp.zeros(7, dtype=float, device="cuda:0"), wp.get_device("cuda:0")
    wp.synchronize()
    frame = Frame([a.ptr], [y.ptr], current())
    assert frame.call(target, INITIALIZE) == [] == frame.call(called, INITIALIZE)

    def refuses(self, ctx):
        raise Refused("INVALID_CONTEXT")

    with device.entered:
        before = [*driver.context]
        with monkeypatch.context() as patch:
            patch.setattr(type(driver), "cuCtxPushCurrent", refuses)
            said = [*frame.call(target, EXECUTE), *frame.call(called, EXECUTE)]
        assert driver.context == before and len(before) == 1
    assert len(said) == 2 and all("CUDA_ERROR_INVALID_CONTEXT" in words for words in said)


def test_grids_without_threads_are_not_launched(driver):  # noqa: F811
    nothing = np.zeros(0, "f4")
    (target,), _ = lowered(lambda x: wp.jax_kernel(tripled)(x), nothing)
    f = wp.jax_kernel(scatter, launch_dims=0, output_dims=3)
    (sums,), _ = lowered(lambda i, x: f(i, x)[0], np.zeros(0, "i4"), nothing)
    (value,), _ = lowered(lambda x, s: wp.jax_kernel(scaled)(x, s), nothing, np.float32(2.0))
    there = wp.full(3, 9.0, dtype=float, device="cuda:0")
    wp.synchronize()
    driver.calls.clear()
    for each, operands in ((target, [0]), (sums, [0, 0]), (value, [0, 0])):
        assert Frame(operands, [there.ptr], current()).call(each) == []
    assert not {"cuLaunchKernel", "cuMemcpyAsync"} & {*driver.names()}
    assert there.list() == [0.0] * 3  # what nobody writes is 0


def test_numbers_that_python_knows_are_part_of_the_call(driver):  # noqa: F811
    """They are not fetched from the GPU in each call: what JAX has of them is not even looked at."""
    x = np.arange(6, dtype="f4")
    f = wp.jax_kernel(scaled)
    targets, _ = lowered(lambda x: f(x, 2.0)[0] + f(x, 3.0)[0], x)
    a = far(x)
    for target, factor in zip(targets, (2.0, 3.0), strict=True):
        y = wp.zeros(6, dtype=float, device="cuda:0")
        frame = Frame([a.ptr, 8], [y.ptr], current())
        assert frame.call(target, INITIALIZE) == [] and frame.traits(target) == 1
        wp.synchronize()
        driver.calls.clear()
        assert frame.call(target, EXECUTE) == []
        assert [name for name, _ in driver.calls] == ["cuCtxPushCurrent", "cuLaunchKernel", "cuCtxPopCurrent"]
        assert y.list() == [factor * k for k in range(6)]
    assert jax.jit(lambda x: f(x, 2.0)[0] + f(x, 3.0)[0])(x).tolist() == [5.0 * k for k in range(6)]
    f(x, 7.0)
    count = len(f._calls)
    for k in range(3):  # out of jax.jit the next number needs no other executable
        assert f(x, float(k))[0].tolist() == [k * float(v) for v in x]
    assert len(f._calls) == count


def copied(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.copy(y, x)


def test_functions_leave_their_inputs_alone(driver):  # noqa: F811
    """JAX's arrays are values: a function that writes to one is refused when JAX compiles it; where that is not known
    it works on copies."""

    def writes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        wp.launch(negated, dim=x.shape, inputs=[x])
        wp.copy(y, x)

    def looks(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        wp.launch(negated, dim=x.shape, inputs=[x])
        y.assign(2.0 * x.numpy())

    x = np.arange(3, dtype="f4")
    with pytest.raises(wp.KernelValueError, match="function writes writes to its argument 'x', an input"):
        lowered(lambda x: wp.jax_callable(writes)(x)[0], x)
    def filling(change):
        def fills(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            change(x)
            wp.copy(y, x)

        return wp.jax_callable(fills)

    for change in (lambda x: x.fill_(2.0), lambda x: x.zero_(), lambda x: wp.copy(x, wp.ones(3, dtype=float))):
        with pytest.raises(wp.KernelValueError, match="function fills writes to its argument 'x', an input"):
            lowered(lambda x, f=filling(change): f(x)[0], x)
    plain = wp.jax_callable(writes, graph_mode=wp.JaxCallableGraphMode.NONE)
    for function, factor in ((wp.jax_callable(looks), 2.0), (plain, 1.0), (wp.jax_callable(copied), -1.0)):
        (target,), _ = lowered(lambda x, f=function: f(x)[0], x)
        a, y = far(x), wp.zeros(3, dtype=float, device="cuda:0")
        wp.synchronize()
        driver.calls.clear()
        assert Frame([a.ptr], [y.ptr], current()).call(target) == []
        wp.synchronize()
        assert a.list() == [0.0, 1.0, 2.0] and y.list() == [-factor * v for v in x]
        moves = [args for name, args in driver.calls if name == "cuMemcpyAsync" and args[1] == a.ptr]
        assert ("cuMemAllocFromPoolAsync" in driver.names()) == (function is not wp.jax_callable(copied)) and moves
    both = wp.jax_callable(writes, num_outputs=2, in_out_argnames=["x"])
    (target,), _ = lowered(lambda x: both(x), x)
    a, y = far(x), wp.zeros(3, dtype=float, device="cuda:0")
    wp.synchronize()
    assert Frame([a.ptr], [a.ptr, y.ptr], current()).call(target) == []
    wp.synchronize()
    assert a.list() == y.list() == [0.0, -1.0, -2.0]


def test_what_is_current_in_a_call_is_so_for_its_thread_alone(driver):  # noqa: F811
    inside, on = threading.Event(), threading.Event()
    met = []

    def waits(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            assert on.wait(20)
            met.append((wp.get_device(), wp.get_stream().cuda_stream, wp.get_device("cuda")))
            with wp.ScopedDevice("cpu"):
                met.append(wp.zeros(1, dtype=float).device)
        wp.launch(tripled, dim=x.shape, inputs=[x], outputs=[y])

    x = np.arange(3, dtype="f4")
    (target,), _ = lowered(lambda x: wp.jax_callable(waits)(x)[0], x)
    a, y, theirs = far(x), wp.zeros(3, dtype=float, device="cuda:0"), wp.Stream("cuda:0")
    wp.synchronize()
    frame, ours, said = Frame([a.ptr], [y.ptr], theirs.cuda_stream), wp.get_stream("cuda:0"), []
    thread = threading.Thread(target=lambda: said.extend(frame.call(target)))
    thread.start()
    assert inside.wait(20)
    seen = wp.get_device(), wp.get_stream("cuda:0"), wp.zeros(2, dtype=float).device
    wp.set_device("cuda:1")
    wp.set_stream(wp.Stream("cuda:0"), "cuda:0")
    z = wp.zeros(3, dtype=float)
    wp.launch(tripled, dim=3, inputs=[wp.ones(3, dtype=float)], outputs=[z])
    on.set()
    thread.join()
    assert seen == ("cpu", ours, "cpu") and said == []
    assert met == [("cuda:0", theirs.cuda_stream, "cuda:0"), "cpu"] and wp.get_device() == "cuda:1"
    wp.synchronize()
    assert y.list() == [0.0, 3.0, 6.0] and z.list() == [3.0] * 3


def test_functions_that_run_on_the_host_change_no_other_threads_device(driver):  # noqa: F811
    wp.set_device("cuda:0")
    inside, on = threading.Event(), threading.Event()
    met = []

    def waits(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        inside.set()
        assert on.wait(20)
        met.append(wp.get_device())
        wp.launch(tripled, dim=x.shape, inputs=[x], outputs=[y])

    f = jax.jit(wp.jax_callable(waits, graph_mode=wp.JaxCallableGraphMode.NONE))
    found = []
    thread = threading.Thread(target=lambda: found.append(f(np.arange(3, dtype="f4"))[0].tolist()))
    thread.start()
    assert inside.wait(20)
    seen = wp.get_device()
    wp.set_device("cuda:1")
    on.set()
    thread.join()
    assert seen == "cuda:0" and met == ["cpu"] and wp.get_device() == "cuda:1" and found == [[0.0, 3.0, 6.0]]


@wp.kernel
def loud(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    print(x[i])
    y[i] = x[i]


def test_whatever_fails_while_a_call_is_reported_is_told(monkeypatch):
    def full(*args):
        raise OSError("no room left")

    monkeypatch.setattr(prints, "write", full)
    with pytest.raises(Exception, match="OSError: no room left"):
        jax.block_until_ready(jax.jit(wp.jax_kernel(loud))(np.arange(3, dtype="f4")))


def test_a_report_of_nobody_known_is_told(driver):  # noqa: F811
    x = np.arange(8, dtype="f4")
    wp.config.mode = "debug"
    try:
        (target,), _ = lowered(lambda x: wp.jax_kernel(picky)(x)[0], x)
    finally:
        wp.config.mode = "release"
    a, y = far(x), wp.zeros(8, dtype=float, device="cuda:0")
    wp.synchronize()
    frame = Frame([a.ptr], [y.ptr], current())
    assert frame.call(target) == []
    driver._run_all()
    target._handed[0].fault = 0
    (said,) = frame.call(target)
    assert said.startswith("StopIteration")
    with pytest.raises(wp.KernelAssertionError):
        wp.synchronize()
