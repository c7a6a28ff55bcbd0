"""Arrays of other libraries that come as arguments: who knows them is found here, without knowing the libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .array import array


def _unknown(value: Any, dtype: Any) -> array | None:
    return None


# Set by the package: an array over the memory of an object of another library; None where that is not known.
convert: Callable[[Any, Any], array | None] = _unknown


def shared(value: Any, dtype: Any = None) -> array | None:
    """An array over the memory of ``value``, an object of another library; None where it does not tell about that.

    Raises:
        ArrayError: its elements cannot be seen as ``dtype``.
    """
    made = convert(value, dtype)
    if made is None and hasattr(value, "__dlpack__"):
        from .dlpack import from_dlpack

        made = from_dlpack(value, dtype)
    if made is None and lies_far(value) and (facts := getattr(value, FAR)) is not None:
        from .device import shown

        made = shown(facts, dtype, value)
    return made


NEAR = "__array_interface__"  # tells of memory of the host
FAR = "__cuda_array_interface__"  # tells of memory of a GPU


def shows_memory(value: Any) -> bool:
    """Whether ``value`` tells in some way where its elements are. Ways that come after one that is there are not tried:
    properties may fail."""
    return any(hasattr(value, name) for name in (NEAR, "__dlpack__", FAR))


def lies_far(value: Any) -> bool:
    """Whether ``value`` tells of memory of a GPU. What tells of memory of the host as well lies there."""
    return not hasattr(value, NEAR) and hasattr(value, FAR)
