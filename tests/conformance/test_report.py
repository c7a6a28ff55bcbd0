"""The page of Warp's own tests: what counts, what is listed, and that nothing is left out."""

from __future__ import annotations

import re

import pytest

from tests.conformance.areas import area_of
from tests.conformance.report import HERE, LINK, Case, Reason, expected, judge, page, reasons

REASONS = """# a comment
implementation: it reads C++
    test_vec.py:*text*
wording: it wants Warp's sentence
    test_vec.py:*sentence*
promise: [nothing ends](differences.md#errors): it waits for the end
    test_vec.py:*end*
decision: we know better
    test_vec.py:TestVec.test_worse_cpu
"""


NAMES = ("a", "b", "text", "sentence", "end", "worse", "lost")


def results(**statuses: str) -> dict:
    """What the runner leaves of one file."""
    return {"test_vec.py": {"tests": {f"warp.tests.test_vec.TestVec.test_{n}_cpu": {"status": s}
                                      for n, s in statuses.items()}}}  # fmt: skip


def test_tests_are_passed_or_missed_for_a_reason_or_named():
    text = "test_vec.py\n" + "".join(f"  TestVec.test_{n}_cpu\n" for n in NAMES)
    tests = [*expected(text + "test_mat.py\n  TestMat.test_not_run\n")]
    assert tests[0] == Case("test_vec.py", "TestVec.test_a_cpu") and len(tests) == 8
    given = results(a="pass", b="xfail", text="error", sentence="fail", end="crash", worse="fail")
    found = judge(tests, given, reasons(REASONS))
    assert [*found] == ["types_math"]
    outcome = found["types_math"]
    assert outcome.counts() == (7, 6, 2, 1, 1)  # how Warp is made does not count
    assert [t.name for t in outcome.unexplained] == ["TestVec.test_lost_cpu"]
    shown = page({"python": "3.13.1"}, found)
    for area in ("types_math", "all"):
        # 2 of 6; 2 of the 5 without the sentence; 2 of the 4 without what asks the opposite, too
        assert f"| {area} | 7 | 6 | 2 | 33.3 % | 1 | 40.0 % | 1 | 50.0 % |\n" in shown
    assert "* it reads C++: `test_vec.py` text\n" in shown and "* we know better: `test_vec.py` worse\n" in shown
    assert "Warp's own sentence\n\n* it wants Warp's sentence: `test_vec.py` sentence\n" in shown
    assert "promises\n\n* [nothing ends](differences.md#errors): it waits for the end: `test_vec.py` end\n" in shown
    assert "tests of what is missing\n\n* `test_vec.py` lost\n" in shown


def test_an_area_of_which_nothing_counts_has_no_percentage():
    (outcome,) = judge([Case("test_vec.py", "TestVec.test_text_cpu")], results(text="fail"), reasons(REASONS)).values()
    assert "| types_math | 1 | 0 | 0 |  | 0 |  | 0 |  |\n" in page({"python": "3.13.1"}, {"types_math": outcome})


def test_a_test_that_passes_needs_no_reason():
    (outcome,) = judge([Case("test_vec.py", "TestVec.test_text_cpu")], results(text="pass"), reasons(REASONS)).values()
    assert outcome.counts() == (1, 1, 1, 0, 0) and not outcome.missed


def test_reasons_are_checked():
    assert reasons(REASONS)[0] == Reason("implementation", "it reads C++", ("test_vec.py:*text*",))
    with pytest.raises(ValueError, match="begins with one of implementation, wording, promise, decision"):
        reasons("later: not now\n  *\n")
    with pytest.raises(ValueError, match="no test has the reason 'none'"):
        reasons("decision: none\n")
    with pytest.raises(ValueError, match="begins with a link to the section that gives it: not 'nothing ends'"):
        reasons("promise: nothing ends\n  *\n")


def test_every_promise_is_given_in_the_documentation():
    docs = HERE.parents[1] / "docs"
    given = [r.text for r in reasons((HERE / "reasons.txt").read_text(encoding="utf-8")) if r.kind == "promise"]
    assert len(given) > 5
    for text in given:
        page, section = LINK.match(text).groups()
        titles = re.findall(r"^#+ (.+)$", (docs / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert section in [re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in titles], text


def test_every_pattern_of_the_reasons_fits_a_test_that_warp_passes():
    from fnmatch import fnmatchcase

    tests = [*expected((HERE / "warp-1.19-cpu.txt").read_text(encoding="utf-8"))]
    assert len(tests) == 4176 and {area_of(t.file) for t in tests} >= {"core", "utils", "tile"}
    for reason in reasons((HERE / "reasons.txt").read_text(encoding="utf-8")):
        for pattern in reason.patterns:
            assert any(fnmatchcase(str(t), pattern) for t in tests), pattern
