"""The soft ball: its gradient is that of a NumPy simulation in double precision, and descending it bounces higher."""

import numpy as np
import pytest
import soft_ball
from soft_ball import DAMPING, DT, GROUND, MASS, SHARPNESS, SPEED

STEPS = 120  # through the first contact: later, roundings have grown too large to compare


def loss_by_numpy(ball, stiffness):
    """The simulation of ``soft_ball.Ball``, in double precision."""
    ends, rest = ball.ends.numpy(), ball.rest.numpy().astype(float)
    a, b = ends.T
    x = ball.start.astype(np.float32).astype(float)
    v = np.tile([0.0, -SPEED, 0.0], (len(x), 1))
    heights = np.zeros(STEPS)
    for step in range(STEPS):
        way = x[b] - x[a]
        length = np.linalg.norm(way, axis=1)
        along = way / length[:, None]
        pull = stiffness * (length - rest) + DAMPING * ((v[b] - v[a]) * along).sum(1)
        force = along * pull[:, None]
        total = np.stack([np.bincount(a, f, len(x)) - np.bincount(b, f, len(x)) for f in force.T], 1)
        total[:, 1] -= GROUND * np.minimum(x[:, 1], 0.0)
        v += (total / MASS + [0.0, -9.81, 0.0]) * DT
        x += v * DT
        heights[step] = x[:, 1].mean()
    return -0.5 - np.log(np.exp(SHARPNESS * (heights - 0.5)).mean()) / SHARPNESS


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(soft_ball, "STEPS", STEPS)


def test_gradient_is_that_of_double_precision(short):
    ball = soft_ball.Ball(radius=3.2)
    loss, slope = ball.slope(300.0)
    assert loss == pytest.approx(loss_by_numpy(ball, 300.0), abs=1e-5)
    h = 1e-4
    want = (loss_by_numpy(ball, 300.0 * np.exp(h)) - loss_by_numpy(ball, 300.0 * np.exp(-h))) / (2 * h)
    assert slope == pytest.approx(want, rel=2e-3)


def test_descent_lowers_the_loss(monkeypatch):
    monkeypatch.setattr(soft_ball, "STEPS", 350)
    ball = soft_ball.Ball(radius=3.2)
    way, first, last = soft_ball.descend(ball, 150.0, rounds=6)
    assert way[-1][1] < way[0][1] - 0.02
    assert last.max() > first.max()
