"""Accelerations and forces of constraints are MuJoCo's, by every solver; they obey bounds; worlds do not meet."""

import mujoco
import numpy as np
import pytest

import treadle as wp
from tests.mujoco import constrained, scenes
from treadle.lang.directions import Directions
from treadle.mujoco import check, stages
from treadle.mujoco.constraint.kinds import EQUALITY, FRICTION_DOF, FRICTIONLESS, LIMIT_JOINT
from treadle.mujoco.contents import contents
from treadle.mujoco.solver.disc import disc
from treadle.mujoco.solver.optimum import responses
from treadle.mujoco.solver.weights import weighing

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
    with contents(d.qacc_warmstart) as held:
        held[...] = d.qacc.numpy()
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
    with contents(d.qvel) as held:
        held[3] = np.nan  # a world that has gone astray
    constrained.forward(m, d)
    others = np.arange(11) != 3
    np.testing.assert_array_equal(d.qacc.numpy()[others], alone[order][others])
    for name in ("qvel", "qacc_warmstart"):  # it comes back, and nothing is left of it
        with contents(getattr(d, name)) as held:
            held[3] = getattr(broken[3], name)
    constrained.forward(m, d)
    np.testing.assert_array_equal(d.qacc.numpy(), alone[order])


def test_worlds_that_stop_keep_what_they_found_while_others_go_on():
    mjm = scenes.load("humanoid_mjw")
    states = check.random_states(mjm, 6)
    m, together = constrained.put(mjm, states)
    constrained.forward(m, together)
    assert len(set(together.solver_niter.numpy())) > 2
    for k, state in enumerate(states):
        m, alone = constrained.put(mjm, [state])
        constrained.forward(m, alone)
        for name in ("solver_niter", "qacc", "qfrc_constraint"):
            np.testing.assert_array_equal(getattr(together, name).numpy()[k], getattr(alone, name).numpy()[0], name)


@wp.kernel
def weigh(
    a: wp.array2d(dtype=wp.float64), b: wp.array2d(dtype=wp.float64), by_a: wp.array2d(dtype=wp.float64),
    by_b: wp.array2d(dtype=wp.float64), total: wp.array(dtype=wp.float64),
):  # fmt: skip
    w = wp.tid()
    for i in range(a.shape[1]):
        wp.atomic_add(total, 0, by_a[w, i] * a[w, i] + by_b[w, i] * b[w, i])


GIVEN, SHAPES = ("qacc_smooth", "M", "cdof", "slot_dist"), ("dof_frictionloss", "geom_friction")


def test_gradients_are_those_of_the_optimum():
    mjm = constrained.sharp(constrained.everything(bonds=False))
    mjm.geom("floor").friction *= 1.5  # two geoms that slide alike have no derivative by either
    m, d = constrained.put(mjm, constrained.near(mjm, 6))
    constrained.forward(m, d)
    rng = np.random.default_rng(0)
    by = [wp.array(rng.normal(size=(6, m.nv)), dtype=wp.float64) for _ in range(2)]
    total = wp.zeros(1, dtype=wp.float64, requires_grad=True)

    def judge() -> float:
        total.zero_()
        stages.run_stage("solve", m, d)
        wp.launch(weigh, 6, [d.qacc, d.qfrc_constraint, *by, total])
        return total.numpy()[0]

    judge()
    before = d.qacc.numpy().tobytes(), d.qfrc_constraint.numpy().tobytes()
    arrays = [*map(d.field, GIVEN), *map(m.field, SHAPES)]
    for a in arrays:
        a.requires_grad = True
    with wp.Tape() as tape:
        judge()
    assert before == (d.qacc.numpy().tobytes(), d.qfrc_constraint.numpy().tobytes())
    tape.backward(total)
    found = [a.grad.numpy().copy() for a in arrays]
    tape.reset()
    directions = Directions(graded=True)  # of the weights alone: the gradient of the tangent is the gradient
    for weights in by:
        directions.start(weights, weights)
    with wp.Tape() as tape, directions.carried():
        judge()
    tape.backward(directions.of(total))
    for a, gradient in zip(arrays, found, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), gradient, rtol=1e-9, atol=1e-12 * np.abs(gradient).max())
    tape.reset()
    for a, gradient in zip(arrays, found, strict=True):
        was = a.numpy().copy()
        way = rng.normal(size=was.shape) * np.abs(was)  # what is 0 is not there
        slope = (gradient * way).sum()
        h = min(0.05 / abs(slope), 0.02)  # steps by which the total changes in its sixth digit, so ten are left
        ends = {}
        for steps in (-2, -1, 1, 2):
            a.assign(was + steps * h * way)
            ends[steps] = judge()
        a.assign(was)
        assert slope == pytest.approx((8 * (ends[1] - ends[-1]) - (ends[2] - ends[-2])) / (12 * h), rel=1e-6)


weigh_bonds, respond = weighing(wp.float64), responses(wp.float64)
MATRIX, INTS, INTS2 = wp.array2d(dtype=wp.float64), wp.array(dtype=int), wp.array2d(dtype=int)


