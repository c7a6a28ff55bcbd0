"""PTX becomes code of a GPU: assembled once, kept in the cache as a cubin, loaded into the device's context.

``ptxas`` assembles where it is installed, else the driver does. The driver has the last word: what it does not load is
left to its own compiler.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any

from ...base.binary import Binary
from ...base.digest import digest
from ...base.errors import DeviceError, InternalError
from .. import cache as disk
from .. import native
from ..cpu import Entry
from .launch import GpuCommand, Log, by_scalar
from .memory import pinned

if TYPE_CHECKING:
    from .gpu import Gpu

SHARED = 48 << 10  # bytes of dynamic shared memory that a block has without being asked about


class Module:
    """Code in a GPU's context, which stays there as long as this does. ``addresses``: of its entries, by name."""

    __slots__ = ("__weakref__", "addresses", "device")

    def __init__(self, device: Gpu, ptx: bytes, symbols: tuple[str, ...]):
        self.device = device
        with device.entered as driver:
            handle = int(_loaded(device, ptx))
            weakref.finalize(self, device.drop, "cuModuleUnload", handle).atexit = False
            self.addresses = {name: int(driver.cuModuleGetFunction(handle, name.encode())) for name in symbols}

    def allow_shared(self, entry: str, nbytes: int) -> None:
        """Let blocks of an entry have so many bytes of dynamic shared memory.

        Raises:
            DeviceError: the device has less.
        """
        most = self.device.max_shared_memory_per_block
        if nbytes > most:
            raise DeviceError(f"a block needs {nbytes} bytes of shared memory; {self.device} has {most}")
        if nbytes > SHARED:
            driver = self.device.driver
            what = driver.enum("CUfunction_attribute", "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES")
            with self.device.entered:
                driver.cuFuncSetAttribute(self.addresses[entry], what, nbytes)

    def facts(self, entry: str, names: tuple[str, ...]) -> dict[str, int]:
        """What the driver says of an entry, by the ends of its words ``CU_FUNC_ATTRIBUTE_…``."""
        driver = self.device.driver
        with self.device.entered:
            return {
                name: int(driver.cuFuncGetAttribute(
                    driver.enum("CUfunction_attribute", f"CU_FUNC_ATTRIBUTE_{name}"), self.addresses[entry]))
                for name in names
            }  # fmt: skip


class GpuEntry(Entry):
    """A loaded kernel of a GPU: no code of the host's, but launches. ``lasting``: where the numbers lie that stay from
    launch to launch, in host memory that the GPU writes, by their places in ``scratch``."""

    __slots__ = ("_log", "_memory", "lasting", "passes", "scratch")
    command = GpuCommand
    library: Module

    def __init__(self, device: Gpu, binary: Binary, library: Module, name: str):
        super().__init__(device, binary, library, name, 0)
        plain = [{"entry": name, "grid": "threads", "block": 256}]
        self.passes: list[dict[str, Any]] = binary.meta.get("passes") or plain
        self.scratch: list[dict[str, Any]] = binary.meta.get("scratch") or []
        self._log: Log | None = None
        own = [k for k, item in enumerate(self.scratch) if item["per"] == "host"]
        self._memory = pinned(device, 8 * len(own), True) if own else None
        self.lasting = {k: self._memory[2] + 8 * n for n, k in enumerate(own)} if self._memory else {}
        for each in self.passes:
            if each.get("shared"):
                library.allow_shared(each["entry"], each["shared"])

    @property
    def log(self) -> Log | None:
        """Where it prints; None for kernels that do not."""
        if self._log is None and self.meta.get("prints"):
            self._log = Log(self.device, self.meta["prints"])  # type: ignore[arg-type]
        return self._log

    @property
    def taped(self) -> bool:
        """Whether each of its threads keeps a tape."""
        return any([item.get("slots", 1) is None for item in self.scratch])

    def kept(self, number: int) -> int:
        """What a number that stays from launch to launch is now."""
        return ctypes.c_uint64.from_address(self.lasting[number]).value

    def crowds(self, program: Any, packed: Any) -> bool:
        """Whether a launch would need more memory beside its arrays than is reasonable, so that its threads had better
        run in order."""
        items = [item for item in self.scratch if item["per"] == "scalar"]
        needed = sum([by_scalar(program, packed, item)[0] for item in items])
        return needed > SURELY and needed > self.device.free_memory  # type: ignore[attr-defined]


