"""``wp.autograd.jacobian_plot``: Jacobians as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import AutogradError
from ..lang.jacobians import FunctionMetadata, Pair, as_block
from ..lang.kernel import Kernel
from ..runtime.array import array


def jacobian_plot(
    jacobians: dict[Pair, array],
    kernel: FunctionMetadata | Kernel,
    inputs: Sequence[Any] | None = None,
    show_plot: bool = True,
    show_colorbar: bool = True,
    scale_colors_per_submatrix: bool = False,
    title: str | None = None,
    colormap: str = "coolwarm",
    log_scale: bool = False,
) -> Any:
    """Show Jacobians as one picture: a row of fields for each output, a column for each input.

    Args:
        jacobians: what :func:`jacobian` or :func:`jacobian_fd` gave.
        kernel: the kernel they are of, or names.
        inputs: the inputs that they were computed with; needed for a kernel.
        show_plot: open a window, and wait until it is closed.
        show_colorbar: with a scale of the colours.
        scale_colors_per_submatrix: each field has colours of its own range.
        title: of the picture.
        colormap: a name that matplotlib knows.
        log_scale: colours by the logarithm of the magnitude.

    Returns: matplotlib's figure; None if there is no Jacobian.

    Raises:
        AutogradError: ``kernel`` is neither, or its inputs are missing, or a Jacobian has no name.
        ImportError: matplotlib is not there; ``pip install treadle[plot]`` brings it.
    """
    names = _names(kernel, inputs)
    for i, j in jacobians:
        if not (0 <= i < len(names.input_labels) and 0 <= j < len(names.output_labels)):
            raise AutogradError(f"there is no name for the Jacobian of output {j} by input {i} of {names.key}")
    if not jacobians:
        return None
    plt = _matplotlib()
    fields = {pair: _shown(as_block(made), log_scale) for pair, made in sorted(jacobians.items())}
    columns, rows = (sorted({pair[side] for pair in fields}) for side in (0, 1))
    widths = [next(f.shape[1] for (i, _), f in fields.items() if i == column) for column in columns]
    heights = [next(f.shape[0] for (_, j), f in fields.items() if j == row) for row in rows]
    ratios = {"width_ratios": widths, "height_ratios": heights}
    figure, axes = plt.subplots(
        len(rows), len(columns), figsize=(7, 7), layout="constrained", squeeze=False, gridspec_kw=ratios
    )
    figure.suptitle(title or f"{names.key or 'unknown'} kernel Jacobian")
    low, high = _range(fields.values())
    for row, j in enumerate(rows):
        for column, i in enumerate(columns):
            axis = axes[row][column]
            if (i, j) not in fields:
                axis.axis("off")
                continue
            own = _range([fields[i, j]]) if scale_colors_per_submatrix else (low, high)
            picture = axis.imshow(fields[i, j], cmap=colormap, aspect="auto", interpolation="nearest",
                                  vmin=own[0], vmax=own[1])  # fmt: skip
            if (i, j) == max((p for p in fields if p[0] == i), key=lambda p: p[1]):
                axis.set_xlabel(names.input_labels[i])
            if (i, j) == min((p for p in fields if p[1] == j), key=lambda p: p[0]):
                axis.set_ylabel(names.output_labels[j])
            if show_colorbar and scale_colors_per_submatrix:
                figure.colorbar(picture, ax=axis)
    if show_colorbar and not scale_colors_per_submatrix:
        figure.colorbar(picture, ax=axes)
    if show_plot:
        plt.show()
    return figure


def _names(kernel: Any, inputs: Sequence[Any] | None) -> FunctionMetadata:
    if isinstance(kernel, FunctionMetadata):
        return kernel
    if not isinstance(kernel, Kernel):
        raise AutogradError(f"jacobian_plot takes a kernel or a FunctionMetadata, not {type(kernel).__name__}")
    if inputs is None:
        raise AutogradError(f"the inputs of kernel {kernel.key} are missing", hint="inputs=[…]")
    labels = [p.name for p in kernel.parameters]
    return FunctionMetadata(kernel.key, labels[: len(inputs)], labels[len(inputs) :])


def _matplotlib() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install treadle[plot]") from error
    return plt


def _shown(block: np.ndarray, log_scale: bool) -> np.ndarray:
    return np.log10(np.abs(block) + 1e-8) if log_scale else block


def _range(fields: Any) -> tuple[float, float]:
    """The least and the greatest number in ``fields``."""
    known = [f[np.isfinite(f)] for f in fields]
    known = [f for f in known if f.size]
    return (min(float(f.min()) for f in known), max(float(f.max()) for f in known)) if known else (0.0, 0.0)


__all__ = ["jacobian_plot"]
