"""The step as a function of JAX: state and controls in, the next state out, with gradients.

State and control are read off the table of fields (`data.Data`). The function copies them into data of its own, steps,
and copies the state out; `wp.jax_callable` captures that as a graph, and its adjoint as another. Worlds do not touch
one another, so `jax.vmap` makes more of them: one graph of many worlds, not many graphs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import treadle as wp
from treadle.base.errors import KernelGradientError, LaunchTypeError
from treadle.interop.extras import jax
from treadle.lang.recorder import recorder_for
from treadle.lang.tape import carrying, recording, step_begins
from treadle.mujoco.arguments import instance, steps
from treadle.mujoco.data import ROOM, Data, raise_if_short, start_of
from treadle.mujoco.fields import Field
from treadle.mujoco.model import Model
from treadle.mujoco.stepping import carries_tangents, step
from treadle.mujoco.worlds import make_data

NEEDED = Field("state", "real", "nworld 2", "most contacts and rows of constraints that worlds have needed so far")
NEEDED.__set_name__(Data, "needed")
STATE = {row.name: row for row in Data.rows() if row.role == "state" and row.kind != "int"}  # counters are not physics
STATE["needed"] = NEEDED
CONTROL = {row.name: row for row in Data.rows() if row.role == "control"}
_State = NamedTuple("_State", [(name, Any) for name in STATE])
_Control = NamedTuple("_Control", [(name, Any) for name in CONTROL])
_State.__new__.__defaults__ = (None,) * len(STATE)
_Control.__new__.__defaults__ = (None,) * len(CONTROL)


class State(_State):
    """What a step reads and writes: arrays of JAX by MuJoCo's names, such as ``time qpos qvel act``.

    With the world as first axis, or without it for one world. None stands for what a model does not have: ``act``
    without activations, ``qacc_warmstart`` without constraints. ``needed`` says how many contacts and rows of
    constraints worlds have come to need (`StepFunction.check`); if it is None nobody counts.
    """

    __slots__ = ()

    def put(self, d: Data) -> None:
        """Copy the state into data, of as many worlds."""
        for name, values in self._asdict().items():
            if values is not None and name != NEEDED.name:  # data has no such field
                d.read(STATE[name]).assign(np.asarray(values))
        d._late = frozenset()
        d.moved()


class Control(_Control):
    """What a step only reads: ``ctrl qfrc_applied xfrc_applied mocap_pos mocap_quat eq_active``, as in `State`. What is
    None is 0, or for mocap bodies and equality constraints as the model has it."""

    __slots__ = ()


class StepFunction:
    """A model's step as a pure function; see `jax_function`."""

    def __init__(self, m: Model, nstep: int, checkpoint: int | str, nconmax: int | None, njmax: int | None):
        self.model, self.nstep, self.checkpoint = m, nstep, checkpoint
        self._sizes = {**m.sizes, **m.capacity.sizes(nconmax, njmax)}
        self._pattern = Data(m.real, self._sizes, 1)
        self._calls: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<{self.nstep} steps for JAX>"

    def state(self, source: Data | int | None = None) -> State:
        """The state of data; that of so many worlds at the reference pose; or, of one, without an axis of worlds."""
        d = source if isinstance(source, Data) else make_data(self.model, 1 if source is None else source)
        rows = [STATE[name] for name in self._states()]
        arrays = [d.allocate(row) if row is NEEDED else d.read(row) for row in rows]  # nothing was needed so far
        made = {row.name: jax().numpy.array(a.numpy()) for row, a in zip(rows, arrays, strict=True)}
        return State(**(made if source is not None else {name: x[0] for name, x in made.items()}))

    def check(self, state: State) -> None:
        """Raise if worlds have needed more contacts or rows of constraints on their way than there was room for.

        What found no room was left out. For arrays that exist, so not within ``jax.jit``.

        Raises:
            CapacityError: the message says how many were needed.
            ValueError: ``state.needed`` is None, so nobody has counted.
        """
        if not self.model.constrained:
            return
        if state.needed is None:
            raise ValueError("state.needed is None, so nobody has counted; step.state(nworld) has it")
        raise_if_short(np.asarray(state.needed).reshape(-1, len(ROOM)), [self._sizes[symbol] for symbol in ROOM])

    def _has(self, row: Field) -> bool:
        return 0 not in self._pattern.extent(row)

    def _states(self) -> list[str]:
        """The fields of state that the model has."""
        unused = () if self.model.constrained else ("qacc_warmstart", "needed")
        return [name for name, row in STATE.items() if self._has(row) and name not in unused]

    def _defaults(self) -> dict[str, np.ndarray]:
        """The controls of one world that are not 0 where nobody says anything."""
        names = [name for name in ("mocap_pos", "mocap_quat", "eq_active") if self._has(CONTROL[name])]
        d = make_data(self.model, 1) if names else None
        return {name: d.read(CONTROL[name]).numpy()[0] for name in names}

    def __call__(self, state: State, control: Control | Any = None) -> State:
        """The state after ``nstep`` steps.

        Args:
            state: where they set out.
            control: what acts during all of them: a `Control`, or an array for its ``ctrl``.

        Raises:
            LaunchTypeError, TypeError: types or shapes do not fit the model.
            KernelGradientError: JAX asks for forward mode, which steps of this model do not have.
        """
        numpy = jax().numpy
        if not isinstance(state, _State):
            raise LaunchTypeError(f"the state is a State, not {type(state).__name__}",
                                  hint="state = step.state(nworld) has all of it")  # fmt: skip
        if not isinstance(control, Control):
            control = Control(ctrl=control)
        qpos = numpy.asarray(state.qpos)
        single = qpos.ndim == 1
        worlds = 1 if single else qpos.shape[0]
        pattern, inputs = self._pattern, {}
        states = [name for name in self._states() if name != "needed" or state.needed is not None]
        for name in states:
            if getattr(state, name) is None:
                raise LaunchTypeError(f"the state has no {name}, which this model needs",
                                      hint="state = step.state(nworld) has all of it")  # fmt: skip
            inputs[name] = _of_worlds(pattern, STATE[name], getattr(state, name), worlds, single)
        rest = self._defaults()
        for name, row in CONTROL.items():
            given = getattr(control, name)
            if given is not None and not self._has(row):
                raise LaunchTypeError(f"the model has no {name}: leave it out")
            if given is not None:
                inputs[name] = _of_worlds(pattern, row, given, worlds, single)
            elif name in rest:
                inputs[name] = numpy.broadcast_to(numpy.asarray(rest[name]), (worlds, *rest[name].shape))
        shapes = {f"next_{name}": inputs[name].shape[: len(STATE[name].shape)] for name in states}
        results = self._callable([*inputs], states)(*inputs.values(), output_dims=shapes)
        made = dict(zip(states, results, strict=True))
        return state._replace(**({name: x[0] for name, x in made.items()} if single else made))

    def _callable(self, names: Sequence[str], states: Sequence[str]) -> Any:
        """The function of JAX's arrays for these inputs and the model as it is now."""
        key = (*names, self.model.version, self.model.opt.version)
        if key not in self._calls:
            body = self._body(names, states)
            self._calls[key] = wp.jax_callable(body, len(states), vmap_method="merge", checkpoint=self.checkpoint)
        return self._calls[key]

    def _body(self, names: Sequence[str], states: Sequence[str]) -> Callable[..., None]:
        """What is captured: a function of arrays for the inputs ``names`` and for the next ``states``."""
        pattern = self._pattern
        m, sizes, nstep = self.model, self._sizes, self.nstep

        def steps(*arrays: wp.array) -> None:
            if carrying() and not carries_tangents(m):
                raise KernelGradientError(
                    "a step of this model has no forward mode (jax.jvp, jax.jacfwd, jax.hessian), only small models "
                    "without constraints do: what lies between its stages has no tangents",
                    hint="use reverse mode: jax.grad, jax.vjp, jax.jacrev",
                )
            d = Data(m.real, sizes, arrays[0].shape[0])
            _allocate(d)
            rows, given = {**STATE, **CONTROL}, dict(zip(names, arrays))
            for name, a in given.items():
                if name != NEEDED.name:
                    wp.copy(d.give(rows[name]), a)
            if recording():
                for _ in range(nstep):
                    step_begins()
                    step(m, d)
            else:
                step(m, d, nstep)
            for name, a in zip(states, arrays[len(names) :], strict=True):
                if name == NEEDED.name:
                    wp.launch(largest, dim=d.nworld, inputs=[given[name], d.captured_needs(), a])
                else:
                    wp.copy(a, d.read(STATE[name]))

        rows = [({**STATE, **CONTROL})[name] for name in (*names, *states)]
        parameters = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=_annotation(pattern, row))
            for name, row in zip((*names, *[f"next_{name}" for name in states]), rows, strict=True)
        ]
        steps.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        steps.__name__ = "step"
        return steps


