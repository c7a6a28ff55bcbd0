"""Memory of a GPU, given and taken back in the order of its streams; and host memory that it can reach.

An array's memory may go while work that uses it still waits in a stream. So nothing is freed before that: a block is
given back to its pool on a stream that has waited for all others.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...base.errors import DeviceError, DeviceLostError
from ..memory import addressed

if TYPE_CHECKING:
    from .gpu import Gpu

KEEP = 0xFFFFFFFFFFFFFFFF  # bytes that a pool keeps when the host waits for the device: all
_PORTABLE, _MAPPED = 1, 2  # CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP
_KINDS = {"device": 3, "pool": 4}  # of MemoryKind


T = TypeVar("T")


def taken(things: deque[T]) -> Iterator[T]:
    """Take out what is in there, one by one. Other threads, and what goes meanwhile, may put things in and take some
    out between any two steps; each is taken once."""
    while True:
        try:
            yield things.popleft()
        except IndexError:
            return


class DeviceMemory(np.ndarray):
    """Bytes of a GPU as arrays hold them. NumPy knows where they are, and must not look."""

    kind = _KINDS["device"]


class PoolMemory(DeviceMemory):
    """The same from a pool."""

    kind = _KINDS["pool"]


class PinnedMemory(np.ndarray):
    """Host memory that stays where it is, so that GPUs read and write it by themselves."""

    pinned = True


class _Block:
    """Lives as long as any array in a block of memory."""

    __slots__ = ("__weakref__",)


class Heap:
    """What a GPU's arrays take memory from: a pool of its own, or the driver where there are no pools."""

    def __init__(self, device: Gpu):
        self.device = device
        self.pooled = device.is_mempool_supported
        self.threshold = KEEP
        self.shared: set[Gpu] = set()  # other GPUs that may use the pool
        self._pool: Any = None
        self._plain: set[int] = set()  # blocks that are not the pool's
        self._dead: deque[int] = deque()  # blocks that could not be given back yet

    @property
    def pool(self) -> Any:
        """The pool, made when it is needed first."""
        if self._pool is None:
            driver = self.device.driver
            wanted = driver.module.CUmemPoolProps()
            wanted.allocType = driver.enum("CUmemAllocationType", "CU_MEM_ALLOCATION_TYPE_PINNED")
            wanted.location.type = driver.enum("CUmemLocationType", "CU_MEM_LOCATION_TYPE_DEVICE")
            wanted.location.id = self.device.ordinal
            self._pool = driver.cuMemPoolCreate(wanted)
            self.keep(self.threshold)
        return self._pool

    def keep(self, nbytes: int) -> None:
        """Let the pool keep up to ``nbytes`` bytes that nobody uses."""
        self.threshold = nbytes
        if self._pool is not None:
            self._set("CU_MEMPOOL_ATTR_RELEASE_THRESHOLD", nbytes)

    def _set(self, name: str, value: int) -> None:
        driver = self.device.driver
        value = driver.module.cuuint64_t(value)
        driver.cuMemPoolSetAttribute(self.pool, driver.enum("CUmemPool_attribute", name), value)

    def used(self, high: bool = False) -> int:
        """Bytes of the pool that are in use, or ever were."""
        driver, name = self.device.driver, f"CU_MEMPOOL_ATTR_USED_MEM_{'HIGH' if high else 'CURRENT'}"
        if not self.pooled:
            return 0
        with self.device.entered:
            return int(driver.cuMemPoolGetAttribute(self.pool, driver.enum("CUmemPool_attribute", name)))

    def share(self, peer: Gpu, enable: bool) -> None:
        """Let another GPU use the pool's memory, or no longer.

        Raises:
            DeviceError: it cannot.
        """
        driver = self.device.driver
        if enable and not peer.can_peer(self.device):
            raise DeviceError(f"{peer} cannot use memory of {self.device}")
        access = driver.module.CUmemAccessDesc()
        access.location.type = driver.enum("CUmemLocationType", "CU_MEM_LOCATION_TYPE_DEVICE")
        access.location.id = peer.ordinal
        wanted = "READWRITE" if enable else "NONE"
        access.flags = driver.enum("CUmemAccess_flags", f"CU_MEM_ACCESS_FLAGS_PROT_{wanted}")
        with self.device.entered:
            driver.cuMemPoolSetAccess(self.pool, [access], 1)
        (self.shared.add if enable else self.shared.discard)(peer)

    def take(self, nbytes: int, pooled: bool | None = None) -> int:
        """The address of ``nbytes`` bytes, which the current stream may use from now on.

        Raises:
            MemoryError: there are no more.
        """
        device, pooled = self.device, self.pooled if pooled is None else pooled
        with device.entered:
            self.settle()
            apart = device.is_captured  # what is captured shall not allocate, each time the graph runs
            try:
                if pooled:
                    stream = device.reaper if apart else device.stream
                    found = device.driver.cuMemAllocFromPoolAsync(nbytes, self.pool, stream.handle)
                    if apart:
                        device.driver.cuStreamSynchronize(stream.handle)
                else:
                    found = self.plain(int(device.driver.cuMemAlloc(nbytes)))
            except DeviceLostError:
                raise
            except DeviceError as error:
                raise MemoryError(f"no {nbytes} bytes to be had on {device}: {error.message}") from None
        return int(found)

    def plain(self, address: int) -> int:
        """Note that a block is not the pool's."""
        self._plain.add(address)
        return address

    def allocate(self, nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
        """A block for an array; see :meth:`Device.allocate`. It goes back when the last array in it goes."""
        pooled, size = self.pooled, max(nbytes, 1)
        address = self.take(size, pooled)
        owner = _Block()
        weakref.finalize(owner, self.give, address).atexit = False
        if zeroed and nbytes:
            self.device.clear(address, nbytes)
        return addressed(address, nbytes, owner).view(PoolMemory if pooled else DeviceMemory), 0, address

    def give(self, address: int) -> None:
        """Take a block back once all work given to the device so far is done. While a stream is captured that would
        become part of the graph, so it waits."""
        self._dead.append(address)
        if not self.device.is_captured:
            with self.device.entered:
                self.settle()

    def settle(self) -> None:
        """Free what is to be freed."""
        if not self._dead or self.device.is_captured:
            return
        dead = [*taken(self._dead)]  # only these: work may be given that uses what comes now
        try:
            driver, stream = self.device.driver, self.device.last()
            for address in dead:
                if address in self._plain:
                    self._plain.discard(address)
                    driver.cuMemFree(address)  # waits for the device
                else:
                    driver.cuMemFreeAsync(address, stream)
        except DeviceLostError:
            pass  # its memory has gone with it; whoever uses the device is told


def pinned(device: Gpu, nbytes: int, zeroed: bool) -> tuple[Any, int, int]:
    """Pinned host memory, as :meth:`Device.allocate` gives memory."""
    driver = device.driver
    with device.entered:
        address = int(driver.cuMemHostAlloc(max(nbytes, 1), _PORTABLE | _MAPPED))
    owner = _Block()
    weakref.finalize(owner, _unpin, device, address).atexit = False
    buffer = addressed(address, nbytes, owner).view(PinnedMemory)
    if zeroed:
        buffer[...] = 0
    return buffer, 0, address


def _unpin(device: Gpu, address: int) -> None:
    """Free pinned memory; copies that use it may be under way on any stream."""
    from ..device import far

    for each in far:
        each.wait()
    device.drop("cuMemFreeHost", address)
