"""Stochastic gradient descent with momentum (Sutskever et al., On the importance of initialization and momentum in deep
learning, ICML 2013), in the form that PyTorch gave it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as wp

from .optimizer import Optimizer, numbers, of_kind, require


class SGD(Optimizer):
    """Gradient descent: the parameters go against their gradients, which momentum carries on from step to step.

    Args:
        params: arrays of floats, or of vectors, quaternions or matrices of floats; see :meth:`set_params`.
        lr: how far to go, in units of the direction.
        momentum: how much of the direction before is kept, 0 to 1.
        dampening: how much of a gradient is left out of the direction, from the second step on.
        weight_decay: this times the parameter is added to its gradient, as the square of its length would have it.
        nesterov: look ahead: go along the direction after this step, not before.

    Raises:
        ValueError: a rate, momentum or decay less than 0, or ``nesterov`` without momentum.

    >>> import treadle as wp
    >>> p = wp.array([1.0, 2.0], dtype=float)
    >>> wp.optim.SGD([p], lr=0.5).step([wp.array([1.0, -1.0], dtype=float)])
    >>> p.list()
    [0.5, 2.5]
    """

    STATES = ("b",)

    def __init__(
        self, params: Sequence[wp.array] | None = None, lr: float = 0.001, momentum: float = 0.0,
        dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False,
    ):  # fmt: skip
        require("SGD", lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and not momentum:
            raise ValueError("wp.optim.SGD: nesterov looks ahead along the momentum, so that must not be 0")
        self.lr, self.momentum, self.dampening = lr, momentum, dampening
        self.weight_decay, self.nesterov = weight_decay, nesterov
        self.b: list[wp.array] = []  # the direction of each parameter
        super().__init__(params)

    def _advance(self, p: wp.array, g: wp.array, count: wp.array, *states: wp.array) -> None:
        (b,) = states
        ahead, along = (1.0, self.momentum) if self.nesterov else (0.0, 1.0)
        if not self.momentum:
            ahead, along = 1.0, 0.0  # the direction is the gradient itself, whatever the dampening
        scales = numbers(p, self.lr, self.weight_decay, self.momentum, 1.0 - self.dampening, ahead, along)
        wp.map(of_kind(p.type.elem, _number, _line, _table), g, b, p, count, *scales, out=[b, p])


@wp.func
def _number(g: Any, b: Any, p: Any, count: int, lr: Any, decay: Any, kept: Any, taken: Any, ahead: Any, along: Any):
    whole = type(b)(g) + decay * type(b)(p)
    direction = whole
    if count > 0:  # the first direction is the gradient, whatever was there
        direction = kept * b + taken * whole
    return direction, type(p)(type(b)(p) - lr * (ahead * whole + along * direction))


@wp.func
def _line(g: Any, b: Any, p: Any, count: int, lr: Any, decay: Any, kept: Any, taken: Any, ahead: Any, along: Any):
    for i in range(len(p)):
        b[i], p[i] = _number(g[i], b[i], p[i], count, lr, decay, kept, taken, ahead, along)
    return b, p


@wp.func
def _table(g: Any, b: Any, p: Any, count: int, lr: Any, decay: Any, kept: Any, taken: Any, ahead: Any, along: Any):
    for i in range(len(p)):
        for j in range(len(p[0])):
            b[i, j], p[i, j] = _number(g[i, j], b[i, j], p[i, j], count, lr, decay, kept, taken, ahead, along)
    return b, p
