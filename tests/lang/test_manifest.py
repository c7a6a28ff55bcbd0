"""What a compile depended on has a name, or the kernel is compiled anew by every process."""

from __future__ import annotations

import dataclasses
import enum
import marshal

import numpy as np
import pytest

import treadle as wp
from treadle.frontend.source import Source
from treadle.lang.compile import Options, translate
from treadle.lang.manifest import Unknown, code_digest, holds, value_digest

table = wp.zeros(7, dtype=float)
FACTOR = 3


class Kind(enum.Enum):
    SOFT = 1
    HARD = 2


@dataclasses.dataclass
class Settings:
    rate: float
    kind: Kind


@wp.func
def inner(x: int):
    return x * FACTOR


@wp.kernel
def use(out: wp.array(dtype=int)):
    out[0] = inner(2)


@wp.kernel
def length_of_table(out: wp.array(dtype=int)):
    out[0] = table.shape[0]


def manifest(kernel):
    return translate(kernel, kernel.declared_variants()[0].types, Options(16, False, False, 8)).kept


def test_values_are_told_apart_by_type_and_content():
    values = [
        1, 1.0, True, "1", (1,), [1], {1: 2}, {2: 1}, None, Kind.SOFT, Kind.HARD, Kind, wp.vec3(1.0, 2.0, 3.0),
        wp.vec3d(1.0, 2.0, 3.0), wp.float32(1.0), np.float32(1.0), np.arange(3), np.arange(3.0), wp.vec3, wp.sin,
        wp.cos, Settings(1.0, Kind.SOFT), Settings(1.0, Kind.HARD), wp.zeros, np, inner,
    ]  # fmt: skip
    assert len({value_digest(v) for v in values}) == len(values)
    assert value_digest(Settings(1.0, Kind.SOFT)) == value_digest(Settings(1.0, Kind.SOFT))


@pytest.mark.parametrize("value", [object(), {1}, table, lambda x: x, [[[[[[[[[[[]]]]]]]]]]]],
                         ids=["object", "set", "array", "lambda", "nested"])  # fmt: skip
def test_content_without_a_name_is_unknown(value):
    with pytest.raises(Unknown):
        value_digest(value)


def test_a_node_holds_until_a_value_changes(monkeypatch):
    node, _ = manifest(use)
    assert holds(node, use.source)
    monkeypatch.setitem(globals(), "FACTOR", 4)
    assert not holds(node, use.source)


def test_whether_a_function_is_copied_into_callers_counts(monkeypatch):
    node, _ = manifest(use)
    monkeypatch.setattr(inner, "inline", False)
    assert not holds(node, use.source)


class Space:
    """Functions and numbers by attribute."""

    inner = inner
    twice = 2


LISTED = [inner]


@wp.kernel
def reach(out: wp.array(dtype=int)):
    out[0] = Space.inner(Space.twice)
    for i in range(wp.static(len(LISTED))):
        out[1] = wp.static(LISTED[i])(3)


def captured(f):
    @wp.kernel
    def call(out: wp.array(dtype=int)):
        out[0] = f(2)

    return call


@wp.func
def other(x: int):
    return x - FACTOR


@pytest.mark.parametrize("change", ["factor", "attribute", "number"])
def test_what_is_reached_through_attributes_lists_and_closures_counts(monkeypatch, change):
    kernels = [reach, captured(inner)]
    nodes = [manifest(k)[0] for k in kernels]
    assert [holds(node, k.source) for node, k in zip(nodes, kernels, strict=True)] == [True, True]
    if change == "factor":  # what the function inside reads
        monkeypatch.setitem(globals(), "FACTOR", 5)
        assert not any(holds(node, k.source) for node, k in zip(nodes, kernels, strict=True))
    elif change == "attribute":
        monkeypatch.setattr(Space, "inner", other)
        assert not holds(nodes[0], reach.source)
    else:
        monkeypatch.setattr(Space, "twice", 3)
        assert not holds(nodes[0], reach.source)
    assert not holds(nodes[1], captured(other).source)


def test_a_list_of_functions_counts_where_it_is_declared():
    def declared(functions):
        @wp.kernel
        def listed(out: wp.array(dtype=int)):
            for i in range(wp.static(len(functions))):
                out[i] = wp.static(functions[i])(3)

        return listed

    node, _ = manifest(declared([inner, other]))
    assert holds(node, declared([inner, other]).source)
    assert not holds(node, declared([other, inner]).source)


def test_a_kernel_that_reads_an_array_from_outside_is_compiled_by_every_process():
    out = wp.zeros(1, dtype=int)
    wp.launch(length_of_table, dim=1, inputs=[out])
    assert out.list() == [7] and manifest(length_of_table) is None


BODY = """
def f(x: float, n: int = 3, kind="soft"):
    total = 0.5
    for i in range(n):
        if i in {1, 5, 9}:
            total += x * 2.0
    return total
"""


def code_of(text, through_a_file=False):
    code = compile(text, "program.py", "exec")
    names = {}
    exec(marshal.loads(marshal.dumps(code)) if through_a_file else code, names)
    return code_digest(Source(names["f"]))


def test_equal_code_has_one_digest_however_it_was_loaded():
    kept = [code_of(BODY), code_of(BODY, through_a_file=True)]
    constants = [float("0.5"), float("2.0"), {1, 5, 9}]  # objects that the rest of the process shares
    assert len({*kept, code_of(BODY)}) == 1 and constants


@pytest.mark.parametrize("old, new", [
    ("2.0", "2"), ("2.0", "-2.0"), ("0.5", "0.0"), ("0.0", "-0.0"), ("n: int", "n: float"), ("= 3", "= 3.0"),
    ('"soft"', '"hard"'), ("{1, 5, 9}", "{1, 5, 8}"), ("x * 2.0", "x / 2.0"), ("total", "sum"), ("\ndef", "\n\ndef"),
    ("if i", "if  i"), ("kind=", "*, kind="),
])  # fmt: skip
def test_any_other_code_has_another_digest(old, new):
    text = BODY.replace("0.5", old) if old not in BODY else BODY
    changed = text.replace(old, new)
    assert text != changed and code_of(text) != code_of(changed)
