"""``wp.hvp``: products of second derivatives with a direction, of whatever a Python function launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..base.errors import KernelGradientError, LaunchError
from ..runtime.array import array
from ..runtime.writes import put_zeros
from .contents import copied, put_value
from .directions import Directions
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
        tangents: the direction: for each input an array of its dtype and shape, or what such an array can be made of;
            None is zero.

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
    before, directions = [x.grad for x in inputs], Directions(graded=True)
    try:
        for x, t in zip(inputs, tangents):
            x.grad = None
            x.requires_grad = True
            if t is not None:
                directions.start(x, t)
        with Tape(checkpoint) as tape, directions.carried():
            end = loss(*inputs)
        if not isinstance(end, array):
            raise KernelGradientError(f"the loss of wp.hvp must be an array of one float, not {type(end).__name__}")
        with _alone(directions, tape, inputs):
            tape.backward(directions.of(end))
        return [x.grad for x in inputs]
    finally:
        for x, grad in zip(inputs, before):
            x.grad = grad


@contextmanager
def _alone(directions: Directions, tape: Tape, inputs: Sequence[array]) -> Iterator[None]:
    """All gradients but those of ``inputs`` and of tangents are zero, and afterwards what they were."""
    ours = {id(a.grad._memory) for a in (*inputs, *[block for _, block, _ in directions.blocks.values()])}
    others = [grad for grad in tape.gradients.values() if id(grad._memory) not in ours]
    kept = [(grad, copied(grad)) for grad in others]
    for grad in others:
        put_zeros(grad)
    try:
        yield
    finally:
        for grad, content in kept:
            put_value(grad, content)
