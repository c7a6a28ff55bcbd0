"""Buffers that grow: records are appended to ``{data, bytes used, capacity}``, be it held updates or printed values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...types.records import LOG

if TYPE_CHECKING:
    from .emitter import Emitter

_APPEND = f"""
define internal ptr @treadle_append(ptr %buffer, i64 %bytes) noinline {{
entry:
  %up = getelementptr i8, ptr %buffer, i64 {LOG["used"]}
  %cp = getelementptr i8, ptr %buffer, i64 {LOG["capacity"]}
  %used = load i64, ptr %up, align 8
  %capacity = load i64, ptr %cp, align 8
  %data = load ptr, ptr %buffer, align 8
  %after = add i64 %used, %bytes
  store i64 %after, ptr %up, align 8
  %fits = icmp ule i64 %after, %capacity
  br i1 %fits, label %ready, label %grow
grow:
  %twice = shl i64 %after, 1
  %more = call ptr @PyMem_RawRealloc(ptr %data, i64 %twice)
  store ptr %more, ptr %buffer, align 8
  store i64 %twice, ptr %cp, align 8
  br label %ready
ready:
  %from = phi ptr [ %data, %entry ], [ %more, %grow ]
  %at = getelementptr i8, ptr %from, i64 %used
  ret ptr %at
}}
"""


def append(e: Emitter, buffer: str, nbytes: int) -> str:
    """Where the next ``nbytes`` of the buffer at pointer ``buffer`` lie."""
    e.unit.helper(_APPEND)
    e.t.declare("declare ptr @PyMem_RawRealloc(ptr, i64)")
    return e.t.ins(f"call ptr @treadle_append(ptr {buffer}, i64 {nbytes})")
