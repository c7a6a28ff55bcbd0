"""The operations on a tape as text in the language of GraphViz."""

from __future__ import annotations

from html import escape
from typing import Any

from ..runtime.array import array
from .host_writes import Function, HostWrite
from .plan import Plan

LONGEST = 100  # operations of a sequence that is looked for again right behind it


class _Node:
    """One box: what it is called, and the arrays that go in and come out, with their names."""

    def __init__(self, title: str, inputs: list[tuple[str, array]], outputs: list[tuple[str, array]]):
        self.title, self.inputs, self.outputs = title, inputs, outputs

    @property
    def likeness(self) -> Any:
        """Equal for nodes that do the same with the same arrays."""
        return self.title, [_key(a) for _, a in self.inputs], [_key(a) for _, a in self.outputs]


def draw(tape: Any, labels: dict[array, str], shown: list[array], simplify: bool, hide_readonly: bool,
         longest: bool, ignore_scopes: bool, direction: str) -> str:  # fmt: skip
    """The graph; the arguments are those of :meth:`Tape.visualize`."""
    nodes = [_node_of(op) for op in tape.launches]
    names = _names(nodes, labels, longest)
    written = {_key(a) for node in nodes if node for _, a in node.outputs}
    lines = ['digraph "tape" {', f"    rankdir={direction};", "    node [shape=box, style=rounded];"]
    scopes = {} if ignore_scopes else _scopes_at(tape.scopes)
    versions: dict[tuple, int] = {}
    arrays: dict[str, tuple[array, str]] = {}
    depth = count = 0
    groups = _groups(nodes, scopes) if simplify else [(n, 1, 1) for n in range(len(nodes))]
    for first, length, times in [*groups, (len(nodes), 0, 1)]:
        for title in scopes.get(first, ()):
            if title is None:
                depth -= 1
                lines.append(f"{_indent(depth)}}}")
            else:
                lines.append(f'{_indent(depth)}subgraph cluster{count} {{ label="{escape(title)}";')
                depth, count = depth + 1, count + 1
        if times > 1:
            lines.append(f'{_indent(depth)}subgraph cluster{count} {{ label="repeated {times}x"; style=dashed;')
            depth, count = depth + 1, count + 1
        for number, node in enumerate(nodes[first : first + length], first):
            if node is None:
                continue
            lines.append(f'{_indent(depth)}op{number} [label="{escape(node.title)}"];')
            for name, a in node.inputs:
                if not hide_readonly or _key(a) in written or any(a is b for b in shown):
                    at = _place(a, versions, simplify)
                    arrays.setdefault(at, (a, names[_key(a)]))
                    lines.append(f'{_indent(depth)}{at} -> op{number} [label="{escape(name)}"];')
            for name, a in node.outputs:
                versions[_key(a)] = versions.get(_key(a), 0) + 1
                at = _place(a, versions, simplify)
                arrays.setdefault(at, (a, names[_key(a)]))
                lines.append(f'{_indent(depth)}op{number} -> {at} [label="{escape(name)}"];')
        if times > 1:
            depth -= 1
            lines.append(f"{_indent(depth)}}}")
    lines += [f"{_indent(level)}}}" for level in range(depth - 1, -1, -1)]
    for a in shown:
        arrays.setdefault(_place(a, versions, simplify), (a, names.get(_key(a)) or labels.get(a, "array")))
    for at, (a, name) in arrays.items():
        filled = ", style=filled" if a.requires_grad else ""
        lines.append(f'    {at} [shape=ellipse, label="{escape(name)}", tooltip="{escape(_told(a))}"{filled}];')
    return "\n".join([*lines, "}", ""])


def _groups(nodes: list[_Node | None], scopes: dict[int, Any]) -> list[tuple[int, int, int]]:
    """What comes several times in a row stands once: the first of its operations, how many they are, and how often
    they come. No group reaches beyond where a scope begins or ends."""
    likes = [None if node is None else node.likeness for node in nodes]
    found, at = [], 0
    while at < len(nodes):
        end = min([k for k in scopes if k > at], default=len(nodes))
        length, times = 1, 1
        for size in range(1, min(LONGEST, (end - at) // 2) + 1):
            count = 1
            while at + (count + 1) * size <= end and (
                likes[at : at + size] == likes[at + count * size : at + (count + 1) * size]
            ):
                count += 1
            if count > 1 and size * count > length * times:
                length, times = size, count
        found.append((at, length, times))
        at += length * times
    return found


def _told(a: array) -> str:
    return f"array: dtype={getattr(a.dtype, '__name__', a.dtype)}, shape={a.shape}"


def _node_of(op: Any) -> _Node | None:
    if type(op) is tuple:
        return _launch(*op)
    if isinstance(op, HostWrite):
        source = [] if op.source is None else [("source", op.source)]
        title = "write" if op.source is None else "copy"
        return _Node(title, source, [("dest", op.dest)])
    if isinstance(op, Function):
        return _Node("function", [("", a) for a in op.arrays()], [])
    return None  # what has no part in the gradient


def _launch(plan: Plan, _: Any, args: Any) -> _Node:
    arrays = [(site, site.of(args)) for site in plan.sites]
    inputs = [(site.name, a) for site, a in arrays if a is not None and (site.loads or not site.writes)]
    outputs = [(site.name, a) for site, a in arrays if a is not None and site.writes]
    return _Node(plan.kernel.key, inputs, outputs)


def _key(a: array) -> tuple:
    """Arrays that show the same elements are one in the picture."""
    return a._address, a.shape, a.strides


def _names(nodes: list[_Node | None], labels: dict[array, str], longest: bool) -> dict[tuple, str]:
    """What each array is called: its label, else an argument it was."""
    found: dict[tuple, str] = {}
    for node in nodes:
        for name, a in [*node.inputs, *node.outputs] if node else ():
            have = found.get(_key(a))
            if have is None or (longest and len(name) > len(have)):
                found[_key(a)] = name
    found.update({_key(a): label for a, label in labels.items()})
    return found


def _scopes_at(scopes: list[tuple[int, str | None, Any]]) -> dict[int, list[str | None]]:
    found: dict[int, list[str | None]] = {}
    for at, title, _ in scopes:
        found.setdefault(at, []).append(title)
    return found


def _place(a: array, versions: dict[tuple, int], simplify: bool) -> str:
    """The node of an array, or of what it holds after so many writes."""
    number = 0 if simplify else versions.get(_key(a), 0)
    shape = "x".join(map(str, (*a.shape, *a.strides))).replace("-", "m")
    return f"a{a._address}_{shape}" + (f"_{number}" if number else "")


def _indent(depth: int) -> str:
    return "    " * (depth + 1)
