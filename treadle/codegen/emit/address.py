"""Addresses: a uniform start, a known step from lane to lane, and what differs by lane without a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...types.core import Scalar, i32, i64
from .scalar import Lower
from .text import PTR, vector
from .values import ViewX, X

if TYPE_CHECKING:
    from .emitter import Emitter


DEEPEST = 4  # sums within sums that are made anew


class Index(NamedTuple):
    """Pointers as ``start + numbers · stride``, with a vector of int32."""

    start: str
    numbers: str
    stride: int

    def pointers(self, e: Emitter) -> list[str]:
        """The pointer of each lane, from its own number: the ways out of vector registers are few, and numbers, which
        several arrays may have in common, take half as many as pointers."""
        kind, found, singles = vector("i32", e.width), [], e.singles.get(self.numbers)
        for lane in range(e.width):
            if singles:
                number = singles[lane]
            else:
                own = e.t.ins(f"extractelement {kind} {self.numbers}, i64 {lane}")
                number = e.t.ins(f"sext i32 {own} to i64")
            offset = e.t.ins(f"mul i64 {number}, {self.stride}")
            found.append(e.t.ins(f"getelementptr i8, ptr {self.start}, i64 {offset}"))
        return found


class Address:
    """A byte offset under construction, as the sum ``const + Σ scalars + lane·step + Σ vectors``."""

    __slots__ = ("const", "e", "products", "scalars", "step", "vectors")

    def __init__(self, e: Emitter):
        self.e = e
        self.const = 0
        self.scalars: list[str] = []
        self.step = 0  # bytes from one lane to the next
        self.vectors: list[str] = []
        self.products: list[tuple[X, int]] = []  # of some of the vectors: an int32 and what it is multiplied by

    def copy(self) -> Address:
        """The same sum, to be continued in another way."""
        other = Address(self.e)
        other.const, other.step = self.const, self.step
        other.scalars, other.vectors, other.products = list(self.scalars), list(self.vectors), list(self.products)
        return other

    # --- terms

    def add_constant(self, offset: int) -> None:
        self.const += offset

    def add_number(self, x: X) -> None:
        """Add an i64."""
        if x.const is not None:
            self.const += x.const
        elif x.step == 0:
            self.scalars.append(x.text)
        else:
            self.vectors.append(self.e.wide(x))

    def add_index(self, index: X, stride: X) -> None:
        """Add ``index · stride``. 64-bit arithmetic throughout: arrays may be larger than 32 bits count."""
        if index.const is not None and stride.const is not None:
            self.const += index.const * stride.const
        elif stride.step is None or index.step is None or (index.step and index.type.name == "u32"):
            # (A contiguous u32 whose first lanes lie below 0 would start at 2³².)
            self.vectors.append(self._lanewise(index, stride))
            if index.type is i32 and stride.const is not None:
                self.products.append((index, stride.const))
        else:
            if index.const != 0:
                self.scalars.append(self._scalar_product(self._long(index), stride))
            if index.step and stride.const is not None:
                self.step += index.step * stride.const
            elif index.step:
                self.vectors.append(self._ramp(index.step, stride))

    def _long(self, index: X, depth: int = 0) -> str:
        """An index in 64 bits. Sums are made anew there (indices fit, `passes.ends`): the part that a loop counts up
        then becomes a pointer that it moves."""
        if index.const is not None:
            return str(index.const)
        if index.type.bits == 64:
            return index.text
        if index.text in self.e.longs:
            return self.e.longs[index.text]
        if index.text in self.e.sums and depth < DEEPEST:
            name, parts = self.e.sums[index.text]
            return self.e.t.ins(f"{name} i64 {', '.join([self._long(part, depth + 1) for part in parts])}")
        return self.e.t.ins(f"{'sext' if index.type.is_signed else 'zext'} i{index.type.bits} {index.text} to i64")

    def _scalar_product(self, index: str, stride: X) -> str:
        if stride.const == 1:
            return index
        return self.e.t.ins(f"mul i64 {index}, {stride.text}")

    def _lanewise(self, index: X, stride: X) -> str:
        e = self.e
        low = Lower(e, index.type, i64, False)
        wide = low.cast(index, index.type, i64)
        if stride.const == 1:
            return e.wide(wide)
        return e.wide(low.binary("mul", wide, stride))

    def _ramp(self, step: int, stride: X) -> str:
        """Lane l's share of a contiguous index times a run-time stride, made where the stride is known."""
        e, kind = self.e, vector("i64", self.e.width)
        return e.t.into(stride.home, f"mul {kind} {e.wide(stride)}, {e.ramp('i64', step)}")

    # --- the sum

    def scalar(self) -> str:
        """``const + Σ scalars`` as an i64 operand."""
        terms = list(self.scalars)
        if self.const or not terms:
            terms.append(str(self.const))
        total = terms[0]
        for term in terms[1:]:
            total = self.e.t.ins(f"add i64 {total}, {term}")
        return total

    def start(self, data: X) -> str:
        """The pointer of lane 0, where ``data`` is uniform and no vector is in the sum."""
        if not self.scalars and not self.const:
            return data.text
        return self.e.t.ins(f"getelementptr i8, ptr {data.text}, i64 {self.scalar()}")

    def lanes(self) -> str:
        """The offsets of all lanes, as a vector of i64, without the uniform part."""
        e, kind = self.e, vector("i64", self.e.width)
        total = e.ramp("i64", self.step) if self.step or not self.vectors else None
        for v in self.vectors:
            total = v if total is None else e.t.ins(f"add {kind} {total}, {v}")
        return total

    def pointers(self, data: X) -> str:
        """The pointers of all lanes."""
        e = self.e
        many = vector("ptr", e.width)
        if data.step == 0 and data.text is not None:
            first = self.start(data)
            return e.t.ins(f"getelementptr i8, ptr {first}, {vector('i64', e.width)} {self.lanes()}")
        base = e.wide(data)
        if self.scalars or self.const:
            base = e.t.ins(f"getelementptr i8, {many} {base}, i64 {self.scalar()}")
        if self.step or self.vectors:
            base = e.t.ins(f"getelementptr i8, {many} {base}, {vector('i64', e.width)} {self.lanes()}")
        return base

    def index(self, start: str) -> Index | None:
        """The one int32 from which all pointers follow that begin at ``start``, if it is so simple."""
        if len(self.vectors) != 1 or len(self.products) != 1 or self.step:
            return None
        index, stride = self.products[0]
        return Index(start, self.e.wide(index), stride)

    def pointer(self, data: X) -> X:
        """``data`` moved by the sum: an address, or an offset in a thread's own array."""
        e = self.e
        if data.type is PTR:
            if data.text is not None and data.step == 0 and not self.step and not self.vectors:
                moved = self.start(data)
                return data if moved == data.text else e.uniform(PTR, moved)
            return X(PTR, None, self.pointers(data), None)
        total = self.copy()
        total.add_number(data)
        if total.step or total.vectors:
            kind = vector("i64", e.width)
            uniform = Lower(e, i64, i64, False).operand(X(i64, "0", const=0) if not (total.scalars or total.const) else
                                                         e.uniform(i64, total.scalar()))  # fmt: skip
            return X(i64, None, e.t.ins(f"add {kind} {total.lanes()}, {uniform}"), None)
        if not total.scalars:
            return e.fixed(i64, total.const)
        return e.uniform(i64, total.scalar())

    # --- a thread's own arrays, which a gang keeps as [element][leaf][lane]

    def local_start(self, view: ViewX) -> str:
        """The pointer of lane 0 to a leaf at a uniform offset."""
        total = self.copy()
        total.add_number(view.data)
        offset = total.scalar()
        if self.e.width > 1 and total.scalars:
            offset = self.e.t.ins(f"mul i64 {offset}, {self.e.width}")
        elif not total.scalars:
            offset = str(total.const * self.e.width)
        return self.e.t.ins(f"getelementptr i8, ptr {view.base}, i64 {offset}")

    def local_pointers(self, view: ViewX, size: int) -> str:
        """The pointers of all lanes to a leaf of ``size`` bytes."""
        e, kind = self.e, vector("i64", self.e.width)
        offsets = e.wide(self.pointer(view.data))
        scaled = e.t.ins(f"mul {kind} {offsets}, splat (i64 {e.width})")
        lanes = e.t.ins(f"add {kind} {scaled}, {e.ramp('i64', size)}")
        return e.t.ins(f"getelementptr i8, ptr {view.base}, {kind} {lanes}")

    def finish_local(self, view: ViewX) -> X:
        """The address of a thread's own array: of one of scalars, where the first one lies. The array lies in one piece
        only when a gang has one lane."""
        if self.e.width == 1:
            return X(PTR, self.local_start(view))
        elem = view.type.elem
        return X(PTR, None, self.local_pointers(view, elem.size if isinstance(elem, Scalar) else 1), None)


def offset_of(e: Emitter, view: ViewX, indices: list[X]) -> Address:
    """The offset of the element (or subview) of ``view`` at the leading ``indices``."""
    at = Address(e)
    for index, stride in zip(indices, view.strides, strict=False):
        at.add_index(index, stride)
    return at
