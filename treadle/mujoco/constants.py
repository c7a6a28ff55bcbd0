"""MuJoCo's enumerations as kernels see them. Their numbers differ between MuJoCo's versions, so they are asked for."""

from __future__ import annotations

import mujoco

import treadle as wp

SLIDE = wp.constant(int(mujoco.mjtJoint.mjJNT_SLIDE))
GAIN_AFFINE = wp.constant(int(mujoco.mjtGain.mjGAIN_AFFINE))
BIAS_AFFINE = wp.constant(int(mujoco.mjtBias.mjBIAS_AFFINE))

SPRING = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_SPRING))
DAMPER = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_DAMPER))
GRAVITY = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_GRAVITY))
CLAMPCTRL = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL))
ACTUATION = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_ACTUATION))
EULERDAMP = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP))

MINVAL = wp.constant(1e-15)  # mjMINVAL: a mass below it counts as none
