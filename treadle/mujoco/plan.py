"""Plans: the launches of a step, written down once, and then done natively, chunk by chunk.

A plan copies what a step reads of the state and of controls to where the step sets out from (fields ``start_…``), lets
all stages work on that, and copies the new state back. Between stages nothing is kept: derived fields are transient
(`runtime.capture.Capture.transient`), so they lie in the scratch of the worker that has a chunk of worlds, and stages
whose results nobody needs are not done at all. Fields that somebody wants are ordinary arrays.

A plan that does not advance time sets out from the same start, and is for the fields that are wanted and nothing else:
so a field that a step passed by is computed when it is read, and has the same bits as if the step had kept it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from time import perf_counter
from typing import Any

import mujoco
import numpy as np

import treadle as wp
from treadle.base.config import config
from treadle.lang.ahead import Deferred, deferred, prepare
from treadle.lang.tape import recording
from treadle.mujoco.algebra import COMPONENTS
from treadle.mujoco.binding import bind, parameters
from treadle.mujoco.contents import contents, outside_of_captures
from treadle.mujoco.data import ROOM, WARM, Data, start_of
from treadle.mujoco.dealing import LEAST, clear, give, give_most, in_planes, take, weigh, weigh_turns
from treadle.mujoco.fields import Field, Fields
from treadle.mujoco.model import Model
from treadle.mujoco.planes import plane_bytes
from treadle.mujoco.sensor import stage as sensor
from treadle.mujoco.special import Specialist
from treadle.mujoco.stages import STAGES, check_match, run_stage
from treadle.mujoco.straight import step_kernel
from treadle.runtime import capture
from treadle.runtime.capture import Capture, Entry, every
from treadle.runtime.device import get_device
from treadle.runtime.transients import Transients, transient

DERIVED = frozenset([row.name for row in Data.rows() if row.role == "derived" and row.stage in STAGES])
Forward = Callable[[Model, Data], None]
TRIES = 20  # runs, after which it is known whether code made for one model is faster


@wp.kernel(gang_vectors=2)
def move_numbers(values: wp.array(dtype=Any), into: wp.array(dtype=Any)):
    """Copy one number of each world."""
    w = wp.tid()
    into[w] = values[w]


@wp.kernel(gang_vectors=2)
def move_rows(values: wp.array2d(dtype=Any), into: wp.array2d(dtype=Any)):
    """Copy a row of each world."""
    w = wp.tid()
    for i in range(values.shape[1]):
        into[w, i] = values[w, i]


@wp.kernel(gang_vectors=2)
def move_state(
    time: wp.array(dtype=Any), qpos: wp.array2d(dtype=Any), qvel: wp.array2d(dtype=Any),
    warm: wp.array2d(dtype=Any), warned: wp.array2d(dtype=int),
    into_time: wp.array(dtype=Any), into_qpos: wp.array2d(dtype=Any), into_qvel: wp.array2d(dtype=Any),
    into_warm: wp.array2d(dtype=Any), into_warned: wp.array2d(dtype=int),
):  # fmt: skip
    """Copy what every model has of a state."""
    w = wp.tid()
    into_time[w] = time[w]
    for i in range(qpos.shape[1]):
        into_qpos[w, i] = qpos[w, i]
    for i in range(qvel.shape[1]):
        into_qvel[w, i] = qvel[w, i]
        into_warm[w, i] = warm[w, i]
    for i in range(warned.shape[1]):
        into_warned[w, i] = warned[w, i]


STATE = ("time", "qpos", "qvel", "qacc_warmstart", "warned")  # what that copies


@wp.kernel
def note_most(needed: wp.array(dtype=int), most_needed: wp.array2d(dtype=int), kind: int):
    """Remember the largest number."""
    w = wp.tid()
    most_needed[w, kind] = wp.max(most_needed[w, kind], needed[w])


@wp.kernel
def count_run(stamp: wp.array(dtype=int)):
    """A captured step was done once more."""
    stamp[0] = stamp[0] + 1


def remember_needs(d: Data, counts: dict[str, int], most: wp.array) -> None:
    """Remember in ``most`` the largest numbers that fields ``counts`` have come to."""
    for name, kind in counts.items():
        wp.launch(note_most, dim=d.nworld, inputs=[d.field(name), most, kind])


def move(values: wp.array, into: wp.array) -> None:
    """Copy an array of worlds to another one."""
    wp.launch(move_numbers if values.ndim == 1 else move_rows, dim=values.shape[0], inputs=[values, into])


def move_fields(rows: list[Field], values: Callable[[Field], wp.array], into: Callable[[Field], wp.array]) -> None:
    """Copy the fields ``rows``, most of them in one launch: to each chunk of worlds that costs more than a copy."""
    left = {row.name: row for row in rows}
    if left.keys() >= set(STATE):
        state = [left.pop(name) for name in STATE]
        arrays = [find(row) for find in (values, into) for row in state]
        wp.launch(move_state, dim=arrays[0].shape[0], inputs=arrays)
    for row in left.values():
        move(values(row), into(row))


class Draft(Data):
    """Data of a step that is being written down: ``kept`` are real arrays by name, all others transient ones."""

    def __init__(self, d: Data, kept: dict[str, wp.array], now: Capture, counts: dict[str, int]):
        super().__init__(d.real, d.sizes, d.nworld)
        self.counts = counts  # fields that say what was needed, and their places in `most_needed`
        self.sizes, self.pushed, self.solved = d.sizes, d.pushed, d.solved
        self.now, self._arrays = now, dict(kept)
        self.kept = frozenset(kept)
        self._demanded: tuple[Model, set[str]] | None = None

    @property
    def fixed(self) -> bool:
        """There is nothing to be looked at yet."""
        return True

    def demand(self, m: Model, names: set[str]) -> None:
        """From now on do each of these stages when a field that it computes is first read."""
        self._demanded = m, names

    def read(self, row: Field) -> wp.array:
        """The array of a field, as it is bound to kernels."""
        if self._demanded is not None and row.stage in self._demanded[1]:
            self._demanded[1].discard(row.stage)
            run_stage(row.stage, self._demanded[0], self)
        return Fields.read(self, row)

    def allocate(self, row: Field) -> wp.array:
        """A transient array."""
        plane = plane_bytes(self.nworld, self.itemsize(row))
        return transient(self.now, self.extent(row), self.value_type(row), COMPONENTS[row.kind], plane)

    def note(self, m: Model) -> None:
        """Let the step remember what room it needed, if anybody will look."""
        if "most_needed" in self._arrays:
            remember_needs(self, self.counts, self.field("most_needed"))

    def serving(self, launches: list[Deferred]) -> tuple[list[Deferred], frozenset[str]]:
        """The launches without those that only compute transient fields which none of the others need, as far as their
        sources tell; and the names of all fields that launches compute and that are not kept."""
        blocks, found = Transients(self.now.blocks), []
        stored: set[int] = set()  # addresses of blocks to which launches store
        needed: set[int] = set()
        for launch in reversed(launches):
            arrays = [(blocks.at(a._address), changed) for a, changed in launch.touched() if isinstance(a, wp.array)]
            stored.update([block.address for block, changed in arrays if changed and block is not None])
            if any(changed and (block is None or block.address in needed) for block, changed in arrays):
                found.append(launch)
                needed.update([block.address for block, _ in arrays if block is not None])
        ours = {row.name for row in Data.rows() if row.role in ("derived", "scratch")} - self.kept
        late = [name for name, a in self._arrays.items() if name in ours and a._address in stored]
        return found[::-1], frozenset(late)


# What a straight-line step keeps of where it set out; the rest of state and control does not change in such models.
STRAIGHT_STARTS = frozenset(("qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied"))


def starting(d: Data, straight: bool = False) -> Iterator[tuple[Field, Field]]:
    """The fields that a step sets out from, each with that in which its values are kept. ``straight``: of a
    straight-line step."""
    for row in Data.rows():
        if row.role in ("state", "control") and 0 not in d.extent(row) and (row is not Data.xfrc_applied or d.pushed):
            yield row, start_of(row) if not straight or row.name in STRAIGHT_STARTS else row


class Plan:
    """What one model and one data need to step, or (``advances`` False) to compute ``wanted`` fields of the last step.

    Args:
        m, d: model and data.
        forward: what computes all derived fields.
        integrate: what advances the state then.
        wanted: names of derived fields to be kept.
        advances: whether the state changes.
        straight: whether the last step was a straight-line one.
        dealt: whether lanes have worlds in the data's order (`dealing`).
    """

    def __init__(
        self, m: Model, d: Data, forward: Forward, integrate: Forward, wanted: frozenset[str], advances: bool = True,
        straight: bool = False, dealt: bool = False,
    ):  # fmt: skip
        check_match(m, d)
        self.model, self.versions, self.wanted, self.advances = m, versions(m, d), wanted, advances
        self._does, self._data, self.start = (forward, integrate), d, None
        self.order = d.field("order") if dealt else None
        self._rows = [*starting(d, straight)]
        self._lists = reads_lists(m, wanted) or any(
            not set(ROOM).isdisjoint(getattr(Data, name).shape) for name in wanted
        )
        self._counts = counts(m, self._lists)
        self._given = {row.name: d.read(row) for row, start in self._rows if advances or start is row}
        inside = capture.active
        with outside_of_captures():
            self._kept = self._real_arrays(d, inside)
        self.load = self._kept.get("load")  # what each world had to do in the last step, if that is counted
        now = capture.here() if capture.active else None
        if now is not None:
            self._graph = None
            self.late = self._record(d, now)
        else:
            with wp.ScopedCapture() as captured:
                self.late = self._record(d, capture.here())
            self._graph = captured.graph
        self._launches = self._graph.entries if self._graph is not None else []
        self._moves: list[tuple[wp.array, wp.array]] = []  # while a graph may follow: new arrays, and in whose place
        self._ways: list[Any] = []  # while two graphs compete, these,
        self._least = [np.inf, np.inf]  # and seconds that a step of each has taken at least
        self._tries = 0
        special = self._graph is not None and advances and Specialist.may(m, d.nworld)
        self._specialist = Specialist(m, self._graph, d.nworld) if special else None
        self._most = self._kept.get("most_needed") if now is None else None
        self._rooms = [d.sizes[symbol] for symbol in ROOM]
        self._near = self._most is not None and get_device().queue is None
        self._needed = self._most.numpy() if self._near else None  # in memory of the host always what is there now

    def _real_arrays(self, d: Data, captured: bool) -> dict[str, wp.array]:
        names = [start.name for _, start in self._rows] + sorted(self.wanted)
        arrays = {name: Fields.read(d, getattr(Data, name)) for name in names}
        if (self.advances or self._lists) and self.model.constrained:
            arrays["most_needed"] = d.captured_needs() if captured else d.field("most_needed")
            if self._counts and self.advances and not captured and dealable(self.model, d):
                arrays["load"] = d.field("load")
        return arrays

    def _record(self, d: Data, now: Capture) -> frozenset[str]:
        """Let ``now`` take down what is to be done; the names of the fields that are then late."""
        draft = self._draft(d, now)
        with outside_of_captures():
            with deferred() as launches:
                self._write_down(d, draft)
            launches, late = draft.serving(launches)
            # Those with many arguments first, of which the solver has most: their programs take longest to compile.
            prepare(sorted(launches, key=lambda launch: -len(launch.args)))
        for launch in launches:
            launch.run()
        return late.difference(self._kept)

    def _draft(self, d: Data, now: Capture) -> Draft:
        """Where lanes have worlds in the data's order, all that is kept is given back to the worlds at the end."""
        starts = [start.name for _, start in self._rows]
        kept = self._kept if self.order is None else {name: self._kept[name] for name in starts}
        return Draft(d, kept, now, self._counts)

    def _write_down(self, d: Data, draft: Draft) -> None:
        forward, integrate = self._does
        order, state = self.order, [row for row, _ in self._rows if row.role == "state"]
        origins = {row: draft._arrays.pop(start.name) for row, start in self._rows}
        if self.advances:
            move_fields([*origins], d.read, origins.get)
        if order is None:
            draft._arrays.update({row.name: origin for row, origin in origins.items() if row.role == "control"})
            move_fields(state, origins.get, draft.read)
        else:
            for row, origin in origins.items():
                take(origin, order, draft.read(row))
            if "most_needed" in self._kept:
                wp.launch(clear, dim=d.nworld, inputs=[draft.field("most_needed")])
        forward(self.model, draft)
        integrate(self.model, draft)
        if self.advances and order is None:
            move_fields(state, draft.read, d.read)
        elif self.advances:
            for row in state:
                give(draft.read(row), order, d.read(row))
        self._give_back(d, draft)

    def _give_back(self, d: Data, draft: Draft) -> None:
        """Keep how much there was to do, and, where lanes have worlds in the data's order, what is wanted."""
        counted = "load" in self._kept
        if counted:
            found = [draft.field(next(iter(self._counts))), draft.field("slot_count"), draft.field("load")]
            wp.launch(weigh, dim=d.nworld, inputs=found)
            if self.model.collides and any(name == "convex" for name, *_ in self.model.collision.methods):
                wp.launch(weigh_turns, dim=d.nworld, inputs=[draft.field("slot_turns"), draft.field("load")])
        if self.order is None:
            return
        if counted:
            give(draft.field("load"), self.order, self._kept["load"])
            wp.launch(give_most, dim=d.nworld, inputs=[
                draft.field("most_needed"), self.order, self._kept["most_needed"],
            ])  # fmt: skip
        for name in sorted(self.wanted):
            row = getattr(Data, name)
            found, into = (in_planes(d, row, array, d.nworld) for array in (draft.read(row), self._kept[name]))
            give(found, self.order, into)

    @property
    def scratch(self) -> int:
        """Bytes that workers keep between stages."""
        return self._graph.scratch if self._graph is not None else 0

    @property
    def entries(self) -> list[Entry]:
        """What the plan does, in order."""
        return [*every(self._launches)]

    def holds(self, m: Model, d: Data) -> bool:
        """Whether model, data and settings are still those of the plan."""
        return m is self.model and versions(m, d) == self.versions and self._graph is not None

    def take(self, name: str, array: wp.array) -> bool:
        """Use ``array`` as the field ``name`` of the data from now on; False where that needs another plan."""
        before = self._given.get(name)
        if before is None:
            return True
        if self._graph is None or array.type is not before.type or array.strides != before.strides:
            return False
        if self._specialist is not None and not self._ways:
            self._moves.append((array, before))
        self._given[name] = array
        for graph in self._ways or [self._graph]:
            graph.use(array, before)
        return True

    def run(self, times: int = 1) -> None:
        """Do it; so many steps, if it advances time."""
        self.start = state_of(self._data) if times > 1 and self._most is not None else None
        if self._specialist is None:
            self._graph.launch(times=times)
            return
        begin = perf_counter()
        self._graph.launch(times=times)
        self._specialise(times, (perf_counter() - begin) / times)

    def _specialise(self, times: int, seconds: float) -> None:
        """Go on with code of its own, once there is such, if steps are faster by it: both take turns for a while."""
        specialist = self._specialist
        specialist.ran(times)
        if not self._ways:
            waits, graph = specialist.waits(), specialist.graph()
            if graph is not None:
                for array, before in self._moves:
                    graph.use(array, before)
                self._ways, self._graph = [self._graph, graph], graph
            elif not waits:
                self._specialist, self._moves = None, []
            return
        way = self._ways.index(self._graph)
        self._least[way] = min(self._least[way], seconds)
        self._graph, self._tries = self._ways[1 - way], self._tries + 1
        if self._tries == TRIES:
            self._graph = self._ways[int(np.argmin(self._least))]
            self._specialist, self._ways, self._moves = None, [], []

    def short_of(self, d: Data) -> dict[str, int]:
        """What the steps needed more room for than there is, and how much."""
        if self._most is None:
            return _ENOUGH
        found, rooms = self._needed if self._near else self._most.numpy(), self._rooms
        needed = found[0].tolist() if len(found) == 1 else [int(column.max()) for column in found.T]
        if needed[0] <= rooms[0] and needed[1] <= rooms[1]:
            return _ENOUGH
        self._most.zero_()
        return {symbol: n for symbol, n, room in zip(ROOM, needed, rooms, strict=True) if n > room}


