"""Noise: smooth random fields on a lattice of whole numbers, and divergence-free ones made of them.

K. Perlin, "Improving noise", 2002: at each corner of a cell a gradient drawn by a hash, the linear fields that these
give blended by ``6t⁵ - 15t⁴ + 10t³``, so that first and second derivatives are continuous. The hash of a corner is that
of M. Teschner et al., "Optimized spatial hashing for collision detection of deformable objects", 2003, and the state of
random numbers, of which the gradient is made. The fields are computed with their gradients; of what nobody uses nothing
is left in the code.
"""

from ..types.core import f32, i32, u32
from ..types.core import vector as vector_type
from ..types.values import int32, uint32
from .language import floor, normalize, pcg_hash, randf, vector, where
from .registry import builtin

vec2, vec3, vec4 = (vector_type(n, f32) for n in (2, 3, 4))

PRIMES = tuple(map(uint32, (73856093, 19349663, 53471161, 83492791)))  # of the axes x, y, z and t


# -- the lattice -------------------------------------------------------------------------------------------------------


def cell(x):
    """The whole number below ``x``."""
    return int32(floor(x))


def wrapped(i, period):
    """``i`` modulo ``period``, from 0 on."""
    r = i % period
    return where(r < 0, r + period, r)


def last(state, i, prime):
    """The hash of a corner begins with its last coordinate …"""
    return uint32(i) * prime + state


def joined(h, i, prime):
    """… and goes on with the others."""
    return uint32(i) * prime ^ h


# -- corners: the gradient that a hash draws, and the value of its linear field at a place relative to the corner ------


def corner1(h, x):
    """Slopes are evenly distributed from -1 to 1."""
    g = 2.0 * randf(h) - 1.0
    return vector(g, g * x)


def corner2(h, x, y):
    """Gradients have length 1, as in more dimensions."""
    a = randf(h) - 0.5
    b = randf(h) - 0.5
    g = normalize(vector(a, b))
    return vector(g[0], g[1], g[0] * x + g[1] * y)


def corner3(h, x, y, z):
    a = randf(h) - 0.5
    b = randf(h) - 0.5
    c = randf(h) - 0.5
    g = normalize(vector(a, b, c))
    return vector(g[0], g[1], g[2], g[0] * x + g[1] * y + g[2] * z)


def corner4(h, x, y, z, t):
    a = randf(h) - 0.5
    b = randf(h) - 0.5
    c = randf(h) - 0.5
    d = randf(h) - 0.5
    g = normalize(vector(a, b, c, d))
    return vector(g[0], g[1], g[2], g[3], g[0] * x + g[1] * y + g[2] * z + g[3] * t)


# -- fields: gradient and value, in one vector -------------------------------------------------------------------------


def blend(a, b, t, axis):
    """From the field ``a`` at ``t`` = 0 to the field ``b`` at ``t`` = 1 along ``axis``."""
    share = t * t * t * (t * (t * 6.0 - 15.0) + 10.0)
    slope = 30.0 * t * t * (t - 1.0) * (t - 1.0)
    value = len(a) - 1
    out = a + (b - a) * share
    out[axis] = out[axis] + slope * (b[value] - a[value])
    return out


def field1(state, x, i0, i1):
    left = corner1(last(state, i0, PRIMES[0]), x)
    return blend(left, corner1(last(state, i1, PRIMES[0]), x - 1.0), x, 0)


def row2(h, x, y, i0, i1):
    return blend(corner2(joined(h, i0, PRIMES[0]), x, y), corner2(joined(h, i1, PRIMES[0]), x - 1.0, y), x, 0)


def field2(state, x, y, i0, i1, j0, j1):
    below = row2(last(state, j0, PRIMES[1]), x, y, i0, i1)
    return blend(below, row2(last(state, j1, PRIMES[1]), x, y - 1.0, i0, i1), y, 1)


def row3(h, x, y, z, i0, i1):
    return blend(corner3(joined(h, i0, PRIMES[0]), x, y, z), corner3(joined(h, i1, PRIMES[0]), x - 1.0, y, z), x, 0)


def layer3(h, x, y, z, i0, i1, j0, j1):
    front = row3(joined(h, j0, PRIMES[1]), x, y, z, i0, i1)
    return blend(front, row3(joined(h, j1, PRIMES[1]), x, y - 1.0, z, i0, i1), y, 1)


def field3(state, x, y, z, i0, i1, j0, j1, k0, k1):
    below = layer3(last(state, k0, PRIMES[2]), x, y, z, i0, i1, j0, j1)
    return blend(below, layer3(last(state, k1, PRIMES[2]), x, y, z - 1.0, i0, i1, j0, j1), z, 2)


def row4(h, x, y, z, t, i0, i1):
    left = corner4(joined(h, i0, PRIMES[0]), x, y, z, t)
    return blend(left, corner4(joined(h, i1, PRIMES[0]), x - 1.0, y, z, t), x, 0)


def layer4(h, x, y, z, t, i0, i1, j0, j1):
    front = row4(joined(h, j0, PRIMES[1]), x, y, z, t, i0, i1)
    return blend(front, row4(joined(h, j1, PRIMES[1]), x, y - 1.0, z, t, i0, i1), y, 1)


