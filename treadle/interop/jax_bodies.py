"""A Python function on arrays as XLA calls it: captured as a graph, or, where that cannot be, called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ..base.digest import digest
from ..base.errors import CaptureError, KernelGradientError, KernelValueError, LaunchTypeError
from ..base.logs import log_warning
from ..lang.contents import copied, put_value
from ..lang.graph import ScopedCapture
from ..lang.natives import install
from ..lang.tape import Tape
from ..runtime.adopt import dense_strides
from ..runtime.array import allocate, array, build
from ..runtime.capture import Launch, every, here
from ..runtime.chains import writes_elsewhere, written_by
from ..runtime.device import get_device
from ..runtime.elements import element_of
from ..runtime.ranges import Ranges
from ..types.core import View
from .jax_arguments import packed_value
from .jax_launch import INOUT, INPUT, OUTPUT, STATIC, Lowered, Slot
from .xla import Buffers, Level, Target, Work, register_work

if TYPE_CHECKING:
    from .jax_callable import JaxCallable

_Function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p)


class Body:
    """A function on arrays of some shapes, with some known values: what the primitives ask of a call."""

    def __init__(self, owner: JaxCallable, slots: tuple[Slot, ...], vmap_method: str | None):
        self.owner, self.slots, self.effect = owner, slots, owner.has_side_effect
        self.vmap_method, self.batches = vmap_method, vmap_method is not None
        self.key = owner.__name__
        self.operands = tuple([s for s in slots if s.role in (INPUT, INOUT)])
        self.results = tuple([s for s in slots if s.role in (INOUT, OUTPUT)])
        self.float_results = tuple([s for s in self.results if s.floats])
        self.place = {s.name: k for k, s in enumerate(self.operands)}
        self._made: dict[Any, Lowered] = {}
        self._tasks: dict[Any, Task] = {}

    def __repr__(self) -> str:
        return self.key

    def forget(self) -> None:
        """Drop the graphs."""
        for task in self._tasks.values():
            task.forget()

    def longer(self, times: int) -> Body | None:
        """The same work with the first axis of all arrays ``times`` as long, where that is how it is batched."""
        if self.vmap_method != "merge":
            return None
        for slot in self.slots:
            if slot.role != STATIC and not (isinstance(slot.type, View) and slot.shape):
                raise LaunchTypeError(f"argument {slot.name!r} of function {self.key} has no first axis to batch over")
        slots = [s if s.role == STATIC else s._replace(shape=(times * s.shape[0], *s.shape[1:])) for s in self.slots]
        return self.owner.body((*slots,), self.vmap_method)

    def _task(self, key: Any, make: Callable[[], Task]) -> Task:
        found = self._tasks.get(key)
        if found is None:
            found = self._tasks[key] = make()
        return found

    def launch(self, batch: tuple[Level, ...]) -> Lowered:
        """The function itself: operands to results."""
        key = "launch", batch
        if key not in self._made:
            buffers, arrays = Buffers(batch), [s for s in self.slots if s.role != STATIC]
            task = self._task("launch", lambda: Task(self, arrays, self._run))
            for slot, use in zip(arrays, task.uses(), strict=True):
                at = self.place.get(slot.name)
                made = slot.role != INPUT
                source = buffers.result(slot.shape, slot.dtype, use != "made", at) if made else (False, at)
                buffers.move(source, slot.nbytes)
            self._made[key] = task.lowered(buffers, len(self.results))
        return self._made[key]

    def _run(self, arrays: Sequence[array]) -> None:
        self.owner.func(*self._arguments(arrays))

    def _arguments(self, arrays: Sequence[array]) -> list[Any]:
        """The arguments of the function, where ``arrays`` are those of its arrays."""
        rest = iter(arrays)
        return [slot.value if slot.role == STATIC else next(rest) for slot in self.slots]

    def tangent(self, active: tuple[int, ...], batch: tuple[Level, ...]) -> Lowered:
        """There is none: a function has derivatives in reverse mode only.

        Raises:
            KernelGradientError: always.
        """
        raise KernelGradientError(
            f"forward mode of function {self.key}, which launches several kernels, is not known",
            hint="wp.jax_kernel has it; jax.grad and jax.vjp work with functions as well",
        )

    def winners(self, active: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Nothing: the tape keeps what adjoints must see."""
        return (), ()

    def adjoint(self, active: tuple[int, ...], given: tuple[int, ...], batch: tuple[Level, ...]) -> Lowered:
        """Operands and cotangents of the ``given`` results with floats to gradients of the ``active`` operands."""
        key = "adjoint", active, given, batch
        if key not in self._made:
            buffers, names = Buffers(batch), [self.operands[k].name for k in active]
            first = len(self.operands)
            seeds = {self.float_results[k].name: first + n for n, k in enumerate(given)}
            graded = [self.operands[k] for k in active]
            graded += [slot for slot in self.float_results if slot.name not in names]
            arrays = [s for s in self.slots if s.role != STATIC]
            places = [arrays.index(slot) for slot in graded]

            def back(given: Sequence[array]) -> None:
                own, rest = given[: len(arrays)], given[len(arrays) :]
                for k, grad in zip(places, rest, strict=True):
                    own[k].grad = grad
                with Tape(self.owner.checkpoint) as tape:
                    self._run(own)
                tape.backward()

            kept = slice(len(arrays), len(arrays) + len(active))
            task = self._task(("adjoint", active), lambda: Task(self, [*arrays, *graded], back, kept))
            uses = task.uses()
            grads = [buffers.result(s.shape, s.dtype, use != "made", seeds.get(s.name))
                     for s, use in zip(graded[: len(active)], uses[len(arrays) :])]  # fmt: skip
            for slot, use in zip(arrays, uses):
                buffers.move(_scratch(buffers, slot, use, self.place.get(slot.name)), slot.nbytes)
            for n, (slot, use) in enumerate(zip(graded, uses[len(arrays) :], strict=True)):
                source = grads[n] if n < len(active) else _scratch(buffers, slot, use, seeds.get(slot.name))
                buffers.move(source, slot.nbytes)
            self._made[key] = task.lowered(buffers, len(active))
        return self._made[key]


