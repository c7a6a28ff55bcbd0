"""Sensors of limits, of positions, velocities and forces alike. Only they look at rows of constraints."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.constraint.kinds import LIMIT_JOINT, LIMIT_TENDON

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by name."""

    @wp.kernel
    def sensor_limits(
        of_joint: int, of_tendon: int, less_margin: int, sensor_type: ints, sensor_objid: ints, sensor_adr: ints,
        nefc: ints, efc_type: ints2, efc_id: ints2, efc_margin: wp.array2d(dtype=real),
        row_value: wp.array2d(dtype=real), sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """A number of the first row of each limit, 0 where it has none: of the kinds of sensors that are given."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            kind, i = sensor_type[s], sensor_objid[s]
            if kind == of_joint or kind == of_tendon:
                limit = LIMIT_TENDON
                if kind == of_joint:
                    limit = LIMIT_JOINT
                value = real(0.0)
                searching = bool(True)
                for e in range(nefc[w]):
                    if searching and efc_type[w, e] == limit and efc_id[w, e] == i:
                        value = row_value[w, e]
                        if less_margin != 0:
                            value = value - efc_margin[w, e]
                        searching = False
                sensordata[w, sensor_adr[s]] = value

    return {"sensor_limits": sensor_limits}
