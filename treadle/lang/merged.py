"""A chain of short launches as one kernel: values go from one to the next in registers.

The lowered programs stand one behind the other, over one set of parameters: the same view in several launches is one
parameter. What a thread stores and loads again is then known (``passes/cse.py``), what it stores twice is stored once,
and arrays that nobody can see are not stored to at all. Roundings were decided before, so results keep their bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.digest import digest
from ..runtime import cache as disk
from ..runtime.capture import Launch
from ..runtime.chains import Chain, Use
from ..runtime.launch import Program
from ..types.core import Type, View
from ..types.layout import leaves
from ..types.records import ARGS_BYTES
from .targets import collector_off, host, host_device

if TYPE_CHECKING:
    from ..ir.node import Func

MOST_WORK = 8.0  # ns a thread, as the compiler guesses, from which on arithmetic rules and nothing is gained
PLAIN_FACTS = {"ndim", "order", "adjoint", "replays", "winners", "seen", "kept"}


class Parameter(NamedTuple):
    """A parameter of the merged kernel: its type, its bytes, its name; whether nobody sees the array afterwards."""

    type: Type
    content: bytes
    name: str
    dead: bool


def merged(chain: Chain) -> Launch | None:
    """The launch that does all of a chain; None where it is not to be had."""
    members = chain.members
    origins = origins_of(members)
    if origins is None or sum([m.program.entry.meta.get("weight", 1.0) for m in members]) > MOST_WORK:
        return None
    patched = {struct.unpack_from("<Q", m.packed, patch.at)[0]
               for m, patches in zip(members, chain.patches, strict=True) for patch in patches}  # fmt: skip
    parameters, places = parameters_of(members, patched.__contains__)
    if not one_parameter_each(chain, places) or sum([len(p.content) for p in parameters]) > ARGS_BYTES // 2:
        return None
    pattern = [[*place] for place in places], [p.dead for p in parameters]
    keys = [m.program.entry.meta.get("key", "") for m in members]
    key = digest("merged", origins[0][2].fill, *keys, repr(pattern))
    binary = disk.load(key) if all(keys) else None
    if binary is None:
        binary = _built(origins, keys, parameters, places)
        if binary is None:
            return None
        binary = disk.store(key, binary)
    return launch_of(binary, members, parameters)


def launch_of(binary: Any, members: list[Launch], parameters: list[Parameter]) -> Launch:
    """The launch of ``binary``, which has ``parameters``, in place of ``members``."""
    first = members[0].program
    types = tuple([p.type for p in parameters])
    name = " + ".join(dict.fromkeys(m.program.name for m in members))
    program = Program(host_device().load(binary), types, name, [p.name for p in parameters], False, first.rank,
                      first.last_min, first.last_max)  # fmt: skip
    packed = bytearray(program.args_size)
    for offset, p in zip(program.offsets, parameters, strict=True):
        packed[offset : offset + len(p.content)] = p.content
    return Launch(program, bytes(packed), members[0].dims)


def origins_of(members: list[Launch]) -> list[Any] | None:
    """What each launch was compiled from; None where that is not known, or gangs and grids differ."""
    origins = [m.program.origin and (m.program.origin[0](), *m.program.origin[1:]) for m in members]
    if not all([origin and origin[0] is not None for origin in origins]):
        return None
    first = origins[0][2]
    alike = all(o.width == first.width and (o.rows, o.grid) == (first.rows, first.grid) for _, _, o in origins)
    if not alike or any(o.checked or o.races or o.tangents is not None for _, _, o in origins):
        return None
    return origins


def parameters_of(members: list[Launch], dead: Callable[[int], bool]) -> tuple[list[Parameter], list[list[int]]]:
    """The parameters of all members, equal views once; for each member, which of them its own are. ``dead``: of an
    address, whether nobody sees what is there afterwards."""
    found: list[Parameter] = []
    known: dict[Any, int] = {}
    places = []
    for n, member in enumerate(members):
        program, own = member.program, []
        for t, offset, name in zip(program.signature, program.offsets, program.parameters, strict=True):
            content = member.packed[offset : offset + t.size]
            key = (t, content) if isinstance(t, View) else object()
            if key not in known:
                known[key] = len(found)
                gone = isinstance(t, View) and dead(struct.unpack_from("<Q", content)[0])
                found.append(Parameter(t, content, f"{name}{n}", gone))
            own.append(known[key])
        places.append(own)
    return found, places


def one_parameter_each(chain: Chain, places: list[list[int]]) -> bool:
    """Whether memory that is written is reached by one parameter, or the gradient of one, alone."""
    reached: list[tuple[Use, tuple[int, int]]] = []
    for member, uses, own in zip(chain.members, chain.uses, places, strict=True):
        starts = [*member.program.offsets]
        for u in uses:
            k = max(k for k, start in enumerate(starts) if start <= u.at)
            reached.append((u, (own[k], u.at - starts[k])))
    return all(
        one == other or not (u.written or v.written) or u.high <= v.low or v.high <= u.low
        for n, (u, one) in enumerate(reached) for v, other in reached[:n]
    )  # fmt: skip


def _built(origins: list[Any], keys: list[str], parameters: list[Parameter], places: list[list[int]]) -> Any:
    from ..passes.cse import share_common
    from ..passes.dce import remove_dead
    from ..passes.overwritten import drop_overwritten, drop_unread, forward_stored

    with collector_off():
        func = concatenated(origins, keys, parameters, places)
        if func is None:
            return None
        func = remove_dead(drop_overwritten(forward_stored(share_common(func))))
        dead = [v for v, p in zip(func.params, expanded(parameters), strict=True) if p.dead]
        func = remove_dead(drop_unread(func, dead))
        draft = draft_of(func, origins[0][2]._replace(active=None, aliased=()))
        return None if draft is None else draft.binary()


def draft_of(func: Func, options: Any) -> Any:
    """LLVM text of a merged program; None where threads would have to keep an order."""
    from ..ir.effects import effects
    from .compile import Translation

    found = effects(func)
    if found.order != "free":
        return None
    func = replace(func, facts={**func.facts, "order": "free"})
    return Translation("", func, found, options, host(options.lanes), None).draft()


def expanded(parameters: list[Parameter]) -> list[Parameter]:
    """For each value that a parameter consists of, the parameter."""
    return [p for p in parameters for _ in leaves(p.type)]


def concatenated(
    origins: list[Any], keys: list[str], parameters: list[Parameter], places: list[list[int]]
) -> Func | None:
    """The lowered programs one behind the other; None where the source of one means something else now."""
    from ..ir.node import Block, Func, Op, Value
    from ..passes.inline import copied
    from .compile import translate

    values = [[Value(leaf.type, p.name) for leaf in leaves(p.type)] for p in parameters]
    ops: list[Op] = []
    for (kernel, types, options), key, own in zip(origins, keys, places, strict=True):
        made = translate(kernel, types, options)
        if made.key != key or not PLAIN_FACTS.issuperset(made.func.facts):
            return None
        env = dict(zip(made.func.params, [v for k in own for v in values[k]], strict=True))
        ops += copied(made.func.body, env).ops
    flat = tuple([v for each in values for v in each])
    facts = {"ndim": made.func.facts.get("ndim", 0)}
    return Func("merged", "kernel", flat, Block((), tuple(ops), ()), tuple([p.type for p in parameters]),
                tuple([p.name for p in parameters]), facts)  # fmt: skip
