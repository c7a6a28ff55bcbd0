"""The emitter: one function of the IR, written as LLVM text for a gang.

A uniform value is one scalar operand, a contiguous one a scalar start, a varying one a vector (see :mod:`values`). The
*current mask* is the set of lanes that run the code being written: ``mask`` None means all lanes of the gang. Blends
are selects; the mask itself appears only at memory accesses, any-tests, loop latches and calls. ``some`` tells whether
the mask surely has a lane. With width 1 everything is uniform, nothing diverges, and the same code writes an ordinary
scalar function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.node import Block, Op, Value
from ...passes.lanes import Lanes
from ...types.core import STR, Scalar, View, b1, i32
from . import atomics, calls, control, faults, memory, tape, views
from .alike import ALIKE
from .scalar import Lower, cast, lowering
from .text import MASK, Text, constant, register, vector
from .values import ViewX, X
from .wide import indices

if TYPE_CHECKING:
    from .held import Kept
    from .leaving import Leaving
    from .unit import Unit


class Emitter:
    """State while one function is written: its text, its values, the current mask and the gang's place in the grid."""

    def __init__(self, unit: Unit, lanes: Lanes, text: Text):
        self.unit, self.lanes, self.t = unit, lanes, text
        self.width = unit.width
        self.env: dict[Value, X | ViewX] = {}
        self.mask: str | None = None
        self.some = True
        self.valid: dict[Value, str | None] = {}  # results of a leaving arm: the lanes that hold them
        self.exits: list[control.Exit] = []  # loops around the current place, innermost last
        self.known_true: set[str] = set()  # uniform conditions that hold wherever the current place is reached
        self.place: dict[str, str] = {}  # registers: launch, thread, axis numbers, stop …
        self.axes: list[X] = []
        self.longs: dict[str, str] = {}  # 32-bit operands whose 64-bit form is known
        self.sums: dict[str, tuple[str, list[X]]] = {}  # how uniform int32 operands are made: op and operands
        self.cuts: dict[str, list[str]] = {}  # masks of which the parts are known
        self.packed: dict[str, str] = {}  # masks of which the travelling form is known
        self.after_parameters: list = []  # lines behind the parameters' loads
        self.entry: list = []  # lines at the top of the function: allocas, pointers of the launch record
        self.abort_label: str | None = None
        self.full: dict[str, str] = {}  # by a gang's own mask: the condition that it has every lane
        self.entries: dict[tuple[str, int], list[X | ViewX]] = {}  # by site of the tape: what was put there first
        self.leaving: Leaving | None = None  # in full gangs that leave what is unusual to gangs of one
        self.singles: dict[str, list[str]] = {}  # by vector of int32: the same numbers, one by one, in 64 bits
        self.kept: dict[int, Kept] = {}  # by number of a held update: what is known of it
        self.born: dict[str, str | None] = {}  # by a thread's own array: the mask under which it was made
        self._launch: dict[tuple[int, str], str] = {}
        self._dummy: tuple[str, int] | None = None
        self._dummy_line: list = []
        self._spread: str | None = None

    # --- values

    def get(self, value: Value) -> X | ViewX:
        return self.env[value]

    def number(self, value: Value) -> X:
        x = self.env[value]
        assert isinstance(x, X)
        return x

    def uniform(self, t: Scalar, text: str, step: int = 0) -> X:
        """A scalar operand just written; a vector of it can be made here later."""
        x = X(t, text, None, step)
        if self.width > 1:
            x.home = self.t.slot()
        return x

    def fixed(self, t: Scalar, value: bool | int | float) -> X:
        return X(t, constant(value, t), const=value)

    def settle(self, value: Value, x: X) -> None:
        """Bind the result of scalar or vector code to ``value``."""
        step = self.lanes.steps[value]
        if x.text is not None and x.const is None and x.home is None:
            x.step = step if isinstance(step, int) else 0
            if self.width > 1:
                x.home = self.t.slot()
        self.env[value] = x

    def wide(self, x: X) -> str:
        """The vector operand of ``x``, made where ``x`` itself was made."""
        if x.wide is None:
            if x.split is not None:
                x.wide = self._unsplit(x)
            elif x.const is not None or x.home is None:
                x.wide = f"splat ({register(x.type)} {x.text})"
            else:
                x.wide = self.spread(x.home, register(x.type), x.text, x.step)
        return x.wide

    def spread(self, slot: list, kind: str, text: str, step: int | None) -> str:
        """``text + step·lane`` in every lane."""
        lanes = vector(kind, self.width)
        one = self.t.into(slot, f"insertelement {lanes} poison, {kind} {text}, i64 0")
        all_ = self.t.into(slot, f"shufflevector {lanes} {one}, {lanes} poison, <{self.width} x i32> zeroinitializer")
        if not step:
            return all_
        return self.t.into(slot, f"add {lanes} {all_}, {self.ramp(kind, step)}")

    def ramp(self, kind: str, step: int) -> str:
        """The constant vector 0, step, 2·step, …"""
        return f"<{', '.join(f'{kind} {step * i}' for i in range(self.width))}>"

    def _unsplit(self, x: X) -> str:
        u, v = x.split
        kind = vector("i1", self.width)
        return self.t.into(x.home, f"select i1 {u.text}, {kind} {self.wide(v)}, {kind} zeroinitializer")

    def zero(self, value: Value) -> X | ViewX:
        """Something harmless of the type of ``value``, for lanes and paths that do not look at it."""
        if isinstance(value.type, View):
            return views.nothing(self, value.type)
        assert isinstance(value.type, Scalar)
        return self.fixed(value.type, 0)

    # --- the function's surroundings

    def launch_field(self, offset: int) -> str:
        """A pointer in the launch record, read once at the top of the function."""
        return self._read_launch(offset, "ptr")

    def launch_word(self, offset: int) -> str:
        """An i64 in the launch record, read once at the top of the function."""
        return self._read_launch(offset, "i64")

    def _read_launch(self, offset: int, kind: str) -> str:
        found = self._launch.get((offset, kind))
        if found is None:
            at = self.t.into(self.entry, f"getelementptr i8, ptr {self.place['launch']}, i64 {offset}")
            found = self._launch[offset, kind] = self.t.into(
                self.entry, f"load {kind}, ptr {at}, align 8, !invariant.load !0"
            )
        return found

    def private(self, item: int) -> str:
        """The pointer to private memory ``item`` of this chunk, read once at the top of the function."""
        key = f"item{item}"
        if key not in self.place:
            at = self.t.into(self.after_parameters, f"getelementptr i8, ptr {self.place['priv']}, i64 {8 * item}")
            self.place[key] = self.t.into(self.after_parameters, f"load ptr, ptr {at}, align 8")
        return self.place[key]

    def abort(self) -> str:
        """The block that ends the function early."""
        if self.abort_label is None:
            self.abort_label = self.t.label("abort")
        return self.abort_label

    def dummy(self, size: int) -> str:
        """Memory of at least ``size`` bytes for lanes that do not run."""
        if self._dummy is None:
            self._dummy = self.t.name(), 0
            self._dummy_line = []
            self.entry.append(self._dummy_line)
        name, largest = self._dummy
        if size > largest:
            self._dummy = name, size
            self._dummy_line[:] = [f"  {name} = alloca [{size} x i8], align 64"]
        return name

    def spread_dummy(self, name: str) -> str:
        """The dummy's pointer in every lane."""
        if self._spread is None:
            self._spread = self.spread(self.entry, "ptr", name, 0)
        return self._spread

    # --- masks

    @property
    def bits(self) -> str:
        """The LLVM type of masks."""
        return vector("i1", self.width)

    def mask_text(self) -> str:
        return "splat (i1 true)" if self.mask is None else self.mask

    def both(self, mask: str | None, condition: str) -> str:
        """The lanes of ``mask`` in which ``condition`` holds."""
        if mask is None:
            return condition
        if self.cuts_masks:
            kind, pairs = vector("i1", self.unit.target.lanes), zip(self.cut(mask), self.cut(condition), strict=True)
            return self.joined([self.t.ins(f"and {kind} {a}, {b}") for a, b in pairs])
        if self.unit.target.mask_registers:
            return self.t.ins(f"and {self.bits} {mask}, {condition}")
        return self.unpack(self.t.ins(f"and {self.carried_bits} {self.pack(mask)}, {self.pack(condition)}"))

    def without(self, mask: str | None, condition: str) -> str:
        """The lanes of ``mask`` in which ``condition`` does not hold."""
        return self.both(mask, self.t.ins(f"xor {self.bits} {condition}, splat (i1 true)"))

    @property
    def carried_bits(self) -> str:
        """The type in which masks travel from block to block. Where the processor keeps masks in vector registers, LLVM
        would pack an ``i1`` vector into 16-bit lanes at the end of a block and unpack it in the next."""
        return self.bits if self.unit.target.mask_registers else vector("i32", self.width)

    def pack(self, mask: str | None) -> str:
        """``mask`` in the form in which it travels."""
        if mask is None:
            return "splat (i1 true)" if self.unit.target.mask_registers else "splat (i32 -1)"
        if self.unit.target.mask_registers:
            return mask
        packed = self.packed.get(mask)
        return self.t.ins(f"sext {self.bits} {mask} to {self.carried_bits}") if packed is None else packed

    def unpack(self, packed: str) -> str:
        """The mask that travelled as ``packed``."""
        if self.unit.target.mask_registers:
            return packed
        mask = self.t.ins(f"icmp slt {self.carried_bits} {packed}, zeroinitializer")
        self.packed[mask] = packed
        return mask

    def sealed(self, value: Value, thing: X | ViewX) -> X | ViewX:
        """``thing`` in the form in which it goes, as ``value``, to another block: varying truth values travel as masks
        do. To be called in the block it comes from."""
        if not self.seals(value):
            return thing
        assert isinstance(thing, X)
        if thing.const is not None:
            return X(MASK, "-1" if thing.const else "0", const=-1 if thing.const else 0)
        return X(MASK, None, self.pack(self.wide(thing)), None)

    def seals(self, value: Value) -> bool:
        """Whether ``value`` is a varying truth value and the processor has no registers for those."""
        return value.type is b1 and self.lanes.steps[value] is None and not self.unit.target.mask_registers

    def unsealed(self, thing: X | ViewX) -> X | ViewX:
        """What has arrived."""
        if isinstance(thing, X) and thing.type is MASK:
            return X(b1, None, self.unpack(self.wide(thing)), None)
        return thing

    @property
    def cuts_masks(self) -> bool:
        """Whether a gang has several mask registers. LLVM would put a mask of theirs together in one, which takes more
        instructions than all that is done with masks, so those that a loop carries go there in parts."""
        target = self.unit.target
        return target.mask_registers and 0 < target.lanes < self.width

    def cut(self, mask: str) -> list[str]:
        """``mask`` by registers."""
        found = self.cuts.get(mask)
        return self._cut("i1", mask) if found is None else found

    def _cut(self, kind: str, name: str) -> list[str]:
        lanes, many = self.unit.target.lanes, vector(kind, self.width)
        picks = [indices(range(first, first + lanes)) for first in range(0, self.width, lanes)]
        return [self.t.ins(f"shufflevector {many} {name}, {many} poison, {p}") for p in picks]

    def joined(self, parts: list[str], scalar: str = "i1") -> str:
        """What :meth:`cut` cut."""
        size, found = self.unit.target.lanes, parts
        while len(found) > 1:
            kind, picks = vector(scalar, size), indices(range(2 * size))
            found = [
                self.t.ins(f"shufflevector {kind} {a}, {kind} {b}, {picks}")
                for a, b in zip(found[::2], found[1::2], strict=True)
            ]
            size *= 2
        if scalar == "i1":
            self.cuts[found[0]] = parts
        return found[0]

    def any(self, mask: str) -> str:
        """Whether ``mask`` has a lane."""
        count, packed = self.width, self.packed.get(mask)
        if packed is not None and count > self.unit.target.lanes > 0:
            while count > self.unit.target.lanes:  # one register of masks, then one test
                half, kind = count // 2, vector("i32", count)
                low = self.t.ins(f"shufflevector {kind} {packed}, {kind} poison, {indices(range(half))}")
                high = self.t.ins(f"shufflevector {kind} {packed}, {kind} poison, {indices(range(half, count))}")
                packed = self.t.ins(f"or {vector('i32', half)} {low}, {high}")
                count = half
            mask = self.t.ins(f"icmp slt {vector('i32', count)} {packed}, zeroinitializer")
        elif self.cuts_masks:
            parts, count = self.cut(mask), self.unit.target.lanes
            mask = parts[0]
            for part in parts[1:]:
                mask = self.t.ins(f"or {vector('i1', count)} {mask}, {part}")
        whole = self.t.ins(f"bitcast {vector('i1', count)} {mask} to i{count}")
        return self.t.ins(f"icmp ne i{count} {whole}, 0")

    def blend(self, condition: str, a: X, b: X) -> X:
        """``a`` where ``condition`` holds, else ``b``."""
        if a.type is b1 and not self.unit.target.mask_registers:
            kind, x, y = self.carried_bits, self.pack(self.wide(a)), self.pack(self.wide(b))
            return X(b1, None, self.unpack(self.t.ins(f"select {self.bits} {condition}, {kind} {x}, {kind} {y}")), None)
        scalar = register(a.type)
        kind, x, y = vector(scalar, self.width), self.wide(a), self.wide(b)
        if condition in self.cuts and a.type is not b1:
            bits, some = (vector(t, self.unit.target.lanes) for t in ("i1", scalar))
            each = zip(self.cuts[condition], self._cut(scalar, x), self._cut(scalar, y), strict=True)
            parts = [self.t.ins(f"select {bits} {c}, {some} {p}, {some} {q}") for c, p, q in each]
            return X(a.type, None, self.joined(parts, scalar), None)
        return X(a.type, None, self.t.ins(f"select {self.bits} {condition}, {kind} {x}, {kind} {y}"), None)

    # --- ops

    def block(self, block: Block) -> None:
        """Write the ops of ``block`` one after the other."""
        handlers = self.unit.target.handlers or HANDLERS
        for op in block.ops:
            handler = handlers.get(op.name)
            if handler is None:
                primitive(self, op)
            else:
                handler(self, op)


