"""Tests on the stand-in begin alike, whatever tests before them have left."""

import gc

import pytest

import treadle as wp
from tests.runtime.cuda.conftest import alone
from treadle.base.config import config
from treadle.runtime import capture, watch


def test_what_others_left_is_put_away(monkeypatch):
    with monkeypatch.context() as left:
        left.setattr(config, "mode", "debug")
        left.setattr(config, "print_launches", True)
        tape = wp.Tape()
        watch.watch(tape)
        with monkeypatch.context() as patch:
            alone(patch)
            assert config.mode == "release" and not config.print_launches and not watch.watchers
        assert config.mode == "debug"
    with capture.declining(), pytest.raises(AssertionError, match="1 captures of other tests"):
        alone(monkeypatch)


def test_nothing_is_collected_while_the_stand_in_works(gpu, driver):
    """A finalizer that waits for the GPU in the middle of a piece of work would let what comes after overtake it."""
    seen = []
    a = wp.zeros(3, dtype=float)
    with gpu.entered:
        driver._give(wp.get_stream().cuda_stream, "look", lambda: seen.append(gc.isenabled()))
    wp.synchronize()
    assert seen == [False] and gc.isenabled() and a.list() == [0.0] * 3
