"""Accelerations and forces under constraints."""
