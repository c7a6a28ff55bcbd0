"""What a GPU does with bytes besides plain copies: copies between arrays with gaps, exchanges, and the condition of a
branch or a loop in a graph. The same text runs on this machine, thread after thread, where it is tested.

A record (``types/records.SPREAD``) says which bytes; they are moved in units of 1 to 16 bytes, as their places allow,
one a thread. ``run`` counts units there, and axis 0 is the innermost.
"""

from __future__ import annotations

from ...types.records import MAX_AXES, MAX_ITEMS, SPREAD

UNITS = (1, 2, 4, 8, 16)
_REGISTERS = ("ctaid.x", "ntid.x", "tid.x", "nctaid.x")


def names() -> tuple[str, ...]:
    """The entries, one of each kind for each size of units."""
    return *_moving(), "treadle_words"


def _moving() -> tuple[str, ...]:
    return tuple([f"treadle_{what}_{unit}" for what in ("spread", "exchange") for unit in UNITS])


def bodies() -> str:
    """``@NAME_body(table, total, first, stride)`` of each entry: threads from ``first`` on, ``stride`` apart."""
    return "".join([_body(what, unit) for what in ("spread", "exchange") for unit in UNITS])


def entries() -> str:
    """The entries for a GPU, ``@NAME(record by value, total)``."""
    reads = "\n".join([f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}()" for name in _REGISTERS])
    return f"{reads}\n{bodies()}" + "".join([_entry(name) for name in _moving()]) + _words()


def _words() -> str:
    """``@treadle_words(table by value, address)``: one block of as many threads as the table has words writes it: where
    copies from the host cannot be, in graphs."""
    return f"""
define ptx_kernel void @treadle_words(ptr byval([{16 * MAX_ITEMS} x i8]) align 8 %table, ptr %address) {{
  %tid.short = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %tid = zext i32 %tid.short to i64
  %from = getelementptr i64, ptr %table, i64 %tid
  %word = load i64, ptr %from, align 8
  %place = addrspacecast ptr %address to ptr addrspace(1)
  %to = getelementptr i64, ptr addrspace(1) %place, i64 %tid
  store i64 %word, ptr addrspace(1) %to, align 8
  ret void
}}
"""


def condition() -> str:
    """``@treadle_condition(handle, address, inverted)``: the int32 there, or whether it is 0, becomes a condition of a
    graph. The function is the driver's."""
    return """
declare void @cudaGraphSetConditional(i64, i32)
define ptx_kernel void @treadle_condition(i64 %handle, ptr %address, i32 %inverted) {
  %place = addrspacecast ptr %address to ptr addrspace(1)
  %value = load i32, ptr addrspace(1) %place, align 4
  %is = icmp ne i32 %value, 0
  %not = icmp ne i32 %inverted, 0
  %either = xor i1 %is, %not
  %word = zext i1 %either to i32
  call void @cudaGraphSetConditional(i64 %handle, i32 %word)
  ret void
}
"""


def _field(name: str) -> str:
    value, at = f"%{name}", SPREAD[name]
    return f"  {value}.at = getelementptr i8, ptr %table, i64 {at}\n  {value} = load i64, ptr {value}.at, align 8\n"


def _body(what: str, unit: int) -> str:
    name, word = f"treadle_{what}_{unit}", f"i{8 * unit}"
    fields = ["into", "source", "run", "ndim"]
    fields += [f"{field}{k}" for field in ("extent", "into_step", "source_step") for k in range(MAX_AXES)]
    lines = [f"define internal void @{name}_body(ptr %table, i64 %total, i64 %first, i64 %stride) alwaysinline {{"]
    lines += ["start:", *[_field(field) for field in fields], "  br label %test", "test:"]
    lines += ["  %i = phi i64 [ %first, %start ], [ %following, %done ]"]
    lines += ["  %more = icmp ult i64 %i, %total", "  br i1 %more, label %place, label %end", "place:"]
    lines += ["  %within = urem i64 %i, %run", "  %rest0 = udiv i64 %i, %run", f"  %byte = mul i64 %within, {unit}"]
    exits = []  # a block for each number of axes, and the offsets there
    here = "place"
    to, out = "%byte", "%byte"
    for k in range(MAX_AXES):
        exits.append((here, to, out))
        lines += [f"  %has{k} = icmp ugt i64 %ndim, {k}", f"  br i1 %has{k}, label %axis{k}, label %found", f"axis{k}:"]
        lines += [f"  %at{k} = urem i64 %rest{k}, %extent{k}", f"  %rest{k + 1} = udiv i64 %rest{k}, %extent{k}"]
        for side, offset in (("into", to), ("source", out)):
            lines += [f"  %{side}.step{k} = mul i64 %at{k}, %{side}_step{k}"]
            lines += [f"  %{side}.offset{k} = add i64 {offset}, %{side}.step{k}"]
        here, to, out = f"axis{k}", f"%into.offset{k}", f"%source.offset{k}"
    exits.append((here, to, out))
    lines += ["  br label %found", "found:"]
    lines += [f"  %to = phi i64 {', '.join([f'[ {t}, %{block} ]' for block, t, _ in exits])}"]
    lines += [f"  %from = phi i64 {', '.join([f'[ {s}, %{block} ]' for block, _, s in exits])}"]
    for side, base, offset in (("a", "into", "to"), ("b", "source", "from")):
        lines += [f"  %{side}.address = add i64 %{base}, %{offset}"]
        lines += [f"  %{side} = inttoptr i64 %{side}.address to ptr addrspace(1)"]
    lines += [f"  %given = load {word}, ptr addrspace(1) %b, align {unit}"]
    if what == "exchange":
        lines += [f"  %had = load {word}, ptr addrspace(1) %a, align {unit}"]
        lines += [f"  store {word} %had, ptr addrspace(1) %b, align {unit}"]
    lines += [f"  store {word} %given, ptr addrspace(1) %a, align {unit}", "  br label %done", "done:"]
    lines += ["  %following = add i64 %i, %stride", "  br label %test", "end:", "  ret void", "}", ""]
    return "\n".join(lines)


def _entry(name: str) -> str:
    reads = "".join([
        f"  %{r[:-2]}.short = call i32 @llvm.nvvm.read.ptx.sreg.{r}()\n  %{r[:-2]} = zext i32 %{r[:-2]}.short to i64\n"
        for r in _REGISTERS
    ])  # fmt: skip
    return f"""
define ptx_kernel void @{name}(ptr byval([{SPREAD.size} x i8]) align 8 %table, i64 %total) {{
{reads}  %block = mul i64 %ctaid, %ntid
  %first = add i64 %block, %tid
  %stride = mul i64 %nctaid, %ntid
  call void @{name}_body(ptr %table, i64 %total, i64 %first, i64 %stride)
  ret void
}}
"""
