"""``wp.utils``: reductions over arrays."""

from .lang.utils import array_inner, array_sum

__all__ = ["array_inner", "array_sum"]
