"""What is fitted: one row a polynomial. ``generate.py`` turns the rows into
``treadle/builtins/elementary/polynomials_*.py``.

A row names the polynomial, says in words what it stands for (this text becomes its docstring), and gives the target,
the weight (chosen so that the weighted error is the error of the *result* relative to the result), the interval and
the number of coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from mpmath import (
    asin,
    atan,
    atanh,
    cos,
    erf,
    erfc,
    erfinv,
    exp,
    expm1,
    fabs,
    log,
    log1p,
    mp,
    mpf,
    pi,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)  # fmt: skip

__all__ = ["FLOAT32", "FLOAT64", "Spec"]

mp.dps = 60


@dataclass(frozen=True)
class Spec:
    """One polynomial: ``name(variable)``, its meaning, and how it is fitted."""

    name: str
    variable: str
    meaning: str
    target: Callable[[mpf], mpf]
    weight: Callable[[mpf], mpf]
    interval: tuple[float, float]
    count: int


TINY = mpf(2) ** -60  # lower end of an interval whose target is 0/0 at 0
QUARTER = (
    pi / 4 * (1 + mpf(2) ** -7)
) ** 2  # r*r after reduction to a quarter turn, with the slack of a rounded quotient
HALF_LN2 = log(2) / 2 * (1 + mpf(2) ** -10)
S_SQUARED = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2  # the largest s*s, s = f/(2 + f)
LOG_LOW, LOG_HIGH = sqrt(mpf(0.5)) - 1, sqrt(mpf(2)) - 1  # m - 1 for a significand m in [sqrt(1/2), sqrt(2)]


def odd(f: Callable[[mpf], mpf]) -> dict:
    """``f(x) = x + x**3 p(x*x)`` for an odd function with slope 1, error relative to ``f``."""

    def target(z: mpf) -> mpf:
        x = sqrt(z)
        return (f(x) / x - 1) / z

    def weight(z: mpf) -> mpf:
        x = sqrt(z)
        return z * x / f(x)

    return {"target": target, "weight": weight}


def cosine() -> dict:
    """``cos(r) = 1 - r*r/2 + r**4 p(r*r)``."""
    return {
        "target": lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2,
        "weight": lambda z: z**2 / cos(sqrt(z)),
    }


def exponential() -> dict:
    """``exp(r) = 1 + r + r*r p(r)``."""
    return {
        "target": lambda r: (expm1(r) - r) / r**2 if fabs(r) > 2**-20 else mpf(0.5) + r / 6 + r * r / 24,
        "weight": lambda r: r**2 / exp(r) + mpf(2) ** -80,
    }


def logarithm(base: mpf) -> dict:
    """``log(1 + f) / log(base) = f / log(base) + f*f p(f)``; the error counts relative to the result."""
    scale = 1 / log(base)

    def target(f: mpf) -> mpf:
        if fabs(f) < mpf(2) ** -30:
            return scale * (mpf(-1) / 2 + f / 3)
        return (log1p(f) - f) * scale / f**2

    return {
        "target": target,
        "weight": lambda f: fabs(f / (log1p(f) * scale)) * fabs(f) + mpf(2) ** -80 if f else mpf(2) ** -80,
    }


def log_remainder() -> dict:
    """``log(1 + f) = f - (f*f/2 - s*(f*f/2 + z p(z)))``, ``s = f/(2 + f)``, ``z = s*s``; from ``2 atanh(s)``."""

    def target(z: mpf) -> mpf:
        s = sqrt(z)
        return (2 * atanh(s) - 2 * s) / (s * z)

    return {"target": target, "weight": lambda z: sqrt(z) * z / (2 * atanh(sqrt(z)))}


def log_series() -> dict:
    """``2 atanh(s) = 2 s + s**3 (2/3 + z p(z))``, ``z = s*s``."""
    return {
        "target": lambda z: ((2 * atanh(sqrt(z)) - 2 * sqrt(z)) / sqrt(z) / z - mpf(2) / 3) / z,
        "weight": lambda z: sqrt(z) * z * z / (2 * atanh(sqrt(z))),
    }


def erf_excess() -> dict:
    """``erf(x) = x + x p(x*x)``."""
    return {"target": lambda z: erf(sqrt(z)) / sqrt(z) - 1, "weight": lambda z: sqrt(z) / erf(sqrt(z))}


def minus_log_erfc() -> dict:
    """``erfc(x) = exp(-p(x))``, the error relative to ``erf(x)``."""
    return {"target": lambda x: -log(erfc(x)), "weight": lambda x: erfc(x) / erf(x)}


def erfc_quotient(pivot: float, constant: float) -> dict:
    """``exp(a*a) erfc(a) (a + k) = c + p(t)``, ``t = (a - k)/(a + k)``: bounded and smooth on the half line.

    After M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x)exp(x**2)erfc x", 1981.
    """
    k, c = mpf(pivot), mpf(constant)

    def whole(t: mpf) -> mpf:
        a = k * (1 + t) / (1 - t)
        return (a + k) * exp(a * a) * erfc(a)

    return {"target": lambda t: whole(t) - c, "weight": lambda t: 1 / whole(t)}


def t_range(pivot: float, low: float, high: float) -> tuple[mpf, mpf]:
    """The interval of ``t = (a - k)/(a + k)``."""
    k = mpf(pivot)
    return tuple((mpf(a) - k) / (mpf(a) + k) for a in (low, high))


@cache
def erfinv_of_log(w: mpf) -> mpf:
    """The ``y > 0`` with ``(1 - erf(y)) (1 + erf(y)) = exp(-w)``, by Newton's method on ``log(erfc(y))``."""
    d = exp(-w)
    if w < 1:
        return erfinv(sqrt(1 - d))
    tail = d / (1 + sqrt(1 - d))
    y = sqrt(w - log(w) / 2) if w > 2 else mpf(1)
    for _ in range(60):
        step = log(erfc(y) / tail) * erfc(y) * sqrt(pi) / 2 * exp(y * y)
        y += step
        if fabs(step) < mpf(10) ** -50:
            return y
    raise ArithmeticError(f"no inverse of erfc at w = {w}")


