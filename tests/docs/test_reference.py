"""The reference lists every builtin with a signature and a description."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.builtins.names import MODULES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("docs_out")
    command = [sys.executable, ROOT / "docs" / "reference.py", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return (folder / "builtins.md").read_text()


def test_every_builtin_is_described(page):
    entries = {re.match(r"\w+", part)[0]: part for part in page.split("\n### ")[1:]}
    assert entries.keys() == MODULES.keys()
    for name, entry in entries.items():
        signatures, _, text = entry.partition("```python\n")[2].partition("```\n")
        assert all(line.startswith(f"{name}(") for line in signatures.splitlines()) and signatures, name
        assert len(text.strip()) > 10, name


def test_an_entry_reads_as_it_should(page):
    entry = page[page.index("### cross\n") : page.index("### outer\n")]
    assert "cross(a: Vec(3, Scalar), b: Vec(3, Scalar))" in entry
    assert ">>> wp.cross(wp.vec3(1.0, 0.0, 0.0), wp.vec3(0.0, 1.0, 0.0))\nvec3f([0.0, 0.0, 1.0])" in entry
