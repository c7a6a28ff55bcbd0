"""``wp.Tape``: record launches and copies, then run their adjoints backwards.

A tape is an undo log: what a later write would destroy of the memory that adjoints look at is saved first, and put back
before they run. So arrays may be overwritten at will, and hold after the backward pass what they held before it.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.config import config
from ..base.errors import ArrayError, KernelGradientError
from ..runtime import capture, fast, watch
from ..runtime.array import array
from ..runtime.writes import put_zeros
from ..types.core import Scalar
from .contents import copied, put_value
from .plan import Plan, plan_for
from .recorder import Recorder, recorder_for
from .reverse import add_back
from .shadows import copy_struct, gradients_of
from .undo import grid

if TYPE_CHECKING:
    from .story import Story


class _Thread:
    """Stands for a thread, and lives as long as that: its number may be another's later."""

    __slots__ = ("__weakref__",)


class _Here(threading.local):
    """What each thread has of its own: ``tape``, the one that records its operations now, and ``directions``, the
    tangents that they carry (``lang/directions.py``), with which a tape then records them."""

    tape: Tape | None = None
    directions: Any = None

    def __init__(self) -> None:
        self.thread = _Thread()


_here = _Here()
_warned: weakref.WeakSet = weakref.WeakSet()  # gradients of which it was said that they were not zero


