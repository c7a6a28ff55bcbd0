"""One launch as a function of JAX's arrays: what its operands and results are, and the targets that XLA calls for it,
for its tangents and for its adjoint."""

from __future__ import annotations

import struct
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

from ..base.errors import KernelGradientError, KernelValueError
from ..lang.blocks import in_blocks
from ..lang.jvp import Doubled
from ..lang.plan import Plan, plan_of
from ..lang.struct import zero_of
from ..runtime.adopt import dense_strides
from ..runtime.array_views import product
from ..runtime.elements import element_of
from ..runtime.launch import Program
from ..runtime.packing import packer
from ..types.core import Type, View, view
from ..types.layout import has_floats, has_tangent
from .xla import Buffers, Level, register_launch

INPUT, INOUT, OUTPUT, VALUE, STATIC = "input", "inout", "output", "value", "static"


class Slot(NamedTuple):
    """One parameter of the kernel: an array that is read (``input``), also written (``inout``) or made (``output``), a
    value that JAX computes, or one that is known (``static``). ``shape`` and ``dtype``: as JAX has it. ``value``: what
    is known, or what JAX's value always is."""

    name: str
    type: Type
    role: str
    shape: tuple[int, ...] = ()
    dtype: Any = None
    value: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes of the whole."""
        return product(self.shape) * self.dtype.itemsize

    @property
    def floats(self) -> bool:
        """Whether it has a derivative."""
        return has_floats(self.type.elem if isinstance(self.type, View) else self.type)

    @property
    def boxes(self) -> bool:
        """Whether its gradient is that of an array of one element: adjoints know none of what all threads share."""
        return self.role == VALUE and self.floats


class Lowered(NamedTuple):
    """A target: its ``name``; shape and dtype of all ``results``, the first ``kept`` of which are those of the function
    and the others memory to work in; the operands that become results."""

    name: str
    results: tuple[tuple[tuple[int, ...], Any], ...]
    kept: int
    aliases: dict[int, int]


class Call:
    """A launch of ``kernel`` over a grid of ``dims``, with its parameters. Calls that are alike are one object."""

    def __init__(
        self, kernel: Any, dims: tuple[int, ...], slots: tuple[Slot, ...], effect: bool = False, batches: bool = True,
        block_dim: int | None = None,
    ):  # fmt: skip
        self._asked = kernel, block_dim
        self.kernel, self.dims, self.slots, self.batches = in_blocks(kernel, block_dim), dims, slots, batches
        self.wanted = self.effect = effect  # also where nobody uses its results
        self.key = kernel.key
        self.operands = tuple([s for s in slots if s.role in (INPUT, INOUT, VALUE)])
        self.results = tuple([s for s in slots if s.role in (INOUT, OUTPUT)])
        self.place = {s.name: k for k, s in enumerate(self.operands)}
        self.types = tuple([s.type for s in slots])
        self.float_results = tuple([s for s in self.results if s.floats])
        self.device: Any = None  # where it runs, if not on the host's memory
        self._elsewhere: dict[Any, Call] = {}
        self._made: dict[Any, Any] = {}

    def on(self, device: Any) -> Call:
        """The same launch on a GPU."""
        found = self._elsewhere.get(device)
        if found is None:
            found = copy(self)
            found.device, found._made = device, {}
            found.kernel = in_blocks(*self._asked, device)
            for name in ("program", "plan"):
                found.__dict__.pop(name, None)
            self._elsewhere[device] = found
        return found

    @property
    def overload(self) -> Any:
        """The kernel for these types, where it runs."""
        return self.kernel.overload(self.types, self.device)

    def __repr__(self) -> str:
        return self.kernel.key

    @cached_property
    def by_arrays(self) -> Call:
        """The same launch, with the floats that JAX computes as arrays of one element, so that they have gradients."""
        names = tuple([s.name for s in self.slots if s.boxes])
        if not names:
            return self
        slots = tuple([s._replace(type=view(s.type, 1), role=INPUT, shape=(1, *s.shape), value=None) if s.boxes else s
                       for s in self.slots])  # fmt: skip
        kernel, block_dim = self._asked
        return Call(kernel.boxed(names), self.dims, slots, self.wanted, self.batches, block_dim)

    def longer(self, times: int) -> None:
        """None: a batch repeats the launch."""

    # What is known of the kernel ----------------------------------------------------------------------------------

    @cached_property
    def program(self) -> Program:
        """The code; what the kernel may not do to its arrays is refused.

        Raises:
            IndexOutOfRange: an index that is the same in every launch leaves its array.
            KernelValueError: the kernel writes to what is no result.
        """
        return self.overload.variant(self.dims).program

    @cached_property
    def plan(self) -> Plan:
        """Which arrays the kernel reads and writes."""
        plan = plan_of(self.kernel, self.overload, self.program)
        for site in plan.writes:
            slot = self.slots[site.k]
            if slot.role == INPUT:
                raise KernelValueError(
                    f"kernel {self.kernel.key} writes to its argument {slot.name!r}, an input: JAX's arrays are values "
                    "that nobody changes",
                    hint=f"in_out_argnames=[{slot.name!r}] makes it an input and a result",
                )
        return plan

    def covered(self, slot: Slot) -> bool:
        """Whether the launch stores to all of an output, and reads nothing of it before."""
        for site in self.plan.sites:
            if self.slots[site.k] is slot and not site.fields:
                axes = site.covers
                outer = slot.shape[: slot.type.ndim]
                return not site.loads and axes is not None and len(axes) == len(self.dims) and all(
                    self.dims[axis] >= extent for axis, extent in zip(axes, outer, strict=True))  # fmt: skip
        return False

    # Targets ------------------------------------------------------------------------------------------------------

    def launch(self, batch: tuple[Level, ...]) -> Lowered:
        """The launch itself: operands to results."""
        key = "launch", batch
        if key not in self._made:
            made = _Assembly(self, lambda call: call.program, batch)
            for slot, offset in zip(self.slots, self.program.offsets, strict=False):
                made.put(slot, offset, made.data_of(slot, covered=slot.role == OUTPUT and self.covered(slot)))
            self._made[key] = made.lowered(len(self.results))
        return self._made[key]

    def tangent(self, active: tuple[int, ...], batch: tuple[Level, ...]) -> Lowered:
        """Operands, and tangents of the ``active`` ones, to tangents of the results that have floats."""
        key = "tangent", active, batch
        if key not in self._made:
            self._made[key] = self._tangent(active, batch)
        return self._made[key]

    def _doubled(self, active: tuple[int, ...]) -> Program:
        """The launch with tangents of the ``active`` operands beside its values."""
        names = tuple(sorted([self.operands[k].name for k in active]))
        overload = self.overload
        doubled = overload.doubled.get(names)
        if doubled is None:
            doubled = overload.doubled[names] = Doubled(self.kernel, overload, names)
        return doubled.variant(self.dims).program

    def _tangent(self, active: tuple[int, ...], batch: tuple[Level, ...]) -> Lowered:
        made = _Assembly(self, lambda call: call._doubled(active), batch)
        program = made.program
        needed = set(program.entry.meta["tangents"])
        behind = {self.operands[k].name: len(self.operands) + n for n, k in enumerate(active)}
        moving = [s for s in self.slots if has_tangent(s.type)]
        tangents = {}
        for slot in self.float_results:  # what is returned comes first
            clear = slot.role == INOUT or slot.name not in needed or not self.covered(slot)
            tangents[slot.name] = made.like(slot, clear, behind.get(slot.name))
        for slot, offset in zip(self.slots, program.offsets, strict=False):
            made.put(slot, offset, made.data_of(slot, covered=slot.role == OUTPUT and self.covered(slot)))
        for slot, offset in zip(moving, program.offsets[len(self.slots) :], strict=True):
            source = tangents.get(slot.name)
            if source is None and slot.name in behind:
                source = (False, behind[slot.name])
            if isinstance(slot.type, View):
                made.view(slot, offset, source if slot.name in needed else None)
            elif source is not None:
                made.move(source, slot.nbytes, offset, slot.type.size)
            else:
                made.static(offset, slot.type, zero_of(slot.type))
        return made.lowered(len(self.float_results))

    def adjoint_program(self, active: tuple[int, ...]) -> Program:
        """The adjoint, for gradients of the ``active`` operands.

        Raises:
            KernelGradientError: the kernel, its module or the settings allow none.
        """
        if not self.plan.differentiates():
            raise KernelGradientError(f"kernel {self.key} has no adjoint: enable_backward is False")
        arrays = {self.operands[k].name for k in active} | {s.name for s in self.float_results}
        names = tuple([site.name for site in self.plan.sites if site.floats and site.name in arrays])
        return self.overload.adjoint(self.dims, names).program

    def winners(self, active: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Results of which the adjoint must see what the launch left; and those of them that it only looks at."""
        meta = self.adjoint_program(active).entry.meta
        seen = {self.slots[path[0]].name for path in meta["seen"]}
        winners = {self.slots[path[0]].name for path in meta["winners"]}
        names = tuple([s.name for s in self.results if s.name in winners | seen])
        return names, tuple([name for name in names if name in seen - winners])

    def adjoint(self, active: tuple[int, ...], given: tuple[int, ...], batch: tuple[Level, ...]) -> Lowered:
        """Operands, what the launch left in the winners, and cotangents of the ``given`` results with floats, to
        gradients of the ``active`` operands, each with all axes of the batch."""
        key = "adjoint", active, given, batch
        if key not in self._made:
            self._made[key] = self._adjoint(active, given, batch)
        return self._made[key]

    def _adjoint(self, active: tuple[int, ...], given: tuple[int, ...], batch: tuple[Level, ...]) -> Lowered:
        made = _Assembly(self, lambda call: call.adjoint_program(active), batch)
        program, (winners, _) = made.program, self.winners(active)
        touched = {self.slots[fact["path"][0]].name for fact in program.entry.meta["touched"]["arrays"]}
        first = len(self.operands)
        after = {name: first + n for n, name in enumerate(winners)}
        cotangents = {self.float_results[k].name: first + len(winners) + n for n, k in enumerate(given)}
        grads: dict[str, tuple[bool, int]] = {}
        for k in active:
            slot = self.operands[k]
            grads[slot.name] = made.like(slot, True, cotangents.get(slot.name))
        for slot in self.float_results:
            if slot.name not in grads:
                grads[slot.name] = made.like(slot, True, cotangents.get(slot.name))
        for slot, offset in zip(self.slots, program.offsets, strict=True):
            if slot.role in (INOUT, OUTPUT):
                source = None
                if slot.name in touched:
                    source = made.like(slot, True, after.get(slot.name, self.place.get(slot.name)))
            else:
                source = made.data_of(slot)
            made.put(slot, offset, source, grads.get(slot.name))
        return made.lowered(len(active))

    def second(
        self, active: tuple[int, ...], given: tuple[int, ...], moved: tuple[int, ...], dotted: tuple[int, ...],
        batch: tuple[Level, ...],
    ) -> Lowered:  # fmt: skip
        """How the gradients of the ``active`` operands change as the ``moved`` operands do, and the ``dotted`` ones of
        the cotangents: operands, tangents, cotangents of the ``given`` results, tangents of cotangents, to tangents of
        gradients.

        It is the adjoint of the launch with tangents. With seeds c' for the results and c for their tangents, what it
        adds to the gradient of x is Jᵀc' + ∂/∂x (cᵀ J ẋ), and second derivatives may be taken in either order.
        """
        key = "second", active, given, moved, dotted, batch
        if key not in self._made:
            self._made[key] = self._second(active, given, moved, dotted, batch)
        return self._made[key]

    def _second(
        self, active: tuple[int, ...], given: tuple[int, ...], moved: tuple[int, ...], dotted: tuple[int, ...],
        batch: tuple[Level, ...],
    ) -> Lowered:  # fmt: skip
        names = {s.name for s in self.float_results} | {self.operands[k].name for k in active}
        both = tuple([site.name for site in self.plan.sites if site.floats and site.name in names])
        hot = {self.operands[k].name for k in moved} | {*self._doubled(moved).entry.meta["tangents"]}
        tangents = tuple(sorted({*hot, *[f"grad {name}" for name in both]}))
        made = _Assembly(self, lambda call: call.overload.tangent(self.dims, tangents, both).program, batch)
        program, first = made.program, len(self.operands)
        motion = {self.operands[k].name: first + n for n, k in enumerate(moved)}
        seeds = {self.float_results[k].name: first + len(moved) + n for n, k in enumerate(given)}
        first += len(moved) + len(given)
        changes = {self.float_results[k].name: first + n for n, k in enumerate(dotted)}
        graded = [self.operands[k] for k in active]
        graded += [s for s in self.float_results if s not in graded]
        grads = {s.name: made.like(s, True, changes.get(s.name)) for s in graded}
        for slot, offset in zip(self.slots, program.offsets, strict=False):
            made.put(slot, offset, made.data_of(slot), grads.get(slot.name))
        moving = [s for s in self.slots if has_tangent(s.type)]
        for slot, offset in zip(moving, program.offsets[len(self.slots) :], strict=True):
            place = motion.get(slot.name)
            if not isinstance(slot.type, View):
                if place is None:
                    made.static(offset, slot.type, zero_of(slot.type))
                else:
                    made.move((False, place), slot.nbytes, offset, slot.type.size)
                continue
            written = slot.role != INPUT
            source = made.like(slot, True, place) if written or place is None else (False, place)
            grad = made.like(slot, True, seeds.get(slot.name)) if slot.name in grads else None
            made.view(slot, offset, source, grad)
        return made.lowered(len(active))


