"""Every spelling of a tile as a parameter."""

from typing import Any, Literal

import pytest

import treadle as wp
from treadle.types.annotations import type_of


def test_spellings():
    tile = wp.tile[float, Literal[8], Literal[4]]
    assert (tile.dtype, tile.shape, repr(tile)) == (wp.float32, (8, 4), "wp.tile[float32, 8, 4]")
    for same in (wp.tile[float, 8, 4], wp.tile[wp.float32, (8, 4)], wp.tile(dtype=float, shape=(8, 4))):
        assert type_of(same) is type_of(tile)
    assert wp.tile[wp.vec3].shape is Any and type_of(wp.tile[wp.vec3]) is type_of(wp.tile[Any, 4]) is None


WRONG = [(), (float, -1), (float, 2, 2, 2, 2, 2), (float, Literal[2, 3]), (float, 2.0)]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_none(wrong):
    with pytest.raises((TypeError, wp.KernelTypeError)):
        wp.tile[wrong]
