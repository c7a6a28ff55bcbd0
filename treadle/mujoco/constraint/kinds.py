"""MuJoCo's enumerations that constraints know, as kernels see them."""

from __future__ import annotations

import mujoco

import treadle as wp

CONNECT = wp.constant(int(mujoco.mjtEq.mjEQ_CONNECT))
WELD = wp.constant(int(mujoco.mjtEq.mjEQ_WELD))
JOINT = wp.constant(int(mujoco.mjtEq.mjEQ_JOINT))
TENDON = wp.constant(int(mujoco.mjtEq.mjEQ_TENDON))
SITE = wp.constant(int(mujoco.mjtObj.mjOBJ_SITE))

EQUALITY = wp.constant(int(mujoco.mjtConstraint.mjCNSTR_EQUALITY))
FRICTION_DOF = wp.constant(int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF))
FRICTION_TENDON = wp.constant(int(mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON))
LIMIT_JOINT = wp.constant(int(mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT))
LIMIT_TENDON = wp.constant(int(mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON))
FRICTIONLESS = wp.constant(int(mujoco.mjtConstraint.mjCNSTR_CONTACT_FRICTIONLESS))
PYRAMIDAL = wp.constant(int(mujoco.mjtConstraint.mjCNSTR_CONTACT_PYRAMIDAL))
ELLIPTIC = wp.constant(int(mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC))

SATISFIED = wp.constant(int(mujoco.mjtConstraintState.mjCNSTRSTATE_SATISFIED))
QUADRATIC = wp.constant(int(mujoco.mjtConstraintState.mjCNSTRSTATE_QUADRATIC))
LINEARNEG = wp.constant(int(mujoco.mjtConstraintState.mjCNSTRSTATE_LINEARNEG))
LINEARPOS = wp.constant(int(mujoco.mjtConstraintState.mjCNSTRSTATE_LINEARPOS))
CONE = wp.constant(int(mujoco.mjtConstraintState.mjCNSTRSTATE_CONE))

CONE_ELLIPTIC = wp.constant(int(mujoco.mjtCone.mjCONE_ELLIPTIC))

NO_CONSTRAINT = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT))
NO_EQUALITY = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_EQUALITY))
NO_FRICTIONLOSS = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS))
NO_LIMIT = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_LIMIT))
NO_CONTACT = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_CONTACT))
NO_REFSAFE = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_REFSAFE))
NO_WARMSTART = wp.constant(int(mujoco.mjtDisableBit.mjDSBL_WARMSTART))

MINIMP = wp.constant(0.0001)  # mjMINIMP, mjMAXIMP: impedance stays between
MAXIMP = wp.constant(0.9999)
