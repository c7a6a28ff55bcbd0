"""Random operands, types that fit a pattern, and what the mathematics of rotations says, in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from treadle.builtins import names, patterns, registry
from treadle.types.core import Type, f32, f64, i32

from .kernels import name_of

COUNT = 40
SIZES = {"N": 3, "R": 2, "C": 3, "K": 3}  # what the lengths in patterns stand for
PRECISIONS = pytest.mark.parametrize("t", [f32, f64], ids=name_of)


def example(pattern, bound: dict) -> Type | None:
    """A type that ``pattern`` matches; None for what is no run-time value."""
    if isinstance(pattern, Type):
        return pattern
    if isinstance(pattern, patterns.Composite):
        return patterns.Vec(3, pattern.elem).build(bound)
    if isinstance(pattern, patterns.OneOf):
        return i32
    try:
        return pattern.build(bound)
    except (TypeError, KeyError):
        return None


def call_text(name: str, operands: list[str]) -> str:
    """The call of a builtin as a user writes it; operators with their symbols."""
    symbol = registry.SYMBOLS.get(name)
    if symbol is not None and len(operands) == 2:
        return f" {'*' if symbol == '@' else symbol} ".join(operands)
    public = next((alias for alias, target in names.ALIASES.items() if target == name), name)
    return f"wp.{public}({', '.join(operands)})"


def random(shape, t, seed=0):
    return np.random.default_rng(seed).normal(size=(COUNT, *shape)).astype(np.float32 if t is f32 else np.float64)


def near(found, wanted, t):
    size = max(1.0, float(np.abs(wanted).max()))
    assert np.allclose(found, wanted, rtol=0, atol=(3e-6 if t is f32 else 1e-13) * size)


def unit(q):
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def rotation(q):
    """Rotation matrices of unit quaternions (x, y, z, w), by Euler and Rodrigues' formula ``I + 2w[u] + 2[u]²``."""
    u, w = q[:, :3], q[:, 3, None, None]
    cross = np.zeros((len(q), 3, 3), q.dtype)
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -u[:, 2], u[:, 1], -u[:, 0]
    cross -= cross.transpose(0, 2, 1)
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross
