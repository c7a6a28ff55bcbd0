"""Forces of contacts lie in their cones, and there are none beyond the margin."""

import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import constrained
from treadle.mujoco import check

SLACK = 1e-9  # of the largest force


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("solver", [0, 1, 2], ids=["PGS", "CG", "Newton"])
def test_forces_of_contacts_lie_in_their_cones(cone, solver):
    mjm = constrained.everything(cone)
    mjm.opt.solver = solver
    m = mjw.put_model(mjm, dtype=wp.float64)
    d = check.put_states(m, constrained.near(mjm, 12))
    mjw.forward(m, d)
    seen, pushing = set(), 0
    for w, count in enumerate(d.ncon.numpy()):
        force = d.field("efc_force").numpy()[w]
        for c in range(count):
            start = d.field("contact_efc_address").numpy()[w, c]
            dim, friction = int(d.contact_dim.numpy()[w, c]), d.contact_friction.numpy()[w, c]
            within = d.contact_dist.numpy()[w, c] < d.contact_includemargin.numpy()[w, c]
            assert (start >= 0) == within
            if start < 0:
                continue
            seen.add(dim)
            slack = SLACK * max(np.abs(force).max(), 1.0)
            if cone == "pyramidal" and dim > 1:  # edges of a pyramid only push
                assert force[start : start + 2 * (dim - 1)].min() >= -slack
            else:
                normal, sliding = force[start], force[start + 1 : start + dim]
                assert normal >= -slack
                assert np.linalg.norm(sliding / friction[: dim - 1]) <= normal + slack / friction[: dim - 1].min(
                    initial=1
                )
            pushing += force[start] > slack
    assert seen == {1, 3, 4, 6} and pushing > 12
