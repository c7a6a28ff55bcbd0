"""Races between threads, found while a kernel runs: two threads use one element, one of them by a plain store.

Threads run one after the other, each to its end, so it is enough to keep for each scalar the first thread that stored
to it and the first that read it or updated it atomically, each with its site: whoever comes later and is another thread
meets the first. They lie in a hash table by address, which grows with what a launch touches; arrays, arrays in structs
and memory given by pointers are alike to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Op
from ...types.core import i64
from ...types.records import LAUNCH, LOG, SHADOW
from . import faults
from .values import X

if TYPE_CHECKING:
    from .emitter import Emitter
    from .memory import Access

FIRST = 1024  # places of a new table; always a power of two
_MIX = -7046029254386353131  # 2⁶⁴ divided by the golden ratio, odd: spreads addresses (Knuth, TAOCP 3, 6.4)

# Threads are kept with 1 added, so that 0 says that there is none, as at address 0 nothing lies.
_FIND = f"""
define internal ptr @treadle_shadow_place(ptr %data, i64 %capacity, i64 %address) {{
entry:
  %last = sub i64 %capacity, 1
  %mixed = mul i64 %address, {_MIX}
  %from = lshr i64 %mixed, 32
  br label %look
look:
  %k = phi i64 [ %from, %entry ], [ %following, %next ]
  %slot = and i64 %k, %last
  %offset = mul i64 %slot, {SHADOW.size}
  %place = getelementptr i8, ptr %data, i64 %offset
  %here = load i64, ptr %place, align 8
  %own = icmp eq i64 %here, %address
  %free = icmp eq i64 %here, 0
  %found = or i1 %own, %free
  br i1 %found, label %done, label %next
next:
  %following = add i64 %k, 1
  br label %look
done:
  ret ptr %place
}}
"""

_WIDEN = f"""
define internal void @treadle_shadow_widen(ptr %shadow) noinline cold {{
entry:
  %cp = getelementptr i8, ptr %shadow, i64 {LOG["capacity"]}
  %old = load ptr, ptr %shadow, align 8
  %before = load i64, ptr %cp, align 8
  %fresh = icmp eq i64 %before, 0
  %twice = shl i64 %before, 1
  %after = select i1 %fresh, i64 {FIRST}, i64 %twice
  %bytes = mul i64 %after, {SHADOW.size}
  %data = call ptr @PyMem_RawRealloc(ptr null, i64 %bytes)
  call void @llvm.memset.p0.i64(ptr align 8 %data, i8 0, i64 %bytes, i1 false)
  store ptr %data, ptr %shadow, align 8
  store i64 %after, ptr %cp, align 8
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %following, %next ]
  %more = icmp ult i64 %k, %before
  br i1 %more, label %move, label %done
move:
  %offset = mul i64 %k, {SHADOW.size}
  %from = getelementptr i8, ptr %old, i64 %offset
  %address = load i64, ptr %from, align 8
  %empty = icmp eq i64 %address, 0
  br i1 %empty, label %next, label %copy
copy:
  %to = call ptr @treadle_shadow_place(ptr %data, i64 %after, i64 %address)
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %to, ptr align 8 %from, i64 {SHADOW.size}, i1 false)
  br label %next
next:
  %following = add i64 %k, 1
  br label %head
done:
  call void @PyMem_RawFree(ptr %old)
  ret void
}}
"""

_TOUCH = f"""
define internal ptr @treadle_touch(ptr %shadow, i64 %address, i64 %thread, i64 %site, i1 %stores) noinline {{
entry:
  %up = getelementptr i8, ptr %shadow, i64 {LOG["used"]}
  %cp = getelementptr i8, ptr %shadow, i64 {LOG["capacity"]}
  %used = load i64, ptr %up, align 8
  %before = load i64, ptr %cp, align 8
  %twice = shl i64 %used, 1
  %room = icmp ult i64 %twice, %before
  br i1 %room, label %find, label %widen
widen:
  call void @treadle_shadow_widen(ptr %shadow)
  br label %find
find:
  %data = load ptr, ptr %shadow, align 8
  %capacity = load i64, ptr %cp, align 8
  %place = call ptr @treadle_shadow_place(ptr %data, i64 %capacity, i64 %address)
  %here = load i64, ptr %place, align 8
  %new = icmp eq i64 %here, 0
  br i1 %new, label %take, label %known
take:
  store i64 %address, ptr %place, align 8
  %more = add i64 %used, 1
  store i64 %more, ptr %up, align 8
  br label %known
known:
  %me = add i64 %thread, 1
  %stored = getelementptr i8, ptr %place, i64 {SHADOW["stored"]}
  %used_at = getelementptr i8, ptr %place, i64 {SHADOW["used"]}
  %storer = load i64, ptr %stored, align 8
  %user = load i64, ptr %used_at, align 8
  %unstored = icmp eq i64 %storer, 0
  %unused = icmp eq i64 %user, 0
  %own_store = icmp eq i64 %storer, %me
  %own_use = icmp eq i64 %user, %me
  %no_storer = or i1 %unstored, %own_store
  %no_user = or i1 %unused, %own_use
  br i1 %no_storer, label %kept, label %met_storer
met_storer:
  ret ptr %stored
kept:
  %harmless = xor i1 %stores, true
  %fine = or i1 %harmless, %no_user
  br i1 %fine, label %note, label %met_user
met_user:
  ret ptr %used_at
note:
  %mine = select i1 %stores, ptr %stored, ptr %used_at
  %first = select i1 %stores, i1 %unstored, i1 %unused
  br i1 %first, label %write, label %done
write:
  store i64 %me, ptr %mine, align 8
  %site_at = getelementptr i8, ptr %mine, i64 8
  store i64 %site, ptr %site_at, align 8
  br label %done
done:
  ret ptr null
}}
"""


def watch(e: Emitter, op: Op, access: Access, indices: list[X]) -> None:
    """Record a fault if another thread has used the element that ``op`` uses, and one of both by a plain store."""
    for helper in (_FIND, _WIDEN, _TOUCH):
        e.unit.helper(helper)
    for declared in ("ptr @PyMem_RawRealloc(ptr, i64)", "void @PyMem_RawFree(ptr)",
                     "void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
                     "void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"):  # fmt: skip
        e.t.declare(f"declare {declared}")
    shown = [*[i for i, _ in access.view.owed], *indices][-4:]
    name = access.view.path or op.args[0].name
    site = e.unit.site(op, "race", array=name, ndim=len(shown), access=op.name,
                       types=[x.type.name for x in shown])  # fmt: skip
    shadow, thread = e.launch_field(LAUNCH["shadow"]), e.place["thread"]
    stores = "true" if op.name == "store" else "false"
    for item in access.items:
        pointer = access.item_address(item).start(access.view.data)
        address = e.t.ins(f"ptrtoint ptr {pointer} to i64")
        met = e.t.ins(f"call ptr @treadle_touch(ptr {shadow}, i64 {address}, i64 {thread}, i64 {site}, i1 {stores})")
        go, fail = e.t.label("alone"), e.t.label("race")
        e.t.branch(e.t.ins(f"icmp eq ptr {met}, null"), go, fail)
        before = e.t.known
        e.t.start(fail, before)
        other = e.t.ins(f"load i64, ptr {met}, align 8")
        number = e.t.ins(f"load i64, ptr {e.t.ins(f'getelementptr i8, ptr {met}, i64 8')}, align 8")
        pair = [e.uniform(i64, e.t.ins(f"sub i64 {other}, 1")), e.uniform(i64, number)]
        faults.record(e, site, [*pair, *shown])
        e.t.jump(e.abort())
        e.t.start(go, before)
