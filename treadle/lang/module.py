"""Modules: what was written in one Python file. Options are set, and kernels loaded, by module."""

from __future__ import annotations

import sys
from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ..base.config import DeterministicMode, config
from ..base.errors import KernelValueError, LaunchError, LaunchTypeError, TreadleError, alone
from ..base.logs import log_warning
from .blocks import for_blocks, loaded

if TYPE_CHECKING:
    from .function import Function
    from .kernel import Kernel

MODULES: dict[str, Module] = {}

# What has a meaning here, with its default. None: what wp.config says.
OPTIONS: dict[str, Any] = {
    "enable_backward": None,
    "max_unroll": None,
    "mode": None,
    "deterministic": None,
    "fuse_fp": True,  # False: no product fuses with a sum
    "block_dim": 256,
    "gang_width": None,  # beyond Warp: logical threads a gang; None lets wp.config and the processor decide
    "gang_vectors": None,  # beyond Warp: vectors a gang, if nobody chose a width; None is one
}
# Options of the field that change nothing here; accepted so that programs run unchanged. They are for GPUs and for the
# C++ compiler of Warp; results are precise, repeatable and checked alike whatever they say.
ACCEPTED: dict[str, Any] = {
    "fast_math": False, "lineinfo": None, "cuda_output": None, "cpu_compiler_flags": None, "optimization_level": None,
    "compile_time_trace": None, "enable_mathdx_gemm": None, "enable_mathdx_solver": None, "enable_mathdx_fft": None,
    "strip_hash": False, "line_directives": None, "enable_assertions": None,
    "deterministic_max_records": None, "deterministic_debug": None,
}  # fmt: skip
GANGS = {"gang_width": (1, 2, 4, 8, 16, 32, 64), "gang_vectors": (1, 2, 4)}  # what these options may be
_COUNTS = ("max_unroll", "block_dim", "gang_width", "deterministic_max_records")
_RESOLVED = ("mode", "max_unroll", "enable_backward", "deterministic", "deterministic_max_records",
             "deterministic_debug", "optimization_level", "verify_fp", "gang_width")  # by wp.config  # fmt: skip


def check_options(options: Any) -> None:
    """Raise for what options of a module cannot be.

    Raises:
        TypeError: ``options`` is no dict, or an option that counts is no int.
        ValueError: an option that does not exist, or a count that cannot be.
    """
    if not isinstance(options, dict):
        raise LaunchTypeError(f"module_options must be a dict, not {type(options).__name__}")
    for name, value in options.items():
        if name not in OPTIONS and name not in ACCEPTED:
            valid = ", ".join(sorted({*OPTIONS, *ACCEPTED}))
            raise KernelValueError(f"there is no module option {name!r}", hint=f"Valid options: {valid}")
        if name in _COUNTS and value is not None:
            if isinstance(value, bool) or not isinstance(value, int):
                raise LaunchTypeError(f"module option {name!r} must be an int, not {value!r}")
            if value < 0:
                raise KernelValueError(f"module option {name!r} must not be negative, not {value}")
        check_gang(name, value)
        if name == "deterministic" and value is not None and not isinstance(value, DeterministicMode):
            raise KernelValueError(f"module option 'deterministic' must be a DeterministicMode, not {value!r}")


def check_gang(name: str, value: Any) -> None:
    """Raise a KernelValueError if an option of a name says what no gang can be."""
    valid = GANGS.get(name)
    if valid is not None and value is not None and value not in valid:
        raise KernelValueError(f"{name} is one of {', '.join(map(str, valid))}, not {value!r}")