def primitive(e: Emitter, op: Op) -> None:
    """An op of the builtins registry."""
    result = op.results[0]
    scalar = e.lanes.steps[result] is not None
    xs = [e.number(a) for a in op.args]
    if not scalar and op.name == "bitand" and result.type is b1 and control.split(e, result, *xs):
        return
    low = Lower(e, op.args[0].type, result.type, scalar)
    x = lowering(op.name)(low, *xs)
    if not scalar and op.name in ALIKE:
        x.made = op.name, xs
    elif scalar and op.name in ("add", "sub", "mul") and result.type is i32 and x.step == 0 and x.const is None:
        e.sums[x.text] = op.name, xs
    e.settle(result, x)


def _const(e: Emitter, op: Op) -> None:
    if isinstance(op.results[0].type, Scalar):  # text stays where it is printed
        e.env[op.results[0]] = e.fixed(op.results[0].type, op.attrs["value"])


def _poison(e: Emitter, op: Op) -> None:
    e.env[op.results[0]] = e.zero(op.results[0])


def _cast(e: Emitter, op: Op) -> None:
    result = op.results[0]
    e.settle(result, cast(e, e.number(op.args[0]), result.type, e.lanes.steps[result] is not None))


def _bitcast(e: Emitter, op: Op) -> None:
    result, x = op.results[0], e.number(op.args[0])
    e.settle(result, Lower(e, x.type, result.type, e.lanes.steps[result] is not None).bitcast(x, result.type))


