"""Builtins that reach memory: atomic updates, sizes, addresses, a thread's own arrays.

An atomic update reads an element, combines it with a value, writes it back and gives the element as it was before, as
one step that no other thread can interrupt. On vectors and matrices it goes component by component.
"""

from ..base.errors import KernelTypeError
from ..ir.builder import Builder
from ..ir.indexed import extent, located
from ..ir.node import Value
from ..types.annotations import type_of
from ..types.core import (
    INTS,
    Array,
    Fixed,
    Indexed,
    Matrix,
    Tuple,
    Type,
    Vector,
    b1,
    bf16,
    f16,
    f32,
    f64,
    fixed,
    i32,
    i64,
    u32,
    u64,
    view,
)
from ..types.core import Scalar as ScalarType
from ..types.core import View as ViewType
from ..types.promotion import adapts
from ..types.spelling import spell
from ..types.values import class_of
from .patterns import Any, E, Index, Known, Scalar, View
from .registry import Arg, Match, Mismatch, Param, Signature, builtin

NUMBERS = "add", "sub", "min", "max"
BITS = "and", "or", "xor"

# What atomic operations combine, on every device: processors have no instructions for smaller numbers in memory, and a
# neighbour's bits would take part in the update.
_SUMMED = (i32, u32, i64, u64, f16, bf16, f32, f64)
_ORDERED = (i32, u32, i64, u64, bf16, f32, f64)
COMBINED = {"add": _SUMMED, "sub": _SUMMED, "min": _ORDERED, "max": _ORDERED}
_MEANINGS = {
    "add": "Add ``value`` to an element of ``arr``",
    "sub": "Subtract ``value`` from an element of ``arr``",
    "min": "Replace an element of ``arr`` by the smaller of it and ``value``",
    "max": "Replace an element of ``arr`` by the larger of it and ``value``",
    "and": "Replace an element of ``arr`` by its bits that ``value`` has too",
    "or": "Set in an element of ``arr`` the bits of ``value``",
    "xor": "Flip in an element of ``arr`` the bits of ``value``",
    "exch": "Replace an element of ``arr`` by ``value``",
    "cas": "Replace an element of ``arr`` by ``value`` if it equals ``compare``",
}


def _listed(scalars: tuple[ScalarType, ...]) -> str:
    """Names of scalars, signed and unsigned ones as one: ``[u]int32, … or float64``."""
    names = [spell(t) if t.is_float else f"[u]{spell(t)}" for t in scalars if t.is_float or t.is_signed]
    return f"{', '.join(names[:-1])}, or {names[-1]}"


def _atomic(op: str) -> None:
    """Register ``atomic_<op>`` for arrays of one to four dimensions."""
    doc = f"{_MEANINGS[op]}, in one step; gives the element as it was.\n\nIndices are integers, one for each dimension."

    def result(arr: Arg, *rest: Arg) -> Type:
        elem = arr.type.elem
        scalar = elem.elem if isinstance(elem, Vector | Matrix) else elem
        if op in NUMBERS and isinstance(scalar, ScalarType) and scalar not in (b1, *COMBINED[op]):
            raise KernelTypeError(
                f"atomic_{op}() combines numbers of type {_listed(COMBINED[op])}; the array holds "
                f"{class_of(elem).__name__}, made of {spell(scalar)}"
            )
        if op in BITS and scalar not in INTS:
            raise Mismatch(f"argument 'arr' must hold integers, not {spell(elem)}")
        if not isinstance(scalar, ScalarType) or scalar is b1:
            raise Mismatch(f"argument 'arr' must hold numbers, vectors or matrices, not {spell(elem)}")
        if op == "cas" and scalar is not elem:
            raise Mismatch(f"argument 'arr' must hold scalars, not {spell(elem)}")
        return elem

    def emit(b: Builder, result: Type, arr: Value, *rest: Value) -> Value:
        ndim = arr.type.ndim
        view, indices = located(b, arr, rest[:ndim])
        return b.one("atomic", (view, *indices, *rest[ndim:]), result, op=op)

    values = ("compare", "value") if op == "cas" else ("value",)
    for ndim in range(1, 5):
        params = [Param("arr", View(E, ndim, indexed=True)), *(Param(name, Index) for name in "ijkl"[:ndim])]
        signature = Signature((*params, *(Param(name, E) for name in values)))
        definition = {"__doc__": doc, "__module__": __name__, "sig": signature, "result": result, "emit": emit}
        builtin("utility")(type(f"atomic_{op}", (), definition))


for _op in (*NUMBERS, *BITS, "exch", "cas"):
    _atomic(_op)


size = len  # Python's, before the record below takes its name


@builtin("utility")
class len:
    """How many parts ``a`` has: components of a vector, rows of a matrix or array, items of a tuple.

    >>> wp.len(wp.vec3(1.0, 2.0, 3.0))
    3
    """

    def sig(a: Any) -> i32: ...

    def result(a: Arg) -> Type:
        if not isinstance(a.type, Vector | Matrix | ViewType | Array | Fixed | Indexed | Tuple):
            raise Mismatch(f"argument 'a' has no length: it is {a.show()}")
        return i32

    def known(a: Arg) -> int | None:
        t = a.type
        if isinstance(t, ViewType | Array | Indexed):
            return None
        if isinstance(t, Fixed):
            return t.shape[0]
        return t.rows if isinstance(t, Matrix) else t.n if isinstance(t, Vector) else size(t.items)

    def emit(b, result, a):
        count = len.part("known")(Arg(a.type))
        return extent(b, a, 0) if count is None else b.i32(count)