SURELY = 256 << 20  # bytes that are to be had without asking
HEAP = 256 << 20  # bytes from which threads get memory that did not suffice before


def load(device: Gpu, binary: Binary) -> GpuEntry:
    """Make the kernel in ``binary`` callable."""
    name = binary.meta.get("symbol", binary.symbols[0])
    if binary.meta.get("heap"):
        device.heap_of_threads(HEAP)
    return GpuEntry(device, binary, Module(device, binary.code, binary.symbols), name)


_helpers: weakref.WeakKeyDictionary[Any, dict[str, Module]] = weakref.WeakKeyDictionary()


def helper(device: Gpu, name: str, symbols: tuple[str, ...] | None = None) -> Module:
    """Code that ``codegen.native`` writes for all GPUs: ``transfers`` or ``condition``."""
    known = _helpers.setdefault(device, {})
    if name not in known:
        made = native.binary(f"{name}-ptx", lambda: getattr(native.room(), f"{name}_binary")())
        known[name] = Module(device, made.code, made.symbols)
    return known[name]


def _loaded(device: Gpu, ptx: bytes) -> Any:
    """The driver's handle of a module, from the cache if it knows the code."""
    driver, tool = device.driver, assembler()
    key = digest("cubin", ptx.decode(), f"sm_{device.arch}", tool or str(driver.cuDriverGetVersion()))
    known = disk.load(key)
    if known is not None:
        try:
            return driver.cuModuleLoadData(known.code)
        except DeviceError:  # another driver than the one it was made for
            known = None
    code = _assembled(ptx, device.arch) if tool else None
    if code is not None:
        try:
            handle = driver.cuModuleLoadData(code)
        except DeviceError:  # the driver is older than the tool
            code = None
    if code is None:
        try:
            code = _linked(device, ptx)
        except InternalError:
            return _plainly(device, ptx)
        handle = driver.cuModuleLoadData(code)
    disk.store(key, Binary(code, ()))
    return handle


def _plainly(device: Gpu, ptx: bytes) -> Any:
    """The handle of PTX that the driver's linker refuses: its loader may know more. Raises what the linker does."""
    try:
        return device.driver.cuModuleLoadData(ptx + b"\0")
    except DeviceError:
        pass
    return _linked(device, ptx)


@cache
def assembler() -> str:
    """What ``ptxas`` says of its version; empty where there is none."""
    if shutil.which("ptxas") is None:
        return ""
    done = subprocess.run(["ptxas", "--version"], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def _assembled(ptx: bytes, arch: int) -> bytes | None:
    """The cubin that ``ptxas`` makes, or None."""
    with tempfile.TemporaryDirectory(prefix="treadle-") as folder:
        source, made = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        with open(source, "wb") as file:
            file.write(ptx)
        done = subprocess.run(["ptxas", f"-arch=sm_{arch}", source, "-o", made], capture_output=True)
        if done.returncode != 0:
            return None
        with open(made, "rb") as file:
            return file.read()


def _linked(device: Gpu, ptx: bytes) -> bytes:
    """The cubin that the driver's compiler makes.

    Raises:
        InternalError: it refuses; the message has what it says.
    """
    driver = device.driver
    option = driver.module.CUjit_option
    log = bytearray(8192)
    options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    state = driver.cuLinkCreate(len(options), options, [log, len(log)])
    try:
        text = ptx + b"\0"
        kind = driver.enum("CUjitInputType", "CU_JIT_INPUT_PTX")
        driver.cuLinkAddData(state, kind, text, len(text), b"kernel", 0, [], [])
        address, size = driver.cuLinkComplete(state)
        return ctypes.string_at(int(address), int(size))
    except DeviceError as error:
        said = bytes(log).split(b"\0")[0].decode(errors="replace").strip()
        raise InternalError(f"the driver does not take the code of a kernel: {said or error.message}") from None
    finally:
        driver.cuLinkDestroy(state)
