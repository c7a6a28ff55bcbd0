"""Sums into vectors: the components of an element are updated at once, in thread order."""

import numpy as np
import pytest

from tests.codegen.harness import KernelBuilder, agrees_with_oracle, same_on_all_widths
from treadle.codegen import cpu
from treadle.codegen.emit.atomics import plan
from treadle.ir.verify import verify
from treadle.types.core import f32, f64, i32, matrix, vector, view

N = 300
rng = np.random.default_rng(11)


class Sums(KernelBuilder):
    """A kernel that adds to elements of ``f`` at places that ``where`` names."""

    def __init__(self, elem, planar: bool = False):
        strides = (elem.elem.size,) if planar else (elem.size,)
        super().__init__((view(elem, 1, strides, planar=planar), view(i32, 2), view(elem.elem, 1)))
        self.f, self.where, values = self.params
        self.i = self.tid()
        self.x = self.load(values, self.i)

    def at(self, column: int):
        return self.load(self.where, self.i, self.const(column, i32))

    def part(self, index: int):
        t = self.f.type
        return self.b.one("field", (self.f,), view(t.elem.elem, 1, t.strides), index=index)

    def update(self, at, parts, op: str = "add", factor: float = 1.0):
        for index in parts:
            number = int if self.x.type is i32 else float
            x = self.op("mul", self.x, self.const(number(factor + index), self.x.type))
            self.b.one("atomic", (self.part(index), at, x), x.type, op=op)

    def rows(self) -> list[int]:
        """How many components the updates that go together have."""
        return sorted(len(p.row) for p in plan(self.func(), "free").plans.values() if p.how != "joined")

    def run(self):
        func = verify(self.func(), scalar=True)
        elem, planar = self.f.type.elem, self.f.type.planar
        size = (elem.rows, elem.cols) if elem.n == 9 else (elem.n,)
        dtype = np.float64 if elem.elem is f64 else np.float32 if elem.elem is f32 else np.int32

        where = rng.integers(0, 20, (N, 2)).astype(np.int32)
        values = (rng.uniform(-1, 1, N) * 100).astype(dtype)

        def make():
            f = np.zeros((*size, 20) if planar else (20, *size), dtype)
            return np.moveaxis(f, -1, 0) if planar else f, where, values

        found = same_on_all_widths(func, N, make)
        agrees_with_oracle(func, N, make, *found)
        assert found[0].any()


@pytest.mark.parametrize("elem", [vector(n, t) for n in (2, 3, 4) for t in (f32, f64, i32)], ids=repr)
def test_the_force_of_a_spring(elem):
    """Two ends; a thread's two updates of floats are held, since they may meet those of other threads."""
    k = Sums(elem)
    k.update(k.at(0), range(elem.n))
    k.update(k.at(1), range(elem.n), "sub")
    assert k.rows() == [elem.n] * 2
    assert {p.how for p in plan(k.func(), "free").plans.values()} == {"joined", "copy" if elem.elem is i32 else "noted"}
    k.run()


def test_one_update_of_a_vector_need_not_be_held():
    k = Sums(vector(3, f32))
    k.update(k.at(0), (2, 1, 0))
    assert {p.how for p in plan(k.func(), "free").plans.values()} == {"joined", "copy"}
    k.run()


def test_matrices_have_several_rows():
    k = Sums(matrix(3, 3, f32))
    k.update(k.at(0), range(9))
    k.update(k.at(1), range(9), "sub")
    assert k.rows() == [0, 0, 4, 4, 4, 4]
    k.run()


def test_components_with_gaps_and_planes_are_updated_one_by_one():
    k = Sums(vector(4, f32))
    k.update(k.at(0), (0, 2, 3))
    assert k.rows() == [0, 2]
    k.run()
    k = Sums(vector(3, f32), planar=True)
    k.update(k.at(0), (0, 1, 2))
    k.update(k.at(1), (0, 1, 2))
    assert k.rows() == [0] * 6
    k.run()


def test_other_updates_in_between_keep_their_place():
    k = Sums(vector(3, f32))
    a, b = k.at(0), k.at(1)
    k.update(a, (0, 1))
    k.update(b, (0,), factor=1e4)
    k.update(a, (2,), factor=3)
    assert k.rows() == [0] * 4  # the first component is held, the others are not
    k.run()
    k = Sums(vector(3, f32))
    a, b = k.at(0), k.at(1)
    k.update(a, (0, 1))
    k.update(b, (0, 1), factor=1e4)
    k.update(a, (2,), factor=3)
    assert k.rows() == [0, 2, 2]
    k.run()


def test_updates_in_branches_and_after_a_check():
    k = Sums(vector(3, f32))
    a, b = k.at(0), k.at(1)
    k.if_(k.op("lt", k.x, k.const(20.0, f32)), lambda: (k.update(a, range(3)), [])[1],
          lambda: (k.update(b, range(3), factor=1e3), [])[1])  # fmt: skip
    k.update(b, (0, 1, 2), "sub", 7.0)
    k.run()


def test_many_updates_are_applied_in_a_loop():
    k = Sums(vector(3, f32))
    for n in range(9):
        k.update(k.at(n % 2), range(3), "sub" if n % 3 else "add", 0.1 * n)
    assert "lanes" in cpu.draft(k.func(), cpu.host_target(8)).text
    k.run()


def test_updates_in_loops_are_listed():
    k = Sums(vector(3, f32))
    a, b = k.at(0), k.at(1)

    def round_(n):
        k.if_(k.op("lt", n, a), lambda: (k.update(a, range(3)), [])[1])
        k.update(k.op("bitand", k.op("add", b, n), k.const(15, i32)), (1, 2), "sub")
        return []

    k.for_(k.const(0, i32), k.op("bitand", b, k.const(3, i32)), k.const(1, i32), [], round_)
    assert {p.how for p in plan(k.func(), "free").plans.values()} == {"joined", "listed"}
    k.run()
