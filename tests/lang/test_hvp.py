"""Second derivatives: launches with tangents on a tape, and ``wp.hvp``."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import KernelGradientError, LaunchError
from treadle.lang.directions import Directions

N, STEPS, H = 5, 20, 1e-6


@wp.kernel
def step(x: wp.array(dtype=wp.float64), v: wp.array(dtype=wp.float64), dt: wp.float64):
    i = wp.tid()
    v[i] -= dt * wp.sin(x[i]) * wp.exp(0.1 * x[i])
    x[i] += dt * v[i]


@wp.kernel
def mix(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    s = x[i]
    while wp.abs(s) > 0.3:
        s = s * s * 0.4 + 0.1 * x[(i + 1) % x.shape[0]]
    y[i] = s


@wp.kernel
def total(x: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i] * x[(i + 1) % x.shape[0]])


def doubles(values: object, grad: bool = False) -> wp.array:
    return wp.array(values, dtype=wp.float64, requires_grad=grad)


def swing(x: wp.array) -> wp.array:
    """A state stepped in place, a copy, a loop that depends on values, arrays without gradients in between."""
    v, kept, loss = wp.zeros(N, dtype=wp.float64), wp.zeros(N, dtype=wp.float64), wp.zeros(1, dtype=wp.float64)
    for _ in range(STEPS):
        wp.launch(step, N, [x, v, 0.1])
    wp.copy(kept, x)
    wp.launch(mix, N, [x], [v])
    x.zero_()
    kept[1:4].assign(v[1:4])
    wp.launch(total, N, [kept], [loss])
    return loss


def gradient(start: np.ndarray) -> np.ndarray:
    x = doubles(start, True)
    with wp.Tape() as tape:
        loss = swing(x)
        loss.requires_grad = True
    tape.backward(loss)
    return x.grad.numpy().copy()


def start_and_direction() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(N), rng.standard_normal(N)


def test_hvp_is_the_difference_of_gradients():
    start, d = start_and_direction()
    quotient = (gradient(start + H * d) - gradient(start - H * d)) / (2 * H)
    (found,) = wp.hvp(swing, [doubles(start)], [d])
    assert found.list() == wp.hvp(swing, [doubles(start)], [d], checkpoint="sqrt")[0].list()
    assert np.allclose(found.numpy(), quotient, rtol=1e-7, atol=1e-8) and np.abs(quotient).min() > 1e-4


@wp.kernel
def misfit(y: wp.array(dtype=wp.float64), aim: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (y[i] - aim[i]) * (y[i] - aim[i]))


def test_gradients_of_tangents_pass_through_what_does_not_move():
    x, aim, y, loss = (
        doubles(np.linspace(0.2, 2.0, N), True),
        doubles(np.zeros(N)),
        doubles(np.zeros(N), True),
        doubles([0.0], True),
    )
    seeds = np.linspace(-1.0, 2.0, N)
    directions = Directions(graded=True)
    directions.start(aim, seeds)
    with wp.Tape() as tape, directions.carried():
        wp.launch(mix, dim=N, inputs=[x], outputs=[y])
        wp.launch(misfit, dim=N, inputs=[y, aim], outputs=[loss])
    tape.backward(directions.of(loss))
    found = x.grad.numpy().copy()
    tape.zero()
    with wp.Tape() as tape:
        wp.launch(mix, dim=N, inputs=[x], outputs=[y])
    tape.backward(grads={y: doubles(-2.0 * seeds)})
    assert found.any() and np.allclose(found, x.grad.numpy(), rtol=1e-12)


def test_hvp_leaves_gradients_and_later_launches_alone():
    start, d = start_and_direction()
    x = doubles(start, True)
    x.grad.fill_(7.0)
    mine = x.grad
    wp.hvp(swing, [x], [d])
    assert x.grad is mine and set(mine.list()) == {7.0}
    plain = doubles(start)
    wp.hvp(swing, [plain], [d])
    assert plain.grad is None
    assert np.array_equal(gradient(start), gradient(start))


def test_gradients_of_other_arrays_neither_take_part_nor_change():
    @wp.kernel
    def weigh(x: wp.array(dtype=wp.float64), w: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
        i = wp.tid()
        y[i] = x[i] * x[i] * w[i]

    w, y, loss = doubles([1.0, 2.0, 3.0, 4.0, 5.0], True), doubles(np.zeros(N), True), doubles([0.0], True)
    for a, value in ((w, 1.0), (y, 2.0), (loss, 3.0)):
        a.grad.fill_(value)

    def energy(x: wp.array) -> wp.array:
        wp.launch(weigh, 3, [x[1:4], w, y])
        wp.launch(total, N, [y], [loss])
        return loss

    x, d = np.array([1.0, -2.0, 0.5, 1.5, 0.0]), np.array([0.0, 1.0, 2.0, -1.0, 0.0])

    def by_hand(x: np.ndarray) -> np.ndarray:
        u = x[1:4] ** 2 * w.numpy()[:3]
        slopes = np.array([2 * u[0] * u[1], u[0] ** 2 + 2 * u[1] * u[2], u[1] ** 2])
        return np.array([0.0, *(slopes * 2 * x[1:4] * w.numpy()[:3]), 0.0])

    (found,) = wp.hvp(energy, [doubles(x)], [d])
    assert np.allclose(found.numpy(), (by_hand(x + H * d) - by_hand(x - H * d)) / (2 * H), rtol=1e-6, atol=1e-6)
    assert [set(a.grad.list()) for a in (w, y, loss)] == [{1.0}, {2.0}, {3.0}]


def test_none_is_a_zero_tangent():
    @wp.kernel
    def product(x: wp.array(dtype=float), y: wp.array(dtype=float), loss: wp.array(dtype=float)):
        wp.atomic_add(loss, 0, x[wp.tid()] * x[wp.tid()] * y[wp.tid()])

    def loss(x, y):
        made = wp.zeros(1, dtype=float)
        wp.launch(product, dim=1, inputs=[x, y, made])
        return made

    x, y = wp.array([2.0], dtype=float), wp.array([3.0], dtype=float)
    assert [a.list() for a in wp.hvp(loss, [x, y], [[1.0], None])] == [[6.0], [4.0]]


def test_the_hessian_is_symmetric():
    start, _ = start_and_direction()
    rows = [wp.hvp(swing, [doubles(start)], [e])[0].numpy() for e in np.eye(N)]
    assert np.allclose(rows, np.transpose(rows), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("checkpoint", ["all", 7, "sqrt"])
def test_a_tape_goes_back_through_launches_with_tangents(checkpoint):
    """The tangent of the loss, gone back through, gives second derivatives for values and first ones for tangents."""

    def directional(start: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, dx, v, dv = doubles(start, True), doubles(d, True), doubles(np.zeros(N)), doubles(np.zeros(N))
        loss, dloss = wp.zeros(1, dtype=wp.float64), wp.zeros(1, dtype=wp.float64, requires_grad=True)
        with wp.Tape(checkpoint=checkpoint) as tape:
            for _ in range(STEPS):
                wp.jvp(step, N, [x, v, 0.1], tangents=[dx, dv])
            wp.jvp(total, N, [x], [loss], [dx, dloss])
        tape.backward(dloss)
        assert x.list() != list(start)
        return x.grad.numpy(), dx.grad.numpy()

    def plain(start: np.ndarray) -> np.ndarray:
        x, v, loss = doubles(start, True), doubles(np.zeros(N)), wp.zeros(1, dtype=wp.float64, requires_grad=True)
        with wp.Tape() as tape:
            for _ in range(STEPS):
                wp.launch(step, N, [x, v, 0.1])
            wp.launch(total, N, [x], [loss])
        tape.backward(loss)
        return x.grad.numpy()

    start, d = start_and_direction()
    second, first = directional(start, d)
    assert np.array_equal(first, plain(start))
    assert np.allclose(second, (plain(start + H * d) - plain(start - H * d)) / (2 * H), rtol=1e-7, atol=1e-8)


def test_bad_use_is_told():
    start, d = start_and_direction()
    x = doubles(start)
    with pytest.raises(LaunchError, match="1 inputs and 2 tangents"):
        wp.hvp(swing, [x], [d, d])
    with pytest.raises(LaunchError, match="shape"):
        wp.hvp(swing, [x], [d[:2]])
    with pytest.raises(KernelGradientError, match="array of one float"):
        wp.hvp(lambda x: 3.0, [x], [d])
    with pytest.raises(KernelGradientError, match="array of one float"):
        wp.hvp(lambda x: x, [x], [d])
    assert x.grad is None


def test_the_example_of_the_docstring_runs():
    found = doctest.testmod(importlib.import_module("treadle.lang.hvp"))
    assert found.attempted > 3 and found.failed == 0
