"""Types by kind, and their NumPy dtypes."""

import numpy as np
import pytest

import treadle as wp
from treadle.types import groups


def test_kinds():
    assert wp.int8 in groups.int_types and wp.float32 not in groups.int_types
    assert groups.scalar_types == groups.int_types + groups.float_types
    assert wp.bool in groups.scalar_and_bool_types and wp.bool not in groups.scalar_types
    assert {wp.vec3, wp.mat44d, wp.quath, wp.transform, wp.spatial_matrix} <= set(groups.vector_types)
    assert len(groups.vector_types) == len(set(groups.vector_types))
    assert groups.handle is wp.uint64


def test_base_classes():
    assert issubclass(wp.bfloat16, groups.float_base) and issubclass(wp.uint8, groups.int_base)
    assert all(issubclass(t, groups.scalar_base) for t in groups.scalar_and_bool_types)
    assert not issubclass(wp.int32, groups.float_base)


@pytest.mark.parametrize("t", groups.scalar_and_bool_types)
def test_dtypes_go_both_ways(t):
    if t is wp.bfloat16:  # NumPy has none
        assert t not in groups.np_dtype_to_warp_type.values()
        return
    dtype = groups.warp_type_to_np_dtype[t]
    assert groups.np_dtype_to_warp_type[dtype] is groups.np_dtype_to_warp_type[np.dtype(dtype)] is t


def test_a_name_that_is_none():
    with pytest.raises(AttributeError, match="no attribute 'small_types'"):
        _ = groups.small_types
