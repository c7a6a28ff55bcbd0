"""The native helpers of this process: the driver and pool, merge functions, launchers; loaded once, when first needed.

Their code is written in ``codegen/native/``, which this tower does not know. ``lang`` brings the two together by
:func:`provide`; the compiled helpers stay in the kernel cache, so the writing room is asked only on a cold start.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from ..base.binary import Binary
from ..base.config import config
from ..base.digest import digest
from ..base.errors import InternalError
from ..types.core import Scalar
from ..types.records import ENV, POOL, Memory
from . import cache, hooks, system
from .loader import Library, link, symbol_address

SPINS = 2000  # pauses before a worker sleeps: some tens of microseconds


class Room(Protocol):
    """What is asked of the room that writes native helpers."""

    def revision(self) -> str:
        """Stands for all the text it writes, in cache keys."""

    def driver_binary(self) -> Binary:
        """Pool and driver."""

    def merge_binary(self, op: str, t: Scalar) -> Binary:
        """The function that merges private values."""

    def fold_binary(self, t: Scalar) -> Binary:
        """The function that adds up slots."""

    def pieces_binary(self) -> Binary:
        """The functions that put pieces of memory aside and exchange them."""

    def launcher_binary(self) -> Binary:
        """The native launcher."""

    def ffi_binary(self, layout: Mapping[str, int]) -> Binary:
        """A handler of XLA's foreign function interface."""

    def ffi_gpu_binary(self, layout: Mapping[str, int]) -> Binary:
        """The same for work that is given to a GPU."""

    def graph_binary(self) -> Binary:
        """The function that replays graphs, and what their entries call."""

    def issue_binary(self) -> Binary:
        """What gives a kernel to a stream of a GPU."""

    def transfers_binary(self) -> Binary:
        """What a GPU does with bytes besides plain copies, as PTX."""

    def condition_binary(self) -> Binary:
        """What sets a condition of a graph on a GPU, as PTX."""


_provider: Callable[[], Room] | None = None
_target: Callable[[], str] = str
_lock = threading.RLock()


def provide(provider: Callable[[], Room], target: Callable[[], str]) -> None:
    """Say who writes native helpers: a function that returns the room (a module), called when one is needed, and one
    that returns what the helpers are compiled for, in words for cache keys."""
    global _provider, _target
    _provider, _target = provider, target


def room() -> Room:
    """The room that writes native helpers."""
    if _provider is None:
        hooks.install()
    if _provider is None:
        raise InternalError("nobody has said who writes native helpers; call runtime.native.provide")
    return _provider()


def helper(name: str, make: Callable[[], Binary]) -> Library:
    """Load a helper: from the cache, or made now."""
    return link(binary(name, make))


def binary(name: str, make: Callable[[], Binary]) -> Binary:
    key = digest(room().revision(), name, _target())
    return cache.load(key) or cache.store(key, make())


_handlers: dict[str, Binary] = {}


def ffi_handler(layout: Mapping[str, int], far: bool = False) -> Library:
    """A new copy, with variables of its own, of the handler that XLA calls; see ``codegen/native/ffi.py``. ``far``: of
    that for GPUs, ``ffi_gpu.py``."""
    name = f"ffi-{'gpu-' * far}" + digest(repr(sorted(layout.items())))
    found = _handlers.get(name)
    if found is None:
        make = "ffi_gpu_binary" if far else "ffi_binary"
        found = _handlers[name] = binary(name, lambda: getattr(room(), make)(layout))
    return link(found)


class Driver:
    """The loaded driver with its records. ``env`` and ``pool`` are what native code reads; see ``types/records.py``."""

    def __init__(self) -> None:
        self.library = helper("driver", lambda: room().driver_binary())
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.library))  # workers never leave its code
        addresses = self.library.addresses
        self.env, self.pool = Memory(ENV), Memory(POOL)
        self.stop = addresses["interrupted"]
        self.address = addresses["treadle_drive"]
        self.drive = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4, ctypes.c_int32)(self.address)
        self.worker = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(addresses["treadle_worker"])
        set_workers = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
        self.set_workers = set_workers(addresses["treadle_set_workers"])
        self.threads = 0
        self._start = ctypes.CFUNCTYPE(None)(self.start_workers)
        self.fill()
        config.watch("workers", lambda value: self.pool["limit"] and self.start_workers())
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """In a child process there are no workers, and whoever held the lock is gone."""
        global _lock
        _lock = threading.RLock()
        self.fill()

    def fill(self) -> None:
        """Write the records as they are before any worker exists: at the start, and in a child after fork."""
        env, pool = self.env, self.pool
        self.threads = 0
        for name in pool.record.at:
            pool[name] = 0
        pool["spins"] = SPINS
        pool["wait"], pool["wake"] = system.waiting()
        env["pool"], env["drive"], env["stop"] = pool.address, self.address, self.stop
        env["malloc"], env["free"] = symbol_address("PyMem_RawMalloc"), symbol_address("PyMem_RawFree")
        env["calloc"] = symbol_address("PyMem_RawCalloc")
        env["save_thread"], env["restore_thread"] = (symbol_address(f"PyEval_{n}Thread") for n in ("Save", "Restore"))
        env["thread_ident"] = symbol_address("PyThread_get_thread_ident")
        env["main_thread"] = threading.main_thread().ident or 0
        env["sigaction"] = system.signals()
        env["start"] = ctypes.cast(self._start, ctypes.c_void_p).value or 0
        for name in ("listen", "unlisten", "run_tasks", "try_lock", "unlock"):  # for graphs
            env[name] = self.library.addresses[name]

    def start_workers(self) -> None:
        """Start the workers that ``wp.config.workers`` asks for and are missing; the launching thread is one of them.

        Native code calls this at the first launch that is worth it. Workers are daemon threads that enter the pool's
        code once and stay there, without Python's lock.
        """
        with _lock:
            wanted = config.workers or system.usable_cores()
            while self.threads < wanted - 1:
                index = self.threads + 1
                args = (self.pool.address, index)
                try:
                    threading.Thread(target=self.worker, args=args, daemon=True, name=f"treadle-{index}").start()
                except RuntimeError:  # the system gives no more threads: those there are do the work
                    break
                self.threads += 1
            self.set_workers(self.pool.address, wanted, 0)


_driver: Driver | None = None


def driver() -> Driver:
    """The driver, loaded when first asked for."""
    global _driver
    if _driver is None:
        with _lock:
            if _driver is None:
                _driver = Driver()
    return _driver


_merges: dict[tuple[str, Scalar], Library] = {}


def merge_function(op: str, t: Scalar) -> int:
    """Address of the function that merges private values of ``op`` over ``t``."""
    found = _merges.get((op, t))
    if found is None:
        found = _merges[op, t] = helper(f"merge-{op}-{t.name}", lambda: room().merge_binary(op, t))
    return found.addresses["treadle_merge"]


def fold_function(t: Scalar) -> int:
    """Address of the function that adds up the slots of float scalars."""
    found = _merges.get(("fold", t))
    if found is None:
        found = _merges["fold", t] = helper(f"fold-{t.name}", lambda: room().fold_binary(t))
    return found.addresses["treadle_fold"]
