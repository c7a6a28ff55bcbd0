"""Usual launches on a GPU in native code: arguments are packed, the grid is found and the driver is called without
Python (``codegen/native/launcher.py`` and ``issue.py``)."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ...types.records import FAULT, GPU, ISSUE, REFUSED, REPORT, Memory
from .. import fast, native
from ..streams import get_stream
from .driver import library
from .launch import LEAST, WAVES

if TYPE_CHECKING:
    from ..launch import Program
    from .gpu import Gpu

_FUNCTIONS = {"push": "cuCtxPushCurrent_v2", "pop": "cuCtxPopCurrent_v2", "launch": "cuLaunchKernel",
              "clear": "cuMemsetD8Async", "copy": "cuMemcpyDtoHAsync_v2", "wait": "cuStreamSynchronize"}  # fmt: skip
_UNBOUNDED = 1 << 30  # threads of a block that nobody halves


class Quick:
    """What native launchers of a GPU are bound to."""

    def __init__(self, device: Gpu):
        self.device = device
        code = native.helper("issue", lambda: native.room().issue_binary())
        self._kept = code, library()
        self.env = fast.environment(code.addresses["treadle_issue"])
        self.record = Memory(GPU)
        for name, function in _FUNCTIONS.items():
            self.record[name] = ctypes.cast(getattr(self._kept[1], function), ctypes.c_void_p).value or 0
        self.record["context"] = int(device.context)
        self._turn = threading.RLock()  # a launch reads the record's stream, and threads may have their own
        self._issues: weakref.WeakKeyDictionary[Any, Memory] = weakref.WeakKeyDictionary()

    def launcher(self) -> fast.Launcher:
        """A new launcher, as :func:`fast.launcher` makes them. The caller asks beforehand whether anybody captures."""
        inner, record, device, turn = fast.launcher(self.env), self.record, self.device, self._turn

        def launch(dim: Any, inputs: Any, outputs: Any) -> Any:
            with turn:
                record["stream"] = get_stream(device).handle
                done = inner(dim, inputs, outputs)
            if type(done) is bytes:
                raise self._error(done)
            return done

        launch.inner = inner  # type: ignore[attr-defined]
        return launch

    def add(self, launch: Any, program: Program, exact: Collection[int]) -> None:
        """Let a launcher use ``program``, if it is one pass that needs no memory beside its arguments and reports
        nothing."""
        entry = program.entry
        if len(entry.passes) != 1 or entry.scratch or entry.meta.get("sites") or program.shared:
            return
        (one,) = entry.passes
        together = one["grid"] == "blocks"
        if one["grid"] != "threads" and not together:
            return
        issue = Memory(ISSUE)
        fields = {
            "gpu": self.record.address, "function": entry.library.addresses[one["entry"]], "threads": one["block"],
            "least": _UNBOUNDED if together else LEAST, "multiprocessors": self.device.sm_count,
            "held": self.device.threads * WAVES, "shared": one.get("shared", 0), "together": int(together),
        }  # fmt: skip
        for name, value in fields.items():
            issue[name] = value
        self._issues[program] = issue
        fast.add(launch.inner, program, exact=exact, entry=issue.address)

    def _error(self, report: bytes) -> Exception:
        at = REPORT["state"]
        state, status = [
            int.from_bytes(report[at + FAULT[f] : at + FAULT[f] + 8], "little") for f in ("state", "value0")
        ]
        if state != REFUSED:
            return fast.error(report)
        return self.device.driver.error("cuLaunchKernel", self.device.driver.enum_of("CUresult", status))
