"""Examples in the documentation of the engine give what they say; each public function has one."""

import doctest
import inspect

import pytest

import treadle.mujoco as mjw

FUNCTIONS = {name: getattr(mjw, name) for name in mjw.__all__ if inspect.isfunction(getattr(mjw, name))}
FUNCTIONS["Model.expand"] = mjw.Model.expand
NEEDS = {"jax_function": "jax"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_example_gives_what_it_says(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    text = FUNCTIONS[name].__doc__
    assert "Raises:" in text and "Example:" in text
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert example.examples
    said = []
    doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert not said, "".join(said)
