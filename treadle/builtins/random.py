"""Random numbers. A state is one uint32 that each call moves on; equal states give equal numbers everywhere.

The generator is the PCG hash of M. Jarzynski and M. Olano, "Hash Functions for GPU Rendering", JCGT 9(3), 2020.
"""

import math

from ..types.core import f32, i32, u32
from ..types.core import vector as vector_type
from ..types.values import float64, int32, uint32
from .language import abs, cbrt, cos, exp, floor, log, lower_bound, max, sin, sqrt, vector, where
from .patterns import View
from .registry import builtin

TAU = 2.0 * math.pi
UNIT = 1.0 / 16777216.0  # 2⁻²⁴: 24 random bits become a float32 below 1
ONE_12TH, ONE_360TH, ONE_1260TH = (float64(1.0 / n) for n in (12, 360, 1260))  # of Stirling's series
HALF_LOG_TAU = float64(0.5 * math.log(TAU))

vec2, vec3 = vector_type(2, f32), vector_type(3, f32)


@builtin("random")
class pcg_hash:
    """The next state after ``state`` (beyond Warp)."""

    def body(state: u32) -> u32:
        b = state * uint32(747796405) + uint32(2891336453)
        c = ((b >> ((b >> uint32(28)) + uint32(4))) ^ b) * uint32(277803737)
        return (c >> uint32(22)) ^ c


@builtin("random")
class rand_init:
    """The state for a seed.

    >>> wp.rand_init(42)
    uint32(1223963391)
    """

    def body(seed: i32) -> u32:
        return pcg_hash(uint32(seed))


@builtin("random", "rand_init")
class rand_init_offset:
    """The state for a seed and the index of one of many independent sequences, such as the thread's.

    >>> wp.rand_init(42, 7)
    uint32(3115480925)
    """

    def body(seed: i32, offset: i32) -> u32:
        return pcg_hash(uint32(seed) + pcg_hash(uint32(offset)))


@builtin("random")
class randi:
    """A random int32 from the whole range; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> i32: ...

    def body(state):
        state = pcg_hash(state)
        return int32(state), state


@builtin("random", "randi")
class randi_range:
    """A random int32 from ``low`` to ``high`` - 1; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32, low: i32, high: i32) -> i32: ...

    def body(state, low, high):
        state = pcg_hash(state)
        return int32(state % uint32(high - low)) + low, state


@builtin("random")
class randu:
    """A random uint32 from the whole range; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> u32: ...

    def body(state):
        state = pcg_hash(state)
        return state, state


@builtin("random", "randu")
class randu_range:
    """A random uint32 from ``low`` to ``high`` - 1; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32, low: u32, high: u32) -> u32: ...

    def body(state, low, high):
        state = pcg_hash(state)
        return state % (high - low) + low, state


@builtin("random")
class randf:
    """A random float32 from 0 to 1, 1 excluded; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> f32: ...

    def body(state):
        state = pcg_hash(state)
        return float(state >> uint32(8)) * UNIT, state


@builtin("random", "randf")
class randf_range:
    """A random float32 from ``low`` to ``high``; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32, low: f32, high: f32) -> f32: ...

    def body(state, low, high):
        return (high - low) * randf(state) + low, state


@builtin("random")
class randn:
    """A normally distributed float32, mean 0 and standard deviation 1; moves ``state`` on twice.

    G. Box and M. Muller, "A note on the generation of random normal deviates", 1958.
    """

    updates = ("state",)

    def sig(state: u32) -> f32: ...

    def body(state):
        size = sqrt(-2.0 * log(randf(state) + UNIT))  # of a number above 0
        return size * cos(TAU * randf(state)), state


# -- counts ------------------------------------------------------------------------------------------------------------


def by_product(state, lam):
    """A Poisson number: how many random numbers have a product above ``e^-lam`` (D. Knuth, "The Art of Computer
    Programming" 2, 3.4.1). For small ``lam``."""
    least = exp(-lam)
    product = randf(state)
    n = uint32(0)
    while product > least:
        product = product * randf(state)
        n += uint32(1)
    return n, state


def log_probability(k, lam):
    """The logarithm of the probability of ``k`` ≥ 0, by Stirling's series of ``log k!``, in float64.

    With ``m`` = k + 1 the series in ``1/m`` has an error below 1e-6 for all ``m`` ≥ 2; 0 and 1 are exact.
    """
    m = max(k, float64(1.0)) + float64(1.0)
    r = float64(1.0) / m
    series = r * (ONE_12TH - r * r * (ONE_360TH - r * r * ONE_1260TH))
    factorial = (m - float64(0.5)) * log(m) - m + HALF_LOG_TAU + series
    return k * log(lam) - lam - where(k > float64(1.0), factorial, float64(0.0))


