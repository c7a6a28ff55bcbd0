"""What kernels are compiled for."""

import pytest

from treadle.base.config import config
from treadle.codegen import cpu
from treadle.lang import targets


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """How often LLVM is asked for the processor, with a cache of one's own."""
    found = []
    real = cpu.host_target
    monkeypatch.setattr(cpu, "host_target", lambda *a: found.append(1) or real(*a))
    before, config.kernel_cache_dir = config.kernel_cache_dir, str(tmp_path)
    yield found
    config.kernel_cache_dir = before
    targets.host.cache_clear()


def test_the_processor_is_remembered_for_its_machine_alone(asked, monkeypatch):
    answers = []
    for here in ("one", "one", "another", "one", "", ""):
        monkeypatch.setattr(targets, "machine", lambda here=here: here)
        targets.host.cache_clear()
        answers.append(targets.host(None))
    assert len(asked) == 4  # one, another, and each time where the system does not say
    assert len({*answers}) == 1 and targets.host(4) == answers[0]._replace(width=4)