def _scratch(buffers: Buffers, slot: Slot, use: str, operand: int | None) -> tuple[bool, int]:
    """Where an array lies that nobody reads after the call: in its operand, unless that would be changed, or in memory
    to work in. What is not used at all may lie anywhere."""
    if use == "unused":
        return False, 0
    if operand is not None and use == "read":
        return False, operand
    return buffers.result(slot.shape, slot.dtype, use != "made", operand)


class Task:
    """Work on arrays, as a graph that native code runs, or as Python; the targets that do it."""

    def __init__(
        self, body: Body, slots: Sequence[Slot], do: Callable[[Sequence[array]], None], kept: slice = slice(None)
    ):
        """``kept``: the arrays that somebody reads afterwards."""
        self.kept = kept
        self.body, self.slots, self.do = body, [*slots], do  # the slots of the body's arrays come first
        self.inputs = [k for k, s in enumerate([s for s in body.slots if s.role != STATIC]) if s.role == INPUT]
        self.targets: list[Target] = []
        self.graph: Any = None
        self.plain = not body.owner.graph_mode  # whether it is called, not captured
        self.weight, self.facts = 1e6, ""
        self._uses: Sequence[str] | None = None
        self._failures: dict[int, BaseException] = {}
        self._called = _Function(self._call)

    def lowered(self, buffers: Buffers, kept: int) -> Lowered:
        """A target that does it on these buffers."""
        work = self._work()
        func = self.body.owner.func
        code = getattr(func, "__code__", None)
        words = [func.__module__ or "", self.body.key, repr(code and digest(code.co_code)), self.facts,
                 repr([(s.name, s.role, s.shape, str(s.dtype), packed_value(s)) for s in self.body.slots])]  # fmt: skip
        target = register_work(words, buffers, self.weight)
        target.does(work)
        self.targets.append(target)
        return Lowered(target.name, tuple(buffers.results), kept, buffers.aliases)

    def uses(self) -> Sequence[str]:
        """What becomes of each array: "unused", "read", "written", or "made", written before any of it is read. Buffers
        are chosen accordingly, so this holds for good."""
        if self._uses is None:
            self._work()
            self._uses = ["written"] * len(self.slots) if self.graph is None else self.graph[1].keepalive.uses
        return self._uses

    def forget(self) -> None:
        """Drop the graph; the next call captures it again."""
        self.graph = None
        for target in self.targets:
            target.does(Work(_address(self._called), 0, self, self._told))

    def _work(self) -> Work:
        """What native code is to call."""
        if self.graph is None and not self.plain:
            self._capture()
        if self.graph is None:
            return Work(_address(self._called), 0, self, self._told)
        graph, native = self.graph
        return Work(native.address, native.context, (graph, native.keepalive),
                    lambda status, words: str(graph.error(status, words, native.keepalive)))  # fmt: skip

    def _capture(self) -> None:
        """Capture the work on arrays that stand for those of the calls."""
        install()
        arrays = [_array(slot, None) for slot in self.slots]
        try:
            with ScopedCapture() as capture:
                here().nests = True  # type: ignore[union-attr]  # the function may capture graphs of its own
                self.do(arrays)
        except CaptureError as error:
            self.plain = True
            log_warning(f"function {self.body.key} cannot be captured, so JAX calls it each time: {error.message}")
            return
        graph = capture.graph
        self._check_inputs(graph, arrays)
        kept = {id(a) for a in arrays[self.kept]}
        native = graph.native(arrays, [a for a in arrays if id(a) not in kept])
        if self._uses is not None and native.keepalive.uses != self._uses:  # somebody holds its temporaries now
            self.plain = True
            return
        self.graph, self.weight = (graph, native), native.keepalive.work
        launches = [entry for entry in every(graph.entries) if isinstance(entry, Launch)]
        self.facts = digest(*[part for e in launches for part in (e.program.entry.binary.code, repr(e.dims))])
        self.body.owner.captured(self.body)

    def _check_inputs(self, graph: Any, arrays: Sequence[array]) -> None:
        """Raise where the function writes to JAX's values. Of a kernel that may write anywhere nothing is known."""
        entries = [entry for entry in every(graph.entries) if not writes_elsewhere(entry)]
        written = Ranges([r for entry in entries for r in written_by(entry)])
        for k in self.inputs:
            a, name = arrays[k], self.slots[k].name
            if a.nbytes and written.meets(a._address, a._address + a.nbytes):
                raise KernelValueError(
                    f"function {self.body.key} writes to its argument {name!r}, an input: JAX's arrays are values that "
                    "nobody changes",
                    hint=f"work on a copy, wp.clone({name}), or in_out_argnames=[{name!r}] makes it an input and a "
                    "result",
                )

    # ---- calls from native code

    def _call(self, context: int, buffers: Any, words: int) -> int:
        """Do the work in Python, or capture it again and do that."""
        try:
            if not self.plain:
                work = self._work()
                if self.graph is not None:
                    for target in self.targets:
                        target.does(work)
                    return _Function(work.address)(work.context, buffers, words)
            arrays = []
            for k, use in enumerate(self.uses()):  # arrays that own their memory, as the function may keep them
                there = _array(self.slots[k], buffers[k]) if use != "unused" else None
                arrays.append(_array(self.slots[k], None) if there is None else copied(there))
            self.do(arrays)
            for k, use in enumerate(self.uses()):
                if use == "written" and k not in self.inputs:
                    put_value(_array(self.slots[k], buffers[k]), arrays[k])
        except (Exception, KeyboardInterrupt) as error:  # it cannot go through native code: it is told there
            self._failures[ctypes.pythonapi.PyThread_get_thread_ident()] = error
            return 1
        return 0

    def _told(self, status: int, words: bytes) -> str:
        """What happened to the call of this thread, in words."""
        error = self._failures.pop(ctypes.pythonapi.PyThread_get_thread_ident(), None)
        return f"function {self.body.key} failed" if error is None else f"{type(error).__name__}: {error}"


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _cpu() -> Any:
    return get_device("cpu")


def _array(slot: Slot, address: int | None) -> array:
    """An array like ``slot``, at an address, or with memory of its own."""
    t = slot.type
    assert isinstance(t, View)
    e, shape = element_of(t.elem), slot.shape[: t.ndim]
    if address is None:
        return allocate(e, shape, _cpu(), False)
    return build(e, shape, dense_strides(shape, e.size), e.component, address, None, 0, _cpu(), None, e.dense[t.ndim])
