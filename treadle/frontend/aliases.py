"""Variables that share elements: ``v = wp.tile_view(t, …)`` and ``v = t[2:4]`` are parts of ``t``, not copies.

Tiles are values here, so sharing is kept up by hand: where a statement changes elements of ``t``, what is known to be
a part of it is taken anew, and where it changes elements of ``v``, they are put back into ``t``. What nobody reads
later is dropped with all other dead code. Behind a branch or a loop the translator no longer knows whether they share;
changing one of them there is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..ir.node import Value
from ..types.core import Tile
from ..types.spelling import spell
from .constants import Operand, constant_of
from .environment import Variable
from .expressions import Expressions
from .groups import VIEWS, last_name
from .references import Local, Reference, Window


class Link(NamedTuple):
    """What variable a tile is a part of. ``take`` makes the part of the whole, ``put`` a whole with another part."""

    source: str
    seen: Operand  # the whole when the part was last in step with it
    take: Callable[[Value], Value]
    put: Callable[[Value, Value], Value]


class Linked(Variable):
    """A variable that shares elements with another one."""

    __slots__ = ("link",)

    def __init__(self, v: Variable, link: Link):
        super().__init__(v.operand, v.defined, v.span)
        self.link = link


class Aliasing(Expressions):
    """Translation of what shares elements. ``parted`` has the variables that once were parts, with what of."""

    def linked(self, name: str, node: ast.expr) -> None:
        """Note what ``name`` is a part of, after it was assigned the value of ``node``."""
        self.parted.pop(name, None)
        v = self.env.get(name)
        if not isinstance(node, ast.Call | ast.Subscript) or v is None or not isinstance(v.type, Tile):
            return
        made = self._subscripted(node) if isinstance(node, ast.Subscript) else self._called(node)
        if made is not None and made.source != name:
            self.env[name], self.parted[name] = Linked(v, made), made.source

    def _subscripted(self, node: ast.Subscript) -> Link | None:
        ref: Reference = self.reference(node)
        if not isinstance(ref, Window) or not isinstance(ref.parent, Local):
            return None

        def part(whole: Value) -> Value:
            return self.part_of(ref, whole, node)

        name = ref.parent.name
        return Link(name, self.env[name].operand, part, lambda whole, v: self.with_part(ref, whole, v, node))

    def _called(self, node: ast.Call) -> Link | None:
        name = last_name(node.func)
        given = self.arguments(node) if name in VIEWS else None
        first = given.places[0] if given is not None and given.places else None
        if not isinstance(first, ast.Name) or first.id not in self.env or not given.args:
            return None
        rest, whole = given.args[1:], self.env[first.id]
        t = whole.type
        if not isinstance(t, Tile):
            return None

        def part(x: Value) -> Operand:
            return self.builtin_call(name, [x, *rest], given.kwargs, node, given.places)

        def put(x: Value, v: Value) -> Operand:
            if name == "tile_view":
                offset = (rest or [given.kwargs["offset"]])[0]
                shape = (1,) * (len(t.shape) - len(v.type.shape)) + v.type.shape
                v = self._again("tile_reshape", [v, constant_of(shape)], node)
                return self._again("tile_assign", [x, v, offset], node)
            if name == "tile_transpose":
                return self._again(name, [v], node)
            if name == "tile_broadcast":
                self.fail(node, "elements of a broadcast tile stand for several; they cannot be changed")
            return self._again("tile_reshape", [v, constant_of(t.shape)], node)

        return Link(first.id, whole.operand, part, put)

    def _again(self, name: str, args: list[Operand], node: ast.AST) -> Value:
        """What builtin ``name`` gives, or makes of the variable it changes."""
        match = self.resolve(name, [self.arg(x, node) for x in args], {}, node)
        values = [None if t is None else self.value(x, node, t) for x, t in zip(args, match.types, strict=True)]
        return match.emit(self.here(node), values)

    def changed(self, name: str, before: Variable | None, node: ast.AST) -> None:
        """Bring what shares elements with ``name`` in step, after some of its elements changed."""
        if name in self.shared:
            self.shared[name] = True
        if self.parted:
            self._spread(name, before, node, True, None)

    def _spread(self, name: str, before: Variable | None, node: ast.AST, up: bool, origin: str | None) -> None:
        now = self.env[name]
        if isinstance(before, Linked):
            link, whole = before.link, self.env.get(before.link.source)
            if up and whole is not None and whole.operand is link.seen:
                made = link.put(whole.operand, now.operand)
                self.env[link.source] = Variable(made, whole.defined, whole.span)
                link = link._replace(seen=made)
                self._spread(link.source, whole, node, True, name)
            elif not up:
                link = link._replace(seen=self.env[link.source].operand)
            self.env[name] = Linked(now, link)
        elif name in self.parted and up:
            self._lost(name, self.parted[name], node)
        for other, v in self._parts(name, origin):
            if not isinstance(v, Linked):
                self._lost(other, name, node)
            if v.link.seen is before.operand:
                self.env[other] = Variable(v.link.take(now.operand), v.defined, v.span)
                self._spread(other, v, node, False, name)

    def _parts(self, name: str, origin: str | None) -> Iterator[tuple[str, Variable]]:
        for other, source in [*self.parted.items()]:
            if source == name and other != origin and other in self.env:
                yield other, self.env[other]

    def _lost(self, part: str, whole: str, node: ast.AST) -> None:
        shown = spell(self.env[part].type)
        self.fail(node, f"{part!r} ({shown}) was a part of {whole!r} before a branch or a loop, and may be none here",
                  f"take it again in front of this line, or change {whole!r} alone")  # fmt: skip
