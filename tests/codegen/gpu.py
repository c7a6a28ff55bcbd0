"""A GPU to try programs on: the same LLVM text that becomes PTX, compiled for this processor (see ``gpu_text.py``).

It launches kernels as the architecture page says a runtime does. Only what PTX itself makes of the text is not tried.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np

from tests.codegen.gpu_text import Module
from tests.codegen.harness import packed
from treadle.codegen import nvptx
from treadle.ir.effects import order
from treadle.ir.node import Func
from treadle.types.layout import pack
from treadle.types.records import FAULT, LAUNCH, LOG

_count = 0


class Kernel:
    """A kernel on that GPU. ``resident``: the blocks of "threads" passes that it keeps busy."""

    def __init__(self, func: Func, options: nvptx.Options | None = None, resident: int = 3):
        global _count
        _count += 1
        options = replace(options or nvptx.Options(), order=order(func))
        self.func, self.resident = func, resident
        draft = nvptx.draft(func, nvptx.target(75), options, f"gpu{_count}")
        self.meta, self.draft = draft.meta, draft
        self.module = Module(draft.text)
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
            parameters = (ctypes.c_void_p * 2)(ctypes.addressof(block), ctypes.addressof(launch))
            self.module.run(one["entry"], ctypes.addressof(parameters), blocks, one["block"])
        self.used, self.kept = printed[LOG["used"] // 8], kept
        return self.fault[0]

    def blocks(self, one: dict, size: int) -> int:
        needed = size if one["grid"] == "blocks" else -(-size // one["block"])
        if one["grid"] not in ("threads", "blocks"):
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
