"""Functions of matrices. Where the shape is free they are built component by component; the others are bodies."""

from ..types.annotations import type_of
from ..types.core import Matrix, Type
from ..types.core import matrix as matrix_type
from .language import matrix, where
from .patterns import C, Float, K, Known, Mat, N, R, Scalar, Vec
from .registry import Arg, Mismatch, builtin, rule
from .terms import columns, make, rows, terms, total
from .terms import dot as products

# -- products ----------------------------------------------------------------------------------------------------------


@builtin("operators", "mul")
class mul_matrices:
    """The matrix product ``a b``.

    >>> wp.mul(wp.mat22(1.0, 2.0, 3.0, 4.0), wp.mat22(0.0, 1.0, 1.0, 0.0))
    mat22f([[2.0, 1.0], [4.0, 3.0]])
    """

    def sig(a: Mat(R, K, Scalar), b: Mat(K, C, Scalar)) -> Mat(R, C, Scalar): ...

    def emit(b, result, x, y):
        right = columns(b, y)
        return make(b, result, [products(row, column) for row in rows(b, x) for column in right])


@builtin("operators", "mul")
class mul_matrix_vector:
    """The matrix times the column vector.

    >>> wp.mul(wp.mat22(1.0, 2.0, 3.0, 4.0), wp.vec2(1.0, 1.0))
    vec2f([3.0, 7.0])
    """

    def sig(a: Mat(R, C, Scalar), b: Vec(C, Scalar)) -> Vec(R, Scalar): ...

    def emit(b, result, x, y):
        v = terms(b, y)
        return make(b, result, [products(row, v) for row in rows(b, x)])


@builtin("operators", "mul")
class mul_vector_matrix:
    """The row vector times the matrix.

    >>> wp.mul(wp.vec2(1.0, 1.0), wp.mat22(1.0, 2.0, 3.0, 4.0))
    vec2f([4.0, 6.0])
    """

    def sig(a: Vec(R, Scalar), b: Mat(R, C, Scalar)) -> Vec(C, Scalar): ...

    def emit(b, result, x, y):
        v = terms(b, x)
        return make(b, result, [products(v, column) for column in columns(b, y)])


@builtin("vector math")
class ddot:
    """The double dot product: the sum of the products of components.

    >>> wp.ddot(wp.mat22(1.0, 2.0, 3.0, 4.0), wp.mat22(1.0, 1.0, 1.0, 1.0))
    10.0
    """

    def sig(a: Mat(R, C, Scalar), b: Mat(R, C, Scalar)) -> Scalar: ...

    def emit(b, result, x, y):
        return products(terms(b, x), terms(b, y)).value


# -- parts -------------------------------------------------------------------------------------------------------------


@builtin("vector math")
class transpose:
    """The matrix with rows and columns exchanged.

    >>> wp.transpose(wp.mat22(1.0, 2.0, 3.0, 4.0))
    mat22f([[1.0, 3.0], [2.0, 4.0]])
    """

    def sig(a: Mat(R, C, Scalar)) -> Mat(C, R, Scalar): ...

    def emit(b, result, x):
        return make(b, result, [item for column in columns(b, x) for item in column])


@builtin("vector math")
class trace:
    """The sum of the diagonal.

    >>> wp.trace(wp.mat22(1.0, 2.0, 3.0, 4.0))
    5.0
    """

    def sig(a: Mat(N, N, Scalar)) -> Scalar: ...

    def emit(b, result, x):
        return total(row[i] for i, row in enumerate(rows(b, x))).value


@builtin("vector math")
class diag:
    """The matrix with ``vec`` on its diagonal and zero elsewhere.

    >>> wp.diag(wp.vec2(1.0, 2.0))
    mat22f([[1.0, 0.0], [0.0, 2.0]])
    """

    def sig(vec: Vec(N, Scalar)) -> Mat(N, N, Scalar): ...

    def emit(b, result, x):
        nothing = _constant(b, 0, result.elem)
        parts, n = b.parts(x), result.rows
        return b.one("make", tuple(parts[i] if i == j else nothing for i in range(n) for j in range(n)), result)


@builtin("vector math")
class get_diag:
    """The diagonal of a matrix.

    >>> wp.get_diag(wp.mat22(1.0, 2.0, 3.0, 4.0))
    vec2f([1.0, 4.0])
    """

    def sig(mat: Mat(N, N, Scalar)) -> Vec(N, Scalar): ...

    def emit(b, result, x):
        return make(b, result, [row[i] for i, row in enumerate(rows(b, x))])


@builtin("vector math")
class skew:
    """The matrix ``S`` with ``S b = vec × b``.

    >>> wp.skew(wp.vec3(1.0, 2.0, 3.0))
    mat33f([[0.0, -3.0, 2.0], [3.0, 0.0, -1.0], [-2.0, 1.0, 0.0]])
    """

    def sig(vec: Vec(3, Scalar)) -> Mat(3, 3, Scalar): ...

    def emit(b, result, v):
        x, y, z = b.parts(v)
        minus_x, minus_y, minus_z = (b.one("neg", (part,), result.elem) for part in (x, y, z))
        o = _constant(b, 0, result.elem)
        return b.one("make", (o, minus_z, y, z, o, minus_x, minus_y, x, o), result)


