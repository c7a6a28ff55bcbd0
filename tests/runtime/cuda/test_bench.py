"""The bench of GPUs as a whole, on the stand-in for the driver."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.host  # it has a stand-in of its own
def test_a_part_ends_with_a_table(tmp_path):
    log = tmp_path / "gpu.log"
    command = [sys.executable, "benchmarks/gpu.py", "--dry", "--only", "saxpy", "--log", str(log)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    said = log.read_text()
    assert 'RESULT {"case": "saxpy", "who": "treadle"' in said and '"right": true' in said
    assert [line.split()[0] for line in said.splitlines()[-2:]] == ["treadle", "saxpy"]