@wp.kernel
def both_forces(
    bond: INTS2, row: INTS2, number: INTS2, weight: INTS2, kind: INTS, dim: INTS, size: INTS, D: MATRIX, mu: MATRIX,
    jar: MATRIX, C: MATRIX, dC: MATRIX, state: INTS2, found: MATRIX, again: MATRIX,
):  # fmt: skip
    w = wp.tid()
    bonds, elliptic = (kind.shape[0], (bond, row, number, weight), kind, dim, (1, 2, 3)), w % 2 == 1
    weigh_bonds(w, bonds, elliptic, (D, mu), (size, C, dC), state, jar, found)
    respond(w, bonds, elliptic, (D, mu), jar, again)


def test_what_tapes_differentiate_are_the_forces_that_the_solver_finds():
    worlds, dims = 64, np.array([3, 1, 1, 1, 3, 4, 6])
    kinds = [EQUALITY, FRICTION_DOF, LIMIT_JOINT, *[FRICTIONLESS] * 4]
    sizes, rng = dims * (dims + 1) // 2, np.random.default_rng(0)
    D, mu, jar = rng.uniform(0.5, 2, (3, worlds, dims.sum()))
    jar = rng.normal(size=jar.shape) * jar
    D[:4] *= rng.random(D[:4].shape) < 0.5  # what other lanes of the gang have
    rows, weights = (np.cumsum(x) - x for x in (dims, sizes))
    places = (np.arange(len(dims)), rows, rows, weights)  # numbers of the Jacobian are not looked at
    listed = [wp.array(np.tile(x, (worlds, 1)), dtype=int) for x in places]
    tables = [wp.array(np.array(x, np.int32), dtype=int) for x in (kinds, dims, sizes)]
    C, dC = (wp.zeros((worlds, sizes.sum()), dtype=wp.float64) for _ in range(2))
    given, state = [wp.array(x, dtype=wp.float64) for x in (D, mu, jar)], wp.zeros(D.shape, dtype=int)
    found, again = (wp.zeros(D.shape, dtype=wp.float64) for _ in range(2))
    forces, h, way = [], 1e-6, rng.normal(size=jar.shape)
    for step in (h, -h, 0.0):
        given[2].assign(jar + step * way)
        wp.launch(both_forces, worlds, [*listed, *tables, *given, C, dC, state, found, again])
        np.testing.assert_allclose(again.numpy(), found.numpy(), rtol=1e-13)
        forces.append(found.numpy().copy())
    r, c, steeper = 0, 0, np.zeros_like(jar)  # the weights are the derivative of forces, the Hessian that of the cost
    for n, size in zip(dims, sizes, strict=True):
        weights = np.zeros((worlds, n, n))
        weights[(slice(None), *np.tril_indices(n))] = C.numpy()[:, c : c + size]
        weights += np.tril(weights, -1).swapaxes(1, 2)
        steeper[:, r : r + n] = np.einsum("wij,wj->wi", weights, way[:, r : r + n])
        r, c = r + n, c + size
    np.testing.assert_allclose((forces[1] - forces[0]) / (2 * h), steeper, atol=1e-7)
    edges, cones = ([set(column) for column in state.numpy()[k::2, rows].T] for k in range(2))  # pieces of the cost
    assert cones[1:5] == [{1, 2, 3}, {1, 2}, {1, 2}, {0, 1, 2}] and len(edges[4]) > 8


VEC6, MAT66 = wp.types.vector(length=6, dtype=wp.float64), wp.types.matrix(shape=(6, 6), dtype=wp.float64)
on_disc = disc(wp.float64)


@wp.kernel
def rest_on(a: MAT66, force: wp.array(dtype=VEC6), residual: wp.array(dtype=VEC6), moved: wp.array(dtype=VEC6)):
    i = wp.tid()
    moved[i] = on_disc(a, force[i], residual[i], VEC6(wp.float64(0.8)), 3)


def test_friction_on_a_disc_has_a_derivative_where_nothing_pushes():
    rng, values, way = np.random.default_rng(0), np.zeros((2, 4, 6)), np.zeros((2, 4, 6))
    values[0, :, 0] = 1, 1, 1, 0
    values[1, 1:, 1:3] = (0.1, 0.2), (3, -2), (1, 2)  # nothing pushes; sticks; slides; touches nothing
    given = [wp.array(x, dtype=VEC6, requires_grad=True) for x in values]
    moved, by = wp.zeros(4, dtype=VEC6, requires_grad=True), rng.normal(size=(4, 6))
    way[:, :3] = rng.normal(size=(2, 3, 6))
    a = MAT66(np.diag([1, 2, 3, 1, 1, 1]) + 0.1)
    with wp.Tape() as tape:
        wp.launch(rest_on, 4, [a, *given, moved])
    tape.backward(grads={moved: wp.array(by, dtype=VEC6)})
    found = np.array([x.grad.numpy() for x in given])
    assert np.isfinite(found).all()
    ends = []
    for h in (1e-6, -1e-6):
        moved_values = wp.empty(4, dtype=VEC6)
        wp.launch(rest_on, 4, [a, *[wp.array(x + h * y, dtype=VEC6) for x, y in zip(values, way)], moved_values])
        ends.append((by * moved_values.numpy()).sum())
    assert (found * way).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-8)
