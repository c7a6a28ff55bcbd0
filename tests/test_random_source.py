"""Random kernels give, in every gang width, what Python itself gives thread by thread (see tests/random_source.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import treadle as wp
from tests.random_source import ATOMICS, Writer

N = 45
X = [(k * 7919 + 13) % 1009 for k in range(N)]
SEEDS = range(36)
Result = tuple[list[int], list[int]] | None  # per thread, and what they share; None if a name was unassigned


def program(seed: int) -> str:
    """Every fifth program may read an unassigned name; three of four use atomics in one way or another."""
    return Writer(seed, maybe=seed % 5 == 3, atomics=ATOMICS[seed % 4]).module()


class Element(list):
    """A list with the ``shape`` that kernels ask arrays for."""

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)


def atomic_add(array: list[int], index: int, value: int) -> int:
    before = array[index]
    array[index] = (before + value) & 0xFFFFFFFF
    return before if before < 2**31 else before - 2**32


def by_python(source: str) -> Result:
    """What the program means: each thread run by Python, in order."""
    language = SimpleNamespace(
        kernel=lambda f: f, func=lambda f: f, array=lambda dtype: None, abs=abs, min=min, atomic_add=atomic_add
    )
    names: dict = {}
    exec(source.replace("import treadle as wp", ""), {"wp": language} | names, names)
    scope = names["kernel"].__globals__
    scope.update(names)
    out, shared = [-1] * N, [0] * 3
    for thread in range(N):
        language.tid = lambda thread=thread: thread
        try:
            names["kernel"](Element(X), out, shared)
        except UnboundLocalError:
            return None
    return out, shared


def by_treadle(source: str, path: Path, width: int) -> Result:
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out, shared = wp.full(N, -1, dtype=int), wp.zeros(3, dtype=int)
    before, wp.config.gang_width = wp.config.gang_width, width
    try:
        wp.launch(module.kernel, dim=N, inputs=[wp.array(X, dtype=int), out, shared])
    except UnboundLocalError:
        return None
    finally:
        wp.config.gang_width = before
    return out.numpy().tolist(), shared.numpy().tolist()


@pytest.mark.parametrize("width", [1, 8, 16])
@pytest.mark.parametrize("seed", SEEDS)
def test_means_what_python_means(tmp_path, seed, width):
    source = program(seed)
    assert by_treadle(source, tmp_path / f"program_{seed}_{width}.py", width) == by_python(source), source


def test_the_programs_are_worth_running():
    """They branch, loop and leave, most of them finish, and some read what nothing assigned."""
    sources = [program(seed) for seed in SEEDS]
    text, results = "".join(sources), [by_python(source) for source in sources]
    words = ("if ", "for ", "while ", "break", "continue", "return", " and ", "helper(", "float(", "atomic_add(")
    assert all(text.count(word) > 20 for word in words)
    assert 2 <= results.count(None) <= len(SEEDS) // 5
    finished = [result for result in results if result is not None]
    assert np.median([len(set(out)) for out, _ in finished]) > 5
    assert sum(any(shared) for _, shared in finished) > len(SEEDS) // 3
