"""What every test shares: a kernel cache of its own, and golden files."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from pathlib import Path

import pytest

# Before treadle is imported, and for every process that a test starts: tests never see kernels of an earlier run. The
# worker processes of one run share a folder, as their kernels are the same.
_WORKER = "PYTEST_XDIST_WORKER" in os.environ
_CACHE = os.environ["TREADLE_CACHE_DIR"] if _WORKER else tempfile.mkdtemp(prefix="treadle-tests-")
os.environ["TREADLE_CACHE_DIR"] = _CACHE

_REJECTED: list[object] = []  # worker processes of the tests with a kernel that ptxas did not accept


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files instead of comparing")
    parser.addoption("--on", default="", help="the current device of tests that name none, as cuda:0")
    parser.addoption("--emulate-gpu", action="store_true", help="let cuda:0 be a stand-in on this processor")
    parser.addoption("--objects", default="", help="also make objects for other systems: all, or names in targets.py")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--emulate-gpu"):
        from treadle.codegen.nvptx import merging

        from .runtime.cuda import standin

        standin.Driver().install(pytest.MonkeyPatch())
        merging.MERGERS = merging.SCANNERS = 8  # threads that wait for each other are threads of the system there
    else:
        from . import ptx_guard

        ptx_guard.install()
    if config.getoption("--on"):
        import treadle

        treadle.set_device(config.getoption("--on"))
    wanted = config.getoption("--objects")
    if wanted:
        from . import targets

        targets.install([*targets.FOREIGN] if wanted == "all" else wanted.split(","))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items if config.getoption("--on") else ():
        if item.get_closest_marker("host"):
            item.add_marker(pytest.mark.skip("it is about the host alone"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    from . import ptx_guard

    ptx_guard.finish(session)
    if _REJECTED:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    from . import ptx_guard

    if not ptx_guard.finished(node):
        _REJECTED.append(node)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not _WORKER:
        shutil.rmtree(_CACHE, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def _lasting():
    """What modules have made so far lasts, kernels above all: searches for garbage need not look at it again."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """``golden("if_else.txt", text)`` compares ``text`` with that file in the folder ``golden`` beside the test."""

    def compare(name: str, text: str) -> None:
        path = Path(request.path).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {path}; run pytest with --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return compare