def _allocate(d: Data) -> None:
    """Allocate what steps would allocate outside of captures: so it is the graph's, and each call has its own."""
    for row in Data.rows():
        if row.role in ("state", "control"):
            d.read(row)
            d.read(start_of(row))
    d._stamp = wp.zeros(1, dtype=int)
    d.captured_needs(d.allocate(Data.most_needed))


@wp.kernel
def largest(before: wp.array2d(dtype=Any), now: wp.array2d(dtype=int), after: wp.array2d(dtype=Any)):
    """What a world has needed before, or needs now, whichever is more."""
    w = wp.tid()
    for k in range(now.shape[1]):
        after[w, k] = wp.max(before[w, k], before.dtype(now[w, k]))


def _annotation(pattern: Data, row: Field) -> Any:
    return wp.array(dtype=pattern.value_type(row), ndim=len(row.shape))


def _of_worlds(pattern: Data, row: Field, values: Any, worlds: int, single: bool) -> Any:
    """An array of JAX for a field, with its axis of worlds."""
    x = jax().numpy.asarray(values)
    x = x[None] if single else x
    inner = pattern.read(row).numpy().shape[1:]
    if x.shape != (worlds, *inner):
        shown = inner if single else (worlds, *inner)
        raise LaunchTypeError(
            f"{row.name} must have the shape {shown}, ({', '.join(row.shape[single:])}), not {np.shape(values)}"
        )
    return x


