"""Workers: started when they are worth it, as many as the settings say, gone after a fork."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.runtime import kernels
from treadle.base.config import config
from treadle.base.errors import InternalError
from treadle.runtime import native
from treadle.runtime.construct import zeros

pytestmark = pytest.mark.host  # workers are threads of the CPU

ROOT = Path(__file__).resolve().parents[2]


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("treadle-")]


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


START = """
import threading, numpy as np
from tests.runtime import kernels
from treadle.base.config import config
from treadle.runtime.construct import zeros
config.workers = 3
def count(): return sum(t.name.startswith("treadle-") for t in threading.enumerate())
def launch(weight, n=6400):
    a = [zeros(n, dtype=np.int64) for _ in range(2)]
    kernels.visits(weight).run(a, (n,))
    assert (a[0].numpy() == 1).all()
"""


def test_workers_start_with_the_first_launch_that_is_worth_it():
    code = START + "launch(0.1); print(count()); launch(1000.0); print(count()); launch(1000.0); print(count())"
    assert run_python(code) == ["0", "2", "2"]


def test_the_number_of_workers_can_change():
    change = "launch(1e3); config.workers = 5; print(count()); config.workers = 1; launch(1e3); print(count())"
    code = START + change
    assert run_python(code) == ["4", "4"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_after_fork_has_its_own_workers():
    code = (
        START
        + """
import os
launch(1e3)
child = os.fork()
if child == 0:
    before = count()
    launch(1e3)
    launch(1e3)
    os._exit(10 * before + count())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), count())
launch(1e3)
"""
    )
    assert run_python(code) == ["2", "2"]


def test_a_process_ends_while_workers_spin():
    code = START + "launch(1e3); launch(1e3); print('end')"
    for _ in range(5):
        assert run_python(code) == ["end"]


def test_pool_and_records_are_those_of_the_process():
    driver = native.driver()
    assert driver is native.driver() and driver.env["pool"] == driver.pool.address and driver.pool["lock"] == 0
    before, config.workers = config.workers, 2
    a = [zeros(6400, dtype=np.int64) for _ in range(2)]
    kernels.visits(1e3).run(a, (6400,))
    assert driver.pool["limit"] == 2 and len(workers()) >= 1
    config.workers = before


def test_without_a_writer_there_are_no_helpers(monkeypatch):
    monkeypatch.setattr(native, "_provider", None)
    monkeypatch.setattr(native.hooks, "install", lambda: None)
    with pytest.raises(InternalError, match="runtime.native.provide"):
        native.room()
