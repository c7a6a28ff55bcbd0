"""Native launchers: one callable a kernel, ``launch(dim, inputs, outputs)``, that takes usual launches in native code.

It knows *programs* (:func:`add`) and uses the first whose argument types are exactly those given. Its code relies on
where CPython keeps things inside its objects, which is checked here first; where the check fails (other interpreters,
free-threaded builds) launchers decline everything, and each launch goes the way of :mod:`treadle.runtime.launch`.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import sys
import weakref
from collections.abc import Callable, Collection
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import TreadleError
from ..types.core import (
    SCALARS,
    Bucketed,
    Indexed,
    Matrix,
    Scalar,
    Struct,
    Type,
    Vector,
    View,
    b1,
    bf16,
    f16,
    f32,
    i32,
    vector,
)
from ..types.records import (
    ARGS_BYTES,
    BYTES,
    ENV,
    FLOAT,
    ITEMS,
    LAUNCHER,
    MAX_THREADS,
    NONE_TOO,
    PARAM,
    PARAM_KINDS,
    READ_ONLY,
    READ_ONLY_TOO,
    REPORT,
    SIZE,
    TWIN,
    TYPE,
    VIEWED,
    Memory,
)
from ..types.values import class_of
from . import native, writes
from .array import array, build
from .indexed import indexedarray
from .launch import Program, table

MAX_PROGRAMS = 16
Launcher = Callable[[Any, Any, Any], Any]

_METH_FASTCALL, _METH_NOARGS = 0x0080, 0x0004
_REPORT = struct.Struct(f"<{len(REPORT.at)}q")


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _State:
    """What a launcher is bound to; lives as long as the launcher."""

    __slots__ = ("programs", "record")

    def __init__(self, env: int):
        self.record = Memory(LAUNCHER)
        self.record["env"] = env
        self.programs: list[Program] = []


_states: weakref.WeakKeyDictionary[Any, _State] = weakref.WeakKeyDictionary()
_programs: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()
_keys = itertools.count(1)
_methods: dict[int, _MethodDef] = {}  # by address of their code


def launcher(env: Memory | None = None) -> Launcher:
    """A new launcher that knows no program yet. ``launch(dim, inputs, outputs)`` gives None when the launch is done,
    NotImplemented where nothing was done, or a report for :func:`error`. ``env``: what it runs them by, if that is not
    the driver of the CPU."""
    if not usable():
        return lambda dim, inputs, outputs: NotImplemented
    state = _State((env or native.driver().env).address)
    made = _callable(_library().addresses["treadle_launch"], state.record.address, _METH_FASTCALL)
    _states[made] = state
    return made


@cache
def _library() -> native.Library:
    """The code of launchers; it stays for ever, as Python frees them when it likes."""
    library = native.helper("launcher", lambda: native.room().launcher_binary())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    _fill(native.driver().env)
    writes.clear = _callable(library.addresses["treadle_clear"], native.driver().env.address, _METH_FASTCALL)
    return library


def environment(drive: int) -> Memory:
    """What launchers are bound to whose programs are run by the native function at address ``drive``."""
    _library()
    own, made = native.driver().env, Memory(ENV)
    for name in ENV.at:
        made[name] = own[name]
    made["drive"], made["capturing"] = drive, 0
    return made


def without_arguments(code: int, context: int) -> Callable[[], Any] | None:
    """A Python callable for the native function at address ``code``, which is given bytes that hold ``context``; None
    where this interpreter keeps its objects in another way. The code must stay for ever."""
    if not usable():
        return None
    _library()
    return _callable(code, context, _METH_NOARGS)


def _callable(code: int, context: int, kind: int) -> Any:
    method = _methods.get(code)  # Python reads it while it frees the callable, so it stays
    if method is None:
        method = _methods[code] = _MethodDef(b"launch", code, kind, b"Launch a kernel or a graph.")
    return _new_function()(ctypes.addressof(method), struct.pack("<Q", context), None)


@cache
def _new_function() -> Callable[[int, Any, None], Launcher]:
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make


def add(launch: Launcher, program: Program, alone: bool = False, exact: Collection[int] = (), entry: int = 0) -> None:
    """Let ``launch`` use ``program``, before those it knows. Left out are programs that print or look for races, and
    those that have parameters of unusual types. A program for arrays that lie over each other is used where the one of
    the same types and grids, which must be known, finds that they do; or always, if ``launch`` has no others
    (``alone``). Parameters at the places ``exact`` take a Python number only where their type is the one that it has by
    itself: they tell which program is meant. ``entry``: what stands for the code of a program of another device."""
    state = _states.get(launch)
    rows = _parameters(program, exact)
    unusual = program.entry.meta.get("prints") or program.entry.meta.get("races")
    if entry:
        program.record["entry"] = entry
    elif program.entry.address == 0:
        return
    if state is None or rows is None or unusual:
        return
    if not program.record["key"]:
        program.record["key"] = key = next(_keys)
        _programs[key] = program
    if program.shared and not alone:
        for other in state.programs:
            if _alike(other, program):
                other.record["shared"], other.instead = program.record.address, program
        return
    # Other threads launch meanwhile: what they look at goes only once nothing leads there.
    before, rows_before, parameters = state.programs, getattr(program, "parameter_table", None), table(rows)
    program.record["params"] = parameters.buffer_info()[0]
    program.parameter_table = parameters
    kept = [p for p in before if p is not program][: MAX_PROGRAMS - 1]
    state.programs = sorted([program, *kept], key=_generality)
    for this, following in zip(state.programs, [*state.programs[1:], None], strict=True):
        this.record["next"] = following.record.address if following is not None else 0
    state.record["first"] = state.programs[0].record.address
    del before, rows_before


def _generality(program: Program) -> bool:
    """What programs are tried by: those for few grids come first."""
    return not program.last_bits and program.last_max == MAX_THREADS


def _alike(a: Program, b: Program) -> bool:
    """Whether both are for the same arguments and grids."""
    return all(
        getattr(a, what) == getattr(b, what)
        for what in ("signature", "checked", "rank", "last_min", "last_max", "last_bits")
    )


def error(report: bytes) -> TreadleError:
    """The exception for a report of a launcher."""
    key, rank, *rest = _REPORT.unpack(report)
    dims, fault = rest[:rank], report[REPORT["state"] :]
    return _programs[key].error(fault, dims)


_USUAL = {f32: float, i32: int, b1: bool}  # classes of Python's numbers, by the types that these have by themselves
_BUFFERED = tuple(t for t in SCALARS if t not in (b1, f16, bf16))  # host vectors of these keep them as memory does


def packs(t: Type) -> bool:
    """Whether a launcher can take arguments of type ``t``."""
    return _rows([_Part(t, 0)]) is not None


def _parameters(program: Program, exact: Collection[int]) -> list[tuple[int, ...]] | None:
    """The rows of the program's parameter table, or None where the launcher cannot pack its arguments."""
    if program.args_size > ARGS_BYTES:
        return None
    given = enumerate(zip(program.signature, program.offsets, strict=True))
    mark, stored = program.entry.device.mark, program.stored
    return _rows([_Part(t, offset, place in exact, False, 0, mark, (place,), stored) for place, (t, offset) in given])


