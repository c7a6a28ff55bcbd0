"""Dense linear algebra of one thread on matrices that lie row by row in arrays of one dimension.

For matrices of a size that only the run knows; of a fixed small size ``wp.types.matrix`` is faster, of a block of
threads ``tile_cholesky`` and its kin. Cholesky's factor and the substitutions: Golub and Van Loan, Matrix Computations,
4th edition, algorithms 4.2.1, 3.1.1 and 3.1.2.
"""

from ..types.core import i32
from .language import sqrt, where
from .patterns import Float, View
from .registry import builtin


@builtin("dense")
class dense_gemm:
    """``C = A B``, of ``m`` × ``p`` and ``p`` × ``n`` numbers. ``t1``, ``t2`` not 0: ``A``, ``B`` lies transposed."""

    def body(m: i32, n: i32, p: i32, t1: i32, t2: i32, A: View(Float, 1), B: View(Float, 1), C: View(Float, 1)) -> None:
        row, along = where(t1 != 0, 1, p), where(t1 != 0, m, 1)  # how far apart the rows of A are, and its columns
        down, column = where(t2 != 0, 1, n), where(t2 != 0, p, 1)
        for i in range(m):
            for j in range(n):
                total = A.dtype(0.0)
                for k in range(p):
                    total += A[i * row + k * along] * B[k * down + j * column]
                C[i * n + j] = total


@builtin("dense")
class dense_chol:
    """Cholesky's factor of ``A``, ``n`` × ``n`` and symmetric, with ``regularization`` added to its diagonal.

    Reads the lower triangle of ``A`` and writes that of ``L``; the rest of ``L`` stays as it is.
    """

    def body(n: i32, A: View(Float, 1), regularization: Float, L: View(Float, 1)) -> None:
        for j in range(n):
            left = A[j * n + j] + regularization
            for k in range(j):
                left -= L[j * n + k] * L[j * n + k]
            pivot = sqrt(left)
            L[j * n + j] = pivot
            for i in range(j + 1, n):
                rest = A[i * n + j]
                for k in range(j):
                    rest -= L[i * n + k] * L[j * n + k]
                L[i * n + j] = rest / pivot


@builtin("dense")
class dense_subs:
    """The solution ``x`` of ``L Lᵀ x = b`` for the lower triangle ``L`` of ``n`` × ``n`` numbers."""

    def body(n: i32, L: View(Float, 1), b: View(Float, 1), x: View(Float, 1)) -> None:
        for i in range(n):
            left = b[i]
            for j in range(i):
                left -= L[i * n + j] * x[j]
            x[i] = left / L[i * n + i]
        for down in range(n):
            i = n - 1 - down
            rest = x[i]
            for j in range(i + 1, n):
                rest -= L[j * n + i] * x[j]
            x[i] = rest / L[i * n + i]


@builtin("dense")
class dense_solve:
    """The solution ``x`` of ``A x = b``, of which ``L`` is Cholesky's factor, as :func:`dense_chol` makes it.

    Derivatives go through ``L``, and from there to what the factor was made of.
    """

    def body(n: i32, A: View(Float, 1), L: View(Float, 1), b: View(Float, 1), x: View(Float, 1)) -> None:
        dense_subs(n, L, b, x)
