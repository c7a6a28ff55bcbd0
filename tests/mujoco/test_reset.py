"""Worlds go back to the reference pose or to keyframes, mocap bodies and activations too."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import scenes

STATE = ("time", "qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")


def worlds(nworld):
    mjm = scenes.smooth("joints")
    m, d = mjw.put_model(mjm, dtype=wp.float64), mjw.make_data(mjm, nworld, dtype=wp.float64)
    for name in STATE:
        getattr(d, name).fill_(0.4)
    mjw.step(m, d)
    return mjm, m, d


def assert_state(d, world, mjd):
    for name in STATE:
        theirs = np.asarray(getattr(mjd, name))
        np.testing.assert_allclose(getattr(d, name).numpy()[world], theirs, rtol=0, atol=1e-15, err_msg=name)


@pytest.mark.parametrize("dtype", [bool, int])
def test_marked_worlds_go_back_to_the_reference_pose(dtype):
    mjm, m, d = worlds(3)
    before = d.qpos.numpy().copy()
    mjw.reset_data(m, d, wp.array([0, 1, 0], dtype=dtype))
    assert_state(d, 1, mujoco.MjData(mjm))
    np.testing.assert_array_equal(d.qpos.numpy()[[0, 2]], before[[0, 2]])
    mjw.reset_data(m, d)
    assert_state(d, 2, mujoco.MjData(mjm))


def test_data_is_made_as_mujocos_is():
    mjm = scenes.load("joints")
    for source in (mjm, mjw.put_model(mjm, dtype=wp.float64)):
        assert_state(mjw.make_data(source, 2, dtype=wp.float64), 1, mujoco.MjData(mjm))


def test_keyframes_for_all_worlds_and_for_some():
    mjm, m, d = worlds(3)
    framed = mujoco.MjData(mjm)
    mujoco.mj_resetDataKeyframe(mjm, framed, 0)
    before = d.qpos.numpy().copy()
    mjw.reset_data_keyframe(m, d, wp.array([-1, 0, 7], dtype=int))
    assert_state(d, 1, framed)
    np.testing.assert_array_equal(d.qpos.numpy()[[0, 2]], before[[0, 2]])
    mjw.reset_data_keyframe(m, d, 0)
    assert_state(d, 2, framed)
    with pytest.raises(ValueError, match="no keyframe 1: the model has 1"):
        mjw.reset_data_keyframe(m, d, 1)
    with pytest.raises(ValueError, match="key has shape"):
        mjw.reset_data_keyframe(m, d, wp.zeros(2, dtype=int))


@pytest.mark.parametrize("made", [np.array, list, tuple])
def test_marks_and_keyframes_come_as_any_kind_of_array(made):
    mjm, m, d = worlds(3)
    before = d.qpos.numpy().copy()
    mjw.reset_data(m, d, made([True, False, False]))
    assert_state(d, 0, mujoco.MjData(mjm))
    mjw.reset_data_keyframe(m, d, made([-1, 0, 1]))
    framed = mujoco.MjData(mjm)
    mujoco.mj_resetDataKeyframe(mjm, framed, 0)
    assert_state(d, 1, framed)
    np.testing.assert_array_equal(d.qpos.numpy()[2], before[2])
    with pytest.raises(ValueError, match="reset has shape"):
        mjw.reset_data(m, d, made([True]))
    with pytest.raises(ValueError, match="key has shape"):
        mjw.reset_data_keyframe(m, d, made([0]))


@pytest.mark.parametrize("kind", [">i4", "<i8", ">i2", "u1"])
def test_integers_of_any_order_of_bytes_say_what_is_reset(kind):
    body, key = "<body><joint/><geom size='.1'/></body>", "<keyframe><key qpos='1'/></keyframe>"
    mjm = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody>{key}</mujoco>")
    m = mjw.put_model(mjm)
    d = mjw.make_data(m, 3)
    mjw.reset_data_keyframe(m, d, np.array([0, 1, 0], kind))
    assert d.qpos.numpy()[:, 0].tolist() == [1, 0, 1]
    mjw.reset_data(m, d, np.array([0, 1, 1], kind))
    assert d.qpos.numpy()[:, 0].tolist() == [1, 0, 0]
