"""Bonds: all constraints that a model can come to have, in MuJoCo's order, and the degrees of freedom that each meets.

A bond is one constraint: an equality, the dry friction of a degree of freedom or tendon, a limit, or a contact. It has
up to six *basis rows* over one list of degrees of freedom. Those of a contact are the directions of its frame (normal,
slides, spin, rolls); edges of a pyramid are sums of two of them, so nothing is ever computed for each edge over all
degrees of freedom. The list of a contact leaves out common ancestors of both bodies, on which its rows are zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import mujoco
import numpy as np

import treadle as wp
from treadle.base.config import config
from treadle.mujoco.collision.pairs import MOST, Pairs
from treadle.mujoco.constraint import kinds
from treadle.mujoco.fields import Fields, constant
from treadle.mujoco.structure import chain, dof_ancestors

LANES = 32  # two vectors of 16: no gang is wider, unless the user asks for that
LIVE = ("nlive", "nliverow", "nlivenumber", "nliveweight", "nlivereach")  # room that follows from ``nconmax`` (`Room`)


class Bond(NamedTuple):
    """One row of the table: ``part`` is the side of a limit, or the number of a contact within its pair; ``reach`` are
    ``dofs`` with their ancestors."""

    kind: int
    id: int
    part: int
    dim: int
    dofs: tuple[int, ...]
    reach: tuple[int, ...] = ()

    def sizes(self) -> tuple[int, ...]:
        """What it takes of the room for `LIVE`."""
        return 1, self.dim, self.dim * len(self.dofs), self.dim * (self.dim + 1) // 2, self.dim * len(self.reach)


@dataclass(frozen=True)
class Room:
    """How many bonds, basis rows, numbers of their Jacobians, weights and reaches a gang needs room for.

    A world takes part with as many contacts as its list has room for (``nconmax``), so what is left out where there are
    more does not depend on who shares a gang, and a gang needs room for what all of its lanes can have together.

    Attributes:
        fixed: of bonds that are no contacts, together.
        contacts: of all contacts together.
        largest: of one contact at most.
    """

    fixed: tuple[int, ...]
    contacts: tuple[int, ...]
    largest: tuple[int, ...]

    @classmethod
    def of(cls, bonds: list[Bond]) -> Room:
        """What the bonds of a model need."""
        fixed = [b for b in bonds if b.kind != kinds.FRICTIONLESS]
        meeting = [b for b in bonds if b.kind == kinds.FRICTIONLESS]
        sizes = np.array([b.sizes() for b in fixed + meeting], int).reshape(-1, len(LIVE))
        start, rest = sizes[: len(fixed)].sum(0), sizes[len(fixed) :]
        return cls(*(tuple(map(int, n)) for n in (start, rest.sum(0), rest.max(axis=0, initial=0))))

    def sizes(self, contacts: int) -> dict[str, int]:
        """Sizes of arrays, if worlds have at most so many contacts."""
        lanes = max(LANES, config.gang_width or 0)
        needs = zip(LIVE, self.fixed, self.contacts, self.largest, strict=True)
        return {symbol: start + min(every, lanes * contacts * one) for symbol, start, every, one in needs}


class Bonds(Fields):
    """The table of bonds (`Bond`): equalities, frictions, limits, contacts, in ranges that ``bond_first`` begins."""

    bond_first = constant("int", "ranges", "first bond: equalities, dry friction, limits, contacts; and the end")
    bond_kind = constant("int", "bonds", "mjtConstraint; of contacts always that without friction")
    bond_id = constant("int", "bonds", "its equality, degree of freedom, joint, tendon or pair")
    bond_part = constant("int", "bonds", "side of a limit; number of a contact within its pair")
    bond_dim = constant("int", "bonds", "number of basis rows")
    bond_num = constant("int", "bonds", "number of degrees of freedom that it meets")
    bond_weights = constant("int", "bonds", "numbers of a symmetric matrix over its basis rows")
    bond_adr = constant("int", "bonds", "first of them in the list")
    bond_couples = constant("int", "bonds", "whether some of them are not ancestors of each other")
    bond_dof = constant("int", "dofs", "degrees of freedom, ascending")
    bond_sign = constant("int", "dofs", "of a contact: 1 where only its second body is moved, -1 where the first is")
    bond_reach = constant("int", "bonds", "number of degrees of freedom that it meets or that are ancestors of these")
    bond_reached = constant("int", "bonds", "first of them in their list")
    reach_dof = constant("int", "reaches", "degrees of freedom, ascending")
    bond_run = constant("int", "bonds", "first run of neighbouring degrees of freedom in its list")
    bond_runs = constant("int", "bonds", "number of runs")
    run_from = constant("int", "runs", "place in the list where a run begins")
    run_to = constant("int", "runs", "and the one behind it")
    run_shift = constant("int", "runs", "degree of freedom less place")
    dof_three = constant("int", "nv", "1 where one ends a path of three (`threes`)")
    pair_first = constant("int", "pairs", "first bond of each pair of geoms")
    pair_most = constant("int", "pairs", "most contacts of each pair")

    def __init__(self, real: Any, mjm: mujoco.MjModel, pairs: Pairs):
        bonds = list(of_model(mjm, pairs))
        ancestors = _ancestors(mjm)
        most = np.array([MOST[how] for how in pairs.methods], int)
        ranges = np.searchsorted([_range(b) for b in bonds], range(5))
        values = {
            "bond_first": ranges,
            **{f"bond_{name}": [getattr(b, name) for b in bonds] for name in ("kind", "id", "part", "dim")},
            "bond_num": [len(b.dofs) for b in bonds],
            "bond_reach": [len(b.reach) for b in bonds],
            "bond_weights": [b.dim * (b.dim + 1) // 2 for b in bonds],
            **_lists(mjm, pairs, bonds, ancestors),
            "dof_three": threes(mjm),
            "pair_first": ranges[3] + np.cumsum(most) - most,
            "pair_most": most,
        }
        sizes = {row.shape[0]: len(values[row.name]) for row in Bonds.rows()}
        super().__init__(real, sizes)
        for row in Bonds.rows():
            self.fill(row, np.array(values[row.name], dtype=np.int32))

    def arrays(self) -> dict[str, wp.array]:
        """All arrays, by name."""
        return {row.name: self.read(row) for row in Bonds.rows()}


def _runs(dofs: Sequence[int]) -> list[tuple[int, int, int]]:
    """Runs of neighbours in an ascending list: ``(place, degree of freedom there, place behind the last)``."""
    starts = [k for k in range(len(dofs)) if k == 0 or dofs[k] != dofs[k - 1] + 1]
    return [(k, dofs[k], end) for k, end in zip(starts, [*starts[1:], len(dofs)])]


def _lists(mjm: mujoco.MjModel, pairs: Pairs, bonds: list[Bond], ancestors: list[set[int]]) -> dict[str, list[int]]:
    """The columns of the table that lists of degrees of freedom fill; bonds with the same list share it."""
    names = ("bond_adr", "bond_run", "bond_runs", "bond_couples", "bond_reached", "bond_dof", "bond_sign",
             "reach_dof", "run_from", "run_to", "run_shift")  # fmt: skip
    found: dict[str, list[int]] = {name: [] for name in names}
    known: dict[tuple[Any, ...], tuple[int, ...]] = {}
    moves = dof_ancestors(mjm)
    for bond in bonds:
        b1, b2 = _bodies(mjm, pairs, bond)
        if (key := (bond.dofs, b1, b2)) not in known:
            runs = _runs(bond.dofs)
            couples = int(any(not ancestors[k].issuperset(bond.dofs[:m]) for m, k in enumerate(bond.dofs)))
            reached = len(found["reach_dof"])
            known[key] = len(found["bond_dof"]), len(found["run_from"]), len(runs), couples, reached
            found["reach_dof"] += bond.reach
            found["bond_dof"] += bond.dofs
            found["bond_sign"] += [int(moves[b2, i] - moves[b1, i]) for i in bond.dofs]
            for begin, first, end in runs:
                for name, value in zip(names[-3:], (begin, end, first - begin)):
                    found[name].append(value)
        for name, value in zip(names, known[key]):
            found[name].append(value)
    return found


def _range(bond: Bond) -> int:
    if bond.kind == kinds.EQUALITY:
        return 0
    if bond.kind in (kinds.FRICTION_DOF, kinds.FRICTION_TENDON):
        return 1
    return 3 if bond.kind == kinds.FRICTIONLESS else 2


def _ancestors(mjm: mujoco.MjModel) -> list[set[int]]:
    """For each degree of freedom those on its way to the world, itself too."""
    return [{i for i in chain(mjm, int(b)) if i <= k} for k, b in enumerate(mjm.dof_bodyid)]


def threes(mjm: mujoco.MjModel) -> list[int]:
    """Which degrees of freedom end a path of three, from the last one on, with all their ancestors in the rows of the
    mass matrix: 1 for each."""
    found, k, ancestors = [0] * mjm.nv, mjm.nv - 1, _ancestors(mjm)
    while k >= 0:
        path = k > 1 and mjm.dof_parentid[k] == k - 1 and mjm.dof_parentid[k - 1] == k - 2
        found[k] = int(path and all(mjm.M_rownnz[i] == len(ancestors[i]) for i in (k - 2, k - 1, k)))
        k -= 3 if found[k] else 1
    return found


def of_model(mjm: mujoco.MjModel, pairs: Pairs) -> Iterator[Bond]:
    """All bonds of a compiled model whose pairs of geoms are given."""
    ancestors, known = _ancestors(mjm), dict[tuple[int, ...], tuple[int, ...]]()
    for bond in _kinds(mjm, pairs):
        if bond.dofs not in known:
            known[bond.dofs] = tuple(sorted(set[int]().union(*[ancestors[i] for i in bond.dofs])))
        yield bond._replace(reach=known[bond.dofs])


def _kinds(mjm: mujoco.MjModel, pairs: Pairs) -> Iterator[Bond]:
    yield from _equalities(mjm)
    for i in range(mjm.nv):
        yield Bond(kinds.FRICTION_DOF, i, 0, 1, (i,))
    for j in range(mjm.ntendon):
        yield Bond(kinds.FRICTION_TENDON, j, 0, 1, _tendon(mjm, j))
    yield from _limits(mjm)
    yield from _contacts(mjm, pairs)


def _tendon(mjm: mujoco.MjModel, *tendons: int) -> tuple[int, ...]:
    found: set[int] = set()
    for j in tendons:
        start = mjm.ten_J_rowadr[j]
        found.update(int(i) for i in mjm.ten_J_colind[start : start + mjm.ten_J_rownnz[j]])
    return tuple(sorted(found))


def _equalities(mjm: mujoco.MjModel) -> Iterator[Bond]:
    for e in range(mjm.neq):
        kind, objects = mjm.eq_type[e], [int(o) for o in (mjm.eq_obj1id[e], mjm.eq_obj2id[e]) if o >= 0]
        if kind in (kinds.CONNECT, kinds.WELD):
            if mjm.eq_objtype[e] == kinds.SITE:
                objects = [int(mjm.site_bodyid[s]) for s in objects]
            dofs = tuple(sorted({i for b in objects for i in chain(mjm, b)}))
            if dofs:  # otherwise neither body can move
                yield Bond(kinds.EQUALITY, e, 0, 3 if kind == kinds.CONNECT else 6, dofs)
        elif kind == kinds.JOINT:
            yield Bond(kinds.EQUALITY, e, 0, 1, tuple(sorted({int(mjm.jnt_dofadr[j]) for j in objects})))
        else:
            yield Bond(kinds.EQUALITY, e, 0, 1, _tendon(mjm, *objects))


def _limits(mjm: mujoco.MjModel) -> Iterator[Bond]:
    for j in range(mjm.njnt):
        i = int(mjm.jnt_dofadr[j])
        if mjm.jnt_limited[j] and mjm.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL:
            yield Bond(kinds.LIMIT_JOINT, j, 0, 1, (i, i + 1, i + 2))
        elif mjm.jnt_limited[j] and mjm.jnt_type[j] != mujoco.mjtJoint.mjJNT_FREE:
            for side in range(2):
                yield Bond(kinds.LIMIT_JOINT, j, side, 1, (i,))
    for j in range(mjm.ntendon):
        for side in range(2 if mjm.tendon_limited[j] else 0):
            yield Bond(kinds.LIMIT_TENDON, j, side, 1, _tendon(mjm, j))


def _contacts(mjm: mujoco.MjModel, pairs: Pairs) -> Iterator[Bond]:
    chains = [set(chain(mjm, b)) for b in range(mjm.nbody)]
    for p, (g1, g2, number, how) in enumerate(zip(pairs.geom1, pairs.geom2, pairs.explicit, pairs.methods)):
        dofs = tuple(sorted(chains[mjm.geom_bodyid[g1]] ^ chains[mjm.geom_bodyid[g2]]))
        for k in range(MOST[how]):
            yield Bond(kinds.FRICTIONLESS, p, k, _dimension(mjm, g1, g2, number), dofs)


def _dimension(mjm: mujoco.MjModel, g1: int, g2: int, number: int) -> int:
    if number >= 0:
        return int(mjm.pair_dim[number])
    (dim1, dim2), (rank1, rank2) = mjm.geom_condim[[g1, g2]], mjm.geom_priority[[g1, g2]]
    return int(max(dim1, dim2) if rank1 == rank2 else dim1 if rank1 > rank2 else dim2)


def _bodies(mjm: mujoco.MjModel, pairs: Pairs, bond: Bond) -> tuple[int, int]:
    if bond.kind != kinds.FRICTIONLESS:
        return 0, 0
    return int(mjm.geom_bodyid[pairs.geom1[bond.id]]), int(mjm.geom_bodyid[pairs.geom2[bond.id]])
