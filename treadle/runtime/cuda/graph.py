"""A capture becomes a graph of the driver: its entries are given to a stream that the driver captures.

Branches and loops become conditional nodes, whose bodies are graphs of their own. Everything that a graph needs (code,
memory between passes, what the host wrote) is there before the driver begins to capture.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...base.errors import CaptureError
from .. import watch
from ..capture import Branch, Call, Capture, Loop, every
from ..capture import Launch as Written
from ..graph import Graph, first
from ..streams import get_stream
from ..transients import Transients
from .launch import Launch, printing
from .modules import helper

if TYPE_CHECKING:
    from ..streams import Stream
    from .gpu import Gpu

_WORDS = 24  # bytes of the three words of a call


class GpuGraph(Graph):
    """What was captured on a GPU. It keeps all memory that it works on, and the driver's graph once it ran first."""

    device: Gpu

    def __init__(self, made: Capture):
        super().__init__(made)
        self._exec: int | None = None
        self._launches: dict[int, Launch] = {}  # by id of the entry

    def launch(self, stream: Stream | None = None, times: int = 1) -> None:
        """Give everything that was captured to a stream, ``times`` times; the current one if left out. What kernels
        print or report comes when the host waits for it, prints at once."""
        if self._exec is None:
            with first():
                if self._exec is None:
                    self._build()
        where = stream or get_stream(self.device)
        launches = [*self._launches.values()]

        def run() -> None:
            with self.device.entered as driver:
                for _ in range(times):
                    driver.cuGraphLaunch(self._exec, where.handle)
            for each in launches:
                each.arm(where.handle)

        with printing(launches):
            if watch.watchers:
                watch.replay(self, run)
            else:
                run()
            if any([each.log is not None for each in launches]):
                where.synchronize()

    def native(self, inputs: Any = (), forgotten: Any = None) -> Any:
        """For native code of the host.

        Raises:
            CaptureError: always; a GPU's graph is run by its driver.
        """
        raise CaptureError(f"the graph runs on {self.device}; native code of the host cannot call it")

    def _build(self) -> None:
        """Let the driver make its graph."""
        device = self.device
        with device.entered as driver:
            self._prepare()
            stream = _Capturing(device)
            with device.building():
                mode = driver.enum("CUstreamCaptureMode", "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL")
                driver.cuStreamBeginCapture(stream.handle, mode)
                with _ended(driver, stream.handle):
                    self._issue(self._entries, stream.handle)
                graph = driver.cuStreamEndCapture(stream.handle)
                made = driver.cuGraphInstantiate(graph, 0)
                driver.cuGraphDestroy(graph)
            self._exec = int(made)
        weakref.finalize(self, _destroy, device, self._exec).atexit = False

    def _prepare(self) -> None:
        """Lay launches out, load code, take memory: what must not be done while the driver captures."""
        device = self.device
        self._transients = Transients(self.blocks, device.queue.zeros)
        self._entries = self._transients.serving(self.entries)
        self._transients.settle(every(self._entries))
        for entry in every(self._entries):
            if isinstance(entry, Written):
                laid_out = self._launches[id(entry)] = Launch(entry.program, entry.packed, entry.dims, entry.most)
                block = laid_out.settle()
                if block is not None:
                    weakref.finalize(self, block.give).atexit = False
            elif isinstance(entry, Branch | Loop):
                helper(device, "condition")
            else:
                helper(device, "transfers")
        driver = device.driver
        driver.cuStreamSynchronize(device.queue.stream)  # what was uploaded is there, whichever stream runs the graph

    def _issue(self, entries: list[Any], stream: int) -> None:
        queue = self.device.queue
        for entry in entries:
            if isinstance(entry, Written):
                self._launches[id(entry)].issue(stream)
            elif isinstance(entry, Branch):
                self._branch(entry, stream)
            elif isinstance(entry, Loop):
                self._loop(entry, stream)
            else:
                with queue.upon(stream):
                    _call(queue, entry)

    # ---- conditions

    def _branch(self, entry: Branch, stream: int) -> None:
        """Two nodes, each with its own condition, set before either body runs and may change what it is read from."""
        bodies = [(body, bool(k)) for k, body in enumerate((entry.on_true, entry.on_false)) if body]
        handles = [self._condition(stream) for _ in bodies]
        for handle, (_, inverted) in zip(handles, bodies, strict=True):
            self._set(handle, entry.condition, inverted, stream)
        for handle, (body, _) in zip(handles, bodies, strict=True):
            self._node("IF", handle, body, stream)

    def _loop(self, entry: Loop, stream: int) -> None:
        handle = self._condition(stream)
        self._set(handle, entry.condition, False, stream)
        self._node("WHILE", handle, entry.body, stream, lambda inner: self._set(handle, entry.condition, False, inner))

    def _condition(self, stream: int) -> Any:
        """A new condition of the graph that is being captured."""
        driver = self.device.driver
        graph, _ = driver.captured(stream)
        return driver.cuGraphConditionalHandleCreate(graph, self.device.context, 0, 0)

    def _set(self, handle: Any, condition: int, inverted: bool, stream: int) -> None:
        """Set a condition to what the int32 at an address says when that is reached."""
        device = self.device
        values = ctypes.c_uint64(int(handle)), ctypes.c_uint64(condition), ctypes.c_uint32(inverted)
        params = (ctypes.c_void_p * 3)(*map(ctypes.addressof, values))
        function = helper(device, "condition").addresses["treadle_condition"]
        device.driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, ctypes.addressof(params), 0)

    def _node(self, kind: str, handle: Any, body: list[Any], stream: int, last: Any = None) -> None:
        """A node that runs ``body`` as its condition says; later work of the stream comes after it."""
        device, driver = self.device, self.device.driver
        graph, before = driver.captured(stream)
        wanted = driver.module.CUgraphNodeParams()
        wanted.type = driver.enum("CUgraphNodeType", "CU_GRAPH_NODE_TYPE_CONDITIONAL")
        wanted.conditional.handle = handle
        wanted.conditional.type = driver.enum("CUgraphConditionalNodeType", f"CU_GRAPH_COND_TYPE_{kind}")
        wanted.conditional.size = 1
        wanted.conditional.ctx = device.context
        node = driver.add_node(graph, before, wanted)
        driver.continue_after(stream, node)
        inner = _Capturing(device)
        mode = driver.enum("CUstreamCaptureMode", "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL")
        driver.cuStreamBeginCaptureToGraph(inner.handle, wanted.conditional.phGraph_out[0], None, None, 0, mode)
        with _ended(driver, inner.handle):
            self._issue(body, inner.handle)
            if last is not None:
                last(inner.handle)
        driver.cuStreamEndCapture(inner.handle)


