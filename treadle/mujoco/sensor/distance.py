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
        near_count: ints, near_pair: wp.array2d(dtype=int), near_dist: wp.array2d(dtype=real),
        near_pos: wp.array2d(dtype=vec3), near_normal: wp.array2d(dtype=vec3), sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Of what was found for a sensor the nearest; beyond the cutoff there is nothing, and no direction."""
        w = wp.tid()
        count = wp.min(near_count[w], near_pair.shape[1])
        for s in range(sensor_type.shape[0]):
            kind, at = sensor_type[s], sensor_adr[s]
            if kind == GEOMDIST or kind == GEOMNORMAL or kind == GEOMFROMTO:
                dist, best = sensor_cutoff[row(w, sensor_cutoff), s], int(-1)
                for k in range(count):
                    if pairs_explicit[near_pair[w, k]] == s and near_dist[w, k] < dist:
                        dist, best = near_dist[w, k], k
                way, place = vec3(), vec3()
                if best >= 0:
                    place = near_pos[w, best]
                    g = pairs_geom1[near_pair[w, best]]
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
