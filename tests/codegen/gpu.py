"""A GPU to try programs on: the same LLVM text that becomes PTX, compiled for this processor.

Special registers and barriers are calls into Python. Hardware threads run one after the other, except those of a block
that has barriers: they are threads of the system. Only what PTX itself makes of the text is not tried here.
"""

from __future__ import annotations

import ctypes
import re
import threading
from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np

from tests.codegen.harness import engine, packed
from treadle.codegen import nvptx
from treadle.ir.effects import order
from treadle.ir.node import Func
from treadle.types.layout import pack
from treadle.types.records import FAULT, LAUNCH, LOG

_place = threading.local()
_barrier: list[threading.Barrier] = []
_CALL = ctypes.CFUNCTYPE(ctypes.c_int32)
_REGISTERS = {
    name: _CALL(lambda name=name: _place.registers[name]) for name in ("tid.x", "ntid.x", "ctaid.x", "nctaid.x")
}
_WAIT = ctypes.CFUNCTYPE(None, ctypes.c_int32)(lambda _: _barrier[0].wait(10))
_count = 0


def for_host(text: str) -> str:
    """The text of a module for a GPU as one for this processor."""
    text = re.sub(r'target triple = ".*"', f'target triple = "{llvm.get_process_triple()}"', text)
    text = re.sub(r"ptr byval\(\[\d+ x i8\]\) align 8 readonly \"nvvm.grid_constant\"", "ptr", text)
    text = text.replace("define ptx_kernel", "define").replace('syncscope("device") ', "")
    for name, call in _REGISTERS.items():
        at = ctypes.cast(call, ctypes.c_void_p).value
        text = text.replace(f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}()", "")
        text = text.replace(f"@llvm.nvvm.read.ptx.sreg.{name}()", f"inttoptr (i64 {at} to ptr)()")
    at = ctypes.cast(_WAIT, ctypes.c_void_p).value
    text = text.replace("declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)", "")
    return text.replace("@llvm.nvvm.barrier.cta.sync.aligned.all(", f"inttoptr (i64 {at} to ptr)(")


class Kernel:
    """A kernel on that GPU. ``resident``: the blocks of "threads" passes that it keeps busy."""

    def __init__(self, func: Func, options: nvptx.Options | None = None, resident: int = 3):
        global _count
        _count += 1
        options = replace(options or nvptx.Options(), order=order(func))
        self.func, self.resident = func, resident
        draft = nvptx.draft(func, nvptx.target(75), options, f"gpu{_count}")
        self.meta, self.draft = draft.meta, draft
        module = llvm.parse_assembly(for_host(draft.text))
        module.verify()
        loader = engine()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True)
        library = llvm.JITLibraryBuilder().add_object_img(machine.emit_object(module)).add_current_process()
        for symbol in draft.symbols:
            library = library.export_symbol(symbol)
        self.tracker = library.link(loader, draft.symbol)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        self.entries = {symbol: kind(self.tracker[symbol]) for symbol in draft.symbols}
        self.fault = (ctypes.c_int64 * (FAULT.size // 8))()
        self.log = np.zeros(1 << 16, np.uint8)
        self.host: dict[int, np.ndarray] = {}  # items that stay from launch to launch

    def __call__(self, dims, *args) -> int:
        """Launch; the state of the fault record."""
        dims = tuple(dims) if isinstance(dims, tuple | list) else (dims,)
        size = int(np.prod(dims))
        starts, nbytes = pack(self.func.signature)
        packed_args = bytearray(max(nbytes, 8))
        for t, at, x in zip(self.func.signature, starts, args, strict=True):
            data = packed(t, x)
            packed_args[at : at + len(data)] = data
        block = ctypes.create_string_buffer(bytes(packed_args), len(packed_args))
        grids = [self.blocks(one, size) for one in self.meta["passes"]]
        table, kept = self.scratch(grids, args)
        printed = (ctypes.c_int64 * 3)(self.log.ctypes.data, 0, len(self.log))
        launch = (ctypes.c_int64 * (LAUNCH.size // 8))()
        launch[:5] = [size, *([*dims, 1, 1, 1, 1][:4])]
        launch[LAUNCH["fault"] // 8] = ctypes.addressof(self.fault)
        launch[LAUNCH["log"] // 8] = ctypes.addressof(printed)
        launch[LAUNCH["priv_targets"] // 8] = table.ctypes.data
        for one, blocks in zip(self.meta["passes"], grids, strict=True):
            self.run(one, blocks, ctypes.addressof(block), ctypes.addressof(launch))
        self.used, self.kept = printed[LOG["used"] // 8], kept
        return self.fault[0]

    def blocks(self, one: dict, size: int) -> int:
        needed = -(-size // one["block"])
        if one["grid"] != "threads":
            return one["grid"] if isinstance(one["grid"], int) else 1
        return min(needed, one["most"]) if "most" in one else min(needed, self.resident)

    def scratch(self, grids: list[int], args) -> tuple[np.ndarray, list]:
        """The table of scratch memory."""
        threads = max([b * one["block"] for b, one in zip(grids, self.meta["passes"], strict=True)])
        table, kept = [], []
        for k, item in enumerate(self.meta["scratch"]):
            if item["per"] == "host":
                memory, slots = self.host.setdefault(k, np.zeros(1, np.uint64)), 1
            elif item["per"] == "scalar":
                slots = _span(args, item)
                memory = np.zeros(item["bytes"] * slots + 1, np.uint8)
            else:
                slots = item["slots"]
                if slots is None:
                    slots = max(item["first"], int(self.host[item["needs"]][0]))
                count = {"launch": 1, "block": max(grids), "thread": threads}[item["per"]]
                memory = np.full(item["bytes"] * slots * count, 0 if item["zeroed"] else 0xAB, np.uint8)
            kept.append(memory)
            table += [memory.ctypes.data, slots]
        return np.array(table or [0], np.uint64), kept

    def run(self, one: dict, blocks: int, args: int, launch: int) -> None:
        entry = self.entries[one["entry"]]
        together = one["grid"] == "one"

        def thread(ctaid: int, tid: int) -> None:
            _place.registers = {"tid.x": tid, "ntid.x": one["block"], "ctaid.x": ctaid, "nctaid.x": blocks}
            entry(args, launch)

        for ctaid in range(blocks):
            if not together:
                for tid in reversed(range(one["block"])):  # any order is right
                    thread(ctaid, tid)
                continue
            _barrier[:] = [threading.Barrier(one["block"])]
            all_ = [threading.Thread(target=thread, args=(ctaid, tid)) for tid in range(one["block"])]
            for each in all_:
                each.start()
            for each in all_:
                each.join()

    def records(self) -> list[tuple[int, int, list[int]]]:
        """What was printed: thread, site, words; in the threads' order."""
        words, at, found = self.log[: self.used].view(np.int64), 0, []
        while at < len(words):
            n = sum(isinstance(v, str) for v in self.meta["prints"][words[at + 1]]["values"])
            found.append((int(words[at]), int(words[at + 1]), words[at + 2 : at + 2 + n].tolist()))
            at += 2 + n
        return sorted(found, key=lambda r: r[0])


def _span(args, item: dict) -> int:
    """The scalars from the first to the last byte of an array."""
    array = args[item["path"][0]]
    if isinstance(array, tuple):
        array = array[item["path"][-1] == "grad"]
    if array.size == 0:
        return 0
    return (sum((n - 1) * abs(s) for n, s in zip(array.shape, array.strides)) + array.itemsize) // item["size"]
