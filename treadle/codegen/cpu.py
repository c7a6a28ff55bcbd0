"""Kernels for the CPU: IR to object code in gangs of SIMD lanes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from ..base.binary import Binary
from ..base.target import Target
from ..ir.node import Block, Func, Op, Value
from ..ir.walk import ops_of
from ..passes.lanes import Lanes
from ..types.layout import pack
from .emit.atomics import Part, plan
from .emit.kernel import written_twice
from .emit.lasting import func_polls, places
from .emit.module import counting_symbols, write
from .emit.streams import wanted
from .emit.unit import Machine, Options
from .llvm import emitted, parse, target_machine
from .width import gang_width

_IMPORTS = ("PyMem_RawRealloc", "PyMem_RawFree", "memset", "memcpy", "memmove")


def host_target(width: int | None = None) -> Target:
    """This machine, with the gang width that suits it."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    flags = features.flatten()
    wide = "avx512f" in features and features["avx512f"]
    native = 16 if wide else 8 if features.get("avx2") else 4
    return Target("cpu", llvm.get_process_triple(), llvm.get_host_cpu_name(), flags, width or native)


def llvm_version() -> str:
    """The version of the code generator's library, for cache keys."""
    import llvmlite

    return llvmlite.__version__


def machine(target: Target, width: int) -> Machine:
    """What the emitter must know of ``target``."""
    wide = "+avx512f" in target.features
    attributes = "nounwind"
    if wide and width * 32 >= 512:
        attributes += ' "prefer-vector-width"="512" "min-legal-vector-width"="512"'
    return Machine(
        "cpu",
        width,
        lanes=16 if wide else 8 if "+avx2" in target.features else 4,
        gathers=wide,
        scatters=wide,
        mask_registers=wide,
        masked_loads=wide or "+avx2" in target.features,
        slow_masked_stores=not wide and target.cpu.startswith(("znver", "bdver")),
        attributes=attributes,
        # LLVM aligns the stack where a function has variables that ask for it; for registers that it keeps there it
        # does not, though half of them then lie across two cache lines.
        keeping='"stackrealign"' if target.triple.startswith("x86_64") else "",
    )


@dataclass(frozen=True, slots=True)
class Draft:
    """A kernel written as LLVM text, before LLVM has seen it."""

    text: str
    target: Target
    symbol: str
    meta: dict

    @property
    def symbols(self) -> tuple[str, ...]:
        """The kernel's entry, then those of its counting passes."""
        return (self.symbol, *self.meta["counting"])

    def binary(self, code: bytes | None = None) -> Binary:
        """The kernel with its object code: ``code`` if somebody compiled the text already, else compiled now."""
        imports = tuple(i for i in _IMPORTS if f"@{i}" in self.text)
        return Binary(code or compile_text(self.text, self.target), self.symbols, imports, self.meta)


def build(func: Func, target: Target, options: Options | None = None, symbol: str = "kernel") -> Binary:
    """Object code of the scalarized kernel ``func``; see the architecture page for its entry and for
    ``Binary.meta``."""
    return draft(func, target, options, symbol).binary()


def draft(func: Func, target: Target, options: Options | None = None, symbol: str = "kernel") -> Draft:
    """The text of the scalarized kernel ``func``, and what the runtime must know of it."""
    options = options or Options()
    planned = plan(func, options.order, options.relaxed)
    options = replace(options, order=planned.order)
    many = "+avx512f" in target.features or target.triple.startswith(("aarch64", "arm64"))
    registers = 32 if many else 16
    width = min(gang_width(func, target.width, registers, planned.alone), 1 if options.races else planned.widest)
    # Amounts add up in any order; where a later round draws as well, its gangs are those of the real run.
    widths = [gang_width(f, target.width, registers, planned.alone and k > 0) for k, f in enumerate(planned.counting)]
    parts = [Part(f, w) for f, w in zip(planned.counting, widths, strict=True)]
    if max([width, *widths]) > target.width:  # a grid that fills gangs of the target's width need not fill these
        options = replace(options, full=False)
    emitted = machine(target, max([width, *[p.width for p in parts]]))
    text, unit = write(func, symbol, replace(emitted, width=width), options, target.triple, planned, parts)
    counting = sum([weight(p.func, p.width, planned.lanewise) for p in parts])
    work = func.facts.get("work") or weight(func, TYPICAL_WIDTH, planned.lanewise)
    apart = _scattered(func, unit.lanes(func))
    meta = {
        "symbol": symbol,
        "signature": [t.name for t in func.signature],
        "size": pack(func.signature)[1],
        "width": width,
        "rows": options.rows,
        "checked": options.checked,
        "races": options.races,
        "full": options.full,
        "once": not written_twice(func),
        "order": options.order,
        "sites": unit.sites,
        "prints": unit.prints,
        "bounded": not func_polls(func),
        "counts": places(func),
        "atomics": planned.items,
        "counting": counting_symbols(symbol, len(parts)),
        "apart": planned.apart,
        "draws": planned.draws and width > 1,
        "counting_weight": round(counting, 2),
        "weight": round(weight(func, width, planned.lanewise, apart) + (counting if planned.draws else 0.0), 2),
        "work": work,
    }
    return Draft(text, target, symbol, meta)


