"""Every body stays within its stated error, against a wider format, over all kinds of arguments.

The sweeps over all 2**32 float32 arguments and over millions of float64 ones are ``tools/fit/sweep.py``.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.builtins.elementary.measure import BINARY, COMPILER, measure
from tests.builtins.elementary.points import bit_patterns, hard_angles, pairs, ranges, specials
from treadle.builtins.elementary import BODIES, ULP

pytestmark = pytest.mark.skipif(COMPILER is None, reason="measuring needs GCC: bodies run as C, beside __float128")
COUNT = {"float32": 200_000, "float64": 15_000}
KINDS = ("float32", "float64")


def bound(name: str, kind: str) -> float:
    return ULP[name][KINDS.index(kind)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sorted(BODIES))
def test_error_is_within_its_bound(name, kind):
    rng = np.random.default_rng(1)
    if name in BINARY:
        x, x2 = pairs(kind, COUNT[kind], rng)
    else:
        parts = (specials(kind), bit_patterns(kind, COUNT[kind] // 2, rng), ranges(kind, COUNT[kind] // 2, rng))
        x, x2 = np.concatenate(parts), None
    error, at = measure().worst(name, x, x2)
    assert error <= bound(name, kind), f"{name}{at[:-1]} = {at[-1]} is {error:.3f} ulp off"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_next_to_multiples_of_a_quarter_turn(name, kind):
    angles = hard_angles(kind)
    x = np.concatenate([angles, np.nextafter(angles, angles * 0), -angles])
    error, at = measure().worst(name, x)
    assert error <= bound(name, kind), f"{name}({at[0]!r}) = {at[1]} is {error:.3f} ulp off"


def test_hard_angles_hold_the_hardest_one():
    """The double closest to a multiple of pi/2 is known (J.-M. Muller, "Elementary Functions", 2016, table 11.1)."""
    assert 6381956970095103 * 2.0**797 in hard_angles("float64")


def test_every_function_states_at_most_two_ulp():
    assert ULP.keys() == BODIES.keys()
    assert all(0.5 <= b <= 2.0 for bounds in ULP.values() for b in bounds)
    assert all(set(bodies) == set(KINDS) for bodies in BODIES.values())
