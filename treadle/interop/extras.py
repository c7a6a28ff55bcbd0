"""The frameworks, imported when first needed; a missing one is named with the extra that brings it."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any


def _framework(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name != name:
            raise
        raise ImportError(f"{what} is not installed; pip install 'treadle[{name}]' brings it", name=name) from None


@cache
def jax() -> Any:
    """The module ``jax``."""
    return _framework("jax", "JAX")


@cache
def torch() -> Any:
    """The module ``torch``."""
    return _framework("torch", "PyTorch")
