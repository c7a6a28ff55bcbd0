"""Sensors, and what constraints do to bodies, are MuJoCo's."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import constrained, scenes
from treadle.mujoco import check
from treadle.mujoco.sensor.stage import SUPPORTED


def errors(mjm, d, states, floor):
    """The largest error of each sensor, relative to its largest output, or, of forces between bodies, which are sums of
    all that pulls at what hangs there and may come to nothing, to the hundredth part of the largest such force."""
    worst, sums = np.zeros(mjm.nsensor), (int(mujoco.mjtSensor.mjSENS_FORCE), int(mujoco.mjtSensor.mjSENS_TORQUE))
    for world, mjd in enumerate(states):
        pull = 1e-2 * abs(mjd.cfrc_int).max()
        for s in range(mjm.nsensor):
            part = slice(mjm.sensor_adr[s], mjm.sensor_adr[s] + mjm.sensor_dim[s])
            least = max(floor, pull) if mjm.sensor_type[s] in sums else floor
            worst[s] = max(worst[s], check.error(d.sensordata.numpy()[world, part], mjd.sensordata[part], least))
    return worst


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("dtype, limit, floor", [(wp.float64, 1e-9, 1e-3), (wp.float32, 2e-4, 1.0)])
def test_sensors_of_every_kind(cone, dtype, limit, floor):
    mjm = constrained.sharp(constrained.senses(cone))
    assert set(mjm.sensor_type.tolist()) == SUPPORTED
    states = constrained.near(mjm, 8, scale=0.03)
    m, d = constrained.put(mjm, states, dtype)
    constrained.forward(m, d)
    worst = errors(mjm, d, states, floor)
    bad = {mujoco.mjtSensor(mjm.sensor_type[s]).name: worst[s] for s in np.flatnonzero(worst > limit)}
    assert not bad
    assert min(mjd.sensordata.any() for mjd in states) and max(mjd.ncon for mjd in states) > 4


def test_sensors_of_a_real_model():
    mjm = constrained.sharp(scenes.load("mjx_sensor"))
    unsensed = ~np.isin(mjm.sensor_type, list(SUPPORTED))
    mjm.sensor_type[unsensed] = mujoco.mjtSensor.mjSENS_CLOCK  # rangefinders and projections of cameras are refused
    mjm.sensor_dim[unsensed] = 1
    mjm.sensor_cutoff[unsensed] = 0
    states = check.random_states(mjm, 4)
    m, d = constrained.put(mjm, states)
    constrained.forward(m, d)
    assert errors(mjm, d, states, 1e-3).max() < 1e-9


def test_forces_and_accelerations_of_bodies():
    mjm = constrained.sharp(constrained.everything())
    mjm.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    states = constrained.near(mjm, 4)
    for mjd in states:
        mjd.xfrc_applied[1:] = np.random.default_rng(1).normal(size=(mjm.nbody - 1, 6))
    m, d = constrained.put(mjm, states)
    constrained.forward(m, d)
    mjw.rne_postconstraint(m, d)
    for world, mjd in enumerate(states):
        mujoco.mj_rnePostConstraint(mjm, mjd)
        for name in ("cacc", "cfrc_ext", "cfrc_int"):
            assert check.error(getattr(d, name).numpy()[world], getattr(mjd, name)) < 1e-9, name


@pytest.mark.parametrize("name", ["tendon_pulley_wrap", "tendon_wrap", "tendon_pulley_site_fixed", "shadow_hand"])
def test_tendons_pull_on_bodies_along_their_paths(name):
    mjm = constrained.sharp(scenes.load(name))
    mjm.tendon_stiffness[:] = 3
    mjm.tendon_lengthspring[:] = 0.2
    mjm.tendon_damping[:] = 0.7
    states = check.random_states(mjm, 4)
    m, d = constrained.put(mjm, states)
    constrained.forward(m, d)
    mjw.rne_postconstraint(m, d)
    for world, mjd in enumerate(states):
        mujoco.mj_rnePostConstraint(mjm, mjd)
        assert check.error(d.cfrc_ext.numpy()[world], mjd.cfrc_ext) < 1e-9


def test_distances_of_geoms_and_bodies():
    size = dict(sphere=".1", capsule=".1 .1", ellipsoid=".1 .2 .3", cylinder=".1 .2", box=".1 .2 .1")
    names = [f"{kind}{k}" for kind in (*size, "mesh") for k in range(2)]

    def body(name):
        shape = f'type="{name[:-1]}" ' + ('mesh="m"' if "mesh" in name else f'size="{size[name[:-1]]}"')
        return f'<body name="b{name}" pos="0 0 .5"><freejoint/><geom name="{name}" {shape}/></body>'

    two = '<body name="two"><freejoint/><geom size=".1"/><geom type="box" size=".05 .1 .2" pos=".3 0 0"/></body>'
    asked = [f'geom1="{a}" geom2="{b}"' for a in names for b in ("floor", *names) if a != b]
    asked += ['body1="two" geom2="box0"', 'geom1="capsule1" body2="two"', 'body1="two" body2="bmesh0"']
    sensors = "".join(f'<{kind} {pair} cutoff="{0.05 if k % 3 == 0 else 1.5}"/>'
                      for k, pair in enumerate(asked) for kind in ("distance", "normal", "fromto"))  # fmt: skip
    xml = f"""<mujoco><asset><mesh name="m" vertex="0 0 0 .2 0 0 0 .2 0 0 0 .2"/></asset><worldbody>
    <geom name="floor" type="plane" size="1 1 1" euler="3 4 0"/>{"".join(map(body, names))}{two}</worldbody>
    <option><flag contact="disable"/></option><sensor>{sensors}</sensor></mujoco>"""
    mjm = constrained.sharp(mujoco.MjModel.from_xml_string(xml))
    states = [mujoco.MjData(mjm) for _ in range(12)]
    rng = np.random.default_rng(0)
    for mjd in states:
        poses = mjd.qpos.reshape(-1, 7)
        poses[:, :3] += rng.uniform(-0.4, 0.4, (len(poses), 3))
        poses[:, 3:] = rng.normal(size=(len(poses), 4))
        mujoco.mj_normalizeQuat(mjm, mjd.qpos)
    for dtype, limit in ((wp.float64, (1e-6, 1e-4)), (wp.float32, (1e-4, 1e-2))):
        m = mjw.put_model(mjm, dtype=dtype)
        d = check.put_states(m, states)
        mjw.forward(m, d)
        for world, mjd in enumerate(states):
            mujoco.mj_forward(mjm, mjd)
            off = np.abs(d.sensordata.numpy()[world] - mjd.sensordata)
            for s in range(mjm.nsensor):  # where curved geoms overlap MuJoCo's directions end with the tolerance's root
                far = off[mjm.sensor_adr[s] : mjm.sensor_adr[s] + mjm.sensor_dim[s]].max()
                assert far < limit[s % 3 > 0], (dtype, asked[s // 3], s % 3, far)


def test_what_is_not_sensed_is_refused():
    kinds = '<rangefinder site="s"/><user name="mine" dim="1"/>'
    xml = f"<mujoco><worldbody><site name='s'/></worldbody><sensor>{kinds}</sensor></mujoco>"
    mjm = mujoco.MjModel.from_xml_string(xml)
    with pytest.raises(NotImplementedError, match="sensor number 0: type (.|\n)*sensor 'mine': type"):
        mjw.put_model(mjm)
    mjm.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SENSOR
    mjw.put_model(mjm)
