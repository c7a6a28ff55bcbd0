"""These tests need MuJoCo: without it there is nothing to compare with. Some need its version 4."""

import importlib.metadata
import importlib.util

import pytest

collect_ignore_glob = ["test_*.py"] if importlib.util.find_spec("mujoco") is None else []


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "mujoco4: compares with MuJoCo 4, whose physics, or MJCF, version 3 does not have"
    )


def pytest_collection_modifyitems(items):
    if not collect_ignore_glob and int(importlib.metadata.version("mujoco").partition(".")[0]) < 4:
        for item in items:
            if item.get_closest_marker("mujoco4"):
                item.add_marker(pytest.mark.skip(reason="needs MuJoCo 4"))
