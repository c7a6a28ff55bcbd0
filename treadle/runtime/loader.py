"""Object code becomes callable: copied into memory where it is laid out already (see ``elf.py``), else by LLVM's
just-in-time linker, used as a loader only."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from ..base.binary import Binary
from ..base.errors import InternalError
from ..base.forks import fresh_lock
from . import system

_lock = fresh_lock(globals())
_jit: Any = None
_serial = itertools.count()


class Library:
    """Loaded code. It stays loaded as long as this object lives; keep it with whatever calls into it."""

    __slots__ = ("_holder", "addresses")

    def __init__(self, holder: Any, addresses: dict[str, int]):
        self._holder, self.addresses = holder, addresses


def linker() -> Any:
    """The one linker of the process. It is never freed: workers may be inside its code when the interpreter ends."""
    global _jit
    if _jit is None:
        with _lock:
            if _jit is None:
                import llvmlite.binding as llvm

                llvm.initialize_native_target()
                llvm.initialize_native_asmprinter()
                made = llvm.create_lljit_compiler()
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
                _jit = made
    return _jit


@cache
def symbol_address(name: str) -> int:
    """The address of a function of Python or of the C library of this process.

    Raises:
        InternalError: there is no function of that name.
    """
    for library in (ctypes.pythonapi, system.c_library()):
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    raise InternalError(f"no function {name!r} in this process")


def link(binary: Binary) -> Library:
    """Load ``binary`` and find its entry points.

    Raises:
        InternalError: the code asks for a symbol that nobody provides, or the system lets no new code run.
    """
    return _linked(binary) if binary.layout is None else _copied(binary.code, binary.layout)


def _copied(code: bytes, layout: dict[str, Any]) -> Library:
    """Code that is laid out: its pages are filled, then made executable and read-only, except those of variables."""
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, "prot": mmap.PROT_READ | mmap.PROT_WRITE}
    memory = mmap.mmap(-1, layout["size"], **private)
    memory[: len(code)] = code
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for at, what in layout["words"]:
        struct.pack_into("<Q", memory, at, symbol_address(what) if isinstance(what, str) else address + what)
    if _protect()(address, layout["writable"], mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise InternalError("the system does not let this process run code that it made")
    return Library(memory, {name: address + offset for name, offset in layout["symbols"].items()})


@cache
def _protect() -> Callable[[int, int, int], int]:
    """int mprotect(void *, size_t, int)"""
    function = system.c_library().mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function


def _linked(binary: Binary) -> Library:
    """An object file, by LLVM's linker."""
    jit = linker()
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(binary.code).add_current_process()
    for name in binary.imports:
        builder.import_symbol(name, symbol_address(name))
    for name in binary.symbols:
        builder.export_symbol(name)
    try:
        tracker = builder.link(jit, f"treadle{next(_serial)}")
    except RuntimeError as error:
        raise InternalError(f"cannot load code of {', '.join(binary.symbols)}: {error}") from None
    return Library(tracker, {name: tracker[name] for name in binary.symbols})
