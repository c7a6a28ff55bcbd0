"""ScopedTimer measures, prints, gathers and nests."""

import time

from treadle.runtime.timer import ScopedTimer


def test_time_is_measured_and_printed(capsys):
    with ScopedTimer("outer") as outer, ScopedTimer("inner"):
        time.sleep(0.01)
    inner_line, outer_line = capsys.readouterr().out.splitlines()
    assert inner_line.startswith("\tinner took ") and outer_line == f"outer took {outer.elapsed:.2f} ms"
    assert outer.elapsed >= 10


def test_times_are_gathered():
    times = {}
    for _ in range(3):
        with ScopedTimer("step", print=False, dict=times, synchronize=True):
            pass
    assert len(times["step"]) == 3 and all(t >= 0 for t in times["step"])


def test_an_inactive_timer_does_nothing(capsys):
    with ScopedTimer("x", active=False) as timer:
        pass
    assert capsys.readouterr().out == "" and timer.elapsed == 0.0


def test_reports_and_profiles(capsys):
    seen = []
    with ScopedTimer("x", detailed=True, report_func=lambda results, indent: seen.append((results, indent))):
        pass
    assert seen == [([], "")] and "function calls" in capsys.readouterr().out
