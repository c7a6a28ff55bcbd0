"""Contacts of every two kinds of geoms in random poses are MuJoCo's."""

from functools import cache

import mujoco
import numpy as np
import pytest

import treadle as wp
from tests.mujoco.collision import poses
from treadle.mujoco import decided
from treadle.mujoco.collision.pairs import Pairs

CURVED = ("ellipsoid", "cylinder")


@cache
def compared(dtype: object, aligned: bool) -> dict[tuple[str, str], list[poses.Difference]]:
    """Differences by kinds of geoms."""
    mjm = poses.model()
    states = poses.random_poses(mjm, 64, seed=int(aligned), aligned=aligned)
    m, d = poses.put(mjm, states, dtype)
    if dtype is wp.float64:
        decided.decide(m, d, mjm, states)
    found = {pair: [] for pair in poses.PAIRS}
    for difference in poses.differences(d, states):
        body = mjm.geom_bodyid[min(difference.geoms)]
        found[poses.PAIRS[(body - 1) // 2]].append(difference)
    return found


def by_formula(pair: tuple[str, str]) -> bool:
    a, b = (int(getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}")) for kind in pair)
    mjm = poses.model([pair])
    assert Pairs.of(mjm).methods in (("convex",), (f"{pair[0]}_{pair[1]}",)) and a <= b
    return Pairs.of(mjm).methods != ("convex",)


FORMULAS = [pair for pair in poses.PAIRS if by_formula(pair)]
POLYHEDRA = [pair for pair in poses.PAIRS if pair not in FORMULAS and not {*pair} & {*CURVED}]
SMOOTH = [pair for pair in poses.PAIRS if pair not in FORMULAS and pair not in POLYHEDRA]


@pytest.mark.parametrize("aligned", [False, True], ids=["random", "aligned"])
@pytest.mark.parametrize("pair", FORMULAS, ids="_".join)
def test_pairs_with_formulas_agree_to_the_last_digits(pair, aligned):
    found = compared(wp.float64, aligned)[pair]
    assert len(found) > 20
    assert max(max(x.dist, x.rest) for x in found) < 1e-9


@pytest.mark.parametrize("pair", FORMULAS, ids="_".join)
def test_pairs_with_formulas_agree_in_single_precision(pair):
    errors = np.array([max(x.dist, x.rest) for x in compared(wp.float32, False)[pair]])
    assert (errors < 1e-4).mean() > 0.95  # capsules that are almost parallel turn their contacts faster than they move


@pytest.mark.parametrize("aligned", [False, True], ids=["random", "aligned"])
@pytest.mark.parametrize("pair", POLYHEDRA, ids="_".join)
def test_depths_and_manifolds_of_polyhedra_agree(pair, aligned):
    found = compared(wp.float64, aligned)[pair]
    assert len(found) > 20
    # Where two faces lie equally well on another, MuJoCo takes the one that its polytope met first.
    assert np.mean([max(x.dist, x.rest) < 1e-6 for x in found]) > 0.96


@pytest.mark.parametrize("pair", POLYHEDRA, ids="_".join)
def test_depths_and_manifolds_of_polyhedra_agree_in_single_precision(pair):
    assert np.mean([max(x.dist, x.rest) < 1e-4 for x in compared(wp.float32, False)[pair]]) > 0.95


@pytest.mark.parametrize("aligned", [False, True], ids=["random", "aligned"])
@pytest.mark.parametrize("pair", SMOOTH, ids="_".join)
def test_contacts_of_curved_geoms_agree_where_mujocos_polytope_converged(pair, aligned):
    found = compared(wp.float64, aligned)[pair]
    assert len(found) > 20
    # Of the sixteen corners that stand for a disc, rounding decides which four of equal area are kept.
    least = 0.96 if "cylinder" in pair else 1.0
    assert np.mean([max(x.dist, x.rest) < 1e-6 for x in found]) >= least


@pytest.mark.parametrize("pair", SMOOTH, ids="_".join)
def test_depths_of_curved_geoms_agree_in_single_precision(pair):
    assert np.mean([x.dist < 1e-4 for x in compared(wp.float32, False)[pair]]) > 0.94


def test_depths_are_never_more_than_mujoco_found():
    """Depth is the least way out: where the engines differ, ours is the shorter one."""
    mjm = poses.model([("ellipsoid", "ellipsoid"), ("sphere", "ellipsoid"), ("ellipsoid", "box")])
    states = poses.random_poses(mjm, 64, seed=7)
    _, d = poses.put(mjm, states, wp.float64)
    dist, geoms, count = (d.field(name).numpy() for name in ("contact_dist", "contact_geom1", "ncon"))
    for w, mjd in enumerate(states):
        assert count[w] == mjd.ncon
        for c in mjd.contact:
            ours = dist[w, : count[w]][geoms[w, : count[w]] == c.geom[0]]
            assert len(ours) == 1 and ours[0] >= c.dist - 1e-6


BALL_AT_HULL = """
<mujoco>
  <option ccd_tolerance="1e-13" ccd_iterations="200"/>
  <asset><mesh name="m" vertex="{vertices}"/></asset>
  <worldbody>
    <body mocap="true"><geom name="a" type="mesh" mesh="m" contype="0"/></body>
    <body mocap="true"><geom name="b" size=".005" contype="0"/></body>
  </worldbody>
  <contact><pair geom1="a" geom2="b"/></contact>
</mujoco>
"""


def test_normals_of_thin_faces_keep_the_digits_of_single_precision():
    rng = np.random.default_rng(0)
    hull = rng.normal(size=(200, 3))
    hull *= np.array([0.1, 0.03, 0.2]) / np.linalg.norm(hull, axis=1, keepdims=True)
    mjm = mujoco.MjModel.from_xml_string(BALL_AT_HULL.format(vertices=" ".join(f"{x:.5f}" for x in hull.ravel())))
    states = []
    for _ in range(256):  # the ball is a millimetre away from three corners that are close together
        mjd = mujoco.MjData(mjm)
        mjd.mocap_quat[0] = poses.quaternion(rng)
        mjd.mocap_pos[0] = rng.uniform(-1, 1, 3)
        mujoco.mj_kinematics(mjm, mjd)
        x = hull[np.argsort(hull @ rng.normal(size=3))[-3:]]
        out = np.cross(x[1] - x[0], x[2] - x[0])
        out *= np.sign(out @ x[0]) / np.linalg.norm(out)
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, mjd.mocap_quat[0])
        mjd.mocap_pos[1] = mjd.mocap_pos[0] + turn.reshape(3, 3) @ (rng.dirichlet([1, 1, 1]) @ x + 0.001 * out)
        mujoco.mj_forward(mjm, mjd)
        states.append(mjd)
    _, d = poses.put(mjm, states, wp.float32)
    assert d.ncon.numpy().tolist() == [mjd.ncon for mjd in states] and d.ncon.numpy().sum() > 200
    touching = [
        (d.contact_frame.numpy()[w, 0, 0], mjd.contact.frame[0, :3]) for w, mjd in enumerate(states) if mjd.ncon
    ]
    assert max(np.abs(ours - theirs).max() for ours, theirs in touching) < 5e-5


SIDE_BY_SIDE = """
<mujoco>
  <worldbody>
    <body pos=".07 0 .03"><freejoint/><geom type="cylinder" size=".05 .05"/></body>
    <body><freejoint/><geom type="cylinder" size=".05 .1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_cylinders_side_by_side_touch_in_the_plane_of_their_axes(dtype):
    mjm = mujoco.MjModel.from_xml_string(SIDE_BY_SIDE)
    mjd = mujoco.MjData(mjm)
    mujoco.mj_forward(mjm, mjd)
    _, d = poses.put(mjm, [mjd], dtype)
    digits = 1e-12 if dtype is wp.float64 else 1e-6
    assert d.ncon.numpy().tolist() == [1]
    assert np.abs(d.contact_frame.numpy()[0, 0, 0] - [-1, 0, 0]).max() < digits
    x, y, z = d.contact_pos.numpy()[0, 0]
    assert abs(x - 0.035) < 1e-6 and abs(y) < digits and -0.02 <= z <= 0.08
