"""Errors show the place, the source line with a caret, and a hint; each is also the Python error of its kind."""

import linecache

import pytest

import treadle as wp
from treadle.base import errors
from treadle.base.span import NOWHERE, Span


@pytest.fixture
def span():
    file = "<kernel of this test>"
    linecache.cache[file] = (20, None, ["def k():\n", "    x = y + 1\n"], file)
    yield Span(file, 2, 8, 9)
    del linecache.cache[file]


def test_place_line_caret_and_hint(span):
    assert str(errors.KernelNameError("no such name", span, "define y")) == (
        "<kernel of this test>:2\n    x = y + 1\n        ^\nno such name\nhint: define y"
    )


def test_without_a_place_the_message_stands_alone():
    assert str(errors.LaunchError("no grid")) == "no grid"
    assert str(errors.KernelSyntaxError("no lambda", NOWHERE)) == "no lambda"
    assert Span("<nowhere to be read>", 3).show() == "<nowhere to be read>:3"


def test_several_errors_are_shown_together(span):
    first, second = errors.KernelTypeError("one", span), errors.KernelTypeError("two", span)
    both = errors.ManyErrors([first, second])
    assert str(both) == f"{first}\n\n{second}" and both.span is span
    assert isinstance(both, TypeError)
    assert str(errors.ManyErrors([errors.KernelSyntaxError("one"), first])).startswith("one\n\n")


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.KernelSyntaxError, SyntaxError), (errors.KernelTypeError, TypeError),
        (errors.KernelNameError, NameError), (errors.KernelAttributeError, AttributeError),
        (errors.KernelValueError, ValueError), (errors.KernelIndexError, IndexError),
        (errors.UnassignedError, UnboundLocalError), (errors.LaunchError, RuntimeError),
        (errors.LaunchTypeError, TypeError), (errors.IndexOutOfRange, IndexError), (errors.ArrayError, ValueError),
        (errors.KernelAssertionError, AssertionError), (errors.UnsupportedModelError, NotImplementedError),
        (errors.CapacityError, OverflowError),
    ],
)  # fmt: skip
def test_each_is_the_python_error_of_its_kind(kind, builtin):
    with pytest.raises(builtin, match="what"):
        raise kind("what")
    assert issubclass(kind, errors.TreadleError) and kind.__doc__


def test_programs_that_name_warps_errors_catch_ours():
    assert wp.WarpCodegenError is errors.KernelError and wp.WarpCodegenTypeError is errors.KernelTypeError
    for kind in (wp.WarpCodegenTypeError, wp.WarpCodegenAttributeError, wp.WarpCodegenKeyError,
                 wp.WarpCodegenValueError, wp.WarpCodegenIndexError):  # fmt: skip
        with pytest.raises(wp.WarpCodegenError):
            raise kind("refused")
