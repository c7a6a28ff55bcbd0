"""Sensors of the distance between geoms, or bodies with all their geoms: how far, which way, from where to where."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row, types
from treadle.mujoco.sensor.kinds import GEOM, KIND
from treadle.mujoco.sensor.objects import outputs

ints = wp.array(dtype=int)
GEOMDIST, GEOMNORMAL, GEOMFROMTO = KIND.GEOMDIST, KIND.GEOMNORMAL, KIND.GEOMFROMTO


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    vec3, put3 = types(real).vec3, outputs(real).put3

    @wp.kernel
    def sensor_distance(
        sensor_type: ints, sensor_objtype: ints, sensor_objid: ints, sensor_adr: ints,
        sensor_cutoff: wp.array2d(dtype=real), geom_bodyid: ints, pairs_geom1: ints, pairs_explicit: ints,
        pairs_slot: ints, near_count: wp.array2d(dtype=int), near_dist: wp.array2d(dtype=real),
        near_pos: wp.array2d(dtype=vec3), near_normal: wp.array2d(dtype=vec3), sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Of what was found for a sensor the nearest; beyond the cutoff there is nothing, and no direction."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            kind, at = sensor_type[s], sensor_adr[s]
            if kind == GEOMDIST or kind == GEOMNORMAL or kind == GEOMFROMTO:
                dist, best, pair = sensor_cutoff[row(w, sensor_cutoff), s], int(-1), int(0)
                for p in range(near_count.shape[1]):
                    if pairs_explicit[p] == s:
                        for k in range(pairs_slot[p], pairs_slot[p] + near_count[w, p]):
                            if near_dist[w, k] < dist:
                                dist, best, pair = near_dist[w, k], k, p
                way, place = vec3(), vec3()
                if best >= 0:
                    place = near_pos[w, best]
                    g = pairs_geom1[pair]
                    first = g
                    if sensor_objtype[s] != GEOM:
                        first = geom_bodyid[g]
                    turned = first != sensor_objid[s]  # the pair has the lower type first
                    if dist != real(0.0):
                        way = wp.where(turned != (dist < real(0.0)), -near_normal[w, best], near_normal[w, best])
                half = way * (real(0.5) * wp.abs(dist))
                if kind == GEOMDIST:
                    sensordata[w, at] = dist
                elif kind == GEOMNORMAL:
                    put3(w, at, way, sensordata)
                else:
                    put3(w, at, place - half, sensordata)
                    put3(w, at + 3, place + half, sensordata)

    return dict(sensor_distance=sensor_distance)
