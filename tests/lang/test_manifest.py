"""What a compile depended on has a name, or the kernel is compiled anew by every process."""

from __future__ import annotations

import dataclasses
import enum

import numpy as np
import pytest

import treadle as wp
from treadle.lang.compile import Options, translate
from treadle.lang.manifest import Unknown, holds, value_digest

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


@pytest.mark.parametrize("value", [object(), {1}, table, lambda x: x, [[[[[[[[[[[]]]]]]]]]]]], ids=str)
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


def test_a_kernel_that_reads_an_array_from_outside_is_compiled_by_every_process():
    out = wp.zeros(1, dtype=int)
    wp.launch(length_of_table, dim=1, inputs=[out])
    assert out.list() == [7] and manifest(length_of_table) is None