_ENOUGH: dict[str, int] = {}

# Stages of fields that sensors give, or that are computed for sensors.
SENSED = frozenset(("sensor_acc", "rne_postconstraint"))


def reads_lists(m: Model, wanted: Collection[str] | None = None) -> bool:
    """Whether stages read contacts and rows from their lists: actuators that adhere, and some sensors. ``wanted``: the
    derived fields that somebody asks for; nothing else needs sensors, except where their past is a part of the state.
    """
    if int(mujoco.mjtTrn.mjTRN_BODY) in m.transmissions:
        return True
    asked = wanted is None or m.nhistory or any(getattr(Data, name).stage in SENSED for name in wanted)
    return bool(asked) and sensor.lists(m)


def counts(m: Model, lists: bool) -> dict[str, int]:
    """Fields in which steps find what room they need (`ROOM`); ``lists``: if they read lists of contacts and rows."""
    found = {"found_count" if lists else "live_need": 0} if m.collides else {}
    return {**found, "nrow": 1} if lists else found


def dealable(m: Model, d: Data) -> bool:
    """Whether worlds may be dealt: there are enough, none has numbers of the model of its own, whose rows lie in the
    order of worlds, and it is here that steps take their time."""
    return d.nworld >= LEAST and not (m.varied or m.opt.varied) and get_device().queue is None


