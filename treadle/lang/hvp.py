"""``wp.hvp``: products of second derivatives with a direction, of whatever a Python function launches."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..base.errors import KernelGradientError, LaunchError
from ..runtime import watch
from ..runtime.array import allocate, array
from ..runtime.elements import element
from ..runtime.writes import put_zeros
from ..types.layout import has_floats
from .contents import copied, put_value
from .jvp import Beside, run_beside
from .plan import Plan
from .tape import Tape


def hvp(
    loss: Callable[..., array], inputs: Sequence[array], tangents: Sequence[Any], checkpoint: int | str = "all"
) -> list[array]:
    """The Hessian of a scalar times a direction: forward over reverse. Beyond Warp.

    ``loss`` is called once, under a tape; every launch and copy in it carries tangents, and is gone back through. The
    cost is a few evaluations of the gradient, whatever the number of inputs.

    Args:
        loss: called with ``inputs``; launches kernels and returns an array of one float. Arrays may be stepped in
            place; ``inputs`` hold afterwards what ``loss`` left in them.
        inputs: arrays of floats.
        tangents: the direction: for each input an array of its dtype and shape, or what such an array can be made of.

    Returns: for each input the product, a new array. Gradients of arrays stay as they are.

    Raises:
        KernelGradientError: something on the way has no derivative; the loss is no scalar; ``tape.record_func`` or
            another tape is at work.
        LaunchError: an array works on memory that it does not own.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def cubes(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     wp.atomic_add(total, 0, x[i] * x[i] * x[i])
    >>> def loss(x):
    ...     total = wp.zeros(1, dtype=float)
    ...     wp.launch(cubes, dim=len(x), inputs=[x], outputs=[total])
    ...     return total
    >>> (hv,) = wp.hvp(loss, [wp.array([1.0, 2.0], dtype=float)], [[1.0, 10.0]])
    >>> hv.list()
    [6.0, 120.0]
    """
    if len(inputs) != len(tangents):
        raise LaunchError(f"wp.hvp was given {len(inputs)} inputs and {len(tangents)} tangents")
    before, directions = [x.grad for x in inputs], Directions()
    try:
        for x, t in zip(inputs, tangents):
            x.grad = None
            x.requires_grad = True
            directions.start(x, t)
        with Tape(checkpoint) as tape, directions.carried():
            end = loss(*inputs)
        if not isinstance(end, array):
            raise KernelGradientError(f"the loss of wp.hvp must be an array of one float, not {type(end).__name__}")
        with directions.alone(tape, inputs):
            tape.backward(directions.of(end))
        return [x.grad for x in inputs]
    finally:
        for x, grad in zip(inputs, before):
            x.grad = grad


class Directions:
    """Memory for tangents beside all memory that launches meet, block by block.

    A block of memory that an array owns gets a block of the same size for tangents, and one for their gradients.
    ``live``: blocks in which tangents may differ from zero.
    """

    def __init__(self) -> None:
        self.blocks: dict[int, tuple[Any, array]] = {}
        self.live: set[int] = set()
        self.inside = False  # whether what happens is our own doing

    def start(self, x: array, tangent: Any) -> None:
        """Let ``tangent`` be that of ``x``."""
        beside = self.of(x)
        shape = np.shape(tangent.numpy() if isinstance(tangent, array) else tangent)
        if shape != beside.numpy().shape:
            raise LaunchError(f"a tangent has shape {shape}, its array {beside.numpy().shape}")
        beside.assign(tangent)
        self.live.add(id(x._memory))

    def of(self, a: array) -> array:
        """The tangent of ``a``, which keeps a gradient."""
        memory = a._memory
        if memory is None:
            raise LaunchError(f"{a!r} does not own its memory; wp.hvp has no place for its tangent", hint="clone it")
        known = self.blocks.get(id(memory))
        if known is None:
            size = ctypes.sizeof(memory) if isinstance(memory, ctypes.Array) else memory.nbytes
            known = self.blocks[id(memory)] = memory, allocate(element(np.uint8), (size,), a.device, True, zeroed=True)
        return known[1]._with_grad(lambda b: b._view(a.shape, a.strides, a._at, a._element, a.component_stride))

    @contextmanager
    def carried(self) -> Iterator[None]:
        """Every recorded launch and copy carries tangents from here on."""
        hooks = watch.launch, watch.run, watch.write
        watch.launch, watch.run, watch.write = _slowly, self._hook(hooks[1], self.run), self._hook(hooks[2], self.write)
        try:
            yield
        finally:
            watch.launch, watch.run, watch.write = hooks

    @contextmanager
    def alone(self, tape: Tape, inputs: Sequence[array]) -> Iterator[None]:
        """All gradients but those of ``inputs`` and of tangents are zero, and afterwards what they were."""
        ours = {id(a.grad._memory) for a in (*inputs, *[block for _, block in self.blocks.values()])}
        others = [grad for grad in tape.gradients.values() if id(grad._memory) not in ours]
        kept = [(grad, copied(grad)) for grad in others]
        for grad in others:
            put_zeros(grad)
        try:
            yield
        finally:
            for grad, content in kept:
                put_value(grad, content)

    def _hook(self, tell: Callable[..., None], ours: Callable[..., None]) -> Callable[..., None]:
        def hook(*given: Any) -> None:
            if self.inside:
                return tell(*given)
            self.inside = True
            try:
                return ours(tell, *given)
            finally:
                self.inside = False

        return hook

    def run(self, tell: Callable[..., None], plan: Plan, dims: tuple[int, ...], args: list[Any],
            launch: Callable[[], None], record: bool) -> None:  # fmt: skip
        """A launch, with tangents where it meets any."""
        beside = Beside(args, plan.types, [p.name for p in plan.kernel.parameters], {})
        live = [path for path, a in beside.arrays.items() if id(a._memory) in self.live]
        if not live or not record:
            return tell(plan, dims, args, launch, record)
        beside.made = {path: self.of(a) for path, a in beside.arrays.items()}
        beside.active = tuple(sorted({*beside.active, *live}))
        needed = run_beside(plan.kernel, dims, beside, plan.overload.device)
        self.live.update([id(a._memory) for path, a in beside.arrays.items() if path in needed])
        return None

    def write(self, tell: Callable[..., None], dest: array, perform: Callable[..., None], args: tuple,
              source: array | None) -> None:  # fmt: skip
        """A write from the host: a copy brings tangents along, a value has none."""
        tell(dest, perform, args, source)
        if not has_floats(dest.type.elem):
            return
        if source is not None and id(source._memory) in self.live:
            self.live.add(id(dest._memory))
            along = self.of(source)
            tell(self.of(dest), perform, tuple([along if a is source else a for a in args]), along)
        elif id(dest._memory) in self.live:
            tell(self.of(dest), put_zeros, (), None)


def _slowly(*launch: Any) -> Any:
    """No launch goes the quick way."""
    return NotImplemented
