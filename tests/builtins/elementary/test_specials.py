"""Special arguments, with bodies run as plain Python on NumPy scalars: zeros, infinities, NaN, ends of the range."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.builtins.elementary.measure import BINARY, COMPILER, measure
from tests.builtins.elementary.points import UNSIGNED, pairs, specials
from treadle.builtins.elementary import BODIES, dsl

KINDS = ("float32", "float64")
INF, NAN = math.inf, math.nan

CASES = {
    "sin": [(-0.0, -0.0), (0.0, 0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (1e-45, 1e-45)],
    "cos": [(-0.0, 1.0), (INF, NAN), (NAN, NAN)],
    "tan": [(-0.0, -0.0), (0.0, 0.0), (-INF, NAN), (NAN, NAN)],
    "asin": [(-0.0, -0.0), (0.0, 0.0), (NAN, NAN)],
    "acos": [(1.0, 0.0), (2.0, 0.0), (NAN, NAN)],
    "atan": [(-0.0, -0.0), (0.0, 0.0), (NAN, NAN)],
    "exp": [(-0.0, 1.0), (0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e9, INF), (-1e9, 0.0)],
    "sinh": [(-0.0, -0.0), (0.0, 0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (-1e9, -INF)],
    "cosh": [(-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN), (-1e9, INF)],
    "tanh": [(-0.0, -0.0), (0.0, 0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (-1e9, -1.0)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "log2": [(1.0, 0.0), (8.0, 3.0), (0.125, -3.0), (0.0, -INF), (INF, INF), (-1e-45, NAN), (NAN, NAN)],
    "log10": [(1.0, 0.0), (1000.0, 3.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (NAN, NAN)],
    "cbrt": [(-0.0, -0.0), (0.0, 0.0), (-27.0, -3.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "erf": [(-0.0, -0.0), (0.0, 0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN)],
    "erfc": [(-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN)],
    "erfinv": [(-0.0, -0.0), (0.0, 0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN), (NAN, NAN)],
    "erfcinv": [(1.0, 0.0), (0.0, INF), (-0.0, INF), (2.0, -INF), (2.5, NAN), (-1.0, NAN), (NAN, NAN)],
    "atan2": [
        (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (1.0, INF, 0.0), (-1.0, INF, -0.0),
        (NAN, 1.0, NAN), (1.0, NAN, NAN), (INF, NAN, NAN), (NAN, INF, NAN), (0.0, NAN, NAN),
    ],
    "pow": [
        (NAN, 0.0, 1.0), (1.0, NAN, 1.0), (NAN, 1.0, NAN), (2.0, NAN, NAN), (-1.0, INF, 1.0), (-1.0, -INF, 1.0),
        (0.0, -3.0, INF), (-0.0, -3.0, -INF), (-0.0, -2.0, INF), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (-0.0, 0.5, 0.0),
        (0.0, -INF, INF), (0.5, -INF, INF), (2.0, -INF, 0.0), (0.5, INF, 0.0), (2.0, INF, INF), (-2.0, INF, INF),
        (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, 0.5, INF), (INF, -1.0, 0.0),
        (-8.0, 3.0, -512.0), (-8.0, 2.0, 64.0), (-8.0, 0.5, NAN), (2.0, 1e9, INF), (2.0, -1e9, 0.0), (10.0, 2.0, 100.0),
    ],
}  # fmt: skip


def same(got: float, wanted: float) -> bool:
    if math.isnan(wanted):
        return math.isnan(got)
    return got == wanted and math.copysign(1.0, got) == math.copysign(1.0, wanted)


def run(name: str, kind: str, *arguments) -> np.floating:
    scalar = np.dtype(kind).type
    with np.errstate(all="ignore"):
        return BODIES[name][kind](*map(scalar, arguments))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sorted(CASES))
def test_special_arguments(name, kind):
    for *arguments, wanted in CASES[name]:
        arguments = [np.dtype(kind).type(a) for a in arguments]
        if wanted == 1e-45:  # a subnormal number of the type, given back
            wanted = arguments[0]
        got = run(name, kind, *arguments)
        assert same(got, wanted), f"{name}{tuple(arguments)} = {got}, not {wanted}"
        assert got.dtype == kind


@pytest.mark.parametrize("kind", KINDS)
def test_angles_of_the_axes(kind):
    scalar = np.dtype(kind).type
    pi, half, quarter = scalar(np.pi), scalar(np.pi / 2), scalar(np.pi / 4)
    assert run("atan2", kind, 0.0, -0.0) == pi
    assert run("atan2", kind, -0.0, -1.0) == -pi
    assert run("atan2", kind, -2.0, 0.0) == -half
    assert abs(run("atan2", kind, INF, INF) - quarter) <= np.spacing(quarter)
    assert abs(run("atan2", kind, -INF, -INF) + 3 * quarter) <= np.spacing(3 * quarter)
    assert run("atan2", kind, 5.0, -INF) == pi
    assert run("atan", kind, -INF) == -half
    assert run("acos", kind, -7.0) == pi
    assert run("asin", kind, 7.0) == half


@pytest.mark.skipif(COMPILER is None, reason="comparing with C needs GCC")
@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="scalars of NumPy 1 widen beside Python numbers"
)
def test_python_and_c_give_the_same_bits():
    """The meaning of ``dsl`` on NumPy scalars, its exact ``fma`` above all, is that of machine code."""
    rng = np.random.default_rng(2)
    for name, bodies in BODIES.items():
        for kind, body in bodies.items():
            if name in BINARY:
                x, x2 = (a[rng.integers(0, len(a), 60)] for a in pairs(kind, 400, rng))
            else:
                x = np.concatenate([rng.choice(specials(kind), 20), rng.normal(0, 3, 30).astype(kind)])
                x2 = x
            with np.errstate(all="ignore"):
                arguments = zip(x, x2) if name in BINARY else zip(x)
                python = np.array([body(*a) for a in arguments], kind)
            c = measure().run(name, x, x2)
            differ = (python.view(UNSIGNED[kind]) != c.view(UNSIGNED[kind])) & ~(np.isnan(python) & np.isnan(c))
            assert not differ.any(), f"{name}, {kind}, at {x[differ][0]}, {x2[differ][0]}"


def test_fma_rounds_once():
    one, eps = np.float32(1.0), np.float32(2.0**-13)
    assert dsl.fma(one + eps, one - eps, -one) == np.float32(-(2.0**-26))
    assert math.copysign(1.0, dsl.fma(np.float32(-0.0), one, np.float32(-0.0))) == -1.0
