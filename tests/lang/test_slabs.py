"""Memory of tapes: pieces that do not meet, and slabs that are used again."""

import ctypes
import gc

import numpy as np

from treadle.lang import slabs
from treadle.lang.natives import install
from treadle.lang.slabs import LINE, SLAB, room
from treadle.lang.undo import Bytes


def test_pieces_do_not_meet():
    pieces = [room(n) for n in (1, 64, 65, 1000, SLAB, 3 * SLAB, 0, 7)]
    for k, ((at, _), n) in enumerate(zip(pieces, (1, 64, 65, 1000, SLAB, 3 * SLAB, 0, 7), strict=True)):
        assert at % LINE == 0
        ctypes.memset(at, k, n)
    for k, ((at, slab), n) in enumerate(zip(pieces, (1, 64, 65, 1000, SLAB, 3 * SLAB, 0, 7), strict=True)):
        assert ctypes.string_at(at, n) == bytes([k]) * n
        assert slab.memory.ctypes.data <= at and at + n <= slab.end


def test_a_slab_is_used_again_when_its_pieces_have_gone():
    _, big = room(SLAB + 1)
    memory = big.memory
    del big, _
    gc.collect()
    assert room(SLAB + 1)[1].memory is memory


def test_the_last_idle_slab_may_go_to_another_thread(monkeypatch):
    class Taken(list):
        def __bool__(self):
            return True  # as it looked before the other thread had it

    monkeypatch.setattr(slabs, "_idle", {SLAB: Taken()})
    assert len(slabs.Slab(SLAB).memory) == SLAB + LINE


def test_idle_slabs_are_not_hoarded(monkeypatch):
    monkeypatch.setattr(slabs, "KEPT", 0)
    _, big = room(5 * SLAB)
    size = len(big.memory) - LINE
    before = len(slabs._idle.get(size, ()))
    del big, _
    assert len(slabs._idle.get(size, ())) == before


def test_slabs_may_outlive_the_module(monkeypatch):
    """At its end Python sets the names of a module to None before it frees what is left."""
    slab = slabs.Slab(SLAB)
    for name in ("LINE", "KEPT"):
        with monkeypatch.context() as ending:
            ending.setattr(slabs, name, None)
            slab.__del__()
    assert not any(memory is slab.memory for memory in slabs._idle.get(SLAB, ()))


def test_pieces_are_exchanged():
    install()
    rng = np.random.default_rng(0)
    for n in (0, 1, 63, 64, 100_005):
        memory = rng.integers(0, 256, n, np.uint8)
        first = memory.copy()
        piece = Bytes(0, memory.ctypes.data, n, memory)
        memory[...] = second = rng.integers(0, 256, n, np.uint8)
        piece.swap()
        assert (memory == first).all() and ctypes.string_at(piece.at, n) == second.tobytes() and piece.nbytes == n
        piece.swap()
        assert (memory == second).all()
