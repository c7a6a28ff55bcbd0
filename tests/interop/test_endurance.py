"""Graphs replayed by four threads at once, beside JAX, PyTorch, forks, and arrays that come and go;
`benchmarks/endurance_graphs.py` does the same for 10,000 replays of each thread."""

import pytest

pytest.importorskip("jax")
pytest.importorskip("torch")

from benchmarks import endurance_graphs  # noqa: E402


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_a_hundred_replays_of_each_thread():
    assert endurance_graphs.run(threads=4, replays=100, forks=2) == []
