"""Kernels as PTX text for NVIDIA GPUs: the emitter of the CPU with one lane, the thread index from registers.

A kernel is one module of entries, which a launch runs one after the other as ``meta["passes"]`` says; most have one.
See the architecture page for the contract with the runtime.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...base.binary import Binary
from ...base.digest import digest
from ...base.target import Target
from ...ir.node import Func
from ...types.layout import pack
from ..cpu import LARGE, TYPICAL_WIDTH, Draft, optimise, weight
from ..emit import unit as emit_unit
from ..emit.calls import write_functions
from ..emit.emitter import HANDLERS
from ..emit.lasting import func_polls
from ..emit.module import assemble
from ..emit.unit import Machine
from ..llvm import emitted, parse, target_machine
from . import atomics, lines, merging, output, tape, together
from .entry import write_threads
from .unit import ThreadUnit
from .way import find

TRIPLE = "nvptx64-nvidia-cuda"
BLOCK = 256  # threads of a block where nothing else is asked for
FEW, LONG_PARAMETERS = 4000, 81  # bytes of arguments that all versions of PTX take; the version that takes 32,764
FOLDERS = 1024  # blocks that round exact accumulators

# Architectures that code is made for, each with the first version of PTX that knows it, 7.8 at least. Text for one
# runs on all later ones too.
VERSIONS = {75: 78, 80: 78, 86: 78, 87: 78, 89: 78, 90: 78, 100: 86, 103: 88, 110: 90, 120: 87, 121: 88}


@dataclass(frozen=True, slots=True)
class Options(emit_unit.Options):
    """``block``: threads of a block. ``forced``: threads run in order,
    whatever the kernel does. ``fast_math``: quick division and roots, products that fuse with sums, no subnormal
    numbers. ``lines``: say where instructions come from. ``bounds``: threads of a block at most, and blocks on a
    multiprocessor at least. ``registers``: of a thread at most."""

    block: int = BLOCK
    forced: bool = False
    fast_math: bool = False
    lines: bool = False
    bounds: tuple[int, ...] = ()
    registers: int | None = None

    def key(self) -> str:
        """The text that stands for these options in cache keys."""
        return repr(self)


def target(arch: int = 75) -> Target:
    """What code is made for that is to run on the GPU architecture ``sm_{arch}``: that, or the last one before that is
    known.

    Raises:
        ValueError: it is older than all of these.
    """
    known = [a for a in VERSIONS if a <= arch]
    if not known:
        raise ValueError(f"kernels run on GPUs of compute capability 7.5 or more, not {arch // 10}.{arch % 10}")
    return Target("nvptx", TRIPLE, f"sm_{max(known)}", f"+ptx{VERSIONS[max(known)]}")


def cubin_key(ptx: bytes, arch: int, assembler: str) -> str:
    """What machine code assembled from PTX text depends on: the text, the architecture, and who assembled it (the
    driver's version, or that of ``ptxas``)."""
    return digest("cubin", ptx.decode(), f"sm_{arch}", assembler)


def build(func: Func, target: Target, options: emit_unit.Options | None = None, symbol: str = "kernel") -> Binary:
    """PTX text of the scalarized kernel ``func``."""
    return draft(func, target, options, symbol).binary()


def draft(func: Func, target: Target, options: emit_unit.Options | None = None, symbol: str = "kernel") -> Draft:
    """The text of the scalarized kernel ``func``, and what the runtime must know of it."""
    o = _full(options)
    way = find(func, o.order, o.relaxed, o.forced)
    o = replace(o, order=way.order, rows=False)
    handlers = {**HANDLERS, **tape.HANDLERS, **together.HANDLERS, "atomic": atomics.atomic, "print": output.write}
    machine = Machine("nvptx", 1, handlers=lines.marked(handlers) if o.lines else handlers)
    shared = together.shared(func, way, o.block)
    if shared is not None:
        o = replace(o, block=shared.facts["threads"])
    unit = ThreadUnit(shared or func, symbol, machine, o, way=way, together=shared is not None)
    text, passes = _module(unit, o, int(target.cpu.removeprefix("sm_")))
    if o.fast_math:
        text = lines.fast(text)
    if o.lines:
        text = lines.resolved(text, func)
    meta: dict[str, Any] = {
        "symbol": symbol, "signature": [t.name for t in func.signature], "size": pack(func.signature)[1],
        "checked": o.checked, "order": way.order, "sites": unit.sites, "prints": unit.prints,
        "bounded": not func_polls(func), "passes": passes, "scratch": way.scratch, "heap": unit.taped,
        "block": o.block, "relaxed": o.relaxed, "counting": [], "atomics": [],
        "weight": weight(func, 1), "work": func.facts.get("work") or weight(func, TYPICAL_WIDTH),
    }  # fmt: skip
    return _Draft(text, _roomy(target, meta["size"]), symbol, meta)


def _roomy(target: Target, size: int) -> Target:
    """``target``, with a version of PTX in which kernels may have so many bytes of arguments."""
    version = int(target.features.removeprefix("+ptx"))
    return target if size <= FEW else target._replace(features=f"+ptx{max(version, LONG_PARAMETERS)}")


class _Draft(Draft):
    """A kernel for a GPU, as LLVM text."""

    __slots__ = ()

    @property
    def symbols(self) -> tuple[str, ...]:
        """All entries, the kernel's own first."""
        return tuple(dict.fromkeys([self.symbol, *[one["entry"] for one in self.meta["passes"]]]))

    def binary(self, code: bytes | None = None) -> Binary:
        return Binary(code or compile_text(self.text, self.target), self.symbols, (), self.meta)


def compile_text(text: str, target: Target) -> bytes:
    """PTX text of LLVM text. Its assembler schedules, shares and hoists all over again, so LLVM need not; in long code
    it does nothing at all that it could leave out."""
    large = text.count("\n") > LARGE
    machine = target_machine(target.triple, target.cpu, target.features, level=0 if large else 1)
    module = parse(f'target datalayout = "{machine.target_data}"\n{text}')  # by which memory is aligned
    optimise(module, machine, inline="alwaysinline" in text, combine=not large)
    return emitted(machine.emit_assembly, module, plain=True).encode()


def _full(options: emit_unit.Options | None) -> Options:
    if isinstance(options, Options):
        return options
    o = options or emit_unit.Options()
    return Options(checked=o.checked, order=o.order, relaxed=o.relaxed)


def _module(unit: ThreadUnit, o: Options, arch: int) -> tuple[str, list[dict[str, Any]]]:
    """The text of all entries, and the passes of a launch."""
    way, symbol = unit.way, unit.symbol
    unit.analyse()
    tape.plan(unit)
    bodies, passes = [], []
    grid: dict[str, Any] = {"grid": "threads", "block": o.block}
    if unit.together:
        grid = {"grid": "blocks", "block": o.block, "shared": together.lay_out(unit, arch)}
    if way.threads is not None:
        grid["most"] = merging.launched(way.threads, o.block)
    if way.order == "ordered":
        grid = {"grid": "thread", "block": 1}
    for number, func in enumerate(way.counting if way.counters else ()):
        count, scan = f"{symbol}_count{number}", f"{symbol}_scan{number}"
        bodies += _counting(unit, func, count, number)
        bodies.append(merging.write_scan(unit, scan, number, o.block))
        passes += [{"entry": count, **grid}, {"entry": scan, "grid": "one", "block": merging.SCANNERS}]
    bodies.append(write_threads(unit, unit.kernel, symbol))
    bodies += write_functions(unit)
    passes.append({"entry": symbol, **grid})
    if way.sums:
        bodies.append(merging.write_merge(unit, f"{symbol}_merge", o.block))
        passes.append({"entry": f"{symbol}_merge", "grid": "one", "block": merging.MERGERS})
    if way.exact:
        bodies.append(merging.write_fold(unit, f"{symbol}_fold"))
        passes.append({"entry": f"{symbol}_fold", "grid": FOLDERS, "block": BLOCK})
    return assemble(unit, bodies, TRIPLE) + _attributes(o), passes


def _counting(unit: ThreadUnit, func: Func, symbol: str, number: int) -> list[str]:
    """The entry of a counting pass, and the functions that it calls."""
    other = ThreadUnit(func, symbol, unit.target, unit.options, stem=f"{symbol}_f", way=unit.way)
    other.analyse()
    other.tallying = number
    bodies = [write_threads(other, func, symbol, number), *write_functions(other)]
    unit.needs |= other.needs
    unit.helpers |= other.helpers
    return bodies


def _attributes(o: Options) -> str:
    """Of entries that run threads (1), and of those that are one block (2)."""
    most = max([o.block, BLOCK, *o.bounds[:1]])
    facts = [f'"nvvm.maxntid"="{most}"']
    if len(o.bounds) > 1:
        facts.append(f'"nvvm.minctasm"="{o.bounds[1]}"')
    if o.registers:
        facts.append(f'"nvvm.maxnreg"="{o.registers}"')
    ftz = ' "denormal-fp-math-f32"="preserve-sign,preserve-sign"' if o.fast_math else ""
    one = f'"nvvm.maxntid"="{merging.SCANNERS}"'
    return f"attributes #1 = {{ nounwind {' '.join(facts)}{ftz} }}\nattributes #2 = {{ nounwind {one} }}\n"


__all__ = ["BLOCK", "Options", "build", "compile_text", "cubin_key", "draft", "target"]