class Tape:
    """Records what happens inside its ``with`` block, so that gradients can be propagated back through it.

    Recorded are launches, copies (``wp.copy``, ``wp.clone``, ``assign``, slices), and writes of values (``zero_``,
    ``fill_``, ``a[i] = x``). Arrays may be stepped in place: what is overwritten is saved, and ``saved_bytes`` says how
    much that is.

    Args:
        checkpoint: "all" keeps everything that was overwritten. An int k keeps the state at every k-th step, "sqrt" at
            about the square root of their number, ``"…MB"`` (kB, GB) as many as fit into so much memory; what lies
            between is run again in the backward pass. A step is a launch, or what lies between calls of :meth:`step`.
            The gradient has the same bits whatever is chosen (beyond Warp).

    Raises:
        KernelGradientError: a ``with`` block of a tape is entered inside another.
        ValueError: there is no such schedule.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     wp.atomic_add(y, 0, x[i] * x[i])
    >>> x, y = wp.array([1.0, 2.0], dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    >>> with wp.Tape() as tape:
    ...     wp.launch(square, dim=2, inputs=[x], outputs=[y])
    >>> tape.backward(y)
    >>> x.grad.list()
    [2.0, 4.0]
    """

    def __init__(self, checkpoint: int | str = "all"):
        self.checkpoint = checkpoint
        self.loss: array | None = None
        self.scopes: list[tuple[int, str | None, dict | None]] = []
        self._recorder: Recorder = recorder_for(checkpoint)
        self._functions: list[array] = []  # arrays of record_func
        self._used = False  # whether a backward pass ran since the last reset
        self._capture: Any = None  # the capture in which it records
        self._thread: weakref.ref | None = None  # the `_Thread` whose operations it records now

    def __enter__(self) -> Tape:
        if _here.tape is not None:
            raise KernelGradientError("a tape is recording already; tapes do not nest",
                                      hint="leave its with block first, or pass record_tape=False")  # fmt: skip
        if _here.directions is not None:
            raise KernelGradientError("forward mode through what a tape records is not known",
                                      hint="differentiate the launches themselves, without the tape")  # fmt: skip
        _here.tape, self._thread = self, weakref.ref(_here.thread)
        self._capture = capture.here() if capture.active else None
        self._recorder.rest(None)
        watch.watch(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _here.tape, self._thread = None, None
        if self._capture is None:
            self._recorder.rest(partial(_leave, weakref.ref(self)))

    @property
    def saved_bytes(self) -> int:
        """Bytes of overwritten memory that the tape holds (beyond Warp)."""
        return self._recorder.saved_bytes

    @property
    def launches(self) -> list[Any]:
        """What was recorded, in order; one entry an operation."""
        return self._recorder.ops

    # ---- recording

    def step(self) -> None:
        """Say that a step of the program begins: schedules count steps from now on, not launches (beyond Warp)."""
        story = _story(self)
        if story is None:
            self._recorder.mark_step()
        else:
            story.note(self.step)

    def record_func(self, backward: Callable[[], Any], arrays: Sequence[array] | None = None) -> None:
        """Let ``backward()`` run at this place of the backward pass.

        Args:
            backward: takes no arguments; reads gradients of results and adds to those of inputs.
            arrays: the arrays whose gradients it uses; :meth:`zero` clears them. ``backward`` finds a gradient in those
                that were made with ``requires_grad``.

        Raises:
            TypeError: ``backward`` cannot be called, or ``arrays`` is no sequence.
        """
        if not callable(backward):
            raise TypeError(f"record_func takes a function to call in the backward pass, not {backward!r}")
        if isinstance(arrays, array) or not isinstance(arrays or (), Iterable):
            raise TypeError(f"the arrays of record_func come in a list, not as {arrays!r}")
        arrays = [a for a in arrays or () if isinstance(a, array)]
        story = _story(self)
        if story is not None:
            story.note(lambda: self.record_func(backward, arrays))
            return
        self._functions += arrays
        if self._recorder.spent:  # it watched no more
            self._recorder.spent = False
            watch.watch(self)
        self._recorder.record_function(backward, arrays)

    def record_scope_begin(self, scope_name: str, metadata: dict | None = None) -> None:
        """Name the operations from here to :meth:`record_scope_end`, for :meth:`visualize`."""
        self.scopes.append((len(self.launches), scope_name, metadata or {}))

    def record_scope_end(self, remove_scope_if_empty: bool = True) -> None:
        """End the scope begun last; one in which nothing happened is dropped if ``remove_scope_if_empty``.

        Raises:
            KernelGradientError: no scope is open.
        """
        here = len(self.launches)
        ended = sum([name is None for _, name, _ in self.scopes])
        if 2 * ended >= len(self.scopes):
            raise KernelGradientError("ended tape scope, but scope not present: Tape.record_scope_begin opens one")
        if remove_scope_if_empty and self.scopes and self.scopes[-1][:2] == (here, self.scopes[-1][1]):
            if self.scopes[-1][1] is not None:
                self.scopes.pop()
                return
        self.scopes.append((here, None, None))

    # ---- gradients

    def backward(self, loss: array | None = None, grads: dict[array, array] | None = None) -> None:
        """Propagate gradients from results back to everything that was recorded.

        Args:
            loss: array of one float with ``requires_grad``; its gradient is set to 1.
            grads: gradients of results, by array; copied into their ``.grad``, which is made where there is none.

        Without arguments it starts from what stands in the ``.grad`` of arrays. Gradients are added to those that
        inputs have already. Every array holds afterwards what it held before.

        Raises:
            KernelGradientError: ``loss`` is no scalar, has no gradient, or nothing recorded writes it; a kernel on the
                way has no derivative (the message names its line); ``grads`` is no dict of arrays by arrays.
            ArrayError: a gradient has another shape than its array.
        """
        if loss is not None:
            _check_loss(loss)
        if grads is not None:
            _check_grads(grads)
        for a in grads or ():
            if a.grad is None:
                a.requires_grad = True
        if loss is not None and not self._recorder.writes_to(loss):
            was = "it was reset" if self._used and not self.launches else "nothing recorded on it writes the loss"
            raise KernelGradientError(f"this tape cannot tell the gradient of the loss: {was}")
        self.loss = loss
        watching = watch.leave(self)  # adjoints write to gradients, and to arrays that are put back
        recording, _here.tape = _here.tape, None
        try:
            with changing(self.gradients.values() if watch.watchers else ()):
                self._back(self._recorder.prepare(), loss, grads or {})
            self._recorder.passed = len(self.launches)
        finally:
            _here.tape = recording
            if watching or self._recorder.spent:  # also to hear of gradients that the user writes
                self._recorder.spent = False
                watch.watch(self)

    def _back(self, passing: Any, loss: array | None, grads: dict[array, array]) -> None:
        if passing.silent:
            warnings.warn(f"no gradients flow through {', '.join(sorted(passing.silent))}: enable_backward is False",
                          UserWarning, stacklevel=3)  # fmt: skip
        aside, retained = [], {}
        seeds = {id(a) for a in (loss, *grads) if a is not None}
        if seeds:
            aside = [(a.grad, _take(a.grad)) for a in passing.leftovers() if id(a) not in seeds]
            if not self._used and not capture.recording():
                self._warn_of_leaves()
        if loss is not None:
            loss.grad.fill_(1.0)
        for a, grad in grads.items():
            a.grad.assign(grad)
        self._used = True
        passing.run(retained if array._retains else None)
        for grad, content in retained.values():
            put_value(grad, content)
        passing.mark_leftovers()
        for grad, content in aside:
            add_back(grad, content)

    def _warn_of_leaves(self) -> None:
        for a, site, plan in self._recorder.inputs:
            grad = a.grad
            if grad is None or grad in _warned or not _bytes_of(grad).any():
                continue
            _warned.add(grad)
            warnings.warn(
                f"the gradient of array {site.name!r} (an argument of kernel {plan.kernel.key}) is not zero as the "
                "backward pass of a new tape begins; what is found is added to it. Call zero() to start anew.",
                UserWarning, stacklevel=4,
            )  # fmt: skip

    @property
    def gradients(self) -> dict[array, array]:
        """The gradient of each recorded array that keeps one. Asked for a struct instance it gives an instance whose
        arrays are the gradients."""
        found = Gradients()
        for a in (*self._recorder.arrays(), *self._functions):
            if a._grad is not None:
                found[a] = a._grad
        return found

    def get_adjoint(self, a: Any) -> array | None:
        """The gradient of ``a``, if it is an array that keeps one; of a struct instance, those of its arrays."""
        return a.grad if isinstance(a, array) else gradients_of(a) if hasattr(type(a), "__treadle_type__") else None

    def zero(self) -> None:
        """Set the gradients of all recorded arrays to zero."""
        watching = _others(None)
        held = [a._grad for a in self._recorder.in_elements.values()]
        for grad in {id(grad): grad for grad in (*self.gradients.values(), *held)}.values():
            if any([r.looks_at(grad) for r in watching]):
                grad.zero_()
            else:
                put_zeros(grad)
            grad._left = False

    def reset(self) -> None:
        """Forget everything that was recorded, and set the gradients to zero."""
        self.zero()
        self._recorder = recorder_for(self.checkpoint)
        self._functions, self.scopes, self.loss = [], [], None
        if _here.tape is not self:
            watch.leave(self)

    def visualize(
        self,
        filename: str | None = None,
        simplify_graph: bool = True,
        hide_readonly_arrays: bool = False,
        array_labels: dict[array, str] | None = None,
        choose_longest_node_name: bool = True,
        ignore_graph_scopes: bool = False,
        track_inputs: list[array] | None = None,
        track_outputs: list[array] | None = None,
        track_input_names: list[str] | None = None,
        track_output_names: list[str] | None = None,
        graph_direction: str = "LR",
    ) -> str:
        """The recorded launches as a graph in the language of GraphViz, also written to ``filename`` if given.

        Args:
            filename: where to write it.
            simplify_graph: one node for each array, instead of one for each time it is overwritten; sequences that
                come several times in a row stand once, with their number.
            hide_readonly_arrays: leave out arrays that nothing recorded writes.
            array_labels: names of arrays; others are called after the arguments they were.
            choose_longest_node_name: of several names of an array take the longest, else the first.
            ignore_graph_scopes: draw no boxes around scopes.
            track_inputs, track_outputs, track_input_names, track_output_names: arrays, with names, that are drawn even
                where hidden otherwise.
            graph_direction: "LR", "TB", "RL" or "BT".
        """
        from .tape_graph import draw

        labels = dict(array_labels or {})
        for tracked, names in ((track_inputs, track_input_names), (track_outputs, track_output_names)):
            labels.update(zip(tracked or (), names or (), strict=False))
        shown = [*(track_inputs or ()), *(track_outputs or ())]
        text = draw(self, labels, shown, simplify_graph, hide_readonly_arrays, choose_longest_node_name,
                    ignore_graph_scopes, graph_direction)  # fmt: skip
        if filename is not None:
            with open(filename, "w", encoding="utf-8") as file:
                file.write(text)
        return text


class Gradients(dict):
    """Gradients by their arrays, and by struct instances."""

    def __missing__(self, key: Any) -> Any:
        if hasattr(type(key), "__treadle_type__"):
            return gradients_of(key)
        raise KeyError(key)


def _bytes_of(a: array) -> np.ndarray:
    """The bytes of all elements; without a copy where they lie side by side."""
    return a._bytes() if a.is_contiguous else np.frombuffer(a.numpy().tobytes(), np.uint8)


def _check_loss(loss: array) -> None:
    t = loss.type.elem if isinstance(loss, array) else None
    if t is None or loss.size != 1 or not (isinstance(t, Scalar) and t.is_float):
        raise KernelGradientError(f"the loss must be an array of one float, not {loss!r}",
                                  hint="use grads= for other results")  # fmt: skip
    if loss.grad is None:
        raise KernelGradientError("the loss keeps no gradient", hint="make it with requires_grad=True")


def _check_grads(grads: Any) -> None:
    if not isinstance(grads, Mapping):
        raise KernelGradientError(f"grads of a backward pass is a dict of gradients by their arrays, not {grads!r}")
    for a, grad in grads.items():
        if not isinstance(a, array):
            raise KernelGradientError(f"the keys of grads are arrays, not {a!r}")
        if not hasattr(grad, "shape"):
            raise KernelGradientError(f"the gradient of {a!r} must be an array like it, not {grad!r}")
        if grad.shape != a.shape:
            raise ArrayError(f"the gradient of {a!r} must have its shape, not {grad.shape}")


def _take(grad: array) -> array:
    """What stands in ``grad``, which is zero then."""
    content = copied(grad)
    grad.zero_()
    return content


def recording() -> bool:
    """Whether a tape records what is launched now."""
    return _here.tape is not None


def followed() -> bool:
    """Whether derivatives of what is done now are asked for: a tape records it, or it carries tangents."""
    return _leader() is not None


def carrying() -> bool:
    """Whether what is launched now carries tangents."""
    return _here.directions is not None


def carries(a: array) -> bool:
    """Whether what is launched now carries a tangent of ``a`` that may differ from zero."""
    return _here.directions is not None and _here.directions.moves(a)


def moving() -> int:
    """How many blocks of memory have a tangent that may differ from zero."""
    return 0 if _here.directions is None else len(_here.directions.live)


def step_begins() -> None:
    """Tell the tape that records, if there is one, that a step of the program begins: schedules count them."""
    if _here.tape is not None:
        _here.tape.step()


# ---- what launches and array methods call


def _others(tape: Tape | None) -> list[Recorder]:
    """The recorders of the tapes that watch but do not record. What is captured for a graph has not happened yet, so it
    concerns the tapes of that capture only; others are told when the graph runs."""
    now = capture.here() if capture.active else None
    return [t._recorder for t in watch.watching() if t is not tape and _concerns(t, now)]


def _leave(tape: weakref.ref) -> None:
    """A tape has nothing left to lose."""
    found = tape()
    if found is not None:
        watch.leave(found)


def _busy_elsewhere(tape: Tape) -> bool:
    """Whether ``tape`` records what another thread does; one that ended inside of it does nothing any more."""
    thread = tape._thread
    found = None if thread is None else thread()
    return found is not None and found is not _here.thread


def _concerns(tape: Tape, now: Any) -> bool:
    """Whether ``tape`` looks at what happens in the capture ``now``, or outside of captures."""
    if _busy_elsewhere(tape):
        return False  # each thread has tapes of its own while they record
    own = tape._capture
    return own is now or (now is None and own.ended)


def _alone(tape: Tape | None) -> bool:
    """Whether no tape watches but ``tape``, which records."""
    return tape is not None and len(watch.watchers) == 1


def _leader() -> Any:
    """Who must hear of each operation of this thread: the tape that records, or the tangents that are carried."""
    return _here.directions if _here.tape is None else _here.tape


def _story(leader: Any) -> Story | None:
    """Where ``leader`` hears of each operation, and this thread captures a graph in which it is not: what keeps that
    for the runs of the graph."""
    now = capture.here() if leader is not None and capture.active else None
    if now is None or leader is not _leader() or leader._capture is now:
        return None
    from .story import story_of

    return story_of(now)


@contextmanager
def carry(directions: Any) -> Iterator[None]:
    """In the block launches and writes of this thread carry tangents, or, with None, none."""
    before, _here.directions = _here.directions, directions
    try:
        yield
    finally:
        _here.directions = before


def _tell(graph: Any) -> bool:
    """A graph is to run: let the tape that records have it operation by operation; whether that was done."""
    leader = _leader()
    if leader is None or leader._capture is graph.capture:
        return False
    from .story import EVERYWHERE, story_for_tape, untold

    story = story_for_tape(graph, graph.capture.graded if _here.directions is None else EVERYWHERE)
    if story is None:
        if leader is _here.tape:
            from .untold import Untold

            leader._recorder.ran_untold(Untold(graph, untold(graph)))
        return False
    now = capture.here() if capture.active else None
    if now is not None:
        now.include_memory(graph)
    story.again()
    return True


def _replay(graph: Any, run: Callable[[], Any]) -> Any:
    """``run()``, a graph, while tapes watch: those that were not recorded in it save what it will overwrite. Where it
    is captured for another graph, ``run()`` writes it down, and the tapes of that are concerned."""
    now = capture.here() if capture.active else None
    tapes = [t for t in watch.watching() if t._capture is not graph.capture]
    others = [t._recorder for t in tapes if _concerns(t, now)]
    written = graph.written() if others else []
    kept = [(r, r.before_foreign(written)) for r in others]
    try:
        return run()
    finally:
        for recorder, met in kept:
            recorder.after_foreign(met, written)


@contextmanager
def captured_body(now: Any, what: str, place: str) -> Iterator[list[Any]]:
    """In the block the capture ``now`` writes down a body, of the call ``what`` in the line ``place``, and tapes note
    what they record there."""
    before = {id(recorder): len(recorder.ops) for recorder in _others(None)}
    try:
        with now.inside() as entries:
            yield entries
    finally:
        for recorder in _others(None):
            first, end = before.get(id(recorder), 0), len(recorder.ops)
            if first < end:
                from .bodies import Body

                recorder.bodies = (*recorder.bodies, Body(first, end, what, place))


@contextmanager
def changing(arrays: Iterable[array]) -> Iterator[None]:
    """Adjoints, which nobody records, change ``arrays`` meanwhile: tapes that look at them save what was there."""
    written = [*arrays]
    kept = [(r, r.before_foreign(written)) for r in _others(None)]
    try:
        yield
    finally:
        for recorder, met in kept:
            recorder.after_foreign(met, written)


def _host_write(dest: array, perform: Callable[..., None], args: tuple, source: array | None) -> None:
    """A write from the host, on its way through the tapes that watch."""
    tape = _here.tape
    if tape is None and _unseen(dest):
        if getattr(dest, "_left", None) is not False:
            dest._left = False  # which is found faster the next time
        perform(dest, *args)
        return
    story = _story(_leader())
    if story is None and _here.directions is not None:
        _here.directions.write(dest, perform, args, source)
        return
    if config.verify_autograd_array_access:
        from .overwrites import warn_of_write

        warn_of_write(_others(None), dest, source)
    near = () if _alone(tape) else [r for r in _others(tape) if not r.apart(dest)]
    kept = [(r, r.before_foreign([dest])) for r in near]
    if getattr(dest, "_left", False):
        dest._left = False
    if story is not None:
        story.write(dest, perform, args, source)
    elif tape is None:
        perform(dest, *args)
    else:
        tape._recorder.host_write(dest, perform, args, source)
    for recorder, met in kept:
        recorder.after_foreign(met, [dest])


def _verify(recorder: Recorder | None, plan: Plan, args: Sequence[Any]) -> None:
    """Before a launch: warn of what it overwrites, note what ``recorder`` will look at."""
    from .overwrites import warn_of_launch

    warn_of_launch(_others(None), plan, args)
    if recorder is not None:
        recorder.note_sums(plan, args)


def _unseen(dest: array) -> bool:
    """Whether it is plain that a write to ``dest`` concerns no tape."""
    if capture.active or _here.directions is not None or config.verify_autograd_array_access:
        return False
    for ref in [*watch.watchers.values()]:  # `watch.watching`, which takes longer
        tape = ref()
        if tape and not _busy_elsewhere(tape) and not tape._recorder.apart(dest):
            return False
    return True


def _far(plan: Plan, args: Sequence[Any]) -> bool:
    """Whether it is plain that a launch destroys nothing that any tape looks at."""
    for ref in [*watch.watchers.values()]:  # `watch.watching`, which takes longer
        tape = ref()
        if tape and not _busy_elsewhere(tape) and not tape._recorder.far(plan, args):
            return False
    return True


def _launch(kernel: Any, quick: Any, dim: Any, inputs: Sequence[Any], outputs: Sequence[Any], record: bool) -> Any:
    """A launch by the native launcher ``quick`` while tapes watch: None when it is done, NotImplemented where it must
    go the slow way."""
    args = [*inputs, *outputs]
    plan = kernel.plan or plan_for(kernel, args)
    if plan is None or capture.active or _here.directions is not None:
        return NotImplemented
    tape = _here.tape if record else None
    recorder = tape._recorder if tape is not None else None
    others: Any = ()
    if recorder is not None and not plan.plain:
        args = _kept(args)
    try:
        if tape is None and _far(plan, args):
            return quick(dim, inputs, outputs)
        if config.verify_autograd_array_access:
            _verify(recorder, plan, args)
        if recorder is not None:
            recorder.before_launch(plan, dim, args)
        if not _alone(tape):
            others = [(r, r.before_foreign_launch(plan, grid(dim), args)) for r in _others(tape)]
    except (AttributeError, IndexError, TypeError, ValueError):  # wrong arguments: the slow way says what
        return NotImplemented
    done = quick(dim, args, ())
    for other, met in others:
        other.after_foreign(met, plan.written(args) if met else [])
    if done is None:
        if recorder is not None:
            recorder.launched(plan, dim, args)
        return None
    if done is NotImplemented:
        return done
    if recorder is not None:
        recorder.failed(plan.written(args))
    raise fast.error(done)


def _kept(args: Sequence[Any]) -> list[Any]:
    """``args`` with structs as they are now."""
    return [copy_struct(x) if hasattr(type(x), "treadle_type") else x for x in args]


def _run(plan: Plan, dims: tuple[int, ...], args: list[Any], run: Callable[[], None], record: bool) -> None:
    """``run()``, a launch with ``args``, while tapes watch."""
    story = _story(_leader())
    if story is not None:
        story.launch(plan, dims, args, run, record)
        return
    if _here.directions is not None:
        _here.directions.run(plan, dims, args, run, record)
        return
    tape = _here.tape if record else None
    recorder = tape._recorder if tape is not None else None
    if config.verify_autograd_array_access:
        _verify(recorder, plan, args)
    others = [(r, r.before_foreign_launch(plan, dims, args)) for r in _others(tape)]
    written = plan.written(args)
    if recorder is not None:
        if not plan.plain:
            args = _kept(args)
        recorder.before_launch(plan, dims, args)
    try:
        run()
    except BaseException:
        if recorder is not None:
            recorder.failed(written)
        raise
    finally:
        for other, met in others:
            other.after_foreign(met, written)
    if recorder is not None:
        recorder.launched(plan, dims, args)


def _forked() -> None:
    """In a child process whoever held the lock of a tape is gone."""
    for tape in watch.watching():
        if isinstance(tape, Tape):
            tape._recorder.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


watch.write, watch.launch, watch.run, watch.replay, watch.tell = _host_write, _launch, _run, _replay, _tell
