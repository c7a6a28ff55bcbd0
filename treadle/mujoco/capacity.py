"""How many contacts and rows of constraints a world may have: computed from the model."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from treadle.mujoco.arguments import whole
from treadle.mujoco.collision.distances import measured
from treadle.mujoco.collision.pairs import Pairs
from treadle.mujoco.constraint.bonds import Room, of_model

SMALL = 64  # contacts for which there is room in any case, if pairs can make them


@dataclass(frozen=True)
class Capacity:
    """What a model can need at most.

    Attributes:
        contacts: contacts of a world. In large scenes, where all pairs touching at once would be far more, it is 16 for
            each geom; a world that has more is marked, and the list grows.
        fixed: rows of equality constraints, dry friction and limits.
        of_contact: rows of a contact.
        pairs, slots: pairs of geoms, and places for contacts of all of them.
        measured: pairs that sensors of distance ask for.
        room: what the bonds of a gang of worlds need room for.
    """

    contacts: int
    fixed: int
    of_contact: int
    pairs: int
    slots: int
    measured: int
    room: Room

    @classmethod
    def of(cls, mjm: mujoco.MjModel, pairs: Pairs | None = None) -> Capacity:
        """The capacity for a compiled model, whose pairs of geoms are found unless they are given."""
        pairs = Pairs.of(mjm) if pairs is None else pairs
        dims = [*mjm.geom_condim, *mjm.pair_dim, 1]
        most = int(max(dims))
        elliptic = mjm.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
        contacts = min(pairs.most(), SMALL + 16 * mjm.ngeom)
        room = Room.of(list(of_model(mjm, pairs)))
        rows = most if elliptic else max(1, 2 * (most - 1))
        return cls(contacts, _fixed_rows(mjm), rows, len(pairs), pairs.most(), len(measured(mjm)), room)

    def sizes(self, nconmax: int | None = None, njmax: int | None = None) -> dict[str, int]:
        """Sizes of arrays for contacts and rows; what the user says goes before what was computed."""
        contacts = self.contacts if nconmax is None else whole("nconmax", nconmax, 0)
        rows = self.fixed + self.of_contact * contacts if njmax is None else whole("njmax", njmax, 0)
        return {
            "nconmax": contacts,
            "njmax": rows,
            "npairs": self.pairs,
            "nslot": self.slots,
            "nnearpair": self.measured,
            **self.room.sizes(contacts),
        }


def _fixed_rows(mjm: mujoco.MjModel) -> int:
    kinds = {mujoco.mjtEq.mjEQ_CONNECT: 3, mujoco.mjtEq.mjEQ_WELD: 6}
    rows = sum(kinds.get(mujoco.mjtEq(int(kind)), 1) for kind in mjm.eq_type)
    rows += mjm.nv + mjm.ntendon  # dry friction may be set later, so there is room for that of all
    for limited, bounds, margin in (
        (mjm.jnt_limited, mjm.jnt_range, mjm.jnt_margin),
        (mjm.tendon_limited, mjm.tendon_range, mjm.tendon_margin),
    ):
        both = bounds[:, 1] - bounds[:, 0] < 2 * np.asarray(margin)  # both ends can be within their margin
        rows += int(np.sum(np.asarray(limited, bool) * (1 + both)))
    return int(rows)
