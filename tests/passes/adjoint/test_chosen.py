"""Views that an ``if`` gives: it gives their gradients as well, and whether they have one."""

import pytest

import treadle as wp
from tests.passes.adjoint.test_ruled import primal
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.passes.adjoint import reverse
from treadle.types.core import View, b1

A2 = wp.array2d(dtype=wp.float64)


@wp.kernel
def chooses(a: A2, b: A2, y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    row = a[i]
    if i % 2 == 0:
        row = b[i]
    y[i] = row[0] * row[0]


@pytest.mark.parametrize("active, expected", [(("a", "b", "y"), [True, True]), (("a", "y"), [False, True])])
def test_an_if_gives_the_view_its_gradient_and_whether_there_is_one(active, expected):
    func = verify(reverse(primal(chooses), active), scalar=True)
    (op,) = [op for op in ops_of(func.body) if op.name == "if" and any(isinstance(r.type, View) for r in op.results)]
    view, gradient, there = op.results
    assert view.type is gradient.type and there.type is b1
    known = {r: inner.attrs["value"] for inner in ops_of(func.body) if inner.name == "const" for r in inner.results}
    assert [known[region.yields[-1]] for region in op.regions] == expected
