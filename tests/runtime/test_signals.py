"""Ctrl-C ends an endless kernel, and the handlers of SIGINT are as before afterwards."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A program in the background of a shell is begun with SIGINT ignored, and so are those that it begins.
ENDLESS = """
import sys, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tests.runtime import kernels
from treadle.runtime import fast
program = kernels.endless()
native = {native}
launcher = fast.launcher()
fast.add(launcher, program)
print("running", flush=True)
try:
    launcher(10, (), ()) if native else program.run([], (10,))
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
    program.run([], (0,))
    sys.exit(7)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a console signal cannot be sent to one child")
@pytest.mark.parametrize("native", [False, True])
def test_ctrl_c_ends_an_endless_kernel(native):
    child = subprocess.Popen(
        [sys.executable, "-c", ENDLESS.format(native=native)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "running\n"
        time.sleep(0.6)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=20)
    finally:
        child.kill()
    assert out == "interrupted True\n" and child.returncode == 7


IGNORED = """
import signal, threading, os, time
signal.signal(signal.SIGINT, lambda *_: print("mine", flush=True))
from tests.runtime import kernels
from treadle.runtime import native
program, _ = kernels.endless(), native.driver()
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    program.run([], (10,))
except KeyboardInterrupt:
    print("and the launch says so", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a console signal cannot be sent to one child")
def test_a_handler_of_the_user_runs_and_the_launch_does_not_end_in_silence():
    done = subprocess.run([sys.executable, "-c", IGNORED], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert done.stdout == "mine\nand the launch says so\n", done.stderr


LONG = """
import signal, threading, os, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
from tests.runtime import kernels
from treadle.runtime import native
from treadle.runtime.construct import zeros
program, n, _ = kernels.slow(), zeros(2_000_000, dtype=np.int64), native.driver()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    program.run([n], (2_000_000,))
except KeyboardInterrupt:
    counts = set(n.numpy().tolist())
    print(counts == {0, 2000})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a console signal cannot be sent to one child")
def test_a_long_launch_ends_between_chunks():
    done = subprocess.run([sys.executable, "-c", LONG], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr


LASTING = ("single", "single32", "varying", "loaded", "nested", "many", "total", "counted", "replayed")


@pytest.mark.skipif(sys.platform == "win32", reason="a console signal cannot be sent to one child")
@pytest.mark.parametrize("which", LASTING)
def test_loops_that_are_counted_and_large_grids_end(which):
    command = [sys.executable, "-m", "tests.runtime.lasting", which]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "begun\nended True\n", done.stderr
