"""Rows of constraints by MuJoCo Warp's names: ``d.efc.J`` is the field ``efc_J``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import treadle as wp

if TYPE_CHECKING:
    from treadle.mujoco.data import Data
    from treadle.mujoco.fields import Field


class Efc:
    """The arrays of a data whose names begin with ``efc_``, without that.

    They have a row for each of ``njmax``; of world w the first ``d.nefc[w]`` count.
    """

    def __init__(self, d: Data):
        self.__dict__["_d"] = d

    def __getattr__(self, name: str) -> wp.array:
        return self._d.read(self._row(name))

    def __setattr__(self, name: str, value: wp.array) -> None:
        self._d.assign(self._row(name), value)

    def _row(self, name: str) -> Field:
        row = getattr(type(self._d), f"efc_{name}", None)
        if row is None or row.role == "scratch":
            raise AttributeError(f"efc has no array {name!r}: it has {', '.join(dir(self))}")
        return row

    def __dir__(self) -> list[str]:
        rows = type(self._d).rows()
        return [row.name[4:] for row in rows if row.name.startswith("efc_") and row.role != "scratch"]
