"""Locks after a fork: who held them is gone in the child."""

import doctest
import os
import threading

import pytest

from treadle.base import forks
from treadle.lang import slabs
from treadle.runtime import capture, device, loader, tracking


def test_examples():
    assert doctest.testmod(forks).failed == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("module", [capture, device, loader, slabs, tracking], ids=lambda m: m.__name__)
def test_a_lock_that_another_thread_held_is_free_in_a_forked_process(module):
    held, done = threading.Event(), threading.Event()

    def hold():
        with module._lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if not child:
        os._exit(0 if module._lock.acquire(timeout=1.0) else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
