"""What a user is told where something is missing, and that nobody looks for a driver before a GPU is asked for."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import treadle as wp
from tests.runtime.cuda.standin import Driver
from treadle.runtime import cuda
from treadle.runtime.cuda import driver as drivers

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def without(request, monkeypatch):
    """Lets the machine lack things: the extra, the library of the driver."""
    if request.config.getoption("--on"):
        pytest.skip("the machine's own driver is in use")

    def make(bindings, library: bool):
        def import_bindings():
            if isinstance(bindings, Exception):
                raise bindings
            return bindings

        monkeypatch.setattr(drivers, "_bindings", import_bindings)
        monkeypatch.setattr(drivers, "has_library", lambda: library)
        cuda.reset()

    yield make
    monkeypatch.undo()
    cuda.reset()


class NoLibrary:
    """Bindings behind which there is no library, as ``cuda.bindings`` are then."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=0)

    @staticmethod
    def cuInit(flags):
        raise RuntimeError("libcuda was not found")


def said() -> str:
    """What asking for a GPU says; the same in all ways to ask."""
    assert not wp.is_cuda_available() and wp.get_cuda_device_count() == 0 and wp.get_cuda_devices() == []
    assert wp.get_devices() == ["cpu"] and not wp.is_device_available("cuda:0")
    assert wp.get_cuda_driver_version() is None and not wp.is_conditional_graph_supported()
    messages = set()
    for ask in (lambda: wp.get_device("cuda:0"), lambda: wp.zeros(1, device="cuda:0"), lambda: wp.set_device("cuda:0")):
        with pytest.raises(ValueError, match="no device 'cuda:0': ") as caught:
            ask()
        messages.add(str(caught.value).partition(": ")[2])
    with pytest.raises(wp.DeviceError) as caught:
        wp.get_cuda_device()
    assert messages == {str(caught.value)}
    return messages.pop()


def test_no_driver(without):
    without(ImportError("no module"), library=False)
    assert said() == "this machine has no NVIDIA driver"
    with pytest.raises(ValueError, match="no NVIDIA driver"):
        wp.get_device("cuda")


def test_a_driver_without_the_extra(without):
    without(ImportError("no module"), library=True)
    message = said()
    assert message == f"this machine has an NVIDIA driver, but not the extra that talks to it: {drivers.EXTRA}"
    assert "treadle[cuda]" in message


def test_the_extra_without_a_driver(without):
    without(NoLibrary(), library=False)
    assert "the extra treadle[cuda] is installed, but this machine has no NVIDIA driver" in said()


def test_no_gpu(without):
    without(Driver(devices=()), library=True)
    assert "found no GPU it can use" in said() and "CUDA_ERROR_NO_DEVICE (no device)" in said()


def test_a_gpu_that_is_too_old(without):
    without(Driver(devices=(("Old", (6, 1)), ("New", (8, 6)))), library=True)
    assert wp.get_devices() == ["cpu", "cuda:1"] and wp.is_cuda_available() and wp.get_cuda_supported_archs() == [86]
    with pytest.raises(ValueError, match=r"cuda:0 \(Old\) has compute capability 6.1; kernels need 7.5 or newer"):
        wp.get_device("cuda:0")
    with pytest.raises(ValueError, match="there is no device cuda:2; this machine has cuda:0 to cuda:1"):
        wp.get_device("cuda:2")
    with pytest.raises(ValueError, match="no device 'cuda:x'; devices: cpu"):
        wp.get_device("cuda:x")


def test_what_a_gpu_is(driver):
    first, second = wp.get_cuda_devices()
    assert (first.alias, first.ordinal, first.arch, first.name) == ("cuda:0", 0, 90, "Stand-in") and first != second
    assert first.is_cuda and not first.is_cpu and wp.get_device("cuda") is first and wp.get_cuda_device() is first
    assert first.pci_bus_id == "0000:00:00.0" and first.uuid.startswith("GPU-00010203-0405") and not first.has_context
    assert wp.get_cuda_driver_version() == (12, 4) and wp.is_conditional_graph_supported()
    wp.set_device(second)
    assert wp.get_device("cuda") is second is wp.get_device()
    a = wp.zeros(3, dtype=float)
    assert a.device is second and second.has_context and second.free_memory < second.total_memory
    assert wp.map_cuda_device("mine", second.context) is second and wp.get_device("mine") is second
    wp.unmap_cuda_device("mine")
    with pytest.raises(wp.DeviceError, match="given the name"):
        wp.unmap_cuda_device("mine")


@wp.kernel
def plain(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


def test_what_a_kernel_takes(gpu, driver):
    found = wp.get_cuda_kernel_properties(plain, gpu)
    assert found["register_count"] == 36 and set(found) >= {"local_memory_size", "max_threads_per_block"}
    assert wp.get_cuda_kernel_properties(plain, block_dim=64)["register_count"] == 36
    assert wp.get_suggested_block_size(plain, gpu) == (512, 16) and wp.get_suggested_block_size(plain, "cpu") == (1, 1)
    with pytest.raises(RuntimeError, match="cpu is no CUDA device"):
        wp.get_cuda_kernel_properties(plain, "cpu")
    with wp.ScopedCudaProfiler(gpu):
        assert driver.names()[-1] == "cuProfilerStart"
    assert driver.names()[-1] == "cuProfilerStop"


def test_what_the_driver_refuses_is_named(gpu, driver):
    with pytest.raises(MemoryError, match="cuda:0.*cuMemAllocFromPoolAsync: CUDA_ERROR_OUT_OF_MEMORY"):
        wp.empty(1 << 30, dtype=float)


def test_a_program_on_the_cpu_looks_for_no_driver(tmp_path):
    """Neither importing treadle nor running something on the CPU imports the bindings or loads the library."""
    code = (
        "import sys, treadle as wp, numpy as np\n"
        "def refuse(event, args):\n"
        "    if event == 'ctypes.dlopen' and 'cuda' in str(args): raise SystemExit(args)\n"
        "sys.addaudithook(refuse)\n"
        "@wp.kernel\n"
        "def k(x: wp.array(dtype=float)):\n"
        "    x[wp.tid()] = 1.0\n"
        "x = wp.zeros(3, dtype=float)\n"
        "wp.launch(k, dim=3, inputs=[x])\n"
        "wp.synchronize()\n"
        "print([name for name in sys.modules if name.startswith(('cuda', 'treadle.runtime.cuda'))])\n"
    )
    path = tmp_path / "program.py"
    path.write_text(code)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, env=env)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
