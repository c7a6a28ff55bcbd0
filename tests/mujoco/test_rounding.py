"""What single precision costs at least is measured, and no bound is wider where it costs nothing."""

import mujoco
import numpy as np

import treadle as wp
from treadle.mujoco import check, rounding

# A wheel on an axle through its centre, alone or on a cart that carries a weight at the end of an arm of 8 m: its own
# weight does not turn it, but the numbers that say so, counted from the common centre of mass, are large.
ALONE = """<mujoco><worldbody><body><joint axis="0 1 0"/><geom size=".1"/></body></worldbody></mujoco>"""
FAR = """
<mujoco><worldbody><body>
  <joint type="slide" axis="1 0 0"/><geom size=".1" pos="8 1 0"/>
  <body><joint axis="0 1 0"/><geom size=".1"/></body>
</body></worldbody></mujoco>
"""


def _costs(mjm):
    def states():
        return check.random_states(mjm, 2)

    return rounding.costs(mjm, states, lambda a, b: check.error(a, b, check.FLOOR[wp.float32])), states


def test_numbers_become_those_next_to_them():
    rng = np.random.default_rng(0)
    values = rng.normal(size=1000) * 10.0 ** rng.uniform(-30, 30, 1000)
    single = rounding.rounded(values, rng)
    gap = np.spacing(np.abs(values).astype(np.float32))
    assert (single == single.astype(np.float32)).all() and (np.abs(single - values) <= gap).all()
    assert (rounding.rounded(single.astype(float), rng) == single).all()
    powers = np.float64(2.0) ** np.arange(-10, 10).repeat(50)  # below which numbers lie twice as dense as above
    assert (rounding.rounded(powers, rng) == powers).all()
    halves = rounding.rounded(np.full(1000, 1 + np.float64(2.0) ** -24), rng)
    assert 400 < (halves > 1).sum() < 600


def test_a_field_costs_what_cancels_in_it():
    near, far = (_costs(mujoco.MjModel.from_xml_string(xml))[0] for xml in (ALONE, FAR))
    assert near["fwd_acceleration", "qacc_smooth"] < 1e-5 < 1e-4 < far["fwd_acceleration", "qacc_smooth"]
    assert max(cost for (stage, _), cost in far.items() if stage == "kinematics") < 1e-6
    assert far["step", "qpos"] < 1e-6


def test_a_bound_is_wider_only_where_rounding_is_to_blame():
    line = check.Line("fwd_acceleration", "qacc_smooth", 2e-4, 0)
    for xml, fine in ((ALONE, False), (FAR, True)):
        mjm = mujoco.MjModel.from_xml_string(xml)
        states = _costs(mjm)[1]
        for dtype, single in ((wp.float32, True), (wp.float64, False)):
            ((_, limit),) = check.judge(mjm, [line], dtype, states)
            assert (line.error <= limit) is (fine and single)
