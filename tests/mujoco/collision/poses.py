"""One model with a pair of geoms of every two kinds that collide, in random poses, and MuJoCo's contacts in them."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

import treadle.mujoco as mjw
from treadle.mujoco.contents import contents
from treadle.mujoco.stages import run_stage

SIZES = {
    "plane": "1 1 1",
    "sphere": "0.3",
    "capsule": "0.2 0.4",
    "ellipsoid": "0.2 0.3 0.5",
    "cylinder": "0.25 0.35",
    "box": "0.2 0.3 0.4",
    "mesh": "",
}
KINDS = tuple(SIZES)
PAIRS = [(a, b) for i, a in enumerate(KINDS) for b in KINDS[i:] if b != "plane"]
CURVED = ("ellipsoid", "cylinder")


def hull(count: int, seed: int) -> np.ndarray:
    """Points on an ellipsoid: the vertices of a convex mesh."""
    points = np.random.default_rng(seed).normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1)[:, None] * [0.3, 0.35, 0.4]


def mesh_asset(name: str, points: np.ndarray) -> str:
    """The element that makes a mesh of points."""
    return f'<mesh name="{name}" vertex="{" ".join(repr(float(x)) for x in points.ravel())}"/>'


def model(pairs: list[tuple[str, str]] = PAIRS, margin: float = 0.02, gap: float = 0.01) -> mujoco.MjModel:
    """Every pair of kinds three metres from the next, both geoms on mocap bodies; only they collide."""

    def body(name: str, kind: str, k: int) -> str:
        mesh = f'mesh="m{name[0]}"' if kind == "mesh" else ""
        shape = f'type="{kind}" size="{SIZES[kind] or 1}" {mesh} name="{name}" contype="0" conaffinity="0"'
        return f'<body mocap="true" pos="{3 * k} 0 0"><geom {shape}/></body>'

    bodies = "".join(body(f"a{k}", a, k) + body(f"b{k}", b, k) for k, (a, b) in enumerate(pairs))
    listed = "".join(f'<pair geom1="a{k}" geom2="b{k}" margin="{margin}" gap="{gap}"/>' for k in range(len(pairs)))
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option ccd_tolerance="1e-13" ccd_iterations="400"/>'
        f"<asset>{mesh_asset('ma', hull(14, 1))}{mesh_asset('mb', hull(60, 2))}</asset>"
        f"<worldbody>{bodies}</worldbody><contact>{listed}</contact></mujoco>"
    )


def quaternion(rng: np.random.Generator) -> np.ndarray:
    """A random rotation."""
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def random_poses(mjm: mujoco.MjModel, count: int, seed: int, aligned: bool = False) -> list[mujoco.MjData]:
    """States in which the two geoms of each pair touch, overlap or are near; ``aligned``: with axes almost parallel."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        mjd = mujoco.MjData(mjm)
        for k in range(mjm.npair):
            a, b = mjm.pair_geom1[k], mjm.pair_geom2[k]
            if mjm.geom_type[a] > mjm.geom_type[b]:
                a, b = b, a
            first, second = (mjm.body_mocapid[mjm.geom_bodyid[g]] for g in (a, b))
            turn = np.zeros(9)
            mjd.mocap_quat[first] = quaternion(rng)
            mujoco.mju_quat2Mat(turn, mjd.mocap_quat[first])
            way, far = quaternion(rng)[:3], rng.uniform(0.1, 0.9)
            if mjm.geom_type[a] == mujoco.mjtGeom.mjGEOM_PLANE:
                way, far = turn.reshape(3, 3)[:, 2], rng.uniform(-0.1, 0.6)
            mjd.mocap_pos[second] = mjd.mocap_pos[first] + way / np.linalg.norm(way) * far
            mjd.mocap_quat[second] = quaternion(rng)
            if aligned:
                q = mjd.mocap_quat[first] + rng.normal(size=4) * 10.0 ** rng.uniform(-4, -1)
                mjd.mocap_quat[second] = q / np.linalg.norm(q)
        mujoco.mj_kinematics(mjm, mjd)
        mujoco.mj_comPos(mjm, mjd)
        mujoco.mj_collision(mjm, mjd)
        found.append(mjd)
    return found


def put(mjm: mujoco.MjModel, states: list[mujoco.MjData], dtype: object) -> tuple[mjw.Model, mjw.Data]:
    """Worlds whose geoms are where those of ``states`` are, and their contacts."""
    m = mjw.put_model(mjm, dtype=dtype)
    d = mjw.make_data(m, nworld=len(states))
    with contents(d.field("geom_xpos")) as held:
        held[...] = [mjd.geom_xpos for mjd in states]
    with contents(d.field("geom_xmat")) as held:
        held[...] = [mjd.geom_xmat.reshape(-1, 3, 3) for mjd in states]
    run_stage("collision", m, d)
    return m, d


@dataclass(frozen=True)
class Difference:
    """Contacts of a pair of geoms in a world: largest differences, infinite if there are not as many of them."""

    geoms: tuple[int, int]
    world: int
    dist: float
    rest: float


def differences(d: mjw.Data, states: list[mujoco.MjData]) -> list[Difference]:
    """For each world and each pair of geoms that touch in either engine."""
    fields = [d.field(name).numpy() for name in ("contact_dist", "contact_pos", "contact_frame")]
    geoms = np.stack([d.field("contact_geom1").numpy(), d.field("contact_geom2").numpy()], axis=-1)
    counts = d.field("ncon").numpy()
    found = []
    for w, mjd in enumerate(states):
        ours = [(tuple(map(int, geoms[w, i])), *(f[w, i] for f in fields)) for i in range(counts[w])]
        theirs = [(tuple(map(int, c.geom)), c.dist, c.pos, c.frame.reshape(3, 3)) for c in mjd.contact]
        for pair in {c[0] for c in ours} | {c[0] for c in theirs}:
            found.append(_matched(pair, w, [c for c in ours if c[0] == pair], [c for c in theirs if c[0] == pair]))
    return found


def _matched(pair: tuple[int, int], w: int, ours: list[tuple], theirs: list[tuple]) -> Difference:
    """As sets: each of theirs with the nearest of ours that is left."""
    if len(ours) != len(theirs):
        return Difference(pair, w, np.inf, np.inf)
    dist = rest = 0.0
    left = list(ours)
    for c in theirs:
        apart = [(abs(float(o[1]) - c[1]), max(np.abs(o[2] - c[2]).max(), np.abs(o[3] - c[3]).max())) for o in left]
        nearest = int(np.argmin([max(pair) for pair in apart]))
        dist, rest = max(dist, apart[nearest][0]), max(rest, apart[nearest][1])
        left.pop(nearest)
    return Difference(pair, w, dist, float(rest))
