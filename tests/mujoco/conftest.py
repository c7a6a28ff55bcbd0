"""These tests need MuJoCo; without it there is nothing to compare with."""

import importlib.util

collect_ignore_glob = ["test_*.py"] if importlib.util.find_spec("mujoco") is None else []
