"""`Data.contact`: the contacts of all worlds one after the other, by the names that MuJoCo Warp gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import treadle as wp

if TYPE_CHECKING:
    from treadle.mujoco.data import Data

FIELDS = (
    "dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp", "dim", "efc_address",
)  # fmt: skip


class Contact:
    """A copy of the contacts that there are, made when it is asked for; it cannot be written to.

    Attributes:
        worldid: world of each contact, in ascending order; all arrays are as long.
        geom: the two geoms, of type ``vec2i``.
        dist, pos, frame, includemargin, friction, solref, solreffriction, solimp, dim: as in MuJoCo's ``mjContact``.
        efc_address: first row of the contact's constraints, -1 if it has none.
    """

    def __init__(self, d: Data):
        counts = d.ncon.numpy()
        world = np.repeat(np.arange(d.nworld, dtype=np.int32), counts)
        slot = np.arange(len(world)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.__dict__.update(_data=d, _world=world, _slot=slot)

    def __len__(self) -> int:
        return len(self._world)

    @property
    def worldid(self) -> wp.array:
        """World of each contact."""
        return wp.array(self._world, dtype=wp.int32)

    @property
    def geom(self) -> wp.array:
        """The two geoms of each contact."""
        both = [getattr(self._data, f"contact_geom{k}").numpy()[self._world, self._slot] for k in (1, 2)]
        return wp.array(np.stack(both, axis=1), dtype=wp.vec2i)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what would be lost."""
        raise AttributeError(f"d.contact is a copy, so {name} cannot be set; the arrays that stages read are contact_…")

    def __getattr__(self, name: str) -> wp.array:
        if name not in FIELDS:
            raise AttributeError(f"contacts have no {name}; they have worldid, geom, {', '.join(FIELDS)}")
        field = getattr(self._data, "contact_" + name)
        return wp.array(np.ascontiguousarray(field.numpy()[self._world, self._slot]), dtype=field.dtype)
