"""Nobody asks what kind of device something is on: the device is asked to do things. GPUs are named in the rooms that
make code for them, drive them, or exchange with other libraries; elsewhere only where a user names one."""

import io
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "treadle"
AT_HOME = ("codegen/nvptx", "runtime/cuda/", "interop/")

# Names that users write: questions about devices, settings of the field, attributes that other libraries look for.
NAMED_BY_USERS = {
    "runtime/device.py": {"is_cpu", "is_cuda", "cuda", "is_cuda_available", "get_cuda_device_count",
                          "get_cuda_devices"},
    "runtime/cpu.py": {"is_cpu"},
    "runtime/allocators.py": {"CUDA_DEVICE", "CUDA_MEMPOOL", "CUDA_MANAGED", "get_cuda_devices", "set_cuda_allocator"},
    "runtime/array.py": {"__cuda_array_interface__"},
    "runtime/timer.py": {"cuda_filter"},
    "runtime/timing.py": {"cuda_filter"},
    "lang/kernel.py": {"cuda_max_registers", "enable_cuda_smem_spilling"},
    "lang/session.py": {"is_cuda_enabled", "cuda_devices", "cuda", "get_cuda_driver_version"},
}  # fmt: skip


def names_in(text: str) -> set[str]:
    """The names in a source that ask for a kind of device, or name one."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    words = {t.string for t in tokens if t.type == tokenize.NAME}
    return {word for word in words if "cuda" in word.lower() or word == "is_cpu"}


def violations(root: Path) -> list[str]:
    found = []
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root).as_posix()
        if not where.startswith(AT_HOME):
            wrong = names_in(path.read_text(encoding="utf-8")) - NAMED_BY_USERS.get(where, set())
            found += [f"{where} says {name}: ask the device to do it" for name in sorted(wrong)]
    return found


def test_devices_are_asked_to_do_things():
    assert violations(ROOT) == []


def test_no_exception_is_left_over():
    for where, names in NAMED_BY_USERS.items():
        assert names <= names_in((ROOT / where).read_text(encoding="utf-8")), where


@pytest.mark.parametrize(
    ("where", "source", "count"),
    [
        ("lang/a.py", "def f(d):\n    return 1 if d.is_cuda else 2", 1),
        ("runtime/a.py", "if not device.is_cpu:\n    pass", 1),
        ("utils/a.py", "from ..runtime.cuda import find", 1),
        ("runtime/cuda/a.py", "is_cuda = True", 0),
        ("interop/a.py", "where.is_cuda", 0),
        ("lang/b.py", "x = 'cuda:0'  # a name of a user's", 0),
    ],
)
def test_the_rule_has_teeth(tmp_path, where, source, count):
    path = tmp_path / where
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert len(violations(tmp_path)) == count
