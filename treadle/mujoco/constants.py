"""MuJoCo's enumerations as kernels see them. Their numbers differ between MuJoCo's versions, so they are asked for."""

from __future__ import annotations

from typing import Any

import mujoco

import treadle as wp


def _number(member: Any) -> Any:
    return wp.constant(int(member))


FREE = _number(mujoco.mjtJoint.mjJNT_FREE)
BALL = _number(mujoco.mjtJoint.mjJNT_BALL)
SLIDE = _number(mujoco.mjtJoint.mjJNT_SLIDE)
HINGE = _number(mujoco.mjtJoint.mjJNT_HINGE)

SPHERE = _number(mujoco.mjtGeom.mjGEOM_SPHERE)
CAPSULE = _number(mujoco.mjtGeom.mjGEOM_CAPSULE)
CYLINDER = _number(mujoco.mjtGeom.mjGEOM_CYLINDER)

TRACK = _number(mujoco.mjtCamLight.mjCAMLIGHT_TRACK)
TRACKCOM = _number(mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM)
TARGETBODY = _number(mujoco.mjtCamLight.mjCAMLIGHT_TARGETBODY)
TARGETBODYCOM = _number(mujoco.mjtCamLight.mjCAMLIGHT_TARGETBODYCOM)

TENDON_FIXED = wp.constant(0)  # as mjtTendon has it, which MuJoCo 3 lacks (`model.tendon_types`)
WRAP_PULLEY = _number(mujoco.mjtWrap.mjWRAP_PULLEY)
WRAP_SITE = _number(mujoco.mjtWrap.mjWRAP_SITE)
WRAP_SPHERE = _number(mujoco.mjtWrap.mjWRAP_SPHERE)
WRAP_CYLINDER = _number(mujoco.mjtWrap.mjWRAP_CYLINDER)

TRN_JOINT = _number(mujoco.mjtTrn.mjTRN_JOINT)
TRN_JOINTINPARENT = _number(mujoco.mjtTrn.mjTRN_JOINTINPARENT)
TRN_SLIDERCRANK = _number(mujoco.mjtTrn.mjTRN_SLIDERCRANK)
TRN_TENDON = _number(mujoco.mjtTrn.mjTRN_TENDON)
TRN_SITE = _number(mujoco.mjtTrn.mjTRN_SITE)
TRN_BODY = _number(mujoco.mjtTrn.mjTRN_BODY)
TRN_SO3 = _number(mujoco.mjtTrn.mjTRN_SO3)

CHART_QUAT = _number(mujoco.mjtCtrlChart.mjCHART_QUAT)

INPUT_POS = _number(mujoco.mjtCtrlInput.mjINPUT_POS)
INPUT_VEL = _number(mujoco.mjtCtrlInput.mjINPUT_VEL)
INPUT_FF = _number(mujoco.mjtCtrlInput.mjINPUT_FF)
INPUT_VOLTAGE = _number(mujoco.mjtCtrlInput.mjINPUT_VOLTAGE)

DYN_NONE = _number(mujoco.mjtDyn.mjDYN_NONE)
DYN_INTEGRATOR = _number(mujoco.mjtDyn.mjDYN_INTEGRATOR)
DYN_FILTER = _number(mujoco.mjtDyn.mjDYN_FILTER)
DYN_FILTEREXACT = _number(mujoco.mjtDyn.mjDYN_FILTEREXACT)
DYN_MUSCLE = _number(mujoco.mjtDyn.mjDYN_MUSCLE)
DYN_PID = _number(mujoco.mjtDyn.mjDYN_PID)
DYN_DCMOTOR = _number(mujoco.mjtDyn.mjDYN_DCMOTOR)
GAIN_FIXED = _number(mujoco.mjtGain.mjGAIN_FIXED)
GAIN_AFFINE = _number(mujoco.mjtGain.mjGAIN_AFFINE)
GAIN_MUSCLE = _number(mujoco.mjtGain.mjGAIN_MUSCLE)
GAIN_PID = _number(mujoco.mjtGain.mjGAIN_PID)
GAIN_DCMOTOR = _number(mujoco.mjtGain.mjGAIN_DCMOTOR)
BIAS_NONE = _number(mujoco.mjtBias.mjBIAS_NONE)
BIAS_AFFINE = _number(mujoco.mjtBias.mjBIAS_AFFINE)
BIAS_MUSCLE = _number(mujoco.mjtBias.mjBIAS_MUSCLE)
BIAS_DCMOTOR = _number(mujoco.mjtBias.mjBIAS_DCMOTOR)

SPRING = _number(mujoco.mjtDisableBit.mjDSBL_SPRING)
DAMPER = _number(mujoco.mjtDisableBit.mjDSBL_DAMPER)
GRAVITY = _number(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
WARNINGS = ("BADQVEL", "BADQPOS", "BADQACC", "BADCTRL", "INERTIA")  # counted in `Data.warned`, in this order
BADCTRL, SINGULAR = (wp.constant(WARNINGS.index(name)) for name in ("BADCTRL", "INERTIA"))
CLAMPCTRL = _number(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)
ACTUATION = _number(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
EULERDAMP = _number(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
AUTORESET = _number(mujoco.mjtDisableBit.mjDSBL_AUTORESET)

ENERGY = _number(mujoco.mjtEnableBit.mjENBL_ENERGY)
INVDISCRETE = _number(mujoco.mjtEnableBit.mjENBL_INVDISCRETE)

INT_EULER = _number(mujoco.mjtIntegrator.mjINT_EULER)

SENS_E_POTENTIAL = _number(mujoco.mjtSensor.mjSENS_E_POTENTIAL)
SENS_E_KINETIC = _number(mujoco.mjtSensor.mjSENS_E_KINETIC)
SENS_SUBTREELINVEL = _number(mujoco.mjtSensor.mjSENS_SUBTREELINVEL)
SENS_SUBTREEANGMOM = _number(mujoco.mjtSensor.mjSENS_SUBTREEANGMOM)

MINVAL = wp.constant(1e-15)  # mjMINVAL: a mass below it counts as none
MAXVAL = wp.constant(1e10)  # mjMAXVAL: a position, velocity or acceleration beyond it counts as none
