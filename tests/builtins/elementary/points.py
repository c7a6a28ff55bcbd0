"""Arguments that elementary functions are tested at: specials, all magnitudes, usual ranges, the hardest angles."""

from __future__ import annotations

from functools import cache

import numpy as np

UNSIGNED = {"float32": np.uint32, "float64": np.uint64}
DIGITS = {"float32": 24, "float64": 53}


def specials(kind: str) -> np.ndarray:
    """Zeros, infinities, NaN, the ends of the number range, and arguments where functions change branch or overflow."""
    info = np.finfo(kind)
    switches = [0.36, 0.5, 0.6, 0.6875, 0.875, 1.0, 1.5, 2.0, 4.0, 6.0, 27.375, 87.0, 88.75, 89.5, 104.0]
    switches += [708.5, 709.8, 710.5, 745.2]
    numbers = [0.0, info.tiny, info.smallest_subnormal, info.tiny / 3, info.eps, 65536.0, 2.0**27, 1e22, 2.0**100]
    x = np.array(switches + numbers, kind)
    x = np.concatenate([x, np.nextafter(x, kind_of(kind, 0)), np.nextafter(x, kind_of(kind, np.inf))])
    return np.concatenate([x, -x, [info.max, info.min, np.inf, -np.inf, np.nan]]).astype(kind)


def kind_of(kind: str, value: float) -> np.floating:
    """``value`` as a scalar of the type."""
    return np.dtype(kind).type(value)


def bit_patterns(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of all magnitudes and signs alike, NaN among them."""
    return rng.integers(0, 1 << np.dtype(kind).itemsize * 8, count, dtype=np.uint64).astype(UNSIGNED[kind]).view(kind)


def ranges(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers as programs use them: around 0, around 1, up to 10, up to 800."""
    share = count // 5
    parts = [
        rng.uniform(-1, 1, share),
        rng.uniform(-10, 10, share),
        1 + rng.normal(0, 1, share) * np.exp(rng.uniform(-36, 0, share)),
        rng.uniform(-800, 800, share) if kind == "float64" else rng.uniform(-105, 105, share),
        np.exp(rng.uniform(-30, 1, share)),
    ]
    return np.concatenate(parts).astype(kind)


def pairs(kind: str, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of ``pow`` and ``atan2``: every two specials, all magnitudes, powers near 1, sides of like length."""
    special = specials(kind)
    a, b = np.meshgrid(special, special)
    share = count // 4
    near = 1 + rng.normal(0, 1, share) * np.exp(rng.uniform(-30, -1, share))
    steep = rng.uniform(-1, 1, share) * (700 if kind == "float64" else 88) / np.abs(np.log(np.abs(near)) + 1e-17)
    first = [a.ravel(), bit_patterns(kind, share, rng), rng.normal(0, 1, share), near, rng.integers(-9, 10, share)]
    second = [b.ravel(), bit_patterns(kind, share, rng), rng.normal(0, 1, share), steep, rng.integers(-40, 41, share)]
    with np.errstate(all="ignore"):
        return np.concatenate(first).astype(kind), np.concatenate(second).astype(kind)


@cache
def pi_bits(bits: int) -> int:
    """``pi * 2**bits``, cut, by Machin's formula ``pi/4 = 4 atan(1/5) - atan(1/239)``."""
    one = 1 << bits + 32

    def arctangent_of_inverse(n: int) -> int:
        total = term = one // n
        k = 1
        while term:
            term //= -n * n
            k += 2
            total += term // k
        return total

    return (4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))) >> 32


def hard_angles(kind: str) -> np.ndarray:
    """For each exponent the numbers that lie closest to a multiple of pi/2: there argument reduction loses most digits.

    ``m 2**e`` is close to ``n pi/2`` if ``n/m`` is a convergent of the continued fraction of ``2**e / (pi/2)``
    (W. Kahan, "Minimizing q*m - n", 1983).
    """
    digits = DIGITS[kind]
    largest = np.finfo(kind).maxexp
    found = []
    for e in range(-digits, largest - digits + 1):
        bits = 2 * largest + 4 * digits
        numerator, denominator = 1 << bits + e + 1, pi_bits(bits)
        before, m = 1, 0  # denominators of two convergents
        while denominator and m < 1 << digits:
            if m >> digits - 1:
                found.append(m * 2.0**e)
            quotient = numerator // denominator
            numerator, denominator = denominator, numerator - quotient * denominator
            before, m = m, quotient * m + before
    return np.array(found, kind)
