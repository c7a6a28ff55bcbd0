"""These tests need MuJoCo: without it there is nothing to compare with. Some need its version 4."""

import importlib.metadata
import importlib.util
import re

import pytest

collect_ignore_glob = ["test_*.py"] if importlib.util.find_spec("mujoco") is None else []

# Where version 3.17, the newest for Python 3.10, computes something else, and what.
OTHER_IN_3 = {
    "its convex shapes of meshes are less exact": (
        r"test_depths_and_manifolds_of_polyhedra_agree\[mesh_mesh-aligned",
        r"test_depths_of_curved_geoms_agree_in_single_precision\[cylinder_mesh",
        r"test_contacts_of_curved_geoms_agree_where_mujocos_polytope_converged\[cylinder_mesh",
        r"test_distances_of_geoms_and_bodies",
    ),
    "it lists contacts of meshes in another order": (
        r"test_contacts_of_models_are_those_of_mujoco_in_the_same_order\[so101_pick",
    ),
    "its histories begin otherwise": (r"test_delays_and_pauses", r"test_a_world_that_begins_anew_has_no_history"),
    "its servos that turn, and its Runge-Kutta steps of rotations, do so otherwise": (
        r"test_every_field_of_every_stage_is_mujocos\[joints", r"test_groups_of_actuators_can_be_switched_off",
        r"test_a_world_with_a_bad_control_goes_without_and_is_counted\[stages",
        r"test_a_step_of_every_integrator_ends_where_mujocos_ends\[.*-RK4",
    ),
    "its cylinders make one contact with a box where they should make two": (
        r"test_contacts_and_constraints_are_mujocos\[4",
    ),
    "its motors do not move within a step": (
        r"test_a_step_of_every_integrator_ends_where_mujocos_ends\[motors-IMPLICIT",
    ),
    "its accelerations of what stands still are others": (r"test_sensors_of_every_kind",),
    "its enumerations are shorter": (r"test_the_documentation_lists_what_is_refused",),
}  # fmt: skip


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "mujoco4: compares with MuJoCo 4, whose physics, or MJCF, version 3 does not have"
    )


def pytest_collection_modifyitems(items):
    if not collect_ignore_glob and int(importlib.metadata.version("mujoco").partition(".")[0]) < 4:
        for item in items:
            others = (why for why, names in OTHER_IN_3.items() if any(re.match(name, item.name) for name in names))
            if why := next(others, "" if item.get_closest_marker("mujoco4") is None else "its MJCF is another"):
                item.add_marker(pytest.mark.skip(reason=f"needs MuJoCo 4; of version 3 {why}"))
