"""Loads, stores and a thread's own arrays.

The shape of an access decides its code. All lanes at one address: a scalar access. Lane after lane without gaps: one
wide access. Lane after lane with a known step, elements of several scalars or parts of such: wide accesses to the whole
window and shuffles (eight times faster than gathers). Everything else: gathers and scatters, by hardware where it is
good at it, else lane by lane; lanes that do not run then access a dummy, which costs less than a branch each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ...ir.node import Op
from ...types.core import Fixed, Scalar, View, i64
from ...types.layout import leaves
from . import faults, races, views
from .address import Address, offset_of
from .alike import Part, together
from .lanewise import Item, Pointers, gather, last_lane, scatter
from .scalar import from_memory, to_memory
from .text import PTR, memory, vector
from .values import ViewX, X
from .wide import indices, interleaved, stretched, where_full, wide_load, wide_store

if TYPE_CHECKING:
    from .emitter import Emitter

# The widest element, in scalars, that is accessed as a window: shuffles across many registers cost more than rows (see
# ``lanewise``). Shuffles of two registers by an index vector, which come with mask registers, reach further.
WINDOW, WINDOW_WIDE = 3, 4


class Window(NamedTuple):
    """What lies in one piece: ``each`` scalars a lane, of the last one ``reach``; ``before`` of them before the first
    item."""

    each: int
    reach: int
    before: int = 0


def items_of(t: View) -> list[Item]:
    """The scalars of an element of ``t``; a view inside the element counts as its numbers."""
    found: list[Item] = []
    for k, leaf in enumerate(leaves(t.elem)):
        if isinstance(leaf.type, View):
            found.extend(Item(leaf.offset + at, kind) for at, kind in views.view_leaves(leaf.type))
        else:
            assert isinstance(leaf.type, Scalar)
            found.append(Item(0, leaf.type, k) if t.planar else Item(leaf.offset, leaf.type))
    return found


# --- the shapes ----------------------------------------------------------------------------------------------------


class Access:
    """An element of a view at some indices, all its items at once."""

    def __init__(self, e: Emitter, view: ViewX, at: Address, items: list[Item]):
        self.e, self.view, self.at, self.items = e, view, at, items
        self.kind = view.type
        single = view.data.step == 0 and view.data.text is not None and not at.vectors
        if view.base is not None:
            single = single and at.step == 0
            self.shape = "own" if single and e.width > 1 else "own lanes" if e.width > 1 else "own scalar"
        elif single and at.step == 0:
            self.shape = "uniform"
        elif single and all(at.step == item.size for item in items):
            self.shape = "wide"
        elif single and self.window() is not None:
            self.shape = "window"
        else:
            self.shape = "lanes"

    def window(self) -> Window | None:
        """Where the items lie, if that is a window worth reading whole."""
        registers = self.e.unit.target.mask_registers
        size, widest = self.items[0].size, WINDOW_WIDE if registers else WINDOW
        step, low = self.at.step, self.items[0].offset
        if self.kind.planar or step <= 0 or step % size or step // size > widest:
            return None
        if any(i.size != size or (i.offset - low) % size or i.offset < low for i in self.items) or any(
            i.type is PTR for i in self.items
        ):
            return None
        last = max(i.offset for i in self.items) - low
        if last >= step:
            return None
        # A part of elements that follow each other is read with what surrounds it, as the elements were written, and
        # stores leave the rest out by a mask. Gathers from what was just stored would wait for the stores.
        outer, whole = self.view.inside or (0, self.kind.elem.size)
        if registers and whole == step and (outer + low) % size == 0:
            return Window(step // size, step // size, (outer + low) // size)
        return Window(step // size, last // size + 1) if 2 * len(self.items) * size >= step else None

    def item_address(self, item: Item) -> Address:
        at = self.at.copy()
        at.add_constant(item.offset)
        if item.plane:
            at.add_number(views.product(self.e, self.view.component, self.e.fixed(i64, item.plane)))
        return at

    # --- loads

    def load(self) -> list[X]:
        """The items, one number each."""
        return _LOADS[self.shape](self)

    def load_uniform(self) -> list[X]:
        e = self.e
        out = []
        for item in self.items:
            pointer = self.item_address(item).start(self.view.data)
            if not e.some and e.mask is not None:
                pointer = e.t.ins(f"select i1 {e.any(e.mask)}, ptr {pointer}, ptr {e.dummy(item.size)}")
            out.append(self.load_scalar(pointer, item))
        return out

    def load_scalar(self, pointer: str, item: Item) -> X:
        e = self.e
        name = e.t.ins(f"load {memory(item.type)}, ptr {pointer}, align {item.size}")
        x = from_memory(e, name, item.type, True)
        if e.width > 1:
            x.home = e.t.slot()
        return x

    def load_own_scalar(self) -> list[X]:
        return [self.load_scalar(self.item_address(item).local_start(self.view), item) for item in self.items]

    def load_wide(self) -> list[X]:
        out = []
        for item in self.items:
            pointer = self.item_address(item).start(self.view.data)
            name = wide_load(self.e, memory(item.type), self.e.width, pointer, self.e.mask, item.size)
            out.append(from_memory(self.e, name, item.type, False))
        return out

    def load_window(self) -> list[X]:
        e, w = self.e, self.e.width
        per_lane, reach, before = self.window()
        size = self.items[0].size
        total = (w - 1) * per_lane + reach
        pointer = self.window_start(before)
        kind = memory(self.items[0].type)
        mask = None if e.mask is None else stretched(e, e.mask, per_lane, total)
        whole = wide_load(e, kind, total, pointer, mask, size)
        many = vector(kind, total)
        out = []
        for item in self.items:
            first = before + (item.offset - self.items[0].offset) // size
            picks = indices(first + per_lane * lane for lane in range(w))
            name = e.t.ins(f"shufflevector {many} {whole}, {many} poison, {picks}")
            own = memory(item.type)
            if own != kind:
                name = e.t.ins(f"bitcast {vector(kind, w)} {name} to {vector(own, w)}")
            x = from_memory(e, name, item.type, False)
            if own == kind and per_lane == reach:
                x.made = Part(whole, first, per_lane)
            out.append(x)
        return out

    def window_start(self, before: int) -> str:
        """The pointer to the first scalar of a window."""
        first = self.items[0]
        return self.item_address(first._replace(offset=first.offset - before * first.size)).start(self.view.data)

    def load_lanes(self) -> list[X]:
        e = self.e
        if self.kind.planar:
            each = [self.pointers(self.item_address(item)) for item in self.items]
            return [x for p, item in zip(each, self.items, strict=True) for x in gather(e, p, [Item(0, item.type)])]
        return gather(e, self.pointers(self.at), self.items)

    def pointers(self, at: Address) -> Pointers:
        """Where the lanes point."""
        data = self.view.data
        if data.step != 0 or data.text is None:
            return Pointers(self.e, at.pointers(data))
        start = at.start(data)
        if not at.vectors:
            return Pointers(self.e, None, start, at.step)
        return Pointers(self.e, None, start, index=at.index(start), offsets=at.lanes())

    def load_own(self) -> list[X]:
        """A vector as it lies; lanes that do not run read their own memory, which harms nobody."""
        out = []
        for item in self.items:
            pointer = self.item_address(item).local_start(self.view)
            name = wide_load(self.e, memory(item.type), self.e.width, pointer, None, min(64, self.e.width * item.size))
            out.append(from_memory(self.e, name, item.type, False))
        return out

    def load_own_lanes(self) -> list[X]:
        found = {}
        for pointers, group in self.own_groups():
            found.update(zip(group.values(), gather(self.e, pointers, [*group]), strict=True))
        return [found[k] for k in range(len(self.items))]

    def own_groups(self) -> Iterator[tuple[Pointers, dict[Item, int]]]:
        """Pointers of the lanes into a thread's own array, and the items that lie at a fixed distance from where these
        point, with their numbers: those of one size, as a leaf's lanes lie side by side."""
        for size in dict.fromkeys([item.size for item in self.items]):
            group = {
                Item(item.offset * self.e.width, item.type): k for k, item in enumerate(self.items) if item.size == size
            }
            yield Pointers(self.e, self.at.local_pointers(self.view, size)), group

    # --- stores

    def store(self, xs: list[X]) -> None:
        """Write one number an item."""
        e = self.e
        if self.shape == "window" and self.window() != (len(self.items), len(self.items), 0):
            # A wide store would overwrite what lies between.
            self.shape = "part" if e.unit.target.mask_registers else "lanes"
        if self.shape in ("wide", "window") and e.mask is not None and not e.unit.target.mask_registers:
            for x in xs:
                e.wide(x)  # before the branch
            partial = (
                Access.store_lanes if e.unit.target.slow_masked_stores and e.mask not in e.full else _STORES[self.shape]
            )
            where_full(e, lambda: _STORES[self.shape](self, xs), lambda: partial(self, xs))
        else:
            _STORES[self.shape](self, xs)

    def store_uniform(self, xs: list[X]) -> None:
        """All lanes at one address: the last one that runs has the last word."""
        e = self.e
        end = None
        if not e.some and e.mask is not None:
            go, end = e.t.label("store"), e.t.label("stored")
            e.t.branch(e.any(e.mask), go, end)
            before = e.t.known
            e.t.start(go, before)
        lane = None
        for item, x in zip(self.items, xs, strict=True):
            pointer = self.item_address(item).start(self.view.data)
            kind = memory(item.type)
            if x.step == 0 and x.text is not None:
                value = to_memory(e, x, True)
            else:
                lane = lane or last_lane(e)
                value = e.t.ins(f"extractelement {vector(kind, e.width)} {to_memory(e, x, False)}, i64 {lane}")
            e.t.do(f"store {kind} {value}, ptr {pointer}, align {item.size}")
        if end is not None:
            e.t.jump(end)
            e.t.start(end, before)

    def store_own_scalar(self, xs: list[X]) -> None:
        for item, x in zip(self.items, xs, strict=True):
            pointer = self.item_address(item).local_start(self.view)
            self.e.t.do(f"store {memory(item.type)} {to_memory(self.e, x, True)}, ptr {pointer}, align {item.size}")

    def store_wide(self, xs: list[X]) -> None:
        e = self.e
        for item, x in zip(self.items, xs, strict=True):
            pointer = self.item_address(item).start(self.view.data)
            wide_store(e, memory(item.type), e.width, to_memory(e, x, False), pointer, e.mask, item.size)

    def store_window(self, xs: list[X]) -> None:
        e, w, n = self.e, self.e.width, len(self.items)
        kind = memory(self.items[0].type)
        order = sorted(range(n), key=lambda k: self.items[k].offset)
        alike = all(item.type is self.items[0].type for item in self.items)
        value = together(e, [xs[k] for k in order]) if alike else None
        if value is None:
            columns = []
            for k in order:
                text, own = to_memory(e, xs[k], False), memory(self.items[k].type)
                same = own == kind
                columns.append(text if same else e.t.ins(f"bitcast {vector(own, w)} {text} to {vector(kind, w)}"))
            value = interleaved(e, kind, columns)
        pointer = self.item_address(self.items[order[0]]).start(self.view.data)
        mask = None if e.mask is None else stretched(e, e.mask, n, n * w)
        wide_store(e, kind, n * w, value, pointer, mask, self.items[0].size)

    def store_part(self, xs: list[X]) -> None:
        """A window of which some scalars stay as they are."""
        e, w = self.e, self.e.width
        per_lane, reach, before = self.window()
        kind, first = memory(self.items[0].type), self.items[0]
        total = (w - 1) * per_lane + reach
        columns: dict[int, str] = {}
        for item, x in zip(self.items, xs, strict=True):
            text, own = to_memory(e, x, False), memory(item.type)
            same = own == kind
            at = before + (item.offset - first.offset) // first.size
            columns[at] = text if same else e.t.ins(f"bitcast {vector(own, w)} {text} to {vector(kind, w)}")
        some = next(iter(columns.values()))
        value = interleaved(e, kind, [columns.get(k, some) for k in range(per_lane)])
        if total < w * per_lane:
            many = vector(kind, w * per_lane)
            value = e.t.ins(f"shufflevector {many} {value}, {many} poison, {indices(range(total))}")
        bits = vector("i1", total)
        mask = f"<{', '.join(['i1 true' if k % per_lane in columns else 'i1 false' for k in range(total)])}>"
        if e.mask is not None:
            mask = e.t.ins(f"and {bits} {stretched(e, e.mask, per_lane, total)}, {mask}")
        wide_store(e, kind, total, value, self.window_start(before), mask, first.size)

    def store_lanes(self, xs: list[X]) -> None:
        e = self.e
        if self.kind.planar:
            for item, x in zip(self.items, xs, strict=True):
                scatter(e, self.pointers(self.item_address(item)), [Item(0, item.type)], [x])
        else:
            scatter(e, self.pointers(self.at), self.items, xs)

    def store_own(self, xs: list[X]) -> None:
        e = self.e
        for item, x in zip(self.items, xs, strict=True):
            pointer, kind = self.item_address(item).local_start(self.view), vector(memory(item.type), e.width)
            align = min(64, e.width * item.size)
            value = to_memory(e, x, False)
            if e.mask is not None and e.mask != e.born.get(
                self.view.base, ""
            ):  # else no lane outside the mask has the array
                # Where masked stores are slow, LLVM must not make one of this; a volatile load keeps it from that.
                how = "load volatile" if e.unit.target.slow_masked_stores else "load"
                old = e.t.ins(f"{how} {kind}, ptr {pointer}, align {align}")
                value = e.t.ins(f"select {e.bits} {e.mask}, {kind} {value}, {kind} {old}")
            e.t.do(f"store {kind} {value}, ptr {pointer}, align {align}")

    def store_own_lanes(self, xs: list[X]) -> None:
        for pointers, group in self.own_groups():
            scatter(self.e, pointers, [*group], [xs[k] for k in group.values()])


