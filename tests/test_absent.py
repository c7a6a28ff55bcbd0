"""Names of the field: each is there or its state is known, and no state is kept for a name that is there."""

import pytest

import treadle as wp
from treadle import absent


def test_a_name_is_there_or_absent_not_both():
    listed = {*absent._EXACT, *(b.rstrip("_") for b in absent._BEGINNINGS)}
    there = {name for name in dir(wp) if absent.state(name)} - set(wp._MODULES)
    assert listed and not there, f"these are there now: {sorted(there)}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Volume", "treadle has no 'Volume' yet: sparse volumes are not part of this release"),
        ("volume_sample_f", "treadle has no 'volume_sample_f' yet: sparse volumes are not part of this release"),
        ("to_paddle", "treadle has no 'to_paddle': exchange with Paddle is not planned"),
        ("colour", "treadle has no 'colour'"),
    ],
)
def test_what_is_said_of_a_name(name, said):
    with pytest.raises(AttributeError) as caught:
        getattr(wp, name)
    assert str(caught.value) == said
    assert not hasattr(wp, name)


def test_what_is_said_of_a_part():
    with pytest.raises(AttributeError, match="treadle.fem has no 'Grid2D' yet: finite elements are not part"):
        _ = wp.fem.Grid2D
    with pytest.raises(AttributeError, match="treadle.sparse has no 'bsr_mv' yet: sparse matrices are not part"):
        _ = wp.sparse.bsr_mv

    with pytest.raises(AttributeError, match="treadle.utils has no 'AllocatorRmm': the pools of RMM"):
        _ = wp.utils.AllocatorRmm
    with pytest.raises(AttributeError, match="treadle.utils has no 'colour'$"):
        _ = wp.utils.colour


def test_the_compiler_says_it_too():
    @wp.kernel
    def samples(out: wp.array(dtype=float)):
        out[0] = wp.volume_sample_f(wp.uint64(0), wp.vec3(0.0), 1)

    with pytest.raises(wp.KernelAttributeError, match="no 'volume_sample_f': sparse volumes are not part of this"):
        wp.launch(samples, dim=1, inputs=[wp.zeros(1, dtype=float)])
