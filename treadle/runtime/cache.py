"""Compiled code on disk, under two keys, safe under several processes.

The *short key* says which kernel and types are wanted; it leads to a list of *manifests*, each with what a compile
depended on and the *long key* of its code. The caller checks a manifest and takes the code of the long key, or compiles
and adds both. Files are written under another name and then renamed, so a reader sees a whole file or none; a file that
is torn or foreign counts as absent. Two processes that add a manifest at once may lose one, which costs a compile.
Beside them lie *notes*: small facts that took long to find.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from typing import Any

from ..base.binary import Binary
from ..base.config import config

_MAGIC = b"treadle\x02"
_HEAD = struct.Struct("<8sIQI")  # magic, length of the JSON part, length of the code, checksum of both
MAX_BYTES = 1 << 30  # beyond this the files that were not used for longest go
_MAX_MANIFESTS = 16
_KINDS = ("code", "manifest", "note")
_CHECK_EVERY = 64  # looks at the size of the folder once in so many writes

_TO_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)

_writes = 0


def _path(kind: str, key: str) -> str:
    """The file of ``kind`` ("code", "manifest" or "note") for ``key``."""
    return os.path.join(config.kernel_cache_dir, kind, key[:2], key)


def load(key: str) -> Binary | None:
    """The code kept under long key ``key``, or None."""
    if not config.cache_kernels:
        return None
    data = _read(_path("code", key))
    if data is None or len(data) < _HEAD.size:
        return None
    magic, text_size, code_size, checksum = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    if magic != _MAGIC or len(body) != text_size + code_size or zlib.crc32(body) != checksum:
        return None
    return _binary(bytes(body[text_size:]), body[:text_size])


def store(key: str, binary: Binary) -> Binary:
    """Keep ``binary`` under long key ``key``, laid out for loading; the binary as :func:`load` will give it."""
    from .elf import laid_out

    binary = laid_out(binary)
    facts = {"symbols": binary.symbols, "imports": binary.imports, "meta": {**binary.meta}, "layout": binary.layout}
    text = json.dumps(facts, separators=(",", ":")).encode()
    if config.cache_kernels:
        body = text + binary.code
        _write(_path("code", key), _HEAD.pack(_MAGIC, len(text), len(binary.code), zlib.crc32(body)) + body)
    return _binary(binary.code, text)  # what JSON makes of tuples and keys, also for the process that compiled


def _binary(code: bytes, text: Any) -> Binary:
    facts = json.loads(str(text, "utf-8"))
    return Binary(code, tuple(facts["symbols"]), tuple(facts["imports"]), facts["meta"], facts["layout"])


def manifests(short: str) -> list[tuple[Any, str]]:
    """Manifests kept under short key ``short``, newest first, each with its long key."""
    try:
        return [(manifest, key) for manifest, key in _json("manifest", short) or () if isinstance(key, str)]
    except (ValueError, TypeError):
        return []


def add_manifest(short: str, manifest: Any, key: str) -> None:
    """Remember that a compile that depended on ``manifest`` (lists, numbers and text) gave the code of ``key``."""
    if not config.cache_kernels:
        return
    kept = [[m, k] for m, k in manifests(short) if k != key][: _MAX_MANIFESTS - 1]
    _write(_path("manifest", short), json.dumps([[manifest, key], *kept], separators=(",", ":")).encode())


def note(key: str) -> Any:
    """The note kept under ``key``, or None."""
    return _json("note", key)


def keep_note(key: str, value: Any) -> None:
    """Keep ``value`` (lists, dicts, numbers and text) as the note of ``key``."""
    if config.cache_kernels:
        _write(_path("note", key), json.dumps(value).encode())


def is_empty() -> bool:
    """Whether no code is kept."""
    return not config.cache_kernels or not os.path.isdir(os.path.join(config.kernel_cache_dir, "code"))


def clear() -> None:
    """Delete everything that is kept."""
    import shutil

    for kind in _KINDS:
        shutil.rmtree(os.path.join(config.kernel_cache_dir, kind), ignore_errors=True)


def _json(kind: str, key: str) -> Any:
    """The content of a file of JSON; None if there is none."""
    data = _read(_path(kind, key)) if config.cache_kernels else None
    try:
        return json.loads(data.decode()) if data else None
    except ValueError:
        return None


def _read(path: str) -> bytes | None:
    try:
        file = os.open(path, _TO_READ)
        try:
            size = os.fstat(file).st_size
            data = os.read(file, size)
            while len(data) < size and (more := os.read(file, size - len(data))):
                data += more
            return data
        finally:
            os.close(file)
    except OSError:
        return None


def _write(path: str, data: bytes) -> None:
    """Write a whole file or nothing. A cache that cannot be written (full, read-only) is no error."""
    global _writes
    import tempfile

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


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # another process was faster, or still reads it (Windows)
        return


def trim(limit: int | None = None) -> None:
    """Delete the oldest files until at most ``limit`` bytes (``MAX_BYTES``) are kept."""
    limit = MAX_BYTES if limit is None else limit
    import glob

    found = []
    for path in glob.iglob(os.path.join(glob.escape(config.kernel_cache_dir), "*", "*", "*")):
        try:
            facts = os.stat(path)
        except OSError:
            continue
        found.append((facts.st_mtime, facts.st_size, path))
    excess = sum(size for _, size, _ in found) - limit
    for _, size, path in sorted(found, key=lambda entry: entry[0]):
        if excess <= 0:
            return
        _remove(path)
        excess -= size
