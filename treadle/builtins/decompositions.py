"""Decompositions of small matrices: singular values, eigenvalues, QR. Each gives its factors, or writes them to
variables that are passed after the matrix.

All work on the matrix divided by its largest component, so that nothing overflows or vanishes, and are accurate to a
few units in the last place of the largest singular value, whatever the rank. 16-bit matrices are handled in float32.
Of a matrix with components that are not finite all values are NaN.
"""

from ..types.core import bf16, f16, f32
from ..types.core import matrix as matrix_type
from .language import (
    abs,
    clamp,
    cross,
    diag,
    dot,
    matrix_from_cols,
    max,
    normalize,
    sqrt,
    transpose,
    vector,
    where,
)
from .patterns import Float, Mat, Var, Vec
from .registry import builtin, rule

Short = Var("Short", (f16, bf16))
SWEEPS = 12  # at most; Jacobi's method converges quadratically, and five sweeps are many

mat22, mat33 = matrix_type(2, 2, f32), matrix_type(3, 3, f32)


# -- what they are made of ---------------------------------------------------------------------------------------------


def epsilon(x):
    """The distance from 1 to the next number of the type of ``x``, float32 or float64."""
    one = type(x)(1.0)
    return where(one + type(x)(2.0**-30) > one, type(x)(2.0**-52), type(x)(2.0**-23))


def size_of(a):
    """The largest component's size, by which a matrix is divided; 1 for the zero matrix, NaN if not all are finite."""
    most = a[0, 0] * 0.0
    nothing = most
    for i in range(len(a)):
        for j in range(len(a)):
            most = max(most, abs(a[i, j]))
            nothing += a[i, j] * 0.0  # NaN of what is not finite
    return where(most == 0.0, 1.0, most) + nothing


def half_angle(d, x):
    """Tangent, cosine and sine of the θ with ``tan 2θ = x/d`` and |θ| ≤ π/4; 0 if both are 0.

    Of the two roots of ``t² + 2 (d/x) t = 1`` the smaller one, the rotation of Jacobi's method (G. Golub and C. Van
    Loan, "Matrix Computations", 4th ed., 8.5.2).
    """
    most = max(abs(d), abs(x))
    most = where(most > 0.0, most, 1.0)
    u = abs(d) / most
    v = where(d < 0.0, -x, x) / most
    r = u + sqrt(u * u + v * v)
    t = v / where(r > 0.0, r, 1.0)
    c = 1.0 / sqrt(1.0 + t * t)
    return t, c, c * t


def orthogonal(p, q, v, w):
    """The columns ``p`` and ``q`` turned so that they are at right angles, and ``v`` and ``w`` turned with them.

    One step of the one-sided Jacobi method (M. Hestenes, "Inversion of matrices by biorthogonalization", 1958). Also
    how far they were from right angles: the square of ``p · q`` over that of the longer one.
    """
    a = dot(p, p)
    b = dot(q, q)
    g = dot(p, q)
    t, c, s = half_angle(b - a, 2.0 * g)
    most = max(a, b)
    return p * c - q * s, p * s + q * c, v * c - w * s, v * s + w * c, g * (g / where(most > 0.0, most, 1.0))


def ordered(p, q, v, w):
    """The longer one of the columns ``p`` and ``q`` first, ``v`` and ``w`` likewise; an exchange is a quarter turn."""
    swap = dot(p, p) < dot(q, q)
    return where(swap, q, p), where(swap, -p, q), where(swap, w, v), where(swap, -v, w)


def direction(p):
    """The direction of ``p``; that of the first axis for zero."""
    first = p * 0.0
    first[0] = 1.0
    return where(dot(p, p) > 0.0, normalize(p), first)


def across(u, p):
    """The direction of the part of ``p`` at right angles to ``u``, a vector of length 1; any such if there is no part.

    What is taken away once leaves a rest that rounding has turned, so it is taken away twice. Of a rest that is nothing
    but rounding the second time leaves little (B. Parlett, "The Symmetric Eigenvalue Problem", 6.9).
    """
    q = normalize(p - u * dot(u, p))
    q = q - u * dot(u, q)
    x, y, z = u[0], u[1], u[2]
    zero = x * 0.0
    any_one = where(abs(x) > abs(z), vector(-y, x, zero), vector(zero, -z, y))
    return normalize(where(dot(q, q) > 0.25, q, any_one))


