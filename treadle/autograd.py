"""``wp.autograd``: Jacobians of kernels and functions, and checks of their gradients."""

from importlib import import_module
from typing import Any

from .lang.autograd import gradcheck, gradcheck_tape, jacobian, jacobian_fd, plot_with
from .lang.jacobians import FunctionMetadata

__all__ = ["FunctionMetadata", "gradcheck", "gradcheck_tape", "jacobian", "jacobian_fd"]  # and jacobian_plot

_DRAWN_BY = {"jacobian_plot": ".view.jacobians"}  # loaded when something is to be shown


def __getattr__(name: str) -> Any:
    if name not in _DRAWN_BY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_DRAWN_BY[name], __package__), name)


def _plot(*args: Any, **kwargs: Any) -> Any:
    return __getattr__("jacobian_plot")(*args, **kwargs)


plot_with(_plot)
