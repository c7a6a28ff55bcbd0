"""Graphs of the stand-in for the CUDA driver: what is captured, nodes with conditions, and how they run."""

from __future__ import annotations

import ctypes
from typing import Any

from tests.runtime.cuda.standin_parts import ENUMS, Graph


class Graphs:
    """The functions of a :class:`Driver` that have to do with graphs."""

    def cuStreamIsCapturing(self, hStream):
        return ENUMS["CUstreamCaptureStatus"](int(self._stream(hStream).graph is not None))

    def cuStreamBeginCapture(self, hStream, mode):
        self._stream(hStream).graph = Graph()

    def cuStreamBeginCaptureToGraph(self, hStream, hGraph, dependencies, dependencyData, numDependencies, mode):
        self._stream(hStream).graph = self.things[int(hGraph)]

    def cuStreamEndCapture(self, hStream):
        stream = self._stream(hStream)
        graph, stream.graph = stream.graph, None
        return next((h for h, t in self.things.items() if t is graph), None) or self._new(graph)

    def cuStreamGetCaptureInfo(self, hStream):
        graph = self._stream(hStream).graph
        handle = next((h for h, t in self.things.items() if t is graph), None) or self._new(graph)
        return ENUMS["CUstreamCaptureStatus"](1), 1, handle, self._last(graph), None, 1

    def cuGraphConditionalHandleCreate(self, hGraph, ctx, defaultLaunchValue, flags):
        handle = self._new("condition")
        self.conditions[handle] = defaultLaunchValue
        return handle

    def cuGraphAddNode(self, hGraph, dependencies, *rest):
        "dependencyData"
        *_, numDependencies, nodeParams = rest  # CUDA 13 wants data of edges in front
        assert len(dependencies) == numDependencies
        graph, what = self.things[int(hGraph)], nodeParams.conditional
        body = Graph()
        if self.bindings is None:
            what.phGraph_out = [self._new(body)]
        else:  # a pointer, behind handle, type and size, to an array of the driver's
            self._bodies = (ctypes.c_uint64 * 1)(self._new(body))
            ctypes.c_uint64.from_address(what.getPtr() + 16).value = ctypes.addressof(self._bodies)
        handle, loop = int(what.handle), what.type == ENUMS["CUgraphConditionalNodeType"].CU_GRAPH_COND_TYPE_WHILE

        def work() -> None:
            rounds = 0
            while self.conditions[handle] and rounds < (10_000 if loop else 1):
                rounds += 1
                for node in body.nodes:
                    node()

        graph.nodes.append(work)
        graph.names.append(("while" if loop else "if", body))
        return self._last(graph)[0]

    def _last(self, graph: Graph) -> list[Any]:
        """The node that comes last, as a number."""
        return [self.CUgraphNode(len(graph.nodes))] if graph.nodes else []

    def cuStreamUpdateCaptureDependencies(self, hStream, dependencies, *rest):
        assert rest[-2:] == (1, 1) and [*map(int, dependencies)] == [len(self._stream(hStream).graph.nodes)]

    def cuGraphInstantiate(self, hGraph, flags):
        return self._new(Graph([*self.things[int(hGraph)].nodes], [*self.things[int(hGraph)].names]))

    def cuGraphDestroy(self, hGraph):
        del self.things[int(hGraph)]

    def cuGraphExecDestroy(self, hGraphExec):
        del self.things[int(hGraphExec)]

    def cuGraphLaunch(self, hGraphExec, hStream):
        graph = self.things[int(hGraphExec)]

        def work() -> None:
            for node in graph.nodes:
                node()

        self._give(hStream, ("graph", graph), work)
