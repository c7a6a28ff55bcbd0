"""Compiled code on disk, under two keys, safe under several processes.

The *short key* says which kernel and types are wanted; it leads to a list of *manifests*, each with what a compile
depended on and the *long key* of its code. The caller checks a manifest and takes the code of the long key, or compiles
and adds both. Files are written under another name and then renamed, so a reader sees a whole file or none; a file that
is torn or foreign counts as absent. Two processes that add a manifest at once may lose one, which costs a compile.
Beside them lie *notes*: small facts that took long to find.
"""

from __future__ import annotations

import marshal
import os
import struct
import zlib
from typing import Any

from ..base.binary import Binary
from ..base.config import config

_MAGIC = b"treadle\x03"
_HEAD = struct.Struct("<8sIQI")  # magic, length of the facts, length of the code, checksum of both
_FORMAT = 2  # of marshal, which every Python knows; it is read faster than JSON, and nothing need be imported for it
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
    found = _kept("code", key)
    return None if found is None else _binary(*found)


def store(key: str, binary: Binary) -> Binary:
    """Keep ``binary`` under long key ``key``, laid out for loading; the binary as :func:`load` will give it."""
    from .elf import laid_out

    code, symbols, imports, meta, layout = laid_out(binary)
    return _binary(_keep("code", key, [symbols, imports, {**meta}, layout], code), code)


def _binary(facts: Any, code: bytes) -> Binary:
    symbols, imports, meta, layout = facts
    return Binary(code, tuple(symbols), tuple(imports), meta, layout)


def manifests(short: str) -> list[tuple[Any, str]]:
    """Manifests kept under short key ``short``, newest first, each with its long key."""
    found = _kept("manifest", short)
    return [] if found is None else [(manifest, key) for manifest, key in found[0]]


def add_manifest(short: str, manifest: Any, key: str) -> None:
    """Remember that a compile that depended on ``manifest`` (lists, numbers and text) gave the code of ``key``."""
    kept = [[m, k] for m, k in manifests(short) if k != key][: _MAX_MANIFESTS - 1]
    _keep("manifest", short, [[manifest, key], *kept])


def note(key: str) -> Any:
    """The note kept under ``key``, or None."""
    found = _kept("note", key)
    return None if found is None else found[0]


def keep_note(key: str, value: Any) -> None:
    """Keep ``value`` (lists, dicts, numbers and text) as the note of ``key``."""
    _keep("note", key, value)


def is_empty() -> bool:
    """Whether no code is kept."""
    return not config.cache_kernels or not os.path.isdir(os.path.join(config.kernel_cache_dir, "code"))


def clear() -> None:
    """Delete everything that is kept."""
    import shutil

    for kind in _KINDS:
        shutil.rmtree(os.path.join(config.kernel_cache_dir, kind), ignore_errors=True)


def _keep(kind: str, key: str, facts: Any, code: bytes = b"") -> Any:
    """Write a file; the facts as they will be read: what JSON makes of tuples and of keys that are no text."""
    import json

    facts = json.loads(json.dumps(facts))
    if config.cache_kernels:
        text = marshal.dumps(facts, _FORMAT)
        head = _HEAD.pack(_MAGIC, len(text), len(code), zlib.crc32(code, zlib.crc32(text)))
        _write(_path(kind, key), head + text + code)
    return facts


def _kept(kind: str, key: str) -> tuple[Any, bytes] | None:
    """The facts and the code of a file; None if there is none, or if it is torn or foreign."""
    data = _read(_path(kind, key)) if config.cache_kernels else None
    if data is None or len(data) < _HEAD.size:
        return None
    magic, text_size, code_size, checksum = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    if magic != _MAGIC or len(body) != text_size + code_size or zlib.crc32(body) != checksum:
        return None
    return marshal.loads(body[:text_size]), bytes(body[text_size:])


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