# -- singular values ---------------------------------------------------------------------------------------------------


@builtin("vector math", "svd2")
class svd2_short:
    """The singular value decomposition of a matrix of 16-bit floats, found in float32.

    >>> wp.svd2(wp.mat22h(3.0, 0.0, 0.0, 2.0))[1]
    vec2h([float16(3.0), float16(2.0)])
    """

    def body(A: Mat(2, 2, Short)) -> (Mat(2, 2, Short), Vec(2, Short), Mat(2, 2, Short)):
        U, sigma, V = svd2(mat22(A))
        return type(A)(U), type(A[0])(sigma), type(A)(V)


@builtin("vector math")
class svd2:
    """The singular value decomposition ``A = U diag(sigma) Vᵀ`` of a 2 × 2 matrix: ``U, sigma, V = wp.svd2(A)``.

    Singular values are not negative, the larger one first. U and V are orthogonal, V is a rotation. One rotation by
    Hestenes' method makes the columns of ``A V`` orthogonal.

    Singular values within 64 units in the last place of the largest one count as equal. There ``U Vᵀ`` and symmetric
    functions of the values have their derivatives; what would turn vectors of both sides alike gives nothing.

    >>> wp.svd2(wp.mat22(0.0, -3.0, 2.0, 0.0))[1]
    vec2f([3.0, 2.0])
    """

    adjoint, tangent = rule("of_svd"), rule("along_svd")

    def body(A: Mat(2, 2, Float)) -> (Mat(2, 2, Float), Vec(2, Float), Mat(2, 2, Float)):
        size = size_of(A)
        b = transpose(A / size)
        one = size / size
        p, q, v, w, rest = orthogonal(b[0], b[1], vector(one, one * 0.0), vector(one * 0.0, one))
        p, q, v, w = ordered(p, q, v, w)
        u = direction(p)
        n = vector(-u[1], u[0])
        last = dot(n, q)
        n = where(last < 0.0, -n, n)
        most = sqrt(dot(p, p))
        sigma = vector(most, clamp(abs(last), 0.0, most)) * size
        return matrix_from_cols(u, n), sigma, matrix_from_cols(v, w)


@builtin("vector math", "svd3")
class svd3_short:
    """The singular value decomposition of a matrix of 16-bit floats, found in float32.

    >>> wp.svd3(wp.mat33h(3.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0))[1]
    vec3h([float16(3.0), float16(2.0), float16(1.0)])
    """

    def body(A: Mat(3, 3, Short)) -> (Mat(3, 3, Short), Vec(3, Short), Mat(3, 3, Short)):
        U, sigma, V = svd3(mat33(A))
        return type(A)(U), type(A[0])(sigma), type(A)(V)


