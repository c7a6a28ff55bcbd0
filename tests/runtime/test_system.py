"""What the runtime asks of the operating system."""

import subprocess
import sys
from pathlib import Path

import pytest

from treadle.runtime import system

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux names a machine")
def test_a_machine_has_one_name_as_long_as_it_runs():
    here = system.machine()
    code = "from treadle.runtime import system; import sys; sys.stdout.write(system.machine())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == here != ""
    assert "MHz" not in here and "model" in here or "CPU part" in here


def test_a_machine_that_cannot_be_told_has_no_name(monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError

    monkeypatch.setattr("builtins.open", refuse)
    assert system.machine() == ""


def test_some_core_is_usable():
    assert system.usable_cores() >= 1