class Module:
    """The kernels, functions, structs and options of one Python module."""

    def __init__(self, name: str):
        self.name = name
        self.options: dict[str, Any] = {**OPTIONS, **ACCEPTED}
        self.kernels: dict[str, Kernel] = {}
        self.functions: dict[str, Function] = {}
        self.structs: dict[str, type] = {}
        self.declared: Counter[str] = Counter()  # how often a struct of a name was: each is a type of its own

    def __repr__(self) -> str:
        return f"<treadle module {self.name}: {len(self.kernels)} kernels>"

    def set_options(self, options: dict[str, Any]) -> None:
        """Merge ``options`` into this module's. A warning tells of names that mean nothing here."""
        for name in options:
            if name not in self.options:
                near = get_close_matches(str(name), self.options, 1)
                meant = f" (did you mean {near[0]!r}?)" if near else ""
                log_warning(f"treadle has no module option {name!r}{meant}; it is kept, and changes nothing", once=True)
        self.options.update(options)
        for kernel in self.kernels.values():
            kernel.forget()

    def load(self, device: Any = None, block_dim: int | None = None) -> Module:
        """Compile every kernel whose argument types are known from its annotations, for blocks of ``block_dim``."""
        load_kernels(for_blocks(self.kernels.values(), block_dim))
        return self

    def unload(self) -> None:
        """Drop the compiled code of all kernels; they compile again when launched."""
        for kernel in self.kernels.values():
            kernel.forget()

    def mark_modified(self) -> None:
        """Let the module's kernels look again at what they are made of, such as variables that have changed, when they
        are launched next."""
        from .function import FUNCTIONS
        from .kernel import KERNELS

        for made in (*KERNELS, *FUNCTIONS):
            if made.module is self:
                made.forget()

    @property
    def execs(self) -> dict[tuple[None, int], Module]:
        """What is loaded, by device context and block size, as tools of the field ask: this module, if it is."""
        return {(None, one.block): self for kernel in self.kernels.values() for one in loaded(kernel)}

    def hash_module(self, block_dim: int | None = None) -> bytes:
        """Stands for what the module's kernels do: their code, all that it reaches, and the options they compile with.

        Equal modules give equal hashes, in other processes too. ``block_dim`` takes the place of the option.
        """
        from .identity import module_digest

        return bytes.fromhex(module_digest(self, self.resolve_options(config, block_dim)))

    def resolve_options(self, settings: Any = config, block_dim: int | None = None) -> dict[str, Any]:
        """The options, those that are left to ``settings`` filled in; ``block_dim`` takes the place of that option."""
        options = {**self.options, **({} if block_dim is None else {"block_dim": block_dim})}
        for name in _RESOLVED:
            if options.get(name) is None:
                options[name] = getattr(settings, name)
        return options

    get_module_hash = hash_module


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
    own = "__main__" if fn.__module__ is None else fn.__module__  # functions made by exec may say none
    return get_module(module or own)


def caller_name(depth: int = 1) -> str:
    """The name of the Python module of the function ``depth`` calls above the caller of this one."""
    return sys._getframe(depth + 1).f_globals.get("__name__", "__main__")


def _caller() -> Module:
    return get_module(caller_name(2))


def set_module_options(options: dict[str, Any], module: Any = None) -> None:
    """Set compile options of ``module`` (a Python module, its name, or a :class:`Module`; default: the calling one).

    Args:
        options: names and values, for example ``{"enable_backward": False}``; others than treadle knows get a warning.
    """
    (_caller() if module is None else _named(module)).set_options(options)


def get_module_options(module: Any = None) -> dict[str, Any]:
    """The compile options of ``module`` (default: the calling one), as a dict that may be read."""
    return (_caller() if module is None else _named(module)).options


def _named(module: Any) -> Module:
    return module if isinstance(module, Module) else get_module(_own_name(module))


def _own_name(module: Any) -> str:
    """How a Python module, or the one known by a name (programs for Warp call treadle's so), calls itself."""
    return getattr(sys.modules.get(module, module) if isinstance(module, str) else module, "__name__", module)


def load_kernels(kernels: list[Kernel], max_workers: int | None = None) -> None:
    """Compile and load ``kernels``, in parallel processes where several are not in the cache.

    Those that cannot be compiled do not keep the others from being loaded; the first error is raised afterwards.
    """
    from .compile import prepare

    overloads, errors = [], []
    for kernel in kernels:
        try:
            overloads += kernel.declared_variants()
        except TreadleError as error:
            errors.append(error)
    errors += prepare(overloads, max_workers)
    if errors:
        first = alone(errors[0])
        for kernel in kernels:
            kernel.forget_failed()
        del kernels, kernel, overloads, errors
        raise first


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
        block_dim: threads in a block, as for :func:`launch`; by default those of what is loaded already.
        recursive: also the modules whose name starts with ``module`` and a dot.
        max_workers: processes that compile at the same time; 0 or 1 for none but this one. None takes
            ``wp.config.compile_workers``.

    Raises:
        LaunchError: ``module`` has no kernels, functions or structs.
        KernelError: a kernel that cannot be compiled. The others are loaded.
    """
    if module is None:
        module = caller_name(1)
    name = module.name if isinstance(module, Module) else _own_name(module)
    own = [module] if isinstance(module, Module) else [MODULES[name]] if name in MODULES else []
    inside = [m for n, m in MODULES.items() if n.startswith(f"{name}.")]
    if not any(m.kernels or m.functions or m.structs for m in own + inside):
        what = "does not contain any Warp kernels, functions, or structs"
        raise LaunchError(f"module {name!r} {what}: there is nothing to compile")
    chosen = own + inside * recursive
    load_kernels(for_blocks([k for m in chosen for k in m.kernels.values()], block_dim), max_workers)


def force_load(
    device: Any = None, modules: list[Any] | None = None, block_dim: int | None = None, max_workers: int | None = None
) -> None:
    """Compile and load the kernels of ``modules`` (default: all) now instead of at their first launch.

    Arguments as for :func:`load_module`.
    """
    chosen = [*MODULES.values()] if modules is None else [_named(m) for m in modules]
    load_kernels(for_blocks([k for m in chosen for k in m.kernels.values()], block_dim), max_workers)
