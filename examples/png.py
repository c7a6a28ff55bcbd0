"""Write a picture without any image library: a PNG is a signature, a header, zlib-packed rows and an end mark."""

import struct
import zlib
from pathlib import Path

import numpy as np


def write_png(path: str | Path, pixels: np.ndarray) -> Path:
    """Write ``pixels``, uint8 of shape (height, width) in grey or (height, width, 3) in RGB, and return the path.

    Raises ValueError for any other shape or type.
    """
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3)):
        raise ValueError(f"expected uint8 of shape (h, w) or (h, w, 3), not {pixels.dtype} of {pixels.shape}")
    height, width = pixels.shape[:2]
    colour = 0 if pixels.ndim == 2 else 2
    rows = pixels.reshape(height, -1)
    filtered = np.hstack([np.zeros((height, 1), np.uint8), rows])  # each row begins with its filter: 0, none
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)  # 8 bits, no interlacing
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(filtered.tobytes(), 6)), (b"IEND", b"")]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks))
    return path


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
