"""Choosing, printing, checking, and the thread's own index."""

import builtins
import sys

from ..base.errors import KernelTypeError
from ..ir.builder import Builder
from ..ir.node import Value
from ..types.core import FLOATS, STR, Matrix, Scalar, Type, Vector, View, b1, i32, u64
from ..types.spelling import spell
from . import blocks
from .constructors import convert, flat
from .patterns import Any, Condition, Known, Same, Var
from .registry import Arg, Match, Mismatch, builtin

# -- choosing ----------------------------------------------------------------------------------------------------------


def _condition(cond: Arg) -> None:
    """Raise Mismatch if ``cond`` cannot be true or false."""
    if not isinstance(cond.type, View) and not Condition.match(cond.type, {}):
        raise Mismatch(f"argument 'cond' must be a bool, an integer or an array, not {cond.show()}")


def truth(b: Builder, cond: Value) -> Value:
    """Whether a bool, an integer or an array is true, not zero, or there at all."""
    if isinstance(cond.type, View):
        return b.one("ne", (b.one("address", (cond,), u64), b.const(0, u64)), b1)
    return convert(b, cond, b1)


@builtin("utility")
class where:
    """``value_if_true`` where ``cond`` holds, else ``value_if_false``. Both are evaluated.

    ``cond`` is a bool, an integer (true if not zero) or an array (true if it has memory).

    >>> wp.where(True, 1.0, 2.0)
    1.0
    """

    def sig(cond: Any, value_if_true: Same, value_if_false: Same): ...

    def result(cond: Arg, value_if_true: Arg, value_if_false: Arg) -> Type:
        _condition(cond)
        return value_if_true.type

    def emit(b, result, cond, x, y):
        return b.one("select", (truth(b, cond), x, y), result)


@builtin("utility")
class select:
    """``value_if_true`` where ``cond`` holds, else ``value_if_false``: the older order of :func:`where`.

    >>> wp.select(True, 1.0, 2.0)
    2.0
    """

    def sig(cond: Any, value_if_false: Same, value_if_true: Same): ...

    def result(cond: Arg, value_if_false: Arg, value_if_true: Arg) -> Type:
        _condition(cond)
        return value_if_true.type

    def emit(b, result, cond, x, y):
        return b.one("select", (truth(b, cond), y, x), result)


@builtin("utility")
class any_lane:
    """Whether ``cond`` holds for any of the threads that run together (beyond Warp).

    A hint for speed only: how many threads run together depends on the processor, so results must not depend on it.
    ``if wp.any_lane(c):`` skips work that no thread of the gang needs.

    >>> wp.any_lane(True)
    True
    """

    def sig(cond: b1) -> b1: ...

    def emit(b, result, cond):
        return b.one("lanes_any", (cond,), b1)


@builtin("utility")
class max_lane:
    """The largest ``n`` of the threads that run together (beyond Warp): of a number that all of them share, itself.

    As with `any_lane`, results must not depend on who runs together. The number is the same for all, so what it is an
    index of is read once: ``while wp.any_lane(k >= 0):`` with ``top = wp.max_lane(k)`` serves in turn those for whom
    ``k == top``.

    >>> wp.max_lane(3)
    3
    """

    def sig(n: i32) -> i32: ...

    def emit(b, result, n):
        return b.one("lanes_max", (n,), i32)


@builtin("utility")
class same_lane:
    """``n``, a number that the threads that run together share, as a number that is known to be shared (beyond Warp).

    As with `max_lane`, what it is an index of is read once, but no thread is asked for more than its own number. They
    must all have the same: where they have not, which of their numbers this is depends on the processor, and that is
    the one promise of the same bits everywhere that is then not kept.

    >>> wp.same_lane(3)
    3
    """

    def sig(n: i32) -> i32: ...

    def emit(b, result, n):
        return b.one("lanes_max", (n,), i32, same=True)


# -- what the translator itself knows ----------------------------------------------------------------------------------


def _inside_only(name: str):
    """A match for builtins that the translator handles: reached elsewhere, they mean nothing."""

    def match(args, kwargs, context) -> Match:
        raise KernelTypeError(f"wp.{name} has a meaning only inside kernels")

    return match


@builtin("utility")
class tid:
    """The index of the thread in the grid: ``i = wp.tid()``, ``i, j = wp.tid()`` … for 1 to 4 dimensions, as int32.

    The last index varies fastest. How many are asked for says how many dimensions the grid has.
    """

    def sig() -> i32: ...

    match = _inside_only("tid")


