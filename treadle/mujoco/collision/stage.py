"""The stage `collision`: all contacts of all worlds."""

from __future__ import annotations

from typing import Any

import mujoco

import treadle as wp
from treadle.mujoco.binding import launch
from treadle.mujoco.collision.contacts import formula_kernel
from treadle.mujoco.collision.convex_kernel import convex_kernel
from treadle.mujoco.collision.gather import gather_kernel
from treadle.mujoco.collision.heights import heights_kernel
from treadle.mujoco.collision.plane_mesh import plane_mesh_kernel
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model

OVERRIDE = int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
NO_MULTICCD = int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
SLOTS = ("count", "turns", "dist", "pos", "normal", "tangent")  # what methods write of what they find
TURNS = 3  # support points of a pair, by MuJoCo's limit of iterations for each of distance and depth


@wp.kernel
def no_contacts(ncon: wp.array(dtype=int), found_count: wp.array(dtype=int)):
    """Forget the contacts of steps before."""
    w = wp.tid()
    ncon[w] = 0
    found_count[w] = 0


def collision(m: Model, d: Data, **other: Any) -> None:
    """Find all contacts: ``ncon``, ``contact_dist contact_pos contact_frame …``.

    Where a world has more than there is room for, the lists grow and are found again; in a capture, whose arrays are
    fixed, the rest is left out and ``found_count`` keeps what was needed. Where flags have switched contacts off there
    are none.
    """
    if not m.collides:
        launch(no_contacts, m, d, **other)
        return
    given = {
        **m.collision.arrays(),
        "overridden": m.opt.enableflags & OVERRIDE,
        "multiple": int(not m.opt.disableflags & NO_MULTICCD),
        "turns": TURNS * m.opt.ccd_iterations,
        **other,
    }
    for name, first, last in m.collision.methods:
        launch(_kernel(name, m, name in m.collision.bent), m, d, first=first, last=last, **given)
    launch(gather_kernel(d.real), m, d, **given)
    if not d.fixed:
        needed = int(d.field("found_count").numpy().max())
        if needed > d.sizes["nconmax"]:
            d.grow("nconmax", needed)
            launch(gather_kernel(d.real), m, d, **given)


def measure(m: Model, d: Data, **other: Any) -> None:
    """Find what sensors of distance ask for: the slots ``near_…``, in which a sensor's cutoff is its pairs' margin."""
    given = {
        **m.collision.arrays(),
        **m.distances.arrays(),
        **{f"slot_{name}": d.field(f"near_{name}") for name in SLOTS},
        "pair_margin": m.field("sensor_cutoff"),
        "overridden": 0,
        "multiple": 0,
        "turns": TURNS * m.opt.ccd_iterations,
        **other,
    }
    for name, first, last in m.distances.methods:
        launch(_kernel(name, m, name in m.distances.bent), m, d, first=first, last=last, **given)


def _kernel(name: str, m: Model, bends: bool) -> wp.Kernel:
    """The kernel of a method; ``bends``: with what curved surfaces need."""
    if name == "convex":
        return convex_kernel(m.real, m.collision.corners, bends)
    if name == "heights":
        return heights_kernel(m.real, bends)
    if name == "plane_mesh":
        return plane_mesh_kernel(m.real)
    return formula_kernel(name, m.real)
