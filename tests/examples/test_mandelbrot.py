"""Step counts of the Mandelbrot set equal NumPy's, and the picture is a PNG of them."""

import struct
import zlib

import mandelbrot
import numpy as np
import pytest
from png import write_png

SIZE = 96


def counts_by_numpy(size):
    at = 2.6 * (np.arange(size) / size - 0.5)
    c = (-0.75 + at)[None, :] + 1j * at[:, None]
    z, k = np.zeros_like(c), np.zeros(c.shape, int)
    for _ in range(256):
        inside = z.real**2 + z.imag**2 < 4.0
        z[inside] = z[inside] ** 2 + c[inside]
        k += inside
    return k


def test_equals_numpy():
    got, want = mandelbrot.run(SIZE)["counts"], counts_by_numpy(SIZE)
    # near the border of the set one rounding decides the count, and single differs from double precision
    assert (got != want).mean() < 0.01
    assert got[0, 0] == want[0, 0] and got[SIZE // 2, SIZE // 2] == 256
    assert (got == 256).sum() == pytest.approx((want == 256).sum(), abs=10)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_png_holds_the_pixels(tmp_path, shape):
    pixels = np.arange(np.prod(shape)).astype(np.uint8).reshape(shape)
    data = write_png(tmp_path / "sub" / "a.png", pixels).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        body = data[at + 4 : at + 8 + length]
        assert zlib.crc32(body) == struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0]
        chunks[body[:4]], at = body[4:], at + 12 + length
    assert struct.unpack(">IIBB", chunks[b"IHDR"][:10]) == (7, 5, 8, 0 if len(shape) == 2 else 2)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(5, -1)
    assert (rows[:, 0] == 0).all() and (rows[:, 1:].reshape(shape) == pixels).all()


def test_png_refuses_floats(tmp_path):
    with pytest.raises(ValueError, match="uint8"):
        write_png(tmp_path / "a.png", np.zeros((2, 2)))
