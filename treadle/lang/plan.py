"""What a tape must know of the launches of one kernel overload: which arrays it reads and writes, and how far.

A :class:`Plan` is made from the facts that the compiler left in ``Binary.meta["touched"]`` (``ir/reach.py``), once for
an overload; launches ask it with their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from ..runtime.array import array
from ..runtime.fast import packs
from ..runtime.indexed import indexedarray
from ..types.core import Matrix, Struct, Type, View
from ..types.layout import has_floats, is_composite, leaves, pack
from .held import held_by, holds_arrays
from .parts import Box, Part, joined, part

if TYPE_CHECKING:
    from .compile import Overload
    from .kernel import Kernel

ORDERLESS = frozenset({"add", "sub"})  # atomic operations whose adjoint asks for no value
INT32 = range(-(2**31), 2**31)

MOST = 10_000  # answers that a plan remembers


class Site:
    """One array of a kernel: parameter ``k`` or, by ``fields``, an array in it; and what launches do to it.

    ``needs``: its adjoint may look at the content from before the launch; ``keeps``: at that from after it, or writes
    it again. ``writes``: it is written at all; ``sure``: all that ``boxes`` holds is written; ``asks``: where depends
    on an argument; ``own``: the grid axes of its dimensions, if writes go to the thread's own element.
    """

    __slots__ = ("added", "asks", "boxes", "covers", "fields", "floats", "k", "keeps", "loads", "name", "needs",
                 "offset", "own", "path", "read_boxes", "sure", "type", "writes")  # fmt: skip

    def __init__(self, k: int, path: tuple[int, ...], name: str, t: View, offset: int, root: Type, fact: dict[str, Any],
                 unknown: str):  # fmt: skip
        self.k, self.path, self.name, self.type, self.offset = k, path, name, t, offset
        self.fields = []
        for i in path:
            field, root = root.fields[i]
            self.fields.append(field)
        self.added = added = {*fact.get("added", ())}
        changed = unknown == "written"
        self.loads = fact.get("loads", False) or bool(unknown)
        self.writes = fact.get("stores", False) or bool(added) or changed
        self.needs = self.loads or bool(added - ORDERLESS)
        self.keeps = self.needs and self.writes
        self.sure, self.covers = fact.get("sure", False) and not changed, fact.get("covers")
        everywhere = [[None] * t.ndim]
        self.boxes = everywhere if changed else fact.get("writes", [])
        reads = everywhere if unknown or added else fact.get("reads", [])
        # Worth the work only where an argument decides, as in traj[t, i].
        self.read_boxes = reads if reads and all(any(b and _asks(b) for b in box) for box in reads) else None
        self.asks = bool(self.boxes) and all(any(b and _asks(b) for b in box) for box in self.boxes)
        self.own = self._own()
        self.floats = has_floats(t.elem)

    def _own(self) -> list[int] | None:
        """The grid axes of its dimensions, if that is where all writes go."""
        axes = []
        for bounds in self.boxes[0] if len(self.boxes) == 1 else ():
            if not bounds or bounds[0] != [0, []] or bounds[1][0] != -1 or len(bounds[1][1]) != 1:
                return None
            ((kind, axis, factor),) = bounds[1][1]
            if kind != "dim" or factor != 1:
                return None
            axes.append(axis)
        return axes or None

    def covered(self, a: array, dims: tuple[int, ...]) -> bool:
        """Whether a launch over ``dims`` stores to every element of its array ``a``, so that its adjoint uses up all of
        the gradient."""
        axes = self.covers
        return axes is not None and len(axes) == len(dims) and all(
            dims[axis] >= extent for axis, extent in zip(axes, a.shape, strict=True)
        )  # fmt: skip

    def of(self, args: Sequence[Any]) -> array | None:
        """Its array among the arguments of a launch."""
        found = args[self.k]
        for field in self.fields:
            found = None if found is None else getattr(found, field)
        return found


def _asks(bounds: list[Any]) -> bool:
    return any(kind == "arg" for bound in bounds for kind, _, _ in bound[1])


def _asked(site: Site) -> list[tuple[int, ...]]:
    """Where the arguments are that decide which elements of a site a launch reaches."""
    bounds = [bounds for box in (*site.boxes, *(site.read_boxes or ())) for bounds in box if bounds is not None]
    return [(*where,) for each in bounds for bound in each for kind, where, _ in bound[1] if kind == "arg"]


class Plan:
    """One overload of a kernel, as tapes see it.

    ``plain``: arguments are arrays, numbers and vectors; ``native``: or structs, indexed arrays too, that native
    launchers take. ``arrays``: positions of its arrays, which ``pick`` takes out; ``places``: the same among arguments
    that are laid out. ``asked``: where the arguments are that say which elements a launch reaches. ``vectors``: of host
    vectors, which their owner may change later. ``reads``, ``boxed``: sites whose whole content, or some boxes of it,
    must stay known; ``writes``: sites that are written. ``pairs``: of launches with tangents, the sites of arrays with
    those of their tangents: either has a gradient if the other has. ``holders``: arguments that lead to arrays in
    memory, which a launch reads; ``unseen``: it may write those, too. ``detached``: results are constant for tapes.
    """

    __slots__ = ("arrays", "asked", "boxed_at", "detached", "floats", "floats_at", "found", "holders", "kernel",
                 "native", "overload", "pairs", "pick", "places", "plain", "prints", "reads_at", "reverses", "sites",
                 "types", "unseen", "vectors", "writes", "writes_at")  # fmt: skip

    def __init__(self, kernel: Kernel, overload: Overload, meta: dict[str, Any]):
        self.kernel, self.overload, self.types = kernel, overload, overload.types
        self.detached = bool(kernel.option("detached"))
        self.sites = _sites(kernel, overload.types, meta["touched"])
        structs = [t for t in self.types if isinstance(t, Struct)]
        self.plain, self.native = not structs, all([packs(t) for t in structs])
        self.arrays = tuple([s.k for s in self.sites]) if self.plain else ()
        self.pick: Callable[[Sequence[Any]], Any] = itemgetter(*self.arrays) if self.arrays else lambda args: ()
        self.vectors = tuple([k for k, t in enumerate(self.types) if is_composite(t)])
        at = [(s.k if self.plain else len(self.types) + n, s) for n, s in enumerate(self.sites)]
        self.writes = [s for s in self.sites if s.writes]
        self.writes_at = [(k, s) for k, s in at if s.writes]
        self.reads_at = [(k, s) for k, s in at if s.needs and not s.read_boxes]
        self.boxed_at = [(k, s) for k, s in at if s.needs and s.read_boxes]
        self.places = tuple([k for k, _ in at])
        self.asked = tuple({where: None for s in self.sites for where in _asked(s)})
        self.found: dict[Any, list[Part]] = {}
        self.floats = [s for s in self.sites if s.floats]
        self.floats_at = tuple([s.k for s in self.floats]) if self.plain else ()
        self.pairs: list[tuple[Site, Site]] = []
        self.prints = bool(meta.get("prints"))
        unknown = meta["touched"]["unknown"]
        self.holders = [(k, t) for k, t in enumerate(self.types) if holds_arrays(t)] if unknown else []
        self.unseen = bool(self.holders) and unknown == "written"
        self.reverses: dict[Any, Any] = {}  # see lang/reverse.py

    def laid_out(self, args: Sequence[Any]) -> list[Any]:
        """The arguments, and behind them, where there are structs, the array of each site."""
        return [*args] if self.plain else [*args, *[site.of(args) for site in self.sites]]

    def written(self, args: Sequence[Any]) -> list[array]:
        """The arrays that a launch writes."""
        found = [site.of(args) for site in self.writes]
        held = self.held(args) if self.unseen else ()  # launches do not write to what must not be changed
        return [*[a for a in found if a is not None], *[a for a in held if not a.read_only]]

    def held(self, args: Sequence[Any]) -> list[array]:
        """The arrays in memory that a launch may touch, found there by its arguments."""
        return [a for k, t in self.holders for a in held_by(args[k], t) if a.size]

    def graded(self, args: Sequence[Any]) -> list[array]:
        """Those among them with gradients, if a launch may write them."""
        return [a for a in self.held(args) if a._grad is not None] if self.unseen else []

    def checksums(self, args: Sequence[Any]) -> dict[str, int]:
        """One number for the content of each array that a launch reads in whole."""
        found = {site.name: site.of(args) for _, site in self.reads_at}
        return {name: crc32(np.ascontiguousarray(a.numpy())) for name, a in found.items() if a is not None}

    def differentiates(self) -> bool:
        """Whether kernel, module and settings allow gradients."""
        from ..base.config import config

        option = self.kernel.option("enable_backward")
        return bool(config.enable_backward) and option is not False

    def key(self, dim: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        """What decides which bytes a launch reaches: equal keys, equal bytes. ``args`` are laid out."""
        try:
            arrays = [args[k]._desc for k in self.places]
        except AttributeError:  # an array may be left out
            arrays = [getattr(args[k], "_desc", None) for k in self.places]
        asked = [self._argument(where, args) for where in self.asked] if self.asked else ()
        return (dim, *arrays, *asked)

    def parts(self, site: Site, boxes: list[Any], a: array, dims: tuple[int, ...], args: Sequence[Any]) -> list[Part]:
        """The bytes of ``a`` that ``boxes``, some of those of ``site``, reach in a launch over ``dims``."""
        asked = [self._argument(where, args) for where in self.asked] if self.asked else ()
        key = (site, boxes is site.boxes, dims, a._desc, *asked)
        found = self.found.get(key)
        if found is None:
            if len(self.found) > MOST:
                self.found.clear()
            held = [self._box(box, a, dims, args) for box in boxes]
            found = self.found[key] = [part(a, box) for box in joined([box for box in held if box is not None])]
        return found

    def _box(self, box: list[Any], a: array, dims: tuple[int, ...], args: Sequence[Any]) -> Box | None:
        """The indices in ``box``; None where there are none in ``a``."""
        found = []
        for bounds, extent in zip(box, a.shape, strict=True):
            first, last = 0, extent - 1
            if bounds is not None:
                low, high, *counted = [self._value(bound, dims, args) for bound in bounds]
                if counted and high < 0:
                    low, high = low + extent, high + extent
                # An index beyond 32 bits may have wrapped, one of several signs counts from either end.
                if low in INT32 and high in INT32 and not (counted and low < 0 <= high):
                    first, last = max(first, low), min(last, high)
            if first > last:
                return None
            found.append((first, last + 1))
        return (*found,)

    def _value(self, bound: list[Any], dims: tuple[int, ...], args: Sequence[Any]) -> int:
        total, terms = bound
        for kind, where, factor in terms:
            if kind == "dim":
                value = dims[where] if where < len(dims) else 1
            else:
                value = self._argument(where, args)
            total += factor * value
        return total

    def _argument(self, where: Sequence[int], args: Sequence[Any]) -> int:
        """The whole number at ``where``: parameter, then fields or components."""
        value, t = args[where[0]], self.types[where[0]]
        for i in where[1:]:
            if isinstance(t, Struct):
                name, t = t.fields[i]
                value = getattr(value, name)
            else:
                value, t = _component(value, t, i)
        return int(getattr(value, "value", value))


def _component(value: Any, t: Type, i: int) -> tuple[Any, Type]:
    """Component ``i`` of a host vector, or of a matrix row by row."""
    if isinstance(t, Matrix):
        return value[i // t.cols, i % t.cols], t.elem
    return value[i], t.elem


def _sites(kernel: Kernel, types: tuple[Type, ...], touched: dict[str, Any]) -> list[Site]:
    """The arrays that a kernel touches."""
    names, offsets = [p.name for p in kernel.parameters], pack(types)[0]
    facts = {tuple(fact["path"]): fact for fact in touched["arrays"]}
    found = []
    for k, t in enumerate(types):
        for leaf in leaves(t):
            fact = facts.get((k, *leaf.path))
            if isinstance(leaf.type, View) and (fact or touched["unknown"]):
                name, inner = names[k], t
                for i in leaf.path:
                    field, inner = inner.fields[i]
                    name += f".{field}"
                found.append(Site(k, leaf.path, name, leaf.type, offsets[k] + leaf.offset, t, fact or {},
                                  touched["unknown"]))  # fmt: skip
    return found


def plan_of(kernel: Kernel, overload: Overload, program: Any) -> Plan:
    """The plan of an overload, made when first asked for."""
    plan = overload.plan
    if plan is None:
        plan = overload.plan = Plan(kernel, overload, program.entry.meta)
    if plan.native and len(kernel.overloads) == 1 and overload.device is None:
        kernel.plan = plan
    return plan


def plan_for(kernel: Kernel, args: Sequence[Any]) -> Plan | None:
    """The plan of the overload that takes ``args``, which must be exactly of its types; None where that is unclear."""
    if kernel.plan is not None:
        return kernel.plan
    types = [_own_type(arg) for arg in args]
    found = [overload for overload in kernel.overloads.values() if _alike(overload.types, types)]
    plan = found[0].plan if len(found) == 1 else None
    return plan if plan is not None and plan.native else None


def _own_type(arg: Any) -> Type | None:
    """The type of an array or a struct, in which the layout of arrays counts."""
    if type(arg) in (array, indexedarray):
        return arg.type
    return arg.treadle_type() if hasattr(type(arg), "treadle_type") else None


def _alike(wanted: Sequence[Type], given: Sequence[Type | None]) -> bool:
    return len(wanted) == len(given) and all(
        a is b if isinstance(a, View | Struct) else b is None for a, b in zip(wanted, given, strict=True)
    )
