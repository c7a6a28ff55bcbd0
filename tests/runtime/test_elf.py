"""Code that is laid out does what the same object does when LLVM links it; anything unusual stays an object."""

import ctypes
import platform
import sys

import llvmlite.binding as llvm
import pytest

from tests.runtime import kernels
from treadle.base.binary import Binary
from treadle.codegen.llvm import parse, target_machine
from treadle.runtime import elf, loader, native

HERE = sys.platform.startswith("linux") and platform.machine() == "x86_64"
needs_elf = pytest.mark.skipif(not HERE, reason="code is laid out on Linux for x86-64 only")

# A variable that others see, one of our own, constants in pools, a table of jumps, one of addresses, calls to outside.
PROGRAM = """
@count = global i32 40, align 64
@own = internal global [3 x i32] zeroinitializer
@functions = internal constant [2 x ptr] [ptr @twice, ptr @half]
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare i64 @strlen(ptr)
@text = internal constant [5 x i8] c"four\\00"

define internal double @twice(double %x) {
  %r = fmul double %x, 2.0
  ret double %r
}
define internal double @half(double %x) {
  %r = fmul double %x, 0.5
  ret double %r
}
define double @f(i32 %n, double %x) {
  %before = load volatile i32, ptr @count
  %after = add i32 %before, 2
  store volatile i32 %after, ptr @count
  switch i32 %n, label %other [i32 0, label %a  i32 1, label %b  i32 2, label %c  i32 3, label %d  i32 4, label %e]
a:
  ret double 0.1
b:
  %memory = call ptr @PyMem_RawMalloc(i64 64)
  store volatile double %x, ptr %memory
  %kept = load volatile double, ptr %memory
  call void @PyMem_RawFree(ptr %memory)
  ret double %kept
c:
  %length = call i64 @strlen(ptr @text)
  %length.f = sitofp i64 %length to double
  ret double %length.f
d:
  %slot = getelementptr [3 x i32], ptr @own, i64 0, i64 2
  %old = load volatile i32, ptr %slot
  %new = add i32 %old, 7
  store volatile i32 %new, ptr %slot
  %new.f = sitofp i32 %new to double
  ret double %new.f
e:
  %which = and i32 %after, 1
  %place = getelementptr [2 x ptr], ptr @functions, i32 0, i32 %which
  %function = load ptr, ptr %place
  %result = call double %function(double %x)
  ret double %result
other:
  ret double -0.0
}
"""


def binary(text, symbols, triple=None):
    if triple is None:
        machine = target_machine(llvm.get_process_triple(), llvm.get_host_cpu_name())
    else:
        machine = target_machine(triple, "")
    return Binary(machine.emit_object(parse(f'target triple = "{machine.triple}"\n{text}')), symbols)


def behaviour(library):
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int32, ctypes.c_double)(library.addresses["f"])
    count = ctypes.c_int32.from_address(library.addresses["count"])
    results = [f(n, 3.25) for n in (0, 1, 2, 3, 3, 4, 5)]
    count.value += 1
    return [*results, f(4, 3.25), count.value]


@needs_elf
def test_a_program_behaves_as_when_llvm_links_it():
    made = binary(PROGRAM, ("f", "count"))
    laid = elf.laid_out(made)
    assert laid.layout is not None and made.layout is None
    want = [0.1, 3.25, 4.0, 7.0, 14.0, 6.5, 0.0, 1.625, 40 + 2 * 8 + 1]
    assert behaviour(loader.link(made)) == want
    assert behaviour(loader.link(laid)) == want
    assert behaviour(loader.link(laid)) == want  # with variables of its own


@needs_elf
def test_code_cannot_be_written_and_variables_cannot_be_run():
    laid = elf.laid_out(binary(PROGRAM, ("f", "count")))
    library = loader.link(laid)
    with open("/proc/self/maps") as maps:
        ranges = [(*[int(x, 16) for x in line.split()[0].split("-")], line.split()[1]) for line in maps]
    rights = {name: next(r for low, high, r in ranges if low <= a < high) for name, a in library.addresses.items()}
    assert rights == {"f": "r-xp", "count": "rw-p"}


@needs_elf
def test_what_helpers_and_kernels_are_made_of_is_laid_out():
    room = native.room()
    made = [room.driver_binary(), room.merge_binary("add", kernels.f32), room.launcher_binary()]
    assert all(elf.laid_out(b).layout is not None for b in made)


@needs_elf
def test_a_function_that_nobody_has_is_named():
    text = "declare void @no_such_function()\ndefine void @f() { call void @no_such_function() ret void }"
    with pytest.raises(loader.InternalError, match="no_such_function"):
        loader.link(elf.laid_out(binary(text.replace(") ret", ")\nret"), ("f",))))


RET = "define i32 @f() {\n  %v = load i32, ptr @x\n  ret i32 %v\n}\n"
UNUSUAL = {
    "thread-local variables": ("@x = thread_local global i32 1\n" + RET, ("f",), None),
    "constructors": (
        "@x = global i32 1\n" + RET + "define void @g() { ret void }\n"
        "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @g, ptr null }]",
        ("f",), None,
    ),
    "variables that begin at every second page": ("@x = global i32 1, align 8192\n" + RET, ("f",), None),
    "a symbol that is not there": ("@x = global i32 1\n" + RET, ("f", "g"), None),
    "another processor": ("@x = global i32 1\n" + RET, ("f",), "aarch64-unknown-linux-gnu"),
    "another kind of file": ("@x = global i32 1\n" + RET, ("f",), "x86_64-pc-windows-msvc"),
}  # fmt: skip


@pytest.mark.parametrize("text, symbols, triple", UNUSUAL.values(), ids=UNUSUAL)
def test_what_is_unusual_stays_an_object(text, symbols, triple):
    made = binary(text, symbols, triple)
    assert elf.laid_out(made) is made


def test_what_is_no_object_stays_as_it_is():
    for code in (b"", b"//\n.version 7.0\n", b"\x7fELF"):
        made = Binary(code, ("f",))
        assert elf.laid_out(made) is made
