"""Rollouts: open loop, with a policy, and from the command line."""

import json

import mujoco
import numpy as np
import pytest

import treadle.mujoco as mjw
from treadle.mujoco.__main__ import main
from treadle.mujoco.bench import Race, bench
from treadle.mujoco.contents import contents

SCENE = """
<mujoco>
  <worldbody>
    <geom type="plane" size="2 2 1"/>
    <body pos="0 0 0.3"><freejoint/><geom type="sphere" size="0.1"/></body>
    <body pos="0 0 1"><joint name="hinge" axis="0 1 0" range="-2 2" limited="true" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.05"/></body>
  </worldbody>
  <actuator><position joint="hinge" kp="5" ctrlrange="-1 1"/></actuator>
  <sensor><jointpos joint="hinge"/></sensor>
</mujoco>
"""


@pytest.fixture(scope="module")
def scene() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(SCENE)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "scene.xml"
    file.write_text(SCENE)
    return str(file)


def test_open_loop_stays_with_mujocos_engine(scene):
    nworld, nstep = 3, 60
    controls = np.random.default_rng(0).uniform(-1, 1, (nworld, nstep, 1))
    m = mjw.put_model(scene)
    way = mjw.rollout(m, mjw.make_data(m, nworld), controls, fields=("time", "qpos", "sensordata"))
    for w in range(nworld):
        mjd = mujoco.MjData(scene)
        for k in range(nstep):
            mjd.ctrl[:] = controls[w, k]
            mujoco.mj_step(scene, mjd)
            assert np.abs(way["qpos"][w, k] - mjd.qpos).max() < 1e-4
            assert np.abs(way["sensordata"][w, k] - mjd.sensordata).max() < 1e-4
    assert way["time"].shape == (nworld, nstep)


def test_policies_see_the_worlds_and_every_counts(scene):
    m = mjw.put_model(scene)
    seen = []

    def policy(d, k):
        seen.append((k, d.qpos.numpy()[0, 2].item()))
        return None if k == 3 else np.full(1, 0.5)

    way = mjw.rollout(m, mjw.make_data(m, 2), policy, nstep=7, every=3, fields=("qpos",))
    assert way["qpos"].shape == (2, 2, 8) and [k for k, _ in seen] == [*range(7)]
    assert seen[3][1] == way["qpos"][0, 0, 2] and seen[6][1] == way["qpos"][0, 1, 2]


def test_one_sequence_for_all_worlds(scene):
    m = mjw.put_model(scene)
    way = mjw.rollout(m, mjw.make_data(m, 3), np.ones((5, 1)), fields=iter(["qpos"]))
    assert (way["qpos"] == way["qpos"][:1]).all()


@pytest.mark.parametrize("controls, nstep, text", [
    (np.zeros((3, 5, 2)), None, r"controls have shape \(2, nstep, 1\)"),
    (np.zeros((2, 5, 1)), 6, "there are controls for 5 steps"),
    (None, None, "nstep is needed"),
    (None, 0, "nstep is at least 1, not 0"),
    (np.zeros((2, 0, 1)), None, "nstep is at least 1, not 0"),
    (lambda d, k: np.zeros(4), 2, r"shape \(2, 1\) or \(1,\), not \(4,\)"),
])  # fmt: skip
def test_says_what_does_not_fit(scene, controls, nstep, text):
    m = mjw.put_model(scene)
    with pytest.raises(ValueError, match=text):
        mjw.rollout(m, mjw.make_data(m, 2), controls, nstep=nstep)


def test_names_an_unknown_field(scene):
    m = mjw.put_model(scene)
    for name in ("qpoz", "check"):
        with pytest.raises(AttributeError, match=f"there is no field {name}"):
            mjw.rollout(m, mjw.make_data(m, 2), nstep=1, fields=(name,))
    with pytest.raises(TypeError, match="fields is a sequence of names"):
        mjw.rollout(m, mjw.make_data(m, 2), nstep=1, fields="qpos")


def test_refuses_to_keep_nothing(scene):
    m = mjw.put_model(scene)
    with pytest.raises(ValueError, match="nothing would be kept"):
        mjw.rollout(m, mjw.make_data(m, 2), nstep=1, fields=())
    with pytest.raises(ValueError, match="every is from 1 to nstep = 3, not 5"):
        mjw.rollout(m, mjw.make_data(m, 2), nstep=3, every=5)