@builtin("utility")
class zeros:
    """An array of the thread's own, filled with zero. ``shape`` is a constant: an int or up to four of them.

    The array lives as long as the thread does, in registers or in memory close to them.
    """

    def sig(
        shape: Known(
            "a constant int or tuple",
            "the `shape` of an array in a kernel must be known while it is compiled",
        ),
        dtype: Known("a type"),
    ): ...

    def result(shape: Arg, dtype: Arg) -> Type:
        sizes, elem = local_shape(shape.value), type_of(dtype.value)
        return view(elem, size(sizes), space="local")

    def emit(b, result, shape, dtype):
        return b.op("local", (), (result,), type=fixed(type_of(dtype), local_shape(shape)))[0]


@builtin("utility")
class empty:
    """An array of the thread's own like that of `zeros`, but with nothing in it yet (beyond Warp).

    For large arrays of which a thread writes, then reads, a part: filling them with zero can cost more than their use.
    Reading an element that was not written gives any number, and not the same one each time.
    """

    def sig(
        shape: Known(
            "a constant int or tuple",
            "the `shape` of an array in a kernel must be known while it is compiled",
        ),
        dtype: Known("a type"),
    ): ...

    def result(shape: Arg, dtype: Arg) -> Type:
        sizes, elem = local_shape(shape.value), type_of(dtype.value)
        return view(elem, size(sizes), space="local")

    def emit(b, result, shape, dtype):
        return b.op("local", (), (result,), type=fixed(type_of(dtype), local_shape(shape)), blank=True)[0]


def local_shape(shape: object) -> tuple[int, ...]:
    """A constant shape as a tuple; raises Mismatch if it is none."""
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if not 1 <= size(sizes) <= 4 or not all(isinstance(s, int) and not isinstance(s, bool) for s in sizes):
        raise Mismatch(f"argument 'shape' must be a constant int or up to four of them, not {shape!r}")
    if any(s < 1 for s in sizes):
        raise Mismatch(f"argument 'shape' must be positive, not {shape!r}")
    return tuple(int(s) for s in sizes)


def _numbers(name: str, arg: Arg) -> tuple[int, tuple[int, ...] | None, Type | None]:
    """An argument that is an int or a tuple of them: how many, those known, and the type of its value if not known."""
    known = arg.value if isinstance(arg.value, tuple) else None
    if known is not None:
        return size(known), known, None
    if isinstance(arg.type, Tuple):
        return size(arg.type.items), None, arg.type
    if arg.type not in INTS:
        raise Mismatch(f"argument {name!r} must be an int or a tuple of them, not {arg.show()}")
    return 1, None, i32 if arg.literal else arg.type


@builtin("utility")
class array:
    """Access to memory at address ``ptr`` as an array; ``shape`` is an int or a tuple of up to four.

    Nothing checks that the memory is there or large enough. Elements lie row by row without gaps, or ``strides`` bytes
    apart along each dimension (beyond Warp).
    """

    def sig(ptr: u64, shape: Any, dtype: Known("a type"), strides: Any = None): ...

    def match(args, kwargs, context) -> Match:
        order = ["ptr", "shape", "dtype", "strides"]
        given = {**dict(zip(order, args)), **kwargs}
        if not {*order[:3]} <= {*given} <= {*order} or size(args) > 4:
            raise Mismatch("ptr, shape and dtype are needed, and perhaps strides")
        ptr, dtype = given["ptr"], given["dtype"]
        if ptr.type is not u64 and not (ptr.literal and adapts(ptr.value, u64)):
            raise Mismatch(f"argument 'ptr' must be uint64, not {ptr.show()}", "write wp.uint64(…)")
        place = {name: i for i, name in enumerate([*order[: size(args)], *kwargs])}
        types: list[Type | None] = [None] * size(place)
        lists = {name: _numbers(name, given[name]) for name in ("shape", "strides") if name in given}
        for name, (_, _, t) in lists.items():
            types[place[name]] = t
        types[place["ptr"]] = u64
        ndim = lists["shape"][0]
        steps, known, _ = lists.get("strides", (ndim, None, None))
        if steps != ndim:
            raise Mismatch(f"{ndim} sizes and {steps} strides do not go together")
        fixed_steps = known or ((None,) * ndim if "strides" in lists else None)
        t = view(type_of(dtype.value), ndim, fixed_steps)

        def emit(b: Builder, values: list[Value]) -> Value:
            numbers: list[Value] = []
            for name, (_, known, wanted) in lists.items():
                if known is not None:
                    numbers += [b.i32(n) for n in known]
                else:
                    x = values[place[name]]
                    numbers += b.parts(x) if isinstance(wanted, Tuple) else [x]
            return b.one("view_at", (values[place["ptr"]], *numbers), t)

        return Match("array", types, t, emit)


@builtin("utility")
class lower_bound:
    """The first place in the sorted ``arr`` whose element is not below ``value``; its last place if there is none.

    The search may be limited to the places from ``arr_begin`` to ``arr_end`` - 1.
    """

    def body(arr: View(Scalar, 1, indexed=True), value: Scalar) -> i32:
        return lower_bound(arr, 0, len(arr), value)


@builtin("utility", "lower_bound")
class lower_bound_between:
    """The first place from ``arr_begin`` to ``arr_end`` - 1 whose element is not below ``value``, else the last one."""

    def body(arr: View(Scalar, 1, indexed=True), arr_begin: i32, arr_end: i32, value: Scalar) -> i32:
        low = arr_begin
        high = arr_end - 1
        while low < high:
            middle = low + (high - low) // 2
            if arr[middle] < value:
                low = middle + 1
            else:
                high = middle
        return low
