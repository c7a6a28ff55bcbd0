"""What the compiler tower hands to the machine tower: object code and what one must know to call it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Binary(NamedTuple):
    """``code``: an object file (cpu) or PTX text (nvptx). ``symbols``: the entry points in it.

    ``imports``: external symbols the loader must provide. ``meta``: plain JSON-able facts about the code
    (parameter layout, order, fault sites …) that the launcher reads; stored beside the code in the cache.
    ``layout``: where the cache keeps the code laid out for loading, as JSON-able facts; None while it is an object.
    """

    code: bytes
    symbols: tuple[str, ...]
    imports: tuple[str, ...] = ()
    meta: Mapping[str, Any] = MappingProxyType({})
    layout: Mapping[str, Any] | None = None