def _rows(parts: list[_Part]) -> list[tuple[int, ...]] | None:
    """A row for each of ``parts``, and behind them, level by level, rows for what structs and indexed arrays are made
    of."""
    rows: list[tuple[int, ...]] = []
    for part in parts:  # grows meanwhile
        row = _number(part) if isinstance(part.type, Scalar) else _whole(part)
        if row is None:
            inner = _parts_of(part)
            if not inner:
                return None
            kind, what = ("struct", class_of(part.type)) if _is_struct(part.type) else ("indexed", part.type)
            row = (PARAM_KINDS[kind], (len(parts) - len(rows)) * PARAM.size, id(what), len(inner), 0)
            parts += inner
        rows.append((*row, part.slot))
    return rows


class _Part(NamedTuple):
    """A parameter, or a part of one. ``exact``: a Python number only of the class that means its type. ``none``: None
    stands for no array. ``slot``: where an instance of the struct around it holds it. ``mark``: what arrays of the
    device have in their types' ids. ``path``: the parameter and the fields that lead to it. ``stored``: the paths of
    all arrays that the kernel writes; None if that is not known."""

    type: Type
    offset: int
    exact: bool = False
    none: bool = False
    slot: int = 0
    mark: int = 0
    path: tuple[int, ...] = ()
    stored: Collection[tuple[int, ...]] | None = None


