"""Pairs of geoms whose distance sensors ask for: they are found like contacts, in slots of their own."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

import treadle as wp
from treadle.mujoco.collision.pairs import BOX, Pairs, method
from treadle.mujoco.fields import Fields, constant

_SENSOR, _BODY = mujoco.mjtSensor, mujoco.mjtObj.mjOBJ_BODY
MEASURING = frozenset(
    int(kind) for kind in (_SENSOR.mjSENS_GEOMDIST, _SENSOR.mjSENS_GEOMNORMAL, _SENSOR.mjSENS_GEOMFROMTO)
)
CLIPPED = ((BOX, BOX),)  # their formula is for contacts: farther apart it gives no distance


class Distances(Fields):
    """The pairs of all sensors of distance, by method. The number of an explicit pair is here that of the sensor."""

    pairs_geom1 = constant("int", "pairs", "first geom of each pair")
    pairs_geom2 = constant("int", "pairs", "second geom")
    pairs_explicit = constant("int", "pairs", "number of the sensor")
    pairs_slot = constant("int", "pairs", "first slot of what is found")
    pairs_of_method = constant("int", "pairs", "numbers of pairs, method after method")
    pair_gap = constant("real", "* nsensor", "nothing is listed beyond the cutoff")

    def __init__(self, real: Any, mjm: mujoco.MjModel):
        pairs = measured(mjm)
        super().__init__(real, {"pairs": len(pairs), "nsensor": mjm.nsensor})
        self.methods, order = pairs.in_runs()
        self.bent = pairs.bent(mjm)
        for row, values in (
            (Distances.pairs_geom1, pairs.geom1),
            (Distances.pairs_geom2, pairs.geom2),
            (Distances.pairs_explicit, pairs.explicit),
            (Distances.pairs_slot, pairs.places()),
            (Distances.pairs_of_method, order),
        ):
            self.fill(row, values)

    def arrays(self) -> dict[str, wp.array]:
        """All arrays, by name."""
        return {row.name: self.read(row) for row in Distances.rows()}


def measured(mjm: mujoco.MjModel) -> Pairs:
    """The pairs of geoms that sensors of distance ask for, sensor after sensor, the lower type of a pair first."""
    table = []
    for s in np.flatnonzero(np.isin(mjm.sensor_type, list(MEASURING))):
        for one in _geoms(mjm, mjm.sensor_objtype[s], mjm.sensor_objid[s]):
            for two in _geoms(mjm, mjm.sensor_reftype[s], mjm.sensor_refid[s]):
                a, b = (two, one) if mjm.geom_type[one] > mjm.geom_type[two] else (one, two)
                kinds = int(mjm.geom_type[a]), int(mjm.geom_type[b])
                how = "convex" if kinds in CLIPPED else method(*kinds)
                if how:
                    table.append((a, b, s, how))
    a, b, s, how = zip(*table) if table else ((), (), (), ())
    return Pairs(np.array(a, np.int32), np.array(b, np.int32), np.array(s, np.int32), tuple(how))


def _geoms(mjm: mujoco.MjModel, kind: int, number: int) -> range:
    if kind != _BODY:
        return range(number, number + 1)
    return range(mjm.body_geomadr[number], mjm.body_geomadr[number] + mjm.body_geomnum[number])
