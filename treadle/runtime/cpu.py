"""The CPU: host memory, object code, launches that are finished when they return."""

from __future__ import annotations

from typing import Any

from ..base.binary import Binary
from . import loader, memory
from .device import Device, processor_name


class Entry:
    """A loaded kernel: its ``address``, the ``binary`` it came from, and the code that must stay loaded."""

    __slots__ = ("__weakref__", "address", "binary", "device", "library", "name")
    command: Any = None  # the class of its launches; None: that of the CPU

    def __init__(self, device: Device, binary: Binary, library: Any, name: str, address: int):
        self.device, self.binary, self.library, self.name, self.address = device, binary, library, name, address

    @property
    def meta(self) -> dict:
        """What the compiler says about the code."""
        return self.binary.meta

    def crowds(self, program: Any, packed: Any) -> bool:
        """Whether a launch would take too much memory beside its arrays."""
        return False

    def __repr__(self) -> str:
        return f"<{self.name} on {self.device}>"


class Cpu(Device):
    """All cores of this machine. Memory is NumPy's neighbour, launches are synchronous."""

    alias = "cpu"
    is_cpu = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """What the system calls the processor."""
        return processor_name()

    allocate = staticmethod(memory.allocate)

    def load(self, binary: Binary) -> Entry:
        """Make the kernel in ``binary`` callable; its name is ``meta["symbol"]``, or the only symbol there is."""
        library = loader.link(binary)
        name = binary.meta.get("symbol", binary.symbols[0])
        return Entry(self, binary, library, name, library.addresses[name])
