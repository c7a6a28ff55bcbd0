"""Kinds of sensors and of what they are attached to, as kernels see them."""

from __future__ import annotations

from types import SimpleNamespace

import mujoco

import treadle as wp

# every kind by its name, as in ``KIND.JOINTPOS``
KIND = SimpleNamespace(
    **{name[7:]: wp.constant(int(kind)) for name, kind in mujoco.mjtSensor.__members__.items()},
)

UNKNOWN = wp.constant(int(mujoco.mjtObj.mjOBJ_UNKNOWN))
BODY = wp.constant(int(mujoco.mjtObj.mjOBJ_BODY))
XBODY = wp.constant(int(mujoco.mjtObj.mjOBJ_XBODY))
GEOM = wp.constant(int(mujoco.mjtObj.mjOBJ_GEOM))
SITE = wp.constant(int(mujoco.mjtObj.mjOBJ_SITE))
CAMERA = wp.constant(int(mujoco.mjtObj.mjOBJ_CAMERA))

SPHERE = wp.constant(int(mujoco.mjtGeom.mjGEOM_SPHERE))
CAPSULE = wp.constant(int(mujoco.mjtGeom.mjGEOM_CAPSULE))
ELLIPSOID = wp.constant(int(mujoco.mjtGeom.mjGEOM_ELLIPSOID))
CYLINDER = wp.constant(int(mujoco.mjtGeom.mjGEOM_CYLINDER))
BOX = wp.constant(int(mujoco.mjtGeom.mjGEOM_BOX))

POSITIVE = wp.constant(int(mujoco.mjtDataType.mjDATATYPE_POSITIVE))
REAL = wp.constant(int(mujoco.mjtDataType.mjDATATYPE_REAL))

STAGE_POS = wp.constant(int(mujoco.mjtStage.mjSTAGE_POS))
STAGE_VEL = wp.constant(int(mujoco.mjtStage.mjSTAGE_VEL))
STAGE_ACC = wp.constant(int(mujoco.mjtStage.mjSTAGE_ACC))
