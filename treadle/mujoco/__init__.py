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

MuJoCo compiles the MJCF and is needed for nothing else. Today: trees of hinge and slide joints with armature, damping
and springs, affine actuators on joints, gravity, semi-implicit Euler with implicit damping. Contacts and other
constraints, free and ball joints, tendons and sensors are refused by `put_model`, which names what it met.
"""

from treadle.mujoco.data import Data, get_data_into, make_data, put_data, reset_data
from treadle.mujoco.model import Model, Option, put_model
from treadle.mujoco.stages import (
    com_pos,
    com_vel,
    crb,
    euler,
    factor_m,
    forward,
    fwd_acceleration,
    fwd_actuation,
    fwd_position,
    fwd_velocity,
    kinematics,
    passive,
    rne,
    step,
    transmission,
)

__all__ = [
    "Data",
    "Model",
    "Option",
    "com_pos",
    "com_vel",
    "crb",
    "euler",
    "factor_m",
    "forward",
    "fwd_acceleration",
    "fwd_actuation",
    "fwd_position",
    "fwd_velocity",
    "get_data_into",
    "kinematics",
    "make_data",
    "passive",
    "put_data",
    "put_model",
    "reset_data",
    "rne",
    "step",
    "transmission",
]
