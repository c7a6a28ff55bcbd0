"""Forward mode, reverse mode and difference quotients agree on random programs (see tests/random_gradients.py)."""

from __future__ import annotations

import pytest

from tests.gradient_runs import Program, compare_modes, judge, run_forward, run_reverse

SHARE = 25  # programs a test


@pytest.mark.parametrize("first", range(0, 200, SHARE))
def test_modes_and_quotients_agree(tmp_path, first):
    verdicts = [judge(seed, tmp_path) for seed in range(first, first + SHARE)]
    wrong = [f"program {v.seed}: {text}" for v in verdicts for text in v.wrong]
    assert not wrong, "\n".join(wrong)
    judged, count = sum(v.judged for v in verdicts), sum(v.count for v in verdicts)
    print(f"difference quotients judged {judged / count:.1%} of {count} derivatives")
    assert judged > 0.9 * count


@pytest.mark.parametrize("first", range(200, 230, 10))
def test_launches_with_tangents_and_tapes_agree(tmp_path, first):
    verdicts = [judge(seed, tmp_path, launches=True) for seed in range(first, first + 10)]
    wrong = [f"program {v.seed}: {text}" for v in verdicts for text in v.wrong]
    assert not wrong, "\n".join(wrong)


def test_a_small_error_is_found(tmp_path, monkeypatch):
    program = Program(3, tmp_path)
    start, direction = program.states()
    assert not compare_modes(program, start, direction)

    def bent(*args):
        gradients = run_reverse(*args)
        for name in ("x", "y", "w"):
            gradients.of[name] *= 1 + 1e-9
        return gradients

    monkeypatch.setattr("tests.gradient_runs.run_reverse", bent)
    assert "reverse mode" in compare_modes(program, start, direction)


def test_the_programs_are_worth_judging(tmp_path):
    """They loop, leave, branch, call and update; their ends depend on what they start from."""
    programs = [Program(seed, tmp_path) for seed in range(20)]
    text = "".join(p.source for p in programs)
    words = ("if ", "for ", "while ", "break", "continue", "return", " and ", "own[", "low[", "high[", "atomic_",
             "s.mass", "turn(", "mix(", "work(", "push(", "left[", "m = ", "wp.sin", "else:")  # fmt: skip
    assert not [word for word in words if text.count(word) < 5]
    moved = [run_forward(p, *p.states())[1].of["out"] for p in programs]
    assert sum(bool(m.all()) for m in moved) > 12
