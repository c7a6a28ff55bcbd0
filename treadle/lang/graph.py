"""Launch graphs: capture a sequence of operations once, run it again and again with one native call.

While a capture is under way launches, copies, fills and whatever is made of them are written down instead of done
(``runtime/capture.py``). Kernels are compiled as usual, so nothing is left to do when the graph runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from ..base.errors import CaptureError
from ..base.logs import place_outside
from ..runtime import capture as captures
from ..runtime import chains, fast, watch
from ..runtime.allocators import rewire
from ..runtime.array import array
from ..runtime.capture import Branch, Loop
from ..runtime.device import Device, get_device
from ..runtime.graph import Graph
from ..types.core import i32
from .merged import merged
from .natives import install
from .tape import captured_body, moving


class CaptureMode(IntEnum):
    """How strict a capture is about what else the process does. On a CPU a capture is the thread's own, always."""

    GLOBAL = 0
    THREAD_LOCAL = 1
    RELAXED = 2


def _device_of(device: Any, stream: Any) -> Device:
    where = get_device(device if stream is None else stream)
    if not where.captures:
        raise CaptureError(f"graphs of {where} cannot be captured; it runs nothing")
    return where


def capture_begin(
    device: Any = None, stream: Any = None, force_module_load: bool | None = None, external: bool = False,
    apic: bool = False, capture_mode: CaptureMode = CaptureMode.THREAD_LOCAL,
) -> None:  # fmt: skip
    """Begin to capture: what this thread does on ``device`` from now on is written down instead of done.

    Captured are launches, copies, fills, allocation, ``wp.utils`` and tapes, forward and backward. Reading an array
    (``numpy()``, ``a[0]``) raises, as nothing is there to be read yet.

    Args:
        device: where the graph will run; the current device if left out.
        stream: the same by a stream of it.
        external: another library captures the stream (PyTorch, say) and will have the graph; on a GPU.
        force_module_load, capture_mode: accepted; kernels are compiled when they are captured, by this thread alone.
        apic: whether the graph will be saved to a file, which treadle cannot do; accepted.

    Raises:
        CaptureError: this thread captures already.

    >>> import treadle as wp
    >>> a = wp.zeros(2, dtype=float)
    >>> wp.capture_begin()
    >>> a.fill_(3.0)
    >>> graph = wp.capture_end()
    >>> a.list()
    [0.0, 0.0]
    >>> wp.capture_launch(graph)
    >>> a.list()
    [3.0, 3.0]
    """
    where = _device_of(device, stream)
    if external and where.queue is not None:  # its driver writes down what is given to the stream
        _others().append(where)
        return
    install()
    fast.usable()  # what looks at arrays while it starts must not be captured
    captures.begin(where)
    rewire(where)


def capture_end(device: Any = None, stream: Any = None) -> Graph | None:
    """End the capture that this thread began; the graph of what was written down. Of a capture of another library
    (``external``) that has it: None.

    Raises:
        CaptureError: there is none.
    """
    if _others():
        _others().pop()
        return None
    made = captures.end()
    rewire(made.device)
    return made.device.graph(made)


_thread = threading.local()


def _others() -> list[Device]:
    """The devices on which this thread works in captures of other libraries."""
    return _thread.__dict__.setdefault("others", [])


