"""Bounds of sensors' outputs."""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import row
from treadle.mujoco.sensor.kinds import KIND, POSITIVE, REAL, STAGE_VEL

ints = wp.array(dtype=int)
CONTACT, GEOMFROMTO, E_KINETIC = KIND.CONTACT, KIND.GEOMFROMTO, KIND.E_KINETIC


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""

    @wp.kernel
    def sensor_cutoff_outputs(
        sensor_type: ints, sensor_datatype: ints, sensor_needstage: ints, sensor_adr: ints, sensor_dim: ints,
        sensor_cutoff: wp.array2d(dtype=real), stage: int, sensordata: wp.array2d(dtype=real),
    ):  # fmt: skip
        """Clamp what the sensors of a stage give: numbers to both sides, positive ones from above."""
        w = wp.tid()
        for s in range(sensor_type.shape[0]):
            bound = sensor_cutoff[row(w, sensor_cutoff), s]
            when = sensor_needstage[s]
            if sensor_type[s] == E_KINETIC:  # we have it only with velocities
                when = STAGE_VEL
            spared = sensor_type[s] == CONTACT or sensor_type[s] == GEOMFROMTO
            if when == stage and bound > real(0.0) and not spared:
                for k in range(sensor_adr[s], sensor_adr[s] + sensor_dim[s]):
                    value = sensordata[w, k]
                    if sensor_datatype[s] == REAL:
                        sensordata[w, k] = wp.clamp(value, -bound, bound)
                    elif sensor_datatype[s] == POSITIVE:
                        sensordata[w, k] = wp.min(value, bound)

    return dict(sensor_cutoff_outputs=sensor_cutoff_outputs)