_LOADS = {
    "uniform": Access.load_uniform, "wide": Access.load_wide, "window": Access.load_window, "lanes": Access.load_lanes,
    "own": Access.load_own, "own lanes": Access.load_own_lanes, "own scalar": Access.load_own_scalar,
}  # fmt: skip
_STORES = {
    "uniform": Access.store_uniform, "wide": Access.store_wide, "window": Access.store_window,
    "part": Access.store_part, "lanes": Access.store_lanes, "own": Access.store_own,
    "own lanes": Access.store_own_lanes, "own scalar": Access.store_own_scalar,
}  # fmt: skip


# --- ops -----------------------------------------------------------------------------------------------------------


def access(e: Emitter, op: Op) -> tuple[Access, ViewX]:
    """The element that ``load``, ``store`` or ``atomic`` names, its indices checked where that is asked for."""
    view = e.get(op.args[0])
    assert isinstance(view, ViewX)
    indices = [e.number(a) for a in op.args[1 : 1 + view.type.ndim]]
    if e.unit.options.checked:
        faults.bounds(e, op, view, indices)
    element = Access(e, view, offset_of(e, view, indices), items_of(view.type))
    if e.unit.options.races and view.base is None:  # a thread's own arrays are nobody else's
        races.watch(e, op, element, indices)
    return element, view


