"""The examples in the documentation of builtins are true: evaluated from Python, they print what is written."""

import doctest

import pytest

import treadle as wp
from treadle.builtins import names, registry


def examples():
    parser = doctest.DocTestParser()
    for name in names.MODULES:
        for i, record in enumerate(registry.records(name)):
            found = parser.get_doctest(record.doc, {"wp": wp}, f"{name}[{i}]", None, 0)
            if found.examples:
                yield pytest.param(found, id=found.name)


@pytest.mark.parametrize("example", list(examples()))
def test_example(example):
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert not said, "".join(said)