def _constant(b, number: int, elem):
    return b.const(float(number) if elem.is_float else number, elem)


@builtin("vector math")
class identity:
    """The identity matrix with ``n`` rows.

    >>> wp.identity(n=2, dtype=float)
    mat22f([[1.0, 0.0], [0.0, 1.0]])
    """

    def sig(n: Known("a constant int"), dtype: Known("a scalar type")): ...

    def result(n: Arg, dtype: Arg) -> Type:
        if not isinstance(n.value, int) or n.value < 1:
            raise Mismatch(f"argument 'n' must be a positive constant, not {n.show()}")
        return matrix_type(n.value, n.value, type_of(dtype.value))

    def emit(b, result, n, dtype):
        nothing, one = _constant(b, 0, result.elem), _constant(b, 1, result.elem)
        return b.one("make", tuple(one if i == j else nothing for i in range(n) for j in range(n)), result)


def _stack(name: str, word: str) -> None:
    """Register ``matrix_from_rows`` or ``matrix_from_cols``."""

    def sig(*vectors: Vec(N, Scalar)): ...

    def result(*vectors: Arg) -> Matrix:
        if not vectors:
            raise Mismatch("at least one vector is needed")
        n, elem = vectors[0].type.n, vectors[0].type.elem
        return matrix_type(len(vectors), n, elem) if name.endswith("rows") else matrix_type(n, len(vectors), elem)

    def emit(b, result, *vectors):
        parts = [b.parts(v) for v in vectors]
        lines = parts if name.endswith("rows") else zip(*parts, strict=True)
        return b.one("make", tuple(item for line in lines for item in line), result)

    shown = "[[1.0, 2.0], [3.0, 4.0]]" if name.endswith("rows") else "[[1.0, 3.0], [2.0, 4.0]]"
    doc = f"""The matrix whose {word} are the given vectors.

    >>> wp.{name}(wp.vec2(1.0, 2.0), wp.vec2(3.0, 4.0))
    mat22f({shown})
    """
    members = {"__doc__": doc, "__module__": __name__, "sig": sig, "result": result, "emit": emit}
    builtin("vector math", name)(type(name, (), members))


_stack("matrix_from_rows", "rows")
_stack("matrix_from_cols", "columns")


# -- determinants and inverses -----------------------------------------------------------------------------------------


@builtin("vector math", "determinant")
class determinant2:
    """The determinant.

    >>> wp.determinant(wp.mat22(1.0, 2.0, 3.0, 4.0))
    -2.0
    """

    def body(a: Mat(2, 2, Float)) -> Float:
        return a[0, 0] * a[1, 1] - a[1, 0] * a[0, 1]


@builtin("vector math", "determinant")
class determinant3:
    """The determinant: the scalar triple product of the rows.

    >>> wp.determinant(wp.mat33(1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0))
    6.0
    """

    def body(a: Mat(3, 3, Float)) -> Float:
        return (
            a[0, 0] * (a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1])
            + a[0, 1] * (a[1, 2] * a[2, 0] - a[1, 0] * a[2, 2])
            + a[0, 2] * (a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0])
        )


@builtin("vector math", "determinant")
class determinant4:
    """The determinant, expanded by the 2 × 2 minors of the upper and the lower two rows (Laplace).

    >>> wp.determinant(wp.identity(n=4, dtype=float))
    1.0
    """

    def body(a: Mat(4, 4, Float)) -> Float:
        s0 = a[0, 0] * a[1, 1] - a[1, 0] * a[0, 1]
        s1 = a[0, 0] * a[1, 2] - a[1, 0] * a[0, 2]
        s2 = a[0, 0] * a[1, 3] - a[1, 0] * a[0, 3]
        s3 = a[0, 1] * a[1, 2] - a[1, 1] * a[0, 2]
        s4 = a[0, 1] * a[1, 3] - a[1, 1] * a[0, 3]
        s5 = a[0, 2] * a[1, 3] - a[1, 2] * a[0, 3]
        c5 = a[2, 2] * a[3, 3] - a[3, 2] * a[2, 3]
        c4 = a[2, 1] * a[3, 3] - a[3, 1] * a[2, 3]
        c3 = a[2, 1] * a[3, 2] - a[3, 1] * a[2, 2]
        c2 = a[2, 0] * a[3, 3] - a[3, 0] * a[2, 3]
        c1 = a[2, 0] * a[3, 2] - a[3, 0] * a[2, 2]
        c0 = a[2, 0] * a[3, 1] - a[3, 0] * a[2, 1]
        return s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0


@builtin("vector math", "inverse")
class inverse2:
    """The inverse; the zero matrix if the determinant is zero, and so is the derivative.

    >>> wp.inverse(wp.mat22(2.0, 0.0, 0.0, 4.0))
    mat22f([[0.5, -0.0], [-0.0, 0.25]])
    """

    adjoint, tangent = rule("of_inverse"), rule("along_inverse")

    def body(a: Mat(2, 2, Float)) -> Mat(2, 2, Float):
        det = a[0, 0] * a[1, 1] - a[1, 0] * a[0, 1]
        r = where(det != 0.0, 1.0 / where(det != 0.0, det, 1.0), 0.0)
        return matrix(a[1, 1] * r, -a[0, 1] * r, -a[1, 0] * r, a[0, 0] * r, shape=(2, 2))


