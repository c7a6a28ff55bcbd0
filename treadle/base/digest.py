"""Names for content: full-length hashes of text and bytes."""

from __future__ import annotations

try:  # Python's own code for it: hashlib also loads OpenSSL, which takes some milliseconds
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b


def digest(*parts: str | bytes) -> str:
    """Hex BLAKE2b, of 256 bits, of the parts, each preceded by its length so that no two lists of parts collide."""
    h = blake2b(digest_size=32)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()