def _is_struct(t: Type) -> bool:
    """Whether ``t`` is a struct of the user's."""
    return isinstance(t, Struct) and not isinstance(t, Indexed)


def _number(part: _Part) -> tuple[int, ...] | None:
    t = part.type
    if t not in SCALARS or t is f16 or t is bf16 or (part.exact and t not in _USUAL):
        return None
    return PARAM_KINDS[t.name], part.offset, id(_USUAL[t]) if part.exact else 0, 0, id(class_of(t))


def _whole(part: _Part) -> tuple[int, ...] | None:
    """The row of an array, vector or matrix; None for others."""
    t = part.type
    if isinstance(t, View):
        reads = part.stored is not None and part.path not in part.stored
        too = NONE_TOO * part.none + READ_ONLY_TOO * reads
        return PARAM_KINDS["view"], part.offset, id(t) + part.mark, t.ndim, too
    if isinstance(t, Vector | Matrix) and t.elem in _BUFFERED:
        return PARAM_KINDS["composite"], part.offset, id(class_of(t)), t.size, 0
    return None


def _parts_of(part: _Part) -> list[_Part] | None:
    """The fields of a struct or the arrays of an indexed one; None for others."""
    t = part.type
    if isinstance(t, Indexed):
        found = [
            part._replace(type=inner, offset=part.offset + at, exact=False, none=False, path=(*part.path, i))
            for i, ((_, inner), at) in enumerate(zip(t.fields, t.offsets, strict=True))
        ]
        return None if isinstance(t, Bucketed) or part.slot else found
    if not _is_struct(t):
        return None
    cls = class_of(t)
    declared = cls.__treadle_type__.fields  # a field without an array has the type that was declared
    return [
        part._replace(type=inner, offset=part.offset + at, exact=False, none=inner is usual,
                      slot=_slot_offset(cls, name), path=(*part.path, i))  # fmt: skip
        for i, ((name, inner), at, (_, usual)) in enumerate(zip(t.fields, t.offsets, declared, strict=True))
    ]


@cache
def twin() -> Callable[..., array]:
    """What makes an array like another, of the CPU, without gradient and without memory of its own: ``twin(like, owner,
    address)`` lies at ``address``, in memory that ``owner`` keeps; ``twin(like, owner)`` where the owner, a memoryview,
    begins. It is in a hurry: nothing is checked."""
    text = b"treadle!"
    shown = memoryview(text)
    if not usable() or _word(id(shown) + VIEWED) != id(text) + BYTES:
        return _twin_by_python
    record = Memory(TWIN)
    for name, function in {
        "as_number": "PyLong_AsUnsignedLongLong", "from_number": "PyLong_FromUnsignedLongLong",
        "bytes_from": "PyBytes_FromStringAndSize", "incref": "Py_IncRef", "decref": "Py_DecRef",
    }.items():  # fmt: skip
        record[name] = native.symbol_address(function)
    slot = ctypes.pythonapi.PyType_GetSlot
    slot.restype, slot.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    record["new"], record["no_arguments"] = slot(object, _TP_NEW), id(())
    for name, of in (("desc", "_desc"), ("address", "_address"), ("owner", "_ref")):
        record[name] = _slot_offset(array, of)
    for k, of in enumerate(_ALIKE):
        record[f"slot{k}"] = _slot_offset(array, of)
    _records.append(record)
    return _callable(_library().addresses["treadle_twin"], record.address, _METH_FASTCALL)


_TP_NEW = 65  # number of the slot for `__new__` in CPython's types
_ALIKE = ("_at", "_element", "_grad", "_memory", "component_stride", "device", "shape", "strides", "type")
_records: list[Memory] = []  # they stay for ever, as the code does


