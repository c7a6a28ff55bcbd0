"""Threads that want more memory of their own than a stack has are refused."""

import pytest

from tests.passes.text import of
from treadle.base.errors import KernelTypeError
from treadle.passes.room import ROOM, demand_room

LOCAL = "%{}: local<f32,1,(4)> = local type=!fixed<f32,({})>\n"


def test_what_fits_is_left_alone():
    func = of(LOCAL.format(11, ROOM // 8) + LOCAL.format(12, ROOM // 8))
    assert demand_room(func) is func


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(KernelTypeError, match=f"take {ROOM + 4} bytes here, at most {ROOM} are there"):
        demand_room(of(LOCAL.format(11, ROOM // 8) + LOCAL.format(12, ROOM // 8 + 1)))
