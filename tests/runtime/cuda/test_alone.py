"""Tests on the stand-in begin alike, whatever tests before them have left."""

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
