"""PTX: golden texts of a few kernels; what assemblers of several architectures say of small ones."""

import re
import shutil
import subprocess
from functools import cache

import pytest

import treadle as wp
from treadle.codegen import nvptx
from treadle.codegen.llvm import library_version
from treadle.lang.compile import Options, translate
from treadle.types.core import f32, f64, i32, view

PTXAS = shutil.which("ptxas")
ARCHITECTURES = (75, 80, 90, 100, 120)


@cache
def translated(kernel, types, active, checked):
    return translate(kernel, types, Options(16, checked, False, 1, active=active, arch=75))


def ptx(kernel, types, arch=90, active=None, **options) -> str:
    made = translated(kernel, types, active, options.get("checked", False))
    wanted = nvptx.Options(order=made.found.order, **(BLOCKS.get(kernel.key, {}) | options))
    return nvptx.build(made.func, nvptx.target(arch), wanted, "kernel").code.decode()


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def scatter(where: wp.array(dtype=int), x: wp.array(dtype=float), sums: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(sums, where[i], x[i])


@wp.kernel
def total(x: wp.array(dtype=float), sums: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(sums, 0, wp.sin(x[i]))


@wp.kernel
def take(x: wp.array(dtype=float), count: wp.array(dtype=int), out: wp.array(dtype=int)):
    i = wp.tid()
    if x[i] > 0.0:
        out[wp.atomic_add(count, 0, 1)] = i


@wp.kernel
def largest(where: wp.array(dtype=int), x: wp.array(dtype=float), most: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_max(most, where[i], x[i])


@wp.kernel
def turned(x: wp.array2d(dtype=wp.vec3), q: wp.array(dtype=wp.quat), y: wp.array2d(dtype=wp.vec3)):
    i, j = wp.tid()
    assert wp.length(x[i, j]) < 9.0
    y[i, j] = wp.quat_rotate(wp.normalize(q[j]), x[i, j])


@wp.kernel
def powers(x: wp.array(dtype=wp.float64), n: wp.array(dtype=int), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    s = wp.float64(1.0)
    for _k in range(n[i]):
        s = s * x[i] + s / wp.float64(3.0)
    y[i] = wp.sqrt(s)


@wp.kernel
def shared_sum(a: wp.array2d(dtype=float), sums: wp.array(dtype=float)):
    i = wp.tid()
    row = wp.tile_load(a, shape=(1, 64), offset=(i, 0))
    wp.tile_store(sums, wp.tile_sum(wp.tile_map(wp.sqrt, row)), offset=i)


F, I = view(f32, 1), view(i32, 1)
V3 = view(wp.vec3.__treadle_type__, 2)
SMALL = {
    "saxpy": (saxpy, (f32, F, F)), "scatter": (scatter, (I, F, F)), "total": (total, (F, F)),
    "take": (take, (F, I, I)), "largest": (largest, (I, F, F)),
    "turned": (turned, (V3, view(wp.quat.__treadle_type__, 1), V3)),
    "powers": (powers, (view(f64, 1), I, view(f64, 1))), "shared_sum": (shared_sum, (view(f32, 2), F)),
}  # fmt: skip
BLOCKS = {"shared_sum": {"block": 32}}
ADJOINTS = {"turned": ("x", "q", "y"), "powers": ("x", "y")}


@pytest.mark.skipif(not library_version().startswith("22."), reason="other versions of LLVM write other texts")
@pytest.mark.parametrize("name", ["saxpy", "scatter", "take", "shared_sum"])
def test_golden(name, golden):
    text = re.sub(r"callseq \d+", "callseq", ptx(*SMALL[name]))  # LLVM numbers calls over all that a process compiles
    golden(f"{name}.llvm22.ptx", text)


def assembled(text: str, arch: int, folder) -> str:
    """What ``ptxas`` says."""
    source = folder / "kernel.ptx"
    source.write_text(text)
    command = [PTXAS, "-v", f"-arch=sm_{arch}", str(source), "-o", str(folder / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.skipif(PTXAS is None, reason="there is no ptxas")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_small_kernels_are_assembled_without_spills(arch, tmp_path):
    texts = {name: ptx(*one, arch, checked=name == "turned") for name, one in SMALL.items()}
    texts |= {f"{name}, adjoint": ptx(*SMALL[name], arch, ADJOINTS[name]) for name in ADJOINTS}
    texts |= {f"{name}, relaxed": ptx(*SMALL[name], arch, relaxed=True) for name in ("scatter",)}
    for name, text in texts.items():
        said = assembled(text, arch, tmp_path)
        spilled = sum(map(int, re.findall(r"(\d+) bytes spill stores", said)))
        assert spilled <= (8 if "treadle_grow" in text else 0), f"{name}: {said}"  # who calls saves a register


def test_options_of_a_kernel_are_in_its_text():
    text = ptx(*SMALL["powers"], bounds=(512, 2), registers=96, lines=True)
    assert ".maxntid 512" in text and ".minnctapersm 2" in text and ".maxnreg 96" in text
    assert re.search(r'\.file\s+\d+ ".*test_ptx.py"', text) and text.count(".loc") > 5
    exact, fast = ptx(*SMALL["turned"]), ptx(*SMALL["turned"], fast_math=True)
    assert "sqrt.rn.f32" in exact and "approx" not in exact and "approx.ftz.f32" in fast


def test_architectures():
    assert [nvptx.target(a).cpu for a in (75, 87, 88, 90, 99, 121, 130)] == [
        "sm_75", "sm_87", "sm_87", "sm_90", "sm_90", "sm_121", "sm_121"]  # fmt: skip
    with pytest.raises(ValueError, match="7.5 or more, not 7.0"):
        nvptx.target(70)


def test_cubins_are_kept_by_text_architecture_and_assembler():
    keys = {nvptx.cubin_key(*one) for one in [(b"a", 75, "13"), (b"b", 75, "13"), (b"a", 80, "13"), (b"a", 75, "12")]}
    assert len(keys) == 4 and nvptx.cubin_key(b"a", 75, "13") in keys
