"""Is a program well formed? Run after each pass in tests; what it rejects is a bug of ours.

Checked: every value is defined once and before it is read, in a block that encloses the reader; every op has the
arguments, results, attributes and regions that ``ir.ops`` specifies, of the right types; calls fit their callees.
"""

from __future__ import annotations

from collections.abc import Callable

from ..base.errors import InternalError
from ..types.core import STR, Fixed, Matrix, Scalar, Type, Vector, View, b1, i32, i64, u64, vector
from ..types.layout import children, has_floats, leaves
from ..types.promotion import fits
from . import ops
from .node import Block, Func, Op, Value
from .walk import FUNCTIONS, callees

__all__ = ["ATOMICS", "verify"]

ATOMICS = ("add", "sub", "min", "max", "and", "or", "xor", "exch", "cas")


def verify(func: Func, scalar: bool = False) -> Func:
    """Give back ``func`` if it and the functions it calls are well formed; raise :class:`InternalError` if not.

    ``scalar``: demand the form after ``scalarize``, in which every value is a scalar or a view.
    """
    for f in (*callees(func), func):
        _Verifier(f, scalar).run()
    return func


class _Verifier:
    """Walks one function. ``known``: values in reach; ``defined``: all values met so far."""

    def __init__(self, func: Func, scalar: bool):
        self.func, self.scalar = func, scalar
        self.known: set[Value] = set()
        self.defined: set[Value] = set()
        self.sites: dict[tuple[str, int], tuple[Type, ...]] = {}

    def run(self) -> None:
        f = self.func
        if f.kind not in ("kernel", "function"):
            self.fail(None, f"kind {f.kind!r}")
        if f.kind == "kernel" and f.body.yields:
            self.fail(None, "a kernel yields nothing")
        if f.body.params:
            self.fail(None, "the body of a function has no parameters of its own")
        self.define(None, f.params)
        self.block(f.body)

    def fail(self, op: Op | None, message: str) -> None:
        where = f"op {op.name}" if op else "header"
        raise InternalError(f"{self.func.kind} {self.func.name}, {where}: {message}", op.span if op else self.func.span)

    def define(self, op: Op | None, values: tuple[Value, ...]) -> None:
        for v in values:
            if v in self.defined:
                self.fail(op, f"{v} is defined twice")
            if self.scalar and not (isinstance(v.type, Scalar | View) or v.type is STR):
                self.fail(op, f"{v} is neither a scalar nor a view")
            self.defined.add(v)
            self.known.add(v)

    def read(self, op: Op | None, values: tuple[Value, ...]) -> None:
        for v in values:
            if v not in self.known:
                self.fail(op, f"{v} is read where it is not defined")

    def block(self, block: Block, owner: Op | None = None) -> None:
        self.define(owner, block.params)
        for op in block.ops:
            self.read(op, op.args)
            self.rules(op)
            if ops.OPS[op.name].tape and "site" in op.attrs:
                self.site(op)
            for region in op.regions:
                self.block(region, op)
            self.define(op, op.results)
        self.read(owner, block.yields)
        self.known.difference_update(block.params)
        for op in block.ops:
            self.known.difference_update(op.results)

    def site(self, op: Op) -> None:
        """A site of the stack or log holds values of one list of types."""
        place = ("log" if op.name in ("record", "recall") else "stack"), op.attrs["site"]
        types = _types(op.args or op.results)
        if self.sites.setdefault(place, types) != types:
            self.fail(op, f"site {op.attrs['site']} holds other types: {', '.join(t.name for t in self.sites[place])}")

    def rules(self, op: Op) -> None:
        if type(op.args) is not tuple or type(op.results) is not tuple or type(op.regions) is not tuple:
            self.fail(op, "args, results and regions are tuples")
        if op.name not in ops.OPS:
            self.fail(op, "no such op")
        if self.scalar and op.name in _COMPOSITE:
            self.fail(op, "works on composites, and scalarize has run")
        wanted = _REGIONS.get(op.name, 0)
        if len(op.regions) != wanted:
            self.fail(op, f"has {len(op.regions)} regions, not {wanted}")
        rule = _RULES.get(op.name)
        if rule is None:
            return
        try:
            problem = rule(op, self.scalar)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            problem = f"arguments or attributes do not fit ({error!r})"
        if problem:
            types = ", ".join(a.type.name for a in op.args)
            results = ", ".join(r.type.name for r in op.results)
            self.fail(op, f"{problem}; it is ({types}) -> ({results}) with {op.attrs}")


