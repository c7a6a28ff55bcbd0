"""A world that diverges begins anew and is counted; others do not feel it; what has no mass has the least there is."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import models, scenes
from treadle.mujoco import check
from treadle.mujoco.contents import contents

NO_RESET = int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)


def lost(mjm, name, value):
    """Three worlds after a step from states of which the second one has a number beyond bounds."""
    states = check.random_states(mjm, 3)
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = check.put_states(m, states)
    with contents(getattr(d, name)) as held:
        held[1, 0] = value
    mjw.step(m, d)
    return m, d, states


@pytest.mark.parametrize("name, value", [("qvel", 1e11), ("qpos", np.nan), ("qfrc_applied", 1e30)])
@pytest.mark.parametrize("make", [models.pair, lambda: scenes.load("joints")], ids=["straight", "stages"])
def test_a_world_beyond_bounds_begins_anew(make, name, value):
    mjm = make()
    m, d, states = lost(mjm, name, value)
    start = mujoco.MjData(mjm)
    for field in ("time", "qpos", "qvel", "act"):
        np.testing.assert_array_equal(getattr(d, field).numpy()[1], getattr(start, field), err_msg=field)
    d.ctrl.zero_()
    d.qfrc_applied.zero_()
    d.xfrc_applied.zero_()
    mjw.step(m, d)
    for world in (0, 2):
        mujoco.mj_step(mjm, states[world])
        for field in ("ctrl", "qfrc_applied", "xfrc_applied"):
            getattr(states[world], field)[:] = 0
    states[1] = start
    for world, mjd in enumerate(states):
        for field in ("mocap_pos", "mocap_quat"):
            getattr(mjd, field)[:] = getattr(d, field).numpy()[world]
        mujoco.mj_step(mjm, mjd)
        np.testing.assert_allclose(d.qpos.numpy()[world], mjd.qpos, rtol=0, atol=1e-9)
    counts = sum(d.warning.values())
    assert counts.tolist() == [0, 1, 0]
    if make is not models.pair and f"BAD{name.upper()}" in d.warning:  # a step that begins so
        assert d.warning[f"BAD{name.upper()}"][1] == 1
    with pytest.warns(RuntimeWarning, match="BADQ.*: 1 of 3 worlds diverged, up to 1 times, the first 1"):
        d.check()
    mjw.reset_data(m, d)
    assert not sum(d.warning.values()).any()


@pytest.mark.parametrize("make", [models.pair, lambda: scenes.load("joints")], ids=["straight", "stages"])
def test_a_world_goes_on_where_the_flag_says_so(make):
    mjm = make()
    mjm.opt.disableflags |= NO_RESET
    m, d, states = lost(mjm, "qvel", np.nan)
    mjw.step(m, d)
    assert not np.isfinite(d.qpos.numpy()[1]).all() and np.isfinite(d.qpos.numpy()[[0, 2]]).all()
    assert sum(d.warning.values())[1] == 2


def test_what_has_no_mass_is_given_the_least_and_counted():
    number = int(mujoco.mjtWarning.mjWARN_INERTIA)
    mjm = models.chain(3)
    mjm.body_mass[2:] = 0
    mjm.body_inertia[2:] = 0
    mjm.opt.disableflags |= NO_RESET
    mjd = mujoco.MjData(mjm)
    mjd.qfrc_applied[:] = [0.1, 0.2, 0.3]
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = check.put_states(m, [mjd])
    mjw.forward(m, d)
    mujoco.mj_forward(mjm, mjd)
    for field in ("qLDiagInv", "qacc"):
        np.testing.assert_allclose(getattr(d, field).numpy()[0], getattr(mjd, field), rtol=1e-9, err_msg=field)
    assert d.warning["INERTIA"][0] == mjd.warning[number].number > 0
    mjw.step(m, d)
    mujoco.mj_step(mjm, mjd)
    assert d.qLDiagInv.numpy().shape == (1, 3)  # computed when it is read, which counts nothing
    assert d.warning["INERTIA"][0] == 1
    with pytest.warns(RuntimeWarning, match="INERTIA: 1 of 1 worlds had a mass matrix that is all but singular"):
        d.check()
    np.testing.assert_allclose(d.qvel.numpy()[0], mjd.qvel, rtol=1e-6)


@pytest.mark.parametrize("make", [models.pair, lambda: scenes.load("joints")], ids=["straight", "stages"])
def test_a_world_with_a_bad_control_goes_without_and_is_counted(make):
    mjm = make()
    bad = (np.nan, np.inf, 1e11, 0.0, -np.inf)
    limited = np.asarray(mjm.actuator_ctrllimited, bool)
    places = [int(np.argmax(limited)), int(np.argmin(limited))]
    states = check.random_states(mjm, len(bad) * len(places))
    for k, mjd in enumerate(states):
        mjd.ctrl[places[k % 2]] = bad[k // 2]
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = check.put_states(m, states)
    mjw.step(m, d, nstep=2)
    for world, mjd in enumerate(states):
        mujoco.mj_step(mjm, mjd, nstep=2)
        number = int(mujoco.mjtWarning.mjWARN_BADCTRL)
        assert d.warning["BADCTRL"][world] == mjd.warning[number].number
        np.testing.assert_allclose(d.qpos.numpy()[world], mjd.qpos, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(d.ctrl.numpy()[world], mjd.ctrl)
    with pytest.warns(RuntimeWarning, match=r"BADCTRL: \d of 10 worlds had bad controls, up to \d times, the first 0"):
        d.check()