@builtin("utility")
class block_dim:
    """How many threads a block has: 1 on a CPU, whatever a launch asks for, unless ``wp.config.enable_cpu_blocks``."""

    def sig() -> i32: ...

    def match(args, kwargs, context) -> Match:  # types do not decide it
        if args or kwargs:
            raise Mismatch("it takes no arguments")
        size = blocks.SIZE.get()
        return Match("block_dim", [], i32, lambda b, values: b.i32(size), known=size)


@builtin("utility")
class address_of:
    """Where an element of an array, or a part of one, lies in memory: ``wp.address_of(a[i].velocity)``, as uint64."""

    def sig(a: Any) -> u64: ...

    match = _inside_only("address_of")


@builtin("utility")
class breakpoint:
    """Where a debugger is to stop. Kernels go on: many of their threads are one thread of the processor. Called from
    Python it is Python's own."""

    def sig() -> None: ...

    def emit(b, result): ...

    host = staticmethod(lambda: builtins.breakpoint())


@builtin("utility")
class printf:
    """Print to standard output with a format as in C; the format is a constant.

    Output appears in the order of the threads.
    """

    def sig(fmt: Known("a constant string"), *args: Any) -> None: ...

    match = _inside_only("printf")
    host = staticmethod(lambda fmt, *args: sys.stdout.write(fmt % args) and None)


@builtin("utility")
class print:
    """Print values, with blanks between, and a new line."""

    def sig(*values: Any) -> None: ...

    match = _inside_only("print")
    host = staticmethod(builtins.print)


# -- checking ----------------------------------------------------------------------------------------------------------


def _all(b: Builder, found: list[Value]) -> Value:
    out = found[0]
    for one in found[1:]:
        out = b.one("bitand", (out, one), b1)
    return out


def _check(b: Builder, ok: Value, name: str, x: Value, y: Value) -> None:
    shown = (x, y) if isinstance(x.type, Scalar) else ()
    b.op("check", (ok, *shown), kind="assert", message=f"{name} does not hold")


def _numbers(a: Arg, b: Arg) -> None:
    if not isinstance(a.type, Scalar | Vector | Matrix):
        raise Mismatch(f"argument 'a' must be a number, a vector or a matrix, not {a.show()}")
    return None


Compared = Var("Same", unlike="Can't test equality for objects with different types")


@builtin("utility")
class expect_eq:
    """Stop the kernel with an error if ``a`` and ``b`` are not equal.

    >>> wp.expect_eq(1, 1)
    """

    result = _numbers

    def sig(a: Compared, b: Compared): ...

    def emit(b, result, x, y):
        pairs = zip(flat(b, [x]), flat(b, [y]), strict=True)
        _check(b, _all(b, [b.one("eq", pair, b1) for pair in pairs]), "expect_eq", x, y)


@builtin("utility")
class expect_neq:
    """Stop the kernel with an error if ``a`` and ``b`` are equal.

    >>> wp.expect_neq(1, 2)
    """

    result = _numbers

    def sig(a: Compared, b: Compared): ...

    def emit(b, result, x, y):
        pairs = zip(flat(b, [x]), flat(b, [y]), strict=True)
        equal = _all(b, [b.one("eq", pair, b1) for pair in pairs])
        _check(b, b.one("logical_not", (equal,), b1), "expect_neq", x, y)


@builtin("utility")
class expect_near:
    """Stop the kernel where a component of ``a`` is further than ``tolerance`` from that of ``b``.

    >>> wp.expect_near(1.0, 1.0 + 1e-7)
    """

    def sig(a: Same, b: Same, tolerance: Any = 1e-6): ...

    def result(a: Arg, b: Arg, tolerance: Arg) -> None:
        elem = a.type.elem if isinstance(a.type, Vector | Matrix) else a.type
        if elem not in FLOATS:
            raise Mismatch(f"argument 'a' must be made of floats, not {spell(elem)}")
        if not isinstance(tolerance.type, Scalar) or tolerance.type is STR:
            raise Mismatch(f"argument 'tolerance' must be a number, not {tolerance.show()}")

    def emit(b, result, x, y, tolerance):
        elem = x.type.elem if isinstance(x.type, Vector | Matrix) else x.type
        limit, close = convert(b, tolerance, elem), []
        for p, q in zip(flat(b, [x]), flat(b, [y]), strict=True):
            gap = b.one("abs", (b.one("sub", (p, q), elem),), elem)
            close.append(b.one("le", (gap, limit), b1))
        _check(b, _all(b, close), "expect_near", x, y)
