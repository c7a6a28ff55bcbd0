"""Random typed programs (tests/random_typed.py) run: as machine code, by the oracle, by Warp."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import treadle
from tests.random_typed import READS, SHARED, THREADS, ULPS, WRITES, Kind, Typed, module
from treadle.base.errors import TreadleError

Arrays = dict[str, np.ndarray]
WIDTHS = (8, 1, 8, 16, 4)


def load(text: str, path: Path) -> ModuleType:
    """The module of ``text``, written to ``path``."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made
    spec.loader.exec_module(made)
    return made


def arguments(program: Typed) -> Arrays:
    """The arrays of a program: integers of every size, floats that are small multiples of a quarter."""
    rng = np.random.default_rng(program.seed)
    found: Arrays = {}
    for role, kind in program.parameters:
        shape = {"x": (READS,), "s": (SHARED,)}.get(role, (THREADS, WRITES)) + kind.shape
        found[f"{role}_{kind.name}"] = inputs(rng, kind, shape) if role == "x" else np.zeros(shape, kind.scalar)
    return found


def inputs(rng: np.random.Generator, kind: Kind, shape: tuple[int, ...]) -> np.ndarray:
    if kind.is_float:
        return (rng.integers(-64, 65, shape) / 4).astype(kind.scalar)
    limits = np.iinfo(kind.scalar)
    found = rng.integers(limits.min, limits.max, shape, kind.scalar, endpoint=True)
    found >>= rng.integers(0, limits.bits, shape).astype(kind.scalar)
    edges = np.array([limits.min, limits.max, 0, 1], kind.scalar)
    return np.where(rng.random(shape) < 0.2, edges[rng.integers(0, 4, shape)], found)


# ---- three ways to run


def by_code_and_oracle(program: Typed, kernel: Any, width: int, fused: bool) -> tuple[Arrays, Arrays]:
    """What machine code and what the oracle leaves in memory.

    Unless ``fused``, the oracle runs what the parser made, before any pass.
    """
    from tests.codegen.harness import Entry
    from treadle.codegen import oracle
    from treadle.codegen.emit.unit import Options
    from treadle.frontend.core import Options as Parsing
    from treadle.frontend.parse import parse
    from treadle.ir.effects import effects
    from treadle.passes.fma import leave_products
    from treadle.passes.pipeline import LOWER, NORMALIZE, RELEASE, run
    from treadle.types.core import view

    types = tuple(view(t.elem, t.ndim) for t in kernel.declared)
    parsed = parse(kernel.source, types, Parsing(), "kernel", name=kernel.key)
    parsed = parsed if fused else leave_products(parsed)
    lowered = run(LOWER, run(RELEASE, run(NORMALIZE, parsed)))
    found, wanted = arguments(program), arguments(program)
    entry = Entry(lowered, width, Options(order=effects(lowered).order))
    assert entry(THREADS, *found.values()) == 0
    oracle.run(lowered if fused else parsed, [*wanted.values()], THREADS)
    return found, wanted


def by_launch(program: Typed, kernel: Any, language: ModuleType) -> Arrays:
    """What a launch leaves in memory, by Warp or treadle."""
    given = arguments(program)
    kinds = {f"{role}_{k.name}": k for role, k in program.parameters}
    space = sys.modules[kernel.func.__module__] if hasattr(kernel, "func") else sys.modules[kernel.module.name]
    of = lambda k: getattr(space, k.name) if k.shape else getattr(language, k.scalar)
    arrays = {n: language.array(a, dtype=of(kinds[n]), device="cpu") for n, a in given.items()}
    language.launch(kernel, dim=THREADS, inputs=[*arrays.values()], device="cpu")
    return {n: a.numpy() for n, a in arrays.items()}


# ---- comparison


def differences(program: Typed, found: Arrays, wanted: Arrays, exactly: bool = True) -> str:
    """Which results differ, in words; empty if none does. Not ``exactly``: those in ``l_T`` may, in the last places."""
    said = []
    for name, a in found.items():
        b = wanted[name]
        if exactly or not name.startswith("l_"):
            same = (a == b) | ((a != a) & (b != b))
        else:
            digits = [program.loose.get((name, k), 0) * ULPS[str(a.dtype)] for k in range(WRITES)]
            with np.errstate(all="ignore"):
                scale = np.maximum(abs(a), abs(b)).astype(float)
                same = (a == b) | ((a != a) & (b != b)) | (abs(a.astype(float) - b) <= np.array(digits) * scale)
        if not same.all():
            at = tuple(int(k) for k in np.argwhere(~same)[0])
            said.append(f"{name}{list(at)}: {a[at].item()}, not {b[at].item()}")
    return "; ".join(said)


def against_oracle(seeds: range, folder: Path) -> Iterator[tuple[Typed, str]]:
    """Each program of ``seeds``, with what differs between machine code and oracle."""
    programs = [Typed(seed) for seed in seeds]
    kernels = load(module(programs, "treadle"), folder / f"typed_treadle_{seeds.start}.py")
    for p in programs:
        kernel, width = getattr(kernels, f"kernel{p.seed}"), WIDTHS[p.seed % len(WIDTHS)]
        try:
            found, wanted = by_code_and_oracle(p, kernel, width, p.seed % 2 == 0)
            yield p, differences(p, found, wanted)
        except TreadleError as error:  # no program may be refused
            yield p, str(error)


def against_warp(seeds: range, folder: Path) -> Iterator[tuple[Typed, str]]:
    """Each program of ``seeds``, with what differs between launches by treadle and by Warp."""
    import warp

    warp.config.cpu_compiler_flags = "-fwrapv -w"
    programs = [Typed(seed) for seed in seeds]
    both = [load(module(programs, n), folder / f"typed_{n}_{seeds.start}.py") for n in ("treadle", "warp")]
    treadle.set_module_options({"fuse_fp": False}, module=both[0])
    for p in programs:
        ours, theirs = (getattr(m, f"kernel{p.seed}") for m in both)
        try:
            yield p, differences(p, by_launch(p, ours, treadle), by_launch(p, theirs, warp), exactly=False)
        except TreadleError as error:
            yield p, str(error)
