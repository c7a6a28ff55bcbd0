"""Accelerations and forces under constraints."""

from treadle.mujoco.solver.stage import solve

__all__ = ["solve"]