_COMPOSITE = {"make", "extract", "insert", "pick", "put"}
_REGIONS = {"if": 2, "for": 1, "while": 1}


def _types(values: tuple[Value, ...]) -> tuple[Type, ...]:
    return tuple([v.type for v in values])


def _integers(values: tuple[Value, ...]) -> bool:
    return all(isinstance(v.type, Scalar) and v.type.is_int for v in values)


# Each rule below answers what is wrong with an op, or nothing.


def _const(op: Op, scalar: bool) -> str | None:
    value, t = op.attrs["value"], op.result.type
    if op.args or not (isinstance(t, Scalar) or t is STR):
        return "a constant is a scalar or text"
    wanted = str if t is STR else {"b": bool, "f": float}.get(t.kind, int)
    if type(value) is not wanted:
        return f"the value is not a Python {wanted.__name__}"
    return "the value is out of range" if wanted is int and not fits(value, t) else None


def _make(op: Op, scalar: bool) -> str | None:
    return None if _types(op.args) == children(op.result.type) else "parts and type differ"


def _extract(op: Op, scalar: bool) -> str | None:
    (c,) = op.args
    good = op.attrs["index"] >= 0 and children(c.type)[op.attrs["index"]] is op.result.type
    return None if good else "the result is not that part"


def _insert(op: Op, scalar: bool) -> str | None:
    c, part = op.args
    good = op.attrs["index"] >= 0 and children(c.type)[op.attrs["index"]] is part.type and c.type is op.result.type
    return None if good else "that part has another type"


def _component(t: Type, indices: tuple[Value, ...]) -> Type | None:
    """The type that ``indices`` pick out of a vector, a matrix (one index gives a row) or an array of fixed size."""
    if not _integers(indices):
        return None
    if isinstance(t, Matrix) and len(indices) == 1:
        return vector(t.cols, t.elem)
    rank = 1 if isinstance(t, Vector) else 2 if isinstance(t, Matrix) else len(t.shape) if isinstance(t, Fixed) else 0
    return t.elem if rank and len(indices) == rank else None


def _pick(op: Op, scalar: bool) -> str | None:
    good = _component(op.args[0].type, op.args[1:]) is op.result.type
    return None if good else "the indices do not pick that type"


def _put(op: Op, scalar: bool) -> str | None:
    c, x, *indices = op.args
    good = _component(c.type, tuple(indices)) is x.type and op.result.type is c.type
    return None if good else "the indices do not pick that type"


def _cast(op: Op, scalar: bool) -> str | None:
    (x,), t = op.args, op.result.type
    good = len(leaves(x.type)) == len(leaves(t)) and all(isinstance(leaf.type, Scalar) for leaf in leaves(x.type))
    return None if good else "only scalars, or composites of as many, are cast"


def _bitcast(op: Op, scalar: bool) -> str | None:
    (x,), t = op.args, op.result.type
    good = isinstance(x.type, Scalar) and isinstance(t, Scalar) and x.type.size == t.size
    return None if good else "the sizes differ"


def _select(op: Op, scalar: bool) -> str | None:
    c, a, b = op.args
    good = c.type is b1 and a.type is b.type is op.result.type
    return None if good else "a bool and two values of the result's type are due"


def _tid(op: Op, scalar: bool) -> str | None:
    good = not op.args and op.result.type is i32 and 0 <= op.attrs["axis"] < 4
    return None if good else "an axis from 0 to 3 and an i32 result are due"


def _bool_to_bool(op: Op, scalar: bool) -> str | None:
    return None if _types(op.args) == (b1,) and _types(op.results) == (b1,) else "a bool gives a bool"


def _lane(op: Op, scalar: bool) -> str | None:
    return None if not op.args and _types(op.results) == (i32,) else "it is an i32"


def _barrier(op: Op, scalar: bool) -> str | None:
    return "it has no values" if op.args or op.results else None


def _shuffle(op: Op, scalar: bool) -> str | None:
    good = len(op.args) == 1 and isinstance(op.args[0].type, Scalar) and _types(op.args) == _types(op.results)
    return None if good and 0 < op.attrs["by"] < 32 else "it takes and gives one number"