@builtin("vector math")
class svd3:
    """The singular value decomposition ``A = U diag(sigma) Vᵀ`` of a 3 × 3 matrix: ``U, sigma, V = wp.svd3(A)``.

    U and V are rotations. Singular values are sorted by size; the first two are not negative, the last one has the sign
    of the determinant, so that ``U Vᵀ`` is the rotation nearest to ``A`` (as A. McAdams et al., "Computing the Singular
    Value Decomposition of 3×3 matrices with minimal branching", 2011). The one-sided Jacobi method: columns of ``A V``
    are made orthogonal, two at a time.

    Singular values within 64 units in the last place of the largest one count as equal. There ``U Vᵀ`` and symmetric
    functions of the values have their derivatives; what would turn vectors of both sides alike gives nothing.

    >>> wp.svd3(wp.diag(wp.vec3(1.0, -3.0, 2.0)))[1]
    vec3f([3.0, 2.0, -1.0])
    """

    adjoint, tangent = rule("of_svd"), rule("along_svd")

    def body(A: Mat(3, 3, Float)) -> (Mat(3, 3, Float), Vec(3, Float), Mat(3, 3, Float)):
        size = size_of(A)
        a = A / size
        b = transpose(a)
        p, q, r = b[0], b[1], b[2]
        one = size / size
        axes = diag(vector(one, one, one))
        u, v, w = axes[0], axes[1], axes[2]
        close = epsilon(size) * epsilon(size) * (dot(p, p) + dot(q, q) + dot(r, r))
        rest = close + one
        sweep = 0
        while sweep < SWEEPS and rest > close:
            p, q, u, v, first = orthogonal(p, q, u, v)
            p, r, u, w, second = orthogonal(p, r, u, w)
            q, r, v, w, third = orthogonal(q, r, v, w)
            rest = max(first, max(second, third))
            sweep += 1
        p, q, u, v = ordered(p, q, u, v)
        p, r, u, w = ordered(p, r, u, w)
        q, r, v, w = ordered(q, r, v, w)
        # Each turn rounds. Directions are hardly the worse for it, so lengths are taken anew from the matrix itself.
        u, v, w = normalize(u), normalize(v), normalize(w)
        p, q, r = a * u, a * v, a * w
        x = direction(p)
        y = across(x, q)
        z = cross(x, y)
        most = sqrt(dot(p, p))
        next = clamp(dot(y, q), 0.0, most)
        sigma = vector(most, next, clamp(dot(z, r), -next, next)) * size
        return matrix_from_cols(x, y, z), sigma, matrix_from_cols(u, v, w)


@builtin("vector math", "svd2")
class svd2_into:
    """The same, written to the variables ``U``, ``sigma`` and ``V``."""

    updates = ("U", "sigma", "V")

    def sig(A: Mat(2, 2, Float), U: Mat(2, 2, Float), sigma: Vec(2, Float), V: Mat(2, 2, Float)) -> None: ...

    def body(A, U, sigma, V):
        return svd2(A)


@builtin("vector math", "svd3")
class svd3_into:
    """The same, written to the variables ``U``, ``sigma`` and ``V``."""

    updates = ("U", "sigma", "V")

    def sig(A: Mat(3, 3, Float), U: Mat(3, 3, Float), sigma: Vec(3, Float), V: Mat(3, 3, Float)) -> None: ...

    def body(A, U, sigma, V):
        return svd3(A)


# -- QR ----------------------------------------------------------------------------------------------------------------


@builtin("vector math", "qr3")
class qr3_short:
    """The QR decomposition of a matrix of 16-bit floats, found in float32.

    >>> wp.qr3(wp.mat33h(3.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0))[1]
    mat33h([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    """

    def body(A: Mat(3, 3, Short)) -> (Mat(3, 3, Short), Mat(3, 3, Short)):
        Q, R = qr3(mat33(A))
        return type(A)(Q), type(A)(R)


@builtin("vector math")
class qr3:
    """The decomposition ``A = Q R`` of a 3 × 3 matrix into a rotation and an upper triangle: ``Q, R = wp.qr3(A)``.

    The first two of R's diagonal are not negative, the last has the sign of the determinant. Gram and Schmidt's method,
    each direction made orthogonal twice. The derivative is 0 where R has no inverse.

    >>> wp.qr3(wp.mat33(0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 3.0))[1]
    mat33f([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, -3.0]])
    """

    adjoint, tangent = rule("of_qr3"), rule("along_qr3")

    def body(A: Mat(3, 3, Float)) -> (Mat(3, 3, Float), Mat(3, 3, Float)):
        size = size_of(A)
        b = transpose(A / size)
        p, q, r = b[0], b[1], b[2]
        x = direction(p)
        y = across(x, q)
        z = cross(x, y)
        zero = size * 0.0
        first = vector(dot(x, p), zero, zero)
        second = vector(dot(x, q), max(dot(y, q), 0.0), zero)
        third = vector(dot(x, r), dot(y, r), dot(z, r))
        return matrix_from_cols(x, y, z), matrix_from_cols(first, second, third) * size


