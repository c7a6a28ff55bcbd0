"""Names for content: full-length hashes of text and bytes."""

from __future__ import annotations

import hashlib


def digest(*parts: str | bytes) -> str:
    """Hex SHA-256 of the parts, each preceded by its length so that no two lists of parts collide."""
    h = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()
