"""LLVM text for a GPU as text for this processor, so that its entries can be called.

Special registers are variables of the module that a loop over hardware threads sets; in entries with barriers they, and
the barriers, are calls into Python, as each hardware thread is a thread of the system there.
"""

from __future__ import annotations

import ctypes
import re
import threading

import llvmlite.binding as llvm

REGISTERS = ("tid.x", "ntid.x", "ctaid.x", "nctaid.x")
ROOM = 227 << 10  # bytes of shared memory
_BARRIER = "@llvm.nvvm.barrier.cta.sync.aligned.all("
_SHUFFLE = "@llvm.nvvm.shfl.sync.bfly.i32("
_CALL, _WAIT_CALL = ctypes.CFUNCTYPE(ctypes.c_int32), ctypes.CFUNCTYPE(None, ctypes.c_int32)
_SHUFFLE_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int32] * 4)

_PATIENCE = 120  # seconds until a thread is taken for lost; then the others go on, and read what is not there yet

place = threading.local()
_given: dict[int, int] = {}
barriers: list[threading.Barrier] = []
_reads = {name: _CALL(lambda name=name: place.registers[name]) for name in REGISTERS}
_wait = _WAIT_CALL(lambda _: barriers[0].wait(_PATIENCE))


@_SHUFFLE_CALL
def _shuffle(mask: int, x: int, by: int, clamp: int) -> int:
    """All threads of a block give and take at once."""
    mine = place.registers["tid.x"]
    assert mask == (-1 if place.registers["ntid.x"] >= 32 else (1 << place.registers["ntid.x"]) - 1)
    _given[mine] = x
    barriers[0].wait(_PATIENCE)
    other = _given[mine ^ by]
    barriers[0].wait(_PATIENCE)
    return other


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def for_host(text: str) -> tuple[str, dict[str, bool]]:
    """The text for this processor; its entries, and whether each has barriers.

    For an entry E there is ``void @E__one(ptr parameters)``, which runs one hardware thread, and ``void @E__all(ptr
    parameters, i32 blocks, i32 threads)``, which runs all. ``parameters`` are pointers to each, as the driver gets
    them.
    """
    text = re.sub(r'target triple = ".*"', f'target triple = "{llvm.get_process_triple()}"', text)
    text = text.replace("external addrspace(3) global [0 x i8]", f"internal addrspace(3) global [{ROOM} x i8] undef")
    text = re.sub(r"declare .*@llvm\.nvvm\..*\n", "", text).replace('syncscope("device") ', "")
    out, entries = [], {}
    for part in re.split(r"(?m)^(?=define )", text):
        together = _BARRIER in part or _SHUFFLE in part
        head = part.split("\n", 1)[0]
        if head.startswith("define ptx_kernel"):
            name = re.search(r"@([\w.]+)\(", head)[1]
            entries[name] = together
            out.append(_wrappers(name, head))
            changed = re.sub(r'ptr byval\(\[\d+ x i8\]\)( align 8)?( readonly)?( "nvvm.grid_constant")?', "ptr", head)
            part = part.replace(head, changed.replace("ptx_kernel ", ""), 1)
        for name in REGISTERS:
            call = f"call i32 @llvm.nvvm.read.ptx.sreg.{name}()"
            own = f"call i32 inttoptr (i64 {_address(_reads[name])} to ptr)()"
            part = part.replace(call, own if together else f"load i32, ptr @gpu.{name}")
        part = part.replace(_SHUFFLE, f"inttoptr (i64 {_address(_shuffle)} to ptr)(")
        out.append(part.replace(_BARRIER, f"inttoptr (i64 {_address(_wait)} to ptr)("))
    return "".join([*out, *[f"@gpu.{name} = internal global i32 0\n" for name in REGISTERS]]), entries


def _wrappers(name: str, head: str) -> str:
    listed = head[head.index("(") + 1 : head.rindex(")")]
    kinds = [one.split()[0] for one in re.split(r",(?![^(\[]*[)\]])", listed)]
    lines, given = [], []
    for k, (kind, one) in enumerate(zip(kinds, re.split(r",(?![^(\[]*[)\]])", listed), strict=True)):
        lines += [f"  %at{k} = getelementptr ptr, ptr %parameters, i64 {k}", f"  %p{k} = load ptr, ptr %at{k}"]
        if "byval" in one:
            given.append(f"ptr %p{k}")
        else:
            lines.append(f"  %v{k} = load {kind}, ptr %p{k}")
            given.append(f"{kind} %v{k}")
    load, call = "\n".join(lines), f"call void @{name}({', '.join(given)})"
    return f"""
define void @{name}__one(ptr %parameters) {{
entry:
{load}
  {call}
  ret void
}}
define void @{name}__all(ptr %parameters, i32 %blocks, i32 %threads) {{
entry:
{load}
  store i32 %blocks, ptr @gpu.nctaid.x
  store i32 %threads, ptr @gpu.ntid.x
  br label %outer
outer:
  %b = phi i32 [ 0, %entry ], [ %nextb, %last ]
  %moreb = icmp ult i32 %b, %blocks
  br i1 %moreb, label %first, label %done
first:
  store i32 %b, ptr @gpu.ctaid.x
  br label %inner
inner:
  %left = phi i32 [ %threads, %first ], [ %t, %run ]
  %moret = icmp ugt i32 %left, 0
  br i1 %moret, label %run, label %last
run:
  %t = sub i32 %left, 1
  store i32 %t, ptr @gpu.tid.x
  {call}
  br label %inner
last:
  %nextb = add i32 %b, 1
  br label %outer
done:
  ret void
}}
"""


def _sizes(text: str, name: str) -> list[int]:
    """Bytes of each parameter of an entry."""
    head = re.search(rf"define ptx_kernel void @{re.escape(name)}\((.*)\)", text)[1]
    wide = {"i32": 4, "i64": 8, "ptr": 8}
    parts = re.split(r",(?![^(\[]*[)\]])", head)
    return [int(m[1]) if (m := re.search(r"byval\(\[(\d+)", one)) else wide[one.split()[0]] for one in parts]


class Module:
    """Entries of a text for a GPU, compiled for this processor."""

    def __init__(self, text: str):
        from tests.codegen.harness import engine

        loader = engine()
        changed, self.together = for_host(text)
        self.sizes = {name: _sizes(text, name) for name in self.together}
        module = llvm.parse_assembly(changed)
        module.verify()
        features = llvm.get_host_cpu_features().flatten()  # with conversions from and to float16
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features, opt=1, jit=True
        )
        library = llvm.JITLibraryBuilder().add_object_img(machine.emit_object(module)).add_current_process()
        for name in self.together:
            library = library.export_symbol(f"{name}__one").export_symbol(f"{name}__all")
        Module.count += 1
        self.tracker = library.link(loader, f"gpu module {Module.count}")

    count = 0

    def run(self, name: str, parameters: int, blocks: int, threads: int) -> None:
        """Run an entry: hardware threads one after the other, the last of each block first; of blocks with barriers
        together."""
        if not self.together[name]:
            kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
            kind(self.tracker[f"{name}__all"])(parameters, blocks, threads)
            return
        entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.tracker[f"{name}__one"])

        def thread(ctaid: int, tid: int) -> None:
            place.registers = {"tid.x": tid, "ntid.x": threads, "ctaid.x": ctaid, "nctaid.x": blocks}
            entry(parameters)

        for ctaid in range(blocks):
            barriers[:] = [threading.Barrier(threads)]
            every = [threading.Thread(target=thread, args=(ctaid, tid)) for tid in range(threads)]
            for each in every:
                each.start()
            for each in every:
                each.join()
