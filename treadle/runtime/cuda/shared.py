"""Memory and events that several processes share, and memory that the CPU and a GPU share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base.errors import DeviceError
from ..array import array
from ..device import get_device
from .memory import PoolMemory
from .streams import event_from_ipc_handle

if TYPE_CHECKING:
    from .gpu import Gpu

__all__ = ["CudaManagedAllocator", "event_from_ipc_handle", "from_ipc_handle", "handle_of"]

_LAZY_PEERS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
_EVERYWHERE = 1  # CU_MEM_ATTACH_GLOBAL


def _gpu(device: Any) -> Gpu:
    where = get_device(device)
    if where.queue is None or not where.is_ipc_supported:
        raise DeviceError(f"memory and events of {where} cannot be shared between processes")
    return where  # type: ignore[return-value]


def handle_of(a: array) -> bytes:
    """What another process makes the array of, with ``wp.from_ipc_handle``.

    Raises:
        DeviceError: its memory comes from a pool, which the driver does not share so.
    """
    device = _gpu(a.device)
    if isinstance(a._memory, PoolMemory):
        raise DeviceError(
            "memory of a pool is not shared between processes",
            hint="make the array with wp.ScopedMempool(device, False)",
        )
    with device.entered as driver:
        return bytes(driver.cuIpcGetMemHandle(a._address).reserved)


def from_ipc_handle(handle: bytes, dtype: Any, shape: Any, strides: Any = None, device: Any = None) -> array:
    """An array over memory of another process, from what its ``array.ipc_handle()`` gave there.

    Args:
        handle: the 64 bytes.
        dtype, shape, strides: those of the array there.
        device: the same GPU; the current device if left out.

    Raises:
        DeviceError: the device cannot do that, or the memory is this process's own.
    """
    where = _gpu(device)
    wanted = where.driver.module.CUipcMemHandle()
    wanted.reserved = handle
    with where.entered as driver:
        address = int(driver.cuIpcOpenMemHandle(wanted, _LAZY_PEERS))

    def close(*_: int) -> None:
        where.synchronize()
        where.drop("cuIpcCloseMemHandle", address)

    return array(ptr=address, dtype=dtype, shape=shape, strides=strides, device=where, deleter=close)


class CudaManagedAllocator:
    """Memory that the CPU and a GPU both reach; the driver moves pages to who uses them.

    ``wp.ScopedAllocator("cuda:0", wp.CudaManagedAllocator("cuda:0"))`` lets new arrays take it.

    Raises:
        DeviceError: the device has none.
    """

    def __init__(self, device: Any = None):
        where = get_device(device)
        if not where.is_managed_memory_supported:
            raise DeviceError(f"{where} has no managed memory")
        self.device: Gpu = where  # type: ignore[assignment]

    def allocate(self, size_in_bytes: int) -> int:
        """The address of a new block."""
        with self.device.entered as driver:
            return self.device.heap.plain(int(driver.cuMemAllocManaged(max(size_in_bytes, 1), _EVERYWHERE)))

    def deallocate(self, ptr: int, size_in_bytes: int) -> None:
        """Give a block back, once all work given to the device so far is done."""
        self.device.heap.give(ptr)
