"""``wp.autograd``: Jacobians of kernels and functions, and checks of their gradients."""

from .lang.autograd import gradcheck, gradcheck_tape, jacobian, jacobian_fd
from .lang.jacobian_plot import jacobian_plot
from .lang.jacobians import FunctionMetadata

__all__ = ["FunctionMetadata", "gradcheck", "gradcheck_tape", "jacobian", "jacobian_fd", "jacobian_plot"]
