"""One command for a GPU: functional tests on ``cuda:0``, then treadle beside what is installed there, then a table.

    python benchmarks/gpu.py [--log gpu.log] [--bundle build/gpu] [--only saxpy] [--quick] [--minutes 5.5]
    python benchmarks/gpu.py --dry                 # without a GPU: everything, small, on a stand-in for one
    python benchmarks/gpu.py --pack build/gpu      # on a machine with a network: what the other one may lack
    python benchmarks/gpu.py --pack build/gpu --llvm   # the same for one that lacks llvmlite: without MuJoCo

It needs this working tree, Python with NumPy and llvmlite, and cuda-bindings. PyTorch, Triton, CuPy and Warp are timed
where they can be imported. What a machine lacks comes from a *bundle*: wheels, which are installed into a folder of
their own, and the models of the physics. Each part runs in a process of its own, so that none takes the others along;
what it says is written to the log at once. A part that would begin after the time is up is left out, and the table
says so.
``--quick`` makes everything small, to try the script itself; ``--dry`` does so without a GPU, with a stand-in.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from gpu_bundle import MODELS, install, model, pack

ROOT = Path(__file__).resolve().parents[1]
DEVICE = "cuda:0"
TESTS_AT_MOST = 110  # seconds
ROOMS = ("runtime", "utils", "optim", "sparse", "lang", "mujoco")  # folders of tests that take a device
Result = dict[str, Any]

_parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
_parser.add_argument("--log", type=Path, default=Path("gpu.log"), help="where everything is written as it comes")
_parser.add_argument("--bundle", type=Path, default=ROOT / "build" / "gpu", help="folder of wheels and models")
_parser.add_argument("--pack", type=Path, help="make a bundle in this folder, and end")
_parser.add_argument("--llvm", action="store_true", help="of a bundle: LLVM in place of MuJoCo")
_parser.add_argument("--left", type=float, default=330.0, help=argparse.SUPPRESS)  # seconds of a part
_parser.add_argument("--python", default="3.12", help="the version that a bundle is for")
_parser.add_argument("--only", default="", help="run only parts whose name contains this text")
_parser.add_argument("--minutes", type=float, default=5.5, help="for everything")
_parser.add_argument("--quick", action="store_true", help="small sizes")
_parser.add_argument("--emulate", action="store_true", help="let the GPU be a stand-in on this processor")
_parser.add_argument("--dry", action="store_true", help="both of these")
_parser.add_argument("--part", help=argparse.SUPPRESS)

PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Result]]] = {}


def part(function: Callable) -> Callable:
    """Decorator: a part of the program, which gives results."""
    PARTS[function.__name__] = function
    return function


def result(case: str, who: str, value: float, unit: str, right: bool | None = None, **notes: Any) -> Result:
    """One figure. ``right``: whether what was computed is what should have been; None where nothing was."""
    return {"case": case, "who": who, "value": value, "unit": unit, "right": right, **notes}


# ---- who takes part -------------------------------------------------------------------------------------------------


def module(name: str) -> Any:
    """treadle or Warp, quiet."""
    import importlib

    found = importlib.import_module(name)
    found.config.quiet = True
    if hasattr(found.config, "log_level"):
        found.config.log_level = 30
    found.init()
    return found


def interfaces() -> Iterator[tuple[str, Any]]:
    """treadle, and Warp where it is."""
    for name in ("treadle", "warp"):
        try:
            found = module(name)
            found.get_device(DEVICE)
        except (ImportError, ValueError, RuntimeError) as error:
            print(f"{name} takes no part: {error}", flush=True)
            continue
        yield name, found


def libraries() -> Iterator[tuple[str, Any]]:
    """PyTorch, Triton and CuPy, where they are: their programs."""
    import gpu_peers

    for name in ("torch", "triton", "cupy"):
        try:
            programs = getattr(gpu_peers, f"{name}_programs")()
            programs.wait()
        except Exception as error:  # not installed, or it finds no GPU
            print(f"{name} takes no part: {type(error).__name__}: {error}"[:300], flush=True)
            continue
        yield name, programs


def seconds(call: Callable[[], Any], wait: Callable[[], Any], budget: float = 0.6) -> float:
    """Median seconds of a call over batches that take a tenth of ``budget`` each; the first calls do not count."""
    call(), call(), wait()
    start = time.perf_counter()
    call(), wait()
    once = max(time.perf_counter() - start, 1e-7)
    batch = max(1, min(int(budget / 10 / once), 2000))
    times = []
    for _ in range(9 if once < budget / 5 else 3):
        start = time.perf_counter()
        for _ in range(batch):
            call()
        wait()
        times.append((time.perf_counter() - start) / batch)
    return median(times)


def everyone(case: str, launches: Callable[[Any, Any], tuple], program: str, args: tuple, figure: Callable,
             unit: str, check: Callable) -> Iterator[Result]:  # fmt: skip
    """Time one program in all. ``launches(wp, kernels)`` gives a call and what reads its result, as programs of
    libraries do; ``figure`` makes of seconds what is shown; ``check`` looks at the result of one call."""
    from kernels import kernels

    runs: list[tuple[str, bool, Callable, Callable]] = []
    for name, wp in interfaces():
        make, wait = partial(launches, wp, kernels(wp)), partial(wp.synchronize_device, DEVICE)
        runs.append((name, False, make, wait))
        if name == "treadle" and case in ("histogram", "scatter", "sum"):
            runs.append(("any order", True, make, wait))
    for name, programs in libraries():
        if hasattr(programs, program):
            runs.append((name, False, partial(getattr(programs, program), *args), programs.wait))
    for name, relaxed, make, wait in runs:
        with any_order() if relaxed else nullcontext():
            try:
                call, read = make()
                call()
                wait()
                right = bool(check(read()))
                yield result(case, name, figure(seconds(call, wait)), unit, right)
            except Exception as error:  # the others go on
                yield failed(case, name, unit, error)


@contextmanager
def any_order() -> Iterator[None]:
    """treadle with sums in whatever order they come."""
    import treadle

    kept, treadle.config.deterministic = treadle.config.deterministic, treadle.DeterministicMode.NOT_GUARANTEED
    try:
        yield
    finally:
        treadle.config.deterministic = kept


def failed(case: str, who: str, unit: str, error: object) -> Result:
    """No figure, and why."""
    said = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
    return result(case, who, float("nan"), unit, None, error=said[:300])


# ---- parts ----------------------------------------------------------------------------------------------------------


@part
def machine(o: argparse.Namespace) -> Iterator[Result]:
    """What is here."""
    wp = module("treadle")
    device = wp.get_device(DEVICE)
    yield result("machine", str(device.name), 0, "", None, arch=device.arch, multiprocessors=device.sm_count,
                 driver=str(wp.get_cuda_driver_version()), python=sys.version.split()[0])  # fmt: skip


@part
def tests(o: argparse.Namespace) -> Iterator[Result]:
    """Functional tests on the GPU."""
    yield _tested(o, "tests", ["tests/gpu"], min(TESTS_AT_MOST, o.left - 5))


def _tested(o: argparse.Namespace, case: str, more: list[str], limit: float) -> Result:
    """Run tests for so many seconds; what they say is printed as it comes."""
    command = [sys.executable, "-u", "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=short", "-rf"]
    command += [*more, *["--emulate-gpu"] * o.emulate]
    with Ended(command, limit) as run:
        lines = list(run.lines())
    said = [line for line in lines if " in " in line and any(w in line for w in ("passed", "failed", "error"))]
    words = (said or [""])[-1].strip(" =\n").split(" in ")[0].split(", ")
    counts = {word: int(n) for n, word in (p.split()[:2] for p in words if p[:1].isdigit())}
    if run.late:
        return failed(case, "treadle", "passed", f"{limit:.0f} s were not enough")
    return result(case, "treadle", counts.get("passed", 0), "passed", run.returncode == 0, **counts)


class Ended:
    """A process in a session of its own, all of which ends after so many seconds: children must not outlive it, nor
    hold its output open. ``late``: whether it was ended."""

    def __init__(self, command: list[str], limit: float, env: dict[str, str] | None = None):
        self._command, self._limit, self._env, self.late, self.returncode = command, limit, env, False, 0

    def __enter__(self) -> Ended:
        self._run = subprocess.Popen(
            self._command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._env,
            start_new_session=True,
        )  # fmt: skip
        self._timer = threading.Timer(max(self._limit, 1.0), self._end)
        self._timer.start()
        return self

    def lines(self) -> Iterator[str]:
        """What it says, line by line, which is printed as well."""
        for line in self._run.stdout:  # type: ignore[union-attr]
            print(line, end="", flush=True)
            yield line

    def _end(self) -> None:
        self.late = True
        self._kill()

    def _kill(self) -> None:
        try:
            os.killpg(self._run.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it is over

    def __exit__(self, *exc: object) -> None:
        self._timer.cancel()
        self._kill()
        self.returncode = self._run.wait()


@part
def compiling(o: argparse.Namespace) -> Iterator[Result]:
    """The 100-line kernel with its adjoint, from nothing to results, and again with a full cache."""
    source = (ROOT / "benchmarks" / "compile_child.py").read_text().replace('device="cpu"', f'device="{DEVICE}"')
    for name in ("treadle", "warp"):
        with tempfile.TemporaryDirectory() as folder:
            child = Path(folder, "compile_child.py")
            child.write_text(source)
            for case in ("cold",) if o.emulate else ("cold", "warm"):
                command = [sys.executable, str(child), name, "hundred_lines_gradient", str(Path(folder, "cache"))]
                if o.emulate:
                    command[1:2] = ["-c", _EMULATED.format(child=str(child), rest=command[2:])]
                done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=_environment())
                if done.returncode:
                    print(done.stderr[-600:], flush=True)
                    break
                said = json.loads(done.stdout.splitlines()[-1])
                yield result(f"compile, {case}", name, said["first"], "s", said["right"])


_EMULATED = """
import sys; sys.argv = [{child!r}, *{rest!r}]
from benchmarks.gpu import emulate; emulate()
exec(compile(open({child!r}).read(), {child!r}, "exec"), {{"__name__": "__main__"}})
"""


@part
def launching(o: argparse.Namespace) -> Iterator[Result]:
    """What a launch costs, and one launch of a hundred in a graph."""
    from kernels import kernels

    for name, wp in interfaces():
        wait = partial(wp.synchronize_device, DEVICE)
        call = partial(wp.launch, kernels(wp).nothing, dim=1, inputs=[1], device=DEVICE)
        yield result("launch", name, 1e6 * seconds(call, wait), "us")
        with wp.ScopedCapture(device=DEVICE) as capture:
            for _ in range(100):
                call()
        yield result("graph, a launch", name, 1e4 * seconds(partial(wp.capture_launch, capture.graph), wait), "us")
    for name, programs in libraries():
        if hasattr(programs, "nothing"):
            yield result("launch", name, 1e6 * seconds(programs.nothing()[0], programs.wait), "us")


@part
def saxpy(o: argparse.Namespace) -> Iterator[Result]:
    """Memory: 12 bytes an element."""
    n = 10_000 if o.quick else 100_000_000
    x, y = np.linspace(0, 1, n, dtype="f4"), np.full(n, 2, "f4")

    def launches(wp, k):
        a, b = wp.array(x, device=DEVICE), wp.array(y, device=DEVICE)
        return lambda: wp.launch(k.saxpy, n, [0.5, a, b], device=DEVICE), b.numpy

    def check(got):
        return np.allclose(got[:: n // 99], (0.5 * x + y)[:: n // 99])

    yield from everyone("saxpy", launches, "saxpy", (x, y, 0.5), lambda s: 12 * n / s / 1e9, "GB/s", check)


@part
def nbody(o: argparse.Namespace) -> Iterator[Result]:
    """Arithmetic: all pairs, counted as 20 operations each."""
    n, draw = 512 if o.quick else 65_536, np.random.default_rng(1)
    at, mass = draw.normal(size=(n, 3)).astype("f4"), draw.uniform(0.5, 1.5, n).astype("f4")
    d = at.astype("f8") - at[0]
    want = (d * (mass / ((d * d).sum(1) + 1e-3) ** 1.5)[:, None]).sum(0)

    def launches(wp, k):
        p, m = wp.array(at, dtype=wp.vec3, device=DEVICE), wp.array(mass, device=DEVICE)
        a = wp.zeros(n, dtype=wp.vec3, device=DEVICE)
        return lambda: wp.launch(k.nbody, n, [p, m, a, n], device=DEVICE), a.numpy

    def check(got):
        return np.allclose(got[0], want, rtol=1e-3, atol=1e-3 * np.abs(want).max())

    yield from everyone("n-body", launches, "nbody", (at, mass), lambda s: 20 * n * n / s / 1e9, "GFLOP/s", check)


@part
def mandelbrot(o: argparse.Namespace) -> Iterator[Result]:
    """Threads that leave a loop at different times."""
    size = 64 if o.quick else 4096
    first: list[int] = []

    def launches(wp, k):
        counts = wp.zeros((size, size), dtype=int, device=DEVICE)
        return lambda: wp.launch(k.mandelbrot, (size, size), [counts, size], device=DEVICE), counts.numpy

    def check(got):
        first.append(int(got.sum(dtype="i8")))
        return abs(first[-1] / first[0] - 1) < 0.002  # rounding near the border moves single counts

    def figure(s):
        return first[-1] / s / 1e9

    yield from everyone("mandelbrot", launches, "mandelbrot", (size,), figure, "Gstep/s", check)


def _updates(o: argparse.Namespace, case: str, bins: int, n: int) -> Iterator[Result]:
    """Atomics: integers into few bins; floats into many, exactly and in any order; floats into one."""
    n = 5_000 if o.quick else n
    draw = np.random.default_rng(2)
    x, w = draw.integers(0, bins, n).astype("i4"), draw.uniform(0, 1, n).astype("f4")
    counts, sums = np.bincount(x, minlength=bins), np.bincount(x, w, bins)

    def launches(wp, k):
        i, v = wp.array(x, device=DEVICE), wp.array(w, device=DEVICE)
        out = wp.zeros(bins, dtype=int if case == "histogram" else float, device=DEVICE)
        kernel = {"histogram": k.histogram, "scatter": k.scatter, "sum": k.total}[case]
        inputs = {"histogram": [i, out], "scatter": [i, v, out], "sum": [v, out]}[case]
        return lambda: wp.launch(kernel, n, inputs, device=DEVICE), out.numpy

    want = {"histogram": counts, "scatter": sums, "sum": [w.sum(dtype="f8")]}[case]
    args = {"histogram": (x, bins), "scatter": (x, w, bins), "sum": (w,)}[case]
    name = {"sum": "total"}.get(case, case)

    def check(got):
        return np.allclose(got, want, rtol=1e-3)

    yield from everyone(case, launches, name, args, lambda s: n / s / 1e9, "G/s", check)


@part
def histogram(o: argparse.Namespace) -> Iterator[Result]:
    """Integers into few bins."""
    yield from _updates(o, "histogram", 256, 50_000_000)


@part
def scatter(o: argparse.Namespace) -> Iterator[Result]:
    """Floats into many bins."""
    yield from _updates(o, "scatter", 100_000, 20_000_000)


@part
def sums(o: argparse.Namespace) -> Iterator[Result]:
    """Floats into one."""
    yield from _updates(o, "sum", 1, 50_000_000)


@part
def soft_ball(o: argparse.Namespace) -> Iterator[Result]:
    """A tape over 500 steps of 8,000 springs, forward and backward: steps a second."""
    source = (ROOT / "examples" / "soft_ball.py").read_text()
    if o.quick:
        source = source.replace("STEPS, DT = 500,", "STEPS, DT = 5,").replace("float = 6.3", "float = 2.3")
    losses = []
    for name, wp in interfaces():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"soft_ball_{name}.py")
            path.write_text(source.replace("import treadle as wp", f"import {name} as wp"))
            sys.path.insert(0, folder)
            with wp.ScopedDevice(DEVICE):
                example = __import__(path.stem)
                ball = example.Ball()
                losses.append(ball.slope(250.0))
                once = seconds(lambda ball=ball: ball.slope(250.0), lambda wp=wp: wp.synchronize_device(DEVICE), 2.0)
            right = bool(np.allclose(losses[-1], losses[0], rtol=0.02))
            yield result("soft ball", name, example.STEPS / once, "steps/s", right, loss=losses[-1][0])


@part
def physics(o: argparse.Namespace) -> Iterator[Result]:
    """Worlds times steps a second, as launches and as a graph of ten steps."""
    try:
        import mujoco  # noqa: F401
    except ImportError:
        yield failed("physics", "treadle", "M/s", "mujoco is not installed")
        return
    for known in MODELS:
        try:
            mjm = model(known, o.bundle, o.quick)
        except (FileNotFoundError, ValueError) as error:  # or it is of another version of MuJoCo
            yield failed(known, "treadle", "M/s", error)
            continue
        for worlds in (16,) if o.quick else (2048, 8192):
            for name in ("treadle", "mujoco_warp"):
                try:
                    yield _steps(name, mjm, f"{known}, {worlds}", worlds)
                except ImportError:
                    continue
                except Exception as error:  # the others go on
                    yield failed(f"{known}, {worlds}", name, "M/s", error)


def _steps(name: str, mjm: Any, case: str, worlds: int) -> Result:
    if name == "treadle":
        wp = module("treadle")
        import treadle.mujoco as engine
    else:
        import mujoco_warp as engine

        wp = module("warp")
    import mujoco

    with wp.ScopedDevice(DEVICE):
        m = engine.put_model(mjm)
        data = mujoco.MjData(mjm)
        d = engine.make_data(mjm, nworld=worlds) if name == "treadle" else engine.put_data(mjm, data, nworld=worlds)
        engine.step(m, d)
        with wp.ScopedCapture(device=DEVICE) as capture:
            for _ in range(10):
                engine.step(m, d)
        once = seconds(lambda: wp.capture_launch(capture.graph), lambda: wp.synchronize_device(DEVICE)) / 10
        right = bool(np.isfinite(d.qpos.numpy()).all())
    return result(case, name, worlds / once / 1e6, "M/s", right)


@part
def suite(o: argparse.Namespace) -> Iterator[Result]:
    """The tests of the rooms that take a device, on the GPU, in the time that is left."""
    rooms = ["tests/optim"] if o.quick else [f"tests/{room}" for room in ROOMS]
    try:
        import xdist  # noqa: F401

        several = ["-n", str(min(os.cpu_count() or 1, 12))] if not o.emulate else []
    except ImportError:
        several = []
    yield _tested(o, "suite", ["--on", DEVICE, *several, *rooms], o.left - 5)


# ---- the whole ------------------------------------------------------------------------------------------------------


def emulate() -> None:
    """Let the GPU be a stand-in on this processor."""
    sys.path.insert(0, str(ROOT))
    import pytest

    from tests.runtime.cuda import standin
    from treadle.codegen.nvptx import merging

    standin.Driver().install(pytest.MonkeyPatch())
    merging.MERGERS = merging.SCANNERS = 8


def _environment() -> dict[str, str]:
    paths = [str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p), "PYTHONUNBUFFERED": "1"}


def table(results: list[Result]) -> str:
    """A row a case, a column for each who took part; ``!`` marks wrong results."""
    people = list(dict.fromkeys(r["who"] for r in results if r["unit"]))
    rows = [["", *people, ""]]
    for case in dict.fromkeys(r["case"] for r in results if r["unit"]):
        of = {r["who"]: r for r in results if r["case"] == case}
        unit = next(iter(of.values()))["unit"]
        rows.append([case, *[_shown(of.get(p)) for p in people], unit])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(w) if k else cell.ljust(w) for k, (cell, w) in enumerate(zip(row, widths)))
             for row in rows]  # fmt: skip
    errors = [f"{r['case']}, {r['who']}: {r['error']}" for r in results if r.get("error")]
    return "\n".join([*lines, *errors])


def _shown(r: Result | None) -> str:
    return "" if r is None else f"{r['value']:.4g}{' !' if r['right'] is False else ''}"


def main() -> int:
    o = _parser.parse_args()
    o.quick, o.emulate = o.quick or o.dry, o.emulate or o.dry
    if o.pack:
        pack(o.pack, o.python, o.llvm)
        return 0
    if o.part:
        if o.emulate:
            emulate()
        for one in PARTS[o.part](o):
            print("RESULT " + json.dumps(one), flush=True)
        return 0
    began, found = time.perf_counter(), []
    environment = _environment()
    extra = install(o.bundle)
    if extra:
        environment["PYTHONPATH"] += f"{os.pathsep}{extra}"
    with o.log.open("w") as log:
        for name in [p for p in PARTS if o.only in p]:
            left = 60 * o.minutes - (time.perf_counter() - began)
            if left < 5:
                found.append(failed(name, "treadle", "", "left out, the time was up"))
                continue
            command = [sys.executable, __file__, "--part", name, "--bundle", str(o.bundle)]
            command += ["--quick"] * o.quick + ["--emulate"] * o.emulate + ["--left", str(left)]
            with tempfile.TemporaryDirectory(prefix="treadle-gpu-") as cache:
                if o.emulate:  # the stand-in knows nothing of what other processes compiled
                    environment["TREADLE_CACHE_DIR"] = cache
                found += _run(command, environment, left, log, name)
        text = table(found)
        log.write(text + "\n")
    took = time.perf_counter() - began
    print(f"\n{text}\n{took:.0f} s; log in {o.log}")
    ours = [r for r in found if r["who"] in ("treadle", "any order")]
    return int(any(r["right"] is False or r.get("error") for r in ours))


def _run(command: list[str], environment: dict, limit: float, log: Any, name: str) -> list[Result]:
    """Run a part; its results."""
    found: list[Result] = []
    start = time.perf_counter()
    with Ended(command, limit, environment) as run:
        for line in run.lines():
            log.write(line)
            log.flush()
            if line.startswith("RESULT "):
                found.append(json.loads(line[7:]))
    print(f"-- {name}: {time.perf_counter() - start:.1f} s", flush=True)
    if run.late:
        found.append(failed(name, "treadle", "", "ended, the time was up"))
    elif run.returncode not in (0, -signal.SIGKILL):  # what is left of its session is ended, too
        found.append(failed(name, "treadle", "", f"the process ended with {run.returncode}"))
    return found


if __name__ == "__main__":
    sys.exit(main())
