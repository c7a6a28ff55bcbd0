"""Type checkers know every public name, accept usual programs, and refuse what is wrong."""

import ast
import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import treadle as wp
from treadle import stubs
from treadle.__main__ import main

HERE = Path(__file__).resolve().parent
WRONG = """
import treadle as wp

wp.normalise(wp.vec3())  # attr-defined
wp.cross(wp.vec2(), wp.vec2())  # type-var
wp.config.modus = "debug"  # attr-defined
wp.vec3().w  # attr-defined
wp.vec3() + wp.vec2()  # operator
wp.vec3() * wp.mat22()  # operator
wp.mat33() * wp.vec4()  # operator
wp.zeros(3, dtype=float).nunpy()  # attr-defined
wp.launch()  # call-arg
wp.sin("x")  # arg-type
a: float = wp.normalize(wp.vec3())  # assignment
b: wp.vec3 = wp.quat_rotate(wp.quat(), wp.vec3d())  # assignment
c: wp.vec3 = wp.transform_get_translation(wp.transformd())  # assignment
d: wp.vec2 = wp.zeros(3, dtype=wp.vec3)[0]  # assignment
e: int = wp.array([1.0], dtype=float).list  # assignment

@wp.struct
class S:
    x: float

S(x=1.0)  # call-arg

@wp.func
def f(a: wp.array(dtype=float), i: int):  # valid-type
    return a[i]

@wp.func  # no-redef
def f(a: wp.array[float], i: float):
    return a[int(i)]

vec5 = wp.types.vector(5, float)

@wp.func_native("return a[0];")
def g(a: vec5) -> float: ...  # empty-body valid-type
"""


@pytest.fixture(scope="module")
def texts():
    return stubs.texts()


def _names(text: str) -> set[str]:
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            found.update(t.id for t in (node.targets if isinstance(node, ast.Assign) else [node.target]))
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found.update(alias.asname for alias in node.names if alias.asname)
    return found


def test_every_public_name_is_there(texts):
    public = {*wp.__all__, *wp._PYTHON, *wp._GENERIC, "types", "utils", "autograd", "sparse", "fem", "mujoco"}
    assert public - _names(texts["__init__.pyi"]) == set()
    assert set(dir(wp.types)) - _names(texts["types/__init__.pyi"]) == set()
    assert set(wp.utils.__all__) - _names(texts["utils/__init__.pyi"]) == set()
    assert {*wp.autograd.__all__, "jacobian_plot"} - _names(texts["autograd.pyi"]) == set()
    settings = {name for name in vars(wp.config) if not name.startswith("__")}
    assert settings - _names(texts["config.pyi"]) == set()


@pytest.mark.parametrize("name", ["array", "Tape", "Kernel", "Device", "Stream", "ScopedTimer", "transformf"])
def test_classes_have_all_their_members(texts, name):
    trees = {node.name: node for node in ast.parse(texts["__init__.pyi"]).body if isinstance(node, ast.ClassDef)}
    found, waiting = set(), [name]
    while waiting:
        node = trees.get(waiting.pop())
        if node is not None:
            found |= {x.name if isinstance(x, ast.FunctionDef) else x.target.id for x in node.body
                      if isinstance(x, ast.FunctionDef | ast.AnnAssign)}  # fmt: skip
            waiting += re.findall(r"\w+", " ".join(map(ast.unparse, node.bases)))
    assert {member for member in dir(getattr(wp, name)) if not member.startswith("_")} - found == set()


def test_written_where_asked(tmp_path, texts):
    assert main(["stubs", str(tmp_path)]) == 0
    assert {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.pyi")} == texts


def test_the_program_runs():
    assert runpy.run_path(str(HERE / "typed_program.py"))["size"] == 9


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_accepts_what_is_right_and_no_more(tmp_path, texts):
    stubs.write(tmp_path / "treadle")
    for room in ("sparse", "fem", "mujoco"):  # these have no stubs; what is in them is not asked for here
        (tmp_path / "treadle" / room).mkdir()
        (tmp_path / "treadle" / room / "__init__.pyi").touch()
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text((HERE / "typed_program.py").read_text())
    wrong.write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--no-site-packages", "--ignore-missing-imports"]
    command += ["--cache-dir", os.devnull, "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100,
                          env={**os.environ, "MYPYPATH": str(tmp_path)})  # fmt: skip
    found = re.findall(r"^(.+):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    marked = enumerate(WRONG.splitlines(), 1)
    expected = [("wrong.py", str(line), kind) for line, text in marked for kind in text.partition("# ")[2].split()]
    assert found == expected, done.stdout + done.stderr
