"""Kernels of every kind become objects for systems and processors that this machine is not: emitted, not run."""

import subprocess
import sys
from pathlib import Path

import pytest

import treadle as wp
from tests.targets import FOREIGN, MACHINES, complaint, install, symbols
from treadle.codegen import cpu
from treadle.lang.compile import Options, translate


@wp.struct
class Body:
    at: wp.vec3
    mass: float
    forces: wp.array(dtype=wp.vec3)


@wp.kernel
def scalars(h: wp.array(dtype=wp.float16), f: wp.array(dtype=float), d: wp.array(dtype=wp.float64),
            b: wp.array(dtype=wp.bfloat16), n: wp.array(dtype=wp.int8), u: wp.array(dtype=wp.uint64)):  # fmt: skip
    i = wp.tid()
    h[i] = wp.floor(h[i] * wp.float16(0.5)) + wp.float16(f[i])
    f[i] = wp.sin(f[i]) + wp.pow(f[i], 1.5) + wp.rint(f[i]) + f[i] % 3.0
    d[i] = wp.exp(d[i]) + wp.tan(d[i]) + wp.round(d[i]) + wp.trunc(d[i]) + wp.float64(h[i]) + wp.float64(u[i])
    b[i] = wp.bfloat16(f[i])
    n[i] = n[i] / wp.int8(3) + wp.int8(i)
    u[i] = u[i] % wp.uint64(7) + wp.uint64(f[i])


@wp.kernel
def matrices(m: wp.array(dtype=wp.mat33), q: wp.array(dtype=wp.quatd), out: wp.array(dtype=wp.mat33)):
    i = wp.tid()
    u, s, v = wp.svd3(m[i])
    out[i] = u * wp.diag(s) * wp.transpose(v) * wp.inverse(m[i])
    q[i] = wp.normalize(q[i] * q[i])


@wp.kernel
def atomics(x: wp.array(dtype=int), count: wp.array(dtype=int), kept: wp.array(dtype=int),
            sums: wp.array(dtype=float), lock: wp.array(dtype=int)):  # fmt: skip
    i = wp.tid()
    if x[i] > 3:
        kept[wp.atomic_add(count, 0, 1)] = x[i]
    wp.atomic_add(sums, x[i], 0.5)
    wp.atomic_max(sums, 0, float(i))


@wp.kernel
def ordered(lock: wp.array(dtype=int), x: wp.array(dtype=float)):
    i = wp.tid()
    while wp.atomic_cas(lock, 0, 0, 1) == 1:
        pass
    x[0] = x[0] * 0.5 + float(i)
    wp.atomic_exch(lock, 0, 0)
    print(x[0])


@wp.kernel
def structs(bodies: wp.array2d(dtype=Body), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    total = float(0.0)
    own = wp.zeros(shape=(400, 4), dtype=float)
    for k in range(bodies[i, j].forces.shape[0]):
        own[k % 400, k % 4] += bodies[i, j].forces[k][1]
        if own[k % 400, 0] > bodies[i, j].mass:
            break
        total += own[k % 7, k % 3]
    out[i, j] = total


@wp.kernel
def noisy(seed: int, x: wp.array(dtype=float)):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    while wp.randf(state) > 0.1:
        x[i] += wp.noise(state, wp.vec3(x[i], 0.5, float(i)))


def arguments() -> dict:
    zeros = lambda dtype, n=4: wp.zeros(n, dtype=dtype)
    return {
        scalars: [zeros(t) for t in (wp.float16, float, wp.float64, wp.bfloat16, wp.int8, wp.uint64)],
        matrices: [zeros(wp.mat33), zeros(wp.quatd), zeros(wp.mat33)],
        atomics: [zeros(int), zeros(int), zeros(int), zeros(float), zeros(int)],
        ordered: [zeros(int), zeros(float)],
        structs: [wp.zeros((2, 9), dtype=Body), wp.zeros((2, 9), dtype=float)],
        noisy: [3, zeros(float)],
    }


def translations() -> list:
    """Each kernel as it is launched; some of them checked, looking for races, along rows, or backwards."""
    plain = Options(16, False, False, 8)
    found = [(k, plain) for k in arguments()]
    found += [(atomics, plain._replace(checked=True)), (structs, plain._replace(checked=True, races=True)),
              (structs, plain._replace(grid=2, rows=True)), (noisy, plain._replace(active=("x",)))]  # fmt: skip
    given = arguments()
    return [translate(k, k.bind(given[k])[1], options) for k, options in found]


@pytest.fixture(scope="module")
def programs() -> list:
    return translations()


@pytest.mark.parametrize("machine", FOREIGN)
def test_kernels_of_every_kind_become_objects_that_want_nothing_unknown(programs, machine):
    for made in programs:
        asked = cpu.Options(made.options.rows, made.options.checked, made.found.order, made.options.races)
        draft = cpu.draft(made.func, MACHINES[machine], asked)
        assert complaint(draft, machine, cpu.compile_text(draft.text, draft.target)) == "", made.func.name


CALLS = """
declare double @sin(double)
@hidden = internal global i32 3
define double @given(double %x) {
  %i = load i32, ptr @hidden
  %f = sitofp i32 %i to double
  %y = call double @sin(double %x)
  %z = fadd double %y, %f
  ret double %z
}
"""


@pytest.mark.parametrize("machine", MACHINES)
def test_objects_are_read_rightly(machine):
    target = MACHINES[machine]
    made, wanted = symbols(cpu.compile_text(f'target triple = "{target.triple}"\n{CALLS}', target))
    assert "given" in made and "hidden" not in made and wanted - {"_fltused"} == {"sin"}


def test_whatever_is_compiled_becomes_an_object_for_others_too(monkeypatch, tmp_path, programs):
    monkeypatch.setattr(cpu, "draft", cpu.draft)  # put back afterwards
    install(["neon"], str(tmp_path))
    for _ in range(2):  # each program once
        programs[0].draft()
    monkeypatch.setattr(cpu, "compile_text", lambda text, target: b"nothing")
    programs[1].draft()
    done = subprocess.run(
        [sys.executable, "-m", "tests.targets", str(tmp_path)], capture_output=True, text=True,
        cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "aarch64-unknown-linux-gnu: 2 objects" in done.stdout
    assert "matrices for neon: not an object of this system" in done.stdout
