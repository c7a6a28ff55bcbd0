"""What the code of a step depends on: a model's integer tables, hashable."""

from __future__ import annotations

from dataclasses import dataclass, fields

import mujoco

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Structure:
    """The integer tables of a model, by MuJoCo's names. Models of one structure share their code."""

    body_parentid: Ints
    body_rootid: Ints
    body_jntadr: Ints
    body_jntnum: Ints
    jnt_type: Ints
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
        tables = {row.name: getattr(mjm, row.name) for row in fields(cls) if row.name != "disableflags"}
        tables["actuator_trnid"] = mjm.actuator_trnid[:, 0]  # a joint transmission names one joint
        tuples = {name: tuple(int(x) for x in table) for name, table in tables.items()}
        return cls(**tuples, disableflags=int(mjm.opt.disableflags))

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
