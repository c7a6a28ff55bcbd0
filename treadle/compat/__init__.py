"""Warp's private names, for programs that import them: ``warp._src.X`` is ``treadle.compat.X``.

This room re-exports and never computes. A name that has a meaning without Warp's implementation is found where treadle
has it. A name that only Warp's own machinery gives a meaning (its writer of C++ text, its native library) can be
imported too, so that a program runs as far as it does not use it; any use raises AttributeError and says why.
"""

from __future__ import annotations

import importlib
from typing import Any

MODULES = (
    "autograd", "build", "builtins", "codegen", "constants", "context", "deterministic", "dlpack", "jax", "jax.ffi",
    "lang", "logger", "sparse", "tape", "thirdparty.appdirs", "torch", "types", "utils",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in {module.partition(".")[0] for module in MODULES}:
        raise AttributeError(f"treadle answers for no private module {name!r} of Warp")
    return importlib.import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({module.partition(".")[0] for module in MODULES})
