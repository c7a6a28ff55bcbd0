"""The kernel cache keeps what it is given, survives torn files and other processes, and stays within its limit."""

import subprocess
import sys
from pathlib import Path

import pytest

from treadle.base.binary import Binary
from treadle.base.config import config
from treadle.base.digest import digest
from treadle.runtime import cache

ROOT = Path(__file__).resolve().parents[2]
KEY = digest("a kernel")


@pytest.fixture(autouse=True)
def own_folder(tmp_path):
    before = config.kernel_cache_dir
    config.kernel_cache_dir = str(tmp_path)
    yield tmp_path
    config.kernel_cache_dir, config.cache_kernels = before, True


def binary(size=1000):
    return Binary(
        bytes(range(256)) * (size // 256 + 1), ("a", "b"), ("malloc",), {"order": "free", "own_index": [{"path": [0]}]}
    )


def test_code_comes_back_as_it_was():
    assert cache.load(KEY) is None
    assert cache.store(KEY, binary()) == binary()
    assert cache.load(KEY) == binary()


def test_what_store_gives_is_what_load_gives():
    made = cache.store(KEY, Binary(b"x", ("a",), (), {"pairs": [(1, 2)], 3: "three"}))
    assert made == cache.load(KEY) and made.meta == {"pairs": [[1, 2]], "3": "three"}


@pytest.mark.parametrize(
    "damage",
    [lambda d: d[:-1], lambda d: d[:5], lambda d: b"", lambda d: d[:40] + b"!" + d[41:], lambda d: b"\0" * len(d)],
)
def test_a_damaged_file_counts_as_absent(own_folder, damage):
    cache.store(KEY, binary())
    (path,) = (p for p in own_folder.rglob("*") if p.is_file())
    path.write_bytes(damage(path.read_bytes()))
    assert cache.load(KEY) is None
    cache.store(KEY, binary())
    assert cache.load(KEY) == binary()


def test_manifests_are_kept_newest_first():
    short = digest("short")
    assert cache.manifests(short) == []
    cache.add_manifest(short, ["code", [["g", 1.5]]], KEY)
    cache.add_manifest(short, ["code", [["g", 2]]], "other")
    assert cache.manifests(short) == [(["code", [["g", 2]]], "other"), (["code", [["g", 1.5]]], KEY)]
    cache.add_manifest(short, ["code", []], KEY)
    assert [key for _, key in cache.manifests(short)] == [KEY, "other"]


@pytest.mark.parametrize("garbage", [b"[[1,", b"{}", b"7", b'[["a"]]', b"[[1, 2]]", b"\xff\xfe"])
def test_garbage_manifests_count_as_none(own_folder, garbage):
    short = digest("short")
    cache.add_manifest(short, 1, KEY)
    (path,) = (own_folder / "manifest").rglob(short)
    path.write_bytes(garbage)
    assert cache.manifests(short) == []


def test_settings_are_followed_at_run_time(tmp_path):
    cache.store(KEY, binary())
    config.cache_kernels = False
    assert cache.load(KEY) is None and cache.manifests("x") == []
    config.cache_kernels = True
    config.kernel_cache_dir = str(tmp_path / "other")
    assert cache.load(KEY) is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    config.kernel_cache_dir = str(tmp_path / "file" / "cache")
    assert cache.store(KEY, binary()) == binary() and cache.load(KEY) is None


def test_clear_removes_everything():
    cache.store(KEY, binary())
    cache.add_manifest("ab", 1, KEY)
    cache.clear()
    assert cache.load(KEY) is None and cache.manifests("ab") == []


def test_the_oldest_files_go_first(own_folder):
    import os

    keys = [digest(str(i)) for i in range(5)]
    for age, key in enumerate(keys):
        cache.store(key, binary(10_000))
        os.utime(own_folder / "code" / key[:2] / key, (age, age))
    cache.trim(32_000)
    assert [cache.load(k) is not None for k in keys] == [False, False, True, True, True]


WRITER = """
import sys
from treadle.base.binary import Binary
from treadle.base.config import config
from treadle.runtime import cache
config.kernel_cache_dir = sys.argv[1]
for round in range(60):
    for key in ("aa1", "bb2", "cc3"):
        found = cache.load(key)
        assert found is None or found.code == key.encode() * 5000, "torn"
        cache.store(key, Binary(key.encode() * 5000, (key,)))
        cache.add_manifest("dd4", [key, round], key)
        assert all(m[0] == k for m, k in cache.manifests("dd4"))
"""


def test_several_processes_share_it(own_folder):
    children = [subprocess.Popen([sys.executable, "-c", WRITER, str(own_folder)], cwd=ROOT) for _ in range(3)]
    assert [c.wait(timeout=60) for c in children] == [0, 0, 0]
    assert cache.load("aa1").code == b"aa1" * 5000
    assert not list(own_folder.rglob(".new*"))


def test_notes_come_back_as_json_has_them(own_folder):
    key = digest("a question")
    assert cache.note(key) is None
    cache.keep_note(key, {"answer": ("a", 1)})
    assert cache.note(key) == {"answer": ["a", 1]}
    (path,) = (own_folder / "note").rglob(key)
    path.write_bytes(b"{")
    assert cache.note(key) is None
    cache.keep_note(key, 1)
    cache.clear()
    assert cache.note(key) is None


def test_it_says_whether_it_is_empty():
    assert cache.is_empty()
    cache.keep_note(KEY, 1)
    assert cache.is_empty()
    cache.store(KEY, binary())
    assert not cache.is_empty()
    config.cache_kernels = False
    assert cache.is_empty()
