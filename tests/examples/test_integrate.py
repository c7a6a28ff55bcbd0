"""The first program prints the right numbers."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_prints_the_positions_after_one_step():
    done = subprocess.run([sys.executable, EXAMPLES / "integrate.py"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    got = np.array(re.findall(r"-?\d+\.\d*(?:e-?\d+)?", done.stdout.split("[[")[1]), dtype=np.float64).reshape(2, 3)
    want = [[0.0, 0.0, 0.5 - 9.81 * 1e-4], [0.2, 0.0, 0.5 - 9.81 * 1e-4]]
    np.testing.assert_allclose(got, want, atol=1e-7)
