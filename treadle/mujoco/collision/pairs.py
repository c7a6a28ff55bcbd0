"""Which pairs of geoms are tested, in which order, and by which method.

The list is static. It holds what passes MuJoCo's filters (documentation, "Computation", Collision: selection): explicit
pairs always; of others those whose types of contact meet and whose bodies are neither welded together, nor (below the
world) parent and child, nor both immovable, nor excluded. Its order is that of MuJoCo's contacts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np

GEOM = mujoco.mjtGeom
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = (
    int(GEOM.mjGEOM_PLANE),
    int(GEOM.mjGEOM_HFIELD),
    int(GEOM.mjGEOM_SPHERE),
    int(GEOM.mjGEOM_CAPSULE),
    int(GEOM.mjGEOM_ELLIPSOID),
    int(GEOM.mjGEOM_CYLINDER),
    int(GEOM.mjGEOM_BOX),
    int(GEOM.mjGEOM_MESH),
)

# Methods: by the names of the narrow functions; "convex" is GJK and EPA, "heights" a height field with a convex geom.
FORMULAS = {
    (PLANE, SPHERE): "plane_sphere",
    (PLANE, CAPSULE): "plane_capsule",
    (PLANE, ELLIPSOID): "plane_ellipsoid",
    (PLANE, CYLINDER): "plane_cylinder",
    (PLANE, BOX): "plane_box",
    (PLANE, MESH): "plane_mesh",
    (SPHERE, SPHERE): "sphere_sphere",
    (SPHERE, CAPSULE): "sphere_capsule",
    (SPHERE, CYLINDER): "sphere_cylinder",
    (SPHERE, BOX): "sphere_box",
    (CAPSULE, CAPSULE): "capsule_capsule",
    (CAPSULE, BOX): "capsule_box",
    (BOX, BOX): "box_box",
}
MOST = {
    "plane_sphere": 1,
    "plane_capsule": 2,
    "plane_ellipsoid": 1,
    "plane_cylinder": 4,
    "plane_box": 4,
    "plane_mesh": 4,
    "sphere_sphere": 1,
    "sphere_capsule": 1,
    "sphere_cylinder": 1,
    "sphere_box": 1,
    "capsule_capsule": 2,
    "capsule_box": 2,
    "box_box": 8,
    "convex": 4,
    "heights": 50,
}
METHODS = tuple(MOST)


def method(type1: int, type2: int) -> str:
    """The method for two types of geoms, the lower first; "" if MuJoCo does not collide them."""
    if type1 <= HFIELD:
        return FORMULAS.get((type1, type2), "") if type1 == PLANE else "heights" if type2 > HFIELD else ""
    return FORMULAS.get((type1, type2), "convex")


@dataclass(frozen=True)
class Pairs:
    """The list of pairs: geoms (the lower type first), number of the explicit pair (-1: none), method."""

    geom1: np.ndarray
    geom2: np.ndarray
    explicit: np.ndarray
    methods: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.methods)

    def by_method(self) -> dict[str, np.ndarray]:
        """For each method that occurs, the numbers of its pairs."""
        names = np.array(self.methods)
        return {name: np.flatnonzero(names == name) for name in METHODS if name in self.methods}

    def in_runs(self) -> tuple[list[tuple[str, int, int]], np.ndarray]:
        """Method after method: its name, first and last place; and the numbers of pairs in that order."""
        runs: list[tuple[str, int, int]] = []
        order: list[int] = []
        for name, numbers in self.by_method().items():
            runs.append((name, len(order), len(order) + len(numbers)))
            order += [int(k) for k in numbers]
        return runs, np.array(order, np.int32)

    def bent(self, mjm: mujoco.MjModel) -> frozenset[str]:
        """The methods that find ellipsoids or cylinders among their pairs."""
        kinds = mjm.geom_type[np.stack([self.geom1, self.geom2])] if len(self) else np.zeros((2, 0))
        curved = np.isin(kinds, (ELLIPSOID, CYLINDER)).any(axis=0)
        return frozenset(name for name, numbers in self.by_method().items() if curved[numbers].any())

    def places(self) -> np.ndarray:
        """The first of each pair's slots, of which it has as many as its method can make contacts."""
        rooms = np.array([MOST[name] for name in self.methods], np.int32)
        return np.cumsum(rooms, dtype=np.int32) - rooms

    def most(self) -> int:
        """The most contacts that all pairs can make together."""
        return sum(MOST[name] for name in self.methods)

    @classmethod
    def of(cls, mjm: mujoco.MjModel) -> Pairs:
        """The pairs of a compiled model."""
        rows = sorted(_candidates(mjm))
        types = mjm.geom_type
        table = []
        for *_, g1, g2, number in rows:
            a, b = (g2, g1) if types[g1] > types[g2] else (g1, g2)
            how = method(int(types[a]), int(types[b]))
            if how:
                table.append((a, b, number, how))
        a, b, number, how = zip(*table) if table else ((), (), (), ())
        return cls(np.array(a, np.int32), np.array(b, np.int32), np.array(number, np.int32), tuple(how))


def _candidates(mjm: mujoco.MjModel) -> Iterator[tuple[int, ...]]:
    """``(body1, body2, geom1, geom2, number of the explicit pair)`` of every pair, the lower body first."""
    if mjm.opt.disableflags & (mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT):
        return
    body = mjm.geom_bodyid
    explicit = {}
    for k in range(mjm.npair):
        g1, g2 = int(mjm.pair_geom1[k]), int(mjm.pair_geom2[k])
        if body[g1] > body[g2]:
            g1, g2 = g2, g1
        explicit[g1, g2] = k
        yield int(body[g1]), int(body[g2]), g1, g2, k
    meet = (mjm.geom_contype[:, None] & mjm.geom_conaffinity[None, :]) != 0
    meet |= meet.T
    for b1 in range(mjm.nbody):
        for b2 in range(b1 + 1, mjm.nbody):
            if not _bodies_meet(mjm, b1, b2):
                continue
            for g1 in _geoms(mjm, b1):
                for g2 in _geoms(mjm, b2):
                    if meet[g1, g2] and (g1, g2) not in explicit and (g2, g1) not in explicit:
                        yield b1, b2, g1, g2, -1


def _geoms(mjm: mujoco.MjModel, b: int) -> range:
    return range(mjm.body_geomadr[b], mjm.body_geomadr[b] + mjm.body_geomnum[b])


def _bodies_meet(mjm: mujoco.MjModel, b1: int, b2: int) -> bool:
    """Whether the filters of bodies let geoms of ``b1`` and ``b2`` collide."""
    weld1, weld2 = mjm.body_weldid[b1], mjm.body_weldid[b2]
    if weld1 == weld2 or not (mjm.body_geomnum[b1] and mjm.body_geomnum[b2]):
        return False
    if mjm.body_treeid[b1] < 0 and mjm.body_treeid[b2] < 0:  # nothing can move either (mocap bodies, the world)
        return False
    if (b1 << 16) + b2 in mjm.exclude_signature:
        return False
    if mjm.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT or weld1 == 0 or weld2 == 0:
        return True
    parent1, parent2 = (mjm.body_weldid[mjm.body_parentid[w]] for w in (weld1, weld2))
    return weld1 != parent2 and weld2 != parent1