def erfinv_near(constant: float) -> dict:
    """``erfinv(x) = x (c + p(w))``, ``w = -log(1 - x*x)``, as M. Giles does, "Approximating the erfinv function",
    2012."""
    c = mpf(constant)

    def whole(w: mpf) -> mpf:
        return erfinv_of_log(w) / sqrt(-expm1(-w)) if w > mpf(2) ** -50 else sqrt(pi) / 2

    return {"target": lambda w: whole(w) - c, "weight": lambda w: 1 / whole(w)}


def erfinv_far(center: float, constant: float, low: float, high: float) -> dict:
    """``erfinv(x) = s (c + p(1/s - m))``, ``s = sqrt(w)``, for ``low <= s <= high``."""
    m, c = mpf(center), mpf(constant)

    def whole(u: mpf) -> mpf:
        v = m + u
        return erfinv_of_log(1 / v**2) * v

    return {
        "target": lambda u: whole(u) - c,
        "weight": lambda u: 1 / whole(u),
        "interval": (1 / mpf(high) - m, 1 / mpf(low) - m),
    }


FLOAT32: tuple[Spec, ...] = (
    Spec("sine", "z", "``sin(r) = r + r**3 p(r*r)`` for a quarter turn", **odd(sin), interval=(TINY, QUARTER), count=3),
    Spec("cosine", "z", "``cos(r) = 1 - r*r/2 + r**4 p(r*r)`` for a quarter turn",
         **cosine(), interval=(TINY, QUARTER), count=3),
    Spec("tangent", "z", "``tan(r) = r + r**3 p(r*r)`` for a quarter turn",
         **odd(tan), interval=(TINY, QUARTER), count=7),
    Spec("arcsine", "z", "``asin(x) = x + x**3 p(x*x)`` for ``|x| <= 1/2``",
         **odd(asin), interval=(TINY, 0.25), count=5),
    Spec("arctangent", "z", "``atan(x) = x + x**3 p(x*x)`` for ``|x| <= 1``", **odd(atan), interval=(TINY, 1), count=9),
    Spec("exponential", "r", "``exp(r) = 1 + r + r*r p(r)`` for ``|r| <= log(2)/2``",
         **exponential(), interval=(-HALF_LN2, HALF_LN2), count=5),
    Spec("hyperbolic_sine", "z", "``sinh(x) = x + x**3 p(x*x)`` for ``|x| <= 1``",
         **odd(sinh), interval=(TINY, 1), count=4),
    Spec("hyperbolic_tangent", "z", "``tanh(x) = x + x**3 p(x*x)`` for ``|x| <= 0.6``",
         **odd(tanh), interval=(TINY, 0.36), count=5),
    Spec("logarithm", "f", "``log(1 + f) = f + f*f p(f)`` for a significand ``1 + f`` between the roots of 1/2 and 2",
         **logarithm(mp.e), interval=(LOG_LOW, LOG_HIGH), count=9),
    Spec("binary_logarithm", "f", "``log2(1 + f) = f/log(2) + f*f p(f)``, the same range",
         **logarithm(mpf(2)), interval=(LOG_LOW, LOG_HIGH), count=10),
    Spec("decimal_logarithm", "f", "``log10(1 + f) = f/log(10) + f*f p(f)``, the same range",
         **logarithm(mpf(10)), interval=(LOG_LOW, LOG_HIGH), count=10),
    Spec("error_function", "z", "``erf(x) = x + x p(x*x)`` for ``|x| <= 7/8``",
         **erf_excess(), interval=(TINY, 0.766), count=7),
    Spec("minus_log_erfc", "x", "``erfc(x) = exp(-p(x))`` for ``7/8 <= x <= 4``; the error counts relative to ``erf``",
         **minus_log_erfc(), interval=(0.875, 4), count=8),
    Spec("scaled_erfc", "t", "``exp(a*a) erfc(a) (a + 2.5) = c + p(t)``, ``t = (a - 2.5)/(a + 2.5)``, ``a >= 11/16``",
         **erfc_quotient(2.5, 1.0540318489074707), interval=t_range(2.5, 0.6875, 10.3), count=10),
    Spec("inverse_erf_near", "w", "``erfinv(x) = x (c + p(w))``, ``w = -log(1 - x*x) <= 4``",
         **erfinv_near(0.8862269520759583), interval=(mpf(2) ** -45, 4), count=10),
    Spec("inverse_erf_far", "u", "``erfinv(x) = s (c + p(1/s - m))``, ``s = sqrt(w)`` from 2 to 10.2",
         **erfinv_far(0.298828125, 0.950519323348999, 2, 10.2), count=11),
)  # fmt: skip
FLOAT64: tuple[Spec, ...] = (
    Spec("sine", "z", "``sin(r) = r + r**3 p(r*r)`` for a quarter turn", **odd(sin), interval=(TINY, QUARTER), count=6),
    Spec("cosine", "z", "``cos(r) = 1 - r*r/2 + r**4 p(r*r)`` for a quarter turn",
         **cosine(), interval=(TINY, QUARTER), count=6),
    Spec("tangent", "z", "``tan(r) = r + r**3 p(r*r)`` for a quarter turn",
         **odd(tan), interval=(TINY, QUARTER), count=15),
    Spec("arcsine", "z", "``asin(x) = x + x**3 p(x*x)`` for ``|x| <= 1/2``",
         **odd(asin), interval=(TINY, 0.25), count=13),
    Spec("arctangent", "z", "``atan(x) = x + x**3 p(x*x)`` for ``|x| <= 1/2``",
         **odd(atan), interval=(TINY, 0.25), count=13),
    Spec("exponential", "r", "``exp(r) = 1 + r + r*r p(r)`` for ``|r| <= log(2)/2``",
         **exponential(), interval=(-HALF_LN2, HALF_LN2), count=11),
    Spec("exponential_short", "r", "the same to 33 bits, for ``pow`` in float32",
         **exponential(), interval=(-HALF_LN2, HALF_LN2), count=6),
    Spec("hyperbolic_sine", "z", "``sinh(x) = x + x**3 p(x*x)`` for ``|x| <= 1``",
         **odd(sinh), interval=(TINY, 1), count=7),
    Spec("hyperbolic_tangent", "z", "``tanh(x) = x + x**3 p(x*x)`` for ``|x| <= 0.6``",
         **odd(tanh), interval=(TINY, 0.36), count=11),
    Spec("log_remainder", "z", "``log(1 + f) = f - (f*f/2 - s (f*f/2 + z p(z)))``, ``s = f/(2 + f)``, ``z = s*s``",
         **log_remainder(), interval=(TINY, S_SQUARED), count=7),
    Spec("log_remainder_short", "z", "the same to 44 bits, for ``pow`` in float32",
         **log_remainder(), interval=(TINY, S_SQUARED), count=5),
    Spec("log_series", "z", "``log(1 + f) = 2 s + s**3 (2/3 + z p(z))``, ``s = f/(2 + f)``, ``z = s*s``",
         **log_series(), interval=(TINY, S_SQUARED), count=8),
    Spec("error_function", "z", "``erf(x) = x + x p(x*x)`` for ``|x| <= 7/8``",
         **erf_excess(), interval=(TINY, 0.766), count=12),
    Spec("scaled_erfc", "t", "``exp(a*a) erfc(a) (a + 3.5) = c + p(t)``, ``t = (a - 3.5)/(a + 3.5)``, ``a >= 11/16``",
         **erfc_quotient(3.5, 1.08705558926226), interval=t_range(3.5, 0.6875, 27.4), count=23),
    Spec("inverse_erf_near", "w", "``erfinv(x) = x (c + p(w))``, ``w = -log(1 - x*x) <= 4``",
         **erfinv_near(0.886226925452758), interval=(mpf(2) ** -45, 4), count=20),
    Spec("inverse_erf_far_a", "u", "``erfinv(x) = s (c + p(1/s - m))``, ``s = sqrt(w)`` from 2 to 3.6",
         **erfinv_far(0.388671875, 0.935178325884296, 2, 3.6), count=20),
    Spec("inverse_erf_far_b", "u", "the same for ``s`` from 3.6 to 9",
         **erfinv_far(0.1943359375, 0.971122436772559, 3.6, 9), count=19),
    Spec("inverse_erf_far_c", "u", "the same for ``s`` from 9 to 27.4",
         **erfinv_far(0.0738525390625, 0.993211471433174, 9, 27.4), count=19),
)  # fmt: skip
