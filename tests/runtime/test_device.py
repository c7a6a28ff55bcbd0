"""Devices by name, the current one, streams, events, and the null device."""

import pytest

from tests.runtime import kernels
from treadle.base.binary import Binary
from treadle.base.errors import InternalError
from treadle.runtime import device, streams
from treadle.runtime.construct import zeros
from treadle.runtime.launch import Program


@pytest.mark.host
def test_the_cpu():
    cpu = device.get_device()
    assert cpu is device.get_device("cpu") is device.get_preferred_device() is device.get_devices()[0]
    assert cpu == "cpu" and cpu != "cuda:0" and str(cpu) == "cpu" and {cpu: 1}[cpu] == 1
    assert cpu.is_cpu and not cpu.is_cuda and cpu.name and cpu.total_memory >= 0 and cpu.can_access(cpu)
    assert device.is_cpu_available() and not device.is_cuda_available() and device.is_device_available("cpu")
    assert device.get_cuda_device_count() == 0 and device.get_cuda_devices() == []


@pytest.mark.host
@pytest.mark.parametrize(("name", "words"), [("cuda:0", "NVIDIA"), ("tpu", "no device 'tpu'; devices: cpu")])
def test_unknown_devices(name, words):
    with pytest.raises(ValueError, match=words):
        device.get_device(name)
    with pytest.raises(TypeError):
        device.get_device(3)


@pytest.mark.host
def test_a_scoped_device_ends():
    with device.ScopedDevice("null") as null:
        assert device.get_device() is null and zeros(3).device is null
    assert device.get_device() == "cpu"
    with pytest.raises(KeyError), device.ScopedDevice("null"):
        raise KeyError
    assert device.get_device() == "cpu"


def test_the_null_device_takes_launches_and_runs_nothing():
    null = device.get_device("null")
    binary = Binary(b"no code", ("k",), (), {"symbol": "k"})
    program = Program(null.load(binary), (kernels.V32,), "k")
    a = zeros(3, device="null")
    program.run([a], (3,))
    assert binary in null.loaded and not a.numpy().any() and a.to("cpu").device == "cpu"


def test_code_that_asks_for_what_nobody_has():
    c = kernels.entry("k")
    c.call("void", "@no_such_function_anywhere")
    c.ret(0)
    text = "declare void @no_such_function_anywhere()\n" + c.text()
    with pytest.raises(InternalError, match="cannot load code of k"):
        device.get_device("cpu").load(Binary(kernels.binary(text, "k"), ("k",)))
    with pytest.raises(InternalError, match="no function 'no_such_function_anywhere'"):
        device.get_device("cpu").load(Binary(kernels.binary(text, "k"), ("k",), ("no_such_function_anywhere",)))


def test_streams_and_events():
    stream, other = streams.Stream("cpu"), streams.Stream()
    event = stream.record_event()
    other.wait_event(event)
    other.wait_stream(stream)
    assert event.is_complete and stream.is_complete and stream.device == "cpu" and device.get_device(stream) == "cpu"
    with streams.ScopedStream(other):
        assert streams.get_stream() is other
    assert streams.get_stream() is not other
    streams.synchronize()
    streams.synchronize_device("cpu")
    streams.synchronize_stream(stream)
    streams.synchronize_event(event)


def test_time_between_events():
    first, second = (streams.Event(enable_timing=True) for _ in range(2))
    streams.record_event(first)
    streams.record_event(second)
    assert 0 <= streams.get_event_elapsed_time(first, second) < 1000
    for a, b in ((streams.Event(enable_timing=True), first), (streams.record_event(), first)):
        with pytest.raises(RuntimeError):
            streams.get_event_elapsed_time(a, b)


def test_only_a_stream_can_be_current():
    with pytest.raises(TypeError, match="current stream is a Stream, not NoneType"):
        streams.set_stream(None)
