"""The derivatives of builtins with bodies, in the kernel language: ``of_sin`` is that of ``sin``.

A rule takes the arguments, the results and the adjoints of the results, and gives the adjoints of the arguments that
hold floats. Elementary functions have rules because the derivative of their range reduction and polynomial would be
neither exact nor fast; ``normalize`` and ``inverse`` because the formula is shorter than the reverse of the body.
Bodies without a rule are differentiated as they stand.

Each rule says what it gives at bad points, and so does the builtin's docstring: the finite limit or a subgradient where
there is one, and else the infinite truth. An adjoint of 0 gives 0 always: it belongs to a value that nobody chose, and
which may be anything.
"""

import math

from .decompositions import epsilon
from .language import (
    abs,
    cos,
    cosh,
    dot,
    exp,
    isfinite,
    length,
    log,
    matrix_from_cols,
    max,
    pow,
    rint,
    sin,
    sinh,
    sqrt,
    transpose,
    where,
)

INFINITY = math.inf
LOG2_E = 1.0 / math.log(2.0)
LOG10_E = 1.0 / math.log(10.0)
ERF_SLOPE = 2.0 / math.sqrt(math.pi)  # of erf at 0
ERFINV_SLOPE = math.sqrt(math.pi) / 2.0


def times(adj, partial):
    """``adj * partial``, and 0 where ``adj`` is 0 and ``partial`` infinite or NaN.

    The factor is replaced, not the product: so the product has the right derivative wherever the factor is finite.
    """
    return adj * where(isfinite(partial), partial, where(adj == 0.0, 0.0, partial))


# -- trigonometry ------------------------------------------------------------------------------------------------------


def of_sin(x, result, adj):
    return times(adj, cos(x))


def of_cos(x, result, adj):
    return -times(adj, sin(x))


def of_tan(x, result, adj):
    return times(adj, 1.0 + result * result)


def of_asin(x, result, adj):
    """``1/√(1 - x²)``; 0 from -1 and 1 on outwards, where the function is constant."""
    square = (1.0 - x) * (1.0 + x)
    return adj / where(square > 0.0, sqrt(square), INFINITY)


def of_acos(x, result, adj):
    """``-1/√(1 - x²)``; 0 from -1 and 1 on outwards, where the function is constant."""
    square = (1.0 - x) * (1.0 + x)
    return -adj / where(square > 0.0, sqrt(square), INFINITY)


def of_atan(x, result, adj):
    return times(adj, 1.0 / (1.0 + x * x))


def of_atan2(y, x, result, adj):
    """``(x, -y) / (x² + y²)``, scaled so that the squares neither overflow nor vanish; 0 at the origin."""
    size = max(abs(x), abs(y))
    scale = where(size > 0.0, size, 1.0)
    u = x / scale
    v = y / scale
    square = u * u + v * v
    share = adj / where(square > 0.0, scale * square, INFINITY)
    return times(share, u), -times(share, v)


# -- exponentials and logarithms ---------------------------------------------------------------------------------------


def of_exp(x, result, adj):
    return times(adj, result)


def of_sinh(x, result, adj):
    return times(adj, cosh(x))


def of_cosh(x, result, adj):
    return times(adj, sinh(x))


def of_tanh(x, result, adj):
    return times(adj, (1.0 - result) * (1.0 + result))


def of_log(x, result, adj):
    return times(adj, 1.0 / x)


def of_log2(x, result, adj):
    return times(adj, LOG2_E / x)


def of_log10(x, result, adj):
    return times(adj, LOG10_E / x)


def of_pow(x, y, result, adj):
    """``y x^(y-1)`` and ``x^y log x``.

    At ``x`` = 0 the slope in ``x`` is infinite for ``y`` from 0 to 1, and counts as 0 as that of the root does; that in
    ``y`` is 0, the limit for ``y`` > 0. Where ``x`` < 0 only whole ``y`` give numbers, so the slope in ``y`` is 0 too.
    """
    flat = y == 0.0 or x == 0.0 and y > 0.0 and y < 1.0
    by_x = where(flat, 0.0, y * pow(x, y - 1.0))
    by_y = where(x > 0.0, result * log(x), 0.0)
    return times(adj, by_x), times(adj, by_y)


def of_cbrt(x, result, adj):
    """``1/(3 r²)``; 0 at 0, where the slope is infinite."""
    square = 3.0 * result * result
    return adj / where(square > 0.0, square, INFINITY)


def of_erf(x, result, adj):
    return times(adj, ERF_SLOPE * exp(-x * x))


def of_erfc(x, result, adj):
    return -times(adj, ERF_SLOPE * exp(-x * x))


def of_erfinv(x, result, adj):
    return times(adj, ERFINV_SLOPE * exp(result * result))


def of_erfcinv(x, result, adj):
    return -times(adj, ERFINV_SLOPE * exp(result * result))


# -- remainders, vectors, matrices -------------------------------------------------------------------------------------


def of_mod(a, b, result, adj):
    """1, and less the whole quotient."""
    return adj, -times(adj, rint((a - result) / b))


def of_normalize(a, result, adj):
    """``(1 - n nᵀ)/|a|``, which is symmetric: it takes tangents to tangents too. 0 at 0, which has no direction."""
    size = length(a)
    some = size > 0.0 and size < INFINITY
    return where(some, (adj - result * dot(result, adj)) * (1.0 / size), type(adj)())


