"""Data: everything that changes while worlds are simulated. One row an array, by MuJoCo's names."""

from functools import cache
from typing import Any

import mujoco
import numpy as np

import treadle as wp
from treadle.mujoco.algebra import types
from treadle.mujoco.fields import Field, Fields, control, derived, scratch, state
from treadle.mujoco.model import Model, sizes_of


class Data(Fields):
    """State, controls and results of ``nworld`` worlds.

    Every array has the world as its first axis. Derived fields are those of the state from which the last step set
    out, as in MuJoCo; a step does not store them, they are computed when they are read. So read them through ``d``
    after each step (``d.xpos``) and do not keep the array.
    """

    time = state("real", "nworld", "simulation time, s")
    qpos = state("real", "nworld nq", "joint positions, m or rad")
    qvel = state("real", "nworld nv", "joint velocities")
    act = state("real", "nworld na", "activations of actuators")
    qacc_warmstart = state("real", "nworld nv", "acceleration with which the solver starts")

    ctrl = control("real", "nworld nu", "actuator controls")
    qfrc_applied = control("real", "nworld nv", "forces applied to joints, N or N m")
    xfrc_applied = control("spatial", "nworld nbody", "forces and torques applied to bodies at their centres of mass")
    mocap_pos = control("vec3", "nworld nmocap", "positions of mocap bodies, m")
    mocap_quat = control("quat", "nworld nmocap", "orientations of mocap bodies")

    xpos = derived("kinematics", "vec3", "nworld nbody", "positions of bodies in the world's frame, m")
    xquat = derived("kinematics", "quat", "nworld nbody", "orientations of bodies, (w, x, y, z)")
    xmat = derived("kinematics", "mat33", "nworld nbody", "the same as matrices")
    xipos = derived("kinematics", "vec3", "nworld nbody", "centres of mass of bodies, m")
    ximat = derived("kinematics", "mat33", "nworld nbody", "orientations of the principal axes of inertia")
    xanchor = derived("kinematics", "vec3", "nworld njnt", "anchors of joints, m")
    xaxis = derived("kinematics", "vec3", "nworld njnt", "axes of joints")
    geom_xpos = derived("geom_frames", "vec3", "nworld ngeom", "positions of geoms, m")
    geom_xmat = derived("geom_frames", "mat33", "nworld ngeom", "orientations of geoms")
    site_xpos = derived("site_frames", "vec3", "nworld nsite", "positions of sites, m")
    site_xmat = derived("site_frames", "mat33", "nworld nsite", "orientations of sites")

    subtree_com = derived("com_pos", "vec3", "nworld nbody", "centre of mass of each subtree, m")
    cinert = derived("com_pos", "inertia", "nworld nbody", "inertia of bodies about the centre of mass of their tree")
    cdof = derived("com_pos", "spatial", "nworld nv", "motion of each degree of freedom about that point")
    cam_xpos = derived("camera_frames", "vec3", "nworld ncam", "positions of cameras, m")
    cam_xmat = derived("camera_frames", "mat33", "nworld ncam", "orientations of cameras")
    light_xpos = derived("light_frames", "vec3", "nworld nlight", "positions of lights, m")
    light_xdir = derived("light_frames", "vec3", "nworld nlight", "directions of lights")
    ten_length = derived("tendon", "real", "nworld ntendon", "lengths of tendons, m")
    ten_J = derived("tendon", "real", "nworld nJten", "how they change with each degree of freedom (``ten_J_colind``)")
    ten_wrapadr = derived("tendon", "int", "nworld ntendon", "first point of each tendon's path")
    ten_wrapnum = derived("tendon", "int", "nworld ntendon", "number of points")
    wrap_obj = derived(
        "tendon", "int", "nworld nwrappoint", "geom of each point; -1 for a site, -2 for a pulley"
    )
    wrap_xpos = derived("tendon", "vec3", "nworld nwrappoint", "points of tendons' paths, m")
    crb = derived("crb", "inertia", "nworld nbody", "inertia of composite bodies")
    M = derived("crb", "real", "nworld nC", "mass matrix: of each row the columns that are ancestors")
    qLD = derived("factor_m", "real", "nworld nC", "its factor L' D L")
    qLDiagInv = derived("factor_m", "real", "nworld nv", "1 / D")
    actuator_length = derived("transmission", "real", "nworld nout", "lengths of actuators")
    actuator_moment = derived("transmission", "real", "nworld nJmom", "how they change with each degree of freedom "
                              "(``moment_colind``)")  # fmt: skip

    cvel = derived("com_vel", "spatial", "nworld nbody", "velocities of bodies, about the centre of mass of their tree")
    cdof_dot = derived("com_vel", "spatial", "nworld nv", "rate of change of cdof")
    ten_velocity = derived("tendon_vel", "real", "nworld ntendon", "velocities of tendons, m/s")
    actuator_velocity = derived("actuator_vel", "real", "nworld nout", "velocities of actuators")
    qfrc_spring = derived("joint_springs", "real", "nworld nv", "forces of springs")
    qfrc_damper = derived("joint_dampers", "real", "nworld nv", "forces of dampers")
    qfrc_gravcomp = derived("gravity_compensation", "real", "nworld nv", "forces against gravity")
    qfrc_fluid = derived("fluid", "real", "nworld nv", "forces of the medium")
    qfrc_passive = derived("passive", "real", "nworld nv", "all passive forces")
    qfrc_bias = derived("rne", "real", "nworld nv", "Coriolis, centrifugal and gravitational forces")

    act_dot = derived("act_dynamics", "real", "nworld na", "rate of change of activations")
    actuator_force = derived("fwd_actuation", "real", "nworld nout", "forces of actuators")
    qfrc_actuator = derived("actuator_forces_on_joints", "real", "nworld nv", "the same, on joints")
    qfrc_smooth = derived("fwd_acceleration", "real", "nworld nv", "all forces but those of constraints")
    qacc_smooth = derived("fwd_acceleration", "real", "nworld nv", "the acceleration they give")
    qacc = derived("fwd_acceleration", "real", "nworld nv", "joint accelerations")
    qfrc_constraint = derived("fwd_acceleration", "real", "nworld nv", "forces of constraints on joints")
    qfrc_inverse = derived("inverse", "real", "nworld nv", "forces that give qacc: those of actuators and applied ones")

    # contacts: results of `collision`

    # constraints: results of `constraint` and `solver`
    eq_active = control("int", "nworld neq", "whether equality constraints are on")

    # sensors: results of `sensor`
    sensordata = derived("sensor", "real", "nworld nsensordata", "outputs of sensors")

    cacc = scratch("spatial", "nworld nbody", "accelerations of bodies while qacc = 0 (rne)")
    cfrc_int = scratch("spatial", "nworld nbody", "forces on bodies while qacc = 0 (rne)")
    qH = scratch("real", "nworld nC", "factor of the mass matrix with damping (euler)")
    qHDiagInv = scratch("real", "nworld nv", "1 / D of the same")
    qacc_integrated = scratch("real", "nworld nv", "acceleration over the step, by the integrator")

    start_qpos = scratch("real", "nworld nq", "qpos from which the last step set out")
    start_qvel = scratch("real", "nworld nv", "qvel from which the last step set out")
    start_ctrl = scratch("real", "nworld nu", "ctrl of the last step")
    start_qfrc_applied = scratch("real", "nworld nv", "qfrc_applied of the last step")
    start_xfrc_applied = scratch("spatial", "nworld nbody", "xfrc_applied of the last step")

    def __init__(self, real: Any, sizes: dict[str, int], nworld: int):
        if nworld < 1:
            raise ValueError(f"nworld is at least 1, not {nworld}")
        super().__init__(real, {**sizes, "nworld": nworld})
        self.nworld = nworld
        self.pushed = False  # whether anybody has asked for xfrc_applied: until then nobody is pushed
        self._pending: set[str] = set()  # stages whose fields the last step passed by
        self._model: Model | None = None  # the model of that step
        self._plan: Any = None  # how the last step was launched (`stages.Plan`)

    def give(self, row: Field) -> wp.array:
        """The array of a field, for the user."""
        if row is Data.xfrc_applied:
            self.push()
        return self.read(row)

    def replaced(self, row: Field, value: wp.array) -> None:
        """Take note of another array: a step that is ready to launch takes it in, as controls may come in a new one."""
        if row is Data.xfrc_applied:
            self.push()
        if self._plan is not None:
            self._plan.take(row.name, value)

    def push(self) -> None:
        """From now on look at ``xfrc_applied``."""
        if not self.pushed:
            self.pushed = True
            self.version += 1

    def read(self, row: Field) -> wp.array:
        """The array of a field; a derived one is computed first if the last step passed it by."""
        if row.stage in self._pending:
            from treadle.mujoco.stages import catch_up

            catch_up(self._model, self, row.stage)
        return super().read(row)


