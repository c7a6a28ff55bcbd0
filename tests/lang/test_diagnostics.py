"""What is told of the machine and the process."""

import re

import pytest

import treadle as wp
from treadle.lang import diagnostics, session

pytestmark = pytest.mark.host


def test_diagnostics(capsys):
    facts = wp.print_diagnostics()
    said = capsys.readouterr().out
    assert said.startswith("Software\n") and wp.__version__ in said and facts["llvm"] in said
    assert facts["warp_native"] == wp.config.version == diagnostics.language_level() != facts["warp_python"]
    assert facts["devices"] == [{"alias": "cpu", "name": wp.get_device("cpu").name}] and not facts["cuda_enabled"]
    assert facts["cpu_features"] and not any(name.startswith("-") for name in facts["cpu_features"])
    assert "torch" not in facts or re.match(r"\d", facts["torch"])


def test_versions_can_be_compared():
    for version in (wp.__version__, wp.config.version, diagnostics.llvm_version()):
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)


def test_a_key_names_the_machine():
    key = wp.get_cpu_kernel_cache_key()
    assert key.startswith(wp.__version__) and re.search(r"-[0-9a-f]{8}$", key)


def test_memory_is_tracked_from_the_start(monkeypatch):
    from treadle.runtime import tracking

    monkeypatch.setattr(wp.config, "track_memory", True)
    monkeypatch.setattr(session, "_started", False)
    wp.init()
    try:
        a = wp.zeros(77, dtype=wp.uint8)
        assert f"77 B on cpu: {__file__}" in tracking.report() and a.size == 77
    finally:
        tracking.stop()