TYPICAL_WIDTH = 8  # of a gang, for guesses that must be the same for all widths


def way_of_sums(func: Func, order: str) -> dict[str, float]:
    """What decides in which order ``func`` sums things up, as facts for variants of it that shall do it alike."""
    planned = plan(func, order)
    return {"work": weight(func, TYPICAL_WIDTH, planned.lanewise), "places": wanted(func, planned.plans)}


_ROUNDS = 32  # assumed of a loop that does not say
_COSTS = {"const": 0, "load": 4, "store": 4, "atomic": 4}  # of an op; of all others 1


def weight(func: Func, width: int, lanewise: Collection[Op] = (), apart: Collection[Op] = ()) -> float:
    """Rough nanoseconds a thread, for the question whether a launch is worth waking the workers. ``lanewise``: what is
    done lane after lane. ``apart``: accesses by lane, which gangs wider than usual make no cheaper."""
    times = {**dict.fromkeys(apart, max(width / TYPICAL_WIDTH, 1.0)), **dict.fromkeys(lanewise, width)}
    return round(0.4 * _work(func.body, {}, times) / width, 2)


def _scattered(func: Func, lanes: Lanes) -> set[Op]:
    """Accesses of the kernel ``func`` at elements that vary by lane."""
    steps = lanes.steps
    accesses = [op for op in ops_of(func.body) if op.name in ("load", "store", "atomic")]
    return {op for op in accesses if any([steps[a] is None for a in op.args[1 : 1 + op.args[0].type.ndim]])}


def _work(block: Block, known: dict[Value, int], times: dict[Op, float]) -> float:
    """The ops of ``block``, by their costs, of some several ``times``. ``known``: constants that have been met."""
    total = 0.0
    for op in block.ops:
        name = op.name
        if name == "const":
            known[op.results[0]] = op.attrs["value"]
            continue
        total += _COSTS.get(name, 1) * times.get(op, 1)
        if op.regions:
            rounds = _rounds(op, known) if name in ("for", "while") else 1
            total += rounds * sum([_work(region, known, times) for region in op.regions])
        elif name == "call":
            total += _work(op.attrs["func"].body, known, times)
    return total


def _rounds(op: Op, known: dict[Value, int]) -> int:
    """How often a loop runs, at a guess."""
    bounds = [known.get(a) for a in op.args[:3]] if op.name == "for" else [None]
    return len(range(*bounds)) if None not in bounds and bounds[2] else _ROUNDS


LARGE = 1000  # lines of text from which on a kernel is long, and LLVM polishes it in vain
STRAIGHT = 250  # lines of text for each loop, from which on long code is straight, and loops take little of its time


def optimise(module, machine, inline: bool = False, combine: bool = True) -> None:
    """A short list of passes: code leaves the emitter folded and in SSA, and LLVM's vectorisers are not wanted.
    ``combine``: small patterns become better ones, which shows in short loops.

    Value numbering is not among them: the IR's own passes have shared common values, and LLVM's NewGVN, the only one
    that llvmlite offers, ends the process on some kernels with many nested branches (it never reaches a fixed point).
    """
    import llvmlite.binding as llvm

    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    if inline:
        passes.add_always_inliner_pass()
    passes.add_sroa_pass()  # threads' own arrays that only constants index become registers
    passes.add_simplify_cfg_pass()
    if combine:
        passes.add_instruction_combine_pass()
    passes.add_loop_rotate_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    passes.run(module, builder)


def compile_text(text: str, target: Target) -> bytes:
    """Object bytes of LLVM text."""
    module, machine, effort = _optimised(text, target)
    return emitted(machine.emit_object, module, **effort)


def assembly(text: str, target: Target) -> str:
    """Assembly of LLVM text, for those who want to read it."""
    module, machine, effort = _optimised(text, target)
    return emitted(machine.emit_assembly, module, **effort)


def _optimised(text: str, target: Target) -> tuple[Any, Any, dict[str, bool]]:
    """The module, what generates its code, and how hard that shall try (`llvm.emitted`)."""
    module, machine = parse(text), target_machine(target.triple, target.cpu, target.features)
    lines = text.count("\n")
    large = lines > LARGE
    straight = large and lines > STRAIGHT * text.count("\nloop")
    optimise(module, machine, combine=not straight)
    return module, machine, {"plain": large, "pointers": not straight}


__all__ = [
    "Draft",
    "Options",
    "assembly",
    "build",
    "compile_text",
    "draft",
    "host_target",
    "optimise",
    "parse",
    "weight",
    "written_twice",
]
