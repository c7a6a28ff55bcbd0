"""Folders of the user, by the customs of the operating system."""

from __future__ import annotations

import os
import sys

from .config import cache_root


def user_cache_dir(
    appname: str | None = None, appauthor: str | None = None, version: str | None = None, opinion: bool = True
) -> str:
    """Where a program keeps what it can make again.

    Args:
        appname: its name; without one the folder of all programs is meant.
        appauthor: who made it, a folder of its own on Windows; ``appname`` if left out.
        version: a folder inside.
        opinion: on Windows, whether ``Cache`` is added, to keep it apart from other data.

    >>> user_cache_dir("tool", version="1.0").endswith("1.0")
    True
    """
    parts = [cache_root()]
    if appname and sys.platform == "win32":
        parts += [appauthor or appname, appname, *["Cache"] * opinion]
    elif appname:
        parts.append(appname)
    if appname and version:
        parts.append(version)
    return os.path.join(*parts)
