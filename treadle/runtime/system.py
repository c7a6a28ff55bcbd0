"""What differs between operating systems on the runtime's side: which functions sleep, wake and catch SIGINT.

How native code calls them stands in ``codegen/native/system.py``.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def c_library() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL("ucrtbase" if os.name == "nt" else None)


def waiting() -> tuple[int, int]:
    """Addresses of the functions that sleep on a word and wake sleepers."""
    if sys.platform.startswith("linux"):
        syscall = _address(c_library(), "syscall")
        return syscall, syscall
    if sys.platform == "darwin":
        libc = c_library()
        return _address(libc, "__ulock_wait"), _address(libc, "__ulock_wake")
    if os.name == "nt":
        synch = ctypes.WinDLL("api-ms-win-core-synch-l1-2-0")  # type: ignore[attr-defined]
        return _address(synch, "WaitOnAddress"), _address(synch, "WakeByAddressAll")
    sleep = _address(c_library(), "usleep")
    return sleep, sleep


def signals() -> int:
    """Address of the function that installs signal handlers."""
    if os.name == "nt":
        return _address(c_library(), "signal")
    return _address(c_library(), "sigaction")


def machine() -> str:
    """What tells this machine, since it was switched on, from others: as long as it is the same, so is the processor.
    Empty where the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot, open("/proc/cpuinfo", "rb", buffering=0) as processors:
            first = processors.read(4096).partition(b"\n\n")[0].decode(errors="replace")
            facts = [line for line in first.split("\n") if not line.startswith(_UNSTEADY)]
            return "\n".join([platform.machine(), boot.read(), *facts])
    except OSError:
        return ""


_UNSTEADY = ("cpu MHz", "bogomips", "BogoMIPS", "clock", "processor", "core id", "apicid", "initial apicid")


def usable_cores() -> int:
    """How many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1
