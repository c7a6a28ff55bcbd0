"""Launches that follow each other as one kernel, made for the tables that they read (`passes/resolve.py`).

Who asks for it says which memory holds tables: their content is part of the program, as are extents of arrays and
numbers among the arguments. Values go from launch to launch in registers; results keep their bits, so that the kernel
may take the place of the launches at any time. That needs what `resolved` asks of them, and that nobody writes to the
tables as long as the kernel is in use: who asks for it sees to that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.digest import digest
from ..runtime import cache as disk
from ..runtime.capture import Launch
from ..runtime.chains import Chain, fit, uses_of
from ..runtime.memory import addressed, span
from ..runtime.transients import Transients
from ..types.core import Scalar, View
from ..types.records import ARGS_BYTES
from .merged import Parameter, concatenated, draft_of, launch_of, one_parameter_each, origins_of, parameters_of
from .targets import collector_off, native_width

if TYPE_CHECKING:
    from ..ir.node import Func

NONE = "none"  # the note that there is no such kernel
_CODES = {"bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}


def resolved(
    members: list[Launch], blocks: Transients, tables: Collection[int], used: Callable[[int], bool]
) -> Launch | None:
    """The launch that does all of ``members``; None where it is not to be had.

    Args:
        members: launches over a grid of one dimension, which whole gangs fill, that may be one chain
            (`chains.fit`): memory that one writes and another touches is reached at the thread's own index alone.
        blocks: transient memory; other memory lies apart if its addresses do.
        tables: addresses of arrays that do not change.
        used: whether somebody else looks at the block at an address.
    """
    from ..codegen.workers import Job
    from ..passes.resolve import Known

    origins, uses = origins_of(members), [uses_of(m) for m in members]
    if origins is None or None in uses or not fit(members, uses) or len(members[0].dims) != 1:
        return None
    width = min(native_width(), origins[0][2].width)
    if members[0].dims[0] % width:
        return None
    chain = Chain(members, uses)

    def dead(address: int) -> bool:
        block = blocks.at(address)
        return block is not None and not used(block.address)

    parameters, places = parameters_of(members, dead)
    if not one_parameter_each(chain, places):
        return None
    known, numbers = {}, {}
    for k, p in enumerate(parameters):
        if isinstance(p.type, View):
            known[k] = Known(*_known(p, tables))
        elif isinstance(p.type, Scalar) and not p.type.is_float:
            (numbers[k],) = struct.unpack_from("<" + _CODES[p.type.name], p.content)
    keys = [m.program.entry.meta.get("key", "") for m in members]
    pattern = [[*place] for place in places], [p.dead for p in parameters], numbers
    contents = [(k, shape, None if c is None else c.tobytes()) for k, (shape, c) in known.items()]
    key = digest("resolved", str(width), *keys, repr(pattern), repr(contents))
    if not all(keys):
        return None
    binary = disk.load(key)
    if binary is None:
        if disk.note(key) == NONE:
            return None
        with collector_off():
            func = _joined(origins, keys, parameters, places)
            if func is None:
                return None
            # Gangs of one vector: there are no loops whose overhead more of them would share, and registers are few.
            fill = "full" if width > 1 else ""
            options = origins[0][2]._replace(width=width, fill=fill, active=None, aliased=())
            draft = _draft(func, options, parameters, known, numbers)
        if draft is None:
            disk.keep_note(key, NONE)
            return None
        binary = disk.store(key, draft.binary(Job(draft.text, draft.target).begin().code()))
    return launch_of(binary, members, [parameters[k] for k in binary.meta["kept"]])


def _known(p: Parameter, tables: Collection[int]) -> tuple[tuple[int, ...], np.ndarray | None]:
    """Extents of an array, and its content if it is a table of integers."""
    t = p.type
    assert isinstance(t, View)
    from ..ir.scalars import dtype_of

    address, _, *shape = struct.unpack_from(f"<{2 + t.ndim}q", p.content)
    if address not in tables or not isinstance(t.elem, Scalar) or t.elem.is_float:
        return tuple(shape), None
    steps = struct.unpack_from(f"<{t.ndim}q", p.content, 16 + 8 * t.ndim)
    low, high = span(tuple(shape), steps, t.elem.size)
    memory = addressed(address + low, high - low, None)
    return tuple(shape), np.ndarray(tuple(shape), dtype_of(t.elem), memory, -low, steps).copy()


def _joined(origins: list[Any], keys: list[str], parameters: list[Parameter], places: list[list[int]]) -> Func | None:
    """The programs one behind the other, if each parameter is one value. Kernels are parsed one by one."""
    from .compile import one_by_one

    with one_by_one:
        func = concatenated(origins, keys, parameters, places)
    return func if func is not None and len(func.params) == len(parameters) else None


def _draft(
    func: Func, options: Any, parameters: list[Parameter], known: dict[int, Any], numbers: dict[int, Any]
) -> Any:  # fmt: skip
    """LLVM text for what is known of the parameters; None where it cannot be had. Passes and emitter share nothing that
    another thread could change, so that others may compile meanwhile."""
    from ..ir.walk import ops_of
    from ..passes.cse import share_common
    from ..passes.dce import remove_dead
    from ..passes.flatten import flatten_cheap
    from ..passes.overwritten import drop_overwritten, drop_unread
    from ..passes.resolve import Unresolved, resolve
    from ..passes.simplify import settle

    values = func.params
    try:
        func = resolve(func, {values[k]: v for k, v in known.items()}, {values[k]: v for k, v in numbers.items()})
    except Unresolved:
        return None
    func = remove_dead(drop_overwritten(remove_dead(share_common(settle(func)))))
    func = remove_dead(drop_unread(func, [v for v, p in zip(values, parameters, strict=True) if p.dead]))
    func = remove_dead(flatten_cheap(func))
    used = {a for op in ops_of(func.body) for a in op.args}
    kept = [k for k, v in enumerate(values) if v in used]
    if sum([len(parameters[k].content) for k in kept]) > ARGS_BYTES // 2:
        return None
    func = replace(func, params=tuple([values[k] for k in kept]), names=tuple([func.names[k] for k in kept]),
                   signature=tuple([func.signature[k] for k in kept]))  # fmt: skip
    draft = draft_of(func, options)
    if draft is not None:
        draft.meta["kept"] = kept
    return draft
