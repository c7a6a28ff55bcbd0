"""The book of memory: what was taken where, what lives, what the most was."""

import gc
import io
import threading

import pytest

import treadle as wp


def text(tracker, **options):
    out = io.StringIO()
    tracker.report(out, **options)
    return out.getvalue()


@pytest.mark.host
def test_what_lives_and_the_most_that_lived():
    with wp.ScopedMemoryTracker("whole", print=False) as tracker:
        a = wp.zeros(1024, dtype=float)
        b = wp.zeros(256, dtype=float)
        with wp.ScopedMemoryTracker("part", print=False):
            c = wp.zeros(512, dtype=float)
        del b
        gc.collect()
        said = text(tracker)
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert lines[:7] == [
        "Allocation Tracking Report", "Total allocations:", "cpu 3 7.00 KiB", "Peak usage:", "cpu 7.00 KiB",
        "Live allocations:", "cpu 2 6.00 KiB",
    ]  # fmt: skip
    assert "whole on cpu: 2 allocations, 5.00 KiB" in lines and "whole/part on cpu: 1 allocations, 2.00 KiB" in lines
    assert lines[-2].startswith("4.00 KiB on cpu") and lines[-2].endswith("a = wp.zeros(1024, dtype=float)")
    assert __file__ in lines[-1] and "in test_what_lives" in lines[-1]
    wp.zeros(9999)  # nobody looks any more
    assert text(tracker) == said and a.size + c.size == 1536


def test_order_and_number_of_what_is_listed():
    with wp.ScopedMemoryTracker(print=False) as tracker:
        kept = [wp.zeros(n, dtype=wp.uint8) for n in (10, 30, 20)]
        sizes = [line.split()[0] for line in text(tracker, sort="chronological").splitlines()[-3:]]
        assert sizes == ["10", "30", "20"] and "1 of 3" in text(tracker, max_items=1)
        with pytest.raises(ValueError, match="'size' or 'chronological', not 'name'"):
            tracker.report(sort="name")
        tracker.clear()
        assert "cpu" not in text(tracker) and len(kept) == 3


@pytest.mark.host
def test_scopes_are_of_a_thread():
    arrays = []

    def work(name):
        with wp.ScopedMemoryTracker(name, print=False):
            arrays.append(wp.zeros(100))

    with wp.ScopedMemoryTracker("main", print=False) as tracker:
        threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        said = text(tracker)
    assert "    one on cpu: 1 " in said and "    two on cpu: 1 " in said and "    main/" not in said


def test_what_prints_and_what_does_not(capsys):
    heard = []
    with wp.ScopedMemoryTracker("a"), wp.ScopedMemoryTracker("b", report_func=heard.append):
        wp.print_memory_report()
        assert capsys.readouterr().out.startswith("Allocation Tracking Report")
    assert capsys.readouterr().out.count("Allocation Tracking Report") == len(heard) == 1
    with wp.ScopedMemoryTracker("off", active=False) as tracker, pytest.raises(RuntimeError, match="not tracked"):
        tracker.report()
        wp.print_memory_report()
    assert capsys.readouterr().out == ""
