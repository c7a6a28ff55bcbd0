"""Every example also runs as a script and says what it did."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAYS = {
    "saxpy": "100003 elements, first 0.5, last 3.5",
    "nbody": "energy -0.404433 before, -0.404433 after 20 steps",
    "mandelbrot": "picture in mandelbrot.png",
    "springs": "lowest point -0.0125 m after 0.05 s",
    "histogram": "####",
    "reductions": "positive  179956",
    "spin_lock": "state [  12497500 2065036892], lock 0",
    "tour": "bounces  (1001,)",
}


@pytest.mark.parametrize("name", SAYS)
def test_runs_as_a_script(tmp_path, name):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{name}.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout


def test_every_example_is_tested():
    tests = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"png"}
    assert examples <= tests
    elsewhere = {"integrate", "pick_scene", "reach", "so101_batch", "soft_ball"}
    assert examples - set(SAYS) == elsewhere