def test_bench_writes_its_figures(path, tmp_path, capsys):
    out = tmp_path / "bench.json"
    few = ["--nworld", "8", "--rounds", "1", "--seconds", "0.01", "--json", str(out)]
    assert main(["bench", path, *few, "--set", "diverse"]) == 0
    found = json.loads(out.read_text())
    assert found["ratio"] == pytest.approx(found["world_steps_per_s"] / found["mujoco_world_steps_per_s"])
    assert all(one["us"] > 0 and one["bytes"] >= 0 <= one["of_peak"] < 1 for one in found["stages"].values())
    assert found["stages"]["factor_m"]["flop"] > 0 and found["peak_flops"] > 1e8
    assert found["compile_s"] > 0 and sum(one["share"] for one in found["stages"].values()) == pytest.approx(1)
    assert "world-steps/s" in capsys.readouterr().out


def test_both_engines_of_a_bench_do_the_same(scene):
    race = Race(scene, 8, diverse=True, threads=1)
    race.settle(lambda what, share: None)
    controls = np.stack([race.controls() for _ in range(4)], axis=1)
    race.restore()
    for k in range(4):
        with contents(race.d.ctrl) as held:
            held[...] = controls[:, k]
        mjw.step(race.m, race.d)
    ends = race.theirs(controls)[1]
    assert np.abs(race.d.qpos.numpy() - ends[:, -1, 1 : 1 + scene.nq]).max() < 1e-4


def test_bench_refuses_other_sets(scene):
    with pytest.raises(ValueError, match="alike or diverse"):
        bench(scene, 8, worlds="odd")


def test_rollout_writes_a_file(path, tmp_path):
    out = tmp_path / "way.npz"
    assert main(["rollout", path, "--nworld", "2", "--nstep", "6", "--every", "2", "--out", str(out)]) == 0
    assert np.load(out)["qpos"].shape == (2, 3, 8)


def test_controls_come_from_a_file_or_by_chance(path, tmp_path, capsys):
    out = ["--nworld", "2", "--out", str(tmp_path / "way.npz")]
    given = np.zeros((3, mujoco.MjModel.from_xml_path(path).nu))
    np.save(tmp_path / "c.npy", given)
    np.savez(tmp_path / "one.npz", anything=given)
    np.savez(tmp_path / "named.npz", ctrl=given, other=0)
    for file in ("c.npy", "one.npz", "named.npz"):
        assert main(["rollout", path, *out, "--controls", str(tmp_path / file)]) == 0
        assert np.load(tmp_path / "way.npz")["time"].shape == (2, 3)
    assert main(["rollout", path, *out, "--controls", "random", "--nstep", "4"]) == 0
    np.savez(tmp_path / "many.npz", a=given, b=given)
    np.save(tmp_path / "words.npy", np.array(["a"]))
    (tmp_path / "c.txt").write_text("1 2 3")
    (tmp_path / "empty.npy").write_text("")
    for file, said in (
        ("many.npz", "holds a, b: call the array"),
        ("words.npy", "are numbers, not"),
        ("c.txt", "is no NumPy file"),
        ("empty.npy", "is no NumPy file"),
        ("gone.npy", "gone.npy"),
    ):
        assert main(["rollout", path, *out, "--controls", str(tmp_path / file)]) == 1
        assert said in capsys.readouterr().err


def test_a_missing_file_is_named(capsys):
    assert main(["bench", "nowhere.xml"]) == 1
    assert "nowhere.xml" in capsys.readouterr().err


@pytest.mark.parametrize("command, option", [("rollout", "--out"), ("bench", "--json")])
def test_a_folder_that_is_missing_is_named_before_the_work(path, tmp_path, capsys, command, option):
    assert main([command, path, option, str(tmp_path / "nowhere" / "file")]) == 1
    assert "there is no folder" in capsys.readouterr().err


def test_no_steps_are_not_a_thousand(path, tmp_path, capsys):
    assert main(["rollout", path, "--nstep", "0", "--out", str(tmp_path / "way.npz")]) == 1
    assert "nstep is at least 1" in capsys.readouterr().err
