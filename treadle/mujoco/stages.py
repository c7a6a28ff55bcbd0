"""The stages in their order, and what users call: `step`, `forward` and each stage by MuJoCo's name."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import treadle as wp
from treadle.lang.tape import recording
from treadle.mujoco import acceleration, position, velocity
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model
from treadle.mujoco.straight import step_kernel

POSITION = ("kinematics", "geom_frames", "site_frames", "com_pos", "crb", "factor_m", "transmission")
VELOCITY = ("com_vel", "passive", "rne", "actuator_vel")
ACCELERATION = ("fwd_actuation", "fwd_acceleration")
STAGES = POSITION + VELOCITY + ACCELERATION

STRAIGHT_DOFS = 20  # beyond, compiling a straight-line step takes too long: its time grows with the square


@cache
def stage_kernel(name: str, real: Any) -> wp.Kernel:
    """The kernel of a stage for one precision."""
    kernels = {**position.kernels(real), **velocity.kernels(real), **acceleration.kernels(real)}
    return kernels[name]


@cache
def parameters(kernel: wp.Kernel) -> tuple[str, ...]:
    """Names of a kernel's parameters: they are names of fields."""
    return tuple(inspect.signature(kernel.func).parameters)


def bind(kernel: wp.Kernel, m: Model, d: Data, **other: Any) -> list[Any]:
    """Arguments of ``kernel`` by the names of its parameters: fields of ``m.opt``, ``m`` and ``d``, or ``other``."""

    def argument(name: str) -> Any:
        if name in other:
            return other[name]
        if name in ("opt_disableflags", "pushed"):
            return d.pushed if name == "pushed" else m.opt.disableflags
        if name.startswith("opt_"):
            return m.opt.field(name[4:])
        return (m if hasattr(Model, name) else d).field(name)

    return [argument(name) for name in parameters(kernel)]


class Plan:
    """The straight-line step of one model over one data, ready to launch as long as both keep their versions."""

    def __init__(self, m: Model, d: Data):
        check_match(m, d)
        self.kernel = step_kernel(m.structure, m.real, d.pushed)
        self.single = step_kernel(m.structure, m.real, d.pushed, single=True)
        self.inputs = bind(self.kernel, m, d, nstep=1)
        self.places = {name: k for k, name in enumerate(parameters(self.kernel))}
        self.model, self.versions = m, (m.version, m.opt.version, d.version)

    def holds(self, m: Model, d: Data) -> bool:
        """Whether the model and what the code depends on are still those of the plan."""
        return m is self.model and (m.version, m.opt.version, d.version) == self.versions

    def take(self, name: str, array: wp.array) -> None:
        """Use ``array`` as the field ``name`` of the data."""
        if name in self.places:
            self.inputs[self.places[name]] = array

    def launch(self, d: Data, nstep: int) -> None:
        """Step ``nstep`` times: in one launch; while a tape records, in one launch a step, whose adjoint is faster."""
        if not recording():
            self.inputs[0] = nstep
            wp.launch(self.kernel, dim=d.nworld, inputs=self.inputs)
            return
        self.inputs[0] = 1
        for _ in range(nstep):
            wp.launch(self.single, dim=d.nworld, inputs=self.inputs)


def run_stage(name: str, m: Model, d: Data, **other: Any) -> None:
    """Launch one stage over all worlds."""
    kernel = stage_kernel(name, d.real)
    wp.launch(kernel, dim=d.nworld, inputs=bind(kernel, m, d, **other))


def catch_up(m: Model, d: Data, name: str) -> None:
    """Compute the fields of a stage that the last step passed by, from the state in which that step set out.

    Binding the kernel reads the fields that it needs, so the stages before it catch up first.
    """
    d._pending.discard(name)
    start = {row: d.field("start_" + row) for row in ("qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied")}
    run_stage(name, m, d, **start)


def settle(d: Data) -> None:
    """Compute everything that the last step passed by, before fields are overwritten one by one."""
    for name in STAGES:
        if name in d._pending:
            catch_up(d._model, d, name)


