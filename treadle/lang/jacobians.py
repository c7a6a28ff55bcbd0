"""What Jacobians are made of: something that can be run again and again, and the state it is run from."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..base.config import config
from ..base.errors import AutogradError, KernelGradientError, LaunchError
from ..runtime.array import COPY_IT, array
from ..types.core import Struct
from .contents import copied, put_value
from .host_writes import give_back
from .jvp import jvp
from .kernel import Kernel
from .launch import launch
from .tape import Tape

Pair = tuple[int, int]  # the number of an input, and of an output
Mask = Sequence[tuple[str | int, str | int]]
Blocks = dict[Pair, np.ndarray]  # one matrix a pair: rows are scalars of the output, columns scalars of the input


class FunctionMetadata:
    """Names for messages and plots: ``key`` of what was differentiated, labels of its inputs and outputs."""

    def __init__(
        self,
        key: str | None = None,
        input_labels: Sequence[str] | None = None,
        output_labels: Sequence[str] | None = None,
    ):
        self.key = key
        self.input_labels = list(input_labels or ())
        self.output_labels = list(output_labels or ())

    def adopt(self, subject: Subject) -> None:
        """Take the names of ``subject`` where there are none yet."""
        if self.key is None:
            self.key, self.input_labels, self.output_labels = subject.key, subject.input_labels, subject.output_labels


class Subject:
    """What is differentiated: ``run`` computes the outputs from what its arrays hold.

    ``inputs`` are its arguments; ``outputs`` the results, known once it has run if it is a Python function. ``keeps``:
    its arrays are put back after each run.
    """

    def __init__(
        self, key: str, inputs: Sequence[Any], outputs: Sequence[Any] | None, run: Callable[[], Any], labels: list[str]
    ):
        self.key, self.inputs, self.run = key, list(inputs), run
        self.outputs: list[Any] | None = None if outputs is None else list(outputs)
        self.input_labels, self.output_labels = labels[: len(self.inputs)], labels[len(self.inputs) :]
        self.jvp: Callable[[dict[str, Any]], list[Any]] | None = None
        self.keeps = True

    def evaluate(self) -> list[Any]:
        """Run it; the outputs."""
        made = self.run()
        if made is not None:
            self.outputs = list(made) if isinstance(made, list | tuple) else [made]
        if self.outputs is None:
            raise AutogradError(f"{self.key} returns nothing", hint="return an array or a list of arrays")
        missing = len(self.outputs) - len(self.output_labels)
        self.output_labels += [f"output_{len(self.output_labels) + k}" for k in range(missing)]
        return self.outputs

    def arrays(self) -> list[array]:
        """The arrays among its arguments, those in structs included."""
        return [a for x in (*self.inputs, *(self.outputs or ())) for a in _arrays_in(x)]

    def pairs(self, mask: Mask | None) -> list[Pair]:
        """The pairs of differentiable inputs and outputs that ``mask`` lets through.

        Raises:
            AutogradError: there is none, or the mask names what does not exist.
        """
        wanted = None if not mask else {self._named(*names) for names in mask}
        if not any(_differentiable(x) for x in self.inputs):
            raise AutogradError(f"no input of {self.key} has a gradient", hint="make it with requires_grad=True")
        if not any(_differentiable(y) for y in self.outputs):
            raise AutogradError(f"no output of {self.key} has a gradient", hint="make it with requires_grad=True")
        found = [
            (i, j)
            for i, x in enumerate(self.inputs)
            for j, y in enumerate(self.outputs)
            if _differentiable(x) and _differentiable(y) and (wanted is None or (i, j) in wanted)
        ]
        if not found:
            raise AutogradError(f"input_output_mask leaves no pair of arrays of {self.key} that have gradients")
        return found

    def _named(self, source: str | int, target: str | int) -> Pair:
        return _place(source, self.input_labels, "input"), _place(target, self.output_labels, "output")


def _place(name: str | int, labels: list[str], what: str) -> int:
    if isinstance(name, str) and name in labels:
        return labels.index(name)
    if isinstance(name, int) and 0 <= name < len(labels):
        return name
    raise AutogradError(f"input_output_mask names {what} {name!r}; there is {', '.join(labels)}")


def _differentiable(x: Any) -> bool:
    """Whether ``x`` is an array with a gradient. An array of structs has no scalars to go through one by one."""
    return isinstance(x, array) and x.requires_grad and x.numpy().dtype.kind == "f"


def _arrays_in(x: Any) -> Iterator[array]:
    if isinstance(x, array):
        yield x
    elif isinstance(getattr(type(x), "__treadle_type__", None), Struct):
        for name in type(x).__treadle_type__.index:
            yield from _arrays_in(getattr(x, name))


def subject_of(
    function: Any,
    dim: Any,
    inputs: Sequence[Any] | None,
    outputs: Sequence[Any] | None,
    device: Any,
    max_blocks: int,
    block_dim: int | None,
    restore_inputs: bool,
) -> Subject:
    """What ``wp.autograd``'s functions were given.

    Raises:
        AutogradError: inputs, the outputs or the grid of a kernel are missing.
    """
    if inputs is None:
        raise AutogradError("the inputs are missing", hint="inputs=[…], in the order of the parameters")
    if isinstance(function, Kernel):
        if not outputs:
            raise AutogradError(f"the outputs of kernel {function.key} are missing", hint="outputs=[…]")
        if dim is None:
            raise AutogradError(f"kernel {function.key} needs the extent of its grid", hint="dim=…")
        return kernel_subject(function, dim, inputs, outputs, device, max_blocks, block_dim)
    if not callable(function):
        raise AutogradError(f"a kernel or a Python function is needed, not {type(function).__name__}")
    key = getattr(function, "__name__", type(function).__name__)
    labels = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    labels = [labels[k] if k < len(labels) else f"input_{k}" for k in range(len(inputs))]
    made = Subject(key, inputs, outputs, lambda: function(*inputs), labels)
    made.keeps = restore_inputs
    return made


def kernel_subject(
    kernel: Kernel,
    dim: Any,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int | None = None,
) -> Subject:
    """A launch of ``kernel``."""
    inputs, outputs = list(inputs), list(outputs)

    def run() -> None:
        launch(kernel, dim, inputs, outputs, device=device, max_blocks=max_blocks, block_dim=block_dim)

    made = Subject(kernel.key, inputs, outputs, run, [p.name for p in kernel.parameters])
    made.jvp = lambda tangents: jvp(kernel, dim, inputs, outputs, tangents, device)
    return made


def refuse_without_backward(subject: Subject, tape: Tape) -> None:
    """Complain where a kernel that ran may not be differentiated."""
    plans = [op[0] for op in tape.launches if isinstance(op, tuple)]
    barred = next((plan.kernel.key for plan in plans if not plan.differentiates()), None)
    if barred is not None:
        where = "wp.config" if not config.enable_backward else "the kernel or its module"
        launched = "" if barred == subject.key else f"{subject.key} launches {barred}. "
        why = "Kernel must have backward pass enabled to compute Jacobians"
        raise AutogradError(f"{launched}{why}: enable_backward is False in {where} of {barred}")


class State:
    """What arrays and their gradients hold, to be put back: by :meth:`restore` again and again, and at the end."""

    def __init__(self, subject: Subject):
        self.keeps = subject.keeps
        unique = {id(a): a for a in subject.arrays()}
        self.arrays = list(unique.values())
        self.contents = [copied(a) for a in self.arrays]
        self.grads = [(a.grad, copied(a.grad)) for a in self.arrays if a.grad is not None]

    def __enter__(self) -> State:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.restore()
        for grad, content in self.grads:
            put_value(grad, content)

    def restore(self) -> None:
        """Put back what the arrays held, if that is wanted. What must not be changed still holds it."""
        if not self.keeps:
            return
        for a, content in zip(self.arrays, self.contents, strict=True):
            if not a.read_only:
                put_value(a, content)


def count(a: array) -> int:
    """How many scalars ``a`` has."""
    return math.prod(a.numpy().shape)


def empty_blocks(subject: Subject, pairs: list[Pair]) -> Blocks:
    """A matrix of NaN for each pair, in the float type of the input."""
    shapes = {(i, j): (count(subject.outputs[j]), subject.inputs[i].numpy()) for i, j in pairs}
    return {pair: np.full((rows, x.size), np.nan, x.dtype) for pair, (rows, x) in shapes.items()}


def by_tape(subject: Subject, mask: Mask | None, max_outputs: int) -> Blocks:
    """Jacobians row by row: one backward pass for each scalar of each output."""
    with State(subject) as state:
        tape = Tape()
        with tape:
            outputs = subject.evaluate()
        refuse_without_backward(subject, tape)
        pairs = subject.pairs(mask)
        blocks = empty_blocks(subject, pairs)
        for j in sorted({j for _, j in pairs}):
            seeds = outputs[j].grad
            shape = seeds.numpy().shape
            rows = math.prod(shape) if max_outputs <= 0 else min(math.prod(shape), max_outputs)
            for row in range(rows):
                _clear(tape, [*state.arrays, *outputs])
                seed = seeds.numpy()
                seed[np.unravel_index(row, shape)] = 1.0
                give_back(seeds, seed)
                tape.backward()
                for i, of in pairs:
                    if of == j:
                        blocks[i, j][row] = subject.inputs[i].grad.numpy().reshape(-1)
        _clear(tape, outputs)
    return blocks


def _clear(tape: Tape, arrays: list[Any]) -> None:
    """Set every gradient to zero."""
    tape.zero()
    for a in arrays:
        if isinstance(a, array) and a.grad is not None:
            a.grad.zero_()


def by_tangents(subject: Subject, mask: Mask | None) -> Blocks | None:
    """Jacobians column by column: one launch with tangents for each scalar of each input. None where that takes more
    launches than there are rows, or forward mode cannot follow what the tape can."""
    if subject.jvp is None:
        return None
    pairs = subject.pairs(mask)
    sources, targets = sorted({i for i, _ in pairs}), sorted({j for _, j in pairs})
    columns = sum(count(subject.inputs[i]) for i in sources)
    if columns >= sum(count(subject.outputs[j]) for j in targets):
        return None
    blocks = empty_blocks(subject, pairs)
    with State(subject) as state:
        try:
            for i in sources:
                x = subject.inputs[i].numpy()
                for column, place in enumerate(np.ndindex(x.shape)):
                    direction = np.zeros_like(x)
                    direction[place] = 1.0
                    tangents = subject.jvp({subject.input_labels[i]: direction})
                    state.restore()
                    for j in targets:
                        if (i, j) in blocks:
                            moved = tangents[j]
                            blocks[i, j][:, column] = 0.0 if moved is None else moved.numpy().reshape(-1)
        except (KernelGradientError, LaunchError):
            return None
    return blocks


def by_differences(subject: Subject, mask: Mask | None, eps: float, max_inputs: int) -> Blocks:
    """Jacobians column by column: central differences, divided by the step that the input's float type could take.

    Raises:
        AutogradError: ``eps`` is no step; an input must not be changed.
    """
    if not eps > 0.0:
        raise AutogradError(f"eps, the step of central differences, must be more than 0, not {eps!r}")
    with State(subject) as state:
        if subject.outputs is None:
            subject.evaluate()
            state.restore()
        pairs = subject.pairs(mask)
        for i in sorted({i for i, _ in pairs}):
            if subject.inputs[i].read_only:
                name = f"{subject.input_labels[i]!r} of {subject.key}"
                raise AutogradError(f"central differences change the input {name}, which is read-only", hint=COPY_IT)
        blocks = empty_blocks(subject, pairs)
        for i in sorted({i for i, _ in pairs}):
            targets = [j for of, j in pairs if of == i]
            source = subject.inputs[i]
            for column, place in enumerate(np.ndindex(source.numpy().shape)):
                if 0 < max_inputs <= column:
                    break
                state.restore()
                before, ends = source.numpy().copy(), []
                for step in (-eps, eps) if state.keeps else (-eps, 2.0 * eps):
                    state.restore()
                    x = source.numpy()
                    x[place] += step
                    at = float(x[place])
                    give_back(source, x)
                    outputs = subject.evaluate()
                    ends.append((at, [outputs[j].numpy().astype(np.float64).reshape(-1) for j in targets]))
                (low, left), (high, right) = ends
                if low == high:
                    raise AutogradError(f"eps={eps!r} is too small a step from {low} in {source.dtype.__name__}")
                for j, a, b in zip(targets, left, right, strict=True):
                    blocks[i, j][:, column] = (b - a) / (high - low)
                x = source.numpy()
                x[...] = before
                give_back(source, x)
            state.restore()
    return blocks


def as_arrays(subject: Subject, blocks: Blocks) -> dict[Pair, array]:
    """The matrices as arrays: one row for each scalar of the output, one element for each element of the input."""
    made = {}
    for (i, j), block in blocks.items():
        x = subject.inputs[i]
        inner = x.numpy().shape[x.ndim :]
        made[i, j] = array(block.reshape(len(block), x.size, *inner), dtype=x.dtype)
    return made


def as_block(jacobian: array) -> np.ndarray:
    """A Jacobian as a matrix of scalars."""
    rows = jacobian.numpy()
    return rows.reshape(len(rows), -1)


__all__ = [
    "Blocks", "FunctionMetadata", "Mask", "Pair", "State", "Subject", "as_arrays", "as_block", "by_differences",
    "by_tangents", "by_tape", "kernel_subject", "subject_of",
]  # fmt: skip
