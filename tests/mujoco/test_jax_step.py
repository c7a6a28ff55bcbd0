"""The step as a function of JAX."""

import mujoco
import numpy as np
import pytest

import treadle as wp

mjw = pytest.importorskip("treadle.mujoco")
jax = pytest.importorskip("jax")
jnp = jax.numpy
STEPS, WORLDS = 20, 3

PENDULUM = """<mujoco><option timestep=".01"/><worldbody><body>
  <joint name="hinge" axis="0 1 0" damping=".1" limited="{limited}" range="-20 20"/>
  <geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/></body></worldbody>
  <actuator><motor joint="hinge"/></actuator></mujoco>"""


def model(limited: bool = False):
    text = PENDULUM.format(limited="true" if limited else "false")
    return mjw.put_model(mujoco.MjModel.from_xml_string(text))


def rollout(step, state, controls):
    return jax.lax.scan(lambda s, c: (step(s, c), None), state, controls)[0]


def judged(step, state):
    return lambda controls: (rollout(step, state, controls).qpos ** 2).sum()


CONTROLS = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (STEPS, WORLDS, 1)), jnp.float32)


def test_a_rollout_and_its_gradient_are_those_of_steps_on_a_tape():
    m = model()
    d = mjw.make_data(m, WORLDS)
    given = [wp.array(np.asarray(c), dtype=float, requires_grad=True) for c in CONTROLS]
    loss = wp.zeros(1, dtype=float, requires_grad=True)

    @wp.kernel
    def squares(q: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
        i, j = wp.tid()
        wp.atomic_add(loss, 0, q[i, j] * q[i, j])

    with wp.Tape() as tape:
        for c in given:
            wp.copy(d.ctrl, c)
            mjw.step(m, d)
        wp.launch(squares, (WORLDS, 1), [d.qpos, loss])
    tape.backward(loss)
    step = mjw.jax_function(m)
    value, gradient = jax.jit(jax.value_and_grad(judged(step, step.state(WORLDS))))(CONTROLS)
    assert float(value) == pytest.approx(loss.numpy()[0], rel=1e-6)
    assert np.allclose(gradient, [c.grad.numpy() for c in given], rtol=1e-5, atol=1e-8)
    end = rollout(step, step.state(WORLDS), CONTROLS)
    assert np.array_equal(end.qpos, d.qpos.numpy()) and np.array_equal(end.time, d.time.numpy())


def test_worlds_of_vmap_are_worlds_of_one_launch():
    step = mjw.jax_function(model())
    many = jax.jit(jax.grad(judged(step, step.state(WORLDS))))(CONTROLS)
    each = jax.jit(jax.vmap(jax.grad(judged(step, step.state())), in_axes=1, out_axes=1))(CONTROLS)
    assert np.array_equal(many, each)
    nested = jax.vmap(jax.vmap(step, in_axes=(None, 0)), in_axes=(0, None))
    start = jax.tree.map(lambda x: jnp.stack([x, x + 1]), step.state())
    assert nested(start, CONTROLS[0]).qpos.shape == (2, WORLDS, 1)


def test_steps_of_one_call_go_back_by_any_schedule():
    m, steps, found = model(), 8, []
    for nstep, checkpoint in ((1, "all"), (steps, "all"), (steps, 3), (steps, "sqrt"), (steps, "1kB")):
        step = mjw.jax_function(m, nstep, checkpoint)
        gradient = jax.grad(judged(step, step.state(WORLDS)))(CONTROLS[:1].repeat(steps // nstep, 0))
        found.append(gradient.sum(0))
    assert all(np.array_equal(found[1], other) for other in found[2:])
    assert np.allclose(found[0], found[1], rtol=1e-5)
    with pytest.raises(ValueError, match="checkpoint is"):
        mjw.jax_function(m, checkpoint="some")


def test_gradients_pass_constraints():
    steps, beyond = 4, 0.36  # the range ends at 20 degrees
    step = mjw.jax_function(model(limited=True), nstep=steps, nconmax=0)
    state = step.state(1)
    assert state.qacc_warmstart.shape == (1, 1)
    state = state._replace(qpos=jnp.full((1, 1), beyond))

    def end(push: float) -> float:
        """The same by MuJoCo's engine."""
        mjm = mujoco.MjModel.from_xml_string(PENDULUM.format(limited="true"))
        d = mujoco.MjData(mjm)
        d.qpos[:], d.ctrl[:] = beyond, push
        mujoco.mj_step(mjm, d, steps)
        assert d.nefc == 1
        return d.qpos[0]

    gradient, h = jax.jit(jax.grad(lambda push: step(state, push * jnp.ones((1, 1))).qpos[0, 0]))(3.0), 1e-5
    assert float(gradient) == pytest.approx((end(3.0 + h) - end(3.0 - h)) / (2 * h), rel=1e-4)


def test_forward_mode_is_reverse_mode_or_said_not_to_be():
    free, limited = mjw.jax_function(model()), mjw.jax_function(model(limited=True), nconmax=0)
    for step in (free, limited):

        def speed(push, step=step):
            return step(step.state(1), push).qvel[0, 0]

        if step is free:
            moved = jax.jvp(speed, (jnp.ones((1, 1)),), (jnp.ones((1, 1)),))[1]
            assert float(moved) == pytest.approx(float(jax.grad(speed)(jnp.ones((1, 1)))[0, 0]), rel=1e-5)
        else:
            with pytest.raises(wp.KernelGradientError, match=r"no forward mode(.|\n)*use reverse mode"):
                jax.jvp(speed, (jnp.ones((1, 1)),), (jnp.ones((1, 1)),))


def test_what_found_no_room_is_said():
    ball = "<body pos='0 0 .09'><freejoint/><geom size='.1'/></body>"
    m = mjw.put_model(mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><geom type='plane' size='1 1 1'/>{ball}</worldbody></mujoco>"))  # fmt: skip
    for room in (0, None):
        step = mjw.jax_function(m, nconmax=room)
        state = jax.jit(lambda s, step=step: step(step(s)))(step.state(2))
        np.testing.assert_array_equal(state.needed, [[1, 0], [1, 0]])
        if room is None:
            step.check(state)
        else:
            with pytest.raises(mjw.CapacityError, match="2 of 2 worlds needed up to 1 contacts, but nconmax = 0"):
                step.check(state)
    unwatched = state._replace(needed=None)
    assert step(unwatched).needed is None
    with pytest.raises(ValueError, match="nobody has counted"):
        step.check(unwatched)


def test_forces_and_states_come_and_go():
    m = model()
    step, d = mjw.jax_function(m, nstep=2), mjw.make_data(m, WORLDS)
    d.qvel.assign(np.full((WORLDS, 1), 0.5))
    d.xfrc_applied.assign(np.full((WORLDS, m.nbody, 6), 0.25))
    control = mjw.Control(ctrl=CONTROLS[0], xfrc_applied=jnp.full((WORLDS, m.nbody, 6), 0.25))
    state = jax.jit(step)(step.state(d), control)
    d.ctrl.assign(np.asarray(CONTROLS[0]))
    mjw.step(m, d, 2)
    assert np.array_equal(state.qvel, d.qvel.numpy())
    other = mjw.make_data(m, WORLDS)
    state.put(other)
    assert np.array_equal(other.qpos.numpy(), d.qpos.numpy())


def test_what_does_not_fit_is_named():
    step = mjw.jax_function(model())
    with pytest.raises(Exception, match=r"qpos must have the shape \(1,\), \(nq\), not \(3,\)"):
        step(step.state()._replace(qpos=jnp.zeros(3)))
    with pytest.raises(Exception, match="no mocap_pos: leave it out"):
        step(step.state(), mjw.Control(mocap_pos=jnp.zeros((1, 3))))
    with pytest.raises(Exception, match="has no qvel"):
        step(step.state()._replace(qvel=None))
    with pytest.raises(wp.LaunchTypeError, match=r"is a State, not (.|\n)*step.state"):
        step(jnp.zeros(2))
    with pytest.raises(ValueError, match="nworld is at least 1"):
        step.state(0)
    with pytest.raises(ValueError, match="nstep is at least 1"):
        mjw.jax_function(step.model, 0)
