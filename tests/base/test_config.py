"""Settings: a misspelt name or a wrong value is told, wherever it comes from."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from treadle.base.config import Config
from treadle.base.folders import user_cache_dir


def test_a_setting_that_does_not_exist_is_refused():
    with pytest.raises(AttributeError, match="no setting 'gangwidth'; it has .*gang_width"):
        Config().gangwidth = 8


@pytest.mark.parametrize(
    ("name", "value"),
    [("gang_width", 3), ("gang_width", "8"), ("workers", 0), ("workers", 1.5), ("mode", "fast"),
     ("check_races", "a"), ("verify_fp", "yes"), ("quiet", 3), ("verbose", None), ("enable_backward", 0.5),
     ("max_unroll", -1), ("max_unroll", True), ("max_unroll", None), ("kernel_cache_dir", 3), ("log_level", "debug"),
     ("compile_workers", 0), ("version", 1.19)],
)  # fmt: skip
def test_a_value_that_a_setting_does_not_take_is_refused(name, value):
    config = Config()
    before = getattr(config, name)
    with pytest.raises(ValueError, match=name):
        setattr(config, name, value)
    assert getattr(config, name) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [("verify_fp", 1), ("quiet", 0), ("quiet", np.True_), ("kernel_cache_dir", Path("kept")), ("max_unroll", 0),
     ("kernel_cache_dir", None), ("log_level", 10), ("compile_workers", None), ("optimization_level", None)],
)  # fmt: skip
def test_a_value_as_programs_write_it_is_taken(name, value):
    config = Config()
    setattr(config, name, value)
    assert getattr(config, name) == value


def test_compiled_kernels_are_kept_where_programs_keep_such_things(monkeypatch, tmp_path):
    for name in ("TREADLE_CACHE_DIR", "TREADLE_CACHE_PATH"):
        monkeypatch.delenv(name, raising=False)
    assert Config().kernel_cache_dir == os.path.join(user_cache_dir(), "treadle")
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path))
    assert Config().kernel_cache_dir == str(tmp_path)


def test_watchers_are_told_the_new_value(monkeypatch):
    monkeypatch.setattr("treadle.base.config._WATCHERS", {})
    config, seen = Config(), []
    config.watch("max_unroll", seen.append)
    config.max_unroll = 5
    config.verbose = True
    assert seen == [5]


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("TREADLE_GANG_WIDTH", "3", "gang_width must be None or one of 1, 2, 4"),
        ("TREADLE_GANG_WIDTH", "wide", "TREADLE_GANG_WIDTH must be int, not 'wide'"),
        ("TREADLE_WORKERS", "0", "workers must be None or a positive int"),
        ("TREADLE_MODE", "fast", "mode must be 'release' or 'debug'"),
    ],
)
def test_the_environment_is_checked_as_well(variable, value, words):
    done = subprocess.run(
        [sys.executable, "-c", "import treadle"], env={variable: value}, capture_output=True, text=True, timeout=60,
        cwd=__file__.rpartition("tests")[0],
    )  # fmt: skip
    assert done.returncode and words in done.stderr
