"""Objects of other libraries that tell where their elements are."""

import numpy as np
import pytest

import treadle as wp
from treadle.runtime import foreign


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


class Both:
    """Memory of the host that is told of by both protocols."""

    def __init__(self, values):
        self.values = np.array(values, dtype=np.float32)
        self.__array_interface__ = self.__cuda_array_interface__ = self.values.__array_interface__

    def __len__(self):
        return len(self.values)


class Fails:
    """Tells of memory of the host, and cannot be asked for memory of a GPU."""

    values = np.array([1.0, 2.0], dtype=np.float32)

    @property
    def __array_interface__(self):
        return self.values.__array_interface__

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("there is no GPU")


@pytest.mark.host
def test_memory_of_the_host_is_found_first():
    a = wp.array(Both([1.0, 2.0, 3.0]), dtype=float)
    assert a.device == wp.get_device("cpu") and a.list() == [1.0, 2.0, 3.0]
    assert wp.array(Both([1.0, 2.0, 3.0]), dtype=wp.vec3).shape == (1,)


@pytest.mark.host
def test_no_other_way_is_tried_after_one_that_is_there():
    assert foreign.shows_memory(Fails()) and not foreign.shows_memory(object())
    for x in (Fails(), Both([1.0, 2.0])):
        y = wp.zeros(2, dtype=float)
        wp.launch(double, dim=2, inputs=[x], outputs=[y])
        assert y.list() == [2.0, 4.0]