@builtin("vector math", "inverse")
class inverse3:
    """The inverse: the cofactors over the determinant; the zero matrix if that is zero, and so is the derivative.

    >>> wp.inverse(wp.mat33(1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 4.0))
    mat33f([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.25]])
    """

    adjoint, tangent = rule("of_inverse"), rule("along_inverse")

    def body(a: Mat(3, 3, Float)) -> Mat(3, 3, Float):
        c00 = a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1]
        c01 = a[1, 2] * a[2, 0] - a[1, 0] * a[2, 2]
        c02 = a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0]
        det = a[0, 0] * c00 + a[0, 1] * c01 + a[0, 2] * c02
        r = where(det != 0.0, 1.0 / where(det != 0.0, det, 1.0), 0.0)
        return matrix(
            c00 * r, (a[0, 2] * a[2, 1] - a[0, 1] * a[2, 2]) * r, (a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1]) * r,
            c01 * r, (a[0, 0] * a[2, 2] - a[0, 2] * a[2, 0]) * r, (a[0, 2] * a[1, 0] - a[0, 0] * a[1, 2]) * r,
            c02 * r, (a[0, 1] * a[2, 0] - a[0, 0] * a[2, 1]) * r, (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]) * r,
            shape=(3, 3),
        )  # fmt: skip


@builtin("vector math", "inverse")
class inverse4:
    """The inverse by 2 × 2 minors (Laplace); the zero matrix if the determinant is zero, and so is the derivative.

    D. Eberly, "The Laplace Expansion Theorem: Computing the Determinants and Inverses of Matrices", 2008.

    >>> wp.inverse(wp.identity(n=4, dtype=float))[2, 2]
    1.0
    """

    adjoint, tangent = rule("of_inverse"), rule("along_inverse")

    def body(a: Mat(4, 4, Float)) -> Mat(4, 4, Float):
        s0 = a[0, 0] * a[1, 1] - a[1, 0] * a[0, 1]
        s1 = a[0, 0] * a[1, 2] - a[1, 0] * a[0, 2]
        s2 = a[0, 0] * a[1, 3] - a[1, 0] * a[0, 3]
        s3 = a[0, 1] * a[1, 2] - a[1, 1] * a[0, 2]
        s4 = a[0, 1] * a[1, 3] - a[1, 1] * a[0, 3]
        s5 = a[0, 2] * a[1, 3] - a[1, 2] * a[0, 3]
        c5 = a[2, 2] * a[3, 3] - a[3, 2] * a[2, 3]
        c4 = a[2, 1] * a[3, 3] - a[3, 1] * a[2, 3]
        c3 = a[2, 1] * a[3, 2] - a[3, 1] * a[2, 2]
        c2 = a[2, 0] * a[3, 3] - a[3, 0] * a[2, 3]
        c1 = a[2, 0] * a[3, 2] - a[3, 0] * a[2, 2]
        c0 = a[2, 0] * a[3, 1] - a[3, 0] * a[2, 1]
        det = s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0
        r = where(det != 0.0, 1.0 / where(det != 0.0, det, 1.0), 0.0)
        return matrix(
            (a[1, 1] * c5 - a[1, 2] * c4 + a[1, 3] * c3) * r, (-a[0, 1] * c5 + a[0, 2] * c4 - a[0, 3] * c3) * r,
            (a[3, 1] * s5 - a[3, 2] * s4 + a[3, 3] * s3) * r, (-a[2, 1] * s5 + a[2, 2] * s4 - a[2, 3] * s3) * r,
            (-a[1, 0] * c5 + a[1, 2] * c2 - a[1, 3] * c1) * r, (a[0, 0] * c5 - a[0, 2] * c2 + a[0, 3] * c1) * r,
            (-a[3, 0] * s5 + a[3, 2] * s2 - a[3, 3] * s1) * r, (a[2, 0] * s5 - a[2, 2] * s2 + a[2, 3] * s1) * r,
            (a[1, 0] * c4 - a[1, 1] * c2 + a[1, 3] * c0) * r, (-a[0, 0] * c4 + a[0, 1] * c2 - a[0, 3] * c0) * r,
            (a[3, 0] * s4 - a[3, 1] * s2 + a[3, 3] * s0) * r, (-a[2, 0] * s4 + a[2, 1] * s2 - a[2, 3] * s0) * r,
            (-a[1, 0] * c3 + a[1, 1] * c1 - a[1, 2] * c0) * r, (a[0, 0] * c3 - a[0, 1] * c1 + a[0, 2] * c0) * r,
            (-a[3, 0] * s3 + a[3, 1] * s1 - a[3, 2] * s0) * r, (a[2, 0] * s3 - a[2, 1] * s1 + a[2, 2] * s0) * r,
            shape=(4, 4),
        )  # fmt: skip