def _load(e: Emitter, op: Op) -> None:
    element, view = access(e, op)
    whole = element.shape == "wide" and len(element.items) == 1
    if whole and e.leaving is not None and op.results[0] in e.leaving.indices:
        e.settle(op.results[0], e.leaving.load(e, element))
        return
    xs = iter(element.load())
    for r, leaf in zip(op.results, leaves(view.type.elem), strict=True):
        if isinstance(leaf.type, View):
            numbers = [next(xs) for _ in views.view_leaves(leaf.type)]
            e.env[r] = views.from_numbers(e, leaf.type, numbers, f"{view.path}.{'.'.join(map(str, leaf.path))}")
        else:
            e.settle(r, next(xs))


def _store(e: Emitter, op: Op) -> None:
    element, view = access(e, op)
    xs: list[X] = []
    for a in op.args[1 + view.type.ndim :]:
        thing = e.get(a)
        xs.extend(thing.parts() if isinstance(thing, ViewX) else [thing])
    element.store(xs)


def local(e: Emitter, op: Op, clear: Callable[[Emitter, str, int], None] | None = None) -> None:
    """A thread's own array, zeroed each time control comes by unless it is ``blank``. ``clear`` writes how bytes at an
    address are, where the machine has a better way than LLVM's."""
    size = max(op.attrs["type"].size * e.width, 1)
    base = e.t.name()
    e.born[base] = e.mask
    e.entry.append(f"  {base} = alloca [{size} x i8], align 64")
    if not op.attrs.get("blank"):
        (clear or _zeroed)(e, base, size)
    own_array(e, op, base)


def _zeroed(e: Emitter, base: str, size: int) -> None:
    e.t.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    e.t.do(f"call void @llvm.memset.p0.i64(ptr align 64 {base}, i8 0, i64 {size}, i1 false)")


def own_array(e: Emitter, op: Op, base: str) -> None:
    """The array that a ``local`` op makes lies at ``base``."""
    fixed, t = op.attrs["type"], op.results[0].type
    assert isinstance(fixed, Fixed) and isinstance(t, View)
    zero = e.fixed(i64, 0)
    strides = [e.fixed(i64, s if s is not None else 0) for s in _dense(fixed)]
    shape = [e.fixed(i64, n) for n in fixed.shape]
    e.env[op.results[0]] = ViewX(t, zero, X(PTR, "null", const=0), shape, strides, zero, base)


def _dense(fixed: Fixed) -> list[int]:
    """Row-major byte strides."""
    strides, step = [], fixed.elem.size
    for n in reversed(fixed.shape):
        strides.insert(0, step)
        step *= n
    return strides


HANDLERS = {"load": _load, "store": _store, "local": local}
