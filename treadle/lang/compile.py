"""The whole compiler on one screen: a user's function becomes machine code, or comes out of the cache.

An :class:`Overload` is a kernel for one list of argument types, a :class:`Variant` one machine-code form of it: for one
gang width, with or without checks, for wide or any grids.
"""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.binary import Binary
from ..base.config import config
from ..base.digest import digest
from ..base.errors import LaunchError
from ..base.target import Target
from ..ir.node import Func
from ..runtime import cache as disk
from ..runtime.device import get_device
from ..runtime.launch import Program
from ..types.core import Type
from .manifest import Unknown, code_digest, holds, node_of, types_text
from .natives import install

if TYPE_CHECKING:
    from .kernel import Kernel

_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class Options:
    """What one variant is compiled for. ``rows``: gangs lie along the last axis of a grid that is wide enough."""

    max_unroll: int
    checked: bool
    rows: bool
    width: int

    def key(self) -> str:
        return f"unroll{self.max_unroll} {'checked' if self.checked else ''} {'rows' if self.rows else ''}"


def build(kernel: Kernel, types: tuple[Type, ...], options: Options, target: Target) -> tuple[Binary, Any]:
    """User function in, machine code out; with it the node of what it depended on (None if that cannot be kept)."""
    from ..codegen import cpu
    from ..frontend.names import Manifest
    from ..frontend.parse import parse
    from ..ir.effects import effects
    from ..ir.show import show
    from ..passes.pipeline import LOWER, NORMALIZE, run

    manifest = Manifest()
    func = parse(kernel.source, types, options, "kernel", manifest=manifest, name=kernel.key)
    func = run(LOWER, run(NORMALIZE, func))
    found = effects(func)
    key = digest(compiler_version(), show(func), places(func), target.key(), options.key())
    binary = disk.load(key)
    if binary is None:
        made = cpu.build(func, target, cpu.Options(options.rows, options.checked, found.order))
        made.meta.update(rank=func.facts.get("ndim", 0), bounded=found.bounded, own_index=own_index(func, found.unconditional))
        binary = disk.store(key, made)
    try:
        return binary, (node_of(kernel.source, manifest), key)
    except Unknown:
        return binary, None


def compiled(kernel: Kernel, types: tuple[Type, ...], options: Options) -> Binary:
    """The code of a variant: by its short key and manifest if those are known, else by building it."""
    target = host(options.width)
    try:
        short = digest(compiler_version(), code_digest(kernel.source), types_text(types), target.key(), options.key())
    except Unknown:
        short = None
    if short is not None:
        for node, key in disk.manifests(short):
            if holds(node, kernel.source):
                binary = disk.load(key)
                if binary is not None:
                    return binary
    with collector_off():
        binary, kept = build(kernel, types, options, target)
    if short is not None and kept is not None:
        disk.add_manifest(short, *kept)
    return binary


class Variant:
    """One machine-code form of an overload, ready to launch: ``program`` is what the runtime runs."""

    __slots__ = ("options", "program")

    def __init__(self, kernel: Kernel, types: tuple[Type, ...], options: Options, ndim: int):
        install()
        binary = compiled(kernel, types, options)
        rank = binary.meta["rank"]
        entry = get_device().load(binary)
        names = [p.name for p in kernel.parameters]
        low, high, grid = 0, 2**31 - 1, 0
        if rank > 1:
            low, high, grid = (options.width, high, ndim) if options.rows else (low, options.width - 1 if ndim > 1 else high, ndim)
        self.options = options
        self.program = Program(entry, types, kernel.key, names, options.checked, grid, low, high)


class Overload:
    """A kernel for one list of argument types, with the variants compiled so far."""

    __slots__ = ("_kernel", "types", "variants")

    def __init__(self, kernel: Kernel, types: tuple[Type, ...]):
        self._kernel, self.types = kernel, types
        self.variants: dict[tuple[bool, bool, int, int], Variant] = {}

    def variant(self, dims: tuple[int, ...], checked: bool | None = None) -> Variant:
        """The variant for a grid of ``dims``, compiled when first asked for."""
        kernel = self._kernel
        width = kernel.option("gang_width") or config.gang_width or native_width()
        if checked is None:
            checked = (kernel.option("mode") or config.mode) == "debug"
        ndim = len(dims)
        rows = ndim > 1 and dims[-1] >= width
        key = (rows, checked, width, ndim)
        found = self.variants.get(key)
        if found is None:
            with _lock:
                found = self.variants.get(key)
                if found is None:
                    unroll = kernel.option("max_unroll")
                    options = Options(config.max_unroll if unroll is None else unroll, checked, rows, width)
                    found = self.variants[key] = Variant(kernel, self.types, options, ndim)
                    rank = found.program.entry.meta["rank"]
                    if 1 < rank < ndim:
                        del self.variants[key]
                        raise LaunchError(f"kernel {kernel.key} asks for {rank} thread indices, the launch has {ndim} dimensions")
        return found

    def usual_variant(self) -> Any:
        """A function that compiles the variant of a plain launch."""
        return lambda: self.variant((1,))


def prepare(variants: list[Any]) -> None:
    """Compile and load several variants."""
    for make in variants:
        make()


def own_index(func: Func, unconditional: Any) -> list[dict[str, Any]]:
    """The accesses that a launch checks once, as the runtime reads them."""
    from ..ir.effects import leaf_paths
    from ..types.layout import leaves

    paths, found = leaf_paths(func), []
    where = [[k, *leaf.path] for k, t in enumerate(func.signature) for leaf in leaves(t)]
    for root, axis, kind, n in unconditional:
        place = {"path": where[paths.index(root)], "axis": axis, "array": root}
        rank = func.facts.get("ndim", 0)
        found.append({**place, "grid": n if rank > 1 else -1} if kind == "tid" else {**place, "index": n})
    return found


def places(func: Func) -> str:
    """The places of all operations, which faults are reported at; part of the key, since the text leaves them out."""
    from ..ir.walk import callees, ops_of

    spans = {(op.span.file, op.span.line, op.span.column) for f in (*callees(func), func) for op in ops_of(f.body)}
    return repr(sorted(spans))


@cache
def native_width() -> int:
    """The gang width that suits this processor."""
    return host(None).width


@cache
def host(width: int | None) -> Target:
    """This machine as a target of gangs of ``width``."""
    from ..codegen.cpu import host_target

    return host_target(width)


@cache
def compiler_version() -> str:
    """Stands for the compiler in cache keys: the sizes and times of its source files, and LLVM's version."""
    from ..codegen.cpu import llvm_version

    package = Path(__file__).parent.parent
    parts = [llvm_version()]
    for room in ("types", "ir", "builtins", "builtins/elementary", "frontend", "passes", "codegen", "codegen/emit", "lang"):
        for path in sorted((package / room).glob("*.py")):
            facts = path.stat()
            parts.append(f"{path.name} {facts.st_size} {facts.st_mtime_ns}")
    return digest(*parts)


@contextmanager
def collector_off():
    """Python's cycle collector costs a fifth of a compile and finds nothing there."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
