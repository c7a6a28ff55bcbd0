"""``wp.autograd``: Jacobians by the tape and by differences, and whether the two agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.errors import AutogradError
from ..runtime.array import array
from .jacobians import (
    Blocks,
    FunctionMetadata,
    Mask,
    Pair,
    Subject,
    as_arrays,
    by_differences,
    by_tangents,
    by_tape,
    kernel_subject,
    subject_of,
)
from .plan import Plan
from .tape import Tape

_plots: list[Callable[..., Any]] = []  # what shows Jacobians, the latest last


def plot_with(plot: Callable[..., Any]) -> None:
    """Let ``plot(jacobians, metadata, title=…)`` show what is to be shown: pictures are made on a higher floor."""
    _plots.append(plot)


def _plot(*args: Any, **kwargs: Any) -> None:
    _plots[-1](*args, **kwargs)


def jacobian(
    function: Any,
    dim: int | Sequence[int] | None = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    input_output_mask: Mask | None = None,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int | None = None,
    max_outputs_per_var: int = -1,
    plot_jacobians: bool = False,
    metadata: FunctionMetadata | None = None,
    restore_inputs: bool = True,
) -> dict[Pair, array]:
    """The exact Jacobians of a kernel or function: of each output by each input.

    A backward pass gives one row; where a kernel has fewer inputs than outputs, a launch with tangents one column
    (``wp.jvp``). Inputs and outputs are the arrays with ``requires_grad`` among the arguments; arrays in structs count
    as constants. Arrays and their gradients hold afterwards what they held before.

    Args:
        function: a kernel, or a Python function that launches kernels and returns an array or a list of arrays.
        dim: extent of the grid; of a kernel only, as are ``device``, ``max_blocks`` and ``block_dim`` (see
            ``wp.launch``).
        inputs: the arguments of the function; of a kernel, the first ones.
        outputs: the other arguments of a kernel; of a function the arrays it fills, where it returns None.
        input_output_mask: the pairs (input, output) that are wanted, by number or name; all if left out.
        max_outputs_per_var: so many scalars of each output, the others' rows are NaN; all if not positive.
        plot_jacobians: show them with matplotlib.
        metadata: names for the plot instead of those of the function.
        restore_inputs: put back the arguments of a Python function after each run of it; those of a kernel always are.

    Returns: by (number of the input, number of the output) an array of the input's dtype and the shape (scalars of the
    output, elements of the input).

    Raises:
        AutogradError: nothing to differentiate, arguments that are missing, or ``enable_backward`` is False.
        KernelGradientError: something on the way has no derivative; the message names its line.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def scale(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     y[i] = 3.0 * x[i]
    >>> x, y = wp.ones(2, dtype=float, requires_grad=True), wp.zeros(2, dtype=float, requires_grad=True)
    >>> wp.autograd.jacobian(scale, dim=2, inputs=[x], outputs=[y])[0, 0].list()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    subject = subject_of(function, dim, inputs, outputs, device, max_blocks, block_dim, restore_inputs)
    blocks = by_tangents(subject, input_output_mask) if max_outputs_per_var <= 0 and _allows(function) else None
    if blocks is None:
        blocks = by_tape(subject, input_output_mask, max_outputs_per_var)
    return _finished(subject, blocks, metadata, plot_jacobians)


def jacobian_fd(
    function: Any,
    dim: int | Sequence[int] | None = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    input_output_mask: Mask | None = None,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int | None = None,
    max_inputs_per_var: int = -1,
    eps: float = 1e-4,
    plot_jacobians: bool = False,
    metadata: FunctionMetadata | None = None,
    restore_inputs: bool = True,
) -> dict[Pair, array]:
    """The Jacobians of a kernel or function by central differences, ``(f(x + eps) - f(x - eps)) / (2 eps)``.

    Args:
        eps: the step; the difference is divided by the step that the input's float type took in fact.
        max_inputs_per_var: so many scalars of each input, the others' columns are NaN; all if not positive.

    The other arguments, the result and the errors are those of :func:`jacobian`.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def square(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    ...     i = wp.tid()
    ...     y[i] = x[i] * x[i]
    >>> x = wp.array([1.0, 3.0], dtype=wp.float64, requires_grad=True)
    >>> y = wp.zeros_like(x)
    >>> wp.autograd.jacobian_fd(square, dim=2, inputs=[x], outputs=[y])[0, 0].numpy().round(6)
    array([[2., 0.],
           [0., 6.]])
    """
    subject = subject_of(function, dim, inputs, outputs, device, max_blocks, block_dim, restore_inputs)
    blocks = by_differences(subject, input_output_mask, eps, max_inputs_per_var)
    return _finished(subject, blocks, metadata, plot_jacobians)


def _allows(function: Any) -> bool:
    """Whether a kernel may be differentiated."""
    option = getattr(function, "option", None)
    return option is not None and option("enable_backward") is not False


def _finished(subject: Subject, blocks: Blocks, metadata: FunctionMetadata | None, plot: bool) -> dict[Pair, array]:
    names = FunctionMetadata() if metadata is None else metadata
    names.adopt(subject)
    made = as_arrays(subject, blocks)
    if plot:
        _plot(made, names)
    return made


def gradcheck(
    function: Any,
    dim: int | Sequence[int] | None = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    *,
    eps: float = 1e-4,
    atol: float = 1e-3,
    rtol: float = 1e-2,
    raise_exception: bool = True,
    input_output_mask: Mask | None = None,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int | None = None,
    max_inputs_per_var: int = -1,
    max_outputs_per_var: int = -1,
    plot_relative_error: bool = False,
    plot_absolute_error: bool = False,
    show_summary: bool = True,
    restore_inputs: bool = True,
) -> bool:
    """Whether the gradients of a kernel or function agree with central differences.

    They agree where ``|gradient - difference| <= atol + rtol * |difference|`` for every entry of every Jacobian. The
    gradients are those of the tape.

    Args:
        eps: step of the differences. The default suits float32; float64 allows less, and smaller tolerances.
        atol, rtol: tolerances, absolute and relative to the difference.
        raise_exception: raise if they disagree; else False is returned.
        max_inputs_per_var, max_outputs_per_var: so many scalars of each array; all if not positive.
        plot_relative_error, plot_absolute_error: show the errors with matplotlib.
        show_summary: print one line for each pair of arrays.

    The other arguments are those of :func:`jacobian`.

    Returns: whether all agree.

    Raises:
        AutogradError: gradients disagree, or are NaN, and ``raise_exception`` is set; or as :func:`jacobian`.
        KernelGradientError: something on the way has no derivative; the message names its line.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def wave(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     y[i] = wp.sin(x[i])
    >>> x, y = wp.ones(2, dtype=float, requires_grad=True), wp.zeros(2, dtype=float, requires_grad=True)
    >>> wp.autograd.gradcheck(wave, dim=2, inputs=[x], outputs=[y], show_summary=False)
    True
    """
    subject = subject_of(function, dim, inputs, outputs, device, max_blocks, block_dim, restore_inputs)
    limits = max_inputs_per_var, max_outputs_per_var
    check = _Check(subject, input_output_mask, (eps, atol, rtol), limits)
    return check.tell(show_summary, plot_relative_error, plot_absolute_error, raise_exception)


class _Check:
    """Both kinds of Jacobians, cut to ``limits`` scalars of inputs and outputs, compared pair by pair."""

    def __init__(self, subject: Subject, mask: Mask | None, scale: tuple[float, float, float], limits: tuple[int, int]):
        eps, atol, rtol = scale
        self.subject = subject
        exact = by_tape(subject, mask, limits[1])
        self.blocks = {
            pair: (_cut(exact[pair], limits), _cut(block, limits))
            for pair, block in by_differences(subject, mask, eps, limits[0]).items()
        }
        self.lines: list[list[str]] = []
        self.failures: list[str] = []
        for pair in self.blocks:
            self._compare(pair, atol, rtol)

    def _compare(self, pair: Pair, atol: float, rtol: float) -> None:
        ad, fd = [block.astype(np.float64) for block in self.blocks[pair]]
        names = self.subject.input_labels[pair[0]], self.subject.output_labels[pair[1]]
        bad = ~(np.abs(ad - fd) <= atol + rtol * np.abs(fd)) & (ad != fd)  # NaN is bad; equal infinities are not
        if not ad.size:
            self.lines.append([*names, "empty", "", "", "", "pass"])
            return
        error = np.abs(ad - fd)
        worst = np.unravel_index(np.argmax(np.where(np.isnan(error), np.inf, error)), error.shape)
        relative = error[worst] / max(abs(fd[worst]), 1e-8)
        at = f"({worst[0]}, {worst[1]})"
        shown = [f"{error[worst]:.3e} at {at}", f"{ad[worst]:.3e}", f"{fd[worst]:.3e}", f"{relative:.3e}"]
        self.lines.append([*names, *shown, "FAIL" if bad.any() else "pass"])
        if bad.any():
            self.failures.append(
                f"of output {names[1]!r} by input {names[0]!r} {bad.sum()} of {bad.size} entries, the worst one {at}: "
                f"{ad[worst]:.6g} instead of {fd[worst]:.6g}"
            )

    def tell(self, summary: bool, relative: bool, absolute: bool, strict: bool) -> bool:
        """Print and show what is wanted; whether all agree. ``strict``: raise if not."""
        if summary:
            print(self.table())
        names = FunctionMetadata()
        names.adopt(self.subject)
        for wanted, what in ((relative, "relative"), (absolute, "absolute")):
            if wanted:
                title = f"{self.subject.key} kernel Jacobian {what} error"
                _plot(as_arrays(self.subject, self.errors(what)), names, title=title)
        if strict and self.failures:
            raise AutogradError(
                f"gradients of {self.subject.key} differ from central differences: {'; '.join(self.failures)}"
            )
        return not self.failures

    def table(self) -> str:
        """One line for each pair."""
        head = ["input", "output", "largest error", "gradient", "difference", "relative", ""]
        rows = [head, *self.lines]
        widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        verdict = "differ from" if self.failures else "agree with"
        return "\n".join([*lines, f"gradients of {self.subject.key} {verdict} central differences"])

    def errors(self, what: str) -> Blocks:
        """The relative or absolute errors; NaN beyond the limits."""
        found = {}
        for (i, j), (ad, fd) in self.blocks.items():
            x, y = self.subject.inputs[i].numpy(), self.subject.outputs[j].numpy()
            whole = found[i, j] = np.full((y.size, x.size), np.nan, x.dtype)
            error = np.abs(ad - fd)
            if what == "relative":
                error = error / np.maximum(np.abs(fd), 1e-8)
            whole[: error.shape[0], : error.shape[1]] = error
        return found


def _cut(block: np.ndarray, limits: tuple[int, int]) -> np.ndarray:
    columns, rows = [n if n > 0 else None for n in limits]
    return block[:rows, :columns]


def gradcheck_tape(
    tape: Tape,
    *,
    eps: float = 1e-4,
    atol: float = 1e-3,
    rtol: float = 1e-2,
    raise_exception: bool = True,
    input_output_masks: dict[str, Mask] | None = None,
    blacklist_kernels: Sequence[str] | None = None,
    whitelist_kernels: Sequence[str] | None = None,
    max_inputs_per_var: int = -1,
    max_outputs_per_var: int = -1,
    plot_relative_error: bool = False,
    plot_absolute_error: bool = False,
    show_summary: bool = True,
    reverse_launches: bool = False,
    skip_to_launch_index: int = 0,
) -> bool:
    """Whether the gradients of each launch recorded on ``tape`` agree with central differences.

    Each launch is checked by itself, from what its arrays hold now. Its inputs are the arrays that the kernel reads,
    its outputs those that it writes. Left out are launches without gradients: of kernels with
    ``enable_backward=False``, and those in which no array that is written, or none that is read, has one.

    Args:
        tape: what was recorded; it is left as it is.
        input_output_masks: by the key of a kernel, the pairs that are wanted, see :func:`jacobian`.
        blacklist_kernels, whitelist_kernels: keys of kernels that are left out, and of those that alone are checked.
        reverse_launches: begin with the last one.
        skip_to_launch_index: leave out so many launches at the beginning.

    The other arguments are those of :func:`gradcheck`.

    Returns: whether all agree.

    Raises:
        AutogradError: gradients disagree and ``raise_exception`` is set.
    """
    if not isinstance(tape, Tape):
        raise AutogradError(f"gradcheck_tape takes a tape, not {tape!r}")
    ops = tape.launches
    agree = True
    for op in list(reversed(ops) if reverse_launches else ops)[skip_to_launch_index:]:
        if not isinstance(op, tuple):
            continue
        plan, dim, args = op
        key = plan.kernel.key
        if key in (blacklist_kernels or ()) or (whitelist_kernels and key not in whitelist_kernels):
            continue
        subject = _recorded(plan, dim, args)
        if subject is None:
            continue
        mask = (input_output_masks or {}).get(key) or _read(plan, subject)
        check = _Check(subject, mask, (eps, atol, rtol), (max_inputs_per_var, max_outputs_per_var))
        agree &= check.tell(show_summary, plot_relative_error, plot_absolute_error, raise_exception)
    return agree


def _recorded(plan: Plan, dim: Any, args: Sequence[Any]) -> Subject | None:
    """A recorded launch, its outputs the arrays it writes; None where there is nothing to differentiate."""
    written = sorted({site.k for site in plan.writes if isinstance(args[site.k], array)})
    read = [args[site.k] for site in plan.sites if site.loads]
    changed = [args[k] for k in written]
    known = plan.differentiates() and not plan.detached
    if not known or not all(any(map(_has_gradient, arrays)) for arrays in (read, changed)):
        return None
    subject = kernel_subject(plan.kernel, dim, args, [])
    subject.outputs, subject.jvp = [args[k] for k in written], None
    subject.output_labels = [subject.input_labels[k] for k in written]
    return subject


def _has_gradient(a: Any) -> bool:
    return isinstance(a, array) and a.requires_grad


def _read(plan: Plan, subject: Subject) -> Mask:
    """The pairs of an array that the kernel reads and one that it writes."""
    read = sorted({site.k for site in plan.sites if site.loads})
    return [(i, j) for i in read for j in range(len(subject.outputs))]


__all__ = ["gradcheck", "gradcheck_tape", "jacobian", "jacobian_fd", "plot_with"]
