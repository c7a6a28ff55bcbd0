"""``import warp`` gives treadle: a finder that answers for the name ``warp`` and every submodule of it."""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_ALIAS = "warp"
_OURS = __name__.partition(".")[0]


def install_as_warp() -> None:
    """Let ``import warp`` in this process give treadle, submodules and ``warp._src`` included.

    Raises:
        RuntimeError: NVIDIA Warp itself is already imported.

    >>> import treadle
    >>> treadle.install_as_warp()
    >>> import warp, warp.utils
    >>> warp is treadle and warp.utils is treadle.utils
    True
    """
    ours = sys.modules[_OURS]
    if sys.modules.get(_ALIAS, ours) is not ours:
        raise RuntimeError("NVIDIA Warp is already imported in this process")
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # first, because a path finder would load files of treadle once more


class _Finder(MetaPathFinder):
    """Finds ``warp.X`` where treadle has ``X``, and private ``warp._src.X`` in the room ``compat``."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if top != _ALIAS:
            return None
        module = _module(rest)
        return ModuleSpec(fullname, _Loader(module), is_package=hasattr(module, "__path__"))


def _module(rest: str) -> ModuleType:
    """The module of treadle that ``warp.rest`` means.

    Raises:
        ModuleNotFoundError: there is none; the message says why.
    """
    parts = rest.split(".") if rest else []
    if parts[:1] == ["_src"]:
        parts[0] = "compat"
    name = ".".join([_OURS, *parts])
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # something else is missing inside a module of ours
    found: Any = importlib.import_module(_OURS)
    for part in parts:
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise ModuleNotFoundError(f"no module {_ALIAS}.{rest}: {error}", name=f"{_ALIAS}.{rest}") from None
    if not isinstance(found, ModuleType):
        raise ModuleNotFoundError(f"{_ALIAS}.{rest} is no module", name=f"{_ALIAS}.{rest}")
    return found


class _Loader(Loader):
    """Hands over a module that is loaded already, and gives it back the spec that the import system replaces."""

    def __init__(self, module: ModuleType):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec
