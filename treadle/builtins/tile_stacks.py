"""Stacks of a block of threads. Like tiles they are values; calls change the variable that holds one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import Scalar, TileStack, Type, b1, i32, tile_stack
from ..types.promotion import fits
from ..types.spelling import spell
from . import tile_bodies
from .constructors import convert, zero
from .patterns import Any, Known
from .registry import Mismatch
from .tile_terms import Given, Plan, blank, call, filled_with, item_of, planned

stack_type = tile_stack  # before the record below takes its name


# -- bodies: where elements are composites the first component of the last one counts ----------------------------------


@cache
def counter(plain: bool) -> Callable:
    def count(s):
        if plain:
            return int(s[s.size - 1])
        return int(s[s.size - 1][0])

    return count


@cache
def setter(plain: bool) -> Callable:
    def set_count(s, n):
        if plain:
            s[s.size - 1] = s.dtype(n)
        else:
            s[s.size - 1][0] = s.dtype.dtype(n)
        return s

    return set_count


@cache
def pusher(plain: bool) -> Callable:
    count, set_count = counter(plain), setter(plain)

    def push(s, value, has_value):
        n = count(s)
        slot = -1
        if has_value and n < s.size - 1:
            slot = n
            s[n] = value
            s = set_count(s, n + 1)
        return slot, s

    return push


@cache
def popper(plain: bool) -> Callable:
    count, set_count = counter(plain), setter(plain)

    def pop(s, nothing):
        slot = count(s) - 1
        value = nothing
        if slot >= 0:
            value = s[slot]
            s = set_count(s, slot)
        return value, slot, s

    return pop


# -- records -----------------------------------------------------------------------------------------------------------


def _stack(given: Given) -> TileStack:
    t = given["s"].type
    if not isinstance(t, TileStack):
        raise Mismatch(f"argument 's' must be a stack, as wp.tile_stack makes it, not {given['s'].show()}")
    return t


def _several(b: Builder, given: Given, body: Callable, *values: Value) -> tuple[Value, ...]:
    func = given.context.instantiate(body, [v.type for v in values])
    return b.op("call", values, tuple([y.type for y in func.body.yields]), func=func)


@planned
class tile_stack:
    """An empty stack for up to ``capacity`` elements of type ``dtype``; both are constants."""

    def sig(capacity: Known("a constant int"), dtype: Known("a type")): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        capacity, item = given.value("capacity"), item_of(given)
        capacity = getattr(capacity, "value", capacity)
        if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1:
            raise Mismatch(f"argument 'capacity' must be a positive constant int, not {capacity!r}")
        scalar = item if isinstance(item, Scalar) else item.elem
        limit = {"f16": 2048, "bf16": 256, "f32": 1 << 24}.get(scalar.name)  # what the type counts to, one by one
        if scalar is b1 or scalar.is_int and not fits(capacity, scalar) or limit is not None and capacity > limit:
            raise Mismatch(f"a stack of {spell(item)} cannot count to {capacity}")
        t = stack_type(item, capacity)

        def emit(b: Builder, values: dict[str, Value]) -> Value:
            return call(b, given.context, tile_bodies.fill, blank(b, t), zero(b, item))

        return Plan(t, {}, emit)


@planned
class tile_stack_push:
    """Push ``value`` if ``has_value``; gives its slot, or -1 where there is none or the stack is full."""

    updates = ("s",)

    def sig(s: Any, value: Any, has_value: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t = _stack(given)
        if given["has_value"].type is not b1:
            raise Mismatch(f"argument 'has_value' must be a bool, not {given['has_value'].show()}")
        types: dict[str, Type] = {"s": t, "value": filled_with(given, "value", t.item), "has_value": b1}
        plain = isinstance(t.item, Scalar)

        def emit(b: Builder, v: dict[str, Value]) -> tuple[Value, ...]:
            x = convert(b, v["value"], t.item) if plain else v["value"]
            return _several(b, given, pusher(plain), v["s"], x, v["has_value"])

        return Plan(i32, types, emit)


@planned
class tile_stack_pop:
    """Take the value that was pushed last: ``value, slot = wp.tile_stack_pop(s)``; of an empty stack zero and -1."""

    updates = ("s",)

    def sig(s: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t = _stack(given)
        body = popper(isinstance(t.item, Scalar))
        return Plan((t.item, i32), {"s": t}, lambda b, v: _several(b, given, body, v["s"], zero(b, t.item)))


@planned
class tile_stack_clear:
    """Make a stack empty."""

    updates = ("s",)

    def sig(s: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t = _stack(given)
        body = setter(isinstance(t.item, Scalar))
        return Plan(None, {"s": t}, lambda b, v: call(b, given.context, body, v["s"], b.i32(0)))


@planned
class tile_stack_count:
    """How many elements a stack has."""

    def sig(s: Any): ...

    @staticmethod
    def plan(given: Given) -> Plan:
        t = _stack(given)
        return Plan(i32, {"s": t}, lambda b, v: call(b, given.context, counter(isinstance(t.item, Scalar)), v["s"]))
