"""A third computation decides for the contact that is right, and for no other."""

import mujoco
import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from treadle.mujoco import check, decided
from treadle.mujoco.contents import contents

OVERLAP = """
<mujoco>
  <option ccd_tolerance="1e-13" ccd_iterations="400"/>
  <worldbody>
    <body pos="0 0 .2" euler="20 40 60"><freejoint/><geom type="ellipsoid" size=".1 .15 .2"/></body>
    <body pos=".1 .12 .25"><freejoint/><geom type="{other}" size=".12 .1 .09" euler="70 30 10"/></body>
  </worldbody>
</mujoco>
"""


def both(other: str) -> tuple[mjw.Model, mjw.Data, mujoco.MjModel, mujoco.MjData]:
    """Both engines after `forward`."""
    mjm = mujoco.MjModel.from_xml_string(OVERLAP.format(other=other))
    mjd = mujoco.MjData(mjm)
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = check.put_states(m, [mjd])
    mjw.forward(m, d)
    mujoco.mj_forward(mjm, mjd)
    return m, d, mjm, mjd


@pytest.mark.parametrize("other", ["sphere", "ellipsoid", "cylinder", "box"])
def test_a_contact_that_is_less_exact_is_replaced_and_what_follows_runs_again(other):
    m, d, mjm, mjd = both(other)
    mjd.contact.frame[0][:3] += [1e-5, 0, -1e-5]
    mjd.contact.dist[0] -= 1e-7
    assert decided.decide(m, d, mjm, [mjd]) == [1]
    assert np.array_equal(mjd.contact.frame[0], d.contact_frame.numpy()[0, 0].ravel())
    decided.resume(mjm, mjd, np.zeros(mjm.nv))
    assert np.abs(mjd.qacc - d.qacc.numpy()[0]).max() < 1e-6 * np.abs(mjd.qacc).max()


@pytest.mark.parametrize("other", ["sphere", "ellipsoid", "cylinder", "box"])
def test_a_contact_of_ours_that_is_not_where_depth_is_least_is_left_to_the_comparison(other):
    m, d, mjm, mjd = both(other)
    decided.decide(m, d, mjm, [mjd])
    frame, dist, pos = (d.field(f"contact_{name}").numpy()[0, 0] for name in ("frame", "dist", "pos"))
    n = frame[0] + [0, 2e-6, 1e-6]
    frame[0] = n / np.linalg.norm(n)
    assert decided.decide(m, d, mjm, [mjd]) == [0]
    with contents(d.contact_dist) as held:
        held[0, 0] = dist - 1e-6
    assert decided.decide(m, d, mjm, [mjd]) == [0]
    pos += 1e-6
    assert decided.decide(m, d, mjm, [mjd]) == [0]
