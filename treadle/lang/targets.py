"""What kernels are compiled for, by which compiler: this machine, or a GPU."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from ..base.digest import digest
from ..base.target import Target
from ..base.together import Together
from ..codegen.llvm import llvm_version
from ..runtime import cache as disk
from ..runtime.device import get_device
from ..runtime.system import machine

FRAMES = 10_000  # Python frames while compiling
ROOMS = ("types", "ir", "builtins", "frontend", "passes", "codegen", "lang")  # where the compiler is written


@cache
def native_width() -> int:
    """The gang width that suits this processor."""
    return host(None).width


@cache
def gpu(arch: int) -> Target:
    from ..codegen.nvptx import target

    return target(arch)


def host_device() -> Any:
    """The current device if it works on the host's memory, else the CPU."""
    found = get_device()
    return get_device("cpu") if found.key else found


@cache
def host(width: int | None) -> Target:
    """This machine as a target of gangs of ``width`` (None: of the width that suits it).

    LLVM tells, which takes long to load; so its answer is remembered for as long as the machine is the same.
    """
    if width is not None:
        return host(None)._replace(width=width)
    here = machine()
    key = digest(llvm_version(), here, compiler_version())
    facts = disk.note(key) if here else None
    if facts is None:
        from ..codegen.cpu import host_target

        facts = host_target()
        disk.keep_note(key, facts)
    return Target(*facts)


@cache
def compiler_version() -> str:
    """Stands for the compiler in cache keys: the sizes and times of its source files, and LLVM's version."""
    package = os.path.dirname(os.path.dirname(__file__))
    return digest(llvm_version(), *(part for room in ROOMS for part in _sources(os.path.join(package, room))))


def _sources(folder: str) -> list[str]:
    """The source files of a folder and of those in it: name, size and time of each."""
    found = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.name.endswith(".py"):
                facts = entry.stat()
                found.append(f"{entry.name} {facts.st_size} {facts.st_mtime_ns}")
            elif entry.name != "__pycache__" and entry.is_dir():
                found += _sources(entry.path)
    return found


def _roomy() -> Callable[[], None]:
    """Switch the collector off and allow more frames, if fewer are allowed."""
    was_on, frames = gc.isenabled(), sys.getrecursionlimit()
    gc.disable()
    sys.setrecursionlimit(max(frames, FRAMES))

    def end() -> None:
        if sys.getrecursionlimit() == max(frames, FRAMES):  # nobody else has set it since
            sys.setrecursionlimit(frames)
        if was_on:
            gc.enable()

    return end


_room = Together(_roomy)


def collector_off() -> Together:
    """Python's cycle collector costs a fifth of a compile and finds nothing there. Passes and emitter recurse into
    branches, so that many nested ones need more frames than Python allows at first."""
    return _room
