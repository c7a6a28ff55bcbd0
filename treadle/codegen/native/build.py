"""Text becomes a Binary: LLVM parses, verifies, optimises a little and emits an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.binary import Binary
from ...types.core import Scalar
from ..llvm import emitted, head, parse, target_machine
from . import transfers
from .clear import clear
from .driver import driver
from .ffi import ffi
from .ffi_gpu import ffi_gpu
from .graph import graph
from .issue import ISSUE_SYMBOLS, issue
from .launcher import launcher
from .merge import fold, merge
from .pieces import pieces
from .pool import pool
from .system import interrupt
from .twin import twin

DRIVER_SYMBOLS = ("treadle_drive", "treadle_worker", "treadle_set_workers", "interrupted", "listen", "unlisten",
                  "run_tasks", "try_lock", "unlock")  # fmt: skip
GRAPH_SYMBOLS = ("treadle_replay", "treadle_launch_graph", "treadle_move", "treadle_zero", "treadle_spread",
                 "treadle_sum")  # fmt: skip
FFI_SYMBOLS = ("treadle_ffi", "treadle_batch", "treadle_target")
FFI_GPU_SYMBOLS = ("treadle_ffi", "treadle_target")
PIECES_SYMBOLS = ("treadle_exchange", "treadle_keep", "treadle_put", "treadle_swap")


def _machine(level: int) -> Any:
    import llvmlite.binding as llvm

    return target_machine(llvm.get_process_triple(), llvm.get_host_cpu_name(), level=level)


def build(text: str, symbols: tuple[str, ...], level: int) -> Binary:
    """The object code of ``text`` for this machine.

    ``level``: 0 generates code five times faster than 2, good for helpers that only steer; 2 is for what is hot.
    """
    import llvmlite.binding as llvm

    machine = _machine(level)
    module = parse(head(machine.triple) + text)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0)))
    return Binary(emitted(machine.emit_object, module), symbols)


def triple() -> str:
    """LLVM's name for this machine and its system."""
    return _machine(0).triple


def driver_binary() -> Binary:
    """The worker pool and the launch driver."""
    t = triple()
    return build(interrupt(t) + pool(t) + driver(), DRIVER_SYMBOLS, 0)


def merge_binary(op: str, t: Scalar) -> Binary:
    """The function that merges private values of ``op`` over ``t``; its symbol is ``treadle_merge``."""
    return build(merge(op, t, "treadle_merge"), ("treadle_merge",), 2)


def fold_binary(t: Scalar) -> Binary:
    """The function that adds up the slots of ``t``; its symbol is ``treadle_fold``."""
    return build(fold(t, "treadle_fold"), ("treadle_fold",), 2)


def pieces_binary() -> Binary:
    """The functions that put pieces of memory aside and exchange them."""
    return build(pieces(), PIECES_SYMBOLS, 2)


def graph_binary() -> Binary:
    """The function that replays graphs, and what their entries call."""
    return build(graph(), GRAPH_SYMBOLS, 2)


def ffi_binary(layout: Mapping[str, int]) -> Binary:
    """A handler of XLA's foreign function interface."""
    return build(ffi(layout, triple()), FFI_SYMBOLS, 2)


def ffi_gpu_binary(layout: Mapping[str, int]) -> Binary:
    """A handler that XLA calls to give work to a GPU."""
    return build(ffi_gpu(layout), FFI_GPU_SYMBOLS, 0)


def launcher_binary() -> Binary:
    """The native launcher, ``treadle_launch``, what makes arrays like others, ``treadle_twin``, and what clears them,
    ``treadle_clear``."""
    text = launcher("treadle_launch") + twin("treadle_twin") + clear("treadle_clear")
    return build(text, ("treadle_launch", "treadle_twin", "treadle_clear"), 2)


def issue_binary() -> Binary:
    """What gives a kernel to a stream of a GPU."""
    return build(issue(), ISSUE_SYMBOLS, 2)


def transfers_binary() -> Binary:
    """What a GPU does with bytes besides plain copies, as PTX for any GPU."""
    return _ptx(transfers.entries(), transfers.names())


def condition_binary() -> Binary:
    """What sets a condition of a graph, as PTX for any GPU."""
    return _ptx(transfers.condition(), ("treadle_condition",))


def _ptx(text: str, symbols: tuple[str, ...]) -> Binary:
    from ..nvptx import compile_text, target

    oldest = target()
    return Binary(compile_text(f'target triple = "{oldest.triple}"\n{text}', oldest), symbols)