def by_rejection(state, lam):
    """A Poisson number by transformed rejection (W. Hörmann, "The transformed rejection method for generating Poisson
    random variables", 1993, algorithm PTRS). For ``lam`` ≥ 10."""
    root = sqrt(lam)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    likely = 0.9277 - 3.6224 / (b - 2.0)
    k = 0.0
    waiting = True
    while waiting:
        u = randf(state) - 0.5
        v = randf(state)
        tail = 0.5 - abs(u)
        k = floor((2.0 * a / tail + b) * u + lam + 0.43)
        if tail >= 0.07 and v <= likely:
            waiting = False
        elif k >= 0.0 and (tail >= 0.013 or v <= tail):
            density = log(v) + log(inverse) - log(a / (tail * tail) + b)
            waiting = float64(density) > log_probability(float64(k), float64(lam))
    return uint32(k), state


@builtin("random")
class poisson:
    """A random count with the mean ``lam`` ≥ 0 (Poisson's distribution), as uint32; moves ``state`` on if ``lam`` > 0.

    The derivative is 0.
    """

    updates = ("state",)

    def sig(state: u32, lam: f32) -> u32: ...

    def body(state, lam):
        n = uint32(0)
        if lam >= 10.0:
            n, state = by_rejection(state, lam)
        elif lam > 0.0:
            n, state = by_product(state, lam)
        return n, state


# -- points, evenly distributed ----------------------------------------------------------------------------------------


@builtin("random")
class sample_triangle:
    """Two barycentric coordinates of a point in a triangle; the third is what is missing to 1. Moves ``state`` on.

    R. Osada et al., "Shape distributions", 2002, section 4.2.
    """

    updates = ("state",)

    def sig(state: u32) -> vec2: ...

    def body(state):
        r = sqrt(randf(state))
        u = 1.0 - r
        v = randf(state) * r
        return vector(u, v), state


@builtin("random")
class sample_unit_ring:
    """A point on the unit circle; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> vec2: ...

    def body(state):
        angle = TAU * randf(state)
        return vector(cos(angle), sin(angle)), state


@builtin("random")
class sample_unit_disk:
    """A point in the unit circle: the radius is the root of a random number. Moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> vec2: ...

    def body(state):
        r = sqrt(randf(state))
        angle = TAU * randf(state)
        return vector(r * cos(angle), r * sin(angle)), state


@builtin("random")
class sample_unit_sphere_surface:
    """A point on the unit sphere: its height is evenly distributed (Archimedes). Moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> vec3: ...

    def body(state):
        z = 1.0 - 2.0 * randf(state)
        angle = TAU * randf(state)
        r = sqrt(1.0 - z * z)
        return vector(r * cos(angle), r * sin(angle), z), state


@builtin("random")
class sample_unit_sphere:
    """A point in the unit sphere: one on it, its radius the cube root of a random number. Moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> vec3: ...

    def body(state):
        p = sample_unit_sphere_surface(state)
        return p * cbrt(randf(state)), state


@builtin("random")
class sample_unit_hemisphere_surface:
    """A point on the upper half of the unit sphere, z ≥ 0; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> vec3: ...

    def body(state):
        z = 1.0 - randf(state)
        angle = TAU * randf(state)
        r = sqrt(1.0 - z * z)
        return vector(r * cos(angle), r * sin(angle), z), state


@builtin("random")
class sample_unit_hemisphere:
    """A point in the upper half of the unit sphere, z ≥ 0; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> vec3: ...

    def body(state):
        p = sample_unit_hemisphere_surface(state)
        return p * cbrt(randf(state)), state


@builtin("random")
class sample_unit_square:
    """A point in the square from -½ to ½; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> vec2: ...

    def body(state):
        x = randf(state) - 0.5
        y = randf(state) - 0.5
        return vector(x, y), state


@builtin("random")
class sample_unit_cube:
    """A point in the cube from -½ to ½; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32) -> vec3: ...

    def body(state):
        x = randf(state) - 0.5
        y = randf(state) - 0.5
        z = randf(state) - 0.5
        return vector(x, y, z), state


@builtin("random")
class sample_cdf:
    """An index drawn from a distribution given by its cumulative sums ``cdf``, which end at 1; moves ``state`` on."""

    updates = ("state",)

    def sig(state: u32, cdf: View(f32, 1)) -> i32: ...

    def body(state, cdf):
        return lower_bound(cdf, randf(state)), state
