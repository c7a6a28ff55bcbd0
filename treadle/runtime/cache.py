"""Compiled code on disk, under two keys, safe under several processes.

The *short key* says which kernel and types are wanted; it leads to a list of *manifests*, each with what a compile
depended on and the *long key* of its code. The caller checks a manifest and takes the code of the long key, or compiles
and adds both. Files are written under another name and then renamed, so a reader sees a whole file or none; a file that
is torn or foreign counts as absent. Two processes that add a manifest at once may lose one, which costs a compile.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

from ..base.binary import Binary
from ..base.config import config

_MAGIC = b"treadle\x01"
_HEAD = struct.Struct("<8sIQI")  # magic, length of the JSON part, length of the code, checksum of both
MAX_BYTES = 1 << 30  # beyond this the files that were not used for longest go
_MAX_MANIFESTS = 16
_CHECK_EVERY = 64  # looks at the size of the folder once in so many writes

_writes = 0


def folder() -> Path:
    """Where compiled code is kept now: ``wp.config.kernel_cache_dir``."""
    return Path(config.kernel_cache_dir)


def _code_path(key: str) -> str:
    return os.path.join(config.kernel_cache_dir, "code", key[:2], key)


def _manifest_path(short: str) -> str:
    return os.path.join(config.kernel_cache_dir, "manifest", short[:2], short)


def load(key: str) -> Binary | None:
    """The code kept under long key ``key``, or None."""
    if not config.cache_kernels:
        return None
    data = _read(_code_path(key))
    if data is None or len(data) < _HEAD.size:
        return None
    magic, text_size, code_size, checksum = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    if magic != _MAGIC or len(body) != text_size + code_size or zlib.crc32(body) != checksum:
        return None
    facts = json.loads(bytes(body[:text_size]))
    return Binary(bytes(body[text_size:]), tuple(facts["symbols"]), tuple(facts["imports"]), facts["meta"])


def store(key: str, binary: Binary) -> Binary:
    """Keep ``binary`` under long key ``key``; the binary as :func:`load` will give it."""
    facts = {"symbols": binary.symbols, "imports": binary.imports, "meta": binary.meta}
    text = json.dumps(facts, separators=(",", ":")).encode()
    if config.cache_kernels:
        body = text + binary.code
        _write(_code_path(key), _HEAD.pack(_MAGIC, len(text), len(binary.code), zlib.crc32(body)) + body)
    facts = json.loads(text)  # what JSON makes of tuples and keys, also for the process that compiled
    return Binary(binary.code, tuple(facts["symbols"]), tuple(facts["imports"]), facts["meta"])


def manifests(short: str) -> list[tuple[Any, str]]:
    """Manifests kept under short key ``short``, newest first, each with its long key."""
    if not config.cache_kernels:
        return []
    data = _read(_manifest_path(short))
    try:
        found = json.loads(data) if data else []
        return [(manifest, key) for manifest, key in found if isinstance(key, str)]
    except (ValueError, TypeError):
        return []


def add_manifest(short: str, manifest: Any, key: str) -> None:
    """Remember that a compile that depended on ``manifest`` (lists, numbers and text) gave the code of ``key``."""
    if not config.cache_kernels:
        return
    kept = [[m, k] for m, k in manifests(short) if k != key][: _MAX_MANIFESTS - 1]
    _write(_manifest_path(short), json.dumps([[manifest, key], *kept], separators=(",", ":")).encode())


def clear() -> None:
    """Delete everything that is kept."""
    for name in ("code", "manifest"):
        shutil.rmtree(folder() / name, ignore_errors=True)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return None


def _write(path: str, data: bytes) -> None:
    """Write a whole file or nothing. A cache that cannot be written (full, read-only) is no error."""
    global _writes
    temporary = None
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            _remove(temporary)
        return
    _writes += 1
    if _writes % _CHECK_EVERY == 1:
        trim()


def _remove(path: str | Path) -> None:
    try:
        os.unlink(path)
    except OSError:  # another process was faster, or still reads it (Windows)
        return


def trim(limit: int | None = None) -> None:
    """Delete the oldest files until at most ``limit`` bytes (``MAX_BYTES``) are kept."""
    limit = MAX_BYTES if limit is None else limit
    found = []
    for path in folder().glob("*/*/*"):
        try:
            facts = path.stat()
        except OSError:
            continue
        found.append((facts.st_mtime, facts.st_size, path))
    excess = sum(size for _, size, _ in found) - limit
    for _, size, path in sorted(found, key=lambda entry: entry[0]):
        if excess <= 0:
            return
        _remove(path)
        excess -= size