def _twin_by_python(like: array, owner: Any, address: int | None = None) -> array:
    if address is None:
        address = np.asarray(owner).ctypes.data
    return build(like._element, like.shape, like.strides, like.component_stride, address, None, 0, like.device, owner,
                 like.type, READ_ONLY * like.read_only)  # fmt: skip


def _fill(env: Memory) -> None:
    """Tell native code where Python's functions and constants are."""
    for name, thing in {
        "none": None, "not_implemented": NotImplemented, "true": True, "false": False, "float_type": float,
        "long_type": int, "list_type": list, "tuple_type": tuple, "array_type": array,
        "indexed_type": indexedarray,
        "keyboard_interrupt": KeyboardInterrupt,
    }.items():  # fmt: skip
        env[name] = id(thing)
    for name, function in {
        "as_long_long": "PyLong_AsLongLongAndOverflow", "bytes_from": "PyBytes_FromStringAndSize",
        "check_signals": "PyErr_CheckSignals", "set_none": "PyErr_SetNone", "incref": "Py_IncRef",
    }.items():  # fmt: skip
        env[name] = native.symbol_address(function)
    env["type_offset"], env["parts_offset"] = (_slot_offset(indexedarray, name) for name in ("type", "_parts"))
    env["value_offset"] = _slot_offset(class_of(f32), "value")
    env["desc_offset"], env["data_offset"] = (
        _slot_offset(array, "_desc"),
        _slot_offset(class_of(vector(3, f32)), "_data"),
    )


def _slot_offset(cls: type, name: str) -> int:
    """Where a slot lies in instances: CPython's member descriptor has a pointer to ``{name, type, offset, …}``."""
    descriptor = next(c.__dict__[name] for c in cls.__mro__ if name in c.__dict__)
    member = ctypes.c_void_p.from_address(id(descriptor) + 40).value or 0
    return ctypes.c_ssize_t.from_address(member + 16).value


_checked: bool | None = None


def usable() -> bool:
    """Whether this interpreter keeps its objects as the native launcher expects; looked at once."""
    global _checked
    if _checked is None:
        plain = sys.implementation.name == "cpython" and "free-threading" not in sys.version
        _checked = plain and ctypes.sizeof(ctypes.c_void_p) == 8 and _layout_holds()
    return _checked


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _layout_holds() -> bool:
    """Compare the offsets with objects whose content is known."""
    from .construct import zeros

    places = zeros(1, dtype=int)
    parts = indexedarray(zeros(1), places)
    number, text, pair, items = 2.5, b"treadle!", (None, True), [False, None, True]
    probe, host, single = zeros(1), class_of(vector(3, f32))(1.0, 2.0, 3.0), class_of(f32)(2.5)
    return (
        all(_word(id(x) + TYPE) == id(type(x)) for x in (number, text, pair, items, probe, 7, None))
        and ctypes.c_double.from_address(id(number) + FLOAT).value == number
        and ctypes.string_at(id(text) + BYTES, len(text)) == text
        and (_word(id(pair) + SIZE), _word(id(pair) + ITEMS + 8)) == (2, id(True))
        and (_word(id(items) + SIZE), _word(_word(id(items) + ITEMS) + 16)) == (3, id(True))
        and 0 < _slot_offset(array, "_desc") < array.__basicsize__
        and _word(id(probe) + _slot_offset(array, "_desc")) == id(probe._desc)
        and 0 < _slot_offset(type(single), "value") < type(single).__basicsize__
        and _word(id(single) + _slot_offset(type(single), "value")) == id(single.value)
        and 0 < _slot_offset(indexedarray, "_parts") < indexedarray.__basicsize__
        and _word(id(parts) + _slot_offset(indexedarray, "_parts")) == id(parts._parts)
        and _word(id(parts) + _slot_offset(indexedarray, "type")) == id(parts.type)
        and _word(id(parts._parts) + ITEMS + 8) == id(places)
        and 0 < _slot_offset(type(host), "_data") < type(host).__basicsize__
        and _word(id(host) + _slot_offset(type(host), "_data")) == id(host._data)
        and ctypes.string_at(_word(id(host._data) + ITEMS), 12) == struct.pack("<3f", 1, 2, 3)
    )