def _select(e: Emitter, op: Op) -> None:
    result = op.results[0]
    if e.leaving is not None and e.leaving.counts(e, op):
        return
    if result.type is STR:  # "True" or "False", to be printed
        e.env[result] = e.number(op.args[0])
        return
    c, a, b = (e.get(x) for x in op.args)
    assert isinstance(c, X)
    if a is b:
        e.env[result] = a
        return
    if isinstance(a, ViewX):
        assert isinstance(b, ViewX)
        e.env[result] = views.choose(e, c, a, b)
        return
    assert isinstance(b, X)
    step = e.lanes.steps[result]
    if step is None and result.type is b1 and b.const is False and control.split(e, result, c, a):
        return
    if step is None and c.step == 0 and c.wide is None:  # one choice for the whole gang
        kind = vector(register(a.type), e.width)
        e.env[result] = X(a.type, None, e.t.ins(f"select i1 {c.text}, {kind} {e.wide(a)}, {kind} {e.wide(b)}"), None)
        return
    e.settle(result, Lower(e, a.type, a.type, step is not None).select(c, a, b))


def _tid(e: Emitter, op: Op) -> None:
    axis = op.attrs["axis"]
    e.env[op.results[0]] = e.axes[axis] if axis < len(e.axes) else e.fixed(op.results[0].type, 0)


def _lanes_any(e: Emitter, op: Op) -> None:
    c = e.number(op.args[0])
    if e.width == 1:
        e.env[op.results[0]] = c
    elif c.step == 0 and c.text is not None and e.some:
        e.env[op.results[0]] = c
    else:
        e.env[op.results[0]] = e.uniform(b1, e.any(e.both(e.mask, e.wide(c))))


HANDLERS = {
    "const": _const, "poison": _poison, "cast": _cast, "bitcast": _bitcast, "select": _select, "tid": _tid,
    "lanes_any": _lanes_any, **control.HANDLERS, **memory.HANDLERS, **views.HANDLERS, **atomics.HANDLERS,
    **faults.HANDLERS, **calls.HANDLERS, **tape.HANDLERS,
}  # fmt: skip