@builtin("vector math", "qr3")
class qr3_into:
    """The same, written to the variables ``Q`` and ``R``."""

    updates = ("Q", "R")

    def sig(A: Mat(3, 3, Float), Q: Mat(3, 3, Float), R: Mat(3, 3, Float)) -> None: ...

    def body(A, Q, R):
        return qr3(A)


# -- eigenvalues -------------------------------------------------------------------------------------------------------


def diagonal(p, q, pq, pr, qr, u, v):
    """The plane of two axes turned so that a symmetric matrix has 0 where they meet, and the vectors ``u``, ``v`` too.

    ``p`` and ``q`` stand on its diagonal, ``pq`` beside it, ``pr`` and ``qr`` where they meet the third axis.
    """
    t, c, s = half_angle(q - p, 2.0 * pq)
    return p - t * pq, q + t * pq, pr * c - qr * s, pr * s + qr * c, u * c - v * s, u * s + v * c


def falling(a, b, u, v):
    """The greater one of ``a`` and ``b`` first, ``u`` and ``v`` likewise; an exchange is a quarter turn."""
    swap = a < b
    return where(swap, b, a), where(swap, a, b), where(swap, v, u), where(swap, -u, v)


@builtin("vector math", "eig3")
class eig3_short:
    """The eigenvalues of a symmetric matrix of 16-bit floats, found in float32.

    >>> wp.eig3(wp.mat33h(3.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0))[1]
    vec3h([float16(3.0), float16(2.0), float16(1.0)])
    """

    def body(A: Mat(3, 3, Short)) -> (Mat(3, 3, Short), Vec(3, Short)):
        Q, d = eig3(mat33(A))
        return type(A)(Q), type(A[0])(d)


@builtin("vector math")
class eig3:
    """Eigenvectors and eigenvalues of a symmetric 3 × 3 matrix, ``A = Q diag(d) Qᵀ``: ``Q, d = wp.eig3(A)``.

    Q is a rotation, its columns are the eigenvectors; eigenvalues fall. Of a matrix that is not symmetric those of its
    symmetric part ``(A + Aᵀ)/2``, so the adjoint is symmetric. Jacobi's method (G. Golub and C. Van Loan, "Matrix
    Computations", 4th ed., 8.5).

    Eigenvalues within 64 units in the last place of the largest one count as equal. There symmetric functions of the
    values have their derivatives; what would turn the vectors gives nothing.

    >>> wp.eig3(wp.mat33(2.0, 1.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, -3.0))[1]
    vec3f([3.0, 1.0, -3.0])
    """

    adjoint, tangent = rule("of_eig3"), rule("along_eig3")

    def body(A: Mat(3, 3, Float)) -> (Mat(3, 3, Float), Vec(3, Float)):
        size = size_of(A)
        m = A / size
        x, y, z = m[0, 0], m[1, 1], m[2, 2]
        xy = 0.5 * (m[0, 1] + m[1, 0])
        xz = 0.5 * (m[0, 2] + m[2, 0])
        yz = 0.5 * (m[1, 2] + m[2, 1])
        one = size / size
        axes = diag(vector(one, one, one))
        u, v, w = axes[0], axes[1], axes[2]
        close = 0.125 * epsilon(size)
        sweep = 0
        while sweep < SWEEPS and max(abs(xy), max(abs(xz), abs(yz))) > close:
            x, y, xz, yz, u, v = diagonal(x, y, xy, xz, yz, u, v)
            x, z, xy, yz, u, w = diagonal(x, z, xz, xy * 0.0, yz, u, w)
            y, z, xy, xz, v, w = diagonal(y, z, yz, xy, xz * 0.0, v, w)
            yz = yz * 0.0
            sweep += 1
        x, y, u, v = falling(x, y, u, v)
        x, z, u, w = falling(x, z, u, w)
        y, z, v, w = falling(y, z, v, w)
        return matrix_from_cols(u, v, w), vector(x, y, z) * size


@builtin("vector math", "eig3")
class eig3_into:
    """The same, written to the variables ``Q`` and ``d``."""

    updates = ("Q", "d")

    def sig(A: Mat(3, 3, Float), Q: Mat(3, 3, Float), d: Vec(3, Float)) -> None: ...

    def body(A, Q, d):
        return eig3(A)