def check_match(m: Model, d: Data) -> None:
    """Raise if ``d`` was not made for ``m``."""
    if m.real is not d.real:
        raise TypeError(f"the model is of {m.real.__name__}, the data of {d.real.__name__}; give both the same dtype")
    for name, size in m.sizes.items():
        if d.sizes[name] != size:
            raise ValueError(f"the data has {name} = {d.sizes[name]}, the model {size}: it was made for another model")


def _run(names: tuple[str, ...], m: Model, d: Data) -> None:
    check_match(m, d)
    settle(d)
    for name in names:
        run_stage(name, m, d)


def kinematics(m: Model, d: Data) -> None:
    """Place bodies, joints, geoms and sites: ``xpos xquat xmat xipos ximat xanchor xaxis geom_… site_…``."""
    _run(("kinematics", "geom_frames", "site_frames"), m, d)


def com_pos(m: Model, d: Data) -> None:
    """``subtree_com cinert cdof`` from the placed bodies."""
    _run(("com_pos",), m, d)


def crb(m: Model, d: Data) -> None:
    """The mass matrix ``M``, by composite rigid bodies."""
    _run(("crb",), m, d)


def factor_m(m: Model, d: Data) -> None:
    """The factor ``qLD qLDiagInv`` of the mass matrix."""
    _run(("factor_m",), m, d)


def transmission(m: Model, d: Data) -> None:
    """``actuator_length`` from ``qpos``."""
    _run(("transmission",), m, d)


def com_vel(m: Model, d: Data) -> None:
    """Velocities of bodies ``cvel`` and of joint axes ``cdof_dot`` from ``qvel``."""
    _run(("com_vel",), m, d)


def passive(m: Model, d: Data) -> None:
    """Forces of springs and dampers: ``qfrc_spring qfrc_damper qfrc_passive``."""
    _run(("passive",), m, d)


def rne(m: Model, d: Data) -> None:
    """``qfrc_bias``: Coriolis, centrifugal and gravitational forces, by recursive Newton-Euler."""
    _run(("rne",), m, d)


def fwd_position(m: Model, d: Data) -> None:
    """All stages that depend on positions alone."""
    _run(POSITION, m, d)


def fwd_velocity(m: Model, d: Data) -> None:
    """All stages that depend on velocities."""
    _run(VELOCITY, m, d)


def fwd_actuation(m: Model, d: Data) -> None:
    """``actuator_force qfrc_actuator`` from ``ctrl``."""
    _run(("fwd_actuation",), m, d)


def fwd_acceleration(m: Model, d: Data) -> None:
    """``qfrc_smooth qacc_smooth qacc``: all forces and what they do."""
    _run(("fwd_acceleration",), m, d)


def forward(m: Model, d: Data) -> None:
    """Every derived field from the present state, without advancing time."""
    check_match(m, d)
    d._pending.clear()
    for name in STAGES:
        run_stage(name, m, d)


def euler(m: Model, d: Data) -> None:
    """Advance ``qvel qpos time`` by one step of semi-implicit Euler, from the forces that `forward` found."""
    check_match(m, d)
    settle(d)
    run_stage("euler", m, d)


def step(m: Model, d: Data, nstep: int = 1) -> None:
    """Advance all worlds by ``nstep`` steps.

    Args:
        m: the model.
        d: the worlds; ``ctrl`` and ``qfrc_applied`` act during all the steps.
        nstep: beyond MuJoCo Warp: number of steps, at least 1, done in one launch.

    Raises:
        TypeError: model and data differ in precision.
        ValueError: the data was made for another model, or ``nstep`` is less than 1.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
        >>> m = mjw.put_model(mujoco.MjModel.from_xml_string(xml))
        >>> d = mjw.make_data(m, nworld=2)
        >>> mjw.step(m, d, nstep=100)
        >>> print(d.time.numpy().round(3), (d.qpos.numpy() > 0).all())
        [0.2 0.2] True
    """
    if nstep < 1:
        raise ValueError(f"nstep is at least 1, not {nstep}")
    if not 0 < m.nv <= STRAIGHT_DOFS:
        for _ in range(nstep):
            forward(m, d)
            run_stage("euler", m, d)
        return
    if d._plan is None or not d._plan.holds(m, d):
        d._plan = Plan(m, d)
    d._plan.launch(d, nstep)
    d._model, d._pending = m, set(STAGES)
