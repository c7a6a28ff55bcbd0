"""What the host gives to worlds on a GPU, and takes from them, on the stand-in for the driver."""

import gc

import numpy as np
import pytest

import treadle as wp

mujoco = pytest.importorskip("mujoco")

import treadle.mujoco as mjw  # noqa: E402
from treadle.mujoco import check  # noqa: E402

SCENE = """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
  <actuator><motor joint="j"/></actuator><keyframe><key qpos="1"/><key qpos="2"/></keyframe></mujoco>"""


class Far:
    """An array of another library, in memory of a GPU."""

    def __init__(self, values, device):
        self._a = wp.array(values, device=device)
        self.shape, self.dtype = self._a.shape, np.asarray(values).dtype
        self.__cuda_array_interface__ = self._a.__cuda_array_interface__


class Own:
    """An array of a library that only gives copies."""

    def __init__(self, values):
        self.shape, self.dtype, self._values = np.shape(values), np.asarray(values).dtype, values

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype)


MAKERS = {
    "list": list,
    "NumPy": np.array,
    "backwards": lambda values: np.array(values[::-1])[::-1],
    "near": lambda values: wp.array(values, device="cpu"),
    "far": lambda values: wp.array(values, device="cuda:0"),
    "Far": lambda values: Far(values, "cuda:0"),
    "Own": Own,
}


def worlds():
    mjm = mujoco.MjModel.from_xml_string(SCENE)
    m = mjw.put_model(mjm)
    return mjm, m, mjw.make_data(m, 3)


@pytest.mark.parametrize("made", MAKERS)
def test_marks_and_keyframes_of_any_library_reach_the_gpu(gpu, made):
    _, m, d = worlds()
    mjw.step(m, d)
    mjw.reset_data(m, d, MAKERS[made]([True, False, True]))
    assert d.time.numpy().round(3).tolist() == [0.0, np.float32(0.002), 0.0]
    mjw.reset_data_keyframe(m, d, MAKERS[made]([1, 0, -1]))
    assert d.qpos.numpy()[:, 0].tolist() == [2.0, 1.0, 0.0]


def test_worlds_of_the_host_are_reset_by_marks_on_a_gpu(driver):
    _, m, d = worlds()
    mjw.step(m, d)
    mjw.reset_data(m, d, MAKERS["far"]([True, False, True]))
    assert d.time.numpy().round(3).tolist() == [0.0, np.float32(0.002), 0.0]


@pytest.mark.parametrize("made", ["list", "NumPy", "near"])
def test_captures_keep_marks_as_they_were(gpu, made):
    _, m, d = worlds()
    with wp.ScopedCapture() as capture:
        mjw.reset_data(m, d, MAKERS[made]([True, False, True]))
        mjw.step(m, d)
    gc.collect()
    others = [wp.zeros(3, dtype=bool) for _ in range(20)]  # take the memory of marks, if that is free
    mjw.reset_data(m, d)
    for _ in range(2):
        wp.capture_launch(capture.graph)
    assert d.time.numpy().round(3).tolist() == pytest.approx([0.002, 0.004, 0.002])
    assert len(others) == 20


def test_states_of_mujoco_reach_the_gpu(gpu):
    mjm, m, _ = worlds()
    states = check.random_states(mjm, 2)
    d = check.put_states(m, states)
    for k, mjd in enumerate(states):
        np.testing.assert_allclose(d.qvel.numpy()[k], mjd.qvel, rtol=1e-6)


def test_controls_may_lie_on_the_gpu(gpu):
    _, m, d = worlds()
    controls = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4, 1)
    far = mjw.rollout(m, d, Far(controls, "cuda:0"), fields=("ctrl",))["ctrl"]
    np.testing.assert_array_equal(far, controls)


@wp.kernel
def double(values: wp.array2d(dtype=float)):
    i, j = wp.tid()
    values[i, j] = 2.0 * values[i, j]


@pytest.mark.parametrize("alike", [True, False])
def test_fields_do_not_follow_arrays_that_were_kept_from_before_the_step(gpu, alike):
    mjm, m, d = worlds()
    mjd = mujoco.MjData(mjm)
    if not alike:
        m.expand(3, "body_mass")
    mass = m.body_mass
    for _ in range(3):
        mujoco.mj_step(mjm, mjd)
        mjw.step(m, d)
        wp.launch(double, mass.shape, [mass])
        mjm.body_mass[:] *= 2
        np.testing.assert_allclose(d.qfrc_bias.numpy(), np.tile(mjd.qfrc_bias, (3, 1)), rtol=1e-5)
        np.testing.assert_allclose(d.qpos.numpy(), np.tile(mjd.qpos, (3, 1)), rtol=1e-5)


def test_fields_of_arrays_that_nobody_wrote_to_are_on_tapes(gpu):
    _, m, d = worlds()
    m.body_mass.requires_grad = True
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        mjw.step(m, d)
        wp.utils.array_sum(d.qfrc_bias.flatten(), out=loss)
    tape.backward(loss)
    assert m.body_mass.grad.numpy()[0, 1] == pytest.approx(-3 * 9.81 * 0.2)
