"""What only GPUs have: every question is answered, every request does nothing and says so."""

import pytest

import treadle as wp


@pytest.mark.host
def test_questions():
    assert not wp.is_mempool_supported("cpu") and not wp.is_mempool_enabled("cpu")
    assert wp.get_mempool_release_threshold("cpu") == wp.get_mempool_used_mem_current() == 0
    assert wp.get_mempool_used_mem_high("cpu") == 0
    assert not wp.is_mempool_access_supported("cpu", "cpu") and not wp.is_mempool_access_enabled("cpu", "cpu")
    assert not wp.is_peer_access_supported("cpu", "cpu") and not wp.is_peer_access_enabled("cpu", "cpu")
    assert wp.can_access("cpu", wp.zeros(1)) and wp.can_access(
        "cpu", wp.indexedarray(wp.zeros(2), wp.zeros(1, dtype=int))
    )
    with pytest.raises(TypeError, match="asks of an array, not of a str"):
        wp.can_access("cpu", "cpu")
    with pytest.raises(ValueError, match="no device 'moon'"):
        wp.is_mempool_enabled("moon")


def test_requests_say_once_that_they_do_nothing():
    from treadle.base.logs import _said

    _said.clear()
    with pytest.warns(UserWarning, match="has no effect on cpu") as seen:
        for _ in range(2):
            with wp.ScopedMempool("cpu", True), wp.ScopedMempoolAccess("cpu", "cpu", True):
                wp.set_peer_access_enabled("cpu", "cpu", True)
            wp.set_mempool_release_threshold("cpu", 0.5)
            wp.set_mempool_enabled("cpu", False)
    assert len(seen) == 4 and {w.filename for w in seen} == {__file__}
    with wp.ScopedPeerAccess("cpu", "cpu", False) as scope:
        assert scope.enable is False


@pytest.mark.host
def test_cuda_is_not_there():
    assert wp.get_cuda_driver_version() is None is wp.get_cuda_toolkit_version()
    assert wp.get_cuda_supported_archs() == [] and wp.get_cuda_max_cluster_dim() == 1
    assert wp.get_suggested_block_size(None) == (1, 1) and not wp.is_cubql_available()
    assert not wp.is_conditional_graph_supported()
    with wp.ScopedCudaProfiler():
        pass
    for ask in (wp.get_cuda_device, lambda: wp.map_cuda_device("a"), lambda: wp.unmap_cuda_device("a"),
                lambda: wp.get_cuda_kernel_properties(None)):  # fmt: skip
        with pytest.raises(RuntimeError, match="NVIDIA|CUDA device"):
            ask()


def test_timing_of_activities(capsys):
    wp.timing_begin(wp.TIMING_KERNEL | wp.TIMING_MEMCPY)
    wp.timing_print(wp.timing_end())
    results = [wp.TimingResult("gpu", "copy", wp.TIMING_MEMCPY, t) for t in (1.0, 2.5)]
    wp.timing_print(results, "> ")
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "no activity was recorded" and said[-1].split() == [
        ">",
        "3.500000",
        "ms",
        "2",
        "x",
        "gpu",
        "copy",
    ]
