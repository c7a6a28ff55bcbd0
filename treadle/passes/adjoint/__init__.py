"""Reverse mode, a pass over scalarized programs."""

from .reverse import reverse, reverse_function

__all__ = ["reverse", "reverse_function"]
