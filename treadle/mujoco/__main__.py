"""``python -m treadle mujoco check|bench|rollout scene.xml``: compare, time or run a model without writing a program.

``check`` compares it with MuJoCo's own engine, stage by stage; the exit status is 1 if a stage is beyond its bound.
``bench`` times it beside that engine. ``rollout`` steps it and writes what became of it to a file. The exit status is 1
if the model uses what is not simulated, too.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import numpy as np

import treadle as wp
from treadle.base.errors import UnsupportedModelError


def main(argv: list[str] | None = None) -> int:
    """The command line. Returns the exit status."""
    given = _parser().parse_args(argv)
    if not Path(given.scene).is_file():
        print(f"there is no file {given.scene}", file=sys.stderr)
        return 1
    for file in (getattr(given, "out", None), getattr(given, "json", None)):
        if file is not None and not file.parent.is_dir():  # said before the work, which would be lost
            print(f"there is no folder {file.parent} for {file.name}", file=sys.stderr)
            return 1
    wp.config.quiet = True
    try:
        return given.run(given)
    except (UnsupportedModelError, ValueError, AttributeError, OSError) as error:  # of MuJoCo's compiler ValueError
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m treadle mujoco", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = _command(commands, "check", _check, "compare a model with MuJoCo's own engine, stage by stage")
    check.add_argument("--states", type=int, default=5, help="number of random states")
    bench = _command(commands, "bench", _bench, "time a model beside MuJoCo's own engine")
    bench.add_argument("--nworld", type=int, default=2048, help="number of worlds")
    bench.add_argument("--set", choices=("alike", "diverse"), default="alike", help="worlds in alike or random states")
    bench.add_argument("--rounds", type=int, default=3, help="rounds of each engine, in turns")
    bench.add_argument("--seconds", type=float, default=1.0, help="about how long MuJoCo takes for a round")
    bench.add_argument("--threads", type=int, help="threads of both engines; all cores if not said")
    bench.add_argument("--cold", action="store_true", help="compile everything anew: how long is the first step?")
    bench.add_argument("--json", type=Path, help="a file for the figures")
    steps = _command(commands, "rollout", _rollout, "step a model, and write fields of all worlds to a file")
    steps.add_argument("--nworld", type=int, default=1, help="number of worlds")
    steps.add_argument("--nstep", type=int, help="number of steps; with --controls theirs")
    steps.add_argument(
        "--controls", type=Path, help="a NumPy file, (nworld, nstep, nu) or (nstep, nu); or random, the default"
    )
    steps.add_argument("--fields", default="time,qpos,qvel", help="fields of Data to keep, with commas between them")
    steps.add_argument("--every", type=int, default=1, help="keep them after every so many steps")
    steps.add_argument("--out", type=Path, default=Path("rollout.npz"), help="the file: arrays (nworld, steps, ...)")
    return parser


def _command(commands, name: str, run, text: str) -> argparse.ArgumentParser:
    """A command on a scene."""
    made = commands.add_parser(name, help=text, description=text)
    made.add_argument("scene", help="an MJCF or URDF file")
    made.add_argument("--seed", type=int, default=0)
    made.set_defaults(run=run)
    return made


def _check(given: argparse.Namespace) -> int:
    from treadle.mujoco.check import report

    text, fine = report(given.scene, given.states, given.seed)
    print(text)
    return 0 if fine else 1


def _bench(given: argparse.Namespace) -> int:
    from treadle.mujoco.bench import bench

    mjm = mujoco.MjModel.from_xml_path(given.scene)
    if given.threads:
        wp.config.workers = given.threads
    with TemporaryDirectory() as folder:
        if given.cold:
            wp.config.kernel_cache_dir = folder
        found = bench(
            mjm, given.nworld, given.set, given.threads, given.rounds, given.seconds, Path(given.scene).stem,
            seed=given.seed, progress=_show,
        )  # fmt: skip
    print(found.text())
    if given.json:
        given.json.write_text(json.dumps(asdict(found), indent=1) + "\n")
    return 0


def _rollout(given: argparse.Namespace) -> int:
    import treadle.mujoco as mjw

    mjm = mujoco.MjModel.from_xml_path(given.scene)
    m = mjw.put_model(mjm)
    d = mjw.make_data(m, given.nworld)
    chance = given.controls is None or str(given.controls) == "random"
    controls = _Random(mjm, given.seed) if chance else _loaded(given.controls)
    nstep = 1000 if given.nstep is None and chance else given.nstep
    fields = given.fields.split(",")
    kept = mjw.rollout(
        m, d, controls, nstep=nstep, fields=fields, every=given.every, progress=lambda k, n: _show("steps", k / n)
    )
    np.savez(given.out, **kept)
    print(", ".join(f"{name} {values.shape}" for name, values in kept.items()), "->", given.out)
    return 0


def _loaded(file: Path) -> np.ndarray:
    """The controls in a NumPy file: of several arrays those called ``ctrl`` or ``controls``.

    Raises:
        OSError, ValueError: there is no such file, or it does not hold them.
    """
    try:
        found = np.load(file, allow_pickle=False)
    except (ValueError, EOFError):
        raise ValueError(f"{file} is no NumPy file of numbers, as np.save and np.savez write them") from None
    if isinstance(found, np.lib.npyio.NpzFile):
        names = [name for name in ("ctrl", "controls", *found.files[: len(found.files) == 1]) if name in found.files]
        if not names:
            listed = ", ".join(found.files) or "nothing"
            raise ValueError(f"{file} holds {listed}: call the array of controls ctrl or controls")
        found = found[names[0]]
    if found.dtype.kind not in "fiub":
        raise ValueError(f"controls in {file} are numbers, not {found.dtype}")
    return found


class _Random:
    """A policy: controls by chance, within their ranges."""

    def __init__(self, mjm: mujoco.MjModel, seed: int):
        limited = np.asarray(mjm.actuator_ctrllimited, bool)
        self.low = np.where(limited, mjm.actuator_ctrlrange[:, 0], -1.0)
        self.high = np.where(limited, mjm.actuator_ctrlrange[:, 1], 1.0)
        self.rng = np.random.default_rng(seed)

    def __call__(self, d, k: int) -> np.ndarray:
        return self.rng.uniform(self.low, self.high, (d.nworld, len(self.low)))


def _show(what: str, share: float) -> None:
    """A bar of what is done, where somebody looks."""
    if sys.stderr.isatty():
        bar = "#" * round(40 * share)
        print(f"\r{what:10} [{bar:40}] {share:4.0%}", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
