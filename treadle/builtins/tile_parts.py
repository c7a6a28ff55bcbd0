"""Parts of tiles taken out and put back, by loops that know their strides."""

from __future__ import annotations

from functools import cache
from math import prod

from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import Tile, tile
from .tile_bodies import mover, placer
from .tile_terms import blank, call


def four(numbers: tuple[int, ...], filler: int) -> tuple[int, ...]:
    """``numbers`` with ``filler`` in front, four in all."""
    return (filler,) * (4 - len(numbers)) + tuple(numbers)


def steps_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many elements lie between neighbours along each axis."""
    return tuple([prod(shape[k + 1 :]) for k in range(len(shape))])


def taken(b: Builder, context: object, source: Value, t: Tile, steps: tuple[int, ...], first: Value) -> Value:
    """A tile ``t`` whose element (i, j …) is element first + i * steps[0] + … of ``source``."""
    return call(b, context, mover(four(t.shape, 1), four(steps, 0)), blank(b, t), source, first)


def placed(b: Builder, context: object, target: Value, source: Value, steps: tuple[int, ...], first: Value) -> Value:
    """``target`` with element (i, j …) of ``source`` as its element first + i * steps[0] + …"""
    return call(b, context, placer(four(source.type.shape, 1), four(steps, 0)), target, source, first)


@cache
def picker(outer: int, count: int, length: int, inner: int):
    """What fills a tile of outer × count × inner from one of outer × length × inner, by a list of ``count`` indices."""

    def pick(t, source, listed):
        for o in range(outer):
            for k in range(count):
                at = int(listed[k])
                if at < 0:
                    at += length
                for i in range(inner):
                    t[(o * count + k) * inner + i] = source[(o * length + at) * inner + i]
        return t

    return pick


def gathered(b: Builder, context: object, source: Value, listed: Value, axis: int) -> Value:
    """What the tile ``listed`` of indices names along ``axis``; negative ones count from the end."""
    t, count = source.type, listed.type.shape[0]
    shape = t.shape
    body = picker(prod(shape[:axis]), count, shape[axis], prod(shape[axis + 1 :]))
    made = tile(t.item, (*shape[:axis], count, *shape[axis + 1 :]))
    return call(b, context, body, blank(b, made), source, listed)
