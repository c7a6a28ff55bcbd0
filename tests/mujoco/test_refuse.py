"""What is not simulated is refused by name, all of it at once; what is not used refuses nothing."""

import mujoco
import pytest

import treadle.mujoco as mjw
from tests.mujoco import models
from treadle.base.errors import UnsupportedModelError

LINK = '<geom size="0.1" contype="0" conaffinity="0"/>'


def model(joint="<joint name='j'/>", rest="", option="", body=""):
    return mujoco.MjModel.from_xml_string(
        f"<mujoco>{option}<worldbody><body name='link' {body}>{joint}{LINK}</body></worldbody>{rest}</mujoco>"
    )


@pytest.mark.parametrize(
    "mjm, said",
    [
        (model("<freejoint name='float'/>"), "joint 'float': type (hinge and slide are supported)"),
        (model("<joint name='hip' type='ball'/>"), "joint 'hip': type"),
        (model(body="gravcomp='1'"), "body 'link': gravcomp"),
        (model(rest="<actuator><muscle name='m' joint='j' lengthrange='0 1'/></actuator>"), "actuator 'm': dyntype"),
        (model(rest="<actuator><intvelocity name='i' joint='j' actrange='-1 1'/></actuator>"), "actuator 'i': dyntype"),
        (model(rest="<actuator><adhesion name='b' body='link' ctrlrange='0 1'/></actuator>"),
         "actuator 'b': joint (the transmission)"),
        (model(rest="<tendon><fixed name='t'><joint joint='j' coef='1'/></fixed></tendon>"), "tendon 't': tendon"),
        (model(rest="<sensor><jointpos name='s' joint='j'/></sensor>"), "sensor 's': sensor"),
        (model("<joint name='j' limited='true' range='-1 1'/>"), "joint: limited: constraints are not supported yet"),
        (model("<joint name='j' frictionloss='0.1'/>"), "joint: frictionloss: constraints"),
        (model(rest="<equality><joint joint1='j'/></equality>"), "equality: constraints"),
        (model(option="<option integrator='RK4'/>"), "option integrator: RK4"),
        (model(option="<option density='1.2'/>"), "option density"),
        (model(option="<option><flag energy='enable'/></option>"), "option flag energy"),
    ],
)  # fmt: skip
def test_an_unsupported_feature_is_named(mjm, said):
    with pytest.raises(UnsupportedModelError) as caught:
        mjw.put_model(mjm)
    assert said in str(caught.value)
    assert isinstance(caught.value, NotImplementedError)


def test_contacts_are_named_and_the_way_out_too():
    mjm = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/>"
        "<body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    with pytest.raises(UnsupportedModelError, match="geom: contacts: .* not supported yet.*mjDSBL_CONSTRAINT"):
        mjw.put_model(mjm)
    mjm.opt.disableflags |= models.NO_CONSTRAINT
    assert mjw.put_model(mjm).nv == 1


def test_everything_is_reported_at_once():
    mjm = model("<joint name='j' frictionloss='1'/><joint name='k' type='ball'/>", option="<option viscosity='1'/>")
    with pytest.raises(UnsupportedModelError) as caught:
        mjw.put_model(mjm)
    text = str(caught.value)
    assert "option viscosity" in text and "joint: frictionloss" in text and "joint 'k': type" in text


def test_unused_features_refuse_nothing():
    for make in (models.tree, lambda: models.chain(2)):
        mjw.put_model(make())


def test_precision_is_single_or_double():
    with pytest.raises(TypeError, match="float32 or wp.float64"):
        mjw.put_model(models.tree(), dtype=int)
