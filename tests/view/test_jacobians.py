"""Jacobians as pictures."""

from __future__ import annotations

import importlib.util

import pytest

import treadle as wp
from tests.lang.test_autograd import arguments, mixed
from treadle.base.errors import AutogradError

autograd = wp.autograd
has_plots = importlib.util.find_spec("matplotlib") is not None


@pytest.mark.skipif(not has_plots, reason="needs matplotlib")
def test_plots_have_a_field_for_each_jacobian():
    import matplotlib

    matplotlib.use("Agg")
    inputs, outputs = arguments()
    found = autograd.jacobian(mixed, 3, inputs, outputs)
    del found[1, 0]
    figure = autograd.jacobian_plot(found, mixed, inputs, show_plot=False)
    assert figure.get_suptitle() == "mixed kernel Jacobian"
    figure = autograd.jacobian_plot(found, mixed, inputs, show_plot=False, title="all")
    shown = [axis for axis in figure.axes if axis.images]
    assert [axis.images[0].get_array().shape for axis in shown] == [(3, 9), (12, 9), (12, 2)]
    assert figure.get_suptitle() == "all"
    assert autograd.jacobian_plot({}, mixed, inputs) is None


@pytest.mark.skipif(has_plots, reason="matplotlib is there")
def test_plots_name_the_extra():
    inputs, outputs = arguments()
    with pytest.raises(ImportError, match=r"pip install treadle\[plot\]"):
        autograd.jacobian(mixed, 3, inputs, outputs, plot_jacobians=True)


@pytest.mark.skipif(not has_plots, reason="needs matplotlib")
def test_checks_show_their_errors(monkeypatch):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf().get_suptitle()))
    inputs, outputs = arguments()
    flags = dict(plot_relative_error=True, plot_absolute_error=True, show_summary=False)
    assert autograd.gradcheck(mixed, 3, inputs, outputs, **flags)
    autograd.jacobian_fd(mixed, 3, inputs, outputs, plot_jacobians=True)
    head = "mixed kernel Jacobian"
    assert shown == [f"{head} relative error", f"{head} absolute error", head]


def test_plots_need_names():
    inputs, outputs = arguments()
    found = autograd.jacobian(mixed, 3, inputs, outputs)
    with pytest.raises(AutogradError, match="inputs of kernel mixed are missing"):
        autograd.jacobian_plot(found, mixed)
    with pytest.raises(AutogradError, match="a kernel or a FunctionMetadata"):
        autograd.jacobian_plot(found, "mixed")
    with pytest.raises(AutogradError, match="no name for the Jacobian"):
        autograd.jacobian_plot(found, autograd.FunctionMetadata("f", ["x"], ["y", "z"]))
