"""Batched rigid-body simulation of MuJoCo models: names and arguments of MuJoCo Warp, many worlds at once.

    >>> import mujoco, treadle.mujoco as mjw
    >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
    >>> xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    >>> mjm = mujoco.MjModel.from_xml_string(xml)
    >>> m = mjw.put_model(mjm)
    >>> d = mjw.make_data(mjm, nworld=4)
    >>> mjw.step(m, d)
    >>> d.qpos.shape
    (4, 1)

MuJoCo compiles the MJCF and is needed for nothing else. What is not simulated `put_model` refuses, by element and
attribute.
"""

import mujoco as _mujoco

if tuple(map(int, _mujoco.__version__.split(".")[:2])) < (3, 17):
    raise ImportError(f"treadle.mujoco needs MuJoCo 3.17 or newer, not {_mujoco.__version__}: pip install -U mujoco")

from treadle.base.errors import CapacityError, OrderError, UnsupportedModelError
from treadle.mujoco.data import Data
from treadle.mujoco.jax_step import Control, State, jax_function
from treadle.mujoco.model import Model, Option, put_model
from treadle.mujoco.public import (
    camlight,
    collision,
    com_pos,
    com_vel,
    crb,
    energy_pos,
    energy_vel,
    euler,
    factor_m,
    forward,
    fwd_acceleration,
    fwd_actuation,
    fwd_position,
    fwd_velocity,
    implicit,
    inverse,
    kinematics,
    make_constraint,
    passive,
    reference_constraint,
    rne,
    rne_postconstraint,
    rungekutta4,
    sensor_acc,
    sensor_pos,
    sensor_vel,
    solve,
    step,
    step1,
    step2,
    subtree_vel,
    tendon,
    tendon_armature,
    transmission,
)
from treadle.mujoco.reset import reset_data, reset_data_keyframe
from treadle.mujoco.rollouts import rollout
from treadle.mujoco.worlds import get_data_into, make_data, put_data

__all__ = [
    "CapacityError",
    "Control",
    "Data",
    "Model",
    "Option",
    "OrderError",
    "State",
    "UnsupportedModelError",
    "camlight",
    "collision",
    "com_pos",
    "com_vel",
    "crb",
    "energy_pos",
    "energy_vel",
    "euler",
    "factor_m",
    "forward",
    "fwd_acceleration",
    "fwd_actuation",
    "fwd_position",
    "fwd_velocity",
    "get_data_into",
    "implicit",
    "inverse",
    "jax_function",
    "kinematics",
    "make_constraint",
    "make_data",
    "passive",
    "put_data",
    "put_model",
    "reference_constraint",
    "reset_data",
    "reset_data_keyframe",
    "rne",
    "rne_postconstraint",
    "rollout",
    "rungekutta4",
    "sensor_acc",
    "sensor_pos",
    "sensor_vel",
    "solve",
    "step",
    "step1",
    "step2",
    "subtree_vel",
    "tendon",
    "tendon_armature",
    "transmission",
]
