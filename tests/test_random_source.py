"""Random kernels give, in every gang width, what Python itself gives thread by thread (see tests/random_source.py), and
what the oracle gives, for all types (see tests/random_typed.py)."""

from __future__ import annotations

import importlib.util
import inspect
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import treadle as wp
from tests import random_runs
from tests.random_source import ATOMICS, Writer
from tests.random_typed import ELEMENTARY, Typed, module
from treadle.codegen import cpu

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


@pytest.mark.parametrize("seed", SEEDS)
def test_means_what_python_means(tmp_path, seed):
    source, width = program(seed), (1, 8, 16)[seed % 3]
    assert by_treadle(source, tmp_path / f"program_{seed}.py", width) == by_python(source), source


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


TYPED, BATCH = range(300), 25


@pytest.mark.parametrize("start", TYPED[::BATCH])
def test_machine_code_and_oracle_agree_on_all_types(tmp_path, monkeypatch, start):
    """Most programs get quick code generation and no PTX, which would take most of the time."""
    if start % 100:
        monkeypatch.setattr(cpu, "draft", inspect.unwrap(cpu.draft))
        monkeypatch.setattr(cpu, "target_machine", partial(cpu.target_machine, level=0))
    found = [*random_runs.against_oracle(range(start, start + BATCH), tmp_path)]
    assert len(found) == BATCH
    assert {p.seed: said for p, said in found if said} == {}


def test_typed_programs_are_worth_running():
    """They use all types, statements and most of the builtins, and their results are not all alike."""
    programs = [Typed(seed) for seed in TYPED]
    text = "".join(p.text for p in programs)
    words = ("if ", "elif ", "for ", "while ", "break", "continue", "return ", " and ", " or ", "not ", "wp.zeros(",
             "Struct", "atomic_add", "atomic_max", "wp.where(", "//", " % ", "<<", ">>", "cross(", "transpose(", "dot(",
             "wp.sign(", "wp.round(", "quat_inverse", "uint8", "int16", "int64", "float16", "float64")  # fmt: skip
    assert {word for word in words if text.count(word) < 5} == set()
    assert {f for f in ELEMENTARY if f"wp.{f}(" not in text} == set()
    assert len({kind for p in programs for kind in p.kinds}) > 60


def test_warp_is_not_asked_to_unroll():
    programs = [Typed(seed) for seed in TYPED]
    ours, theirs = (module(programs, language) for language in ("treadle", "warp"))
    assert ours.count("in range(3):") == theirs.count("in range(int(3)):") > 20 and "in range(3):" not in theirs


def test_a_difference_is_found_and_said():
    program = Typed(3)
    found, wanted = random_runs.arguments(program), random_runs.arguments(program)
    assert random_runs.differences(program, found, wanted) == ""
    found["o_int32"][4, 2] = 7
    assert random_runs.differences(program, found, wanted) == "o_int32[4, 2]: 7, not 0"
