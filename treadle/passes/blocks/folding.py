"""Loops that join all their rounds by one operation, as sums of integers and minima: threads join neighbouring rounds,
then what they found, always earlier rounds before later ones. Such operations are associative, so bits stay; sums of
floats are not, and are left to each thread."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.node import Op, Value
from ...ir.walk import uses_of
from ...types.core import Scalar
from .footprint import Program
from .independent import Divider

WORTH = 32  # rounds
_JOIN = {"min", "max"}  # of all numbers: the earlier one, if they are equal
_EXACT = {"add", "mul", "bitand", "bitor", "bitxor"}  # of integers


@dataclass(frozen=True, slots=True)
class Fold:
    """``join``: the op that joins what is carried with a round's ``value``."""

    join: Op
    value: Value
    rounds: int


def fold_of(op: Op, program: Program, divider: Divider) -> Fold | None:
    """What a loop joins, if it does nothing else."""
    if op.name != "for" or len(op.args) != 4 or op.attrs.get("stays"):
        return None
    touched, rounds = program.of(op), divider.rounds(op)
    if touched.writes or touched.taped or touched.alone or rounds is None or rounds < WORTH:
        return None
    (region,) = op.regions
    carried, (out,) = region.params[1], region.yields
    join = program.made.get(out)
    if join is None or join not in region.ops or not isinstance(carried.type, Scalar) or len(join.args) != 2:
        return None
    if join.name not in _JOIN and not (join.name in _EXACT and carried.type.is_int):
        return None
    uses = uses_of(region)
    if join.args[0] is not carried or uses[carried] != 1 or uses[out] != 1:
        return None
    return Fold(join, join.args[1], rounds)
