"""Rows of constraints are MuJoCo's, row by row, whatever makes them and however soft they are."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import constrained, scenes
from treadle.mujoco import check, stages
from treadle.mujoco.contents import contents

ROWS = ("make_constraint", "reference_constraint")
REAL = ("so101_pick", "humanoid", "humanoid_mjw", "ant", "half_cheetah", "shadow_hand", "cmu_humanoid", "constraints")


def rows(lines):
    return [line for line in lines if line.stage in ROWS]


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("dtype, limit", [(wp.float64, 1e-12), (wp.float32, 1e-5)])
def test_rows_of_every_kind(cone, dtype, limit):
    mjm = constrained.everything(cone)
    states = constrained.near(mjm, 12)
    lines = rows(constrained.compare(mjm, states, dtype))
    kinds = {int(kind) for mjd in states for kind in mjd.efc_type}
    assert kinds == set(range(6)) | {6 if cone == "pyramidal" else 7}
    assert {"efc_J", "efc_D", "efc_aref", "efc_KBIP", "efc_type", "ne", "nf", "nl", "nefc"} <= {x.field for x in lines}
    assert not check.beyond(lines, limit), check.beyond(lines, limit)


@pytest.mark.parametrize("name", REAL)
def test_rows_of_real_models(name):
    mjm = scenes.load(name)
    lines = rows(constrained.compare(mjm, check.random_states(mjm, 4)))
    assert not check.beyond(lines, 1e-9), check.beyond(lines, 1e-9)


@pytest.mark.parametrize("flag", ["EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT", "REFSAFE", "CONSTRAINT"])
def test_flags_switch_off_what_they_name(flag):
    mjm = constrained.everything()
    mjm.opt.timestep = 0.02  # so that references are not safe
    mjm.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    lines = rows(constrained.compare(mjm, constrained.near(mjm, 3)))
    assert not check.beyond(lines, 1e-12), check.beyond(lines, 1e-12)


def test_worlds_switch_equalities_off_and_have_parameters_of_their_own():
    mjm = constrained.everything()
    states = constrained.near(mjm, 3)
    rng = np.random.default_rng(0)
    for mjd in states:
        mjd.eq_active[:] = rng.integers(0, 2, mjm.neq)
    m, d = constrained.put(mjm, states)
    m.expand(3, "eq_solref", "dof_frictionloss", "jnt_range", "opt.impratio")
    with contents(m.eq_solref) as held:
        held[...] *= rng.uniform(1, 2, (3, mjm.neq, 1))
    with contents(m.dof_frictionloss) as held:
        held[1] = 0.2
    with contents(m.jnt_range) as held:
        held[2] *= 0.5
    with contents(m.opt.impratio) as held:
        held[...] = [1, 2, 4]
    constrained.forward(m, d)
    for world, mjd in enumerate(states):
        mjm.eq_solref[:] = m.eq_solref.numpy()[world]
        mjm.dof_frictionloss[:] = m.dof_frictionloss.numpy()[world]
        mjm.jnt_range[:] = m.jnt_range.numpy()[world]
        mjm.opt.impratio = m.opt.impratio.numpy()[world]
        mujoco.mj_forward(mjm, mjd)
        n = mjd.nefc
        assert d.nefc.numpy()[world] == n
        for name in ("efc_id", "efc_aref", "efc_D"):
            np.testing.assert_allclose(getattr(d, name).numpy()[world, :n], getattr(mjd, name), rtol=1e-10)


def test_rows_have_mujoco_warps_names_too():
    d = mjw.make_data(constrained.everything(), nworld=2)
    assert d.efc.J is d.efc_J and d.efc.force is d.efc_force and "aref" in dir(d.efc)
    with pytest.raises(AttributeError, match="efc has no array 'jot': it has .*aref"):
        d.efc.jot  # noqa: B018


def test_arrays_grow_to_what_a_world_needs():
    mjm = constrained.everything()
    states = constrained.near(mjm, 4)
    m, d = constrained.put(mjm, states, njmax=7)
    assert d.efc_J.shape == (4, 7, mjm.nv)
    constrained.forward(m, d)
    assert d.nefc.numpy().tolist() == [mjd.nefc for mjd in states]
    lines = rows(check.compare_fields(m, d, mjm, states))
    assert not check.beyond(lines, 1e-12), check.beyond(lines, 1e-12)


def test_in_a_capture_rows_beyond_the_room_are_left_out_and_counted():
    mjm = constrained.everything()
    states = constrained.near(mjm, 4)
    least = min(mjd.nefc for mjd in states)
    m, d = constrained.put(mjm, states, njmax=least)
    for stage in ("kinematics", "site_frames", "com_pos", "tendon"):
        stages.run_stage(stage, m, d)
    with wp.ScopedCapture() as capture:
        mjw.make_constraint(m, d)
    wp.capture_launch(capture.graph)
    needed = [mjd.nefc for mjd in states]
    assert d.nrow.numpy().tolist() == needed
    assert d.nefc.numpy().tolist() == [least] * 4
    with pytest.raises(mjw.CapacityError, match=f"{max(needed)} rows of constraints.*njmax = {least}"):
        d.check()
