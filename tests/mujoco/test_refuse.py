"""What is not simulated is refused by name, all of it at once; what is not used refuses nothing."""

from pathlib import Path

import mujoco
import pytest

import treadle.mujoco as mjw
from tests.mujoco import models
from treadle.base.errors import UnsupportedModelError
from treadle.mujoco import refuse

LINK = '<geom name="g" size="0.1" contype="0" conaffinity="0" {}/>'


def model(joint="<joint name='j'/>", rest="", option="", body="", geom=""):
    link = f"<body name='link' {body}>{joint}{LINK.format(geom)}</body>"
    return mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{link}</worldbody>{rest}</mujoco>")


@pytest.mark.mujoco4
@pytest.mark.parametrize(
    "parts, said",
    [
        (dict(geom="adhesion='1'"), "geom 'g': adhesion"),
        (dict(geom="surfacevel='1 0 0 0 0 0'"), "geom 'g': surfacevel"),
        (dict(rest="<actuator><general name='u' joint='j' dyntype='user' actdim='2'/></actuator>"),
         "actuator 'u': dyntype"),
        (dict(option="<option integrator='discrete'/>"), "option integrator: DISCRETE"),
        (dict(option="<option><flag sleep='enable'/></option>"), "option flag sleep"),
    ],
)  # fmt: skip
def test_an_unsupported_feature_is_named(parts, said):
    with pytest.raises(UnsupportedModelError) as caught:
        mjw.put_model(model(**parts))
    assert said in str(caught.value)
    assert isinstance(caught.value, NotImplementedError)


@pytest.mark.mujoco4
def test_everything_is_reported_at_once():
    mjm = model(geom="surfacevel='1 0 0 0 0 0'", option="<option integrator='discrete'/>")
    with pytest.raises(UnsupportedModelError) as caught:
        mjw.put_model(mjm)
    text = str(caught.value)
    assert "option integrator" in text and "geom 'g': surfacevel" in text


def test_unused_features_refuse_nothing():
    for make in (models.tree, lambda: models.chain(2)):
        mjw.put_model(make())


def test_precision_is_single_or_double():
    with pytest.raises(TypeError, match="float32 or wp.float64"):
        mjw.put_model(models.tree(), dtype=int)


def test_the_documentation_lists_what_is_refused():
    page = (Path(__file__).resolve().parents[2] / "docs" / "physics.md").read_text(encoding="utf-8")
    assert refuse.document() in page


@pytest.mark.parametrize("name", refuse.CALLBACKS)
def test_callbacks_that_would_not_be_called_are_named(name):
    mjm, put = model(), getattr(mujoco, f"set_mjcb_{name}")
    put(lambda *given: 0)
    try:
        with pytest.raises(UnsupportedModelError, match=f"callback mjcb_{name} .it would not be called"):
            mjw.put_model(mjm)
    finally:
        put(None)
    mjw.put_model(mjm)
