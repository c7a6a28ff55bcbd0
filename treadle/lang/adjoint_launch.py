"""``wp.launch(…, adjoint=True)``: one launch of a kernel's adjoint, with gradients that the caller may name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.errors import KernelGradientError, LaunchError
from ..runtime.array import allocate_with, array
from .contents import copied, put_value
from .launch import bound, ready
from .plan import Plan, Site, plan_of
from .reverse import Pass, Reverse
from .shadows import with_field
from .tape import changing
from .untold import refuse_nameless


def launch_adjoint(kernel: Any, dim: Any, inputs: Sequence[Any], outputs: Sequence[Any], adj_inputs: Sequence[Any],
                   adj_outputs: Sequence[Any], device: Any) -> None:  # fmt: skip
    """Run the adjoint of a launch: add to the gradients of what it read, use up those of what it wrote.

    ``adj_inputs``, ``adj_outputs`` hold a gradient array (or a struct of them) for each argument; None, or an empty
    list, takes the argument's ``.grad``. Adjoints given for results are only read. All arrays keep their content.

    Raises:
        LaunchError: the lists do not go with the arguments.
        KernelGradientError: the kernel has no derivative, or its backward is switched off.
        ArrayError: a gradient that is added to must not be changed.
    """
    where, dims, values, types = bound(kernel, dim, [*inputs, *outputs], device)
    program, packed = ready(kernel, types, dims, values, None, where)
    plan = plan_of(kernel, kernel.overload(types, where), program)
    if not plan.differentiates():
        raise KernelGradientError(f"kernel {kernel.key} has no adjoint: enable_backward is False")
    adjoints = [*_padded(adj_inputs, len(inputs), "adj_inputs"), *_padded(adj_outputs, len(outputs), "adj_outputs")]
    adjoints += [None] * (len(values) - len(adjoints))
    given: list[tuple[Site, array]] = []
    moved: list[tuple[array, array]] = []  # gradients that lie otherwise or must not be changed, what stands for them
    for site in plan.floats:
        grad = _given(site, adjoints[site.k])
        if grad is not None:
            like, read = site.of(values), site.writes and not site.loads
            if grad.read_only and not read:
                grad._refuse_writes()
            if grad.read_only or (grad.strides, grad.component_stride) != (like.strides, like.component_stride):
                moved.append((grad, _laid_out_as(like, grad)))
                grad = moved[-1][1]
            values[site.k] = _with_gradient(site, values[site.k], grad)
            given.append((site, grad))
    results = [(grad, copied(grad)) for site, grad in given if site.writes and not site.loads]
    reverse, _ = Pass.choose(plan, dims, values, bool(plan.graded(values)))
    grads = [a._grad for a in [site.of(values) for site in plan.floats] if a is not None and a._grad is not None]
    try:
        if reverse is not None:
            if reverse.nameless:
                refuse_nameless(plan, values)
            with changing(grads):
                _run(plan, reverse, dims, values, program.command(packed, dims, values))
    finally:
        for grad, content in results:
            put_value(grad, content)
        unchanged = {id(grad) for grad, _ in results}
        for grad, own in moved:
            if id(own) not in unchanged:
                put_value(grad, own)


def _laid_out_as(like: array, grad: array) -> array:
    """A copy of ``grad`` with the strides of ``like``."""
    made = allocate_with(like._element, grad.shape, like.device, like.strides, like.component_stride, zeroed=True)
    put_value(made, grad)
    return made


def _padded(adjoints: Sequence[Any], count: int, what: str) -> list[Any]:
    if adjoints and len(adjoints) != count:
        raise LaunchError(f"{what} must have one entry an argument, {count}, not {len(adjoints)}")
    return [*adjoints] or [None] * count


def _given(site: Site, adjoint: Any) -> array | None:
    """The gradient array that the caller named for ``site``."""
    for field in site.fields:  # the gradient of an indexed array is that of its data
        adjoint = adjoint if isinstance(adjoint, array) else getattr(adjoint, field, None)
    return adjoint if isinstance(adjoint, array) else None


def _with_gradient(site: Site, value: Any, grad: array) -> Any:
    a = value
    for field in site.fields:
        a = getattr(a, field)
    made = a._view(a.shape, a.strides)
    made.grad = grad
    return with_field(value, site.fields, made) if site.fields else made


def _run(plan: Plan, reverse: Reverse, dims: tuple[int, ...], values: list[Any], forward: Any) -> None:
    """The adjoint, on arrays that then hold again what they held; after a run of the kernel where winners of atomic
    minima and maxima must be known."""
    before = [(a, copied(a)) for a in plan.written(values)]

    def restore() -> None:
        for a, content in before:
            put_value(a, content)

    try:
        if reverse.winners:
            forward()
            after = [copied(site.of(values)) for site in reverse.winners]
            restore()
            reverse.run_with_winners(dims, values, after)
        else:
            reverse.run(dims, values)
    finally:
        restore()
