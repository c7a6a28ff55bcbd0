"""Indices that are negative while the program runs count from the end, as ``a[i]`` with ``i = -1`` does in Python.

An index ``i`` along a dimension of ``n`` elements becomes ``i + n`` where that is in the array and ``i`` is not. Most
indices need no such test: thread indices, counters and what is added to them are never negative, and inside
``if i > 0:`` neither is ``i - 1``. So for every integer the pass knows how small it can be: from what makes it, from
the conditions around, and in functions from the arguments of all calls.

Whole numbers wrap: a product of non-negative ones may be negative, and then so is its remainder, as in the hash
``(h * 73856093) % n``. Sums, and products of thread indices, extents, counters of loops and small constants, are taken
to fit.

An index that is the thread's own plus something that all threads share stays as it is: neighbours then lie side by side
in memory and are read at once. What is before the first element is out of bounds there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ..ir.node import Block, Func, Op, Value
from ..ir.reach import counted
from ..ir.walk import callees, functions_of, with_args, with_body, with_functions, with_ops, with_regions
from ..types.core import Scalar, View, b1, i32

__all__ = ["count_from_end"]

DEEPEST = 24  # operations between a value and what is known of it
SPARE = 16  # bits that indices leave for constants they are multiplied by
WRAPS = 1 << 10  # more bits than any integer has
OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


class Known(NamedTuple):
    """What is known of an argument: how small it is at least (None: anything), ``thread`` as :meth:`_Facts.thread`
    tells it, and ``bits`` as :meth:`_Facts.bits` does (None: nothing is known)."""

    low: int | None = None
    thread: bool | None = None
    bits: int | None = None


def count_from_end(func: Func) -> Func:
    """``func``, and what it calls, with negative indices counted from the end.

    A function by itself stays as it is: only a kernel tells what it will be called with.
    """
    if func.kind != "kernel":
        return func
    called = [*callees(func)]
    facts: dict[Func, _Facts] = {}
    arguments: dict[Func, list[Known]] = {}
    for f in (func, *reversed(called)):  # callers first: they say what arguments can be
        given = arguments.get(f) or [Known()] * len(f.params)
        facts[f] = _Facts(f, given)
        facts[f].read(f.body)
        for callee, states in facts[f].calls:
            before = arguments.get(callee, states)
            arguments[callee] = [_either(a, b) for a, b in zip(before, states, strict=True)]
    made: dict[Func, Func] = {}
    for f in (*called, func):
        body = facts[f].rewritten(f.body, made)
        made[f] = with_body(f, body)
    return made[func]


def _either(a: Known, b: Known) -> Known:
    thread = None if None in (a.thread, b.thread) else a.thread or b.thread
    return Known(_least([a.low, b.low]), thread, None if None in (a.bits, b.bits) else max(a.bits, b.bits))


def _least(lows: Sequence[int | None]) -> int | None:
    return None if None in lows else min(lows)


class _Facts:
    """What is known of the integers of one function.

    ``base``: how small parameters, and what branches and loops give, are. ``defs``: the op that makes a value.
    ``here``: what the conditions around the present place add. ``calls``: what functions are called with.
    ``widths``: the bits of parameters, and of what branches and loops give.
    """

    def __init__(self, func: Func, given: list[Known]):
        self.base: dict[Value, int | None] = {p: k.low for p, k in zip(func.params, given, strict=True)}
        kernel = func.kind == "kernel"
        self.threads: dict[Value, bool | None] = {
            p: False if kernel else k.thread for p, k in zip(func.params, given, strict=True)
        }
        self.defs: dict[Value, Op] = {}
        self.here: dict[Value, int] = {}
        self.calls: list[tuple[Func, list[Known]]] = []
        self.widths: dict[Value, int] = {
            p: k.bits for p, k in zip(func.params, given, strict=True) if k.bits is not None
        }
        self._seen: dict[Value, int | None] = {}
        self._bits: dict[Value, int] = {}

    # -- how small a value can be --------------------------------------------------------------------------------------

    def low(self, v: Value, depth: int = 0) -> int | None:
        """The least that ``v`` can be at this place; None where nothing is known."""
        if v in self._seen:
            return self._seen[v]
        if not isinstance(v.type, Scalar) or not v.type.is_int:
            return None
        found = self.base[v] if v in self.base else self._made(v, depth)
        if found is None and not v.type.is_signed:
            found = 0
        around = self.here.get(v)
        found = around if found is None else found if around is None else max(found, around)
        self._seen[v] = found
        return found

    def _made(self, v: Value, depth: int) -> int | None:
        op = self.defs.get(v)
        if op is None or depth > DEEPEST:
            return None
        if op.name == "const":
            value = op.attrs["value"]
            return value if isinstance(value, int) else None
        if op.name in ("tid", "shape", "popcount", "abs"):
            return 0
        if op.name == "select" and self._is_counted(op):
            return 0
        if op.name == "cast":
            return self._cast(op, depth)
        lows = [self.low(a, depth + 1) for a in op.args]
        match op.name:
            case "add" | "min" | "select" if None not in lows[-2:]:
                return sum(lows) if op.name == "add" else min(lows[-2:])
            case "sub" if lows[0] is not None and self._constant(op.args[1]) is not None:
                return lows[0] - self._constant(op.args[1])
            case "max":
                return max([x for x in lows if x is not None], default=None)
            case "mul" | "bitor" | "bitxor" if _positive(*lows):
                return 0
            case "shl" if _positive(lows[0]):
                return 0
            case "div" | "floordiv" if _positive(*lows) and self.bits(op.args[0]) < WRAPS:
                return 0
            case "mod" | "shr" if _positive(lows[0]) and self.bits(op.args[0]) < WRAPS:
                return 0
            case "bitand" if any([x is not None and x >= 0 for x in lows]):
                return 0
        return None

    def _cast(self, op: Op, depth: int) -> int | None:
        source, t = op.args[0], op.results[0].type
        if source.type is b1:
            return 0
        wider = isinstance(source.type, Scalar) and source.type.is_int and source.type.bits < t.bits
        return self.low(source, depth + 1) if wider or source.type.bits == t.bits and source.type.is_signed else None

    def _constant(self, v: Value) -> int | None:
        op = self.defs.get(v)
        return op.attrs["value"] if op is not None and op.name == "const" else None

    def _is_counted(self, op: Op) -> bool:
        """Whether ``op`` is what this pass makes of an index."""
        return counted(op, self.defs) is not None

    def bits(self, v: Value, depth: int = 0) -> int:
        """How many bits ``v``, if not negative, may have beyond those of an index; WRAPS where it may be a product that
        does not fit, so that it can be negative all the same."""
        found = self.widths.get(v, self._bits.get(v))
        if found is None:
            found = self._bits[v] = self._width(v, depth)
        return found

    def _width(self, v: Value, depth: int) -> int:
        whole = v.type.bits if isinstance(v.type, Scalar) else 0
        op = self.defs.get(v)
        if op is None or op.regions or depth > DEEPEST:
            return whole
        if op.name == "const":
            value = op.attrs["value"]
            return value.bit_length() if isinstance(value, int) else whole
        if op.name in ("tid", "shape", "popcount"):
            return 0
        parts = [self.bits(a, depth + 1) for a in op.args]
        match op.name:
            case "mul" | "shl":
                if op.name == "shl":
                    by = self._constant(op.args[1])
                    parts[1] = whole if by is None else by
                return sum(parts) if sum(parts) <= whole - SPARE else WRAPS
            case "add" | "sub" | "min" | "max" | "bitor" | "bitxor" | "abs" | "cast":
                return max(parts)
            case "select":
                return max(parts[1:])
            case "mod" | "bitand":
                return min(parts)
            case "div" | "floordiv" | "shr":
                return parts[0]
        return whole

    # -- conditions ----------------------------------------------------------------------------------------------------

    @contextmanager
    def given(self, condition: Value, holds: bool) -> Iterator[None]:
        """Inside, ``condition`` holds, or does not."""
        before, seen = self.here, self._seen
        self.here, self._seen = dict(before), {}
        self._learn(condition, holds)
        self._seen = {}
        yield
        self.here, self._seen = before, seen

    def _learn(self, condition: Value, holds: bool) -> None:
        op = self.defs.get(condition)
        if op is None:
            return
        if op.name == "logical_not":
            self._learn(op.args[0], not holds)
        elif op.name == ("bitand" if holds else "bitor"):
            for part in op.args:
                self._learn(part, holds)
        elif op.name in OPPOSITE:
            self._compared(op.name if holds else OPPOSITE[op.name], *op.args)

    def _compared(self, relation: str, x: Value, y: Value) -> None:
        if relation in ("lt", "le"):
            relation, x, y = {"lt": "gt", "le": "ge"}[relation], y, x
        low_x, low_y = self.low(x), self.low(y)
        if relation in ("gt", "ge", "eq") and low_y is not None:
            self._at_least(x, low_y + (relation == "gt"))
        if relation == "eq" and low_x is not None:
            self._at_least(y, low_x)
        if relation == "ne" and low_x is not None and self._constant(y) == low_x:
            self._at_least(x, low_x + 1)

    def _at_least(self, v: Value, low: int) -> None:
        self.here[v] = max(low, self.here.get(v, low))
        self._seen = {}

    # -- threads' own indices ------------------------------------------------------------------------------------------

    def thread(self, v: Value, depth: int = 0) -> bool | None:
        """True for a thread's index plus what all threads share, False for what they share, None for anything else."""
        if v in self.threads:
            return self.threads[v]
        op, found = self.defs.get(v), None
        if op is not None and depth <= DEEPEST:
            if op.name in ("tid", "const", "shape"):
                found = op.name == "tid"
            elif op.name in ("add", "sub", "mul", "cast", "extract"):
                parts = [self.thread(a, depth + 1) for a in op.args]
                found = None if None in parts else any(parts)
            elif op.name == "select" and self._is_counted(op):
                found = self.thread(op.args[2], depth + 1)
            elif op.name == "load" and not any([self.thread(a, depth + 1) is not False for a in op.args[1:]]):
                found = False
        self.threads[v] = found
        return found

    # -- reading -------------------------------------------------------------------------------------------------------

    def read(self, block: Block) -> None:
        """Find what is known of all values of ``block``."""
        for op in block.ops:
            for r in op.results:
                self.defs[r] = op
            if op.name == "if":
                lows, widths = [], []
                for region, holds in zip(op.regions, (True, False), strict=True):
                    with self.given(op.args[0], holds):
                        self.read(region)
                        lows.append([self.low(y) for y in region.yields])
                        widths.append([self.bits(y) for y in region.yields])
                self.widths.update(zip(op.results, map(max, zip(*widths, strict=True)), strict=True))
                self.base.update(zip(op.results, map(_least, zip(*lows, strict=True)), strict=True))
            elif op.name in ("for", "while"):
                self._loop(op)
            elif op.name == "call":
                states = [Known(self.low(a), self.thread(a), self.bits(a)) for a in op.args]
                for f in functions_of(op):  # rules take more: results, adjoints
                    self.calls.append((f, [*states, *[Known()] * (len(f.params) - len(states))]))
            for region in op.regions if op.name not in ("if", "for", "while") else ():
                self.read(region)

    def _loop(self, op: Op) -> None:
        """A carried value is assumed to be no smaller than at the start; where the body shows otherwise, anything."""
        (region,) = op.regions
        starts, carried = op.args, region.params
        if op.name == "for":
            first, stop, step = (self.low(a) for a in op.args[:3])
            rises = self._constant(op.args[2])
            down = stop is not None and rises is not None and rises < 0
            index = first if step is not None and step >= 0 else stop + 1 if down else None
            shared = [self.thread(a) for a in op.args[:3]]
            self.base[region.params[0]] = index
            self.threads[region.params[0]] = None if None in shared else any(shared)
            self.widths[region.params[0]] = 0
            starts, carried = op.args[3:], region.params[1:]
        ends = region.yields[len(region.yields) - len(carried) :]
        lows = [self.low(a) for a in starts]
        for p in carried:
            self.threads[p] = None
        calls = len(self.calls)
        for last in (False, False, True):
            self.base.update(zip(carried, lows, strict=True))
            del self.calls[calls:]
            self._seen = {}
            self.read(region)
            wrapped = self._carry([*zip(carried, starts, ends, strict=True)])
            kept = [x if x is not None and (y := self.low(end)) is not None and y >= x else None
                    for x, end in zip(lows, ends, strict=True)]  # fmt: skip
            if kept == lows and not wrapped:
                break
            lows = [None] * len(lows) if last else kept
        else:
            self.base.update(zip(carried, lows, strict=True))
            del self.calls[calls:]
            self._seen = {}
            self.read(region)
        self.base.update(zip(op.results, lows, strict=True))
        self.widths.update({r: self.bits(p) for r, p in zip(op.results, carried, strict=True)})

    def _carry(self, values: list[tuple[Value, Value, Value]]) -> bool:
        """A carried value, here with its start and end, may be what wrapped in the round before; whether that is new
        of any."""
        found = [p for p, *given in values if max(map(self.bits, given)) == WRAPS and self.widths.get(p) != WRAPS]
        self.widths.update(dict.fromkeys(found, WRAPS))
        if found:
            self._bits, self._seen = {}, {}
        return bool(found)

    # -- rewriting -----------------------------------------------------------------------------------------------------

    def rewritten(self, block: Block, made: dict[Func, Func]) -> Block:
        """``block`` with its indices counted from the end where they may be negative; calls go to ``made``."""
        ops: list[Op] = []
        for op in block.ops:
            if op.name == "if":
                regions = []
                for region, holds in zip(op.regions, (True, False), strict=True):
                    with self.given(op.args[0], holds):
                        regions.append(self.rewritten(region, made))
                op = with_regions(op, tuple(regions))
            elif op.regions:
                op = with_regions(op, tuple([self.rewritten(region, made) for region in op.regions]))
            if op.name == "call":
                op = with_functions(op, lambda f: made.get(f, f))
            elif op.name in ("load", "store", "atomic", "subview"):
                op = self._access(op, ops)
            ops.append(op)
        return with_ops(block, tuple(ops))

    def _access(self, op: Op, ops: list[Op]) -> Op:
        view: View = op.args[0].type
        count = len(op.args) - 1 if op.name == "subview" else view.ndim
        first = op.attrs.get("axis", 0) if op.name == "subview" else 0
        counted = [self._counted(op, i, first + k, ops) for k, i in enumerate(op.args[1 : 1 + count])]
        return with_args(op, (op.args[0], *counted, *op.args[1 + count :]))

    def _counted(self, access: Op, i: Value, axis: int, ops: list[Op]) -> Value:
        """``i``, or ``i + n`` where only that is in the array: ``i`` is negative and ``i + n`` is not. (That is no
        question of their signs alone: a large ``i + n`` overflows.)"""
        low = self.low(i)
        if (low is not None and low >= 0) or self.thread(i) is True:
            return i

        def put(name: str, args: tuple[Value, ...], t: Scalar, **attrs: object) -> Value:
            ops.append(Op(name, args, (Value(t),), attrs, (), access.span))
            return ops[-1].results[0]

        t = i.type
        n = put("shape", (access.args[0],), i32, axis=axis)
        n = n if t is i32 else put("cast", (n,), t)
        moved = put("add", (i, n), t)
        signs = put("bitand", (i, put("invert", (moved,), t)), t)
        return put("select", (put("lt", (signs, put("const", (), t, value=0)), b1), moved, i), t)


def _positive(*lows: int | None) -> bool:
    return all([x is not None and x >= 0 for x in lows])