def block4(h, x, y, z, t, i0, i1, j0, j1, k0, k1):
    below = layer4(joined(h, k0, PRIMES[2]), x, y, z, t, i0, i1, j0, j1)
    return blend(below, layer4(joined(h, k1, PRIMES[2]), x, y, z - 1.0, t, i0, i1, j0, j1), z, 2)


def field4(state, x, y, z, t, i0, i1, j0, j1, k0, k1, l0, l1):
    before = block4(last(state, l0, PRIMES[3]), x, y, z, t, i0, i1, j0, j1, k0, k1)
    return blend(before, block4(last(state, l1, PRIMES[3]), x, y, z, t - 1.0, i0, i1, j0, j1, k0, k1), t, 3)


def plane(state, p):
    """The field of ``state`` in two dimensions at ``p``."""
    x, y = p[0], p[1]
    i, j = cell(x), cell(y)
    return field2(state, x - floor(x), y - floor(y), i, i + 1, j, j + 1)


def space(state, p):
    """The field of ``state`` in three dimensions at ``p``."""
    x, y, z = p[0], p[1], p[2]
    i, j, k = cell(x), cell(y), cell(z)
    return field3(state, x - floor(x), y - floor(y), z - floor(z), i, i + 1, j, j + 1, k, k + 1)


def moving(state, p):
    """The field of ``state`` in four dimensions at ``p``."""
    x, y, z, t = p[0], p[1], p[2], p[3]
    i, j, k, l = cell(x), cell(y), cell(z), cell(t)
    x, y, z, t = x - floor(x), y - floor(y), z - floor(z), t - floor(t)
    return field4(state, x, y, z, t, i, i + 1, j, j + 1, k, k + 1, l, l + 1)


# -- noise -------------------------------------------------------------------------------------------------------------


@builtin("random", "noise")
class noise_line:
    """Noise at a place on the line, from -½ to ½: 0 at whole numbers, with two continuous derivatives.

    ``state`` (see ``rand_init``) chooses the field and is not moved on. From a size of 2²³ on, where float32 has no
    fractions, the noise is 0.

    >>> wp.noise(wp.rand_init(42), 3.0)
    0.0
    """

    def body(state: u32, x: f32) -> f32:
        i = cell(x)
        return field1(state, x - floor(x), i, i + 1)[1]


@builtin("random", "noise")
class noise_plane:
    """Noise at a place in the plane, from -0.71 to 0.71.

    >>> wp.noise(wp.rand_init(42), wp.vec2(3.0, -2.0))
    0.0
    """

    def body(state: u32, xy: vec2) -> f32:
        return plane(state, xy)[2]


@builtin("random", "noise")
class noise_space:
    """Noise at a place in space, from -0.87 to 0.87.

    >>> wp.noise(wp.rand_init(42), wp.vec3(3.0, -2.0, 1.0))
    0.0
    """

    def body(state: u32, xyz: vec3) -> f32:
        return space(state, xyz)[3]


@builtin("random", "noise")
class noise_moving:
    """Noise in four dimensions, from -1 to 1: in space, and changing with the time, the last coordinate.

    >>> wp.noise(wp.rand_init(42), wp.vec4(3.0, -2.0, 1.0, 0.0))
    0.0
    """

    def body(state: u32, xyzt: vec4) -> f32:
        return moving(state, xyzt)[4]


@builtin("random", "pnoise")
class pnoise_line:
    """Noise that repeats after ``px`` > 0, a whole number.

    >>> state = wp.rand_init(42)
    >>> wp.pnoise(state, 0.5, 4) == wp.pnoise(state, 8.5, 4) == wp.pnoise(state, -3.5, 4)
    True
    """

    def body(state: u32, x: f32, px: i32) -> f32:
        i = cell(x)
        return field1(state, x - floor(x), wrapped(i, px), wrapped(i + 1, px))[1]


@builtin("random", "pnoise")
class pnoise_plane:
    """Noise in the plane that repeats after ``px`` and ``py``.

    >>> state = wp.rand_init(42)
    >>> wp.pnoise(state, wp.vec2(0.5, 0.25), 4, 5) == wp.pnoise(state, wp.vec2(8.5, -4.75), 4, 5)
    True
    """

    def body(state: u32, xy: vec2, px: i32, py: i32) -> f32:
        x, y = xy[0], xy[1]
        i, j = cell(x), cell(y)
        i0, i1 = wrapped(i, px), wrapped(i + 1, px)
        j0, j1 = wrapped(j, py), wrapped(j + 1, py)
        return field2(state, x - floor(x), y - floor(y), i0, i1, j0, j1)[2]


