"""Wrong arguments are refused: the message names the argument, what came and what was expected."""

import copy
import pickle

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw

XML = """
<mujoco>
  <worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
  <actuator><motor joint="j"/></actuator>
</mujoco>
"""
OTHER = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"


@pytest.fixture(scope="module")
def made():
    mjm = mujoco.MjModel.from_xml_string(XML)
    m = mjw.put_model(mjm)
    return mjm, m, mjw.make_data(m, nworld=2)


def test_steps_take_models_and_data_of_ours(made):
    mjm, m, d = made
    for call in (mjw.step, mjw.forward, mjw.kinematics, mjw.reset_data, mjw.rollout):
        with pytest.raises(TypeError, match="a data is what make_data or put_data returns, not mujoco's MjData"):
            call(m, mujoco.MjData(mjm))
        with pytest.raises(TypeError, match="a model is what put_model returns, not mujoco's MjModel"):
            call(mjm, d)


@pytest.mark.parametrize("nstep", [0, -1, 2.5, "3"])
def test_numbers_of_steps_are_whole(made, nstep):
    _, m, d = made
    with pytest.raises(ValueError, match="nstep is at least 1, and an integer, not"):
        mjw.step(m, d, nstep)


def test_models_are_compiled_first():
    with pytest.raises(TypeError, match="mjm is MuJoCo's MjModel, as from .*, not 'scene.xml'"):
        mjw.put_model("scene.xml")


def test_each_argument_is_named(made):
    mjm, m, d = made
    mjd, other = mujoco.MjData(mjm), mujoco.MjModel.from_xml_string(OTHER)
    mark, steps = np.zeros, dict(nstep=4)
    for call, kind, said in (
        (lambda: mjw.make_data(mjd), TypeError, "mjm is MuJoCo's MjModel, or what put_model returns, not mujoco's"),
        (lambda: mjw.make_data(m, nworld=0), ValueError, "nworld is at least 1, not 0"),
        (lambda: mjw.make_data(m, nworld=2.5), TypeError, "nworld is an integer, at least 1, not 2.5"),
        (lambda: mjw.make_data(m, nconmax=-1), ValueError, "nconmax is at least 0, not -1"),
        (lambda: mjw.make_data(m, naconmax=-1), ValueError, "naconmax is at least 0, not -1"),
        (lambda: mjw.make_data(m, njmax="x"), TypeError, "njmax is an integer, at least 0, not 'x'"),
        (lambda: mjw.make_data(mjm, dtype=int), TypeError, "dtype is wp.float32 or wp.float64, not int"),
        (lambda: mjw.make_data(m, dtype=wp.float64), TypeError, "dtype is float64, but the model is of float32"),
        (lambda: mjw.put_data(m, mjd), TypeError, "mjm is MuJoCo's MjModel, not treadle's Model"),
        (lambda: mjw.put_data(mjm, d), TypeError, "mjd is MuJoCo's MjData, not treadle's Data"),
        (lambda: mjw.put_data(other, mjd), ValueError, "mjd has nq = 1, the model 7"),
        (lambda: mjw.get_data_into(d, mjm, d), TypeError, "result is MuJoCo's MjData, not treadle's Data"),
        (lambda: mjw.get_data_into(mujoco.MjData(other), other, d), ValueError, "d has nq = 1, the model 7"),
        (lambda: mjw.get_data_into(mjd, mjm, d, "a"), TypeError, "world_id is an integer, not 'a'"),
        (lambda: mjw.get_data_into(mjd, mjm, d, -1), IndexError, "world_id is -1, but there are 2 worlds"),
        (lambda: mjw.reset_data(m, d, [1.5, 2.0]), TypeError, "reset holds bools or integers, .* not float64"),
        (lambda: mjw.reset_data(m, d, [True]), ValueError, r"reset has shape \(1,\), not \(2,\)"),
        (lambda: mjw.reset_data_keyframe(m, d, "a"), TypeError, "key is an integer, not 'a'"),
        (lambda: mjw.reset_data_keyframe(m, d, 0), ValueError, "there is no keyframe 0: the model has 0"),
        (lambda: mjw.rollout(m, d, "abc"), TypeError, "controls are numbers, or a policy, not 'abc'"),
        (lambda: mjw.rollout(m, d, mark((3, 5, 1))), ValueError, "controls have shape .* not"),
        (lambda: mjw.rollout(m, d, nstep=2.5), TypeError, "nstep is an integer, at least 1, not 2.5"),
        (lambda: mjw.rollout(m, d, every=0, **steps), ValueError, "every is at least 1, not 0"),
        (lambda: mjw.rollout(m, d, fields=3, **steps), TypeError, "fields is a sequence of names"),
        (lambda: mjw.rollout(m, d, fields=["qps"], **steps), AttributeError, "no field qps of Data; did you mean qpos"),
        (lambda: mjw.rollout(m, d, progress=3, **steps), TypeError, "progress is a function of two numbers, not 3"),
        (lambda: mjw.jax_function(mjm), TypeError, "m is a model that put_model returns, not mujoco's MjModel"),
        (lambda: mjw.jax_function(m, nstep=1.5), TypeError, "nstep is an integer, at least 1, not 1.5"),
        (lambda: mjw.jax_function(m, njmax=-2), ValueError, "njmax is at least 0, not -2"),
        (lambda: m.expand(2, "body_mas"), ValueError, "body_mas is no field .*; did you mean body_mass"),
    ):  # fmt: skip
        with pytest.raises(kind, match=said):
            call()


