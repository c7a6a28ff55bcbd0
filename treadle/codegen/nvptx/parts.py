"""What writers of entries share: special registers, scratch memory, where arrays begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..emit.values import ViewX

if TYPE_CHECKING:
    from ..emit.emitter import Emitter
    from .way import Exact

BARRIER = "@llvm.nvvm.barrier.cta.sync.aligned.all"  # of all threads of a block
ROW = 16  # bytes of an item of scratch in the table: its address, and its slots


def item(e: Emitter, number: int, field: int = 0) -> str:
    """Of an item of scratch its address (field 0) or its slots (1), read once at the top of the function."""
    key = f"item{number} {field}"
    if key not in e.place:
        kind = ("ptr", "i64")[field]
        at = e.t.into(e.after_parameters, f"getelementptr i8, ptr {e.place['priv']}, i64 {ROW * number + 8 * field}")
        e.place[key] = e.t.into(e.after_parameters, f"load {kind}, ptr {at}, align 8, !invariant.load !0")
    return e.place[key]


def in_global(ins: Callable[[str], str], pointer: str) -> str:
    """``pointer`` as one of global memory, which accesses then need not find out. ``ins`` writes an instruction."""
    return ins(f"addrspacecast ptr {pointer} to ptr addrspace(1)")


def register(e: Emitter, name: str) -> str:
    """A special register, as an i64."""
    intrinsic = f"@llvm.nvvm.read.ptx.sreg.{name}"
    e.t.declare(f"declare i32 {intrinsic}()")
    return e.t.ins(f"zext i32 {e.t.ins(f'call i32 {intrinsic}()')} to i64")


def hardware(e: Emitter) -> tuple[str, str]:
    """The number of this hardware thread, and how many there are."""
    block = register(e, "ntid.x")
    first = e.t.ins(f"mul i64 {register(e, 'ctaid.x')}, {block}")
    return e.t.ins(f"add i64 {first}, {register(e, 'tid.x')}"), e.t.ins(f"mul i64 {register(e, 'nctaid.x')}, {block}")


_CLEAR = """
define internal void @treadle_clear(ptr %at, i64 %bytes) alwaysinline nounwind {
entry:
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %word ]
  %more = icmp ult i64 %i, %bytes
  br i1 %more, label %word, label %done
word:
  %p = getelementptr i8, ptr %at, i64 %i
  store i64 0, ptr %p, align 8
  %next = add i64 %i, 8
  br label %test
done:
  ret void
}
"""
_FEW = 64  # bytes that are cleared one word after the other


def clear(e: Emitter, base: str, size: int) -> None:
    """Clear bytes of a thread's own memory by words; LLVM's own way would be byte by byte."""
    at = 0
    if size >= _FEW:
        e.unit.helper(_CLEAR)
        at = size // 8 * 8
        e.t.do(f"call void @treadle_clear(ptr {base}, i64 {at})")
    while at < size:
        width = next(n for n in (8, 4, 2, 1) if at + n <= size)
        to = e.t.ins(f"getelementptr i8, ptr {base}, i64 {at}")
        e.t.do(f"store i{8 * width} 0, ptr {to}, align {width}")
        at += width


def first_byte(e: Emitter, array: Exact) -> str:
    """The lowest address of an array, as an i64, found once at the top of the function: behind where the data pointer
    leads if strides are negative."""
    key = f"first {array.item}"
    if key in e.place:
        return e.place[key]

    def ins(rhs: str) -> str:
        return e.t.into(e.after_parameters, rhs)

    view = e.env[e.unit.kernel.params[array.param]]
    assert isinstance(view, ViewX)
    first = ins(f"ptrtoint ptr {(view.grad if array.grad else view.data).text} to i64")
    for extent, stride in zip(view.shape, view.strides, strict=True):
        if stride.const is not None and stride.const >= 0:
            continue
        e.t.declare("declare i64 @llvm.smin.i64(i64, i64)")
        reach = ins(f"mul i64 {ins(f'sub i64 {extent.text}, 1')}, {stride.text}")
        first = ins(f"add i64 {first}, {ins(f'call i64 @llvm.smin.i64(i64 {reach}, i64 0)')}")
    e.place[key] = first
    return first
