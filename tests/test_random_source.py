"""Random kernels give, in every gang width, what Python itself gives thread by thread (see tests.random_source.py)."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

import treadle as wp
from tests.random_source import Writer

N = 45
X = [(k * 7919 + 13) % 1009 for k in range(N)]


class Element(list):
    """A list with the ``shape`` that kernels ask arrays for."""

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)


def by_python(source: str) -> list[int] | None:
    """What the program means: each thread run by Python, or None if one reads a name that nothing assigned."""
    language = SimpleNamespace(kernel=lambda function: function, array=lambda dtype: None, abs=abs, min=min)
    names: dict = {}
    exec(source.replace("import treadle as wp", ""), {"wp": language}, names)
    out = [-1] * N
    for thread in range(N):
        language.tid = lambda thread=thread: thread
        try:
            names["kernel"](Element(X), out)
        except UnboundLocalError:
            return None
    return out


def by_treadle(source: str, path, width: int) -> list[int] | None:
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out = wp.full(N, -1, dtype=int)
    before, wp.config.gang_width = wp.config.gang_width, width
    try:
        wp.launch(module.kernel, dim=N, inputs=[wp.array(X, dtype=int), out])
        wp.synchronize()
    except UnboundLocalError:
        return None
    finally:
        wp.config.gang_width = before
    return out.numpy().tolist()


@pytest.mark.parametrize("width", [1, 8, 16])
@pytest.mark.parametrize("seed", [*range(40), 5173])  # the last one ended the process in one of LLVM's passes
def test_means_what_python_means(tmp_path, seed, width):
    source = Writer(seed, maybe=seed % 4 == 3).kernel()
    assert by_treadle(source, tmp_path / f"program_{seed}_{width}.py", width) == by_python(source), source


def test_the_programs_are_worth_running():
    """They branch, loop and leave, most of them finish, and some read what nothing assigned."""
    sources = [Writer(seed, maybe=seed % 4 == 3).kernel() for seed in range(40)]
    text, results = "".join(sources), [by_python(source) for source in sources]
    assert all(text.count(word) > 20 for word in ("if ", "for ", "while ", "break", "continue", "return", " and "))
    assert 2 <= results.count(None) <= 10
    distinct = [len(set(result)) for result in results if result is not None]
    assert np.median(distinct) > 5