def test_attributes_that_are_not_there_can_be_neither_set_nor_read(made):
    _, m, d = made
    for owner, name, said in (
        (d, "qps", "Data has no qps; did you mean qpos"),
        (d, "nworld", "nworld of Data is fixed"),
        (m, "body_mas", "Model has no body_mas; did you mean body_mass"),
        (m, "nbody", "nbody of Model is fixed"),
        (m, "opt", "opt of Model is fixed"),
        (m.opt, "gravitiy", "Option has no gravitiy; did you mean gravity"),
        (d.contact, "dist", "d.contact is a copy, so dist cannot be set"),
        (d.efc, "forc", "efc has no array 'forc'"),
    ):
        with pytest.raises(AttributeError, match=said):
            setattr(owner, name, 3)
    with pytest.raises(AttributeError, match="Data has no qps; did you mean qpos"):
        d.qps  # noqa: B018
    d.efc.force = d.efc_force
    with pytest.raises(ValueError, match="efc_force has shape"):
        d.efc.force = d.time


def test_half_steps_go_on_from_the_present_state(made):
    _, m, _ = made
    d = mjw.make_data(m, nworld=2)
    before = {"step2": lambda: mjw.step1(m, d), "euler": lambda: mjw.forward(m, d)}
    for moves in (lambda: None, lambda: mjw.step(m, d), lambda: mjw.reset_data(m, d)):
        for name, prepare in before.items():
            moves()
            with pytest.raises(mjw.OrderError, match=f"{name}: the stage kinematics has not been done"):
                getattr(mjw, name)(m, d)
            prepare()
            getattr(mjw, name)(m, d)
            with pytest.raises(mjw.OrderError):
                getattr(mjw, name)(m, d)
    mjw.step1(m, d)
    mjw.step(m, d)
    np.testing.assert_allclose(d.time.numpy(), 2 * 0.002, rtol=1e-6)  # since the last reset


