"""``wp.Launch``: a launch that is kept, to be run many times with other arguments and grids."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..base.config import config
from ..base.errors import LaunchError, LaunchTypeError
from ..runtime import watch
from ..runtime.array import array
from ..runtime.device import apart, get_device
from ..runtime.launch import Program, normal_dims
from ..types.core import Array, Matrix, Struct, Type, Vector, View
from ..types.layout import leaves
from ..types.numpy_types import numpy_dtype
from ..types.spelling import spell
from ..types.values import class_of
from .blocks import in_blocks
from .kernel import Kernel, bind_one
from .launch import bound, ready, run
from .struct import zero_of


@dataclass(frozen=True)
class Bounds:
    """The grid of a launch as its kernel sees it: ``shape``, as many extents as ``wp.tid()`` is asked for; the
    ``size`` in threads; ``coord_mult``, how many threads have the same indices."""

    shape: tuple[int, ...]
    size: int
    coord_mult: int


def _zero(t: Type | None) -> Any:
    """What an argument of type ``t`` is until it is set: zeros, also of a rotation; None for arrays."""
    if t is None or isinstance(t, Array):
        return None
    return class_of(t)(0) if isinstance(t, Vector | Matrix) else zero_of(t)


class Launch:
    """A launch that was recorded: arguments packed, kernel compiled. Run it with :meth:`launch`.

    Args:
        kernel: what ``@wp.kernel`` made. Arguments start as zeros, arrays as None; the grid starts empty.
        device: where to run; the current device if left out.
        adjoint: whether to run the kernel's adjoint.
        block_dim: threads in a block, as for :func:`launch`; max_blocks: the most that run at a time.

    Usually it comes from ``wp.launch(…, record_cmd=True)``:

    >>> import treadle as wp
    >>> @wp.kernel
    ... def add(a: wp.array(dtype=float), s: float):
    ...     a[wp.tid()] += s
    >>> a = wp.zeros(2, dtype=float)
    >>> command = wp.launch(add, dim=2, inputs=[a, 1.0], record_cmd=True)
    >>> command.launch()
    >>> command.set_param_by_name("s", 10.0)
    >>> command.launch()
    >>> a.list()
    [11.0, 11.0]
    """

    def __init__(
        self, kernel: Kernel, device: Any = None, *, adjoint: bool = False, max_blocks: int = 0,
        block_dim: int | None = None, checked: bool | None = None,
    ):  # fmt: skip
        self.device = get_device(device)
        self.kernel = in_blocks(kernel, block_dim, self.device) if block_dim else kernel
        self.adjoint, self.checked, self.max_blocks = adjoint, checked, max_blocks
        self.dim: tuple[int, ...] = (0,)
        self._values: list[Any] = [_zero(t) for t in kernel.declared]
        self._adjoints: list[Any] = [None] * len(self._values)
        self._program: Program | None = None  # once it is prepared
        self._command: Any = None
        self._types: tuple[Any, ...] = ()

    @classmethod
    def recorded(
        cls, kernel: Kernel, dim: Any, values: list[Any], device: Any, checked: bool | None,
        adjoints: list[Any] | None, max_blocks: int = 0,
    ) -> Launch:  # fmt: skip
        """A launch of ``values``, ready to run; the adjoint, with its gradients, where ``adjoints`` are given."""
        where, dims, values, _ = bound(kernel, dim, values, device)
        made = cls(kernel, where, adjoint=adjoints is not None, checked=checked, max_blocks=max_blocks)
        made._adjoints = list(adjoints or []) or made._adjoints
        made._prepare(dims, values)
        return made

    def _prepare(self, dims: tuple[int, ...], values: list[Any]) -> None:
        """Take a grid and arguments that fit each other; nothing is changed where they do not."""
        bound_values, types = self.kernel.bind(list(values))
        program, packed = ready(self.kernel, types, dims, bound_values, self.checked, self.device)
        self._command = program.command(packed, dims, bound_values)
        self._command.limit(self.max_blocks)
        self._program, self.dim, self._values, self._types = program, dims, bound_values, types

    @property
    def block_dim(self) -> int:
        """How many threads a block has."""
        return abs(self.kernel.block)  # a negative one is that of hardware threads that share the work of one

    @property
    def params(self) -> tuple[Any, ...]:
        """The arguments as they are now."""
        return (*self._values,)

    @property
    def bounds(self) -> Bounds:
        """The grid as the kernel sees it."""
        asked = self._program.entry.meta["axes"] if self._program is not None else []
        rank = max(asked) + 1 if asked else len(self.dim)
        shape = (*self.dim, *(1,) * (rank - len(self.dim)))[:rank]
        return Bounds(shape, prod(self.dim), prod(self.dim[rank:]))

    def launch(self, stream: Any = None) -> None:
        """Run it. A tape that records notes it like any other launch."""
        if self._program is None:
            self._prepare(self.dim, self._values)
        if self.adjoint:
            from .adjoint_launch import launch_adjoint

            launch_adjoint(self.kernel, self.dim, self._values, (), self._adjoints, (), self.device)
        elif watch.watchers or config.verify_fp:
            assert self._program is not None
            run(self.kernel, self._types, self._program, self._command, [*self._values], self.dim, True)
        elif stream is not None and stream.device is self.device:
            with apart(stream.device, stream):
                self._command()
        else:
            self._command()

    def set_dim(self, dim: Any) -> None:
        """Change the extent of the grid."""
        dims = normal_dims(dim, self.kernel.key)
        if self._program is None:
            self.dim = dims
        else:
            self._prepare(dims, self._values)

    def set_param_at_index(self, index: int, value: Any, adjoint: bool = False) -> None:
        """Change argument number ``index``, or the gradient used for it.

        Raises:
            LaunchError: the kernel has no such argument.
        """
        self._demand(index)
        if adjoint:
            self._adjoints[index] = value
            return
        name = self.kernel.parameters[index].name
        new, _ = bind_one(value, self.kernel.declared[index], name, self.kernel.key)
        values = [*self._values]
        values[index] = new
        self.set_params(values)

    def set_param_by_name(self, name: str, value: Any, adjoint: bool = False) -> None:
        """Change the argument called ``name``, or the gradient used for it."""
        self.set_param_at_index(self._index(name), value, adjoint)

    def set_param_at_index_from_ctype(self, index: int, value: Any, adjoint: bool = False) -> None:
        """Change argument number ``index`` to a value of :mod:`ctypes`: a number, or an array or structure that lies in
        memory as the kernel's vector, matrix or struct does. Arrays, and Python's numbers, are taken as they are.

        Raises:
            LaunchError: the kernel has no such argument.
            LaunchTypeError: it is of another size, or none that the argument takes.
        """
        self.set_param_at_index(index, value if adjoint else self._read(index, value), adjoint)

    def set_param_by_name_from_ctype(self, name: str, value: Any) -> None:
        """The same for the argument called ``name``."""
        self.set_param_at_index_from_ctype(self._index(name), value)

    def set_params_from_ctypes(self, values: Sequence[Any]) -> None:
        """The same for all arguments."""
        many = len(self._values)  # what is more than the kernel takes is counted with the rest
        self.set_params([*[self._read(k, value) for k, value in enumerate(values[:many])], *values[many:]])

    def _demand(self, index: int) -> None:
        many = len(self._values)
        if not -many <= index < many:
            raise LaunchError(f"kernel {self.kernel.key} takes {many} arguments, there is no number {index}")

    def _index(self, name: str) -> int:
        names = [p.name for p in self.kernel.parameters]
        if name not in names:
            raise LaunchError(f"kernel {self.kernel.key} has no argument {name!r}; it has {', '.join(names)}")
        return names.index(name)

    def _read(self, index: int, value: Any) -> Any:
        """What a value of :mod:`ctypes` means for argument number ``index``."""
        self._demand(index)
        if not isinstance(value, (ctypes.Array, ctypes.Structure, ctypes.Union)):
            return getattr(value, "value", value) if isinstance(value, ctypes._SimpleCData) else value
        t, size = self._types[index] if self._types else self.kernel.declared[index], ctypes.sizeof(value)
        views = isinstance(t, Struct) and any([isinstance(leaf.type, View) for leaf in leaves(t)])
        if not isinstance(t, Vector | Matrix | Struct) or views or size != t.size:
            what = f"kernel {self.kernel.key}: argument {self.kernel.parameters[index].name!r} is {spell(t)}"
            raise LaunchTypeError(f"{what}, which {size} bytes of {type(value).__name__} are not")
        return array(np.frombuffer(bytes(value), numpy_dtype(t)), dtype=class_of(t), device="cpu").list()[0]

    def set_params(self, values: Sequence[Any]) -> None:
        """Change all arguments."""
        if self._program is None:
            self._values = list(values)
        else:
            self._prepare(self.dim, list(values))
