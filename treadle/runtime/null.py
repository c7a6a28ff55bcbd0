"""A device that computes nothing: memory as on the CPU, kernels that do not run. Tests what surrounds a kernel."""

from __future__ import annotations

from ..base.binary import Binary
from . import memory
from .cpu import Entry
from .device import Device


class Null(Device):
    """Takes every binary and records it in ``loaded``; its entries have address 0 and are never called."""

    alias = "null"
    name = "null"
    captures = False

    def __init__(self) -> None:
        self.loaded: list[Binary] = []

    allocate = staticmethod(memory.allocate)

    def load(self, binary: Binary) -> Entry:
        self.loaded.append(binary)
        return Entry(self, binary, None, binary.meta.get("symbol", binary.symbols[0]), 0)
