"""Adam (Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015, algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as wp

from .optimizer import Optimizer, numbers, of_kind


class Adam(Optimizer):
    """Gradient descent along running means of the gradient, each component in units of its usual size.

    Args:
        params: arrays of floats, or of vectors, quaternions or matrices of floats; see :meth:`set_params`.
        lr: about how far each component goes in a step.
        betas: how much the means of gradients and of their squares keep of what they were, 0 to 1.
        eps: added to the usual size, so that no component divides by zero.

    >>> import treadle as wp
    >>> p = wp.array([1.0, 2.0], dtype=float)
    >>> wp.optim.Adam([p], lr=0.5).step([wp.array([0.25, -8.0], dtype=float)])
    >>> [round(x, 5) for x in p.list()]
    [0.5, 2.5]
    """

    STATES = ("m", "v")

    def __init__(
        self, params: Sequence[wp.array] | None = None, lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-08,
    ):  # fmt: skip
        self.lr, self.eps = lr, eps
        self.beta1, self.beta2 = betas
        self.m: list[wp.array] = []  # running means of each parameter's gradients
        self.v: list[wp.array] = []  # and of their squares
        super().__init__(params)

    def _advance(self, p: wp.array, g: wp.array, *states: wp.array) -> None:
        m, v = states
        # The means began at zero; what that took from them is known.
        rate = self.lr / (1.0 - self.beta1 ** (self.t + 1))
        share = 1.0 / (1.0 - self.beta2 ** (self.t + 1))
        scales = numbers(p, rate, share, self.beta1, self.beta2, self.eps)
        wp.map(of_kind(p.type.elem, _number, _line, _table), g, m, v, p, *scales, out=[m, v, p])


@wp.func
def _number(g: Any, m: Any, v: Any, p: Any, rate: Any, share: Any, beta1: Any, beta2: Any, eps: Any):
    x = type(m)(g)
    m = beta1 * m + (1.0 - beta1) * x
    v = beta2 * v + (1.0 - beta2) * x * x
    return m, v, type(p)(type(m)(p) - rate * m / (wp.sqrt(share * v) + eps))


@wp.func
def _line(g: Any, m: Any, v: Any, p: Any, rate: Any, share: Any, beta1: Any, beta2: Any, eps: Any):
    for i in range(len(p)):
        m[i], v[i], p[i] = _number(g[i], m[i], v[i], p[i], rate, share, beta1, beta2, eps)
    return m, v, p


@wp.func
def _table(g: Any, m: Any, v: Any, p: Any, rate: Any, share: Any, beta1: Any, beta2: Any, eps: Any):
    for i in range(len(p)):
        for j in range(len(p[0])):
            m[i, j], v[i, j], p[i, j] = _number(g[i, j], m[i, j], v[i, j], p[i, j], rate, share, beta1, beta2, eps)
    return m, v, p