@contextmanager
def _ended(driver: Any, stream: int) -> Iterator[None]:
    """A capture in which something fails ends, and what failed is what is told."""
    try:
        yield
    except BaseException:
        driver.module.cuStreamEndCapture(stream)
        raise


def _call(queue: Any, entry: Call) -> None:
    """Give a call to the queue's stream."""
    words = [int.from_bytes(entry.words[8 * k : 8 * k + 8], "little") for k in range(3)]
    if entry.name in ("keep", "put", "swap"):
        from ..runs import Runs

        rows = memoryview(entry.words)[_WORDS:].cast("q")
        runs = Runs([tuple(rows[4 * k : 4 * k + 4]) for k in range(words[1])])
        queue.runs(entry.name, runs, words[2])
    elif len(entry.words) > _WORDS:
        queue.call_with_table(entry.name, words, entry.words[_WORDS:], (), entry.nbytes)
    else:
        queue.call(entry.name, words)


class _Capturing:
    """A stream for the time of a capture, which nothing else uses."""

    def __init__(self, device: Gpu):
        self.handle = int(device.driver.cuStreamCreateWithPriority(1, 0))
        weakref.finalize(self, device.drop, "cuStreamDestroy", self.handle).atexit = False


def _destroy(device: Gpu, handle: int) -> None:
    """A graph goes; the driver keeps it while it runs."""
    device.drop("cuGraphExecDestroy", handle)
