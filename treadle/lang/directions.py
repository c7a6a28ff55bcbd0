"""Tangents beside all memory that a Python function works on: every launch, copy and write in it carries them along."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from ..base.errors import KernelGradientError, LaunchError
from ..runtime import capture, watch
from ..runtime.array import allocate, array
from ..runtime.elements import element
from ..runtime.writes import put_selected, put_zeros
from ..types.layout import has_floats
from .jvp import Beside, run_beside
from .parts import span_of
from .plan import Plan
from .tape import carry


class Directions:
    """Memory for tangents beside all memory that launches meet, block by block.

    A block of memory that an array owns gets a block of the same size for tangents, which ``graded`` ones have
    gradients of. ``live``: blocks in which tangents may differ from zero.
    """

    def _thread(self) -> object:
        """Another thread's than this, like that of a tape that is busy there: whoever writes tells all that watch, and
        tangents need not hear of it there, as they are asked first (`carry`)."""
        return self

    def __init__(self, graded: bool) -> None:
        self.graded = graded
        self.blocks: dict[int, tuple[Any, array, int]] = {}  # what owns the memory, tangents, where the memory begins
        self.live: set[int] = set()
        self._capture: Any = None  # the capture in which they are carried

    def start(self, x: array, tangent: Any) -> None:
        """Let ``tangent`` be that of ``x``."""
        beside = self.of(x)
        shape = np.shape(tangent.numpy() if isinstance(tangent, array) else tangent)
        if shape != beside.numpy().shape:
            raise LaunchError(f"a tangent has shape {shape}, its array {beside.numpy().shape}")
        beside.assign(tangent)
        self.live.add(id(x._memory))

    def adopt(self, x: array, tangent: array, live: bool) -> None:
        """Let ``tangent``, an array like ``x``, which is all of its memory, hold that of ``x``."""
        self.blocks[id(x._memory)] = x._memory, tangent, x._address
        if live:
            self.live.add(id(x._memory))

    def moves(self, a: array) -> bool:
        """Whether the tangent of ``a`` may differ from zero."""
        return id(a._memory) in self.live

    def of(self, a: array) -> array:
        """The tangent of ``a``."""
        memory = a._memory
        if memory is None:
            raise LaunchError(f"{a!r} does not own its memory, so there is no place for its tangent", hint="clone it")
        known = self.blocks.get(id(memory))
        if known is None:
            size = ctypes.sizeof(memory) if isinstance(memory, ctypes.Array) else memory.nbytes
            with nullcontext() if self._capture is None else self._capture.outside():  # a body may not run, or again
                made = allocate(element(np.uint8), (size,), a.device, self.graded, zeroed=True)
            known = self.blocks[id(memory)] = memory, made, a._address - a._at
        _, block, begin = known
        offset = a._address - begin
        return block._with_grad(lambda b: b._view(a.shape, a.strides, offset, a._element, a.component_stride))

    @contextmanager
    def carried(self) -> Iterator[None]:
        """Every recorded launch and copy of this thread carries tangents from here on."""
        self._capture = capture.here() if capture.active else None
        watch.watch(self)
        try:
            with carry(self):
                yield
        finally:
            watch.leave(self)

    def run(self, plan: Plan, dims: tuple[int, ...], args: list[Any], launch: Any, record: bool) -> None:
        """A launch, with tangents where it meets any."""
        with carry(None):
            self._refuse_held(plan, args)
            beside = Beside(args, plan.types, [p.name for p in plan.kernel.parameters], {})
            live = [path for path, a in beside.arrays.items() if id(a._memory) in self.live]
            if not record or not live:
                watch.run(plan, dims, args, launch, record)
                return
            beside.made = {path: self.of(a) for path, a in beside.arrays.items()}
            # Where a gradient of tangents will be asked for, values that do not move have one, too.
            beside.active = tuple(sorted(beside.arrays if self.graded else {*beside.active, *live}))
            needed = run_beside(plan.kernel, dims, beside, plan.overload.device)
            self.live.update([id(a._memory) for path, a in beside.arrays.items() if path in needed])

    def _refuse_held(self, plan: Plan, args: list[Any]) -> None:
        """Raise if a launch reaches arrays with tangents by memory, where nobody can pass the tangents along."""
        if plan.holders and any(id(a._memory) in self.live for a in plan.held(args)):
            raise KernelGradientError(
                f"kernel {plan.kernel.key} reaches an array that has a tangent through an array of structs",
                hint="pass that array itself",
            )

    def write(self, dest: array, perform: Any, args: tuple, source: array | None) -> None:
        """A write from the host: a copy brings tangents along, a value has none."""
        with carry(None):
            watch.write(dest, perform, args, source)
            if dest._memory is None and perform is put_zeros:  # bytes of which only the address is known
                self._clear(*span_of(dest))
                return
            known = id(dest._memory) in self.live
            if not has_floats(dest.type.elem) or not (
                known or (source is not None and id(source._memory) in self.live)
            ):
                return
            beside = self.of(dest)
            if source is not None:
                self.live.add(id(dest._memory))
                along = self.of(source)
                watch.write(beside, perform, tuple([along if a is source else a for a in args]), along)
            elif perform is put_selected:
                watch.write(beside, perform, (np.zeros_like(args[0]), *args[1:]), None)
            else:
                watch.write(beside, put_zeros, (), None)

    def _clear(self, low: int, high: int) -> None:
        """The tangents of all floats between two addresses are zero now."""
        u8 = element(np.uint8)
        for key in self.live:
            _, block, begin = self.blocks[key]
            first, last = max(low, begin), min(high, begin + block.nbytes)
            if first < last:
                part = block._with_grad(lambda b: b._view((last - first,), (1,), first - begin, u8, 1))  # noqa: B023, used at once
                watch.write(part, put_zeros, (), None)
