"""``wp.jax_callable``: a Python function that launches kernels as a function of JAX."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from ..base.errors import LaunchError, LaunchTypeError
from ..base.logs import log_warning
from ..lang.kernel import Kernel
from ..lang.recorder import recorder_for
from ..runtime.elements import Element
from .jax_arguments import bind, outputs, packed_value
from .jax_bodies import Body
from .jax_kernel import VMAP_METHODS, JaxModulePreloadMode
from .jax_launch import INOUT, INPUT, Slot
from .jax_nesting import compiled_apart
from .jax_primitives import primitives, varying_alike
from .signature import Signature, declared_of, frozen_dims, output_shape

GRAPH_CACHE_MAX = 32
MERGE = "merge"


class JaxCallableGraphMode(IntEnum):
    """How a function's launches come to run. NONE: the function is called each time. All others: it is captured once
    for shapes and known values, and the graph runs; memory of JAX is used where it is, so nothing need be staged."""

    NONE = 0
    JAX = 1
    WARP = 2
    WARP_STAGED = 3
    WARP_STAGED_EX = 4


def jax_callable(
    func: Callable[..., Any],
    num_outputs: int = 1,
    graph_mode: JaxCallableGraphMode = JaxCallableGraphMode.JAX,
    vmap_method: str | None = "broadcast_all",
    output_dims: Any = None,
    in_out_argnames: Sequence[str] | None = None,
    stage_in_argnames: Sequence[str] | None = None,
    stage_out_argnames: Sequence[str] | None = None,
    graph_cache_max: int | None = GRAPH_CACHE_MAX,
    module_preload_mode: JaxModulePreloadMode = JaxModulePreloadMode.CURRENT_DEVICE,
    has_side_effect: bool = False,
    checkpoint: int | str = "all",
) -> JaxCallable:
    """A function of JAX's arrays that does what ``func`` does with arrays: launches, copies, fills, tapes.

    ``func`` is captured as a graph when JAX compiles what calls it, once for shapes and known values, and in calls no
    Python runs. Where it cannot be captured, because it reads arrays, it is called each time; a warning says so once.
    Both modes of derivatives work as well: the adjoint records ``func`` on a tape and goes back, forward mode carries
    tangents along with its launches and copies, each as a graph of its own.

    Arrays of treadle that ``func`` reaches in other ways than by its arguments are state: read, and written, when a
    call runs. A function that writes to some has no derivatives, and its calls never run at the same time as others of
    this kind, nor as those of functions that are called instead of captured: of them nothing is known.

    Args:
        func: a function with annotations like a kernel's, whose last arguments are results. Arguments that are no
            arrays must be known while JAX traces.
        num_outputs: how many results there are: the arguments in ``in_out_argnames``, and the last ones.
        graph_mode: see :class:`JaxCallableGraphMode`.
        vmap_method: how ``jax.vmap`` batches: None forbids it; "merge" (beyond Warp) makes the first axis of all arrays
            longer, for functions whose work at one index of it touches nothing of the others; all others repeat the
            work for each element.
        output_dims: shapes of results that are only written, one for all or by name; that of the first array if left
            out. What ``func`` does not write is 0.
        in_out_argnames: arguments that are operands and results.
        stage_in_argnames, stage_out_argnames: accepted for compatibility; no memory is staged.
        graph_cache_max: how many graphs are kept; None keeps all. Others are captured again when they are called.
        module_preload_mode: accepted for compatibility.
        has_side_effect: keep calls whose results are not used.
        checkpoint: what the tape of reverse mode keeps, as of :class:`Tape` (beyond Warp).

    Returns: a function of the inputs, with the keywords ``output_dims`` and ``vmap_method``; it gives a tuple.

    Raises:
        ValueError, TypeError: arguments that do not go with ``func``, or one of its parameters has no annotation.
        LaunchTypeError: when it is called, a type or shape that does not fit.

    >>> import jax, treadle as wp
    >>> @wp.kernel
    ... def halve(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     y[i] = 0.5 * x[i]
    >>> def quarter(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    ...     half = wp.empty_like(x)
    ...     wp.launch(halve, dim=x.shape, inputs=[x], outputs=[half])
    ...     wp.launch(halve, dim=x.shape, inputs=[half], outputs=[y])
    >>> jax.jit(wp.jax_callable(quarter))(jax.numpy.arange(3.0))[0].tolist()
    [0.0, 0.25, 0.5]
    """
    if isinstance(func, Kernel):
        raise LaunchTypeError(f"wp.jax_callable takes a function that launches kernels; {func.key} is a kernel",
                              hint=f"wp.jax_kernel({func.key})")  # fmt: skip
    if not callable(func):
        raise LaunchTypeError(f"wp.jax_callable takes a function, not {type(func).__name__}")
    if vmap_method not in (*VMAP_METHODS, MERGE):
        raise ValueError(f"vmap_method is one of {', '.join(map(repr, (*VMAP_METHODS, MERGE)))}, not {vmap_method!r}")
    recorder_for(checkpoint)  # raises where there is no such schedule
    in_out, mode = tuple(in_out_argnames or ()), JaxCallableGraphMode(graph_mode)
    stages = tuple(stage_in_argnames or ()), tuple(stage_out_argnames or ())
    key = (num_outputs, mode, vmap_method, frozen_dims(output_dims), in_out, stages, graph_cache_max,
           bool(has_side_effect), checkpoint)  # fmt: skip
    made = _callables.setdefault(func, {})
    if key not in made:
        made[key] = JaxCallable(func, num_outputs, mode, vmap_method, output_dims, in_out, stages, graph_cache_max,
                                has_side_effect, checkpoint)  # fmt: skip
    return made[key]


_callables: dict[Any, dict[Any, JaxCallable]] = {}  # as long as XLA may call them: always


def clear_jax_callable_graph_cache(callable: JaxCallable | None = None) -> None:
    """Forget the graphs of a function of JAX, or of all; they are captured again when they are called."""
    every = [made for group in _callables.values() for made in group.values()]
    for each in every if callable is None else [callable]:
        each.forget()


class JaxCallable:
    """A Python function as a function of JAX; see :func:`jax_callable`."""

    def __init__(self, func: Any, num_outputs: int, mode: JaxCallableGraphMode, vmap_method: str | None,
                 output_dims: Any, in_out: tuple[str, ...], stages: tuple[tuple[str, ...], tuple[str, ...]],
                 graph_cache_max: int | None, has_side_effect: bool, checkpoint: int | str):  # fmt: skip
        compiled_apart()
        self.checkpoint = checkpoint
        self.func, self.graph_mode, self.vmap_method, self.output_dims = func, mode, vmap_method, output_dims
        self.graph_cache_max, self.has_side_effect, self.num_outputs = graph_cache_max, has_side_effect, num_outputs
        self.__name__ = getattr(func, "__name__", type(func).__name__)
        names, declared = declared_of(func, self.__name__)
        self.signature = Signature(f"function {self.__name__}", names, declared, num_outputs, in_out, traced=False)
        self.signature.check_names(output_dims)
        self.stage_in_argnames, self.stage_out_argnames = map(set, stages)
        for name in self.stage_in_argnames | self.stage_out_argnames:
            if name not in names:
                raise ValueError(f"function {self.__name__} has no argument {name!r} to stage")
        self._bodies: dict[Any, Body] = {}
        self._captured: OrderedDict[Body, None] = OrderedDict()
        self._warned = False

    def __repr__(self) -> str:
        return f"<function {self.__name__} for JAX>"

    @property
    def graph_cache_size(self) -> int:
        """How many graphs are kept now."""
        return len(self._captured)

    def forget(self) -> None:
        """Drop all graphs."""
        while self._captured:
            self._captured.popitem(last=False)[0].forget()

    def warn(self, why: str) -> None:
        """Say, once, that the function is called each time."""
        if not self._warned:
            self._warned = True
            log_warning(f"function {self.__name__} cannot be captured, so JAX calls it each time: {why}")

    def captured(self, body: Body) -> None:
        """Note that ``body`` has a graph now; another one goes where there are too many."""
        self._captured[body] = None
        self._captured.move_to_end(body)
        while self.graph_cache_max is not None and len(self._captured) > max(self.graph_cache_max, 1):
            self._captured.popitem(last=False)[0].forget()

    def __call__(self, *args: Any, output_dims: Any = None, vmap_method: str | None = None) -> tuple[Any, ...]:
        """Do the work.

        Args:
            args: the inputs, in order.
            output_dims, vmap_method: see :func:`jax_callable`.

        Raises:
            LaunchError, LaunchTypeError: their number, types or shapes do not fit.
        """
        self.signature.check_names(output_dims)
        bound = bind(self.signature, args)
        given = self.output_dims if output_dims is None else output_dims
        first = next((s for s, _ in bound if s.role in (INPUT, INOUT)), None)

        def shape_of(name: str, e: Element, ndim: int) -> tuple[int, ...]:
            shape = output_shape(name, given)
            if shape is None and first is None:
                raise LaunchError(f"function {self.__name__} has no array among its inputs, so the shape of {name!r} "
                                  "is not known", hint=f"say it: output_dims={{{name!r}: …}}")  # fmt: skip
            return first.shape[: first.type.ndim] if shape is None else shape  # type: ignore[union-attr]

        slots = (*[slot for slot, _ in bound], *outputs(self.signature, bound, shape_of))
        call = self.body(slots, vmap_method or self.vmap_method)
        operands = [x for _, x in bound if x is not None]
        return tuple(primitives().launch.bind(*varying_alike(operands), call=call, batch=()))

    def body(self, slots: tuple[Slot, ...], vmap_method: str | None) -> Body:
        """What the call is; like ones are one object, which JAX compares by identity."""
        key = (*[(s.type, s.role, s.shape, s.dtype, packed_value(s)) for s in slots], vmap_method)
        found = self._bodies.get(key)
        if found is None:
            found = self._bodies[key] = Body(self, slots, vmap_method)
        return found