def of_inverse(a, result, adj):
    """``-R^T Ā R^T`` for the inverse R (M. Giles, "An extended collection of matrix derivative results", 2008)."""
    back = transpose(result)
    return -(back * adj * back)


def along_inverse(a, result, tangent):
    """``-R Ȧ R``: the tangent of the inverse R."""
    return -(result * tangent * result)


# -- decompositions ----------------------------------------------------------------------------------------------------
# M. Giles, "An extended collection of matrix derivative results", 2008; S. Walter and L. Lehmann, "Algorithmic
# differentiation of linear algebra functions with application in optimum experimental design", 2010.

TIES = 64.0  # values so many units in the last place of the largest one apart are equal: their vectors are arbitrary


def reciprocal(gap, most):
    """``1/gap``, and 0 where it is a gap between equal values, of which the largest is ``most``."""
    apart = abs(gap) > TIES * epsilon(gap) * abs(most)
    return where(apart, 1.0 / where(apart, gap, 1.0), 0.0)


def of_svd(a, u, s, v, adj_u, adj_s, adj_v):
    """``U M Vᵀ``. What turns U and V alike is divided by ``sⱼ - sᵢ``, what turns them apart by ``sⱼ + sᵢ``: at a tie
    only the former, which leaves ``U Vᵀ`` as it is, has no derivative."""
    x = transpose(u) * adj_u
    y = transpose(v) * adj_v
    m = x * 0.0
    for i in range(len(s)):
        for j in range(len(s)):
            p = x[i, j] - x[j, i]
            q = y[i, j] - y[j, i]
            m[i, j] = 0.5 * ((p + q) * reciprocal(s[j] - s[i], s[0]) + (p - q) * reciprocal(s[j] + s[i], s[0]))
        m[i, i] = adj_s[i]
    return u * m * transpose(v)


def along_svd(a, u, s, v, tangent):
    """The transpose of :func:`of_svd`."""
    p = transpose(u) * tangent * v
    x = p * 0.0
    y = p * 0.0
    t = s * 0.0
    for i in range(len(s)):
        for j in range(len(s)):
            g = reciprocal(s[j] - s[i], s[0])
            h = reciprocal(s[j] + s[i], s[0])
            x[i, j] = 0.5 * (g + h) * p[i, j]
            y[i, j] = 0.5 * (g - h) * p[i, j]
        t[i] = p[i, i]
    return u * (x - transpose(x)), t, v * (y - transpose(y))


def of_eig3(a, q, d, adj_q, adj_d):
    """``Q M Qᵀ``, what turns Q divided by the gaps between eigenvalues."""
    most = max(abs(d[0]), abs(d[2]))
    x = transpose(q) * adj_q
    m = x * 0.0
    for i in range(3):
        for j in range(3):
            m[i, j] = 0.5 * (x[i, j] - x[j, i]) * reciprocal(d[j] - d[i], most)
        m[i, i] = adj_d[i]
    return q * m * transpose(q)


def along_eig3(a, q, d, tangent):
    """The transpose of :func:`of_eig3`."""
    most = max(abs(d[0]), abs(d[2]))
    p = transpose(q) * (tangent + transpose(tangent)) * q * 0.5
    x = p * 0.0
    t = d * 0.0
    for i in range(3):
        for j in range(3):
            x[i, j] = p[i, j] * reciprocal(d[j] - d[i], most)
        t[i] = p[i, i]
    return q * x, t


def of_qr3(a, q, r, adj_q, adj_r):
    """``(Q̄ + Q M) R⁻ᵀ`` with a symmetric M, whose lower triangle is that of ``R R̄ᵀ - Q̄ᵀ Q``; 0 where R has no
    inverse."""
    low = adj_r
    for i in range(3):
        for j in range(i):
            low[i, j] = 0.0  # below the diagonal R is 0, whatever A is
    m = r * transpose(low) - transpose(adj_q) * q
    for i in range(3):
        for j in range(i):
            m[j, i] = m[i, j]
    b = transpose(adj_q + q * m)
    some = r[0, 0] != 0.0 and r[1, 1] != 0.0 and r[2, 2] != 0.0
    z = b[2] / where(some, r[2, 2], INFINITY)
    y = (b[1] - z * r[1, 2]) / where(some, r[1, 1], INFINITY)
    x = (b[0] - y * r[0, 1] - z * r[0, 2]) / where(some, r[0, 0], INFINITY)
    return matrix_from_cols(x, y, z)


def along_qr3(a, q, r, tangent):
    """The transpose of :func:`of_qr3`: with ``C = Qᵀ Ȧ R⁻¹`` the lower triangle of C turns Q."""
    b = transpose(transpose(q) * tangent)
    some = r[0, 0] != 0.0 and r[1, 1] != 0.0 and r[2, 2] != 0.0
    x = b[0] / where(some, r[0, 0], INFINITY)
    y = (b[1] - x * r[0, 1]) / where(some, r[1, 1], INFINITY)
    z = (b[2] - x * r[0, 2] - y * r[1, 2]) / where(some, r[2, 2], INFINITY)
    c = matrix_from_cols(x, y, z)
    turn = c * 0.0
    for i in range(3):
        for j in range(i):
            turn[i, j] = c[i, j]
            turn[j, i] = -c[i, j]
    return q * turn, (c - turn) * r
