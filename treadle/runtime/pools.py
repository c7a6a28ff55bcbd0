"""Memory pools and access between devices, which GPUs have. On a CPU every question is answered with no, and every
request does nothing and says so once (a warning, see ``wp.set_logger``), so that programs written for GPUs run
unchanged."""

from __future__ import annotations

from typing import Any

from ..base.logs import log_warning
from .device import Device, get_device


def _without_effect(what: str, *devices: Any) -> None:
    names = " and ".join(str(get_device(d)) for d in devices)
    log_warning(f"{what} has no effect on {names}: it is for CUDA devices", once=True)


def is_mempool_supported(device: Any) -> bool:
    """Whether ``device`` has a memory pool; a CPU has none."""
    return get_device(device).is_mempool_supported


def is_mempool_enabled(device: Any) -> bool:
    """Whether arrays of ``device`` come from its memory pool."""
    return get_device(device).is_mempool_enabled


def set_mempool_enabled(device: Any, enable: bool) -> None:
    """Let new arrays of ``device`` come from its memory pool or not; without effect where there is none."""
    pool = get_device(device).pool
    if pool is not None:
        pool.pooled = bool(enable)
    elif enable:
        _without_effect("set_mempool_enabled", device)


def set_mempool_release_threshold(device: Any, threshold: int | float) -> None:
    """How much unused memory a pool keeps when the host waits for the device: bytes, or from 0 to 1 a part of all
    memory. Without effect where there is no pool."""
    where = get_device(device)
    if where.pool is None:
        _without_effect("set_mempool_release_threshold", device)
        return
    part = isinstance(threshold, float) and 0 <= threshold <= 1
    where.pool.keep(int(threshold * where.total_memory) if part else int(threshold))


def get_mempool_release_threshold(device: Any = None) -> int:
    """How many bytes the memory pool keeps; 0 where there is none."""
    pool = get_device(device).pool
    return 0 if pool is None else pool.threshold


def get_mempool_used_mem_current(device: Any = None) -> int:
    """How many bytes of the memory pool are in use; 0 where there is none."""
    pool = get_device(device).pool
    return 0 if pool is None else pool.used()


def get_mempool_used_mem_high(device: Any = None) -> int:
    """How many bytes of the memory pool were ever in use; 0 where there is none."""
    pool = get_device(device).pool
    return 0 if pool is None else pool.used(high=True)


class ScopedMempool:
    """``with wp.ScopedMempool(device, True):`` uses a memory pool for a block, or does not; without effect where there
    is none."""

    def __init__(self, device: Any, enable: bool):
        self.device, self.enable = get_device(device), enable

    def __enter__(self) -> ScopedMempool:
        self._saved = is_mempool_enabled(self.device)
        set_mempool_enabled(self.device, self.enable)
        return self

    def __exit__(self, *exc: object) -> None:
        set_mempool_enabled(self.device, self._saved)


def _pair(target_device: Any, peer_device: Any) -> tuple[Device, Device]:
    """The device that has the memory and the one that would use it; both must exist."""
    return get_device(target_device), get_device(peer_device)


def is_mempool_access_supported(target_device: Any, peer_device: Any) -> bool:
    """Whether ``peer_device`` could use the memory pool of ``target_device``."""
    target, peer = _pair(target_device, peer_device)
    return target.pool is not None and peer.can_peer(target)


def is_mempool_access_enabled(target_device: Any, peer_device: Any) -> bool:
    """Whether ``peer_device`` uses the memory pool of ``target_device``."""
    target, peer = _pair(target_device, peer_device)
    return target.pool is not None and (peer is target or peer in target.pool.shared)


def set_mempool_access_enabled(target_device: Any, peer_device: Any, enable: bool) -> None:
    """Let ``peer_device`` use the memory pool of ``target_device``, or no longer; without effect where there is none.

    Raises:
        DeviceError: it cannot.
    """
    target, peer = _pair(target_device, peer_device)
    if target.pool is not None and peer.pool is not None:
        target.pool.share(peer, bool(enable))
    elif enable:
        _without_effect("set_mempool_access_enabled", target_device, peer_device)


def is_peer_access_supported(target_device: Any, peer_device: Any) -> bool:
    """Whether ``peer_device`` could use memory of ``target_device`` directly."""
    target, peer = _pair(target_device, peer_device)
    return peer.can_peer(target)


def is_peer_access_enabled(target_device: Any, peer_device: Any) -> bool:
    """Whether ``peer_device`` uses memory of ``target_device`` directly."""
    target, peer = _pair(target_device, peer_device)
    return peer.can_peer(target) and peer.can_access(target)


def set_peer_access_enabled(target_device: Any, peer_device: Any, enable: bool) -> None:
    """Let ``peer_device`` use memory of ``target_device`` that comes from no pool, or no longer; without effect between
    CPUs.

    Raises:
        DeviceError: it cannot.
    """
    target, peer = _pair(target_device, peer_device)
    if target.key and peer.key:
        peer.peer(target, bool(enable))  # type: ignore[attr-defined]
    elif enable:
        _without_effect("set_peer_access_enabled", target_device, peer_device)


class ScopedMempoolAccess:
    """:func:`set_mempool_access_enabled` for a block."""

    def __init__(self, target_device: Any, peer_device: Any, enable: bool):
        self.target_device, self.peer_device = _pair(target_device, peer_device)
        self.enable = enable

    def __enter__(self) -> ScopedMempoolAccess:
        self._saved = is_mempool_access_enabled(self.target_device, self.peer_device)
        set_mempool_access_enabled(self.target_device, self.peer_device, self.enable)
        return self

    def __exit__(self, *exc: object) -> None:
        set_mempool_access_enabled(self.target_device, self.peer_device, self._saved)


class ScopedPeerAccess:
    """:func:`set_peer_access_enabled` for a block."""

    def __init__(self, target_device: Any, peer_device: Any, enable: bool):
        self.target_device, self.peer_device = _pair(target_device, peer_device)
        self.enable = enable

    def __enter__(self) -> ScopedPeerAccess:
        self._saved = is_peer_access_enabled(self.target_device, self.peer_device)
        set_peer_access_enabled(self.target_device, self.peer_device, self.enable)
        return self

    def __exit__(self, *exc: object) -> None:
        set_peer_access_enabled(self.target_device, self.peer_device, self._saved)


def can_access(device: Any, array: Any) -> bool:
    """Whether kernels on ``device`` can use the memory of ``array``.

    Raises:
        TypeError: ``array`` is none.
    """
    home = getattr(array, "device", None)
    if home is None or not hasattr(array, "ptr") and not hasattr(array, "indices"):
        raise TypeError(f"can_access asks of an array, not of a {type(array).__name__}")
    return get_device(device).can_access(home)
