"""PyTorch's current stream and treadle's, with stand-ins for both the driver and PyTorch's side of it."""

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

import treadle as wp
from tests.interop.torch_standin import Tensor, install
from tests.runtime.cuda.conftest import driver, gpu  # noqa: F401


@wp.kernel
def double(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


@pytest.fixture
def theirs(gpu, monkeypatch):  # noqa: F811
    """PyTorch's current stream, which tests change: its handle is ``now``."""
    made = SimpleNamespace(stream=wp.Stream(gpu))
    made.now = made.stream.cuda_stream
    install(monkeypatch, made)
    return made


def waits(driver):  # noqa: F811
    """Who waits for whom, and on which streams kernels are, in order."""
    said, last = [], 0
    for name, args in driver.calls:
        if name == "cuEventRecord":
            last = args[1]
        elif name == "cuStreamWaitEvent":
            said.append((args[0], "after", last))
        elif name == "cuLaunchKernel":
            said.append(("kernel", args[8]))
    return said


def test_a_launch_comes_after_pytorchs_work_and_before_what_follows(gpu, driver, theirs):  # noqa: F811
    x = wp.ones(3, dtype=float)
    tensor, ours = Tensor(x), wp.get_stream().cuda_stream
    wp.launch(double, dim=3, inputs=[x])
    for launched in ({"inputs": [tensor]}, {"inputs": [], "outputs": [tensor]}):
        driver.calls.clear()
        wp.launch(double, dim=3, **launched)
        assert waits(driver) == [(ours, "after", theirs.now), ("kernel", ours), (theirs.now, "after", ours)]
    driver.calls.clear()
    wp.launch(double, dim=3, inputs=[x])
    assert waits(driver) == [("kernel", ours)]  # nobody waits for what is not lent
    theirs.now = ours
    driver.calls.clear()
    wp.launch(double, dim=3, inputs=[tensor])
    assert waits(driver) == [("kernel", ours)] and x.list() == [32.0] * 3


def test_arrays_and_streams_go_over(gpu, driver, theirs):  # noqa: F811
    x, ours = wp.ones(3, dtype=float), wp.get_stream().cuda_stream
    driver.calls.clear()
    made = wp.from_torch(Tensor(x))
    assert made.ptr == x.ptr and made.device is gpu and waits(driver) == [(ours, "after", theirs.now)]
    for given in (None, "cuda:0", SimpleNamespace(cuda_stream=theirs.now, device="cuda:0")):
        found = wp.stream_from_torch(given)
        assert found.cuda_stream == theirs.now and found.device is gpu
    assert wp.stream_to_torch(gpu).cuda_stream == ours and wp.stream_to_torch(theirs.stream).device == "cuda:0"
    driver.calls.clear()
    with wp.ScopedStream(wp.stream_from_torch()):
        wp.launch(double, dim=3, inputs=[Tensor(x)])
    assert waits(driver)[:2] == [(theirs.now, "after", ours), ("kernel", theirs.now)]
    assert x.list() == [1.0] * 3 and theirs.stream.is_complete is False
    wp.synchronize()
    assert x.list() == [2.0] * 3


def test_nothing_is_lent_beyond_a_launch(gpu, driver, theirs):  # noqa: F811
    """Whether it fails, or becomes part of a graph or of a command: the next one lets nobody wait."""
    x = wp.ones(3, dtype=float)
    tensor, ours = Tensor(x), wp.get_stream().cuda_stream
    wp.launch(double, dim=3, inputs=[x])

    def captured():
        with wp.ScopedCapture():
            wp.launch(double, dim=3, inputs=[tensor])

    def too_far():
        with pytest.raises(wp.IndexOutOfRange):
            wp.launch(double, dim=4, inputs=[tensor])

    def elsewhere():
        with pytest.raises(wp.LaunchError):
            wp.launch(double, dim=3, inputs=[tensor], device="cpu")

    def too_many():
        with pytest.raises(wp.LaunchError):
            wp.launch(double, dim=3, inputs=[tensor, 1.0])

    for use in (captured, too_far, elsewhere, too_many,
                lambda: wp.launch(double, dim=0, inputs=[tensor]),
                lambda: wp.launch(double, dim=3, inputs=[tensor], record_cmd=True)):  # fmt: skip
        use()
        driver.calls.clear()
        wp.launch(double, dim=3, inputs=[x], checked=False)
        assert waits(driver) == [("kernel", ours)] and not gpu.lent.streams
