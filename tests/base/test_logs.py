"""Loggers: who receives what, at which level, and which line a warning names."""

import warnings

import pytest

import treadle as wp
from treadle.base.logs import LoggerBasic, log_debug, log_error, log_info, log_warning


class Kept:
    """A logger that keeps what it is told."""

    def __init__(self):
        self.heard = []

    def debug(self, message):
        self.heard.append(("debug", message))

    def info(self, message):
        self.heard.append(("info", message))

    def warning(self, message, category=None, stacklevel=1):
        self.heard.append(("warning", message))
        warnings.warn(message, category, stacklevel=stacklevel)

    def error(self, message):
        self.heard.append(("error", message))


def say_all():
    log_debug("d")
    log_info("i")
    log_error("e")


@pytest.mark.parametrize(
    ("level", "heard"), [(wp.LOG_DEBUG, "die"), (wp.LOG_INFO, "ie"), (wp.LOG_WARNING, "e"), (wp.LOG_ERROR + 9, "e")]
)
def test_levels(level, heard):
    logger = Kept()
    with wp.ScopedLogger(logger) as scope, wp.ScopedLogLevel(level):
        assert wp.get_logger() is scope.logger is logger and wp.config.log_level == level
        say_all()
    assert "".join(message for _, message in logger.heard) == heard
    assert isinstance(wp.get_logger(), LoggerBasic) and wp.config.log_level == wp.LOG_INFO


def test_the_basic_logger_writes_to_both_streams(capsys):
    say_all()
    said = capsys.readouterr()
    assert said.out == "i\n" and said.err == "treadle error: e\n"


@pytest.mark.parametrize("logger", ["text", object(), Kept])
def test_what_is_no_logger_is_refused(logger):
    with pytest.raises(TypeError, match="a logger has the methods debug, info, warning and error"):
        wp.set_logger(logger)


@pytest.mark.parametrize("logger", [None, Kept()])
def test_a_warning_names_the_line_outside(logger):
    with wp.ScopedLogger(logger), pytest.warns(RuntimeWarning, match="odd") as seen:
        log_warning("odd", RuntimeWarning)
    assert seen[0].filename == __file__


def test_a_deprecation_and_what_is_to_be_said_once_are_said_once():
    with wp.ScopedLogger(Kept()) as scope, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            log_warning("this test's old way", DeprecationWarning)
            log_warning("this test's word", once=True)
            log_warning("this test's other word")
    assert [message for _, message in scope.logger.heard] == [
        "this test's old way", "this test's word", "this test's other word", "this test's other word",
    ]  # fmt: skip


def test_launches_are_told_to_the_logger(monkeypatch):
    @wp.kernel
    def nothing(n: int):
        pass

    monkeypatch.setattr(wp.config, "print_launches", True)
    with wp.ScopedLogger(Kept()) as scope:
        wp.launch(nothing, dim=3, inputs=[1])
    assert scope.logger.heard == [("info", "kernel: nothing, device: cpu, dim: (3,)")]