def _sizes(mjm: mujoco.MjModel | Model) -> dict[str, int]:
    return dict(mjm.sizes) if isinstance(mjm, Model) else sizes_of(mjm)


def _precision(mjm: mujoco.MjModel | Model, dtype: Any) -> Any:
    if dtype not in (None, float):
        return dtype
    return mjm.real if isinstance(mjm, Model) else wp.float32


def make_data(
    mjm: mujoco.MjModel | Model,
    nworld: int = 1,
    nconmax: int | None = None,
    nccdmax: int | None = None,
    njmax: int | None = None,
    njmax_nnz: int | None = None,
    naconmax: int | None = None,
    naccdmax: int | None = None,
    nvmax: int | None = None,
    *,
    dtype: Any = None,
) -> Data:
    """Data of ``nworld`` worlds at the model's reference pose, at rest.

    Args:
        mjm: MuJoCo's model, or beyond MuJoCo Warp the result of `put_model`.
        nworld: number of worlds.
        nconmax, nccdmax, njmax, njmax_nnz, naconmax, naccdmax, nvmax: capacities for contacts, constraints and sleeping
            that MuJoCo Warp asks for; taken and not needed here.
        dtype: precision, that of the model; if None that of ``mjm`` after `put_model`, else ``wp.float32``.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
        >>> d = mjw.make_data(mujoco.MjModel.from_xml_string(xml), nworld=3)
        >>> d.qpos.shape, d.xpos.numpy().shape
        ((3, 1), (3, 2, 3))
    """
    d = Data(_precision(mjm, dtype), _sizes(mjm), nworld)
    qpos0 = mjm.qpos0.numpy()[0] if isinstance(mjm, Model) else mjm.qpos0
    d.fill(Data.qpos, qpos0)
    return d


