"""Accelerations and forces of constraints are MuJoCo's, by every solver; they obey bounds; worlds do not meet."""

import mujoco
import numpy as np
import pytest

import treadle as wp
from tests.mujoco import constrained, scenes
from treadle.mujoco import check, stages

SOLVED = ("efc_force", "qacc", "qfrc_constraint")
REAL = ("so101_pick", "humanoid", "humanoid_mjw", "ant", "half_cheetah", "shadow_hand", "cmu_humanoid", "constraints")


def solved(lines):
    return [line for line in lines if line.field in SOLVED]


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("dtype, limit", [(wp.float64, 1e-11), (wp.float32, 1e-4)])
def test_newton_finds_mujocos_solution_and_states(cone, dtype, limit):
    mjm = constrained.sharp(constrained.everything(cone))
    states = constrained.near(mjm, 12)
    m, d = constrained.put(mjm, states, dtype)
    constrained.forward(m, d)
    lines = solved(check.compare_fields(m, d, mjm, states))
    assert len(lines) == 3 and not check.beyond(lines, limit), check.beyond(lines, limit)
    for world, mjd in enumerate(states):
        np.testing.assert_array_equal(d.efc_state.numpy()[world, : mjd.nefc], mjd.efc_state)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("dtype, limit", [(wp.float64, 1e-9), (wp.float32, 1e-3)])
def test_newton_solves_real_models(name, dtype, limit):
    mjm = constrained.sharp(scenes.load(name))
    lines = solved(constrained.compare(mjm, check.random_states(mjm, 4), dtype))
    assert not check.beyond(lines, limit), check.beyond(lines, limit)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_conjugate_gradients_find_the_same(cone):
    mjm = constrained.sharp(constrained.everything(cone))
    mjm.opt.solver, mjm.opt.iterations = mujoco.mjtSolver.mjSOL_CG, 3000
    lines = solved(constrained.compare(mjm, constrained.near(mjm, 4)))
    assert not check.beyond(lines, 1e-6), check.beyond(lines, 1e-6)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_projected_gauss_seidel_finds_the_same(cone):
    mjm = constrained.sharp(scenes.load("half_cheetah"))
    mjm.opt.cone = cone == "elliptic"
    mjm.opt.solver, mjm.opt.iterations = mujoco.mjtSolver.mjSOL_PGS, 3000
    states = check.random_states(mjm, 4)
    for mjd in states:
        mjd.qpos[1] -= 0.1  # into the floor
    m, d = constrained.put(mjm, states)
    constrained.forward(m, d)
    assert d.ncon.numpy().max() > 2
    mjm.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    for mjd in states:
        mujoco.mj_forward(mjm, mjd)
    lines = solved(check.compare_fields(m, d, mjm, states))
    assert not check.beyond(lines, 1e-6), check.beyond(lines, 1e-6)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_friction_without_slip_after_it_is_mujocos(cone):
    mjm = constrained.sharp(constrained.everything(cone))
    mjm.opt.noslip_iterations = 5
    lines = solved(constrained.compare(mjm, constrained.near(mjm, 6)))
    assert not check.beyond(lines, 1e-9), check.beyond(lines, 1e-9)


def test_forces_stay_in_their_cones_and_bounds():
    mjm = constrained.everything("elliptic")
    states = constrained.near(mjm, 12)
    m, d = constrained.put(mjm, states)
    constrained.forward(m, d)
    force, loss = d.efc_force.numpy(), d.efc_frictionloss.numpy()
    sliding = 0
    for world, mjd in enumerate(states):
        kind = mjd.efc_type
        f = force[world, : mjd.nefc]
        assert (np.abs(f) <= loss[world, : mjd.nefc])[(kind == 1) | (kind == 2)].all()
        assert (f >= 0)[(kind >= 3) & (kind <= 5)].all()
        for contact in mjd.contact:
            if contact.dim > 1:
                part = f[contact.efc_address : contact.efc_address + contact.dim]
                across = np.linalg.norm(part[1:] / contact.friction[: contact.dim - 1])
                assert across <= part[0] * (1 + 1e-12)
                sliding += 0 < part[0] <= across * (1 + 1e-12)
    assert sliding > 3


def test_a_solver_that_begins_at_the_solution_has_nothing_to_do():
    mjm = constrained.everything()
    m, d = constrained.put(mjm, constrained.near(mjm, 12))
    constrained.forward(m, d)
    assert d.solver_niter.numpy().max() > 3
    d.qacc_warmstart.numpy()[...] = d.qacc.numpy()
    stages.run_stage("solve", m, d)
    assert d.solver_niter.numpy().max() <= 1


def test_worlds_do_not_depend_on_their_neighbours():
    mjm = constrained.everything("elliptic")
    states = constrained.near(mjm, 11)
    m, d = constrained.put(mjm, states)
    constrained.forward(m, d)
    alone = d.qacc.numpy().copy()
    order = np.random.default_rng(0).permutation(11)
    broken = [states[k] for k in order]
    m, d = constrained.put(mjm, broken)
    d.qvel.numpy()[3] = np.nan  # a world that has gone astray
    constrained.forward(m, d)
    others = np.arange(11) != 3
    np.testing.assert_array_equal(d.qacc.numpy()[others], alone[order][others])
    for name in ("qvel", "qacc_warmstart"):  # it comes back, and nothing is left of it
        getattr(d, name).numpy()[3] = getattr(broken[3], name)
    constrained.forward(m, d)
    np.testing.assert_array_equal(d.qacc.numpy(), alone[order])
