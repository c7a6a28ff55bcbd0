"""A warm start runs neither parser nor passes, and a change of anything a kernel reads is seen."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import treadle as wp
from treadle.lang import compile as compiler

SCALE = {scale}

@wp.func
def inner(x: float):
    return x * {inner}

table = [inner]

@wp.struct
class S:
    k: float
{extra}

@wp.kernel
def f(s: S, out: wp.array(dtype=float)):
    for i in range(2):
        out[i] = wp.static(table[0])(s.k) + SCALE + wp.static(float(i) * {static})

built = []
real = compiler.translate
compiler.translate = lambda *a: built.append(1) or real(*a)
out, s = wp.zeros(2, dtype=float), S()
s.k = 3.0
wp.launch(f, dim=1, inputs=[s, out])
print(out.list(), "built" if built else "kept")
"""


def launcher(cache, path, first="pass", last="pass"):
    start = f"import sys, runpy, treadle as wp; wp.config.kernel_cache_dir = {str(cache)!r}; {first}"
    return f"{start}; runpy.run_path({str(path)!r}); {last}"


def run(folder, **changes):
    values = {"scale": 1.0, "inner": 2.0, "static": 4.0, "extra": "", **changes}
    path = folder / "program.py"
    path.write_text(textwrap.dedent(PROGRAM).format(**values))
    code = launcher(folder / "cache", path)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_second_process_takes_the_code_that_is_kept(tmp_path):
    assert run(tmp_path) == "[7.0, 11.0] built"
    assert run(tmp_path) == "[7.0, 11.0] kept"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere LLVM names the processor, and loads the code")
@pytest.mark.parametrize("first", ["pass", "wp.init()"])
def test_a_warm_start_loads_neither_compiler_nor_llvm(tmp_path, first):
    run(tmp_path)
    code = launcher(tmp_path / "cache", tmp_path / "program.py", first, "print(*sys.modules)")
    for _ in range(2):  # the first one may still have to compile native helpers
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "kept" in done.stdout, done.stderr
    compiler = {"llvmlite.binding", "treadle.frontend.parse", "treadle.passes", "treadle.codegen.cpu", "treadle.ir"}
    assert not compiler & set(done.stdout.split())


@pytest.mark.parametrize("change, want", [
    ({"scale": 10.0}, "[16.0, 20.0] built"),
    ({"inner": 3.0}, "[10.0, 14.0] built"),
    ({"static": 5.0}, "[7.0, 12.0] built"),
    ({"extra": "    more: int"}, "[7.0, 11.0] built"),
])  # fmt: skip
def test_a_change_is_seen_and_the_first_form_is_still_kept(tmp_path, change, want):
    run(tmp_path)
    assert run(tmp_path, **change) == want
    assert run(tmp_path) == "[7.0, 11.0] kept"


def test_two_processes_at_once(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM).format(scale=1.0, inner=2.0, static=4.0, extra=""))
    code = launcher(tmp_path / "cache", path)
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert {p.communicate(timeout=60)[0].strip() for p in both} <= {"[7.0, 11.0] built", "[7.0, 11.0] kept"}
    assert all(p.returncode == 0 for p in both)
