"""Write ``docs/conformance.md``: how many tests of Warp's own suite treadle passes, and why not the others.

    python tests/conformance/report.py RESULTS.json docs/conformance.md

RESULTS is what ``run.py`` left. ``warp-1.19-cpu.txt`` lists the tests that Warp passes on a CPU; ``reasons.txt`` says
why treadle does not pass some of them: kinds and reasons, with the tests that they hold for below them, as patterns. A
test that is not passed and has no reason is named too, as one of something missing, and the script then ends with 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.conformance.areas import ORDER, area_of  # noqa: E402

PASSED = ("pass", "xfail")
KINDS = {
    "implementation": "tests of how Warp is made, which do not count",
    "wording": "tests that compare a message with Warp's own sentence",
    "promise": "tests that ask the opposite of what treadle promises",
    "decision": "tests that treadle does not pass",
}


LINK = re.compile(r"\[[^\]]+\]\((\w+\.md)#([\w-]+)\)")


class Case(NamedTuple):
    """A test that Warp passes: the file, and class and name."""

    file: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


class Reason(NamedTuple):
    """Why tests that match one of ``patterns`` are not passed; ``kind`` says whether they count."""

    kind: str
    text: str
    patterns: tuple[str, ...]


def expected(text: str) -> Iterator[Case]:
    """The tests that Warp passes: files, and under each, indented, its tests."""
    file = ""
    for line in text.splitlines():
        if line.startswith(" "):
            yield Case(file, line.strip())
        else:
            file = line


def reasons(text: str) -> list[Reason]:
    """The reasons, in their order: lines ``kind: reason``, and indented under each the patterns.

    Raises:
        ValueError: a kind that is none, a reason without patterns, a promise that says not where it is given.
    """
    found: list[Reason] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            found[-1] = found[-1]._replace(patterns=(*found[-1].patterns, line.strip()))
            continue
        kind, _, why = line.partition(": ")
        if kind not in KINDS:
            raise ValueError(f"a reason begins with one of {', '.join(KINDS)}: not {line!r}")
        if kind == "promise" and not LINK.match(why):
            raise ValueError(f"a promise begins with a link to the section that gives it: not {why!r}")
        found.append(Reason(kind, why, ()))
    empty = [reason.text for reason in found if not reason.patterns]
    if empty:
        raise ValueError(f"no test has the reason {empty[0]!r}")
    return found


class Outcome:
    """What became of the tests that Warp passes in one area."""

    def __init__(self):
        self.passed: list[Case] = []
        self.missed: dict[Reason, list[Case]] = defaultdict(list)
        self.unexplained: list[Case] = []

    def counts(self) -> tuple[int, int, int, int, int]:
        """Tests: Warp passes, of these count, treadle passes, treadle misses by wording, and for a promise."""
        missed = sum(map(len, self.missed.values())) + len(self.unexplained)
        everything = len(self.passed) + missed
        count = everything - self._of("implementation")
        return everything, count, len(self.passed), self._of("wording"), self._of("promise")

    def _of(self, kind: str) -> int:
        return sum(len(tests) for reason, tests in self.missed.items() if reason.kind == kind)


def judge(tests: list[Case], results: dict[str, Any], why: list[Reason]) -> dict[str, Outcome]:
    """The outcome of each area whose files are in ``results``."""
    areas: dict[str, Outcome] = defaultdict(Outcome)
    for test in tests:
        if test.file not in results:
            continue
        outcome = areas[area_of(test.file)]
        module = "warp.tests." + test.file.removesuffix(".py").replace("/", ".")
        status = results[test.file]["tests"].get(f"{module}.{test.name}", {}).get("status")
        reason = next((r for r in why if any(fnmatchcase(str(test), p) for p in r.patterns)), None)
        if status in PASSED:
            outcome.passed.append(test)
        elif reason is None:
            outcome.unexplained.append(test)
        else:
            outcome.missed[reason].append(test)
    return {area: areas[area] for area in (*ORDER, *sorted(set(areas) - set(ORDER))) if area in areas}


_HEAD = """# Warp's own tests

