"""Calls of the driver as NVIDIA's bindings take them: the same functions, arguments, constants and records."""

import numpy as np
import pytest

import treadle as wp
from treadle.runtime.cuda import driver as drivers


@wp.kernel
def halve(left: wp.array(dtype=int), x: wp.array(dtype=float)):
    left[0] -= 1
    x[0] = 0.5 * x[0]
    wp.atomic_add(x, 1, x[0])


def test_the_bindings_take_what_they_are_given(driver):
    """A program that uses most of the runtime; each of its calls is tried on the bindings."""
    bindings = pytest.importorskip("cuda.bindings.driver")
    if drivers.has_library():
        pytest.skip("there is a driver: the bindings would do what they are told")
    driver.beside(bindings)
    with wp.ScopedDevice("cuda:0") as device:
        left, x = wp.zeros(1, dtype=int), wp.array(np.ones(3, np.float32))
        x[::2].fill_(4.0)
        stream, event = wp.Stream(device), wp.Event(device, enable_timing=True)
        with wp.ScopedStream(stream):
            stream.record_event(event)
            wp.launch(halve, dim=1, inputs=[left, x])
        wp.synchronize()
        assert event.is_complete and stream.is_complete and x.list() == [2.0, 3.0, 4.0]
        with wp.ScopedCapture() as capture:
            left.fill_(3)
            wp.capture_while(left, lambda: wp.launch(halve, dim=1, inputs=[left, x]))
        wp.capture_launch(capture.graph)
        assert x.list() == [0.25, 4.75, 4.0]
        assert x.to("cuda:1").list() == x.list() and device.free_memory and device.total_memory
        assert device.heap.used() > 0
        device.peer(wp.get_device("cuda:1"), True)
        device.heap.share(wp.get_device("cuda:1"), True)
    called = {name for name, _ in driver.calls}
    assert called >= {"cuLaunchKernel", "cuGraphAddNode", "cuStreamUpdateCaptureDependencies", "cuMemPoolSetAccess"}
    assert len(called) > 50
    driver.bindings = None
