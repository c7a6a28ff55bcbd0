"""The runner of other people's tests: what a file's tests do is told, also where they end or hang the process."""

from __future__ import annotations

import os
import sys

import pytest

from tests.conformance.run import HERE, run_file

PROGRAM = """
import importlib, os, pathlib, time, unittest
import warp as wp

class TestAll(unittest.TestCase):
    def test_1_good(self):
        self.assertEqual(wp.__name__, "treadle")
    def test_2_bad(self):
        self.assertEqual(1, 2)
    def test_3_broken(self):
        wp.nothing_of_the_kind
    def test_4_dies(self):
        os._exit(-9)
    def test_5_left_out(self):
        self.skipTest("why")
    def test_6_parts(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)
    @unittest.expectedFailure
    def test_7_known(self):
        self.fail()
    def test_8_hangs(self):
        time.sleep(60)
    def test_9_after_all(self):
        written = pathlib.Path(__file__).with_name("written.py")
        written.write_text("x = 1")
        import written as module
        written.write_text("x = 2")
        self.assertEqual(importlib.reload(module).x, 2)
"""
WANTED = "pass fail error crash skip fail xfail hangs pass".split()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="the runner ends groups of processes")
def test_all_that_can_become_of_a_test(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "no_module.py").write_text("import there_is_none")
    path = os.pathsep.join([str(HERE / "site"), str(HERE.parents[1]), str(tmp_path), *sys.path[1:]])
    environment = {**os.environ, "PYTHONPATH": path}
    result = run_file("program", environment, (4.0, 60.0))
    tests = {name.rpartition(".")[2]: test["status"] for name, test in sorted(result["tests"].items())}
    assert [*tests.values()] == WANTED and "problem" not in result
    assert "treadle has no" in result["tests"]["program.TestAll.test_3_broken"]["message"]
    broken = run_file("no_module", environment, (4.0, 60.0))
    assert broken["tests"] == {} and "there_is_none" in broken["problem"]
