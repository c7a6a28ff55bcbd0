"""Settings that threads share: made once, undone by the last one out."""

import sys
import threading

from treadle.base.together import Together


def test_the_last_one_out_undoes():
    told = []
    setting = Together(lambda: told.append("made") or (lambda: told.append("undone")))
    inside, leave = threading.Event(), threading.Event()

    def other():
        with setting:
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with setting, setting:
        thread.start()
        assert inside.wait(10)
    assert told == ["made"]
    leave.set()
    thread.join()
    assert told == ["made", "undone"]


def test_compiling_leaves_limits_that_others_set():
    from treadle.lang.targets import collector_off

    before = sys.getrecursionlimit()
    try:
        with collector_off():
            assert sys.getrecursionlimit() >= 10_000
            sys.setrecursionlimit(12_345)
        assert sys.getrecursionlimit() == 12_345
    finally:
        sys.setrecursionlimit(before)
