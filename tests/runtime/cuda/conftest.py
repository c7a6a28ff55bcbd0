"""Tests of GPUs without one: the driver is a stand-in, see ``standin.py``."""

import gc

import pytest

import treadle as wp
from tests.runtime.cuda.standin import Driver
from treadle.base import config as settings
from treadle.base.config import config
from treadle.codegen.nvptx import merging
from treadle.runtime import capture, cuda, streams, watch
from treadle.runtime.device import far


def alone(monkeypatch):
    """What the order of calls depends on beside the program, whatever tests before have left: settings, tapes that
    look on, captures under way, on which launches go another way."""
    for name, value in settings._DEFAULTS.items():
        if getattr(config, name) != value and name not in ("kernel_cache_dir", "gang_width", "workers"):
            monkeypatch.setattr(config, name, value)
    for tape in watch.watching():
        watch.leave(tape)
    assert not capture.active, f"{capture.active} captures of other tests are under way: {capture.here()}"


@pytest.fixture
def driver(request, monkeypatch, tmp_path_factory):
    """A stand-in with two GPUs; afterwards everything on them must have gone."""
    if request.config.getoption("--on"):
        pytest.skip("it has a stand-in of its own")
    alone(monkeypatch)
    monkeypatch.setattr(config, "kernel_cache_dir", str(tmp_path_factory.mktemp("kernels")))
    for name in ("MERGERS", "SCANNERS"):  # threads that wait for each other are threads of the system here
        monkeypatch.setattr(merging, name, 8)
    made = Driver().install(monkeypatch)
    yield made
    wp.set_device("cpu")
    gc.collect()
    for each in list(far):
        each.synchronize()
        streams.forget(each)
    left = [sum(arena.live.values()) for arena in made.arenas]
    cuda.reset()
    assert left == [0] * len(left), "memory of arrays that have gone is still taken"


@pytest.fixture
def gpu(driver):
    """The first GPU, which is the current device."""
    device = wp.get_device("cuda:0")
    wp.set_device(device)
    driver.calls.clear()
    return device
