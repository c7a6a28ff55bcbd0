"""Programs whose results must be the same bits everywhere, run as ``python -m tests.bits [--config W WORKERS]``.

Prints one JSON object, program name to a list of digests, one digest a run. The gang width and the number of workers
come from the environment, or with ``--config`` from ``wp.config``. Any two NaNs count as equal; 0.0 and -0.0 do not.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import histogram
import mandelbrot
import nbody
import reductions
import saxpy
import spin_lock
import springs
import tour

import treadle as wp

from . import bits_slots

Program = Callable[[], dict[str, np.ndarray]]


def digest(outputs: dict[str, np.ndarray]) -> str:
    """SHA-256 of names, types, shapes and bits; every NaN becomes the same one first."""
    state = hashlib.sha256()
    for name, values in sorted(outputs.items()):
        values = np.array(values)  # a copy, contiguous
        if values.dtype.kind == "f":
            values[np.isnan(values)] = np.nan
        state.update(f"{name} {values.dtype.str} {values.shape}".encode())
        state.update(values.tobytes())
    return state.hexdigest()


@wp.kernel
def integrate_kernel(positions: wp.array[wp.vec3], velocities: wp.array[wp.vec3], dt: float):
    i = wp.tid()
    velocities[i] += wp.vec3(0.0, 0.0, -9.81) * dt
    positions[i] += velocities[i] * dt


def integrate(n: int = 100_001) -> dict[str, np.ndarray]:
    """The first program, on enough bodies to occupy every worker."""
    p, v = (wp.array(_normal(n, 3), dtype=wp.vec3) for _ in range(2))
    wp.launch(integrate_kernel, dim=n, inputs=[p, v, 0.01])
    return {"p": p.numpy(), "v": v.numpy()}


@wp.kernel
def scatter_kernel(
    source: wp.array(dtype=int), target: wp.array(dtype=int), flow: wp.array(dtype=float), total: wp.array(dtype=float)
):
    i = wp.tid()
    wp.atomic_sub(total, source[i], flow[i])
    if flow[i] > -0.5:
        wp.atomic_add(total, target[i], flow[i] * 0.7)


def scatter(n: int = 120_011, nodes: int = 509) -> dict[str, np.ndarray]:
    """Two sites add to one array: float additions whose order shows in the last bits."""
    rng = np.random.default_rng(21)
    source, target = (wp.array(rng.integers(0, nodes, n).astype(np.int32)) for _ in range(2))
    total = wp.zeros(nodes, dtype=float)
    wp.launch(scatter_kernel, dim=n, inputs=[source, target, wp.array(_normal(n)), total])
    return {"total": total.numpy()}


@wp.kernel
def counter_kernel(x: wp.array(dtype=float), counter: wp.array(dtype=int), kept: wp.array(dtype=int)):
    i = wp.tid()
    if x[i] > 0.3:
        slot = wp.atomic_add(counter, 0, 1)
        kept[slot] = i


def counter(n: int = 90_001) -> dict[str, np.ndarray]:
    """Threads that keep their element draw a slot each: slots go out in thread order."""
    count, kept = wp.zeros(1, dtype=int), wp.zeros(n, dtype=int)
    wp.launch(counter_kernel, dim=n, inputs=[wp.array(_normal(n)), count, kept])
    return {"count": count.numpy(), "kept": kept.numpy()}


@wp.kernel
def two_counters_kernel(n: wp.array(dtype=int), counts: wp.array(dtype=int), first: wp.array(dtype=int)):
    i = wp.tid()
    start = wp.atomic_add(counts, 0, n[i])
    for k in range(n[i]):
        first[start + k] = i * 8 + k
    if n[i] > 5:
        wp.atomic_add(counts, 1, 1)


def two_counters(n: int = 40_003) -> dict[str, np.ndarray]:
    """Each thread draws a varying number of slots and fills them; a second counter is only counted up."""
    wanted = np.random.default_rng(22).integers(0, 8, n).astype(np.int32)
    counts, first = wp.zeros(2, dtype=int), wp.zeros(int(wanted.sum()), dtype=int)
    wp.launch(two_counters_kernel, dim=n, inputs=[wp.array(wanted), counts, first])
    return {"counts": counts.numpy(), "first": first.numpy()}


@wp.kernel
def turns_kernel(
    x: wp.array(dtype=float), counts: wp.array(dtype=int), pairs: wp.array(dtype=int), out: wp.array(dtype=int)
):
    i = wp.tid()
    slot = wp.atomic_add(counts, 0, 1)
    out[slot] = i
    for k in range(i % 3):
        if x[i] > 0.1 * float(k):
            slot = wp.atomic_add(counts, 0, 2)
            out[slot] = i
            out[slot + 1] = -k
    if slot % 4 == 1:
        pairs[wp.atomic_sub(counts, 1, 1 + slot % 3)] = i


def turns(n: int = 60_013) -> dict[str, np.ndarray]:
    """Threads come to a counter several times, in a loop too; a second counter goes down as the first one says."""
    counts, pairs = wp.array([0, 2 * n], dtype=int), wp.zeros(2 * n + 1, dtype=int)
    out = wp.zeros(5 * n, dtype=int)
    wp.launch(turns_kernel, dim=n, inputs=[wp.array(_normal(n)), counts, pairs, out])
    return {"counts": counts.numpy(), "pairs": pairs.numpy(), "out": out.numpy()}


@wp.kernel
def seats_kernel(
    cell: wp.array(dtype=int), weight: wp.array(dtype=float), counts: wp.array(dtype=int), seat: wp.array(dtype=int),
    load: wp.array(dtype=float),
):
    i = wp.tid()
    cell[i] = (cell[i] * 7 + i) % wp.len(counts)
    c = cell[i]
    seat[i] = wp.atomic_add(counts, c, 1)
    wp.atomic_add(load, c, weight[i])
    wp.atomic_add(load, 0, weight[i] * 0.3)


def seats(n: int = 80_021, cells: int = 1000) -> dict[str, np.ndarray]:
    """A counter for each cell of a grid, as hash grids have. Threads move to another cell first, and sum floats on the
    way, which round."""
    cell = np.random.default_rng(25).integers(0, cells, n).astype(np.int32)
    counts, seat, load = wp.zeros(cells, dtype=int), wp.zeros(n, dtype=int), wp.zeros(cells, dtype=float)
    moved = wp.array(cell)
    wp.launch(seats_kernel, dim=n, inputs=[moved, wp.array(_normal(n)), counts, seat, load])
    return {"cell": moved.numpy(), "counts": counts.numpy(), "seat": seat.numpy(), "load": load.numpy()}


@wp.kernel
def chain_kernel(head: wp.array(dtype=int), following: wp.array(dtype=int), cells: wp.array(dtype=int)):
    i = wp.tid()
    following[i] = wp.atomic_exch(head, cells[i], i)


def chain(n: int = 5003) -> dict[str, np.ndarray]:
    """Linked lists built by exchange: the lists hold their threads in reverse order."""
    cells = np.random.default_rng(23).integers(0, 31, n).astype(np.int32)
    head, following = wp.full(31, -1, dtype=int), wp.zeros(n, dtype=int)
    wp.launch(chain_kernel, dim=n, inputs=[head, following, wp.array(cells)])
    return {"head": head.numpy(), "following": following.numpy()}


@wp.kernel
def sums_kernel(
    x: wp.array(dtype=float),
    narrow: wp.array(dtype=float),
    wide: wp.array(dtype=wp.float64),
    v: wp.array(dtype=wp.vec3),
    low: wp.array(dtype=float),
    high: wp.array(dtype=float),
):
    i = wp.tid()
    s = x[i]
    wp.atomic_add(narrow, 0, s)
    if s > 0.0:
        wp.atomic_add(narrow, 1, wp.sqrt(s))
    for k in range(i % 5):
        wp.atomic_add(narrow, 2 + k, s * 1.3)
    wp.atomic_add(wide, 0, wp.float64(s) * wp.float64(1.0e-3))
    wp.atomic_add(v, 0, wp.vec3(s, s * s, 1.0 - s))
    wp.atomic_min(low, 0, s)
    wp.atomic_max(high, 0, s)


def sums(n: int = 150_007) -> dict[str, np.ndarray]:
    """Float sums to one address: always, under a condition, in a loop of varying length; also of vectors."""
    narrow, low, high = (wp.zeros(k, dtype=float) for k in (6, 1, 1))
    wide, v = wp.zeros(1, dtype=wp.float64), wp.zeros(1, dtype=wp.vec3)
    wp.launch(sums_kernel, dim=n, inputs=[wp.array(_normal(n)), narrow, wide, v, low, high])
    found = {"narrow": narrow, "wide": wide, "v": v, "low": low, "high": high}
    return {name: a.numpy() for name, a in found.items()}


@wp.kernel
def streams_kernel(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    wp.atomic_add(total, 0, x[wp.tid()])


def streams(n: int = 1_200_007) -> dict[str, np.ndarray]:
    """A sum so long that each chunk is read from several places at once."""
    total = wp.zeros(1, dtype=float)
    wp.launch(streams_kernel, dim=n, inputs=[wp.array(_normal(n)), total])
    return {"total": total.numpy()}


@wp.kernel
def restart_kernel(place: wp.array(dtype=int), x: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    j = place[i]
    wp.atomic_add(total, j, x[i])
    wp.atomic_add(total, j, 0.1)
    if x[i] < 0.0:
        total[j] = 5.0


def restart(n: int = 30_011) -> dict[str, np.ndarray]:
    """Each thread updates a place of its own, found in a table, and then perhaps stores to it: the store comes last."""
    place = np.random.default_rng(24).permutation(n).astype(np.int32)
    total = wp.zeros(n, dtype=float)
    wp.launch(restart_kernel, dim=n, inputs=[wp.array(place), wp.array(_normal(n)), total])
    return {"total": total.numpy()}


@wp.kernel
def functions_kernel(x: wp.array(dtype=float), y: wp.array2d(dtype=float)):
    i = wp.tid()
    a = x[i]
    y[i, 0] = wp.sin(a)
    y[i, 1] = wp.cos(a)
    y[i, 2] = wp.exp(a)
    y[i, 3] = wp.log(a)
    y[i, 4] = wp.tanh(a)
    y[i, 5] = wp.atan2(a, 0.3)
    y[i, 6] = wp.pow(wp.abs(a), 0.37)
    y[i, 7] = wp.sqrt(a)
    y[i, 8] = a * 1.1 - 1.1 * a
    y[i, 9] = a * a * 0.7 + a
    y[i, 10] = 1.0 / a
    y[i, 11] = wp.floor(a) + wp.round(a)


def functions() -> dict[str, np.ndarray]:
    """Elementary functions on ordinary, huge, tiny, infinite and undefined numbers."""
    special = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, -3e38, 1e5, 1.0, -1.0, 0.5])
    x = np.concatenate([special, _normal(20_001) * np.float32(10.0)])
    y = wp.zeros((len(x), 12), dtype=float)
    wp.launch(functions_kernel, dim=len(x), inputs=[wp.array(x), y])
    return {"y": y.numpy()}


@wp.kernel
def collatz_kernel(steps: wp.array2d(dtype=int), mean: wp.array2d(dtype=float)):
    i, j = wp.tid()
    n = i * 97 + j + 1
    count = int(0)
    total = float(0.0)
    while n != 1:
        count += 1
        if count > 200:
            break
        if n % 2 == 0:
            n = n // 2
            continue
        n = 3 * n + 1
        total += wp.sqrt(float(n))
    steps[i, j] = count
    mean[i, j] = total / float(count + 1)


def collatz() -> dict[str, np.ndarray]:
    """Loops that threads leave at different times, with break and continue, over a two-dimensional launch."""
    steps, mean = wp.zeros((301, 97), dtype=int), wp.zeros((301, 97), dtype=float)
    wp.launch(collatz_kernel, dim=(301, 97), inputs=[steps, mean])
    return {"steps": steps.numpy(), "mean": mean.numpy()}


ARM = """
<mujoco>
  <option><flag constraint="disable"/></option>
  <worldbody>
    <body pos="0 0 1"><joint name="a" axis="0 0 1" damping="0.1" armature="0.01"/><geom size="0.1 0.2" type="capsule"/>
      <body pos="0.3 0 0"><joint name="b" axis="0 1 0" stiffness="0.5"/><geom size="0.05 0.1 0.2" type="box"/>
        <body pos="0 0.2 0.1"><joint name="c" axis="1 0 0"/><geom size="0.1"/></body>
      </body>
    </body>
  </worldbody>
  <actuator><position joint="a" kp="5" kv="0.2"/><motor joint="c"/></actuator>
