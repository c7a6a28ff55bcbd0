"""The tree of degrees of freedom of a gang: that of the model, with those on one path that a bond joins.

What a symmetric matrix has in the columns of each row's ancestors, and nowhere else, its factor has, too. The matrix of
a model without bonds has that tree of bodies. A bond that joins branches needs one in which its degrees of freedom are
ancestors of each other (J. W. H. Liu, *The role of elimination trees in sparse factorization*, SIAM J. Matrix Anal.
Appl. 11, 1990). All lanes of a gang share a tree; what a lane does not need is zero there.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index
from treadle.mujoco.constraint.live import entry

ints2 = wp.array2d(dtype=int)


@cache
def trees() -> SimpleNamespace:
    """The kernel functions ``number`` and ``arrange``.

    A tree is ``(parent, three, up, deep, at)``: of the model the parents (-1 if there is none) and which end a path of
    three; of the gang the parents, the numbers of ancestors, and where rows begin.
    """

    @wp.func(inline=True)
    def number(w: int, k: int, of: ints2):
        """One of the gang's numbers."""
        return wp.same_lane(of[w, index(k)])

    @wp.func(inline=True)
    def join(w: int, low: int, high: int, up: ints2):
        """Put two degrees of freedom on one path, the lower one nearer to the root: a step into the path of the higher
        one where it is missing there, and then the same for what came next."""
        a, b = low, high
        while a >= 0 and a != b:  # a < b
            p = number(w, b, up)
            if p < a:
                up[w, index(b)] = a
                b = a
                a = p
            else:
                b = p

    @wp.func(inline=True)
    def arrange(w: int, bonds: Any, joins: Any, tree: Any):
        """Fill the gang's tree: that of the model, with what bonds join on one path."""
        live, listed, bond_kind, bond_dim, parts = bonds
        bond_couples, bond_num, bond_adr, bond_dof = joins
        parent, three, up, deep, at = tree
        nv = up.shape[1]
        for k in range(nv):
            up[w, k] = parent[k]
        for i in range(live):
            t = entry(w, i, listed[0])
            if bond_couples[t] != 0:
                for m in range(index(bond_adr[t]) + 1, bond_adr[t] + bond_num[t]):
                    join(w, bond_dof[m - 1], bond_dof[m], up)
        begin = int(0)
        for k in range(nv):
            p, d = number(w, k, up), int(0)
            if p >= 0:
                d = number(w, p, deep) + 1
            deep[w, k] = d
            at[w, k] = begin
            begin = begin + d + 1

    return SimpleNamespace(number=number, arrange=arrange)