def versions(m: Model, d: Data) -> tuple[Any, ...]:
    """What a plan depends on besides model and data."""
    m.intact(far=False)
    return m.version, m.opt.version, d.version, _settings[0]


def _settings_changed(value: Any) -> None:
    _settings[0] += 1


_settings = [0]  # counts changes of settings that matter to what is compiled
for _name in ("gang_width", "mode", "deterministic"):
    config.watch(_name, _settings_changed)


class StraightPlan:
    """The straight-line step of one model over one data, ready to launch as long as both keep their versions."""

    def __init__(self, m: Model, d: Data):
        check_match(m, d)
        self.kernel = step_kernel(m.structure, m.real, d.pushed)
        self.single = step_kernel(m.structure, m.real, d.pushed, single=True)
        self.inputs = bind(self.kernel, m, d, nstep=1)
        self.places = {name: k for k, name in enumerate(parameters(self.kernel))}
        self.model, self.versions, self.nworld = m, versions(m, d), d.nworld
        self.late, self.start, self.load = DERIVED | {WARM}, None, None

    def holds(self, m: Model, d: Data) -> bool:
        """Whether the model and what the code depends on are still those of the plan."""
        return m is self.model and versions(m, d) == self.versions

    def take(self, name: str, array: wp.array) -> bool:
        """Use ``array`` as the field ``name`` of the data from now on."""
        if name in self.places:
            self.inputs[self.places[name]] = array
        return True

    def run(self, nstep: int) -> None:
        """Step ``nstep`` times: in one launch; while a tape records, in one launch a step, whose adjoint is faster."""
        if not recording():
            self.inputs[0] = nstep
            wp.launch(self.kernel, dim=self.nworld, inputs=self.inputs)
            return
        self.inputs[0] = 1
        for _ in range(nstep):
            wp.launch(self.single, dim=self.nworld, inputs=self.inputs)

    def short_of(self, d: Data) -> dict[str, int]:
        """Such models need no room."""
        return {}


def state_of(d: Data) -> dict[str, np.ndarray]:
    """A copy of the state."""
    return {row.name: d.read(row).numpy().copy() for row, _ in starting(d) if row.role == "state"}


def put_back(d: Data, state: dict[str, np.ndarray] | None) -> None:
    """The state as it was: ``state``, or None for that from which the last step set out."""
    for row, start in starting(d):
        if row.role == "state":
            with contents(d.read(row)) as content:
                content[...] = d.read(start).numpy() if state is None else state[row.name]
