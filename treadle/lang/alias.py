"""``import warp`` gives treadle: a finder that answers for the name ``warp`` and every submodule of it."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_ALIAS = "warp"
_OURS = __name__.partition(".")[0]
_STANDIN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "standin")
_MATERIAL = ("examples", "tests")  # programs that come with Warp and, being programs, run here too


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
        if rest.partition(".")[0] in _MATERIAL:
            installed = _beside(fullname)
            if installed is not None:
                return installed
        module = _module(rest)
        return ModuleSpec(fullname, _Loader(module), is_package=hasattr(module, "__path__"))


def _beside(fullname: str) -> ModuleSpec | None:
    """What ``fullname`` is in the package of NVIDIA Warp, where that is installed; Warp itself is not imported."""
    whole = PathFinder.find_spec(_ALIAS, [path for path in sys.path if path != _STANDIN])
    if whole is None or not whole.submodule_search_locations:
        return None
    *parents, _ = fullname.split(".")[1:]
    return PathFinder.find_spec(fullname, [os.path.join(p, *parents) for p in whole.submodule_search_locations])


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
            found = _inside(found, part)
        except AttributeError as error:
            raise ModuleNotFoundError(f"no module {_ALIAS}.{rest}: {error}", name=f"{_ALIAS}.{rest}") from None
    if not isinstance(found, ModuleType):
        raise ModuleNotFoundError(f"{_ALIAS}.{rest} is no module", name=f"{_ALIAS}.{rest}")
    return found


def _inside(module: Any, part: str) -> Any:
    """What is called ``part`` in a module: an attribute, or a module below it under another name than ours."""
    try:
        return getattr(module, part)
    except AttributeError:
        try:
            return importlib.import_module(f"{module.__name__}.{part}")
        except ModuleNotFoundError:
            pass
        raise


class _Loader(Loader):
    """Hands over a module that is loaded already, and gives it back the spec that the import system replaces."""

    def __init__(self, module: ModuleType):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec
