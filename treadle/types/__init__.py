"""Floor 1: types, their layout in memory, the host values of composite types, and what annotations mean.

To users this is ``wp.types``: the makers ``vector``, ``matrix``, ``quaternion``, ``transformation`` and every named value
class. Inside treadle the type objects themselves come from :mod:`treadle.types.core`.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name == "values":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    values = importlib.import_module(".values", __name__)
    if name in ("vector", "matrix", "quaternion", "transformation") or name in values.names():
        return getattr(values, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
