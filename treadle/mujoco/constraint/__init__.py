"""Constraints of worlds: their rows, and the reference accelerations that pull them where they should be."""

from treadle.mujoco.constraint.stage import make_constraint, reference_constraint

__all__ = ["make_constraint", "reference_constraint"]
