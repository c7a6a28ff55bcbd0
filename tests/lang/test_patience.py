"""Compiling that takes long is said while it goes on, more and more seldom."""

import threading
from types import SimpleNamespace

import pytest

import treadle as wp
from treadle.lang import patience


class Time:
    """Time that passes when it is told to, and timers that go by it."""

    def __init__(self):
        self.now, self.timers, self.rings = 0.0, [], None

    def timer(self, seconds, function, args):
        made = SimpleNamespace(due=self.now + seconds, function=function, args=args)
        made.start, made.cancel = lambda: self.timers.append(made), lambda: self.timers.remove(made)
        return made

    def passes(self, seconds):
        end = self.now + seconds
        while self.timers and (first := min(self.timers, key=lambda timer: timer.due)).due <= end:
            self.timers.remove(first)
            self.now, self.rings = first.due, first
            first.function(*first.args)
        self.now = end


@pytest.fixture
def time(monkeypatch):
    made = Time()
    names = {"Lock": threading.Lock, "Timer": made.timer, "current_thread": lambda: made.rings}
    monkeypatch.setattr(patience, "threading", SimpleNamespace(**names))
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: made.now))
    monkeypatch.setattr(patience, "_clock", patience._Clock())
    return made


def test_what_takes_long_is_said_while_it_goes_on(time, capfd):
    with patience.compiling("outer"):
        with patience.compiling("inner"):
            time.passes(4.9)
        assert capfd.readouterr().err == ""
        time.passes(45.0)
        said = capfd.readouterr()
        kept = f"; what is compiled is kept in {wp.config.kernel_cache_dir}"
        lines = [f"treadle: compiling outer, 2 kernels in {n} s so far{kept}" for n in (5, 10, 20, 40)]
        assert said.out == "" and said.err.splitlines() == lines
    time.passes(1000.0)  # nothing is compiled any more
    with patience.compiling("next"):
        time.passes(30.0)
        assert capfd.readouterr().err == ""
        time.passes(0.2)
        assert "compiling next, 3 kernels in 80 s" in capfd.readouterr().err
    assert patience._clock.depth == 0 and patience._clock.spent == pytest.approx(80.1)


@pytest.mark.parametrize("setting, value", [("quiet", True), ("log_level", wp.LOG_WARNING)])
def test_those_who_ask_for_silence_have_it(time, capfd, monkeypatch, setting, value):
    monkeypatch.setattr(wp.config, setting, value)
    with patience.compiling("kernel"):
        time.passes(100.0)
    assert capfd.readouterr().err == ""


def test_a_logger_is_told(time):
    class Logger:
        def __init__(self):
            self.said = []

        def info(self, message):
            self.said.append(message)

        debug = warning = error = info

    logger = Logger()
    with wp.ScopedLogger(logger), patience.compiling("kernel"):
        time.passes(15.0)
    assert len(logger.said) == 2 and "compiling kernel, 1 kernels in 5 s" in logger.said[0]