@pytest.mark.parametrize(
    "name, value, kind",
    [
        ("timestep", 0.0, "greater than 0, not 0"),
        ("timestep", -0.1, "greater than 0, not -0.1"),
        ("tolerance", np.nan, "at least 0, not nan"),
        ("iterations", -4, "at least 0, not -4"),
        ("integrator", 9, "one of mjtIntegrator, not 9"),
        ("impratio", 0.0, "greater than 0, not 0"),
    ],
)
def test_options_that_mean_nothing_are_refused(made, name, value, kind):
    mjm = mujoco.MjModel.from_xml_string(XML)
    setattr(mjm.opt, name, value)
    with pytest.raises(ValueError, match=f"option {name} is {kind}"):
        mjw.put_model(mjm)
    _, m, d = made
    given = value if isinstance(value, int) else wp.array([value], dtype=float)
    with pytest.raises(ValueError, match=f"option {name} is {kind}"):
        setattr(m.opt, name, given)
    if not isinstance(value, int):  # an array that may be written to
        array = getattr(m.opt, name)
        before = float(array.numpy()[0])
        array.fill_(value)
        with pytest.raises(ValueError, match=f"option {name} is {kind}"):
            mjw.step(m, d)
            d.check()  # which looks at memory of a GPU too
        array.fill_(before)
        mjw.step(m, d)


@pytest.mark.parametrize("contact", [False, True])  # in one kernel, and by stages
def test_numbers_of_steps_are_those_that_can_be_taken(contact):
    plane = '<geom type="plane" size="1 1 1"/>' if contact else ""
    body = '<body pos="0 0 .1"><freejoint/><geom size=".1"/></body>'
    m = mjw.put_model(mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{plane}{body}</worldbody></mujoco>"))
    d = mjw.make_data(m)
    for nstep in (1, np.int64(3), np.uint8(2), True):
        mjw.step(m, d, nstep)
    assert d.time.numpy()[0] == pytest.approx(7 * 0.002)
    for nstep in (2**31, 2**64 + 3, np.uint64(2**63)):
        for call in (mjw.step, lambda m, d, n: mjw.rollout(m, d, nstep=n), lambda m, d, n: mjw.jax_function(m, n)):
            with pytest.raises(ValueError, match="nstep is at most 2147483647, not"):
                call(m, d, nstep)
    assert d.time.numpy()[0] == pytest.approx(7 * 0.002)


def test_fields_of_the_model_take_arrays_of_numpy(made):
    m = mjw.put_model(made[0])
    d = mjw.make_data(m, nworld=2)
    d.qvel.fill_(0.0)
    m.body_mass = np.array([[0, 2], [0, 3]])
    assert m.body_mass.numpy().tolist() == [[0, 2], [0, 3]] and m.varied["body_mass"] == 2
    m.opt.gravity = np.zeros((1, 3))
    mjw.step(m, d)
    assert np.abs(d.qacc.numpy()).max() < 1e-6
    for name, value in (("body_mass", np.ones(2)), ("body_pos", np.ones((1, 2, 4))), ("body_mass", np.ones((0, 2)))):
        with pytest.raises(ValueError, match=name):
            setattr(m, name, value)
    with pytest.raises(ValueError, match="body_mass takes numbers of shape .1, or worlds, 2., not <U1"):
        m.body_mass = np.array([["a", "b"]])


def test_models_are_copied_and_not_pickled(made):
    m = mjw.put_model(made[0])
    with pytest.raises(TypeError, match="cannot be pickled: pickle MuJoCo's MjModel, and put it again"):
        pickle.dumps(m)
    for way in (copy.copy, copy.deepcopy):
        other = way(m)
        other.opt.gravity.fill_(0.0)
        assert m.opt.gravity.numpy().any()
        d = mjw.make_data(other)
        mjw.step(other, d)
        assert np.abs(d.qacc.numpy()).max() < 1e-6


def test_hints_name_what_is_for_users(made):
    _, m, d = made
    for name in ("nope", "mov", "pushe"):
        with pytest.raises(AttributeError) as caught:
            getattr(d, name)
        assert not {"note", "moved", "push"} & set(str(caught.value).replace("?", "").split())
    with pytest.raises(AttributeError, match="did you mean expand"):
        m.expandd
