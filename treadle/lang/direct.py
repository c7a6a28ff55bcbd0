"""Builtins that Python calls often: the definition becomes machine code, and a call costs about a microsecond.

The first calls of a builtin with arguments of some classes are evaluated by the oracle, which needs no compiling. What
is called again and again is compiled like a kernel, of one thread and one lane. In both, products are rounded before
they are added, so that the digits are the same.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.config import config
from ..base.digest import digest
from ..ir.builder import Builder
from ..ir.node import Func, Value
from ..types.composite_values import give_buffer
from ..types.core import Matrix, Scalar, Type, Vector, b1, f32, f64, i32, vector, view
from ..types.layout import children
from ..types.numbers import c_type, code
from ..types.promotion import limits
from ..types.scalar_values import ScalarValue, shown
from ..types.values import class_of

OFTEN = 12  # calls of one kind before it is compiled, which takes as long as some tens of them by the oracle

_libraries: list[Any] = []  # the code that callers lead to stays loaded


def direct(match: Any, name: str, classes: Sequence[type], slow: Callable[..., Any]) -> Callable[..., Any] | None:
    """A function that calls a builtin for arguments of these classes; None where that must be left to the oracle.

    Args:
        match: what the registry chose.
        name: that of the builtin.
        classes: of the arguments, all given by position.
        slow: is called instead where an int is out of the range of its type.
    """
    from ..ir.walk import ops_of

    types = tuple(match.types)
    if match.updates or match.known is not None or not all([_is_value(t) for t in types]):
        return None
    made = _kernel(match, name, types)
    if made is None:
        return None
    func, results = made
    # What a thread reports or prints, and what others see of it, is left to the oracle.
    if any([op.name in ("check", "print", "atomic") for op in ops_of(func.body)]):
        return None
    return _caller(_address(func), classes, types, results, slow)


def _is_value(t: Type | None) -> bool:
    return isinstance(t, Scalar) or type(t) in (Vector, Matrix)


def _kept(t: Type) -> Type:
    """The type in which Python keeps a ``t``: 16-bit floats lie in wider ones."""
    if isinstance(t, Scalar):
        return f64 if t.is_float and t.bits == 16 else t
    return vector(t.n, f32 if t.elem.is_float and t.elem.bits == 16 else t.elem)


def _kernel(match: Any, name: str, types: tuple[Type, ...]) -> tuple[Func, tuple[Type, ...]] | None:
    """The lowered kernel that calls the builtin once, and the types of the results; None where it has no code."""
    from ..passes.fma import leave_products
    from ..passes.pipeline import LOWER, NORMALIZE, RELEASE, run

    b = Builder()
    params = [Value(_kept(t)) for t in types]
    made = match.emit(b, [_converted(b, p, t) for p, t in zip(params, types, strict=True)])
    results = made if isinstance(made, tuple) else () if made is None else (made,)
    if not results or not all([_is_value(r.type) for r in results]):
        return None
    for r in results:
        kept = _kept(r.type)
        params.append(Value(view(kept, 1)))
        b.op("store", (params[-1], b.i32(0), _converted(b, r, kept)))
    signature = tuple([p.type for p in params])
    func = Func(name, "kernel", tuple(params), b.block(), signature, tuple([f"a{k}" for k in range(len(params))]))
    return run((*NORMALIZE, *RELEASE, *LOWER), leave_products(func)), tuple([r.type for r in results])


def _converted(b: Builder, x: Value, t: Type) -> Value:
    """``x`` in type ``t``, which has as many scalars, perhaps wider or narrower ones."""
    if x.type is t:
        return x
    if isinstance(t, Scalar):
        return b.one("cast", (x,), t)
    parts = [_converted(b, part, wanted) for part, wanted in zip(b.parts(x), children(t), strict=True)]
    return b.one("make", tuple(parts), t)


def _address(func: Func) -> int:
    """Where the machine code of ``func`` lies, as the C function that ``codegen.native.direct`` describes."""
    from ..codegen import cpu
    from ..codegen.native import direct as native
    from ..codegen.native import revision
    from ..ir.show import show
    from ..runtime import cache as disk
    from ..runtime.loader import link
    from .targets import collector_off, compiler_version, host

    target = host(1)
    key = digest(compiler_version(), revision(), show(func), target.key(), native.SYMBOL)
    binary = disk.load(key)
    if binary is None:
        with collector_off():
            made = cpu.draft(func, target)
            text = f"{made.text}\n{native.direct(func.signature, made.symbol)}"
            binary = disk.store(key, replace(made, text=text, symbol=native.SYMBOL).binary())
    _libraries.append(link(binary))
    return _libraries[-1].addresses[native.SYMBOL]


def _caller(
    address: int, classes: Sequence[type], types: tuple[Type, ...], results: tuple[Type, ...], slow: Callable[..., Any]
) -> Callable[..., Any]:
    """The function in Python around the code at ``address``. It is written for these classes, as text: a loop over
    arguments would take longer than the call."""
    alone = results[0] if len(results) == 1 else None
    returned = alone if isinstance(alone, Scalar) else None
    words = [c_type(_kept(t)) if isinstance(t, Scalar) else ctypes.c_void_p for t in types]
    words += [] if returned else [ctypes.c_void_p] * len(results)
    # Python's lock is kept: the calls are short.
    prototype = ctypes.PYFUNCTYPE(None if returned is None else c_type(_kept(returned)), *words)
    names: dict[str, Any] = {"code": prototype(address), "slow": slow, "array": array, "new": object.__new__}
    names["give_buffer"] = give_buffer
    listed = ", ".join([f"a{k}" for k in range(len(types))])
    tests = [_in_range(f"a{k}", t) for k, (c, t) in enumerate(zip(classes, types, strict=True)) if c is int]
    lines = [f"def call({listed}):"]
    if tests:
        lines += [f"    if not ({' and '.join(tests)}):", f"        return slow({listed})"]
    given = [_read(f"a{k}", c) for k, c in enumerate(classes)]
    if returned is not None:
        call = f"code({', '.join(given)})"
        if returned in (b1, f32, i32):
            lines.append(f"    return {call}")
        else:  # as types.scalar_values.shown does it
            names["config"], names["kind"] = config, class_of(returned)
            lines += [f"    x = {call}", "    if config.legacy_scalar_return_types:", "        return x"]
            lines += ["    made = new(kind)", "    made.value = x", "    return made"]
    else:
        for k, t in enumerate(results):
            names[f"zero{k}"] = bytes(_kept(t).size)
            letter = code(_kept(t) if isinstance(t, Scalar) else t.elem)
            lines.append(f"    r{k} = array({letter!r}, zero{k})")
        pointers = [f"r{k}.buffer_info()[0]" for k in range(len(results))]
        lines.append(f"    code({', '.join([*given, *pointers])})")
        for k, t in enumerate(results):
            names[f"t{k}"], names["shown"] = t if isinstance(t, Scalar) else class_of(t), shown
            lines += [f"    v{k} = {_made(k, t)}"] + ([] if isinstance(t, Scalar) else [f"    give_buffer(v{k}, r{k})"])
        lines.append(f"    return {', '.join([f'v{k}' for k in range(len(results))])}")
    exec("\n".join(lines), names)
    return names["call"]


def _in_range(name: str, t: Scalar) -> str:
    """The test whether an int adapts to ``t`` as the one that it was compiled for did."""
    low, high = limits(t) if t.is_int else (-(1 << 31), (1 << 31) - 1)
    return f"{low} <= {name} <= {high}"


def _read(name: str, c: type) -> str:
    """An argument as the C function takes it."""
    if issubclass(c, ScalarValue):
        return f"{name}.value"
    if issubclass(c, np.generic):
        return f"{name}.item()"
    return name if issubclass(c, int | float) else f"{name}._data.buffer_info()[0]"


def _made(k: int, t: Type) -> str:
    """Result ``k`` as users see it; of a composite, an instance that gets its components yet."""
    return f"shown(t{k}, r{k}[0])" if isinstance(t, Scalar) else f"new(t{k})"