def _local(op: Op, scalar: bool) -> str | None:
    t, v = op.attrs["type"], op.result.type
    good = not op.args and isinstance(t, Fixed) and isinstance(v, View) and v.space == "local"
    return None if good and (v.elem, v.ndim) == (t.elem, len(t.shape)) else "the view does not fit the array"


def _access(op: Op) -> tuple[View, tuple[Type, ...]] | str:
    """The view and the types after its indices; or what is wrong."""
    v = op.args[0].type
    if not isinstance(v, View) or not _integers(op.args[1 : 1 + v.ndim]) or len(op.args) < 1 + v.ndim:
        return "a view and an integer a dimension are due"
    return v, _types(op.args[1 + v.ndim :])


def _element(v: View, scalar: bool) -> tuple[Type, ...]:
    """The types that a load of ``v`` gives."""
    return tuple(leaf.type for leaf in leaves(v.elem)) if scalar else (v.elem,)


def _load(op: Op, scalar: bool) -> str | None:
    found = _access(op)
    if isinstance(found, str):
        return found
    v, extra = found
    return None if not extra and _types(op.results) == _element(v, scalar) else "the results are not the element"


def _store(op: Op, scalar: bool) -> str | None:
    found = _access(op)
    if isinstance(found, str):
        return found
    v, values = found
    return None if not op.results and values == _element(v, scalar) else "the values are not the element"


def _atomic(op: Op, scalar: bool) -> str | None:
    found = _access(op)
    if isinstance(found, str):
        return found
    v, values = found
    kind = op.attrs["op"]
    if kind not in ATOMICS or len(values) != (2 if kind == "cas" else 1):
        return "no such update"
    if scalar and not isinstance(v.elem, Scalar):
        return "only scalars are updated"
    if op.attrs.get("apart") and kind not in ("add", "sub"):
        return "only sums may be apart"
    good = all(t is v.elem for t in values) and _types(op.results) == (v.elem,)
    return None if good else "the values are not the element"


def _subview(op: Op, scalar: bool) -> str | None:
    v, w, k = op.args[0].type, op.result.type, len(op.args) - 1
    good = w.elem is v.elem and w.ndim == v.ndim - k >= 0 and (w.planar, w.space) == (v.planar, v.space)
    return None if good and _integers(op.args[1:]) else "the view is not what remains"


def _slice(op: Op, scalar: bool) -> str | None:
    v, w = op.args[0].type, op.result.type
    good = w.elem is v.elem and w.ndim == v.ndim and (w.planar, w.space) == (v.planar, v.space)
    good = good and 0 <= op.attrs["axis"] < v.ndim and len(op.args) == 4 and _integers(op.args[1:])
    return None if good else "start, step and length are due, and a view of the same rank"


def _field(op: Op, scalar: bool) -> str | None:
    (v,), w = _types(op.args), op.result.type
    good = 0 <= op.attrs["index"] and w.elem is children(v.elem)[op.attrs["index"]]
    return None if good and (w.ndim, w.space) == (v.ndim, v.space) else "the view is not of that part"


def _parts(op: Op, scalar: bool) -> str | None:
    (v,), w = _types(op.args), op.result.type
    rank = {Vector: 1, Matrix: 2}.get(type(v.elem))
    good = rank and w.elem is v.elem.elem and w.ndim == v.ndim + rank and w.space == v.space
    return None if good else "the view is not of the components"


def _shape(op: Op, scalar: bool) -> str | None:
    (v,) = _types(op.args)
    return None if 0 <= op.attrs["axis"] < v.ndim and op.result.type is i32 else "no such axis"


def _address(op: Op, scalar: bool) -> str | None:
    (v,) = _types(op.args)
    return None if isinstance(v, View) and op.result.type is u64 else "a view gives a u64"


def _view_at(op: Op, scalar: bool) -> str | None:
    w = op.result.type
    good = isinstance(w, View) and _integers(op.args) and len(op.args) in (1 + w.ndim, 1 + 2 * w.ndim)
    return None if good else "an address, a length a dimension, perhaps strides are due"


def _if(op: Op, scalar: bool) -> str | None:
    if _types(op.args) != (b1,):
        return "the condition is one bool"
    good = all(not r.params and _types(r.yields) == _types(op.results) for r in op.regions)
    return None if good else "a region yields other types than the results"


