"""Where the two towers meet for the native helpers: codegen writes them, runtime loads them."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..runtime import native


@cache
def install() -> None:
    """Tell the runtime who writes its helpers."""
    native.provide(_room, _target)


def _room() -> Any:
    from ..codegen import native as room

    return room


def _target() -> str:
    from ..codegen.llvm import llvm_version
    from .targets import host

    return f"{llvm_version()} {host(None).key()}"