def put_data(
    mjm: mujoco.MjModel,
    mjd: mujoco.MjData,
    nworld: int = 1,
    nconmax: int | None = None,
    nccdmax: int | None = None,
    njmax: int | None = None,
    njmax_nnz: int | None = None,
    naconmax: int | None = None,
    naccdmax: int | None = None,
    nvmax: int | None = None,
    *,
    dtype: Any = None,
) -> Data:
    """Data of ``nworld`` worlds, each a copy of ``mjd``; arguments as in `make_data`."""
    d = Data(_precision(mjm, dtype), _sizes(mjm), nworld)
    for row in Data.rows():
        if row.role != "scratch" and hasattr(mjd, row.name):
            d.fill(row, getattr(mjd, row.name))
    d.pushed = bool(np.any(mjd.xfrc_applied))
    return d


def get_data_into(result: mujoco.MjData, mjm: mujoco.MjModel, d: Data, world_id: int = 0) -> None:
    """Copy one world into MuJoCo's ``result``: state, controls and derived fields.

    Raises:
        IndexError: there is no world ``world_id``.
    """
    if not 0 <= world_id < d.nworld:
        raise IndexError(f"world_id is {world_id}, but there are {d.nworld} worlds")
    for row in Data.rows():
        if row.role == "scratch" or not hasattr(result, row.name):
            continue
        values = d.read(row).numpy()[world_id]
        if row.name == "time":
            result.time = float(values)
        else:
            target = getattr(result, row.name)
            target[...] = np.reshape(values, target.shape)


def reset_data(m: Model, d: Data, reset: wp.array | None = None) -> None:
    """Put worlds back to the reference pose, at rest, at time 0, without controls and forces.

    Args:
        m: the model.
        d: the worlds.
        reset: an array of ``nworld`` bools; worlds with False go on. None resets all.

    Derived fields stay as they are until the next forward or step.
    """
    if reset is None:
        reset = wp.full(d.nworld, True, dtype=wp.bool)
    elif tuple(reset.shape) != (d.nworld,):
        raise ValueError(f"reset has shape {tuple(reset.shape)}, not ({d.nworld},)")
    states = [d.time, d.qpos, d.qvel, d.ctrl, d.qfrc_applied, d.read(Data.xfrc_applied)]
    wp.launch(reset_kernel(d.real), dim=d.nworld, inputs=[reset, m.qpos0, *states, d.pushed])


@cache
def reset_kernel(real: Any) -> wp.Kernel:
    """The kernel behind `reset_data`."""
    spatial = types(real).spatial

    @wp.kernel
    def reset_worlds(
        reset: wp.array(dtype=wp.bool), qpos0: wp.array2d(dtype=real), time: wp.array(dtype=real),
        qpos: wp.array2d(dtype=real), qvel: wp.array2d(dtype=real),
        ctrl: wp.array2d(dtype=real), qfrc_applied: wp.array2d(dtype=real), xfrc_applied: wp.array2d(dtype=spatial),
        pushed: bool,
    ):  # fmt: skip
        w = wp.tid()
        if reset[w]:
            time[w] = real(0.0)
            for i in range(qpos.shape[1]):
                qpos[w, i] = qpos0[0, i]
            for i in range(qvel.shape[1]):
                qvel[w, i] = real(0.0)
                qfrc_applied[w, i] = real(0.0)
            for u in range(ctrl.shape[1]):
                ctrl[w, u] = real(0.0)
            if pushed:
                for b in range(xfrc_applied.shape[1]):
                    xfrc_applied[w, b] = spatial()

    return reset_worlds