def _for(op: Op, scalar: bool) -> str | None:
    bounds, carried = op.args[:3], _types(op.args[3:])
    if len(bounds) != 3 or not _integers(bounds) or len(set(_types(bounds))) != 1:
        return "start, stop and step are integers of one type"
    return _loop(op, carried, (bounds[0].type,), bool(op.attrs.get("stays")))


def _while(op: Op, scalar: bool) -> str | None:
    return _loop(op, _types(op.args), (), True)


def _loop(op: Op, carried: tuple[Type, ...], first: tuple[Type, ...], stays: bool) -> str | None:
    (region,) = op.regions
    if _types(op.results) != carried or _types(region.params) != first + carried:
        return "initial, carried and final values differ in type"
    return None if _types(region.yields) == ((b1,) if stays else ()) + carried else "the region yields other types"


def _call(op: Op, scalar: bool) -> str | None:
    f = op.attrs["func"]
    if f.kind != "function":
        return "only functions are called"
    args, results = _types(op.args), _types(op.results)
    moving = [tuple([t for t in types if has_floats(t)]) for types in (args, results)]
    if op.attrs.get("gradient"):  # of the callee, by its arguments: a later pass makes it
        good = args == _types(f.params) and results == moving[0]
        return None if good else f"the gradient of {f.name} has the types of its arguments"
    due = {"func": (args, results), "replay": (args, results), "adjoint": ((*args, *results, *moving[1]), moving[0]),
           "tangent": ((*args, *results, *moving[0]), moving[1])}  # fmt: skip
    for key in FUNCTIONS:
        g = op.attrs.get(key)
        if g is not None and (_types(g.params), _types(g.body.yields)) != due[key]:
            return f"{key} {g.name} is {_types(g.params)} -> {_types(g.body.yields)}"
    return None


def _grad(op: Op, scalar: bool) -> str | None:
    (v,) = _types(op.args)
    good = isinstance(v, View) and v.space == "global" and op.result.type is v
    return None if good else "a view of memory that others see gives one of the same type"


def _has_grad(op: Op, scalar: bool) -> str | None:
    (v,) = _types(op.args)
    return None if isinstance(v, View) and op.result.type is b1 else "a view gives a bool"


def _lanes_max(op: Op, scalar: bool) -> str | None:
    return None if _types(op.args) == (i32,) and op.result.type is i32 else "an i32 gives an i32"


def _put_aside(op: Op, scalar: bool) -> str | None:
    return None if not op.results and op.args and type(op.attrs["site"]) is int else "values and a site are due"


def _take_back(op: Op, scalar: bool) -> str | None:
    return None if not op.args and op.results and type(op.attrs["site"]) is int else "a site and results are due"


def _mark(op: Op, scalar: bool) -> str | None:
    return None if not op.args and op.result.type is i64 else "an i64 result is due"


def _seek(op: Op, scalar: bool) -> str | None:
    return None if not op.results and _types(op.args) == (i64,) else "one i64 is due"


def _print(op: Op, scalar: bool) -> str | None:
    return None if not op.results and type(op.attrs["format"]) is str else "a format and no result are due"


def _check(op: Op, scalar: bool) -> str | None:
    texts = type(op.attrs["kind"]) is str and type(op.attrs["message"]) is str
    return None if texts and not op.results and op.args[0].type is b1 else "a bool, a kind and a message are due"


_RULES: dict[str, Callable[[Op, bool], str | None]] = {
    "const": _const, "make": _make, "extract": _extract, "insert": _insert, "pick": _pick, "put": _put, "cast": _cast,
    "bitcast": _bitcast, "select": _select, "tid": _tid, "lanes_any": _bool_to_bool, "local": _local, "load": _load,
    "store": _store, "atomic": _atomic, "subview": _subview, "slice": _slice, "field": _field, "parts": _parts,
    "shape": _shape, "address": _address, "view_at": _view_at, "if": _if, "for": _for, "while": _while, "call": _call,
    "print": _print, "check": _check, "grad": _grad, "has_grad": _has_grad, "lanes_max": _lanes_max,
    "push": _put_aside, "pop": _take_back, "record": _put_aside, "recall": _take_back, "mark": _mark, "seek": _seek,
    "lane": _lane, "barrier": _barrier, "shuffle": _shuffle,
}  # fmt: skip
