"""Modules: what was written in one Python file. Options are set, and kernels loaded, by module."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .function import Function
    from .kernel import Kernel

MODULES: dict[str, Module] = {}

OPTIONS: dict[str, Any] = {
    "enable_backward": None,  # None: what wp.config says
    "max_unroll": None,
    "mode": None,
    "fuse_fp": True,  # False: no product fuses with a sum
    "fast_math": False,  # this and the next two: for GPUs; results here do not depend on them
    "lineinfo": None,
    "block_dim": 256,
    "gang_width": None,  # beyond Warp: logical threads a gang; None lets wp.config and the processor decide
}
# Options of the field that change nothing on this target; accepted so that programs run unchanged.
ACCEPTED = frozenset({
    "cuda_output", "cpu_compiler_flags", "optimization_level", "compile_time_trace", "enable_mathdx_gemm",
    "enable_mathdx_solver", "enable_mathdx_fft", "strip_hash", "line_directives", "enable_assertions",
    "deterministic", "deterministic_max_records", "deterministic_debug",
})  # fmt: skip


class Module:
    """The kernels, functions and options of one Python module."""

    def __init__(self, name: str):
        self.name = name
        self.options: dict[str, Any] = dict(OPTIONS)
        self.kernels: dict[str, Kernel] = {}
        self.functions: dict[str, Function] = {}
        self.structs: dict[str, type] = {}

    def __repr__(self) -> str:
        return f"<treadle module {self.name}: {len(self.kernels)} kernels>"

    def set_options(self, options: dict[str, Any]) -> None:
        """Merge ``options`` into this module's; unknown names raise KeyError."""
        for name, value in options.items():
            if name not in OPTIONS and name not in ACCEPTED:
                raise KeyError(f"module option {name!r} does not exist; there are {', '.join(sorted(OPTIONS))}")
            self.options[name] = value
        for kernel in self.kernels.values():
            kernel.forget()

    def load(self, device: Any = None, block_dim: int | None = None) -> Module:
        """Compile every kernel whose argument types are known from its annotations."""
        load_kernels(list(self.kernels.values()))
        return self

    def unload(self) -> None:
        """Drop the compiled code of all kernels; they compile again when launched."""
        for kernel in self.kernels.values():
            kernel.forget()


def get_module(name: str) -> Module:
    """The treadle module of the Python module called ``name``, made when first asked for."""
    found = MODULES.get(name)
    if found is None:
        found = MODULES[name] = Module(name)
    return found


def module_of(fn: Any, module: Module | str | None) -> Module:
    """The module a decorator puts ``fn`` into: the one given, or that of its Python module."""
    if isinstance(module, Module):
        return module
    if module == "unique":
        return Module(f"{fn.__module__}.{fn.__qualname__}")
    return get_module(module or fn.__module__)


def caller_name(depth: int = 1) -> str:
    """The name of the Python module of the function ``depth`` calls above the caller of this one."""
    return sys._getframe(depth + 1).f_globals.get("__name__", "__main__")


def _caller() -> Module:
    return get_module(caller_name(2))


def set_module_options(options: dict[str, Any], module: Any = None) -> None:
    """Set compile options of ``module`` (a Python module, default: the calling one).

    Args:
        options: names and values, for example ``{"enable_backward": False}``.
        module: a Python module or its name.

    Raises:
        KeyError: an option that does not exist.
    """
    target = _caller() if module is None else get_module(module if isinstance(module, str) else module.__name__)
    target.set_options(options)


def get_module_options(module: Any = None) -> dict[str, Any]:
    """The compile options of ``module`` (default: the calling one), as a dict that may be read."""
    target = _caller() if module is None else get_module(module if isinstance(module, str) else module.__name__)
    return target.options


def load_kernels(kernels: list[Kernel]) -> None:
    """Compile and load ``kernels``, in parallel processes where several are not in the cache."""
    from .compile import prepare

    prepare([v for kernel in kernels for v in kernel.declared_variants()])


def load_module(
    module: Any = None,
    device: Any = None,
    recursive: bool = False,
    block_dim: int | None = None,
    max_workers: int | None = None,
) -> None:
    """Compile and load the kernels of ``module`` now instead of at their first launch.

    Args:
        module: a Python module, its name, or a :class:`Module`; default the calling one.
        device: accepted for the field's sake; code is loaded for every device that runs it.
        recursive: also the modules whose name starts with ``module`` and a dot.
    """
    if module is None:
        target = _caller()
    elif isinstance(module, Module):
        target = module
    else:
        target = get_module(module.__name__ if isinstance(module, types.ModuleType) else module)
    chosen = [target] + ([m for n, m in MODULES.items() if n.startswith(target.name + ".")] if recursive else [])
    load_kernels([k for m in chosen for k in m.kernels.values()])


def force_load(
    device: Any = None, modules: list[Any] | None = None, block_dim: int | None = None, max_workers: int | None = None
) -> None:
    """Compile and load the kernels of ``modules`` (default: all) now instead of at their first launch."""
    if modules is None:
        chosen = list(MODULES.values())
    else:
        chosen = [m if isinstance(m, Module) else get_module(getattr(m, "__name__", m)) for m in modules]
    load_kernels([k for m in chosen for k in m.kernels.values()])
