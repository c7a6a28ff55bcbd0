"""Who watches is told of writes from the host, and is forgotten when it goes."""

import gc

import numpy as np
import pytest

import treadle as wp
from treadle.runtime import watch


class Watcher:
    """Notes what is written, and lets it happen."""

    def __init__(self):
        self.told = []

    def write(self, dest, perform, args, source):
        self.told.append((dest.shape, None if source is None else source.shape))
        perform(dest, *args)


@pytest.fixture
def watcher(monkeypatch):
    made = Watcher()
    monkeypatch.setattr(watch, "write", made.write, raising=False)
    watch.watch(made)
    yield made
    watch.leave(made)


def test_every_way_to_write_is_told(watcher):
    a, b = wp.zeros((2, 3)), wp.ones((2, 3))
    watcher.told.clear()
    a.zero_()
    a.fill_(2.0)
    a.assign(np.zeros((2, 3)))
    a.assign(b)
    a[0] = 5.0
    a[1, 2] = 7.0
    a[:, :1] = b[:, 1:2]
    wp.copy(a, b, 1, 2, 3)
    wp.clone(a)
    a.transpose().contiguous()
    whole, row, cell = (2, 3), (3,), (1,)
    assert watcher.told == [
        (whole, None), (whole, None), (whole, None), (whole, whole), (row, None), (cell, None), ((2, 1), (2, 1)),
        (whole, whole), (whole, whole), ((3, 2), (3, 2)),
    ]  # fmt: skip
    assert a.numpy().tolist() == [[1.0, 1.0, 1.0], [1.0, 1.0, 7.0]]


def test_who_leaves_or_goes_is_told_no_more(watcher):
    other = Watcher()
    watch.watch(other)
    watch.watch(other)
    assert len(watch.watchers) == 2
    del other
    gc.collect()
    assert watch.watching() == [watcher]
    watch.leave(watcher)
    assert not watch.watchers
    wp.zeros(3).fill_(1.0)
    assert watcher.told == []


def test_who_leaves_takes_nobody_from_those_who_are_being_asked(watcher):
    others = [Watcher() for _ in range(3)]
    for other in others:
        watch.watch(other)
    asked = []
    for each in watch.watching():
        asked.append(each)
        watch.leave(each)  # as another thread may do
    assert asked == [watcher, *others] and not watch.watchers
