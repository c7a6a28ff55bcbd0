"""How the engine differs from MuJoCo and MuJoCo Warp: a table for the documentation; each row names a test of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """A row: ``shown`` is the test, as ``file::function`` below ``tests/mujoco``, in which ours is compared or seen."""

    what: str
    mujoco: str
    warp: str
    here: str
    shown: str


OWN = "test_differences.py::"
TABLE = (
    Difference("precision", "double", "single", "either, by `put_model(mjm, dtype=…)`",
               "test_refuse.py::test_precision_is_single_or_double"),
    Difference("`step(m, d, nstep=n)`", "`mj_step(m, d, nstep)`", "one step", "n steps",
               "test_step.py::test_several_steps_in_one_launch_equal_single_steps"),
    Difference("fields after a step", "of its start", "of its start", "of its start, computed when they are read",
               "test_stages.py::test_fields_read_after_a_step_are_those_of_its_start"),
    Difference("`ten_J`, `actuator_moment`", "sparse, packed as rows come", "sparse",
               "sparse, columns `ten_J_colind` and `moment_colind` of the model", OWN + "test_forms_of_fields"),
    Difference("`wrap_obj`, `wrap_xpos`", "pairs of points in a row", "pairs", "a point a row",
               OWN + "test_forms_of_fields"),
    Difference("`efc_J`", "dense or sparse", "dense or sparse", "dense", OWN + "test_forms_of_fields"),
    Difference("contacts", "one list", "of all worlds in one list",
               "planes `contact_dist …` of `(nworld, nconmax)`, in MuJoCo's order; `d.contact` lists all of all worlds",
               "collision/test_stage.py::test_contacts_of_models_are_those_of_mujoco_in_the_same_order"),
    Difference("room for contacts", "grows", "fixed, the rest is dropped",
               "computed; grows outside captures, in them `check` counts",
               "collision/test_stage.py::test_lists_grow_where_there_are_more_contacts_than_room"),
    Difference("normals of overlapping curved geoms", "good to the root of `ccd_tolerance`", "likewise",
               "polished by Newton's method", OWN + "test_normals_of_curved_geoms_are_polished"),
    Difference("a box or mesh on a height field without margin",
               "expands its polytope no further where a support point repeats", "likewise",
               "the least depth of each prism",
               "collision/test_heights.py::test_every_prism_in_reach_makes_the_contact_of_mujoco"),
    Difference("`iterations` that run out before Newton's method is done",
               "each step ends at the least cost on its line", "likewise",
               "each but the last ends where the slope is a tenth of that at its start",
               OWN + "test_newtons_steps_that_run_out_end_where_or_near_where_mujocos_do"),
    Difference("filters with exact integration under Runge-Kutta", "as other activations within the step",
               "exact steps", "as MuJoCo",
               "test_smooth.py::test_a_step_of_every_integrator_ends_where_mujocos_ends"),
    Difference("a servo of orientation at its torque's limit, implicitly", "damps or not, as rounding goes",
               "refuses such servos", "does not damp", OWN + "test_a_servo_at_its_limit_does_not_damp"),
    Difference("times of samples with delays", "compared as they are", "to a microsecond",
               "to rounding: in single precision a delay of whole steps stays one",
               "test_history.py::test_delays_and_pauses"),
    Difference("a world that diverges", "is reset with its controls, and takes the first step again, with a warning",
               "goes on", "its state is reset, controls stay; counted in `d.warning`, and `d.check()` warns",
               "test_divergence.py::test_a_world_beyond_bounds_begins_anew"),
    Difference("rows of per-world fields", "none", "repeated", "one or `nworld`",
               "test_randomisation.py::test_rows_are_for_all_worlds_or_none"),
    Difference("quaternions in `qpos`", "normalised when used", "normalised when used", "normalised when used",
               OWN + "test_quaternions_are_normalised_when_used"),
)  # fmt: skip


def document() -> str:
    """The table, for the documentation."""
    rows = [f"| {row.what} | {row.mujoco} | {row.warp} | {row.here} |" for row in TABLE]
    return "\n".join(["| | MuJoCo | MuJoCo Warp | here |", "|---|---|---|---|", *rows])
