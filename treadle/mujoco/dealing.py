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

FEWEST = 4  # steps from one look at what worlds had to do to the next, at least,
SHARE = 50  # and until they took so many times as long as a look: what a world has to do changes within a few steps
LEAST = 64  # worlds, below which there are too few gangs
LANES = 8  # of the gangs that are thought of
BASE = 3.0  # what a world has to do in any case, in contacts
FEW = 6  # contacts and turns: worlds that have less go by what they touch, others first by the number,
STEPS = 4  # which has so many steps from one power of two to the next
BITS = 31
PATIENCE = 64  # looks until the other way is tried again
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
    """Whether worlds are dealt, which is tried where it promises something and goes on as long as steps are faster.

    Attributes:
        dealt: whether they are now.
    """

    def __init__(self) -> None:
        self.dealt = False
        self._least = [np.inf, np.inf]  # s, of a step as worlds come, and of one where they are dealt
        self._looks = 0  # at which things stayed as they are
        self._cost = 0.0  # s, of the last look that thought of an order
        self._steps, self._seconds = 0, 0.0  # since the last look

    def took(self, seconds: float, nstep: int) -> bool:
        """Note how long so many steps took; gives whether it is time for a look."""
        self._least[self.dealt] = min(self._least[self.dealt], seconds / nstep)
        self._steps += nstep
        self._seconds += seconds
        return self._steps >= FEWEST and self._seconds >= SHARE * self._cost

    def look(self, load: np.ndarray, order: np.ndarray) -> None:
        """See what worlds had to do, and let ``order`` be that of the steps to come."""
        self._looks += 1
        self._steps, self._seconds = 0, 0.0
        tired, found = self._looks > PATIENCE, None
        if self.dealt or tired or self._least[1] == np.inf:
            begin = perf_counter()
            found = deal(load)
            self._cost = perf_counter() - begin
        before, self.dealt = self.dealt, found is not None and not (self.dealt and (tired or self._is_slower()))
        if self.dealt:
            order[...] = found
        if self.dealt != before:
            self._looks = 0
            self._least[self.dealt] = np.inf
            if tired and before:  # only to see how long steps take without
                self._least[True] = np.inf

    def _is_slower(self) -> bool:
        return self._least[1] > self._least[0]


def deal(load: np.ndarray) -> np.ndarray | None:
    """The order in which worlds that have much the same to do share gangs; None where it hardly matters.

    Args:
        load: of each world the two numbers that `weigh` notes.
    """
    counts = load[:, 0]  # contacts and turns
    met = np.unpackbits(np.ascontiguousarray(load[:, 1:]).astype("<u4").view(np.uint8), axis=1)
    often = np.argsort(-met.sum(axis=0), kind="stable")  # what many worlds touch decides before what few do
    alike = np.ascontiguousarray(np.packbits(met[:, often], axis=1)).view(">u4").ravel()
    # Those with most to do come first, so that no worker is left alone with them at the end.
    step = np.floor(STEPS * np.log2(np.maximum(counts, FEW - 1) / FEW))
    order = np.lexsort((alike, -step)).astype(np.int32)
    return order if _work(counts[order], met[order]) < GAIN * _work(counts, met) else None


def _work(counts: np.ndarray, met: np.ndarray) -> float:
    """About what all gangs do: what the busiest of their worlds has to do, and what any of them touches."""
    gangs = len(counts) // LANES
    most = counts[: gangs * LANES].reshape(gangs, LANES).max(axis=1)
    touched = met[: gangs * LANES].reshape(gangs, LANES, -1).any(axis=1).sum(axis=1)
    return float((most + touched + BASE).sum())
