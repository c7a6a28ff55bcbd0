"""Inverse dynamics of steps: what continuous acceleration a difference of velocities over a step stands for.

Integrators take damping, and what else depends on velocities, at the end of a step: ``(M - h D) a = F`` where in
continuous time ``M a = F``, with ``D = dF/dv`` as far as the integrator looks at it. So from the acceleration over a
step follows ``M a' = (M - h D) a`` (MuJoCo documentation, XML reference, flag invdiscrete).
"""

from functools import cache

import treadle as wp
from treadle.mujoco.advance import derivatives
from treadle.mujoco.constants import EULERDAMP, INT_EULER
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model
from treadle.mujoco.stages import run_stage


def continuous_acceleration(m: Model, d: Data) -> wp.array:
    """The acceleration that ``qacc`` stands for, which was found from velocities one step apart."""
    wet, full_step = False, m.opt.integrator != int(INT_EULER)
    if full_step:
        wet = derivatives(m, d)[1]
    else:
        run_stage("deriv_passive", m, d, tendon_actuatorid=_nothing())  # only joints are damped at the step's end
        if m.opt.disableflags & int(EULERDAMP):
            d.field("qDeriv").zero_()
    run_stage("undo_product", m, d)
    if m.floats and full_step:
        run_stage("undo_free_bodies_in_fluid" if wet else "undo_free_bodies", m, d)
    run_stage("undo_solve", m, d)
    return d.field("qacc_continuous")


@cache
def _nothing() -> wp.array:
    return wp.zeros(0, dtype=wp.int32)