def capture_launch(graph: Graph, stream: Any = None) -> None:
    """Run what ``graph`` has captured, in one native call; inside another capture it becomes part of that. On a GPU it
    is given to ``stream``, or to the current one. Under a tape that records, a graph that was captured in the tape's
    block is run operation by operation, and recorded so.

    Raises:
        TypeError: it is no graph.
        KernelGradientError: a tape records, and cannot know what the graph does to arrays with gradients.
        IndexOutOfRange, KernelAssertionError, …: what a kernel reported.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"wp.capture_launch takes a graph, not {type(graph).__name__}")
    if watch.watchers and watch.tell(graph):
        return
    if captures.active and (now := captures.here()) is not None:
        if watch.watchers:
            watch.replay(graph, lambda: now.include(graph))
        else:
            now.include(graph)
    else:
        graph.launch(stream)


def capture_pause(device: Any = None, stream: Any = None) -> captures.Capture:
    """Interrupt the capture of this thread: until :func:`capture_resume` operations are done at once, as when a library
    fills its caches. The capture so far, to be resumed.

    Raises:
        CaptureError: there is none.
    """
    paused = captures.pause()
    rewire(paused.device)
    return paused


def capture_resume(graph: captures.Capture, device: Any = None, stream: Any = None) -> None:
    """Go on with a capture that was interrupted.

    Raises:
        CaptureError: it was not.
    """
    captures.resume(graph)
    rewire(graph.device)


def allocates(device: Any) -> bool:
    """Whether arrays can be made in a capture on ``device``."""
    return get_device(device).captures


chains.merge = merged

Body = Callable[..., Any] | Graph


def capture_if(
    condition: array, on_true: Body | None = None, on_false: Body | None = None, stream: Any = None, **kwargs: Any
) -> None:
    """Do one thing or another, as ``condition`` says when it is reached: in each run of a graph, or now where nothing
    is captured.

    Args:
        condition: array of int32, whose first element counts: 0 is false.
        on_true, on_false: a function whose operations are captured, or a graph.
        kwargs: arguments of the functions.

    Raises:
        TypeError, ValueError: a condition or a body of the wrong kind.

    >>> import treadle as wp
    >>> yes, a = wp.ones(1, dtype=int), wp.zeros(1, dtype=float)
    >>> with wp.ScopedCapture() as capture:
    ...     wp.capture_if(yes, lambda: a.fill_(1.0), lambda: a.fill_(-1.0))
    >>> yes.zero_()
    >>> wp.capture_launch(capture.graph)
    >>> a.list()
    [-1.0]
    """
    _check_condition(condition)
    for body in (on_true, on_false):
        if body is not None:
            _check_body(body, "branch")
    now = captures.here() if captures.active else None
    if now is None:
        _do(on_true if condition.numpy().flat[0] else on_false, kwargs)
        return
    now.keep([condition])
    place = place_outside()
    branch = Branch(condition._address, [], [])
    for body, entries in ((on_true, branch.on_true), (on_false, branch.on_false)):
        with captured_body(now, "wp.capture_if", place) as inner:
            _do(body, kwargs)
        entries += inner
    now.body.append(branch)


def capture_while(condition: array, while_body: Body, stream: Any = None, **kwargs: Any) -> None:
    """Do ``while_body`` again and again, as long as ``condition`` is not 0: in each run of a graph, or now where
    nothing is captured. The body must change the condition.

    Args:
        condition: array of int32, whose first element counts.
        while_body: a function whose operations are captured, or a graph.
        kwargs: arguments of the function.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def step(left: wp.array(dtype=int), x: wp.array(dtype=float)):
    ...     left[0] -= 1
    ...     x[0] = 2.0 * x[0]
    >>> left, x = wp.zeros(1, dtype=int), wp.ones(1, dtype=float)
    >>> with wp.ScopedCapture() as capture:
    ...     left.fill_(5)
    ...     wp.capture_while(left, lambda: wp.launch(step, dim=1, inputs=[left, x]))
    >>> wp.capture_launch(capture.graph)
    >>> x.list()
    [32.0]
    """
    _check_condition(condition)
    _check_body(while_body, "loop")
    now = captures.here() if captures.active else None
    if now is None:
        while condition.numpy().flat[0]:
            _do(while_body, kwargs)
        return
    now.keep([condition])
    place, known = place_outside(), -1
    while known != moving():  # a round finds the tangents that the one before it left
        known = moving()
        with captured_body(now, "wp.capture_while", place) as body:
            _do(while_body, kwargs)
    now.body.append(Loop(condition._address, body))


def _check_body(body: Any, what: str) -> None:
    if not isinstance(body, Graph) and not callable(body):
        raise TypeError(f"the body of a {what} is a function or a graph, not {type(body).__name__}")


def _check_condition(condition: Any) -> None:
    if not isinstance(condition, array) or condition.type.elem is not i32:
        raise TypeError(f"a condition is an array of int32, not {condition!r}")
    if not condition.size:
        raise ValueError("a condition has at least one element, the first of which counts")


def _do(body: Body | None, kwargs: dict[str, Any]) -> None:
    if isinstance(body, Graph):
        capture_launch(body)
    elif body is not None:
        body(**kwargs)


class ScopedCapture:
    """``with wp.ScopedCapture() as capture:`` captures its block; then ``capture.graph`` is the graph.

    Where the block raises, the error goes on, there is no graph, and everything is as it was before.

    Args: those of :func:`capture_begin`.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def step(x: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     x[i] = 2.0 * x[i] + 1.0
    >>> x = wp.zeros(3, dtype=float)
    >>> with wp.ScopedCapture() as capture:
    ...     for _ in range(2):
    ...         wp.launch(step, dim=3, inputs=[x])
    >>> wp.capture_launch(capture.graph)
    >>> x.list()
    [3.0, 3.0, 3.0]
    """

    def __init__(
        self, device: Any = None, stream: Any = None, force_module_load: bool | None = None, external: bool = False,
        apic: bool = False, capture_mode: CaptureMode = CaptureMode.THREAD_LOCAL,
    ):  # fmt: skip
        self.device = _device_of(device, stream)
        self.stream, self.force_module_load, self.external = stream, force_module_load, external
        self.apic, self.capture_mode = apic, capture_mode
        self.active = False
        self.graph: Graph | None = None

    def __enter__(self) -> ScopedCapture:
        capture_begin(self.device, self.stream, external=self.external)
        self.active = True
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.active:
            self.active = False
            graph = capture_end()
            if kind is None:
                self.graph = graph
