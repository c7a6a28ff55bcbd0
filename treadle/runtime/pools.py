"""Memory pools and access between devices, which GPUs have. Here every question is answered with no, and every request
does nothing and says so once (a warning, see ``wp.set_logger``), so that programs written for GPUs run unchanged."""

from __future__ import annotations

from typing import Any

from ..base.logs import log_warning
from .device import get_device


def _without_effect(what: str, *devices: Any) -> None:
    names = " and ".join(str(get_device(d)) for d in devices)
    log_warning(f"{what} has no effect on {names}: it is for CUDA devices", once=True)


def is_mempool_supported(device: Any) -> bool:
    """Whether ``device`` has a memory pool: no."""
    return get_device(device).is_mempool_supported


def is_mempool_enabled(device: Any) -> bool:
    """Whether arrays of ``device`` come from its memory pool: no."""
    return get_device(device).is_mempool_enabled


def set_mempool_enabled(device: Any, enable: bool) -> None:
    """Use the memory pool of ``device`` or not; without effect where there is none."""
    if enable:
        _without_effect("set_mempool_enabled", device)


def set_mempool_release_threshold(device: Any, threshold: int | float) -> None:
    """How many bytes a memory pool keeps; without effect where there is none."""
    _without_effect("set_mempool_release_threshold", device)


def get_mempool_release_threshold(device: Any = None) -> int:
    """How many bytes the memory pool keeps: 0, as there is none."""
    get_device(device)
    return 0


def get_mempool_used_mem_current(device: Any = None) -> int:
    """How many bytes of the memory pool are in use: 0, as there is none."""
    get_device(device)
    return 0


def get_mempool_used_mem_high(device: Any = None) -> int:
    """How many bytes of the memory pool were ever in use: 0, as there is none."""
    get_device(device)
    return 0


class ScopedMempool:
    """``with wp.ScopedMempool(device, True):`` uses a memory pool for a block; without effect where there is none."""

    def __init__(self, device: Any, enable: bool):
        self.device, self.enable = get_device(device), enable

    def __enter__(self) -> ScopedMempool:
        set_mempool_enabled(self.device, self.enable)
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing was changed."""


def _between(target_device: Any, peer_device: Any) -> bool:
    get_device(target_device), get_device(peer_device)  # they must exist
    return False


def is_mempool_access_supported(target_device: Any, peer_device: Any) -> bool:
    """Whether ``peer_device`` could use the memory pool of ``target_device``: no."""
    return _between(target_device, peer_device)


def is_mempool_access_enabled(target_device: Any, peer_device: Any) -> bool:
    """Whether ``peer_device`` uses the memory pool of ``target_device``: no."""
    return _between(target_device, peer_device)


def set_mempool_access_enabled(target_device: Any, peer_device: Any, enable: bool) -> None:
    """Let ``peer_device`` use the memory pool of ``target_device``; without effect where there is none."""
    if enable:
        _without_effect("set_mempool_access_enabled", target_device, peer_device)


def is_peer_access_supported(target_device: Any, peer_device: Any) -> bool:
    """Whether ``peer_device`` could use memory of ``target_device`` directly: no."""
    return _between(target_device, peer_device)


def is_peer_access_enabled(target_device: Any, peer_device: Any) -> bool:
    """Whether ``peer_device`` uses memory of ``target_device`` directly: no."""
    return _between(target_device, peer_device)


def set_peer_access_enabled(target_device: Any, peer_device: Any, enable: bool) -> None:
    """Let ``peer_device`` use memory of ``target_device`` directly; without effect between CPUs."""
    if enable:
        _without_effect("set_peer_access_enabled", target_device, peer_device)


class _ScopedAccess:
    """What the two classes below share."""

    def __init__(self, target_device: Any, peer_device: Any, enable: bool):
        self.target_device, self.peer_device, self.enable = get_device(target_device), get_device(peer_device), enable

    def __exit__(self, *exc: object) -> None:
        """Nothing was changed."""


class ScopedMempoolAccess(_ScopedAccess):
    """:func:`set_mempool_access_enabled` for a block."""

    def __enter__(self) -> ScopedMempoolAccess:
        set_mempool_access_enabled(self.target_device, self.peer_device, self.enable)
        return self


class ScopedPeerAccess(_ScopedAccess):
    """:func:`set_peer_access_enabled` for a block."""

    def __enter__(self) -> ScopedPeerAccess:
        set_peer_access_enabled(self.target_device, self.peer_device, self.enable)
        return self


def can_access(device: Any, array: Any) -> bool:
    """Whether kernels on ``device`` can use the memory of ``array``.

    Raises:
        TypeError: ``array`` is none.
    """
    home = getattr(array, "device", None)
    if home is None or not hasattr(array, "ptr") and not hasattr(array, "indices"):
        raise TypeError(f"can_access asks of an array, not of a {type(array).__name__}")
    return get_device(device).can_access(home)
