"""``import warp`` gives treadle: in a process, in a script, submodules and private names included."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import warp.config, warp as wp, warp.types, warp.utils as utils, sys
from warp._src.types import scalar_types, type_is_float
import warp._src.context as context
import treadle, treadle.compat

assert wp is treadle and warp.config is treadle.config and utils is treadle.utils
assert context is wp._src.context is treadle.compat.context and wp.float32 in scalar_types and type_is_float(float)
assert treadle.__spec__.name == "treadle" == treadle.__name__ and "warp.lang" not in sys.modules
for name, why in (("render", "not part of this"), ("colour", "treadle has no 'colour'"), ("pi", "is no module")):
    try:
        __import__("warp." + name)
    except ModuleNotFoundError as error:
        assert why in str(error) and error.name == "warp." + name, error
    else:
        raise AssertionError(name)
try:
    from warp import Volume
except ImportError:
    pass
print(__name__, sys.argv[1:], __file__ in sys.argv[0], flush=True)
raise SystemExit(7)
"""


def run(*command, cwd):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=60, cwd=cwd,
                          env={"PYTHONPATH": str(ROOT)})  # fmt: skip


@pytest.mark.parametrize("way", [["program.py"], ["-m", "program"]])
def test_a_script_runs_as_it_is(way, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "beside.py").write_text("", encoding="utf-8")
    done = run("-m", "treadle", "run", *way, "a", "--b", cwd=tmp_path)
    assert done.stdout == "__main__ ['a', '--b'] True\n" and done.returncode == 7, done.stderr


@pytest.mark.parametrize("way", [["nofile.py"], ["."], ["-m", "nomodule"], ["-m", "no.module"], ["-m", "package"]])
def test_a_script_that_is_not_there_is_told_in_a_line(way, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    done = run("-m", "treadle", "run", *way, cwd=tmp_path)
    assert done.returncode == 2 and repr(way[-1]) in done.stderr and done.stderr.count("\n") == 1, done.stderr


CHILDREN = """
import multiprocessing, subprocess, sys
import warp as wp

def work(n):
    return wp.__name__, n

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [1]), flush=True)
    code = "import warp.types, warp, sys; print(warp.__name__, warp is sys.modules['treadle'])"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout, end="")
"""


def test_processes_that_a_program_starts_have_it_too(tmp_path):
    (tmp_path / "program.py").write_text(CHILDREN, encoding="utf-8")
    done = run("-m", "treadle", "run", "program.py", cwd=tmp_path)
    assert done.stdout == "[('treadle', 1)]\ntreadle True\n", done.stderr


def test_examples_of_an_installed_warp_run_with_treadle(tmp_path):
    example = tmp_path / "warp" / "examples" / "core"
    example.mkdir(parents=True)
    (tmp_path / "warp" / "__init__.py").write_text("raise AssertionError('Warp itself is imported')", encoding="utf-8")
    (tmp_path / "warp" / "config.py").write_text("version = 'theirs'", encoding="utf-8")
    (tmp_path / "warp" / "examples" / "__init__.py").write_text("folder = __file__", encoding="utf-8")
    text = "import warp as wp, warp.config as c\nprint(wp.__name__, c is wp.config)\n"
    (example / "wave.py").write_text(text, encoding="utf-8")
    program = "import treadle as t; t.install_as_warp(); import warp.examples.core.wave; print(warp.examples.folder)"
    done = run("-c", program, cwd=tmp_path)
    assert done.stdout.startswith("treadle True\n") and str(tmp_path) in done.stdout, done.stderr


def test_the_name_that_is_taken(tmp_path):
    (tmp_path / "warp.py").write_text("", encoding="utf-8")
    done = run("-c", "import warp, treadle; treadle.install_as_warp()", cwd=tmp_path)
    assert "NVIDIA Warp is already imported in this process" in done.stderr and done.returncode == 1
