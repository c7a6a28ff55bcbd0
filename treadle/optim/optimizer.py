"""What optimisers share: the parameters, an array of state for each, and the checks of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import treadle as wp

from ..base.errors import ArrayError, KernelTypeError, LaunchError, LaunchTypeError
from ..types.core import Matrix, Scalar, Type, Vector, bf16, f16, f32, matrix, vector
from ..types.values import class_of


class Optimizer:
    """Parameters and how many steps they have taken. ``STATES`` names the lists of state, one array for each
    parameter; a subclass says in :meth:`_advance` what a step does.

    Where launches count, so do they: each device with parameters has the number in an array, that kernels change and
    look at. So a step can be captured, and each run of the graph is one more.
    """

    STATES: tuple[str, ...] = ()

    def __init__(self, params: Sequence[wp.array] | None):
        self.params: list[wp.array] | None = None
        self._counts: dict[Any, wp.array] = {}  # by device
        self._begin = 0  # the number where there is no device yet
        for name in self.STATES:
            setattr(self, name, [])
        self.set_params(params)

    def set_params(self, params: Sequence[wp.array] | None) -> None:
        """Optimise other parameters. State is kept for those whose shape and dtype are as before, on their device.

        Args:
            params: arrays of floats, or of vectors, quaternions or matrices of floats, of any shape; None takes the
                parameters away.

        Raises:
            LaunchTypeError: something that is no array of floats.
        """
        self.params = None if params is None else list(params)
        for p in self.params or ():
            if not isinstance(p, wp.array) or not _scalar(p.type.elem).is_float:
                raise LaunchTypeError(f"parameters are arrays of floats, not {_shown(p)}")
        for name in self.STATES:
            before = getattr(self, name)
            kept = [*before, *[None] * len(self.params or ())]
            setattr(self, name, [_state(p, old) for p, old in zip(self.params or (), kept, strict=False)])
        for device in {p.device: None for p in self.params or ()}:
            if device not in self._counts:
                self._counts[device] = wp.full(1, self.t, dtype=int, device=device)

    @property
    def t(self) -> int:
        """How many steps were taken; can be set."""
        counts = [*self._counts.values()]
        return counts[-1].list()[0] if counts else self._begin

    @t.setter
    def t(self, steps: int) -> None:
        self._begin = steps
        for count in self._counts.values():
            count.fill_(steps)

    def reset_internal_state(self) -> None:
        """Forget the steps so far: state is zero again, the parameters stay as they are."""
        for name in self.STATES:
            for state in getattr(self, name):
                state.zero_()
        self.t = 0

    def step(self, grad: Sequence[wp.array]) -> None:
        """Change the parameters by one step.

        Args:
            grad: for each parameter its gradient, an array of its shape and dtype.

        Raises:
            LaunchError: there are no parameters.
            ArrayError: another number of gradients than of parameters, or a gradient of another shape.
            LaunchTypeError: a gradient of another dtype.
        """
        name = type(self).__name__
        if self.params is None:
            raise LaunchError(f"{name} parameters must be set before calling step(), got None")
        if len(grad) != len(self.params):
            raise ArrayError(
                f"{name}.step() takes {len(self.params)} gradients, one for each parameter: not {len(grad)}"
            )
        for p, g in zip(self.params, grad, strict=True):
            if not isinstance(g, wp.array):
                raise LaunchTypeError(f"a gradient is an array, not {type(g).__name__}")
            if g.type.elem is not p.type.elem:
                what = f"{name} gradient dtype must match parameter dtype"
                raise LaunchTypeError(f"{what} {p.dtype.__name__}, got {g.dtype.__name__}")
            if g.shape != p.shape:
                raise ArrayError(f"{name} gradient shape must match parameter shape {p.shape}, got {g.shape}")
        for i, (p, g) in enumerate(zip(self.params, grad, strict=True)):
            self._advance(p, g, self._counts[p.device], *[getattr(self, state)[i] for state in self.STATES])
        for count in self._counts.values():
            wp.launch(count_step, 1, inputs=[count], device=count.device)

    def _advance(self, p: wp.array, g: wp.array, count: wp.array, *states: wp.array) -> None:
        """Change a parameter and its state in place. ``count``: how many steps were taken before, one number."""
        raise NotImplementedError


@wp.kernel
def count_step(count: wp.array(dtype=int)):
    count[0] += 1


def require(name: str, **given: float) -> None:
    """Raise ValueError for a number that is less than 0, or none at all."""
    for what, x in given.items():
        if not x >= 0.0:
            raise ValueError(f"wp.optim.{name}: {what} must be 0 or more, not {x!r}")


def numbers(p: wp.array, *values: float) -> list[Any]:
    """``values`` as numbers of the type that the state of ``p`` is made of."""
    scalar = class_of(_scalar(_state_type(p.type.elem)))
    return [scalar(x) for x in values]


def of_kind(elem: Type, scalar: Callable, line: Callable, table: Callable) -> Callable:
    """The function among three that takes elements of type ``elem``: numbers, vectors, or matrices."""
    return scalar if isinstance(elem, Scalar) else line if isinstance(elem, Vector) else table


def _scalar(elem: Type) -> Scalar:
    found = elem.elem if isinstance(elem, Vector | Matrix) else elem
    if not isinstance(found, Scalar):
        raise KernelTypeError(f"parameters are arrays of floats, not of {elem}")
    return found


def _state_type(elem: Type) -> Type:
    """Sums of many small changes: halves are kept in single precision."""
    if _scalar(elem) not in (f16, bf16):
        return elem
    if isinstance(elem, Matrix):
        return matrix(elem.rows, elem.cols, f32)
    return vector(elem.n, f32) if isinstance(elem, Vector) else f32


def _state(p: wp.array, old: wp.array | None) -> wp.array:
    dtype = class_of(_state_type(p.type.elem))
    if old is None or old.shape != p.shape or old.dtype is not dtype:
        return wp.zeros(p.shape, dtype=dtype, device=p.device)
    return old if old.device == p.device else wp.clone(old, device=p.device)


def _shown(x: Any) -> str:
    return f"of {x.dtype.__name__}" if isinstance(x, wp.array) else type(x).__name__
