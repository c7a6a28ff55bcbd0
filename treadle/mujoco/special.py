"""Code made for one model: smooth stages that follow each other as one kernel, for the model's tables.

What a step does before collisions, and what it does behind the solver, reads and writes few numbers many times, by
indices from tables. Where many worlds take many steps it pays to compile that once more, with the tables put in
(`lang.resolved`): bodies and joints by their numbers, and what one stage hands to the next in registers. That takes
seconds, during which steps go on by stages; as results have the same bits, nobody sees when it is ready.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mujoco

from treadle.base.logs import log_warning
from treadle.base.together import Together
from treadle.lang.resolved import resolved
from treadle.mujoco.model import Model, Option, is_settled
from treadle.mujoco.stages import ADVANCE, TABLE
from treadle.runtime.capture import Entry, Launch, every
from treadle.runtime.chains import Use, addresses, uses_of
from treadle.runtime.device import get_device
from treadle.runtime.graph import Graph
from treadle.runtime.transients import Transients

RK4 = int(mujoco.mjtIntegrator.mjINT_RK4)
MOST_WORK = 9_000  # operations of a step (`Structure.work`), beyond which the code leaves the caches and gains nothing
LEAST = 256  # worlds, below which a step is over soon anyway
SWITCH = 0.0005  # s, after which Python's threads take turns while one compiles
WORTH = 200_000  # steps of a world, from which on more of them can be expected


# Kernels of smooth stages, of integrators and of the copies between them, by name.
SMOOTH = frozenset([stage.name for stage in TABLE if stage.kernels is not None]) | frozenset(
    [*ADVANCE, "controls", "move_numbers", "move_rows", "move_state"]
)


class Specialist:
    """Waits until a plan has been run so often that code of its own pays, and makes that in a thread beside.

    Args:
        m: the model.
        graph: the plan's.
        nworld: how many worlds there are.
    """

    @staticmethod
    def may(m: Model, nworld: int) -> bool:
        """Whether there is any use in one."""
        once = m.opt.integrator != RK4  # each of whose four parts would be a kernel
        return once and m.structure.work <= MOST_WORK and nworld >= LEAST and get_device().queue is None

    def __init__(self, m: Model, graph: Graph, nworld: int):
        self._model, self._graph, self._nworld = m, graph, nworld
        self._left = WORTH  # steps of a world
        self._thread: threading.Thread | None = None
        self._found: list[Entry] | None = None

    def waits(self) -> bool:
        """Whether there may be code of its own some day."""
        return self._thread is None or self._thread.is_alive()

    def ran(self, times: int) -> None:
        """Steps were taken."""
        self._left -= times * self._nworld
        if self._left <= 0 and self._thread is None:
            # A daemon: whoever ends the program shall not wait for it.
            self._thread = threading.Thread(target=self._beside, name="treadle specialist", daemon=True)
            self._thread.start()

    def work(self) -> None:
        """Compile. Steps, which ask for Python's lock now and then, shall not wait for it."""
        with _in_turns:
            self._found = specialised(self._model, self._graph)

    def _beside(self) -> None:
        """The same in a thread. Steps go on without it where it fails."""
        try:
            self.work()
        except Exception as error:
            log_warning(f"Steps go on as they are, as code for one model could not be made: {error!r}")

    def graph(self) -> Graph | None:
        """The graph with code of its own, once that is ready."""
        if self._found is None:
            return None
        before = self._graph.capture
        kept = {**before.kept, id(self._graph): self._graph}  # in whose memory launches may have found a place
        return Graph(replace(before, entries=self._found, kept=kept))


def _often() -> Callable[[], None]:
    """Let Python's threads take turns more often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH))
    ours = sys.getswitchinterval()  # in whole microseconds

    def end() -> None:
        if sys.getswitchinterval() == ours:  # nobody else has set it since
            sys.setswitchinterval(before)

    return end


_in_turns = Together(_often)  # wherever one compiles


def specialised(m: Model, graph: Graph) -> list[Entry] | None:
    """What ``graph`` does, smooth stages taken together; None where that is not to be had."""
    known, blocks = _tables(m), Transients(graph.blocks)
    found: list[Entry] = []
    for group in _groups(graph.entries):
        inside = {id(entry) for entry in group}
        others = [address for entry in every(graph.entries) if id(entry) not in inside for address in addresses(entry)]
        seen = {block.address for address in others if (block := blocks.at(address)) is not None}
        one = resolved(group, blocks, known, seen.__contains__) if len(group) > 1 else None
        found += group if one is None else [one]
    return found if len(found) < len(graph.entries) else None


def _tables(m: Model) -> set[int]:
    """The addresses of a model's tables of integers, which do not change."""
    fields = [(m, row) for row in Model.rows()] + [(m.opt, row) for row in Option.rows()]
    return {table.field(row.name)._address for table, row in fields if is_settled(row)}


def _groups(entries: list[Entry]) -> list[list[Any]]:
    """The entries in an order that does the same, those that may become one side by side."""
    found: list[list[Any]] = []
    group: list[Launch] = []
    passed: list[list[Use]] = []  # what launches touch that stand behind the group
    for entry in entries:
        uses = uses_of(entry) if isinstance(entry, Launch) else None
        if uses is None:
            found.append([entry])
            group = []
        elif entry.program.origin is None or entry.program.name not in SMOOTH:
            found.append([entry])
            passed.append(uses)
        elif group and _width(entry) == _width(group[0]) and not any(_meet(uses, other) for other in passed):
            group.append(entry)
        else:
            group, passed = [entry], []
            found.append(group)
    return found


def _width(entry: Launch) -> int:
    return entry.program.origin[2].width


def _meet(some: list[Use], others: list[Use]) -> bool:
    """Whether one of two launches writes what the other touches."""
    return any((u.written or v.written) and u.low < v.high and v.low < u.high for u in some for v in others)
