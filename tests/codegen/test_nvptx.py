"""PTX: what the emitter writes for one lane is accepted by NVIDIA's assembler."""

import shutil
import subprocess

import pytest

from tests.codegen.harness import KernelBuilder
from tests.codegen.programs import Program
from treadle.codegen import nvptx
from treadle.ir.effects import order
from treadle.types.core import f32, f64, i32, view

PTXAS = shutil.which("ptxas")


def accepted(func, tmp_path, arch, **options) -> str:
    options = nvptx.Options(order=order(func), **options)
    binary = nvptx.build(func, nvptx.target(arch), options, symbol="kernel")
    text = binary.code.decode()
    assert ".entry kernel(" in text and f".target sm_{arch}" in text
    if PTXAS:
        path = tmp_path / "kernel.ptx"
        path.write_text(text)
        done = subprocess.run(
            [PTXAS, f"-arch=sm_{arch}", str(path), "-o", str(tmp_path / "out")], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    return text


@pytest.mark.parametrize("arch", [75, 90])
def test_a_kernel_takes_its_arguments_by_value(arch, tmp_path):
    k = KernelBuilder((view(f32, 1), f32))
    x, a = k.params
    i = k.tid()
    k.store(x, (i,), k.op("mul", a, k.load(x, i)))
    text = accepted(k.func(), tmp_path, arch)
    assert "%ctaid.x" in text and "%nctaid.x" in text


@pytest.mark.parametrize("arch", [75, 90])
@pytest.mark.parametrize("op", ["add", "sub", "min", "max", "exch", "cas"])
@pytest.mark.parametrize("t", [f32, f64, i32])
def test_atomics_are_the_hardwares(arch, op, t, tmp_path):
    k = KernelBuilder((view(t, 1), view(i32, 1), view(t, 1)))
    out, where, x = k.params
    i = k.tid()
    v = k.load(x, i)
    extra = (v,) if op == "cas" else ()
    old = k.b.op("atomic", (out, k.load(where, i), v, *extra), (t,), op=op)[0]
    k.store(x, (i,), old)
    text = accepted(k.func(), tmp_path, arch, relaxed=True)
    assert "atom." in text or "red." in text


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed, tmp_path):
    accepted(Program(seed).func(), tmp_path, 75)
