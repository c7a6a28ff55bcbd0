"""Kernels as PTX text for NVIDIA GPUs: the emitter of the CPU with one lane, the thread index from registers.

An entry takes the packed arguments and the launch record by value; a grid-stride loop makes any number of blocks right.
"""

from __future__ import annotations

from ..base.binary import Binary
from ..base.target import Target
from ..ir.node import Func
from ..types.layout import pack
from ..types.records import LAUNCH
from .cpu import optimise
from .emit.module import write
from .emit.unit import Machine, Options
from .llvm import emitted, parse, target_machine

TRIPLE = "nvptx64-nvidia-cuda"


def target(arch: int = 75) -> Target:
    """The GPU architecture ``sm_{arch}``."""
    return Target("nvptx", TRIPLE, f"sm_{arch}", "+ptx70" if arch < 90 else "+ptx78")


def build(func: Func, target: Target, options: Options | None = None, symbol: str = "kernel") -> Binary:
    """PTX text of the scalarized kernel ``func``."""
    options = options or Options()
    text, unit = write(func, "treadle_threads", Machine("nvptx", 1), options, target.triple)
    module = parse(text + _entry(symbol, max(pack(func.signature)[1], 8)))
    machine = target_machine(TRIPLE, target.cpu, target.features)
    optimise(module, machine, inline=True)
    meta = {"symbol": symbol, "signature": [t.name for t in func.signature], "size": pack(func.signature)[1],
            "checked": options.checked, "order": options.order, "sites": unit.sites, "prints": []}  # fmt: skip
    return Binary(emitted(machine.emit_assembly, module).encode(), (symbol,), (), meta)


def _entry(symbol: str, size: int) -> str:
    """The kernel proper: each hardware thread takes every thread of the launch that is its own modulo their number."""
    registers = {name: f"@llvm.nvvm.read.ptx.sreg.{name}" for name in ("ctaid.x", "ntid.x", "tid.x", "nctaid.x")}
    reads = "\n".join(
        f"  %{name[:-2]}.short = call i32 {intrinsic}()\n  %{name[:-2]} = zext i32 %{name[:-2]}.short to i64"
        for name, intrinsic in registers.items()
    )
    record = f"ptr byval([{LAUNCH.size} x i8]) align 8 %launch"
    declarations = "\n".join(f"declare i32 {intrinsic}()" for intrinsic in registers.values())
    return f"""
{declarations}
define ptx_kernel void @{symbol}(ptr byval([{size} x i8]) align 8 %args, {record}) {{
entry:
{reads}
  %block = mul i64 %ctaid, %ntid
  %first = add i64 %block, %tid
  %stride = mul i64 %nctaid, %ntid
  %size = load i64, ptr %launch, align 8
  br label %test
test:
  %thread = phi i64 [ %first, %entry ], [ %following, %run ]
  %more = icmp ult i64 %thread, %size
  br i1 %more, label %run, label %done
run:
  %after = add i64 %thread, 1
  %stopped = call i32 @treadle_threads(ptr %args, ptr %launch, i64 %thread, i64 %after, ptr null)
  %following = add i64 %thread, %stride
  br label %test
done:
  ret void
}}
"""
