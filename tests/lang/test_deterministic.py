"""The switch that lets floats be added up in any order."""

import numpy as np
import pytest

import treadle as wp
from treadle.base.config import DeterministicMode

Mode = wp.DeterministicMode


def both(values: wp.array(dtype=float), sums: wp.array(dtype=float)):
    i = wp.tid()
    x = values[i]
    wp.atomic_add(sums, i % 7, x)
    wp.atomic_add(sums, (3 * i) % 7, 0.3 * x)


default, relaxed = (
    wp.Kernel(both, key, options=options)
    for key, options in (("exact_sums", {}), ("relaxed_sums", {"deterministic": Mode.NOT_GUARANTEED}))
)
VALUES = np.random.default_rng(0).normal(size=5000).astype(np.float32)


def sums(kernel) -> np.ndarray:
    made = wp.zeros(7, dtype=float)
    wp.launch(kernel, dim=len(VALUES), inputs=[wp.array(VALUES, dtype=float), made])
    return made.numpy()


def one_by_one() -> np.ndarray:
    """The sums as threads make them one after the other, in chunks as launches are cut."""
    made = np.zeros(7)
    for i, x in enumerate(VALUES.astype(float)):
        made[i % 7] += x
        made[3 * i % 7] += 0.3 * x
    return made


def test_sums_repeat_unless_they_need_not():
    assert wp.config.deterministic is Mode.GPU_TO_GPU is DeterministicMode.GPU_TO_GPU
    assert np.array_equal(sums(default), sums(default))
    assert np.allclose(sums(default), one_by_one(), atol=1e-3) and np.allclose(sums(relaxed), one_by_one(), atol=1e-3)
    assert not np.array_equal(sums(default), sums(relaxed))  # lane after lane instead of thread after thread


def test_settings_hold_for_what_is_compiled_then():
    repeated = sums(default)
    before, wp.config.deterministic = wp.config.deterministic, Mode.NOT_GUARANTEED
    try:
        kernel = wp.Kernel(both, "sums_by_setting")
        assert np.array_equal(sums(kernel), sums(relaxed))
        asked = wp.Kernel(both, "sums_by_option", options={"deterministic": Mode.RUN_TO_RUN})
        assert np.array_equal(sums(asked), repeated)
    finally:
        wp.config.deterministic = before
    options = kernel.module.resolve_options(wp.config)
    assert options["deterministic"] is Mode.GPU_TO_GPU and options["deterministic_max_records"] == 0


def test_only_modes_are_taken():
    with pytest.raises(ValueError, match="DeterministicMode"):
        wp.config.deterministic = True
    with pytest.raises(ValueError, match="must be a DeterministicMode, not 'run_to_run'"):
        wp.kernel(module_options={"deterministic": "run_to_run"}, module="unique")(both)
