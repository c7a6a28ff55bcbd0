"""Each world may have numbers of the model of its own; then each goes as MuJoCo goes with these numbers."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import models, scenes
from treadle.mujoco import check
from treadle.mujoco.contents import contents

NWORLD = 5


def randomised(mjm, m, names, seed=1):
    """Give every world its own values of some fields; MuJoCo's models with these values."""
    rng = np.random.default_rng(seed)
    theirs = []
    factors = {name: rng.uniform(0.7, 1.3, NWORLD) for name in names}
    m.expand(NWORLD, *names)
    for name, factor in factors.items():
        array = getattr(m.opt if name.startswith("opt.") else m, name.removeprefix("opt."))
        with contents(array) as values:
            values *= factor.reshape((NWORLD,) + (1,) * (values.ndim - 1))
    for world in range(NWORLD):
        changed = mujoco.MjModel.from_xml_string(scenes.JOINTS) if mjm is None else mjm.__copy__()
        for name, factor in factors.items():
            owner, field = (changed.opt, name[4:]) if name.startswith("opt.") else (changed, name)
            if np.ndim(getattr(owner, field)):
                getattr(owner, field)[...] *= factor[world]
            else:
                setattr(owner, field, getattr(owner, field) * factor[world])
        theirs.append(changed)
    return theirs


@pytest.mark.parametrize("name, fields", [
    ("joints", ("body_mass", "body_pos", "dof_damping", "actuator_gainprm", "opt.gravity", "opt.timestep")),
    ("so101", ("body_mass", "body_inertia", "dof_armature", "actuator_biasprm", "opt.gravity", "opt.timestep")),
])  # fmt: skip
def test_worlds_with_their_own_numbers_go_their_own_ways(name, fields):
    mjm = scenes.smooth(name)
    m = mjw.put_model(mjm, dtype=wp.float64)
    changed = randomised(mjm, m, fields)
    states = check.random_states(mjm, NWORLD)
    d = check.put_states(m, states)
    mjw.step(m, d, nstep=3)
    for world, mjd in enumerate(states):
        mujoco.mj_step(changed[world], mjd, nstep=3)
        assert check.error(d.qpos.numpy()[world], mjd.qpos) < 1e-10
        assert check.error(d.qvel.numpy()[world], mjd.qvel) < 1e-9
    assert np.ptp(d.qpos.numpy()[:, -1]) > 0


def test_a_field_takes_an_array_with_a_row_for_each_world():
    mjm = models.pair()
    m, d = mjw.put_model(mjm), mjw.make_data(mjm, NWORLD)
    mjw.step(m, d)
    masses = np.linspace(1, 2, NWORLD)[:, None] * mjm.body_mass
    m.body_mass = wp.array(masses, dtype=float)
    assert m.body_mass.shape == (NWORLD, mjm.nbody)
    np.testing.assert_allclose(m.body_mass.numpy(), masses, rtol=1e-6)
    mjw.step(m, d, nstep=3)
    assert np.ptp(d.qvel.numpy()[:, 0]) > 1e-5
    m.body_mass = wp.array(masses[:1], dtype=float)  # one row, for all again
    mjw.reset_data(m, d)
    mjw.step(m, d, nstep=3)
    assert np.ptp(d.qvel.numpy()[:, 0]) == 0


def test_rows_are_for_all_worlds_or_none():
    mjm = models.pair()
    m = mjw.put_model(mjm)
    m.expand(3, "body_mass")
    with pytest.raises(ValueError, match="body_mass of the model has a row for each of 3 worlds, the data has 5"):
        mjw.step(m, mjw.make_data(mjm, NWORLD))
    with pytest.raises(ValueError, match="body_parentid is no field"):
        m.expand(3, "body_parentid")
    with pytest.raises(ValueError, match="nworld is at least 1"):
        m.expand(0, "body_mass")
    with pytest.raises(ValueError, match="body_mass has shape"):
        m.body_mass = wp.zeros((3, mjm.nbody + 1), dtype=float)


def test_a_shared_field_is_loaded_once_for_all_lanes():
    from treadle.mujoco.algebra import row

    @wp.kernel
    def take(field: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        w = wp.tid()
        out[w, 0] = field[row(w, field), 0]

    m = mjw.put_model(models.pair())
    for shared in (True, False):
        if not shared:
            m.expand(NWORLD, "body_mass")
            with contents(m.body_mass) as held:
                held[:, 0] = np.arange(NWORLD)
        out = wp.zeros((NWORLD, 1), dtype=float)
        wp.launch(take, NWORLD, [m.body_mass, out])
        expected = m.body_mass.numpy()[:, 0]
        np.testing.assert_array_equal(out.numpy()[:, 0], np.broadcast_to(expected, NWORLD))
