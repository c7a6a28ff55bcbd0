"""Tests on a GPU. Without one they are skipped, unless ``--emulate-gpu`` puts a stand-in for the driver in its place
(``tests/runtime/cuda/standin.py``), which runs kernels on this processor."""

from __future__ import annotations

import pytest

import treadle as wp


@pytest.fixture
def device() -> str:
    """The GPU's name; the test is skipped where there is none."""
    if not wp.is_cuda_available():
        from treadle.runtime.cuda import driver

        pytest.skip(driver.missing())
    return "cuda:0"
