"""LLVM as every target uses it: verified modules, and target machines made once a process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from ..base.errors import InternalError

Code = TypeVar("Code", str, bytes)

# Steps of code generation that take a quarter of its time and that long straight code is no faster for: moving values
# into the branches that use them (which makes it slower, as it lengthens the lives of their arguments), scheduling once
# more behind register allocation, and looking for common values again. Scheduling before it stays, and so does
# splitting the lives of values by regions: without both a step of a robot arm takes a twentieth longer. But regions
# need not grow over hundreds of blocks, which takes a quarter again. By each option what it is without polish, and
# usually.
_POLISH = {
    "disable-machine-sink": (1, 0), "disable-post-ra": (1, 0), "disable-machine-cse": (1, 0),
    "grow-region-complexity-budget": (50, 10000),
}  # fmt: skip
# Pointers that loops count up in place of indices: the emitter has made them where they pay (`emit.address`).
_POINTERS = {"disable-lsr": (1, 0)}
_options = threading.Lock()


def parse(text: str) -> Any:
    """A verified module. LLVM ends the process on malformed code that reaches its back ends, so nothing goes
    unverified."""
    import llvmlite.binding as llvm

    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"the emitter wrote text that LLVM rejects: {error}") from None
    return module


def head(triple: str) -> str:
    """What a module for ``triple`` begins with. On Windows code that uses floats says so by a symbol that only C's
    own library has, to which kernels are not linked: there each module brings it along."""
    own = "@_fltused = weak_odr global i32 0\n" if "windows" in triple else ""
    return f'target triple = "{triple}"\n{own}'


def llvm_version() -> str:
    """The version of the code generator's library, for cache keys."""
    import llvmlite

    return llvmlite.__version__


def library_version() -> str:
    """The version of LLVM itself, ``major.minor.patch``."""
    import llvmlite.binding as llvm

    return ".".join(map(str, llvm.llvm_version_info))


@cache
def target_machine(triple: str, cpu: str, features: str = "", level: int = 2) -> Any:
    """What generates code for a processor, by LLVM's words for it. ``level``: 0 is quick, 2 for code that is hot."""
    import llvmlite.binding as llvm

    if triple == llvm.get_process_triple():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default")


def emitted(emit: Callable[[Any], Code], module: Any, plain: bool = False, pointers: bool = True) -> Code:
    """What ``emit``, a method of a target machine, makes of ``module``. ``plain``: without polish, which LLVM has as
    options of the whole process; so they are set for this call alone, and no other thread emits meanwhile.
    ``pointers``: whether loops count pointers up where LLVM would."""
    options = {**(_POLISH if plain else {}), **({} if pointers else _POINTERS)}
    with _options:
        _set(options, 0)
        try:
            return emit(module)
        finally:
            _set(options, 1)


def _set(options: dict[str, tuple[int, int]], which: int) -> None:
    if options:
        import llvmlite.binding as llvm

        for name, values in options.items():
            llvm.set_option("treadle", f"-{name}={values[which]}")
