"""Scalar functions made of others, against NumPy and C's library."""

import math

import numpy as np
import pytest

from treadle.types.core import ARITHMETIC, bf16, f16, f32, f64
from treadle.types.values import numpy_dtype

from .kernels import name_of, run

NUMBERS = [t for t in ARITHMETIC if t is not bf16]


@pytest.mark.parametrize("t", NUMBERS, ids=name_of)
def test_signs_and_limits(t):
    kind = numpy_dtype(t)
    xs = np.array([0, 1, 2, 5, 100] + ([-1, -3, -100] if t.kind != "u" else []), dtype=kind)
    low, high = np.full_like(xs, 1), np.full_like(xs, 4)
    out = run(["wp.sign(x0)", "wp.step(x0)", "wp.nonzero(x0)", "wp.clamp(x0, x1, x2)", "wp.clamp(x0, 1, 4)"],
              [(t, xs), (t, low), (t, high)], [t] * 5)  # fmt: skip
    assert np.array_equal(out[0], np.where(xs < 0, -np.ones(1, kind)[0] if t.kind != "u" else 1, 1))
    assert np.array_equal(out[1], xs < 0) and np.array_equal(out[2], xs != 0)
    assert np.array_equal(out[3], np.clip(xs, 1, 4)) and np.array_equal(out[4], out[3])


@pytest.mark.parametrize("t", [f16, f32, f64], ids=name_of)
def test_rounding(t):
    xs = np.array([0.0, 0.3, 0.5, 0.75, 1.5, 2.5, -0.5, -1.5, -2.25, 1000.5, -0.0], dtype=numpy_dtype(t))
    out = run(["wp.round(x0)", "wp.frac(x0)", "wp.rint(x0)", "x0 // 1.5"], [(t, xs)], [t] * 4)
    away = np.array([math.copysign(math.floor(abs(x) + 0.5), x) for x in xs.astype(float)])
    assert np.array_equal(out[0], away) and np.array_equal(np.signbit(out[0]), np.signbit(away))
    assert np.array_equal(out[1], xs - np.trunc(xs)) and np.array_equal(out[2], np.rint(xs))
    assert np.array_equal(out[3], np.floor(xs / xs.dtype.type(1.5)))


@pytest.mark.parametrize("t", [f16, f32, f64], ids=name_of)
@pytest.mark.parametrize("width", [1, 8])
def test_the_remainder_is_exact(t, width):
    kind, rng = numpy_dtype(t).type, np.random.default_rng(0)
    top = {f16: 4, f32: 37, f64: 300}[t]
    a = (rng.normal(size=400) * 10.0 ** rng.uniform(-4, top, 400)).astype(kind)
    b = (rng.normal(size=400) * 10.0 ** rng.uniform(-4, top, 400)).astype(kind)
    ends = np.array([0, -0.0, 1, -7.5, 3, math.inf, -math.inf, math.nan], dtype=kind)
    tiny = np.finfo(kind).smallest_subnormal
    a = np.concatenate([a, np.repeat(ends, 8), [np.finfo(kind).max, 5 * tiny, 1]]).astype(kind)
    b = np.concatenate([b, np.tile(ends, 8), [tiny, 2 * tiny, tiny]]).astype(kind)
    (found,) = run(["x0 % x1"], [(t, a), (t, b)], [t], width)
    with np.errstate(all="ignore"):
        wanted = np.fmod(a, b)
    assert np.array_equal(found, wanted, equal_nan=True)


def test_ramps_and_angles():
    xs = np.linspace(-1, 3, 9, dtype=np.float32)
    out = run(["wp.smoothstep(0.0, 2.0, x0)", "wp.lerp(1.0, 3.0, x0)", "wp.degrees(x0)", "wp.radians(x0)"],
              [(f32, xs)], [f32] * 4)  # fmt: skip
    t = np.clip(xs / 2, 0, 1)
    for found, wanted in zip(out, [t * t * (3 - 2 * t), 1 - xs + 3 * xs, np.degrees(xs), np.radians(xs)], strict=True):
        assert np.allclose(found, wanted, rtol=1e-6, atol=1e-6)
