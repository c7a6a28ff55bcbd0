"""The page of errors names every class that users can catch."""

from pathlib import Path

import treadle as wp

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")


def test_every_class_is_in_the_table():
    table = {line.partition(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `")}
    named = {name for cell in table for name in cell.strip("| ").replace("`", "").split(", ")}
    classes = {name for name in wp.__all__ if isinstance(getattr(wp, name, None), type)
               and issubclass(getattr(wp, name), wp.TreadleError) and not name.startswith("Warp")}  # fmt: skip
    assert named == classes - {"TreadleError"}
