"""Linear algebra on tiles: Cholesky factors and triangular systems. Derivatives follow from the bodies: they are those
with respect to the triangle that is read."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import Tile, f32, f64
from ..types.spelling import spell
from . import tile_algebra_bodies as bodies
from . import tile_bodies
from .patterns import Any, Known
from .registry import Mismatch
from .tile_terms import Given, Plan, blank, call, planned

MODE = Known("'lower' or 'upper'")

Step = tuple[Callable, bool]  # a body's maker, and whether it reads the triangle by columns


def _square(given: Given, name: str) -> Tile:
    t = given.tile(name)
    if len(t.shape) != 2 or t.shape[0] != t.shape[1] or t.item not in (f32, f64):
        raise Mismatch(f"argument {name!r} must be a square tile of float32 or float64, it is {spell(t)}")
    return t


def _upper(given: Given) -> bool:
    mode = given.value("fill_mode", "lower")
    if mode not in ("lower", "upper"):
        raise Mismatch(f"argument 'fill_mode' must be 'lower' or 'upper', not {mode!r}")
    return mode == "upper"


def _strides(n: int, columns: bool) -> tuple[int, int]:
    return (1, n) if columns else (n, 1)


# -- factors -----------------------------------------------------------------------------------------------------------


def _factored(in_place: bool):
    def plan(given: Given) -> Plan:
        t = _square(given, "A")
        n = t.shape[0]
        body = bodies.factor(n, *_strides(n, _upper(given)))

        def emit(b: Builder, v: dict[str, Value]) -> Value:
            zeros = call(b, given.context, tile_bodies.fill, blank(b, t), b.const(0.0, t.item))
            return call(b, given.context, body, v["A"], zeros)

        return Plan(None if in_place else t, {"A": t}, emit)

    return plan


@planned
class tile_cholesky:
    """The factor L of a symmetric positive definite tile A = L Lᵀ; with ``fill_mode="upper"`` U of A = Uᵀ U.

    Only that triangle of ``A`` is read; the other one of the result is zero.
    """

    def sig(A: Any, fill_mode: MODE = "lower"): ...

    plan = staticmethod(_factored(False))


@planned
class tile_cholesky_inplace:
    """Change a symmetric positive definite tile to its factor; see :func:`tile_cholesky`."""

    updates = ("A",)

    def sig(A: Any, fill_mode: MODE = "lower"): ...

    plan = staticmethod(_factored(True))


# -- systems -----------------------------------------------------------------------------------------------------------


def _solved(matrix: str, right: str, steps: Callable[[bool], tuple[Step, ...]], in_place: bool):
    """A rule for solving with the tile ``matrix`` by ``steps``, which depend on which triangle it is."""

    def plan(given: Given) -> Plan:
        t, y = _square(given, matrix), given.tile(right)
        n = t.shape[0]
        if y.item is not t.item or y.shape[0] != n or len(y.shape) > 2:
            raise Mismatch(f"argument {right!r} must have {n} rows of {spell(t.item)}, it is {spell(y)}")
        columns = y.shape[1] if len(y.shape) == 2 else 1

        def emit(b: Builder, v: dict[str, Value]) -> Value:
            x = v[right]
            for make, by_columns in steps(_upper(given)):
                x = call(b, given.context, make(n, columns, *_strides(n, by_columns)), v[matrix], x)
            return x

        return Plan(None if in_place else y, {matrix: t, right: y}, emit)

    return plan


def _both(upper: bool) -> tuple[Step, ...]:
    """L z = y and then Lᵀ x = z; of U the first goes with its columns."""
    return (bodies.forward, upper), (bodies.backward, not upper)


def _lower(upper: bool) -> tuple[Step, ...]:
    return ((bodies.forward, False),)


def _upward(upper: bool) -> tuple[Step, ...]:
    return ((bodies.backward, False),)


@planned
class tile_lower_solve:
    """The solution z of L z = y for a lower triangular tile; ``y`` has one column or several."""

    def sig(L: Any, y: Any): ...

    plan = staticmethod(_solved("L", "y", _lower, False))


@planned
class tile_lower_solve_inplace:
    """Change ``y`` to the solution z of L z = y."""

    updates = ("y",)

    def sig(L: Any, y: Any): ...

    plan = staticmethod(_solved("L", "y", _lower, True))


@planned
class tile_upper_solve:
    """The solution x of U x = z for an upper triangular tile; ``z`` has one column or several."""

    def sig(U: Any, z: Any): ...

    plan = staticmethod(_solved("U", "z", _upward, False))


@planned
class tile_upper_solve_inplace:
    """Change ``z`` to the solution x of U x = z."""

    updates = ("z",)

    def sig(U: Any, z: Any): ...

    plan = staticmethod(_solved("U", "z", _upward, True))


@planned
class tile_cholesky_solve:
    """Solve A x = y by what :func:`tile_cholesky` gave for A; ``y`` has one column or several."""

    def sig(L: Any, y: Any, fill_mode: MODE = "lower"): ...

    plan = staticmethod(_solved("L", "y", _both, False))


@planned
class tile_cholesky_solve_inplace:
    """As :func:`tile_cholesky_solve`, with the solution in the place of ``y``."""

    updates = ("y",)

    def sig(L: Any, y: Any, fill_mode: MODE = "lower"): ...

    plan = staticmethod(_solved("L", "y", _both, True))
