"""Object code becomes callable: LLVM's just-in-time linker, used as a loader only."""

from __future__ import annotations

import ctypes
import itertools
import threading
from typing import Any

from ..base.binary import Binary
from ..base.errors import InternalError
from . import system

_lock = threading.Lock()
_jit: Any = None
_serial = itertools.count()


class Library:
    """Loaded object code. It stays loaded as long as this object lives; keep it with whatever calls into it."""

    __slots__ = ("_tracker", "addresses")

    def __init__(self, tracker: Any, symbols: tuple[str, ...]):
        self._tracker = tracker
        self.addresses: dict[str, int] = {name: tracker[name] for name in symbols}


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
        InternalError: the code asks for a symbol that nobody provides.
    """
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
    return Library(tracker, binary.symbols)
