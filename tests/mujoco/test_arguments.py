"""What is no model or data of ours is refused, and the message says what is."""

import mujoco
import pytest

import treadle.mujoco as mjw

XML = "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body></worldbody></mujoco>"


@pytest.fixture(scope="module")
def made():
    mjm = mujoco.MjModel.from_xml_string(XML)
    m = mjw.put_model(mjm)
    return mjm, m, mjw.make_data(m, nworld=2)


def test_steps_take_models_and_data_of_ours(made):
    mjm, m, d = made
    for call in (mjw.step, mjw.forward, mjw.kinematics):
        with pytest.raises(TypeError, match="a data is what make_data or put_data returns, not mujoco's MjData"):
            call(m, mujoco.MjData(mjm))
        with pytest.raises(TypeError, match="a model is what put_model returns, not mujoco's MjModel"):
            call(mjm, d)


@pytest.mark.parametrize("nstep", [0, -1, 2.5, "3"])
def test_numbers_of_steps_are_whole(made, nstep):
    _, m, d = made
    with pytest.raises(ValueError, match="nstep is at least 1, and an integer, not"):
        mjw.step(m, d, nstep)


def test_models_are_compiled_first():
    with pytest.raises(TypeError, match="put_model takes MuJoCo's MjModel, not str; compile it first"):
        mjw.put_model("scene.xml")
