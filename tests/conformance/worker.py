"""Run one unittest module and write what happens, a JSON object a line: ``worker.py MODULE EVENTS [DONE]``.

DONE names a file of tests that are left out, one a line.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import traceback
import unittest
from collections.abc import Iterator
from pathlib import Path

WORST = ("pass", "xfail", "skip", "upass", "fail", "error")  # of several, the last one counts


class Result(unittest.TestResult):
    """Tells of each test as it starts and ends, so that it is known which one ended the process."""

    def __init__(self, tell):
        super().__init__()
        self.tell, self.test = tell, None

    def startTest(self, test):
        super().startTest(test)
        self.test, self.status, self.message, self.begin = test, "pass", "", time.perf_counter()
        self.tell(start=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        self.test = None
        seconds = round(time.perf_counter() - self.begin, 3)
        self.tell(end=test.id(), status=self.status, seconds=seconds, message=self.message[-2000:])

    def note(self, status, message=""):
        if self.test is None:  # what surrounds the tests of a class or module failed: those are not run
            self.tell(around=message[-2000:])
        elif WORST.index(status) >= WORST.index(self.status):
            self.status, self.message = status, message

    def addError(self, test, err):
        self.note("error", self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        self.note("fail", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        if test is self.test:  # not one of its parts
            self.note("skip", str(reason))

    def addExpectedFailure(self, test, err):
        self.note("xfail")

    def addUnexpectedSuccess(self, test):
        self.note("upass")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            self.note("fail" if failed else "error", self._exc_info_to_string(err, test))


def each(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """The tests of a suite and of those in it."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from each(item)
        else:
            yield item


def main(module: str, events: str, done: str = "") -> None:
    """Run the tests of ``module`` that ``done`` does not name."""
    sys.argv[:] = [module]  # some tests read the command line
    left_out = set(Path(done).read_text().splitlines()) if done else set()
    with open(events, "a", buffering=1, encoding="utf-8") as file:

        def tell(**event):
            file.write(json.dumps(event) + "\n")

        try:
            found = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(module))
        except unittest.SkipTest as reason:
            tell(skipped=str(reason))
            return
        except BaseException:  # whatever the file does while it is imported is its result
            tell(broken=traceback.format_exc()[-2000:])
            return
        import warp

        warp.init()  # what it prints belongs to no test
        tests = [*each(found)]
        tell(tests=[test.id() for test in tests])
        unittest.TestSuite([test for test in tests if test.id() not in left_out]).run(Result(tell))
        tell(finished=True)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    main(*sys.argv[1:])
