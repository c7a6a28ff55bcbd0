"""The wheel is pure Python, complete, and asks for NumPy and llvmlite only."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.house import imports as house
from treadle import stubs

ROOT = Path(__file__).resolve().parents[2]
SETUPTOOLS = pytest.importorskip("setuptools", reason="building a wheel needs setuptools")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    """The wheel, built from a copy so that no build folder is left in the tree."""
    if int(SETUPTOOLS.__version__.split(".")[0]) < 77:
        pytest.skip("licence expressions need setuptools 77")
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "treadle", copy / "treadle", ignore=shutil.ignore_patterns("__pycache__"))
    code = "from setuptools.build_meta import build_wheel; build_wheel('.')"
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    (path,) = copy.glob("*.whl")
    assert path.name.endswith("-py3-none-any.whl")
    return zipfile.ZipFile(path)


def test_holds_only_python(wheel):
    inside = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert [name for name in inside if not name.endswith((".py", ".pyi", "/py.typed"))] == []
    assert wheel.read(next(n for n in wheel.namelist() if n.endswith("/WHEEL"))).count(b"Root-Is-Purelib: true") == 1


def test_holds_every_module(wheel):
    want = {path.relative_to(ROOT).as_posix() for path in house.modules(ROOT).values()}
    assert want <= set(wheel.namelist())
    assert "treadle/py.typed" in wheel.namelist()


def test_holds_the_type_stubs(wheel):
    inside = {name: wheel.read(name).decode() for name in wheel.namelist() if name.endswith(".pyi")}
    assert inside == {f"treadle/{path}": text for path, text in stubs.texts().items()}


def test_needs_numpy_and_llvmlite(wheel):
    metadata = wheel.read(next(n for n in wheel.namelist() if n.endswith("/METADATA"))).decode()
    needed = [line.partition(": ")[2] for line in metadata.splitlines() if line.startswith("Requires-Dist:")]
    always = {re.match(r"[\w-]+", each)[0] for each in needed if "extra ==" not in each}
    assert always == {"numpy", "llvmlite"}
