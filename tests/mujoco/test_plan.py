"""Steps by plans: chunk by chunk with fields in scratch, they leave what launches of stage after stage leave."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import constrained, models, scenes
from treadle.mujoco import plan as plans
from treadle.mujoco.advance import INTEGRATORS
from treadle.mujoco.check import STATE
from treadle.mujoco.contents import contents
from treadle.mujoco.stages import run_stage
from treadle.runtime import chains

NWORLD = 21


def stepped_by_stages(m, d, nstep=1):
    for _ in range(nstep):
        mjw.forward(m, d)
        INTEGRATORS[m.opt.integrator](m, d)


def worlds_of(mjm, m, nworld=NWORLD, **sizes):
    d = mjw.make_data(m, nworld, **sizes)
    states = constrained.near(mjm, nworld)
    for name in STATE:
        values = getattr(d, name).numpy()
        for world, mjd in enumerate(states):
            values[world, ...] = np.reshape(getattr(mjd, name), values.shape[1:])
    return d


def assert_same(d, other, names, what=""):
    """Equal fields, of lists as far as they are in use."""
    counts = {"nconmax": other.ncon.numpy(), "njmax": other.nefc.numpy()}
    for name in names:
        mine, theirs = getattr(d, name).numpy(), getattr(other, name).numpy()
        row = getattr(mjw.Data, name)
        used = counts.get(row.shape[1]) if len(row.shape) > 1 else None
        for world in range(d.nworld):
            upto = slice(None) if used is None else slice(used[world])
            np.testing.assert_array_equal(mine[world, ...][upto] if mine.ndim > 1 else mine[world],
                                          theirs[world, ...][upto] if mine.ndim > 1 else theirs[world],
                                          err_msg=f"{name} of world {world} {what}")  # fmt: skip


NAMES = [row.name for row in mjw.Data.rows() if row.role == "state"]
DERIVED = [row.name for row in mjw.Data.rows() if row.role == "derived" and row.stage != "inverse"]


@pytest.mark.parametrize("integrator", ["EULER", "RK4", "IMPLICITFAST"])
def test_plans_have_the_bits_of_stages(integrator, monkeypatch):
    monkeypatch.setattr(chains, "BROAD", 1)
    monkeypatch.setattr(chains, "FEWEST", 1)
    monkeypatch.setattr(plans, "LEAST", 1)
    mjm = constrained.senses()
    mjm.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    m = mjw.put_model(mjm)
    d, other = worlds_of(mjm, m), worlds_of(mjm, m)
    for k in range(3):
        for each in (d, other):
            each.ctrl.fill_(0.1 * k)
        mjw.step(m, d)
        stepped_by_stages(m, other)
        assert_same(d, other, NAMES, f"after step {k}")
    graph = d._plan._graph
    assert graph._table.chains == 1 and graph._table._record["inside"], "a step is one chain"
    assert "xpos" not in d._arrays, "nobody has read it"
    assert_same(d, other, ["sensordata", "xpos", "cvel", "efc_force", *DERIVED])
    dealt = worlds_of(mjm, m)  # worlds in another order share gangs
    dealt._dealer.dealt = True
    dealt._wanted.update(("xpos", "efc_J", "ncon", "sensordata"))
    dealt.field("order").assign(np.random.default_rng(0).permutation(NWORLD).astype(np.int32))
    for k in range(3):
        dealt.ctrl.fill_(0.1 * k)
        mjw.step(m, dealt)
    assert dealt._plan.order is not None
    assert_same(dealt, d, [*NAMES, "load", "xpos", "efc_J", "ncon", "sensordata", "cvel"])


def test_several_steps_at_once_and_any_workers(monkeypatch):
    mjm = constrained.senses()
    m = mjw.put_model(mjm)
    other = worlds_of(mjm, m)
    for _ in range(4):
        mjw.step(m, other)
    for workers in (1, 2, 3):
        monkeypatch.setattr(wp.config, "workers", workers)
        d = worlds_of(mjm, m)
        mjw.step(m, d, nstep=4)
        assert_same(d, other, [*NAMES, "qfrc_constraint", "sensordata"], f"with {workers} workers")


def test_what_is_read_again_and_again_is_stored():
    mjm = constrained.senses()
    m = mjw.put_model(mjm)
    d, other = worlds_of(mjm, m), worlds_of(mjm, m)
    for k in range(5):
        mjw.step(m, d)
        stepped_by_stages(m, other)
        assert ("xpos" in d._late) == (k < 2) and "xquat" in d._late
        assert_same(d, other, ["xpos", "sensordata"], f"after step {k}")


@pytest.mark.parametrize("sensed", [True, False])
def test_worlds_that_need_more_room_get_it(sensed):
    mjm = constrained.senses()
    m = mjw.put_model(mjm)
    other = worlds_of(mjm, m)
    stepped_by_stages(m, other, 3)
    for nstep in (1, 3):
        d = worlds_of(mjm, m, nconmax=1, njmax=2)
        d._wanted.update({"sensordata"} if sensed else {})  # as if somebody read it after each step
        for _ in range(0, 3, nstep):
            mjw.step(m, d, nstep=nstep)
        assert d.sizes["nconmax"] > 1
        assert (d.sizes["njmax"] > 2) == sensed, "only sensors look at the list of rows"
        assert_same(d, other, [*NAMES, "ncon", "nefc", "qfrc_constraint", "sensordata"])
        assert d.sizes["njmax"] > 2


def test_arrays_of_the_users_take_part():
    mjm = constrained.senses()
    m = mjw.put_model(mjm)
    d, other = worlds_of(mjm, m), worlds_of(mjm, m)
    planes = d.ctrl
    for k in range(6):
        values = np.random.default_rng(k).normal(size=(NWORLD, mjm.nu)).astype(np.float32)
        if k < 3:
            d.ctrl = wp.array(values, dtype=float)
            plan = d._plan if k else None
        else:
            d.ctrl = planes
            with contents(planes) as held:
                held[...] = values
        with contents(other.ctrl) as held:
            held[...] = values
        mjw.step(m, d)
        stepped_by_stages(m, other)
        assert k not in (1, 2) or d._plan is plan, "a new array of the same layout needs no new plan"
        assert_same(d, other, NAMES, f"after step {k}")


@pytest.mark.parametrize("make", [constrained.senses, models.pair])
def test_captured_steps_are_looked_at_after_each_run(make):
    mjm = make()
    m = mjw.put_model(mjm)
    d, other = worlds_of(mjm, m), worlds_of(mjm, m)
    mjw.step(m, d)
    mjw.step(m, other)
    with wp.ScopedCapture() as capture:
        mjw.step(m, d, nstep=2)
        height = wp.clone(d.qfrc_bias)
    for _ in range(3):
        wp.capture_launch(capture.graph)
        mjw.step(m, other, nstep=2)
        assert_same(d, other, ["qpos", "qvel", "xpos", "qacc"])
        np.testing.assert_array_equal(height.numpy(), other.qfrc_bias.numpy())


def test_memory_grows_with_what_is_read():
    mjm = constrained.senses()
    m = mjw.put_model(mjm)
    d = mjw.make_data(m, nworld=64)
    mjw.step(m, d)
    before = d.nbytes
    assert before / d.nworld < 40 * (mjm.nq + mjm.nv + mjm.nu + 8 * mjm.nmocap + 10)
    d.cinert.numpy()
    assert before < d.nbytes < before + 64 * (mjm.nbody * 80 + 2000)


def test_what_is_left_out_in_a_capture_depends_on_the_world_alone(monkeypatch):
    mjm = constrained.senses()
    m = mjw.put_model(mjm)
    d, found = worlds_of(mjm, m, nconmax=1), []
    with wp.ScopedCapture() as capture:
        mjw.forward(m, d)
    wp.capture_launch(capture.graph)
    most = d.field("live_need").numpy().copy()
    found.append(d.qacc.numpy().copy())
    for width in (4, 8, 16):
        monkeypatch.setattr(wp.config, "gang_width", width)
        d.qacc.fill_(0.0)
        with wp.ScopedCapture() as capture:
            run_stage("solve", m, d)
        wp.capture_launch(capture.graph)
        found.append(d.qacc.numpy().copy())
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])
    monkeypatch.undo()
    enough = worlds_of(mjm, m)
    mjw.forward(m, enough)
    np.testing.assert_array_equal(most, enough.ncon.numpy())
    same = (found[0] == enough.qacc.numpy()).all(axis=1)
    np.testing.assert_array_equal(same, most <= 1)
    with pytest.raises(mjw.CapacityError, match=rf"{sum(most > 1)} of 21 worlds needed up to {max(most)} contacts"):
        d.check()


def test_every_step_of_a_capture_counts_what_it_needs():
    mjm = constrained.senses()
    m = mjw.put_model(mjm)
    d, other = worlds_of(mjm, m, nconmax=1), worlds_of(mjm, m)
    mjw.step(m, other)
    with wp.ScopedCapture() as capture:
        mjw.step(m, d)
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(d.captured_needs().numpy()[:, 0], other.ncon.numpy())


def test_lists_of_rows_are_for_those_who_look_at_them():
    m = mjw.put_model(constrained.senses())
    assert plans.reads_lists(m) and plans.reads_lists(m, {"xpos", "sensordata"}) and plans.reads_lists(m, {"cacc"})
    assert not plans.reads_lists(m, {"xpos"}), "nobody asks for what sensors say"
    mjm = scenes.load("so101_pick")
    assert mjm.opt.noslip_iterations > 0
    assert not plans.reads_lists(mjw.put_model(mjm)), "its sensors are of frames"


@pytest.mark.parametrize("symbol", ["njmax", "nconmax", ""])
def test_what_a_captured_step_leaves_out_is_said(symbol):
    mjm = constrained.senses()
    m = mjw.put_model(mjm)
    d = worlds_of(mjm, m)
    d._wanted.add("sensordata")  # as if somebody read it after each step: sensors look at the lists
    d.sizes.update({symbol: 2} if symbol else {})
    with wp.ScopedCapture() as capture:
        mjw.step(m, d)
    wp.capture_launch(capture.graph)
    d.nefc.numpy()  # makes room, as a step outside of captures does: for what comes, not for what was left out
    mjw.step(m, d)
    if symbol:
        with pytest.raises(mjw.CapacityError, match=f"but {symbol} = 2"):
            d.check()
    else:
        d.check()


def test_a_step_after_a_capture_lacks_nothing_that_the_capture_did_not_need():
    mjm = constrained.everything()
    m = mjw.put_model(mjm)
    d = worlds_of(mjm, m, njmax=2)
    with wp.ScopedCapture() as capture:
        mjw.step(m, d)
    wp.capture_launch(capture.graph)
    mjw.step(m, d)
    d.check()
    assert (d.nefc.numpy() > 2).any()
    d.check()


def test_a_step_outside_of_captures_has_room_for_what_nobody_reads():
    mjm = constrained.everything()
    m = mjw.put_model(mjm)
    d = worlds_of(mjm, m, nconmax=2, njmax=3)
    mjw.step(m, d)
    d.check()
    assert (d.ncon.numpy() > 2).any() and d.sizes["nconmax"] > 2
