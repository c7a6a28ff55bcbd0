"""What the code of a step depends on: a model's integer tables, hashable."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import mujoco
import numpy as np

from treadle.mujoco.constants import BALL, FREE, HINGE, SLIDE

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Structure:
    """The integer tables of a model, by MuJoCo's names. Models of one structure share their code.

    Two tables are of our own: ``jnt_main`` says along which axis of its body a joint's axis lies (0, 1, 2; -1 if it
    is askew), ``jnt_centred`` whether its anchor is the body's origin.
    """

    body_parentid: Ints
    body_rootid: Ints
    body_jntadr: Ints
    body_jntnum: Ints
    jnt_type: Ints
    jnt_qposadr: Ints
    jnt_dofadr: Ints
    jnt_main: Ints
    jnt_centred: Ints
    jnt_actfrclimited: Ints
    dof_bodyid: Ints
    dof_jntid: Ints
    M_rowadr: Ints
    M_rownnz: Ints
    M_colind: Ints
    actuator_trnid: Ints
    actuator_ctrllimited: Ints
    actuator_forcelimited: Ints
    actuator_gaintype: Ints
    actuator_biastype: Ints
    disableflags: int

    @classmethod
    def of(cls, mjm: mujoco.MjModel) -> Structure:
        """The structure of a compiled model."""
        tables = {row.name: getattr(mjm, row.name) for row in fields(cls) if hasattr(mjm, row.name)}
        tables["actuator_trnid"] = mjm.actuator_trnid[:, 0]  # a joint transmission names one joint
        tables["jnt_main"] = [_main_axis(axis) for axis in mjm.jnt_axis]
        tables["jnt_centred"] = ~mjm.jnt_pos.any(axis=1)
        tuples = {name: tuple(int(x) for x in table) for name, table in tables.items()}
        return cls(**tuples, disableflags=int(mjm.opt.disableflags))

    def askew(self) -> Structure:
        """The same structure with joints anywhere and any way."""
        joints = len(self.jnt_type)
        return replace(self, jnt_main=(-1,) * joints, jnt_centred=(0,) * joints)

    @property
    def moving(self) -> tuple[bool, ...]:
        """For each body, whether a joint lies between it and the world."""
        found = [False]
        for b in range(1, len(self.body_parentid)):
            found.append(self.body_jntnum[b] > 0 or found[self.body_parentid[b]])
        return tuple(found)

    def joints(self, b: int) -> tuple[int, int]:
        """First joint of body ``b``, and the one after its last."""
        return self.body_jntadr[b], self.body_jntadr[b] + self.body_jntnum[b]

    def motion(self, i: int) -> int:
        """How degree of freedom ``i`` moves its body: 0, 1, 2 along an axis of the world; 3 it turns about the point
        that spatial vectors of its tree are about, 4 along any axis, 5 any other way."""
        j = self.dof_jntid[i]
        if self.jnt_type[j] == FREE:
            return min(i - self.jnt_dofadr[j], 3)
        return 4 if self.jnt_type[j] == SLIDE else 5

    def quaternion(self, j: int) -> tuple[int, int]:
        """Of a free joint, or a ball, where its quaternion stands in ``qpos``, and its rotation in ``qvel``."""
        skip = 3 if self.jnt_type[j] == FREE else 0
        return self.jnt_qposadr[j] + skip, self.jnt_dofadr[j] + skip

    @property
    def nq(self) -> int:
        """The size of ``qpos``."""
        return self.jnt_qposadr[-1] + {FREE: 7, BALL: 4}.get(self.jnt_type[-1], 1)

    @property
    def work(self) -> int:
        """About how many operations a step takes, and so how much code it is."""
        rows = sum(n * n // 2 + 8 * n for n in self.M_rownnz)
        return 360 * sum(self.moving) + 110 * len(self.dof_bodyid) + rows

    def row(self, i: int) -> tuple[int, int]:
        """In the mass matrix the first element of row ``i``, and the last, which is the diagonal."""
        return self.M_rowadr[i], self.M_rowadr[i] + self.M_rownnz[i] - 1


def _main_axis(axis: np.ndarray) -> int:
    """The number of the axis that ``axis`` is exactly, else -1."""
    return next((k for k in range(3) if np.array_equal(axis, np.eye(3)[k])), -1)


def fits(mjm: mujoco.MjModel) -> bool:
    """Whether straight-line code can step the model: affine actuators on hinges and slides, and no constraints."""
    trn, dyn, gain, bias = mujoco.mjtTrn, mujoco.mjtDyn, mujoco.mjtGain, mujoco.mjtBias
    kinds = {
        "actuator_trntype": (trn.mjTRN_JOINT, trn.mjTRN_JOINTINPARENT),
        "actuator_dyntype": (dyn.mjDYN_NONE,),
        "actuator_gaintype": (gain.mjGAIN_FIXED, gain.mjGAIN_AFFINE),
        "actuator_biastype": (bias.mjBIAS_NONE, bias.mjBIAS_AFFINE),
    }
    plain = not (mjm.nhistory or getattr(mjm, "nplastic", 0)) and all(
        np.isin(getattr(mjm, name), [int(k) for k in allowed]).all() for name, allowed in kinds.items()
    )
    absent = not (mjm.ntendon or mjm.na or mjm.nmocap or mjm.nsensor)
    if not (plain and absent and mjm.nv > 0):
        return False
    driven = mjm.jnt_type[mjm.actuator_trnid[:, 0]]
    return bool(np.isin(driven, [HINGE, SLIDE]).all())


def constraint_kinds(mjm: mujoco.MjModel) -> dict[str, tuple[bool, int]]:
    """Kinds of constraints: whether a model's elements have them, and the flag that switches them off."""
    parts = ("CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY")
    bit = {name: int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}")) for name in parts}
    meeting = (mjm.geom_contype[:, None] & mjm.geom_conaffinity[None, :]) != 0
    meeting = (meeting | meeting.T) & (mjm.geom_bodyid[:, None] != mjm.geom_bodyid[None, :])
    return {
        "geom: contacts": (bool(meeting.any() or mjm.npair), bit["CONTACT"]),
        "joint: limited": (bool(mjm.jnt_limited.any()), bit["LIMIT"]),
        "tendon: limited": (bool(mjm.tendon_limited.any()), bit["LIMIT"]),
        "joint: frictionloss": (bool(mjm.dof_frictionloss.any()), bit["FRICTIONLOSS"]),
        "tendon: frictionloss": (bool(mjm.tendon_frictionloss.any()), bit["FRICTIONLOSS"]),
        "equality": (bool(mjm.neq), bit["EQUALITY"]),
    }