</mujoco>
"""


def arms(nworld: int = 2500, nstep: int = 20) -> dict[str, np.ndarray]:
    """Worlds of a MuJoCo model; enough of them for several workers."""
    import mujoco

    import treadle.mujoco as mjw

    mjm = mujoco.MjModel.from_xml_string(ARM)
    m, d = mjw.put_model(mjm), mjw.make_data(mjm, nworld=nworld)
    d.qpos.assign(_normal(nworld, 3))
    d.ctrl.assign(_normal(nworld, 2))
    for _ in range(nstep):
        mjw.step(m, d)
    return {"qpos": d.qpos.numpy(), "qvel": d.qvel.numpy(), "xpos": d.xpos.numpy()}


def algorithms(n: int = 70_003) -> dict[str, np.ndarray]:
    """``wp.utils``: prefix sums, sums along an axis, sorting."""
    x, scanned = wp.array(_normal(n), dtype=float), wp.zeros(n, dtype=float)
    wp.utils.array_scan(x, scanned)
    keys, order = wp.array(np.tile(_normal(n), 2), dtype=float), wp.array(np.arange(2 * n), dtype=int)
    wp.utils.radix_sort_pairs(keys, order, n)
    sums = wp.utils.array_sum(wp.array(_normal(300, 250), dtype=float), axis=1)
    return {"scanned": scanned.numpy(), "keys": keys.numpy()[:n], "order": order.numpy()[:n], "sums": sums.numpy()}


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + shape[0]).normal(size=shape).astype(np.float32)


PROGRAMS: dict[str, Program] = {
    "saxpy": saxpy.run,
    "integrate": integrate,
    "nbody": lambda: nbody.run(500, 5),
    "mandelbrot": lambda: mandelbrot.run(200),
    "springs": lambda: springs.run(24, 10),
    "histogram": histogram.run,
    "histogram with many bins": lambda: histogram.run(200_000, 100_000),
    "reductions": reductions.run,
    "spin lock": lambda: spin_lock.run(2000),
    "tour": tour.run,
    "scatter": scatter,
    "counter": counter,
    "two counters": two_counters,
    "turns": turns,
    "seats": seats,
    "chain": chain,
    "sums": sums,
    "streams": streams,
    "restart": restart,
    "functions": functions,
    "collatz": collatz,
    "algorithms": algorithms,
    **bits_slots.PROGRAMS,
}
if importlib.util.find_spec("mujoco"):
    PROGRAMS["arms"] = arms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", nargs=2, type=int, metavar=("W", "WORKERS"))
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    if args.config:
        wp.config.gang_width, wp.config.workers = args.config
    print(json.dumps({name: [digest(run()) for _ in range(args.runs)] for name, run in PROGRAMS.items()}))


if __name__ == "__main__":
    main()