def jax_function(
    m: Model,
    nstep: int = 1,
    checkpoint: int | str = "all",
    nconmax: int | None = None,
    njmax: int | None = None,
) -> StepFunction:
    """The step of a model as a function of JAX: ``step(state, control) -> state``.

    It has no side effects, runs without Python under ``jax.jit``, and can be differentiated in reverse mode: to states,
    controls and forces. ``jax.vmap`` makes worlds of a batch. ``jax.lax.scan`` over it keeps the states between calls,
    so a call of ``nstep`` steps is what other frameworks call a checkpoint: it is run again in the backward pass.

    Args:
        m: the model. Numbers of it that change in place count when a function runs; all else when JAX traces.
        nstep: how many steps a call takes.
        checkpoint: what the backward pass keeps within a call, as for ``wp.Tape``: "all", every k-th step, "sqrt", or
            as much as fits into "64MB".
        nconmax, njmax: room for contacts and rows of constraints in a world, as in `make_data`. What finds no room is
            left out, and ``step.check(state)`` raises then.

    Raises:
        TypeError: ``m`` is no model of ours, or ``nstep`` or a capacity no integer.
        ValueError: ``nstep`` is less than 1, a capacity less than 0, or there is no such schedule.

    Example:
        >>> import jax, mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
        >>> step = mjw.jax_function(mjw.put_model(mujoco.MjModel.from_xml_string(xml)), nstep=100)
        >>> fallen = lambda state: jax.jit(step)(state).qpos.sum()
        >>> state = step.state(nworld := 3)
        >>> print(jax.grad(fallen)(state).qvel.round(3)[:, 0])
        [0.185 0.185 0.185]
    """
    instance("m", m, Model, "a model that put_model returns")
    nstep = steps(nstep)
    recorder_for(checkpoint)  # raises where there is no such schedule
    return StepFunction(m, nstep, checkpoint, nconmax, njmax)