The wheel of NVIDIA Warp 1.19 ships its tests. `make conformance` runs them, unmodified, with `warp` answered by
treadle, and writes this page (here with Python {python}). Of the tests that Warp passes on a CPU:

| area | Warp passes | of these count | treadle passes | | other words | without those | the opposite | without both |
|---|---:|---:|---:|---:|---:|---:|---:|---:|"""

_COUNTING = """
* The tests that **count** are all but those of how Warp is made: the text of the C++ it writes, its native library, the
  layout of its files, its private attributes. Every percentage is of tests that count.
* The first percentage is of all tests that count: so many pass as they are.
* **Other words** are tests that compare a message with a sentence of Warp. treadle raises the same kind of error there,
  or warns too, but says it in words of its own; no sentence of Warp is copied, though messages share short phrases that
  programs match on ([why](decisions/011-messages.md)). These tests do not pass. They assert nothing else that fails.
* The second percentage leaves those tests out of what there is to pass: so much of Warp's behaviour is the same.
* **The opposite** are tests that wait for what treadle promises not to do: that a mistake ends the process, that a
  gradient is another than the derivative or is refused where there is one, that a number or an array is cut to 32 bits.
  Each is listed with its promise and where that is given. No change of treadle that keeps these promises passes them.
* The third percentage leaves them out, too.

Every test that is not passed is listed below with the reason. A reason is a decision; what is missing has none, and is
listed as missing."""


def page(facts: dict[str, Any], areas: dict[str, Outcome]) -> str:
    """The Markdown text."""
    rows, total = [], [0] * 5
    for area, outcome in areas.items():
        counts = outcome.counts()
        total = [a + b for a, b in zip(total, counts, strict=True)]
        rows.append(_row(area, counts))
    lines = [_HEAD.format(**facts), *rows, _row("all", total), _COUNTING]
    for area, outcome in areas.items():
        lines += _section(area, outcome)
    return "\n".join(lines) + "\n"


def _row(area: str, counts: Any) -> str:
    everything, count, passed, worded, promised = counts
    first, second = _percent(passed, count), _percent(passed, count - worded)
    third = _percent(passed, count - worded - promised)
    return f"| {area} | {everything} | {count} | {passed} | {first} | {worded} | {second} | {promised} | {third} |"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def _section(area: str, outcome: Outcome) -> list[str]:
    lines: list[str] = []
    for kind, title in KINDS.items():
        rows = [(r.text, tests) for r, tests in outcome.missed.items() if r.kind == kind]
        if rows:
            lines += ["", f"## {area}: {title}", ""]
            lines += [f"* {text}: {_names(tests)}" for text, tests in rows]
    if outcome.unexplained:
        lines += ["", f"## {area}: tests of what is missing", "", f"* {_names(outcome.unexplained)}"]
    return lines


def _names(tests: list[Case]) -> str:
    """The tests by file, without what all of them have in common."""
    files: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        files[test.file].append(test.name.rpartition(".")[2].removeprefix("test_").removesuffix("_cpu"))
    return "; ".join(f"`{file}` {', '.join(names)}" for file, names in files.items())


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("page", type=Path)
    given = parser.parse_args()
    facts = json.loads(given.results.read_text(encoding="utf-8"))
    tests = [*expected((HERE / "warp-1.19-cpu.txt").read_text(encoding="utf-8"))]
    why = reasons((HERE / "reasons.txt").read_text(encoding="utf-8"))
    areas = judge(tests, facts["files"], why)
    given.page.write_text(page(facts, areas), encoding="utf-8")
    for outcome in areas.values():
        for test in outcome.unexplained:
            print(f"missing: {test}", file=sys.stderr)
    return int(any(outcome.unexplained for outcome in areas.values()))


if __name__ == "__main__":
    sys.exit(main())
