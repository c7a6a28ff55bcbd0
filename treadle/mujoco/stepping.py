"""`step`: worlds advance by a plan, and what it did not store is computed when somebody reads it."""

from __future__ import annotations

from collections.abc import Collection
from time import perf_counter
from typing import Any

import treadle as wp
from treadle.base.errors import OrderError
from treadle.lang.tape import recording
from treadle.mujoco.advance import INTEGRATORS, forward
from treadle.mujoco.arguments import MOST_STEPS, steps
from treadle.mujoco.data import WARM, Data
from treadle.mujoco.fields import Field
from treadle.mujoco.model import Model
from treadle.mujoco.plan import Plan, StraightPlan, count_run, dealable, outside_of_captures, put_back, starting
from treadle.mujoco.stages import STAGES, check_kinds, keep_outputs, run_stage
from treadle.runtime import capture

STRAIGHT_WORK = 16_000  # operations of a straight-line step, beyond which compiling it takes too long
TAPED_DOFS = 20  # degrees of freedom, where its adjoint is compiled too
MANY = 3  # kinds of fields that are computed one by one after a step; then all are
LATELY = 4  # calls of `step`, within which a field is read again that shall be stored


def step(m: Model, d: Data, nstep: int = 1) -> None:
    """Advance all worlds by ``nstep`` steps.

    Args:
        m: the model.
        d: the worlds; ``ctrl`` and ``qfrc_applied`` act during all the steps.
        nstep: beyond MuJoCo Warp: number of steps, at least 1, done in one launch.

    Raises:
        TypeError: these are no model and data of ours, or they differ in precision.
        ValueError: the data was made for another model, or ``nstep`` is less than 1, no integer, or
            more than 2,147,483,647.

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
    plan = getattr(d, "_plan", None)
    if type(nstep) is not int or not 0 < nstep <= MOST_STEPS:
        if not hasattr(nstep, "__index__") or nstep < 1:
            raise ValueError(f"nstep is at least 1, and an integer, not {nstep!r}")
        nstep = steps(nstep)
    if plan is None or recording() or capture.active or not plan.holds(m, d):
        plan = _prepared(m, d, nstep)
        if plan is None:
            return
    now = vars(d)  # of one world a step takes as long as some ways of setting an attribute
    now["_steps"] += 1
    edition = m._editions.now(m)
    while True:
        due = False
        if plan.load is None:
            plan.run(nstep)
        else:
            begin = perf_counter()
            plan.run(nstep)
            due = d._dealer.took(perf_counter() - begin, nstep)
        now["_model"], now["_edition"], now["_late"] = m, edition, plan.late
        short = plan.short_of(d)
        if not short:
            if due:
                _deal(d, plan)
            return
        put_back(d, plan.start)
        for symbol, size in short.items():
            d.grow(symbol, size)
        plan = _prepared(m, d, nstep)


def _deal(d: Data, plan: Any) -> None:
    """Let worlds share gangs with those that have as much to do, where that matters."""
    before = d._dealer.dealt
    d._dealer.look(plan.load.numpy(), d.field("order").numpy())
    if d._dealer.dealt != before:
        d._plan, d._other = d._other, plan


def _straight(m: Model) -> bool:
    return m.straight and m.structure.work <= STRAIGHT_WORK


def carries_tangents(m: Model) -> bool:
    """Whether tangents go along with a step's launches: between stages of others nothing is kept, so that there is no
    place for them."""
    return _straight(m)


def _prepared(m: Model, d: Data, nstep: int) -> Any:
    """A plan for this step; None where it was done otherwise, on a tape, or was written down, in a capture."""
    check_kinds(m, d)
    keep_outputs(m, d)
    if WARM in d._late and not _straight(m):  # only a solver asks for it, and it is computed by all stages
        d.read(Data.qacc_warmstart)
    if _straight(m) and not (recording() and m.nv > TAPED_DOFS):
        if d._plan is None or not d._plan.holds(m, d):
            with outside_of_captures():
                d._plan = StraightPlan(m, d)
        if not capture.recording():
            return d._plan
        d._plan.run(nstep)
        _captured(m, d, d._plan.late)
    elif recording():
        for _ in range(nstep):
            forward(m, d)
            INTEGRATORS[m.opt.integrator](m, d)
    elif capture.recording():
        for _ in range(nstep):
            late = Plan(m, d, forward, INTEGRATORS[m.opt.integrator], frozenset(d._wanted)).late
        _captured(m, d, late)
    elif d._plan is None or not d._plan.holds(m, d):
        dealt = d._dealer.dealt and dealable(m, d)
        d._plan = Plan(m, d, forward, INTEGRATORS[m.opt.integrator], frozenset(d._wanted), dealt=dealt)
        return d._plan
    else:
        return d._plan
    return None


def _captured(m: Model, d: Data, late: frozenset[str]) -> None:
    """A step has become part of a graph that the user captures: each run of it leaves these fields late."""
    if d._stamp is None:
        with outside_of_captures():
            d._stamp = wp.zeros(1, dtype=int)
    wp.launch(count_run, dim=1, inputs=[d._stamp])
    d._steps += 1
    d._model, d._edition, d._late, d._captured = m, m.edition(), late, (m, late)


def compute(d: Data, row: Field | None) -> None:
    """Compute fields that the last step did not store, from the state in which it set out, and with the model as it was
    then: all of them, or those that the same stage computes as ``row``. A field for which that happens again and again
    is stored by steps from then on.
    """
    m, wanted = d._model, d._late - {WARM}
    if not capture.recording():
        m = m.as_of(d._edition, d._before)
        if m is not d._model:
            d._before = d._edition, m
            if recording() and _straight(m):
                name = "fields" if row is None else row.name
                raise OrderError(
                    f"{name} of the last step cannot be computed on a tape any more: the model has been written to",
                    hint="read what is needed of a step before the model is written to",
                )
    if recording() and _straight(m):
        _by_stages(m, d, wanted if row is None else {row.name})
        return
    if row is not None:
        if 0 < d._steps - d._asked.get(row.name, -LATELY) < LATELY and not _straight(m):
            d._wanted.add(row.name)
            d._other = None
            d._plan = None
        d._asked[row.name] = d._steps
        step, count = d._computed
        d._computed = d._steps, count + 1 if step == d._steps else 1
        if d._computed[1] <= MANY:
            stage = row.stage
            wanted = frozenset([n for n in wanted if n == row.name or stage and getattr(Data, n).stage == stage])
    while True:
        plan = d._plans.get(wanted)
        if plan is None or capture.recording() or not plan.holds(m, d):
            does = (_demanding(wanted), _nothing) if _straight(m) else (forward, INTEGRATORS[m.opt.integrator])
            plan = Plan(m, d, *does, wanted, advances=False, straight=_straight(m))
        if capture.recording():
            break
        d._plans[wanted] = plan
        plan.run()
        short = plan.short_of(d)
        for symbol, size in short.items():
            d.grow(symbol, size)
        if not short:
            break
    d._late -= wanted
    if d._captured is not None and capture.recording():
        d._captured = d._captured[0], d._captured[1] - wanted


def _by_stages(m: Model, d: Data, names: Collection[str]) -> None:
    """Compute late fields by launches that a tape takes down. Binding a kernel reads what it needs, so stages before it
    come first."""
    start = {row.name: d.field(kept.name) for row, kept in starting(d, straight=True)}
    for name in names:
        stage = getattr(Data, name).stage
        if name in d._late:
            d._late -= {row.name for row in Data.rows() if row.stage == stage}
            run_stage(stage, m, d, **start)


def _nothing(m: Model, d: Data) -> None:
    pass


def _demanding(wanted: frozenset[str]) -> Any:
    """What computes ``wanted`` fields in a draft: each stage when somebody needs its results."""

    def compute_wanted(m: Model, draft: Any) -> None:
        draft.demand(m, set(STAGES))
        for name in sorted(wanted):
            draft.field(name)

    return compute_wanted
