"""Compiling that takes long is said while it goes on, more and more seldom."""

import time

import pytest

import treadle as wp
from treadle.lang import patience


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(patience, "_clock", patience._Clock())
    patience._clock.due = 0.02
    return patience._clock


def test_what_takes_long_is_said_while_it_goes_on(clock, capfd):
    with patience.compiling("inner"):
        with patience.compiling("outer"):
            time.sleep(0.3)
        said = capfd.readouterr()
        assert said.out == "" and said.err.startswith("treadle: compiling inner, 2 kernels in ")
        assert 2 <= said.err.count("\n") <= 5 and str(wp.config.kernel_cache_dir) in said.err
    assert clock.depth == 0 and clock.spent >= 0.3
    clock.due = 1.0
    with patience.compiling("next"):
        pass
    time.sleep(0.1)
    assert capfd.readouterr().err == "", "nothing is compiled any more"


@pytest.mark.parametrize("setting, value", [("quiet", True), ("log_level", wp.LOG_WARNING)])
def test_those_who_ask_for_silence_have_it(clock, capfd, monkeypatch, setting, value):
    monkeypatch.setattr(wp.config, setting, value)
    with patience.compiling("kernel"):
        time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_a_logger_is_told(clock, monkeypatch):
    class Logger:
        def __init__(self):
            self.said = []

        def info(self, message):
            self.said.append(message)

        debug = warning = error = info

    logger = Logger()
    with wp.ScopedLogger(logger):
        with patience.compiling("kernel"):
            time.sleep(0.1)
    assert 1 <= len(logger.said) <= 4 and "compiling kernel" in logger.said[0]
