"""Steps of up to a quarter of a million worlds: time and memory of a world, against 2,048 of them.

    python benchmarks/many_worlds.py [--model humanoid_mjw] [--most 262144] [--json FILE]

2,048 worlds are settled from the first keyframe with a little noise in their controls; larger sets repeat their
states, so a world has the same to do in all of them. Both are stepped in turns, and the best time of each counts.
Memory is what arrays of the state and the plan's scratch take, and, where MuJoCo Warp is installed, what its data takes
for as many contacts and rows.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from physics import load

import treadle.mujoco as mjw

FEW = 2048
SETTLE = 300  # steps
STATE = ("time", "qpos", "qvel", "act", "qacc_warmstart")


def settled(m: Any, mjm: Any, noise: float = 0.1) -> Any:
    """2,048 worlds that have come to rest on their contacts."""
    d, rng = mjw.make_data(m, FEW), np.random.default_rng(0)
    if mjm.nkey:
        mjw.reset_data_keyframe(m, d, 0)
    base = mjm.key_ctrl[0] if mjm.nkey else np.zeros(mjm.nu)
    half = np.where(mjm.actuator_ctrllimited, np.ptp(mjm.actuator_ctrlrange, axis=1) / 2, 1.0)
    for _ in range(SETTLE):
        d.ctrl.assign((base + noise * half * rng.uniform(-1, 1, (FEW, mjm.nu))).astype(np.float32))
        mjw.step(m, d)
    return d


def repeated(m: Any, d: Any, nworld: int) -> Any:
    """So many worlds in the states of ``d``, again and again."""
    made = mjw.make_data(m, nworld)
    for name in (*STATE, "ctrl"):
        values = getattr(d, name).numpy()
        getattr(made, name).numpy()[...] = np.resize(values, (nworld, *values.shape[1:]))
    return made


def states(d: Any) -> list[np.ndarray]:
    """A copy of the state."""
    return [getattr(d, name).numpy().copy() for name in STATE]


def timed(m: Any, d: Any, start: list[np.ndarray], steps: int) -> tuple[float, float]:
    """Microseconds that a step of a world takes from ``start``: on the clock, and of all processors."""
    for name, values in zip(STATE, start, strict=True):
        getattr(d, name).numpy()[...] = values
    wall, cpu = perf_counter(), process_time()
    for _ in range(steps):
        mjw.step(m, d)
    per = 1e6 / (steps * d.nworld)
    return (perf_counter() - wall) * per, (process_time() - cpu) * per


def scratch(d: Any) -> int:
    """Bytes that steps of ``d`` work in. Where worlds have just been dealt the next step makes another plan."""
    return (d._plan or d._other).scratch


def warp_bytes(mjm: Any, nconmax: int, njmax: int, nworld: int = 64) -> float | None:
    """Bytes of a world of MuJoCo Warp's data; None where it is not installed."""
    try:
        import mujoco_warp
    except ImportError:
        return None
    data = mujoco_warp.make_data(mjm, nworld=nworld, nconmax=nconmax, njmax=njmax)
    return sum([a.capacity for a in arrays(data)]) / nworld


def arrays(thing: Any) -> Iterator[Any]:
    """All arrays in a dataclass and those inside it."""
    for value in vars(thing).values():
        if hasattr(value, "capacity"):
            yield value
        elif hasattr(value, "__dataclass_fields__"):
            yield from arrays(value)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="humanoid_mjw")
    parser.add_argument("--most", type=int, default=262_144)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="a file for all figures, a line a row")
    given = parser.parse_args()
    mjm = load(given.model)
    if mjm is None:
        raise SystemExit(f"the package of {given.model} is not installed")
    m = mjw.put_model(mjm)
    few = settled(m, mjm)
    most = [int(few.ncon.numpy().max()), int(few.nefc.numpy().max())]
    theirs = warp_bytes(mjm, *most)
    few = repeated(m, few, FEW)  # fields that were read take no room, and no time, there
    start, rows = states(few), []
    print(f"{given.model}, {os.cpu_count()} cores; MuJoCo Warp's data: "
          + (f"{theirs:,.0f} bytes a world" if theirs else "not installed"))  # fmt: skip
    print(f"{'worlds':>9}{'us a world-step':>17}{'of 2,048':>10}{'CPU us':>9}{'of 2,048':>10}{'bytes a world':>15}")
    nworld = FEW
    while nworld <= given.most:
        many = repeated(m, few, nworld)
        begin, best = states(many), np.full(4, np.inf)
        steps = max(1, 16 * FEW // nworld)
        timed(m, many, begin, 1)
        for _ in range(given.rounds):  # in turns
            best = np.minimum(best, [*timed(m, few, start, 16), *timed(m, many, begin, steps)])
        row = {
            "model": given.model, "nworld": nworld, "us": best[2], "wall_ratio": best[2] / best[0], "cpu_us": best[3],
            "cpu_ratio": best[3] / best[1], "bytes": (many.nbytes + scratch(many)) / nworld, "warp_bytes": theirs,
        }  # fmt: skip
        rows.append(row)
        print(f"{nworld:>9,}{row['us']:>17.2f}{row['wall_ratio']:>10.2f}{row['cpu_us']:>9.2f}{row['cpu_ratio']:>10.2f}"
              f"{row['bytes']:>15,.0f}", flush=True)  # fmt: skip
        del many
        nworld *= 2 if 2 * nworld == given.most else 4
    if given.json:
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
