"""Imports point only down, foreign libraries stay in their rooms, and the tests that say so have teeth."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import imports as house

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("llvmlite", "mujoco", "jax", "torch", "matplotlib", "pxr")


@pytest.fixture(scope="module")
def found() -> list[house.Import]:
    imports = house.imports(ROOT)
    assert len(imports) > 10, "the walk must see the real tree"
    return imports


def test_imports_point_down(found):
    assert house.pointing_up(found) == []


def test_every_folder_has_a_floor():
    assert house.unknown_rooms(ROOT) == []


def test_foreign_libraries_stay_in_their_rooms(found):
    assert house.foreign_outside(found) == []


def test_no_rings(found):
    assert house.rings(found) == []


def test_environment_variables_are_read_in_one_file():
    assert house.environment_reads(ROOT) == []


def run_python(code: str) -> str:
    """Run ``code`` in a fresh interpreter at the root of the tree and return what it printed."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_heavy():
    code = f"import sys, treadle; print([name for name in {HEAVY} if name in sys.modules])"
    assert run_python(code).strip() == "[]"


def test_import_is_quick():
    """Under 0.1 s of processor time beyond numpy, in the best of five processes."""
    code = "import time, numpy; t = time.process_time(); import treadle; print(time.process_time() - t)"
    assert min(float(run_python(code)) for _ in range(5)) < 0.1


# A tree that breaks every rule once: path, source, the rule that must notice, words that its sentence must hold.
VIOLATIONS = [
    ("types/a.py", "from treadle.ir import Value", house.pointing_up, "types (floor 1) may not import ir"),
    ("ir/a.py", "from ..lang import launch", house.pointing_up, "treadle.ir.a:1 imports treadle.lang"),
    ("ir/b.py", "def f():\n    import treadle.lang.launch", house.pointing_up, "treadle.ir.b:2"),
    ("ir/c.py", "class C:\n    def f(self):\n        from .. import view", house.pointing_up, "treadle.view"),
    ("ir/d.py", "if TYPE_CHECKING:\n    from treadle.view import Page", house.pointing_up, "treadle.view"),
    ("ir/e.py", "import importlib\nm = importlib.import_module('treadle.fem')", house.pointing_up, "treadle.fem"),
    ("ir/f.py", "import treadle as wp", house.pointing_up, "may not import the face"),
    ("codegen/a.py", "from treadle.runtime.array import Array", house.pointing_up, "may not import runtime"),
    ("runtime/a.py", "from treadle.codegen import cpu", house.pointing_up, "may not import codegen"),
    ("runtime/b.py", "from treadle.ir import show", house.pointing_up, "runtime may import only ['base', 'types']"),
    ("sparse/a.py", "import treadle.geometry.bvh", house.pointing_up, "may not import geometry"),
    ("ir/g.py", "import llvmlite.binding as llvm", house.foreign_outside, "belongs in ['codegen', 'runtime']"),
    ("codegen/b.py", "def f():\n    import mujoco", house.foreign_outside, "belongs in ['mujoco']"),
    ("lang/a.py", "from jax import numpy", house.foreign_outside, "belongs in ['interop']"),
    ("lang/b.py", "import scipy.linalg", house.foreign_outside, "unknown"),
    ("runtime/c.py", "import os\nx = os.environ.get('HOME')", house.environment_reads, "treadle.runtime.c:2"),
    ("runtime/d.py", "from os import getenv", house.environment_reads, "treadle.runtime.d:1"),
    ("cellar/a.py", "", house.unknown_rooms, "treadle/cellar has no floor"),
]


def plant(root: Path, files: dict[str, str]) -> list[house.Import]:
    for path, source in {"__init__.py": "", "base/config.py": "import os\nX = os.environ.get('X')", **files}.items():
        target = root / house.PACKAGE / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source)
        if target.parent != root / house.PACKAGE and not (target.parent / "__init__.py").exists():
            (target.parent / "__init__.py").write_text("")
    return house.imports(root)


@pytest.mark.parametrize(("path", "source", "rule", "words"), VIOLATIONS, ids=[v[0] for v in VIOLATIONS])
def test_each_violation_is_noticed(tmp_path, path, source, rule, words):
    rooms = {f"{name}/__init__.py": "" for name in house.FLOORS if name}
    found = plant(tmp_path, {**rooms, path: source})
    by_tree = rule in (house.environment_reads, house.unknown_rooms)
    wrong = rule(tmp_path) if by_tree else rule(found)
    assert len(wrong) == 1 and words in wrong[0]


def test_allowed_imports_pass(tmp_path):
    found = plant(
        tmp_path,
        {
            "types/a.py": "import numpy\nfrom treadle.base import errors\nfrom . import b",
            "types/b.py": "from __future__ import annotations",
            "codegen/a.py": "import llvmlite\nfrom treadle.ir import show\nfrom ..passes import fold",
            "runtime/a.py": "import ctypes\nfrom treadle.types import scalar",
            "lang/a.py": "import treadle.codegen.a, treadle.runtime.a",
            "mujoco/a.py": "import mujoco\nimport treadle as wp",
        },
    )
    assert len(found) == 14
    assert house.pointing_up(found) + house.foreign_outside(found) + house.rings(found) == []
    assert house.environment_reads(tmp_path) == []


def test_a_ring_is_noticed_unless_lazy(tmp_path):
    files = {"ir/a.py": "from . import b", "ir/b.py": "from . import c", "ir/c.py": "from . import a"}
    assert house.rings(plant(tmp_path, files)) == ["treadle.ir.a <-> treadle.ir.b <-> treadle.ir.c"]
    files["ir/c.py"] = "def f():\n    from . import a"
    assert house.rings(plant(tmp_path, files)) == []
