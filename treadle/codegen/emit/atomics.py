"""Atomic updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .emitter import Emitter


def begin_gang(e: Emitter) -> None:
    pass


def end_gang(e: Emitter) -> None:
    pass


HANDLERS: dict = {}
