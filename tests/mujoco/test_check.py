"""The comparison with MuJoCo finds what differs, says where, and is a command."""

import subprocess
import sys

import numpy as np

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import models, scenes
from treadle.mujoco import check
from treadle.mujoco.contents import contents


def test_a_difference_is_found_and_named():
    mjm = models.pair()
    states = check.random_states(mjm, 3)
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = check.put_states(m, states)
    mjw.forward(m, d)
    with contents(d.qfrc_bias) as held:
        held[1, 0] += 1.0
    import mujoco

    for mjd in states:
        mujoco.mj_forward(mjm, mjd)
    found = check.beyond(check.compare_fields(m, d, mjm, states), 1e-9)
    assert [(line.field, line.stage, line.world) for line in found] == [("qfrc_bias", "rne", 1)]


def test_what_is_no_number_is_beyond_every_bound():
    assert check.error(np.array([np.nan]), np.array([1.0])) == np.inf
    assert check.error(np.zeros(0), np.zeros(0)) == 0.0
    assert check.error(np.array([1e-4]), np.array([0.0])) == 1e-4 / check.FLOOR[wp.float64]


ISLANDS = """
<mujoco><worldbody>
  <geom type="plane" size="3 3 1"/>
  <body pos="0 0 .18"><freejoint/><geom type="box" size=".1 .1 .2" euler="3 4 5"/></body>
  <body pos="1 0 .1"><joint axis="0 1 0" limited="true" range="0 1"/><geom size=".05"/></body>
  <body pos="2 0 .09"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>
"""


def test_models_of_several_islands_do_not_differ(tmp_path):
    scene = tmp_path / "islands.xml"
    scene.write_text(ISLANDS)
    table, fine = check.report(str(scene), 4)
    assert fine, table
    assert "solve" in table


def test_the_command_prints_a_table_and_its_status_says_whether_all_is_well(tmp_path):
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    good.write_text(models.PAIR)
    bad.write_text(scenes.FLUID.replace("<option ", '<option integrator="discrete" '))
    command = [sys.executable, "-m", "treadle", "mujoco", "check", "--states", "2"]
    done = subprocess.run([*command, str(good)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "kinematics" in done.stdout and "float32, 2 states" in done.stdout
    refused = subprocess.run([*command, str(bad)], capture_output=True, text=True, timeout=300)
    assert refused.returncode == 1 and "option integrator: DISCRETE" in refused.stdout + refused.stderr
