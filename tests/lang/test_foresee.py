"""The adjoint of a kernel that a tape records for the first time is on its way before anybody asks for it."""

import os
import subprocess
import sys

import pytest

import treadle as wp
from treadle.base.errors import KernelGradientError


@pytest.fixture(autouse=True)
def empty_cache(tmp_path):
    kept, wp.config.kernel_cache_dir = wp.config.kernel_cache_dir, str(tmp_path)
    yield
    wp.config.kernel_cache_dir = kept


def adjoints(kernel) -> list:
    """The adjoints of ``kernel`` that are translated, by the arrays that have gradients."""
    return [o.active for each in kernel.overloads.values() for o in each.variants if o.active is not None]


def square():
    @wp.kernel
    def kernel(x: wp.array(dtype=float), s: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * x[i] * s[i]

    return kernel


def arrays(graded: str):
    return [wp.full(8, 3.0, dtype=float, requires_grad=name in graded) for name in "xsy"]


def test_the_adjoint_is_begun_with_the_launch_and_is_the_one_that_backward_takes():
    kernel, (x, s, y) = square(), arrays("xy")
    with wp.Tape() as tape:
        wp.launch(kernel, dim=8, inputs=[x, s, y])
        assert adjoints(kernel) == [("x", "y")]
    y.grad.fill_(1.0)
    tape.backward()
    assert adjoints(kernel) == [("x", "y")]
    assert x.grad.list() == [18.0] * 8


@pytest.mark.parametrize("graded", ["", "x"])
def test_where_it_is_not_plain_which_one_that_is_backward_says(graded):
    kernel, (x, s, y) = square(), arrays(graded)
    with wp.Tape():
        wp.launch(kernel, dim=8, inputs=[x, s, y])
    assert adjoints(kernel) == []


def test_launches_that_no_tape_records_begin_with_none():
    kernel = square()
    with wp.Tape():
        wp.launch(kernel, dim=8, inputs=arrays("xy"), record_tape=False)
    other = square()
    wp.launch(other, dim=8, inputs=arrays("xy"))
    assert adjoints(kernel) == adjoints(other) == []


def test_what_has_no_derivative_is_said_by_the_backward_pass():
    @wp.kernel
    def kernel(x: wp.array(dtype=float), least: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = least[0] * x[i]
        wp.atomic_min(least, 0, x[i])

    given = arrays("xsy")
    with wp.Tape() as tape:
        wp.launch(kernel, dim=8, inputs=given)
    assert adjoints(kernel) == []
    with pytest.raises(KernelGradientError, match="atomic_min changes and the kernel also reads"):
        tape.backward(grads={given[2]: wp.ones(8, dtype=float)})


def test_a_tape_of_the_usual_kind_loads_little():
    code = "import sys, treadle as wp; wp.Tape(); print(*[m for m in sys.modules if m.startswith('treadle.lang.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    loaded = {name.rpartition(".")[2] for name in done.stdout.split()}
    assert "tape" in loaded
    assert loaded.isdisjoint({"bodies", "checkpoint", "late", "overwrites", "sequel", "story", "untold"})
