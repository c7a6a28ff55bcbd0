"""Floor 1: types, their layout in memory, the host values of composite types, and what annotations mean.

To users this is ``wp.types``: the makers ``vector``, ``matrix``, ``quaternion``, ``transformation``, every named value
class, and questions such as ``type_is_float``. Inside treadle the type objects come from :mod:`treadle.types.core`.
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
    if name.startswith(("type", "is_")):
        found = importlib.import_module(".inquiry", __name__).FUNCTIONS.get(name)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from .inquiry import FUNCTIONS
    from .values import names

    return sorted({"vector", "matrix", "quaternion", "transformation", *FUNCTIONS, *names()})
