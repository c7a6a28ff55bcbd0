"""What threads print: records in a buffer, each with its thread, which the host sorts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Op
from ...types.core import f64
from ...types.records import LAUNCH, LOG
from ..emit import faults
from ..emit.scalar import Lower

if TYPE_CHECKING:
    from ..emit.emitter import Emitter

_RESERVE = f"""
define internal ptr @treadle_reserve(ptr %log, i64 %bytes) noinline {{
entry:
  %up = getelementptr i8, ptr %log, i64 {LOG["used"]}
  %cp = getelementptr i8, ptr %log, i64 {LOG["capacity"]}
  %capacity = load i64, ptr %cp, align 8
  %data = load ptr, ptr %log, align 8
  %used = atomicrmw add ptr %up, i64 %bytes syncscope("device") monotonic, align 8
  %after = add i64 %used, %bytes
  %fits = icmp ule i64 %after, %capacity
  %at = getelementptr i8, ptr %data, i64 %used
  %place = select i1 %fits, ptr %at, ptr null
  ret ptr %place
}}
"""


def write(e: Emitter, op: Op) -> None:
    """A ``print``: the thread, the site, then the values, floats as f64. What does not fit is lost."""
    parts = [e.number(a) for a in op.args if a in e.env]  # text known while compiling is no value
    parts = [Lower(e, x.type, f64, True).cast(x, x.type, f64) if x.type.is_float else x for x in parts]
    site = e.unit.printing(op)
    e.unit.helper(_RESERVE)
    some, done = e.t.label("room"), e.t.label("printed")
    size = 16 + 8 * len(parts)
    at = e.t.ins(f"call ptr @treadle_reserve(ptr {e.launch_field(LAUNCH['log'])}, i64 {size})")
    before = e.t.known
    e.t.branch(e.t.ins(f"icmp eq ptr {at}, null"), done, some)
    e.t.start(some, before)
    for k, text in enumerate([e.place["thread"], str(site), *[faults.raw(e, x, None) for x in parts]]):
        to = e.t.ins(f"getelementptr i8, ptr {at}, i64 {8 * k}")
        e.t.do(f"store i64 {text}, ptr {to}, align 8")
    e.t.jump(done)
    e.t.start(done, before)
