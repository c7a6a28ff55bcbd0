"""Contacts in which MuJoCo's polytope has not converged: a third computation decides between the engines.

Where curved geoms overlap, MuJoCo's expanding polytope ends where rounding stops it, with a normal that is off by some
1e-6. With h(n) the support function of the difference of two geoms, their depth is a least h over unit vectors n, which
can be checked for any n: in extended precision, support points of directions just beside n, seen along n, must have the
origin between them. If our contact is one and h is no more than in MuJoCo's, ours takes its place in MuJoCo's data, and
what follows from contacts can be compared. Where there are several contacts on faces, which faces they are, and where
the edge of a cylinder begins, may be chance in MuJoCo: ours stand if the single contact that begins them is decided so.
They also stand where rounding alone puts one engine's contact beyond its margin. Everything else is left to the
comparison.

In single precision rounding chooses among normals along which solids are all but equally deep, and which faces lie on
each other. Ours stand there if the single contact that begins them is as deep as MuJoCo's, and all their points lie in
both solids, to what rounding leaves.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import mujoco
import numpy as np

import treadle as wp
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model
from treadle.mujoco.stages import run_stage
from treadle.mujoco.worlds import make_data

GEOM = mujoco.mjtGeom
CONVEX = [int(kind) for kind in (GEOM.mjGEOM_SPHERE, GEOM.mjGEOM_CAPSULE, GEOM.mjGEOM_ELLIPSOID, GEOM.mjGEOM_CYLINDER,
                                 GEOM.mjGEOM_BOX, GEOM.mjGEOM_MESH)]  # fmt: skip
ROUND = [int(kind) for kind in (GEOM.mjGEOM_SPHERE, GEOM.mjGEOM_ELLIPSOID)]
SAME = 1e-9  # m, and of a unit vector: contacts that differ by less are not asked about
LITTLE = 1e-4  # ... and where an edge begins, by less than this
BESIDE = 1e-8  # rad: how far the directions beside a normal are from it
STILL = 1e-7  # of a length: how near the origin must be to what support points span
WAYS = 64
ROUNDED = 1e-5  # of the size of a pair: how far depths in single precision may be off, and ten times that for points
APART = 5e-5  # m, and of a unit vector: contacts in single precision that differ by less are not asked about


@dataclass(frozen=True)
class Contact:
    """One contact, of either engine: numbers of geoms, distance, point, and rows of the frame."""

    geoms: tuple[int, int]
    dist: float
    pos: np.ndarray
    frame: np.ndarray

    def differs(self, other: Contact) -> float:
        """The largest difference in any number."""
        far = max(np.abs(self.pos - other.pos).max(), np.abs(self.frame - other.frame).max())
        return float(max(far, abs(self.dist - other.dist)))

    def leans(self, other: Contact) -> float:
        """The largest difference in the distance and the normal."""
        return float(max(abs(self.dist - other.dist), np.abs(self.frame[0] - other.frame[0]).max()))

    def ends(self) -> np.ndarray:
        """The points of the first and the second solid."""
        return self.pos + np.outer([-0.5, 0.5], self.frame[0].astype(np.longdouble)) * self.dist


@dataclass(frozen=True)
class Solid:
    """A geom in a place, with support points in extended precision."""

    kind: int
    size: np.ndarray
    pos: np.ndarray
    mat: np.ndarray
    vertices: np.ndarray

    @classmethod
    def of(cls, mjm: mujoco.MjModel, mjd: mujoco.MjData, geom: int) -> Solid:
        """The solid of a geom."""
        vertices = np.zeros((1, 3))
        if mjm.geom_type[geom] == GEOM.mjGEOM_MESH:
            mesh = mjm.geom_dataid[geom]
            vertices = mjm.mesh_vert[mjm.mesh_vertadr[mesh] :][: mjm.mesh_vertnum[mesh]]
        numbers = (mjm.geom_size[geom], mjd.geom_xpos[geom], mjd.geom_xmat[geom].reshape(3, 3), vertices)
        return cls(int(mjm.geom_type[geom]), *(np.array(x, dtype=np.longdouble) for x in numbers))

    def support(self, ways: np.ndarray) -> np.ndarray:
        """The farthest points along unit vectors ``(n, 3)``."""
        local, size = ways @ self.mat, self.size
        signs = np.where(local < 0, -1, 1)
        if self.kind == GEOM.mjGEOM_SPHERE:
            x = local * size[0]
        elif self.kind == GEOM.mjGEOM_CAPSULE:
            x = local * size[0] + signs * [0, 0, 1] * size[1]
        elif self.kind == GEOM.mjGEOM_ELLIPSOID:
            x = local * size**2 / np.linalg.norm(local * size, axis=1, keepdims=True)
        elif self.kind == GEOM.mjGEOM_CYLINDER:
            across = local * [1, 1, 0]
            x = across * (size[0] / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300))
            x = x + signs * [0, 0, 1] * size[1]
        elif self.kind == GEOM.mjGEOM_BOX:
            x = signs * size
        else:
            x = self.vertices[np.argmax(local @ self.vertices.T, axis=1)]
        return x @ self.mat.T + self.pos

    def holds(self, point: np.ndarray, n: np.ndarray, slack: float = SAME) -> bool:
        """Whether a point is in the solid, by what many directions around ``n`` say."""
        ways = _around(n, [BESIDE, 1e-6, 1e-4, 1e-2, 0.1, 1.0])
        return float((ways * (point - self.support(ways))).sum(axis=1).max()) < slack

    def on_edge(self, point: np.ndarray, n: np.ndarray) -> bool:
        """Whether a point of a cylinder lies on its straight edge that is farthest along ``n``; of others True."""
        off = (point - self.support(n[None].astype(np.longdouble))[0]) @ self.mat
        return self.kind != GEOM.mjGEOM_CYLINDER or float(np.abs(off[:2]).max()) < 10 * SAME


@dataclass(frozen=True)
class Difference:
    """All points of one solid less all points of another."""

    first: Solid
    second: Solid

    def support(self, ways: np.ndarray) -> np.ndarray:
        """The farthest points along unit vectors."""
        return self.first.support(ways) - self.second.support(-ways)

    def height(self, way: np.ndarray) -> float:
        """h: the depth along a direction from the first to the second."""
        way = np.array(way, dtype=np.longdouble)
        way /= np.sqrt(way @ way)
        return float(way @ self.support(way[None])[0])

    def stationary(self, way: np.ndarray) -> bool:
        """Whether h falls on no side of a direction."""
        n = np.array(way, dtype=np.longdouble)
        n /= np.sqrt(n @ n)
        beside = _around(n, [BESIDE])
        y = self.support(np.concatenate([n[None], beside]))
        across = (beside - n) / BESIDE
        # Along some direction the hull of what support points have across n is this far from the origin.
        return float((y @ across.T).max(axis=0).min()) >= -STILL * float(np.abs(y).max())

    def decides(self, a: Contact, b: Contact) -> bool:
        """Whether contact ``a`` is where the solids are least deep, and ``b`` is no nearer to it."""
        height = self.height(a.frame[0])
        exact = abs(height + a.dist) < 1e-2 * SAME and height <= self.height(b.frame[0]) + 1e-14
        return exact and self.stationary(a.frame[0]) and self.touches(a)

    def touches(self, contact: Contact) -> bool:
        """Whether the points half a distance from a contact on either side are inside and farthest along its normal."""
        n = contact.frame[0].astype(np.longdouble)
        one, two = contact.ends()
        high = n @ (self.first.support(n[None])[0] - one), n @ (two - self.second.support(-n[None])[0])
        return float(np.abs(high).max()) < SAME and self.first.holds(one, n) and self.second.holds(two, -n)

    def rounds(self, ours: list[Contact], one: Contact, other: Contact, size: float) -> bool:
        """Whether contacts touch, ``one`` of them being as deep as another, as well as single precision can tell."""
        depth = self.height(other.frame[0])
        deep = abs(self.height(one.frame[0]) - depth) < ROUNDED * size and abs(one.dist + depth) < ROUNDED * size
        return deep and all(
            solid.holds(point, sense * c.frame[0].astype(np.longdouble), 10 * ROUNDED * size)
            for c in ours
            for solid, point, sense in zip((self.first, self.second), c.ends(), (1, -1))
        )

    def begins(self, contact: Contact, n: np.ndarray) -> bool:
        """Whether such points lie on edges of cylinders, one at least, that begin where it is farthest along ``n``."""
        one, two = contact.ends()
        rolls = GEOM.mjGEOM_CYLINDER in (self.first.kind, self.second.kind)
        return rolls and self.first.on_edge(one, n) and self.second.on_edge(two, -n)


def _around(n: np.ndarray, angles: list[float]) -> np.ndarray:
    """Unit vectors that make angles with ``n``, many on each cone."""
    first = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
    first = first / np.sqrt(first @ first)
    turn = np.arange(WAYS) * (2 * np.pi / WAYS)
    aside = np.outer(np.cos(turn), first) + np.outer(np.sin(turn), np.cross(n, first))
    return np.concatenate([np.cos(angle) * n + np.sin(angle) * aside for angle in angles])


def decide(m: Model, d: Data, mjm: mujoco.MjModel, states: list[mujoco.MjData]) -> list[int]:
    """Put our contacts in MuJoCo's data where they differ and a third computation says that ours are right.

    Later stages of MuJoCo are to run again where there were some, see `resume`. Gives how many pairs of geoms were
    decided so in each state.
    """
    return [_Judge(m, d, mjm, mjd, world).decide() for world, mjd in enumerate(states)]


def resume(mjm: mujoco.MjModel, mjd: mujoco.MjData, qacc_warmstart: np.ndarray) -> None:
    """Run all that follows from contacts in MuJoCo again, up to accelerations."""
    mjd.qacc_warmstart[:] = qacc_warmstart
    for stage in ("makeConstraint", "island", "projectConstraint", "transmission", "sensorPos"):
        getattr(mujoco, f"mj_{stage}")(mjm, mjd)
    mujoco.mj_forwardSkip(mjm, mjd, mujoco.mjtStage.mjSTAGE_POS, 0)


def _ours(d: Data, world: int) -> list[Contact]:
    count = int(d.field("ncon").numpy()[world])
    names = ("geom1", "geom2", "dist", "pos", "frame")
    one, two, dist, pos, frame = (d.field(f"contact_{name}").numpy()[world, :count] for name in names)
    return [
        Contact((int(a), int(b)), float(x), p.copy(), f.copy()) for a, b, x, p, f in zip(one, two, dist, pos, frame)
    ]


def _theirs(mjd: mujoco.MjData) -> list[Contact]:
    rows = zip(mjd.contact.geom, mjd.contact.dist, mjd.contact.pos.copy(), mjd.contact.frame.reshape(-1, 3, 3).copy())
    return [Contact((int(pair[0]), int(pair[1])), float(dist), pos, frame) for pair, dist, pos, frame in rows]


class _Judge:
    """The contacts of one state."""

    def __init__(self, m: Model, d: Data, mjm: mujoco.MjModel, mjd: mujoco.MjData, world: int):
        self.m, self.d, self.mjm, self.mjd, self.world = m, d, mjm, mjd, world

    def decide(self) -> int:
        """How many pairs are decided for ours, after MuJoCo's list was changed."""
        ours, theirs = _ours(self.d, self.world), _theirs(self.mjd)
        single = self.m.real is not wp.float64
        judge, same = (self.rounded, APART) if single else (self.exact, SAME)
        chosen = {}
        for pair in dict.fromkeys(c.geoms for c in theirs):
            a, b = ([c for c in side if c.geoms == pair] for side in (ours, theirs))
            apart = _differ(a, b, same)
            if judge(pair, a, b) if apart else self.at_margin(pair, a, b):
                chosen[pair] = a
        if chosen:
            self.replace(chosen)
        return len(chosen)

    def exact(self, pair: tuple[int, int], a: list[Contact], b: list[Contact]) -> bool:
        """Whether our contacts ``a`` of a pair are the better ones."""
        return self.on_field(pair, a, b) or self.convex(pair) and self.right(pair, a, b)

    def rounded(self, pair: tuple[int, int], a: list[Contact], b: list[Contact]) -> bool:
        """Whether our contacts ``a`` differ from MuJoCo's ``b`` as rounding to single precision may have it."""
        if not self.convex(pair):
            return False
        size = float(self.mjm.geom_rbound[list(pair)].sum())
        if not a:  # nearer than the margin by less than rounding
            margin = next(c.includemargin for c in self.mjd.contact if tuple(c.geom) == pair)
            return all(margin - c.dist < ROUNDED * size for c in b)
        between = Difference(*(Solid.of(self.mjm, self.mjd, g) for g in pair))
        one, other = self.single(pair)
        return one is not None and other is not None and between.rounds(a, one, other, size)

    def at_margin(self, pair: tuple[int, int], a: list[Contact], b: list[Contact]) -> bool:
        """Whether rounding decides which contacts are nearer than their margin and push."""
        margin = next(c.includemargin for c in self.mjd.contact if tuple(c.geom) == pair)
        return sum(c.dist < margin for c in a) != sum(c.dist < margin for c in b)

    def convex(self, pair: tuple[int, int]) -> bool:
        """Whether both geoms have support functions here."""
        return all(kind in CONVEX for kind in self.mjm.geom_type[list(pair)])

    def on_field(self, pair: tuple[int, int], a: list[Contact], b: list[Contact]) -> bool:
        """Whether a round geom touches a height field along MuJoCo's normals, and where it is farthest along these."""
        if self.mjm.geom_type[pair[0]] != GEOM.mjGEOM_HFIELD or self.mjm.geom_type[pair[1]] not in ROUND:
            return False
        solid = Solid.of(self.mjm, self.mjd, pair[1])
        exact = all(np.abs(c.ends()[1] - solid.support(-c.frame[:1].astype(np.longdouble))[0]).max() < SAME for c in a)
        alike = all(min(x.leans(y) for x in a) < SAME for y in b)
        return exact and alike and _differ(a, b) < LITTLE

    def right(self, pair: tuple[int, int], a: list[Contact], b: list[Contact]) -> bool:
        """Whether our contacts ``a`` of a pair are right, and MuJoCo's ``b`` are not."""
        between = Difference(*(Solid.of(self.mjm, self.mjd, g) for g in pair))
        if len(a) == len(b) == 1 and between.decides(a[0], b[0]):
            return True
        one, other = self.single(pair)
        if not (one and other and between.decides(one, other)):
            return False
        if len(a) == len(b):  # where the edge of a cylinder begins is read off an inexact normal
            lying = all(min(np.abs(x.frame - y.frame).max() for x in a) < SAME for y in b)
            return lying and _differ(a, b) < LITTLE and all(between.begins(c, one.frame[0]) for c in a)
        discs = [s.mat[:, 2] for s in (between.first, between.second) if s.kind == GEOM.mjGEOM_CYLINDER]
        upright = any(abs(axis @ one.frame[0]) > 1 - SAME for axis in discs)
        return upright and len(a) == 1 and not a[0].differs(one) > SAME

    def single(self, pair: tuple[int, int]) -> tuple[Contact | None, Contact | None]:
        """The contacts of both engines, ours first, that several others may take the place of."""
        flag, mjd = int(mujoco.mjtDisableBit.mjDSBL_MULTICCD), copy.copy(self.mjd)
        d = make_data(self.m, 1)
        for name in ("geom_xpos", "geom_xmat"):
            d.field(name).assign(self.d.field(name).numpy()[self.world : self.world + 1])
        flags = self.mjm.opt.disableflags, self.m.opt.disableflags
        try:
            self.mjm.opt.disableflags, self.m.opt.disableflags = flags[0] | flag, flags[1] | flag
            mujoco.mj_collision(self.mjm, mjd)
            run_stage("collision", self.m, d)
        finally:
            self.mjm.opt.disableflags, self.m.opt.disableflags = flags
        found = ([c for c in side if c.geoms == pair] for side in (_ours(d, 0), _theirs(mjd)))
        one, other = (side[0] if len(side) == 1 else None for side in found)
        return one, other

    def replace(self, chosen: dict[tuple[int, int], list[Contact]]) -> None:
        """Write MuJoCo's list anew, with other contacts for some pairs."""
        kept, left = [], dict(chosen)
        for c in map(copy.copy, self.mjd.contact):
            pair = (int(c.geom[0]), int(c.geom[1]))
            if pair not in chosen:
                kept.append(c)
            for new in left.pop(pair, ()):
                c.dist, c.pos[:], c.frame[:] = new.dist, new.pos, new.frame.ravel()
                if c.exclude < 2:  # 1: in the gap
                    c.exclude = int(c.dist >= c.includemargin)
                kept.append(copy.copy(c))
        flags = self.mjm.opt.disableflags
        self.mjm.opt.disableflags = flags | int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        mujoco.mj_collision(self.mjm, self.mjd)  # finds none: the list is empty
        self.mjm.opt.disableflags = flags
        for c in kept:
            mujoco.mj_addContact(self.mjm, self.mjd, c)


def _differ(a: list[Contact], b: list[Contact], same: float = SAME) -> float:
    """By how much contacts of a pair differ: 0 if it is little, infinite if there are not as many."""
    if len(a) != len(b):
        return np.inf
    most = max((min(x.differs(y) for x in a) for y in b), default=0.0)
    return most if most > same else 0.0
