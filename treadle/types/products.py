"""Products of vectors, matrices, rotations and rigid transforms on Python numbers: as the builtins define them, rounded
at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import core
from .core import Matrix, Type, Vector

Numbers = Sequence[float]


def product(s: Type, a: Numbers, t: Type, b: Numbers, narrow: Callable) -> tuple[Type, list] | None:
    """The type and the components of ``a * b``, of types ``s`` and ``t`` over one scalar; None if there is no product.

    ``narrow`` rounds a number to that scalar.
    """
    if isinstance(s, Matrix) and isinstance(t, Matrix) and s.cols == t.rows:
        columns = [b[j :: t.cols] for j in range(t.cols)]
        numbers = [_sum_of_products(row, column, narrow) for row in _rows(s, a) for column in columns]
        return core.matrix(s.rows, t.cols, s.elem), numbers
    if isinstance(s, Matrix) and _is(t, "vec") and s.cols == t.n:
        return core.vector(s.rows, s.elem), [_sum_of_products(row, b, narrow) for row in _rows(s, a)]
    if _is(s, "vec") and isinstance(t, Matrix) and s.n == t.rows:
        return core.vector(t.cols, s.elem), [_sum_of_products(b[j :: t.cols], a, narrow) for j in range(t.cols)]
    if s is t and _is(s, "quat"):
        return s, _hamilton(a, b, narrow)
    if s is t and _is(s, "transform"):
        turned = _turned(a[3:], b[:3], narrow)
        return s, [x + y for x, y in zip(a[:3], turned)] + _hamilton(a[3:], b[3:], narrow)
    return None


def _is(t: Type, tag: str) -> bool:
    return isinstance(t, Vector) and t.tag == tag


def _rows(t: Matrix, numbers: Numbers) -> list[Numbers]:
    return [numbers[i * t.cols : (i + 1) * t.cols] for i in range(t.rows)]


def _sum_of_products(row: Numbers, column: Numbers, narrow: Callable) -> float:
    """The sum of products in order, rounded at every step."""
    total = narrow(row[0] * column[0])
    for x, y in zip(row[1:], column[1:]):
        total = narrow(total + narrow(x * y))
    return total


def _hamilton(a: Numbers, b: Numbers, narrow: Callable) -> list[float]:
    """Hamilton's product of quaternions (x, y, z, w)."""
    ax, ay, az, aw = a
    x, y, z, w = b
    return [
        _sum_of_products((aw, ax, ay, -az), (x, w, z, y), narrow),
        _sum_of_products((aw, ay, az, -ax), (y, w, x, z), narrow),
        _sum_of_products((aw, az, ax, -ay), (z, w, y, x), narrow),
        _sum_of_products((aw, -ax, -ay, -az), (w, x, y, z), narrow),
    ]


def _turned(q: Numbers, v: Numbers, narrow: Callable) -> list[float]:
    """A vector turned by a unit quaternion (u, w): ``v (2w² - 1) + 2w (u × v) + 2u (u · v)``."""
    u, w = q[:3], q[3]
    along, across = narrow(narrow(2.0 * w * w) - 1.0), 2.0 * w
    twice = 2.0 * _sum_of_products(u, v, narrow)
    turned = []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        crossed = _sum_of_products((u[j], -u[k]), (v[k], v[j]), narrow)
        first = narrow(narrow(v[i] * along) + narrow(crossed * across))
        turned.append(narrow(first + narrow(u[i] * twice)))
    return turned