class _Assembly(Buffers):
    """The arguments of a launch, being put together."""

    def __init__(self, call: Call, find: Callable[[Call], Program], batch: tuple[Level, ...]):
        """``find`` gives the program of the call, or of the same one elsewhere."""
        super().__init__(batch)
        self.call, self.find, self.program = call, find, find(call)
        self.packed = bytearray(self.program.args_size)

    def like(self, slot: Slot, clear: bool, alias: int | None = None) -> tuple[bool, int]:
        """A new result like ``slot``: it begins as operand ``alias``, or cleared, or as memory is."""
        return self.result(slot.shape, slot.dtype, clear, alias)

    def data_of(self, slot: Slot, covered: bool = False) -> tuple[bool, int] | None:
        """Where the data of a parameter lies: in an operand, or in a result that is made here."""
        if slot.role == VALUE and slot.value is not None and self.call.device is not None:
            return None  # else it would be fetched from the GPU, and waited for, in each call
        if slot.role in (INPUT, VALUE):
            return False, self.call.place[slot.name]
        if slot.role == STATIC:
            return None
        return self.like(slot, not covered, self.call.place.get(slot.name))

    def put(self, slot: Slot, offset: int, source: tuple[bool, int] | None, grad: Any = None) -> None:
        """Let a parameter be what ``source`` says, with its gradient."""
        if isinstance(slot.type, View):
            self.view(slot, offset, source, grad)
        elif source is None:
            self.static(offset, slot.type, slot.value)
        else:
            self.move(source, slot.nbytes, offset, slot.type.size)

    def static(self, offset: int, t: Type, value: Any) -> None:
        """A value that is known."""
        packer(t)(self.packed, offset, value)

    def view(self, slot: Slot, offset: int, source: tuple[bool, int] | None, grad: Any = None) -> None:
        """An array, dense as XLA has all of them."""
        t = slot.type
        e, shape = element_of(t.elem), slot.shape[: t.ndim]
        strides = dense_strides(shape, e.size)
        struct.pack_into(f"<QQ{2 * t.ndim + 1}q", self.packed, offset, 0, 0, *shape, *strides, e.component)
        for place, at in ((source, offset), (grad, offset + 8)):
            if place is not None:
                self.move(place, slot.nbytes, at)

    def lowered(self, kept: int) -> Lowered:
        """The target."""
        dims = self.call.dims
        self.program.command(self.packed, dims)  # raises where the grid has too many threads
        self.program.check_own(self.packed, dims)
        self.call.plan  # noqa: B018, it refuses what the kernel may not do
        if self.call.device is None:
            name = register_launch(self.program, bytes(self.packed), dims, self)
        else:
            from . import xla_gpu

            call, find = self.call, self.find
            name = xla_gpu.register_launch(lambda gpu: find(call.on(gpu)), call.device, bytes(self.packed), dims, self)
        return Lowered(name, tuple(self.results), kept, self.aliases)
