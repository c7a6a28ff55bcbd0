"""Adam (Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015, algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as wp

from .optimizer import Optimizer, numbers, of_kind, require


class Adam(Optimizer):
    """Gradient descent along running means of the gradient, each component in units of its usual size.

    Args:
        params: arrays of floats, or of vectors, quaternions or matrices of floats; see :meth:`set_params`.
        lr: about how far each component goes in a step.
        betas: how much the means of gradients and of their squares keep of what they were, 0 to 1.
        eps: added to the usual size, so that no component divides by zero.

    Raises:
        ValueError: one of these numbers is less than 0.

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
        require("Adam", lr=lr, beta1=self.beta1, beta2=self.beta2, eps=eps)
        self.m: list[wp.array] = []  # running means of each parameter's gradients
        self.v: list[wp.array] = []  # and of their squares
        super().__init__(params)

    def _advance(self, p: wp.array, g: wp.array, count: wp.array, *states: wp.array) -> None:
        m, v = states
        rate, share = (wp.empty(1, dtype=wp.float64, device=p.device) for _ in range(2))
        inputs = [count, self.lr, self.beta1, self.beta2]
        wp.launch(find_shares, 1, inputs=inputs, outputs=[rate, share], device=p.device)
        scales = numbers(p, self.beta1, self.beta2, self.eps)
        wp.map(of_kind(p.type.elem, _number, _line, _table), g, m, v, p, rate, share, *scales, out=[m, v, p])


@wp.kernel
def find_shares(
    count: wp.array(dtype=int), lr: wp.float64, beta1: wp.float64, beta2: wp.float64,
    rate: wp.array(dtype=wp.float64), share: wp.array(dtype=wp.float64),
):  # fmt: skip
    """The rate, and what the squares are multiplied by: the means began at zero, and what that took is known."""
    t, one = wp.float64(count[0] + 1), wp.float64(1.0)
    rate[0] = lr / (one - beta1**t)
    share[0] = one / (one - beta2**t)


@wp.func
def _number(g: Any, m: Any, v: Any, p: Any, rate: Any, share: Any, beta1: Any, beta2: Any, eps: Any):
    x = type(m)(g)
    m = beta1 * m + (1.0 - beta1) * x
    v = beta2 * v + (1.0 - beta2) * x * x
    return m, v, type(p)(type(m)(p) - type(m)(rate) * m / (wp.sqrt(type(m)(share) * v) + eps))


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