def chain(mjm: mujoco.MjModel, b: int) -> list[int]:
    """The degrees of freedom between body ``b`` and the world, in ascending order."""
    found = []
    while b > 0:
        first = mjm.body_dofadr[b]
        found.extend(range(first, first + mjm.body_dofnum[b]))
        b = mjm.body_parentid[b]
    return sorted(int(i) for i in found)


def actuator_columns(mjm: mujoco.MjModel) -> dict[str, np.ndarray]:
    """The pattern of the actuators' moments: which degrees of freedom each may act on.

    A body that adheres acts on whatever it touches, so its row has all columns.
    """
    rows = [_columns(mjm, u, k) for u, count in enumerate(_outputs(mjm)) for k in range(count)]
    count = np.array([len(r) for r in rows], dtype=np.int32)
    return {
        "moment_rownnz": count,
        "moment_rowadr": np.cumsum(count, dtype=np.int32) - count,
        "moment_colind": np.array([i for r in rows for i in r], dtype=np.int32),
    }


def _outputs(mjm: mujoco.MjModel) -> np.ndarray:
    """The number of outputs of each actuator."""
    return np.diff(np.append(mjm.actuator_outadr, mjm.nout))


def frames(mjm: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Positions and orientations of geoms, sites and inertias in their bodies, as MuJoCo uses them.

    What its compiler found to coincide with the body's frame, or with that of its inertia, MuJoCo takes from there.
    """
    kind, unit = mujoco.mjtSameFrame, (1.0, 0.0, 0.0, 0.0)
    found = {}
    for element, pos, quat in (("body", "ipos", "iquat"), ("geom", "pos", "quat"), ("site", "pos", "quat")):
        same = getattr(mjm, f"{element}_sameframe")
        pos, quat = f"{element}_{pos}", f"{element}_{quat}"
        found[pos], found[quat] = getattr(mjm, pos).copy(), getattr(mjm, quat).copy()
        found[pos][same == int(kind.mjSAMEFRAME_BODY)] = 0.0
        found[quat][np.isin(same, [int(kind.mjSAMEFRAME_BODY), int(kind.mjSAMEFRAME_BODYROT)])] = unit
        if element != "body":
            body, placed = getattr(mjm, f"{element}_bodyid"), same == int(kind.mjSAMEFRAME_INERTIA)
            turned = placed | (same == int(kind.mjSAMEFRAME_INERTIAROT))
            found[pos][placed] = found["body_ipos"][body[placed]]
            found[quat][turned] = found["body_iquat"][body[turned]]
    return found


def mirror(mjm: mujoco.MjModel) -> np.ndarray:
    """For each element of the full pattern of trees, the element across the diagonal."""
    rows = np.repeat(np.arange(mjm.nv), mjm.D_rownnz)
    place = {(int(i), int(j)): e for e, (i, j) in enumerate(zip(rows, mjm.D_colind, strict=True))}
    return np.array([place[int(j), int(i)] for i, j in zip(rows, mjm.D_colind, strict=True)], dtype=np.int32)


def floating(mjm: mujoco.MjModel) -> np.ndarray:
    """For each body, whether it is free and nothing moves against it: 1 or 0."""
    found = np.zeros(mjm.nbody, dtype=np.int32)
    for j in np.flatnonzero(mjm.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)):
        found[mjm.jnt_bodyid[j]] = mjm.tree_dofnum[mjm.dof_treeid[mjm.jnt_dofadr[j]]] == 6
    return found


def tendon_types(mjm: mujoco.MjModel) -> np.ndarray:
    """Of each tendon 0 if it is fixed (it begins with a joint, and sums up joints), and 1 if it is spatial."""
    return (mjm.wrap_type[mjm.tendon_adr] != int(mujoco.mjtWrap.mjWRAP_JOINT)).astype(np.int32)


def dof_ancestors(mjm: mujoco.MjModel) -> np.ndarray:
    """For each body and degree of freedom, whether that moves the body: 1 or 0."""
    found = np.zeros((mjm.nbody, mjm.nv), dtype=np.int32)
    for b in range(mjm.nbody):
        found[b, chain(mjm, b)] = 1
    return found


def _columns(mjm: mujoco.MjModel, u: int, k: int) -> list[int]:
    """The degrees of freedom on which output ``k`` of actuator ``u`` may act."""
    trn, joint = mujoco.mjtTrn, mujoco.mjtJoint
    kind, (first, second) = trn(mjm.actuator_trntype[u]), mjm.actuator_trnid[u]
    if kind in (trn.mjTRN_JOINT, trn.mjTRN_JOINTINPARENT):
        width = {joint.mjJNT_FREE: 6, joint.mjJNT_BALL: 3}.get(joint(mjm.jnt_type[first]), 1)
        return list(range(mjm.jnt_dofadr[first], mjm.jnt_dofadr[first] + width))
    if kind == trn.mjTRN_TENDON:
        start = mjm.ten_J_rowadr[first]
        return [int(i) for i in mjm.ten_J_colind[start : start + mjm.ten_J_rownnz[first]]]
    if kind in (trn.mjTRN_SLIDERCRANK, trn.mjTRN_SITE):
        moving = set(chain(mjm, mjm.site_bodyid[first]))
        base = set(chain(mjm, mjm.site_bodyid[second])) if second >= 0 else set()
        # what moves both sites changes nothing between them, as MuJoCo counts for actuators on sites
        return sorted(moving ^ base if kind == trn.mjTRN_SITE else moving | base)
    if kind == trn.mjTRN_SO3 and second < 0:  # a ball: an output for each of its axes
        return [int(mjm.jnt_dofadr[first]) + k]
    if kind == trn.mjTRN_SO3:
        return sorted(set(chain(mjm, mjm.site_bodyid[first])) | set(chain(mjm, mjm.site_bodyid[second])))
    return list(range(mjm.nv)) if kind == trn.mjTRN_BODY else []
