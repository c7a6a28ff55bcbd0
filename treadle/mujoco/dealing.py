"""Dealing: which worlds share a gang.

A gang does what any of its worlds needs: contacts, rows, iterations. Where worlds are in very different situations, a
few with many contacts would keep lanes waiting in most gangs, and all would go through each other's contacts; so now
and then worlds are dealt out anew, those with as much to do together, and of them those that touch the same. A step
then takes state and controls of world ``order[k]`` into lane k, and gives back what it found in the same way: nobody
else sees the order, and no number depends on it, as lanes do not know of each other.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

import treadle as wp
from treadle.mujoco.algebra import COMPONENTS, index
from treadle.mujoco.fields import Field, Fields
from treadle.mujoco.planes import plane_bytes
from treadle.runtime.array import build
from treadle.runtime.array_views import product
from treadle.runtime.device import get_device
from treadle.runtime.elements import element

SHARE = 50  # steps take so many times as long as a look, at least: what worlds have to do changes from step to step
LEAST = 64  # worlds, below which there are too few gangs
LANES = 8  # of the gangs that are thought of
BASE = 3.0  # what a world has to do in any case, in contacts
FEW = 6  # contacts and turns: worlds that have less go by what they touch, others first by the number,
STEPS = 4  # which has so many steps from one power of two to the next
BITS = 31
BITS_OF = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(float)
COUNT_OF = BITS_OF.sum(axis=1)
FIRST = 4  # steps until the first trial,
PATIENCE = 256  # and from one to the next
TURN = 4  # timed steps of a turn of a trial,
TURNS = 8  # which both ways have half of
GAIN = 0.9  # part of the work that may be left where dealing is worth moving worlds

ints = wp.array(dtype=int)


@wp.kernel
def take_numbers(values: wp.array(dtype=Any), order: ints, into: wp.array(dtype=Any)):
    """Copy one number of each world to its lane."""
    k = wp.tid()
    into[k] = values[index(order[k])]


@wp.kernel
def take_rows(values: wp.array2d(dtype=Any), order: ints, into: wp.array2d(dtype=Any)):
    """Copy a row of each world to its lane."""
    k = wp.tid()
    for i in range(values.shape[1]):
        into[k, i] = values[index(order[k]), i]


@wp.kernel
def give_numbers(values: wp.array(dtype=Any), order: ints, into: wp.array(dtype=Any)):
    """Copy one number of each lane to its world."""
    k = wp.tid()
    into[index(order[k])] = values[k]


@wp.kernel
def give_rows(values: wp.array2d(dtype=Any), order: ints, into: wp.array2d(dtype=Any)):
    """Copy a row of each lane to its world."""
    k = wp.tid()
    for i in range(values.shape[1]):
        into[index(order[k]), i] = values[k, i]


@wp.kernel
def give_most(values: wp.array2d(dtype=int), order: ints, into: wp.array2d(dtype=int)):
    """Remember the largest numbers of each world."""
    k = wp.tid()
    for i in range(values.shape[1]):
        w = index(order[k])
        into[w, i] = wp.max(into[w, i], values[k, i])


@wp.kernel
def clear(values: wp.array2d(dtype=int)):
    """Begin with zeros."""
    k = wp.tid()
    for i in range(values.shape[1]):
        values[k, i] = 0


@wp.kernel(gang_vectors=2)
def weigh(needed: ints, slot_count: wp.array2d(dtype=int), load: wp.array2d(dtype=int)):
    """What a world has to do: its number of contacts, and which pairs touch, in as many bits as there are."""
    w = wp.tid()
    met = int(0)
    bit = int(1)
    for p in range(slot_count.shape[1]):
        met = met | wp.where(slot_count[w, p] > 0, bit, 0)
        bit = wp.where(bit == (1 << (BITS - 1)), 1, bit << 1)
    load[w, 0] = needed[w]
    load[w, 1] = met


@wp.kernel
def weigh_turns(turns: ints, load: wp.array2d(dtype=int)):
    """Add the turns that finding contacts took: one of them takes about as long as a contact does later."""
    w = wp.tid()
    load[w, 0] = load[w, 0] + turns[w]


def take(values: wp.array, order: wp.array, into: wp.array) -> None:
    """Copy an array of worlds to lanes."""
    wp.launch(take_numbers if values.ndim == 1 else take_rows, dim=values.shape[0], inputs=[values, order, into])


def give(values: wp.array, order: wp.array, into: wp.array) -> None:
    """Copy an array of lanes to worlds."""
    wp.launch(give_numbers if values.ndim == 1 else give_rows, dim=values.shape[0], inputs=[values, order, into])


def in_planes(table: Fields, row: Field, array: wp.array, nworld: int) -> wp.array:
    """The same memory as an array of two dimensions: of each world all numbers of the field."""
    number = element(wp.int32 if row.kind == "int" else table.real)
    planes = product(table.extent(row)[1:]) * COMPONENTS[row.kind]
    plane = plane_bytes(nworld, number.size)
    return build(
        number, (nworld, planes), (number.size, plane), number.component, array._address, None, 0, get_device()
    )


class Dealer:
    """Whether worlds are dealt. Where that promises something, both ways take turns for a few steps, and the faster one
    stays until the next trial: times of neighbouring steps can be compared, those of distant ones cannot.

    Attributes:
        dealt: whether they are now.
    """

    def __init__(self) -> None:
        self.dealt = False
        self._trial: tuple[list[float], list[float]] | None = None  # s, of steps as worlds come, and of dealt ones
        self._turn = 0  # steps of this turn that were timed; the first one of a turn is not, as it warms up
        self._turns = 0
        self._since = PATIENCE - FIRST  # steps since a trial
        self._cost = 0.0  # s, of the last look that thought of an order
        self._steps, self._seconds = 0, 0.0  # since the last look

    def took(self, seconds: float, nstep: int) -> bool:
        """Note how long so many steps took; gives whether it is time for a look."""
        if self._trial is not None:
            if self._turn > 0:
                self._trial[self.dealt].append(seconds / nstep)
            self._turn += 1
        self._steps += nstep
        self._seconds += seconds
        return self._seconds >= SHARE * self._cost

    def look(self, load: np.ndarray, order: np.ndarray) -> None:
        """See what worlds had to do, and let ``order`` be that of the steps to come."""
        self._since += self._steps
        self._steps, self._seconds = 0, 0.0
        due = self._trial is None and self._since >= PATIENCE
        if not self.dealt and not due and self._trial is None:
            return
        begin = perf_counter()
        found = deal(load)
        self._cost = perf_counter() - begin
        if found is None:
            self.dealt, self._trial, self._since = False, None, 0
            return
        if due:
            self._trial, self._turn, self._turns = ([], []), 0, 0
        if self._trial is not None and self._turn > TURN:
            self._next_turn(self._trial)
        if self.dealt:
            order[...] = found

    def _next_turn(self, trial: tuple[list[float], list[float]]) -> None:
        self._turn, self._turns = 0, self._turns + 1
        self.dealt = not self.dealt
        if self._turns == TURNS:
            # Other work on the machine makes some steps longer, none shorter. Looks come on top of steps.
            plain, dealt = (float(np.quantile(times, 0.25)) for times in trial)
            self.dealt, self._trial, self._since = dealt * (1 + 1 / SHARE) < plain, None, 0


def deal(load: np.ndarray) -> np.ndarray | None:
    """The order in which worlds that have much the same to do share gangs; None where it hardly matters.

    Args:
        load: of each world the two numbers that `weigh` notes.
    """
    counts, met = load[:, 0], np.ascontiguousarray(load[:, 1]).astype("<u4")  # contacts and turns; what touches
    places = met.view(np.uint8).reshape(-1, 4)
    number = np.stack([np.bincount(column, minlength=256) for column in places.T]) @ BITS_OF  # of worlds, by bit
    often = np.argsort(-number.ravel(), kind="stable")  # what many worlds touch decides before what few do
    value = np.empty(32)
    value[often] = 2.0 ** np.arange(31, -1, -1)
    keys = (BITS_OF @ value.reshape(4, 8).T).T.astype(np.int64)  # what each byte contributes
    alike = keys[0][places[:, 0]] + keys[1][places[:, 1]] + keys[2][places[:, 2]] + keys[3][places[:, 3]]
    # Those with most to do come first, so that no worker is left alone with them at the end.
    step = np.floor(STEPS * np.log2(np.maximum(counts, FEW - 1) / FEW))
    order = np.argsort(alike - (step.astype(np.int64) << 32), kind="stable").astype(np.int32)
    return order if _work(counts[order], met[order]) < GAIN * _work(counts, met) else None


def _work(counts: np.ndarray, met: np.ndarray) -> float:
    """About what all gangs do: what the busiest of their worlds has to do, and what any of them touches."""
    gangs = len(counts) // LANES
    most = counts[: gangs * LANES].reshape(gangs, LANES).max(axis=1)
    touched = np.bitwise_or.reduce(met[: gangs * LANES].reshape(gangs, LANES), axis=1)
    return float(most.sum() + COUNT_OF[touched.view(np.uint8)].sum() + BASE * gangs)
