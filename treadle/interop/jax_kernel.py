"""``wp.jax_kernel``: a kernel as a function of JAX."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from ..base.config import config
from ..base.errors import LaunchError, LaunchTypeError
from ..lang.kernel import Kernel
from ..runtime.elements import Element
from ..runtime.launch import normal_dims
from .extras import jax
from .jax_arguments import bind, outputs, packed_value
from .jax_launch import INOUT, INPUT, Call, Slot
from .jax_primitives import primitives, varying_alike
from .signature import Signature, dims_of, frozen_dims, output_shape

VMAP_METHODS = ("broadcast_all", "expand_dims", "sequential", "sequential_unrolled", "legacy_vectorized", None)


class JaxModulePreloadMode(IntEnum):
    """When code is compiled: here always when JAX compiles what calls it, and it is kept in the kernel cache."""

    NONE = 0
    CURRENT_DEVICE = 1
    ALL_DEVICES = 2


def jax_kernel(
    kernel: Kernel,
    num_outputs: int = 1,
    vmap_method: str | None = "broadcast_all",
    launch_dims: Any = None,
    output_dims: Any = None,
    in_out_argnames: Sequence[str] | None = None,
    module_preload_mode: JaxModulePreloadMode = JaxModulePreloadMode.CURRENT_DEVICE,
    enable_backward: bool = False,
    has_side_effect: bool = False,
    block_dim: int | None = None,
) -> JaxKernel:
    """A function of JAX's arrays that launches ``kernel``; inside ``jax.jit`` no Python runs when it is called.

    It can be differentiated in both modes (``jax.grad``, ``jax.vjp``, ``jax.jvp``), batched by any nesting of
    ``jax.vmap``, and used under ``jax.checkpoint``, ``lax.scan``, ``jax.pmap`` and ``jax.shard_map``: beyond Warp.

    Args:
        kernel: what ``@wp.kernel`` made. Its arguments are those that are only read, those that are read and written,
            and at the end those that are only written. Arrays of vectors and matrices are arrays of JAX with the
            components in their last dimensions. Numbers, vectors, matrices and structs may be known while JAX traces;
            numbers, vectors and matrices also come as arrays of JAX, and then have derivatives too.
        num_outputs: how many results there are: the arguments in ``in_out_argnames``, and the last ones.
        vmap_method: how ``jax.vmap`` batches: None forbids it; all others repeat the launch in machine code.
        launch_dims: the grid; the shape of the first array if left out.
        output_dims: shapes of results that are only written, one for all or by name; the grid if left out.
        in_out_argnames: arguments that are operands and results. JAX copies the operand first if somebody else uses
            it, and not where it is donated.
        module_preload_mode: accepted for compatibility.
        enable_backward: accepted for compatibility: there always is a derivative.
        has_side_effect: keep calls whose results are not used.
        block_dim: threads in a block, as for ``wp.launch``.

    Returns: a function of the inputs, with the keywords ``launch_dims``, ``output_dims`` and ``vmap_method`` that
        replace those given here; it gives a tuple of results.

    Raises:
        ValueError, TypeError: arguments that do not go with the kernel.
        LaunchTypeError: when the function is called, a type or shape that does not fit; the message names both.

    Elements of results that the kernel does not write are 0. What a kernel reports while XLA runs it, such as an index
    outside an array in ``debug`` mode, is raised by JAX.

    >>> import jax, treadle as wp
    >>> @wp.kernel
    ... def scaled(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     y[i] = s * x[i] * x[i]
    >>> f = wp.jax_kernel(scaled)
    >>> jax.grad(lambda x: jax.jit(f, static_argnums=1)(x, 3.0)[0].sum())(jax.numpy.arange(3.0)).tolist()
    [0.0, 6.0, 12.0]
    """
    if not isinstance(kernel, Kernel):
        raise LaunchTypeError(f"wp.jax_kernel takes a kernel, not {type(kernel).__name__}",
                              hint="decorate it with @wp.kernel; wp.jax_callable takes functions")  # fmt: skip
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"vmap_method is one of {', '.join(map(repr, VMAP_METHODS))}, not {vmap_method!r}")
    if block_dim is not None:
        if isinstance(block_dim, bool) or not hasattr(block_dim, "__index__"):
            raise TypeError(f"block_dim must be an integer or None, not {block_dim!r}")
        block_dim = operator.index(block_dim)
        if block_dim < 1:
            raise ValueError(f"block_dim must be positive, not {block_dim}")
    in_out = tuple(in_out_argnames or ())
    launch = None if launch_dims is None else dims_of(launch_dims, "launch_dims")
    shapes = frozen_dims(output_dims)
    key = (num_outputs, vmap_method, launch, shapes, in_out, bool(has_side_effect), block_dim, bool(enable_backward))
    made = _kernels.setdefault(kernel, {})
    if key not in made:
        made[key] = JaxKernel(kernel, num_outputs, vmap_method, launch, output_dims, in_out, has_side_effect, block_dim)
    return made[key]


_kernels: dict[Kernel, dict[Any, JaxKernel]] = {}  # as long as XLA may call them: always


class JaxKernel:
    """A kernel as a function of JAX; see :func:`jax_kernel`."""

    def __init__(self, kernel: Kernel, num_outputs: int, vmap_method: str | None, launch_dims: Any, output_dims: Any,
                 in_out: tuple[str, ...], has_side_effect: bool, block_dim: int | None):  # fmt: skip
        jax()
        self.kernel, self.vmap_method, self.block_dim = kernel, vmap_method, block_dim
        self.launch_dims, self.output_dims = launch_dims, output_dims
        self.has_side_effect, self.num_outputs = has_side_effect, num_outputs
        names = [p.name for p in kernel.parameters]
        self.signature = Signature(f"kernel {kernel.key}", names, kernel.declared, num_outputs, in_out)
        self.signature.check_names(output_dims)
        self.__name__ = kernel.key
        self._calls: dict[Any, Call] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.kernel.key} for JAX>"

    def __call__(
        self, *args: Any, output_dims: Any = None, launch_dims: Any = None, vmap_method: str | None = None
    ) -> tuple[Any, ...]:
        """Launch the kernel.

        Args:
            args: the inputs, in order.
            output_dims, launch_dims, vmap_method: see :func:`jax_kernel`.

        Raises:
            LaunchError, LaunchTypeError: their number, types or shapes do not fit.
        """
        self.signature.check_names(output_dims)
        bound = bind(self.signature, args)
        dims = self._grid([slot for slot, _ in bound], launch_dims)
        given = self.output_dims if output_dims is None else output_dims
        first = next((s for s, _ in bound if s.role in (INPUT, INOUT)), None)

        def shape_of(name: str, e: Element, ndim: int) -> tuple[int, ...]:
            shape = output_shape(name, given)
            if shape is None and len(dims) != ndim and first is not None and first.type.ndim == ndim:
                shape = first.shape[:ndim]
            return dims if shape is None else shape

        slots = (*[slot for slot, _ in bound], *outputs(self.signature, bound, shape_of))
        call = self._call(dims, slots, vmap_method or self.vmap_method)
        operands = [x for _, x in bound if x is not None]
        return tuple(primitives().launch.bind(*varying_alike(operands), call=call, batch=()))

    def _grid(self, slots: Sequence[Slot], launch_dims: Any) -> tuple[int, ...]:
        given = self.launch_dims if launch_dims is None else launch_dims
        if given is not None:
            return normal_dims(given, self.kernel.key)
        for slot in slots:
            if slot.role in (INPUT, INOUT):
                return normal_dims(slot.shape[: slot.type.ndim], self.kernel.key)
        raise LaunchError(f"kernel {self.kernel.key} has no array among its inputs, so its grid is not known",
                          hint="give it: launch_dims=…")  # fmt: skip

    def _call(self, dims: tuple[int, ...], slots: tuple[Slot, ...], vmap_method: str | None) -> Call:
        """The call; like ones are one object, which JAX compares by identity."""
        facts = [(s.type, s.role, s.shape, s.dtype, packed_value(s)) for s in slots]
        key = (dims, *facts, vmap_method is None, config.mode, config.enable_cpu_blocks)
        found = self._calls.get(key)
        if found is None:
            batches = vmap_method is not None
            found = Call(self.kernel, dims, slots, self.has_side_effect, batches, self.block_dim)
            self._calls[key] = found
        return found