@builtin("random", "pnoise")
class pnoise_space:
    """Noise in space that repeats after ``px``, ``py`` and ``pz``.

    >>> state = wp.rand_init(42)
    >>> a, b = wp.vec3(0.5, 0.25, 0.5), wp.vec3(8.5, -4.75, 6.5)
    >>> wp.pnoise(state, a, 4, 5, 6) == wp.pnoise(state, b, 4, 5, 6)
    True
    """

    def body(state: u32, xyz: vec3, px: i32, py: i32, pz: i32) -> f32:
        x, y, z = xyz[0], xyz[1], xyz[2]
        i, j, k = cell(x), cell(y), cell(z)
        i0, i1 = wrapped(i, px), wrapped(i + 1, px)
        j0, j1 = wrapped(j, py), wrapped(j + 1, py)
        k0, k1 = wrapped(k, pz), wrapped(k + 1, pz)
        return field3(state, x - floor(x), y - floor(y), z - floor(z), i0, i1, j0, j1, k0, k1)[3]


@builtin("random", "pnoise")
class pnoise_moving:
    """Noise in four dimensions that repeats after ``px``, ``py``, ``pz`` and ``pt``.

    >>> state = wp.rand_init(42)
    >>> a, b = wp.vec4(0.5, 0.25, 0.5, 0.5), wp.vec4(8.5, -4.75, 6.5, -6.5)
    >>> wp.pnoise(state, a, 4, 5, 6, 7) == wp.pnoise(state, b, 4, 5, 6, 7)
    True
    """

    def body(state: u32, xyzt: vec4, px: i32, py: i32, pz: i32, pt: i32) -> f32:
        x, y, z, t = xyzt[0], xyzt[1], xyzt[2], xyzt[3]
        i, j, k, l = cell(x), cell(y), cell(z), cell(t)
        i0, i1 = wrapped(i, px), wrapped(i + 1, px)
        j0, j1 = wrapped(j, py), wrapped(j + 1, py)
        k0, k1 = wrapped(k, pz), wrapped(k + 1, pz)
        l0, l1 = wrapped(l, pt), wrapped(l + 1, pt)
        x, y, z, t = x - floor(x), y - floor(y), z - floor(z), t - floor(t)
        return field4(state, x, y, z, t, i0, i1, j0, j1, k0, k1, l0, l1)[4]


# -- curl noise: R. Bridson, J. Hourihan and M. Nordenstam, "Curl-noise for procedural fluid flow", 2007 ---------------


def second(state):
    """The state of a second field beside that of ``state``."""
    return pcg_hash(state)


@builtin("random", "curlnoise")
class curlnoise_plane:
    """A flow in the plane without sources: the gradient ``(gx, gy)`` of noise turned by a right angle, ``(-gy, gx)``.

    The sum of ``octaves`` flows, each ``lacunarity`` times finer and ``gain`` times weaker than the one before.

    >>> wp.curlnoise(wp.rand_init(42), wp.vec2(0.5, 0.5), wp.uint32(0))
    vec2f([0.0, 0.0])
    """

    def body(state: u32, xy: vec2, octaves: u32 = 1, lacunarity: f32 = 2.0, gain: f32 = 0.5) -> vec2:
        flow = xy * 0.0
        scale, weight = 1.0, 1.0
        n = uint32(0)
        while n < octaves:
            g = plane(state, xy * scale)
            flow += vector(-g[1], g[0]) * weight
            scale *= lacunarity
            weight *= gain
            n += uint32(1)
        return flow


@builtin("random", "curlnoise")
class curlnoise_space:
    """A flow in space without sources: the curl of three noises.

    >>> wp.curlnoise(wp.rand_init(42), wp.vec3(0.5, 0.5, 0.5), wp.uint32(0))
    vec3f([0.0, 0.0, 0.0])
    """

    def body(state: u32, xyz: vec3, octaves: u32 = 1, lacunarity: f32 = 2.0, gain: f32 = 0.5) -> vec3:
        flow = xyz * 0.0
        scale, weight = 1.0, 1.0
        n = uint32(0)
        while n < octaves:
            a = space(state, xyz * scale)
            state = second(state)
            b = space(state, xyz * scale)
            state = second(state)
            c = space(state, xyz * scale)
            state = second(state)
            flow += vector(c[1] - b[2], a[2] - c[0], b[0] - a[1]) * weight
            scale *= lacunarity
            weight *= gain
            n += uint32(1)
        return flow


@builtin("random", "curlnoise")
class curlnoise_moving:
    """A flow in space without sources that changes with the time, the last coordinate.

    >>> wp.curlnoise(wp.rand_init(42), wp.vec4(0.5, 0.5, 0.5, 0.5), wp.uint32(0))
    vec3f([0.0, 0.0, 0.0])
    """

    def body(state: u32, xyzt: vec4, octaves: u32 = 1, lacunarity: f32 = 2.0, gain: f32 = 0.5) -> vec3:
        flow = vector(xyzt[0], xyzt[1], xyzt[2]) * 0.0
        scale, weight = 1.0, 1.0
        n = uint32(0)
        while n < octaves:
            a = moving(state, xyzt * scale)
            state = second(state)
            b = moving(state, xyzt * scale)
            state = second(state)
            c = moving(state, xyzt * scale)
            state = second(state)
            flow += vector(c[1] - b[2], a[2] - c[0], b[0] - a[1]) * weight
            scale *= lacunarity
            weight *= gain
            n += uint32(1)
        return flow
