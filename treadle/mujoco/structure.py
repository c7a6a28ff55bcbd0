"""What the code of a step depends on: a model's integer tables, hashable."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import mujoco
import numpy as np

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
    jnt_main: Ints
    jnt_centred: Ints
    jnt_actfrclimited: Ints
    dof_bodyid: Ints
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

    def row(self, i: int) -> tuple[int, int]:
        """In the mass matrix the first element of row ``i``, and the last, which is the diagonal."""
        return self.M_rowadr[i], self.M_rowadr[i] + self.M_rownnz[i] - 1


def _main_axis(axis: np.ndarray) -> int:
    """The number of the axis that ``axis`` is exactly, else -1."""
    return next((k for k in range(3) if np.array_equal(axis, np.eye(3)[k])), -1)
