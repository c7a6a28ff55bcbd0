"""A Python function on arrays as XLA calls it: captured as a graph, or, where that cannot be, called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.digest import digest
from ..base.errors import CaptureError, KernelGradientError, KernelValueError, LaunchTypeError
from ..base.logs import log_debug
from ..lang.contents import copied, put_value
from ..lang.directions import Directions
from ..lang.graph import ScopedCapture
from ..lang.natives import install
from ..lang.tape import Tape
from ..runtime.adopt import dense_strides
from ..runtime.array import allocate, array, build
from ..runtime.capture import Launch, every, here
from ..runtime.chains import writes_elsewhere, written_by
from ..runtime.cuda import get_cuda_device
from ..runtime.device import apart, get_device
from ..runtime.elements import element_of
from ..runtime.ranges import Ranges
from ..runtime.streams import ScopedStream
from ..types.core import View
from ..types.records import AGAIN, STOPPED
from .jax_arguments import packed_value
from .jax_launch import INOUT, INPUT, OUTPUT, STATIC, Lowered, Slot
from .jax_nesting import depth, inside
from .xla import Buffers, Level, Target, Work, heard_again, register_work

if TYPE_CHECKING:
    from .jax_callable import JaxCallable

_Function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p)


LAUNCH = ("launch",)  # the key of the function itself, among what is done with a body


class Body:
    """A function on arrays of some shapes, with some known values: what the primitives ask of a call."""

    def __init__(self, owner: JaxCallable, slots: tuple[Slot, ...], vmap_method: str | None):
        self.owner, self.slots = owner, slots
        self.wanted = owner.has_side_effect  # also where nobody uses its results
        self.vmap_method, self.batches = vmap_method, vmap_method is not None
        self.key = owner.__name__
        self.operands = tuple([s for s in slots if s.role in (INPUT, INOUT)])
        self.results = tuple([s for s in slots if s.role in (INOUT, OUTPUT)])
        self.arrays = [s for s in slots if s.role != STATIC]
        self.float_results = tuple([s for s in self.results if s.floats])
        self.place = {s.name: k for k, s in enumerate(self.operands)}
        self.device: Any = None  # where it runs, if not on the host's memory
        self._elsewhere: dict[Any, Body] = {}
        self._made: dict[Any, Lowered] = {}
        self._tasks: dict[Any, Task] = {}

    def on(self, device: Any) -> Body:
        """The same function on a GPU, where it is called each time, to give its work to the stream of the call."""
        found = self._elsewhere.get(device)
        if found is None:
            found = self._elsewhere[device] = copy(self)
            found.device, found._made, found._tasks = device, {}, {}
        return found

    def __repr__(self) -> str:
        return self.key

    @property
    def effect(self) -> bool:
        """Whether two calls are more than one."""
        return self.wanted or any(task.alone for task in self._tasks.values())

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

    # ---- targets

    def _lowered(self, key: Any, task_key: Any, batch: tuple[Level, ...], places: Sequence[Place],
                 do: Callable[[Sequence[array]], None]) -> Lowered:  # fmt: skip
        """A target that does ``do`` on arrays at ``places``; results that are kept come first."""
        key = *key, depth()
        if key not in self._made:
            task = self._task(task_key, places, do)
            buffers, uses = Buffers(batch), task.uses()
            results = {k: buffers.result(p.slot.shape, p.slot.dtype, use != "made", p.operand)
                       for k, (p, use) in enumerate(zip(places, uses, strict=True)) if p.kept}  # fmt: skip
            for k, (p, use) in enumerate(zip(places, uses, strict=True)):
                buffers.move(results[k] if p.kept else p.source(buffers, use), p.slot.nbytes)
            self._made[key] = task.lowered(buffers, len(results))
        return self._made[key]

    def _task(self, key: Any, places: Sequence[Place], do: Callable[[Sequence[array]], None]) -> Task:
        if key not in self._tasks:
            self._tasks[key] = Task(self, key, places, do)
        return self._tasks[key]

    def launch(self, batch: tuple[Level, ...]) -> Lowered:
        """The function itself: operands to results."""
        return self._lowered((*LAUNCH, batch), LAUNCH, batch, self._operands(), self._run)

    def _operands(self) -> list[Place]:
        return [Place(s, self.place.get(s.name), s.role != INPUT, s.role == INPUT) for s in self.arrays]

    def refuse_outside(self) -> None:
        """Raise where the function, not just its derivative, writes to memory that is no argument's."""
        task = self._task(LAUNCH, self._operands(), self._run)
        task.uses()
        if task.outside:
            raise KernelGradientError(
                f"function {self.key} writes to an array that is no argument of it, so it has no derivative, "
                "which would write there once more",
                hint="make it an argument, in in_out_argnames",
            )

    def _data(self) -> list[Place]:
        """Where the arrays of the function lie in calls that give something else back."""
        return [Place(s, self.place.get(s.name), False, s.role == INPUT) for s in self.arrays]

    def _run(self, arrays: Sequence[array]) -> None:
        self.owner.func(*self._arguments(arrays))

    def _arguments(self, arrays: Sequence[array]) -> list[Any]:
        """The arguments of the function, where ``arrays`` are those of its arrays."""
        rest = iter(arrays)
        return [slot.value if slot.role == STATIC else next(rest) for slot in self.slots]

    def tangent(self, active: tuple[int, ...], batch: tuple[Level, ...]) -> Lowered:
        """Operands, and tangents of the ``active`` ones, to tangents of the results that have floats."""
        behind = self._numbered(active, len(self.operands))
        moved = [self.operands[k] for k in active]
        beside = _union(self.float_results, moved)
        count = len(self.arrays)

        def ahead(given: Sequence[array]) -> None:
            directions = self._directions(given, beside, given[count:], moved, graded=False)
            with directions.carried():
                self._run(given[:count])

        places = [*self._data(), *[_motion(s, behind.get(s.name), s in self.float_results) for s in beside]]
        return self._lowered(("tangent", active, batch), ("tangent", active), batch, places, ahead)

    def _numbered(self, of: tuple[int, ...], first: int, slots: Sequence[Slot] | None = None) -> dict[str, int]:
        """The numbers of further operands, from ``first`` on, by the names of what they belong to."""
        slots = self.operands if slots is None else slots
        return {slots[k].name: first + n for n, k in enumerate(of)}

    def _directions(self, own: Sequence[array], beside: Sequence[Slot], tangents: Sequence[array],
                    moved: Sequence[Slot], graded: bool) -> Directions:  # fmt: skip
        """What carries ``tangents``, those of the slots ``beside``; what is not ``moved`` begins with none."""
        directions = Directions(graded)
        for slot, tangent in zip(beside, tangents):
            directions.adopt(own[self.arrays.index(slot)], tangent, slot in moved)
        return directions

    def winners(self, active: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Nothing: the tape keeps what adjoints must see."""
        return (), ()

    def adjoint(self, active: tuple[int, ...], given: tuple[int, ...], batch: tuple[Level, ...]) -> Lowered:
        """Operands and cotangents of the ``given`` results with floats to gradients of the ``active`` operands."""
        seeds = self._numbered(given, len(self.operands), self.float_results)
        wanted = [self.operands[k] for k in active]
        graded = _union(wanted, self.float_results)
        count = len(self.arrays)

        def back(given: Sequence[array]) -> None:
            for slot, grad in zip(graded, given[count:], strict=True):
                given[self.arrays.index(slot)].grad = grad
            with Tape(self.owner.checkpoint) as tape:
                self._run(given[:count])
            tape.backward()

        places = [*self._data(), *[Place(s, seeds.get(s.name), s in wanted) for s in graded]]
        return self._lowered(("adjoint", active, given, batch), ("adjoint", active), batch, places, back)

    def second(
        self, active: tuple[int, ...], given: tuple[int, ...], moved: tuple[int, ...], dotted: tuple[int, ...],
        batch: tuple[Level, ...],
    ) -> Lowered:  # fmt: skip
        """How the gradients of the ``active`` operands change as the ``moved`` operands do, and the ``dotted`` ones of
        the cotangents: operands, tangents, cotangents of the ``given`` results, tangents of cotangents, to tangents of
        gradients. A tape records the launches with their tangents, and goes back (see ``Call.second``)."""
        first = len(self.operands)
        motion, first = self._numbered(moved, first), first + len(moved)
        seeds, first = self._numbered(given, first, self.float_results), first + len(given)
        changes = self._numbered(dotted, first, self.float_results)
        wanted, moving = [self.operands[k] for k in active], [self.operands[k] for k in moved]
        graded = _union(wanted, self.float_results)
        beside = _union(graded, moving)
        count, half = len(self.arrays), len(self.arrays) + len(graded)

        def turn(given: Sequence[array]) -> None:
            tangents, seeds = given[half : half + len(beside)], given[half + len(beside) :]
            for slot, grad, tangent, seed in zip(graded, given[count:], tangents, seeds):
                given[self.arrays.index(slot)].grad, tangent.grad = grad, seed
            directions = self._directions(given, beside, tangents, moving, graded=True)
            with Tape(self.owner.checkpoint) as tape, directions.carried():
                self._run(given[:count])
            tape.backward()

        places = [*self._data(), *[Place(s, changes.get(s.name), s in wanted) for s in graded],
                  *[_motion(s, motion.get(s.name)) for s in beside],
                  *[Place(s, seeds.get(s.name)) for s in graded]]  # fmt: skip
        key = "second", active, given, moved, dotted, batch
        return self._lowered(key, ("second", active, moved), batch, places, turn)


def _union(first: Sequence[Slot], more: Sequence[Slot]) -> list[Slot]:
    return [*first, *[slot for slot in more if slot not in first]]


class Place(NamedTuple):
    """One array of a task: like which slot, what it begins as (an operand, or 0), whether it is a result that is
    ``kept``; ``fixed``: it is an operand that is only read."""

    slot: Slot
    operand: int | None
    kept: bool = False
    fixed: bool = False

    def source(self, buffers: Buffers, use: str) -> tuple[bool, int]:
        """Where an array lies that is not kept: in its operand, unless that would be changed, or in memory to work in.
        What is not used at all may lie anywhere."""
        if use == "unused":
            return False, 0
        if self.operand is not None and (self.fixed or use == "read"):
            return False, self.operand
        return buffers.result(self.slot.shape, self.slot.dtype, use != "made", self.operand)


def _motion(slot: Slot, operand: int | None, kept: bool = False) -> Place:
    """The place of the tangent of ``slot``, which changes only where that does."""
    return Place(slot, operand, kept, slot.role == INPUT)


class Task:
    """Work on arrays, as a graph that native code runs, or as Python; the targets that do it."""

    def __init__(self, body: Body, key: Any, places: Sequence[Place], do: Callable[[Sequence[array]], None]):
        """``key``: what it is, among all that is done with the body."""
        self.body, self.key, self.do = body, key, do
        self.slots, self.kept = [p.slot for p in places], [p.kept for p in places]
        self.inputs = [k for k, p in enumerate(places) if p.fixed]
        self.targets: list[Target] = []
        self.graph: Any = None
        self.outside = False  # whether it writes to memory that is no argument's, as far as is known
        self.plain = not body.owner.graph_mode or body.device is not None  # whether it is called, not captured
        self.copies = self.plain  # whether it gets copies of its inputs, as nobody knows whether it leaves them alone
        self.weight, self.facts = 1e6, ""
        self._tried = False  # whether somebody has looked what calls on a GPU write to
        self._uses: Sequence[str] | None = None
        self._failures: dict[int, BaseException] = {}
        self._called = _Function(self._call if body.device is None else self._give)

    @property
    def alone(self) -> bool:
        """Whether its calls come one after the other: it may write to what other calls read or write."""
        return self.outside or self.plain

    def lowered(self, buffers: Buffers, kept: int) -> Lowered:
        """A target that does it on these buffers."""
        work, func = self._work(), self.body.owner.func
        code = getattr(func, "__code__", None)
        words = [func.__module__ or "", self.body.key, repr(self.key), repr(code and digest(code.co_code)), self.facts,
                 repr([(s.name, s.role, s.shape, str(s.dtype), packed_value(s)) for s in self.body.slots])]  # fmt: skip
        if self.body.device is None:
            target: Any = register_work(words, buffers, self.weight, self.alone, depth())
        else:
            from . import xla_gpu

            target = xla_gpu.register_work(words, buffers)
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
            target.does(Work(_address(self._called), None, self, self._told, self.alone))

    def _work(self) -> Work:
        """What native code is to call."""
        if self.graph is None and not self.plain:
            self._capture()
        if self.body.device is not None and not self._tried:
            self._try()
        if self.graph is None:
            return Work(_address(self._called), None, self, self._told, self.alone)
        graph, native = self.graph
        return Work(native.address, native.context, (graph, native.keepalive),
                    lambda status, words: str(graph.error(status, words, native.keepalive)), self.outside)  # fmt: skip

    def _captured(self) -> tuple[Any, list[array]]:
        """The graph of the work on arrays that stand for those of the calls, and these.

        Raises:
            CaptureError: it cannot be captured.
        """
        install()
        device = self.body.device or _cpu()
        arrays = [_array(slot, None, device) for slot in self.slots]
        with apart(device), ScopedCapture() as capture:
            here().nests = True  # type: ignore[union-attr]  # the function may capture graphs of its own
            self.do(arrays)
        return capture.graph, arrays

    def _try(self) -> None:
        """See what calls on a GPU write to: where inputs are only read, those are JAX's own memory. Nothing runs, and
        what fails here fails in the call."""
        self._tried = True
        if not self.body.owner.graph_mode:
            return
        try:
            graph, arrays = self._captured()
        except Exception as error:
            log_debug(f"function {self.body.key} gets copies of its inputs on {self.body.device}: {error}")
            return
        self._check(graph, arrays)
        self.copies = any(map(writes_elsewhere, every(graph.entries)))

    def _capture(self) -> None:
        """Capture the work, for native code to run."""
        try:
            graph, arrays = self._captured()
        except CaptureError as error:
            self.plain = True
            self.body.owner.warn(error.message)
            return
        self._check(graph, arrays)
        native = graph.native(arrays, [a for a, kept in zip(arrays, self.kept, strict=True) if not kept])
        if self._uses is not None and native.keepalive.uses != self._uses:  # somebody holds its temporaries now
            self.plain = True
            return
        self.graph, self.weight = (graph, native), native.keepalive.work
        launches = [entry for entry in every(graph.entries) if isinstance(entry, Launch)]
        self.facts = digest(*[part for e in launches for part in (e.program.entry.binary.code, repr(e.dims))])
        self.body.owner.captured(self.body)

    def _check(self, graph: Any, arrays: Sequence[array]) -> None:
        """Raise where the function writes to JAX's values, or has a derivative in spite of what it writes elsewhere.
        Of a kernel that may write anywhere nothing is known."""
        entries = [*every(graph.entries)]
        written = Ranges([r for entry in entries if not writes_elsewhere(entry) for r in written_by(entry)])
        for k in self.inputs:
            a, name = arrays[k], self.slots[k].name
            if a.nbytes and written.meets(a._address, a._address + a.nbytes):
                raise KernelValueError(
                    f"function {self.body.key} writes to its argument {name!r}, an input: JAX's arrays are values that "
                    "nobody changes",
                    hint=f"work on a copy, wp.clone({name}), or in_out_argnames=[{name!r}] makes it an input and a "
                    "result",
                )
        own = [(block.address, block.address + block.nbytes) for block in graph.blocks if block.dead]
        for low, high in (*own, *[(a._address, a._address + a.nbytes) for a in arrays]):
            written.cut(low, high)
        self.outside = any(map(writes_elsewhere, entries)) or bool(written.nbytes)
        if written.nbytes and self.key != LAUNCH:
            self.body.refuse_outside()

    # ---- calls from native code

    def _call(self, context: int | None, buffers: Any, words: int) -> int:
        """Do the work in Python; or capture it again, and say that there is other work now."""
        status = self._called_by(context, buffers)
        _last = heard_again() if status == STOPPED else None
        return status

    def _called_by(self, context: int | None, buffers: Any) -> int:
        try:
            if not self.plain:
                work = self._work()
                for target in self.targets:
                    target.does(work)
                return AGAIN
            arrays = []
            for k, use in enumerate(self.uses()):  # arrays that own their memory, as the function may keep them
                there = _array(self.slots[k], buffers[k]) if use != "unused" else None
                arrays.append(_array(self.slots[k], None) if there is None else copied(there))
            with apart(_cpu()), inside((context or 0) + 1):
                self.do(arrays)
            for k, use in enumerate(self.uses()):
                if use == "written" and k not in self.inputs:
                    put_value(_array(self.slots[k], buffers[k]), arrays[k])
        except KeyboardInterrupt:
            return STOPPED
        except Exception as error:  # it cannot go through native code: it is told there
            self._failures[ctypes.pythonapi.PyThread_get_thread_ident()] = error
            return 1
        return 0

    def _give(self, context: int, buffers: Any, words: int) -> int:
        """Give the work to a stream of a GPU, which ``words`` name, on JAX's own memory; of inputs that it might write
        to, on copies."""
        try:
            stream, number = (ctypes.c_uint64 * 2).from_address(words)
            device: Any = get_cuda_device(number)
            with apart(device), ScopedStream(device.external_stream(stream), sync_exit=True):
                arrays = [_array(slot, buffers[k], device) for k, slot in enumerate(self.slots)]
                self.do([copied(a) if self.copies and k in self.inputs else a for k, a in enumerate(arrays)])
        except (Exception, KeyboardInterrupt) as error:  # it cannot go through native code: it is told there
            self._failures[ctypes.pythonapi.PyThread_get_thread_ident()] = error
            return 1
        return 0

    def _told(self, status: int, words: bytes) -> str:
        """What happened to the call of this thread, in words.

        Raises:
            KeyboardInterrupt: that did.
        """
        error = self._failures.pop(ctypes.pythonapi.PyThread_get_thread_ident(), None)
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt
        return f"function {self.body.key} failed" if error is None else f"{type(error).__name__}: {error}"


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _cpu() -> Any:
    return get_device("cpu")


def _array(slot: Slot, address: int | None, device: Any = None) -> array:
    """An array like ``slot``, at an address, or with memory of its own; on the CPU if no device is given."""
    t = slot.type
    assert isinstance(t, View)
    e, shape = element_of(t.elem), slot.shape[: t.ndim]
    where = device or _cpu()
    if address is None:
        return allocate(e, shape, where, False)
    return build(e, shape, dense_strides(shape, e.size), e.component, address, None, 0, where, None, e.dense[t.ndim])
