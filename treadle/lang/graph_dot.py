"""``wp.capture_debug_dot_print``: a graph in the language of GraphViz."""

from __future__ import annotations

from typing import Any

from ..runtime.capture import Branch, Call, Entry, Launch
from ..runtime.graph import Graph

_WHAT = {
    "move": "copy", "spread": "copy with gaps", "zero": "zeros", "exchange": "swap", "swap": "swap", "keep": "save",
    "put": "put back",
}  # fmt: skip


def capture_debug_dot_print(graph: Graph, path: str, verbose: bool = True) -> None:
    """Write what ``graph`` does to the file ``path``, for GraphViz: one node an operation, in the order in which they
    run; bodies of branches and loops are boxes.

    Args:
        graph: what was captured.
        path: the file.
        verbose: say grids, argument types and numbers of bytes too.

    Raises:
        TypeError: it is no graph.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"wp.capture_debug_dot_print takes a graph, not {type(graph).__name__}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_Drawing(verbose).text(graph.entries))


class _Drawing:
    """Nodes are numbered as they come; ``lines`` is the text so far."""

    def __init__(self, verbose: bool):
        self.verbose = verbose
        self.lines = ["digraph graph_of_launches {", "  node [shape=box, fontname=monospace];"]
        self.count = 0

    def text(self, entries: list[Entry]) -> str:
        self.body(entries, None, "")
        return "\n".join([*self.lines, "}", ""])

    def body(self, entries: list[Entry], last: str | None, label: str) -> str | None:
        """Draw entries one after the other, behind node ``last``; the node that ends them."""
        for entry in entries:
            node = self.node(_label(entry, self.verbose))
            if last is not None:
                self.lines.append(f"  {last} -> {node}{f' [label={_quoted(label)}]' if label else ''};")
            last, label = node, ""
            if isinstance(entry, Branch):
                self.box(entry.on_true, node, "true")
                self.box(entry.on_false, node, "false")
            elif not isinstance(entry, Launch | Call):
                end = self.box(entry.body, node, "while not 0")
                if end is not None:
                    self.lines.append(f"  {end} -> {node} [style=dashed];")
        return last

    def node(self, label: str) -> str:
        self.count += 1
        self.lines.append(f"  n{self.count} [label={_quoted(label)}];")
        return f"n{self.count}"

    def box(self, entries: list[Entry], above: str, label: str) -> str | None:
        if not entries:
            return None
        self.lines.append(f"  subgraph cluster_{self.count} {{")
        end = self.body(entries, above, label)
        self.lines.append("  }")
        return end


def _label(entry: Any, verbose: bool) -> str:
    if isinstance(entry, Launch):
        types = ", ".join([t.name for t in entry.program.signature])
        more = f"\ndim {' x '.join(map(str, entry.dims))}\n({types})" if verbose else ""
        return entry.program.name + more
    if isinstance(entry, Call):
        return _WHAT.get(entry.name, entry.name) + (f"\n{entry.nbytes} bytes" if verbose else "")
    return "if" if isinstance(entry, Branch) else "while"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
