"""Height fields: each prism in reach makes MuJoCo's contact."""

import mujoco
import numpy as np

import treadle as wp
from tests.mujoco.collision import poses


def field(margin: float) -> mujoco.MjModel:
    """A rough field, and geoms of all kinds that collide only with it."""
    rng = np.random.default_rng(0)
    elevation = " ".join(f"{x:.3f}" for x in rng.uniform(0, 1, 63))
    kinds = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
    shapes = "".join(
        f'<body mocap="true"><geom type="{kind}" size="{size}" {"mesh=" + chr(34) + "m" + chr(34) if not k else ""} '
        f'name="g{k}" contype="0" conaffinity="0"/></body>'
        for k, (kind, size) in enumerate(zip(kinds[::-1], ("1", ".3 .2 .15", ".2 .15", ".2 .3 .15", ".15 .3", ".3")))
    )
    pairs = "".join(f'<pair geom1="field" geom2="g{k}" margin="{margin}"/>' for k in range(len(kinds)))
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option ccd_tolerance="1e-12" ccd_iterations="200"/>'
        f'<asset>{poses.mesh_asset("m", poses.hull(14, 3))}<hfield name="h" nrow="7" ncol="9" size="1 0.8 0.25 0.3" '
        f'elevation="{elevation}"/></asset><worldbody><geom type="hfield" hfield="h" euler="5 3 10" pos="0.1 0.05 0" '
        f'name="field" contype="0" conaffinity="0"/>{shapes}</worldbody><contact>{pairs}</contact></mujoco>'
    )


def test_every_prism_in_reach_makes_the_contact_of_mujoco():
    mjm = field(margin=0.02)
    rng, states = np.random.default_rng(2), []
    for _ in range(24):
        mjd = mujoco.MjData(mjm)
        mjd.mocap_pos[:] = rng.uniform([-0.9, -0.7, 0], [0.9, 0.7, 0.5], (mjm.nmocap, 3))
        mjd.mocap_quat[:] = [poses.quaternion(rng) for _ in range(mjm.nmocap)]
        mujoco.mj_forward(mjm, mjd)
        states.append(mjd)
    _, d = poses.put(mjm, states, wp.float64)
    assert list(d.ncon.numpy()) == [mjd.ncon for mjd in states] and sum(mjd.ncon for mjd in states) > 500
    found = poses.differences(d, states)
    curved = (int(mujoco.mjtGeom.mjGEOM_ELLIPSOID), int(mujoco.mjtGeom.mjGEOM_CYLINDER))
    assert max(max(x.dist, x.rest) for x in found if mjm.geom_type[x.geoms[1]] not in curved) < 1e-6
    assert max(x.dist for x in found) < 1e-6
    assert np.mean([x.rest < 1e-5 for x in found]) > 0.9
