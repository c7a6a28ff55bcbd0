"""Products with the Jacobian of live bonds, each over the degrees of freedom that the bond meets.

A bond's numbers lie row after row. Its degrees of freedom are runs of neighbours, over which loops just count.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import index
from treadle.mujoco.constraint.live import entry


@cache
def bond_products(real: Any) -> SimpleNamespace:
    """The kernel functions ``mul_b`` and ``add_bt`` for one precision.

    ``bonds`` is ``(live, listed, bond_kind, bond_dim, parts)`` (`constraint.live`), ``jacobian`` ``(bond_num, bond_run,
    bond_runs, run_from, run_to, run_shift, live_J)``.
    """
    matrix = wp.array2d(dtype=real)

    @wp.func(inline=True)
    def mul_b(w: int, bonds: Any, jacobian: Any, x: matrix, out: matrix):
        """``out = B x``, by basis rows."""
        live, listed, bond_kind, bond_dim, parts = bonds
        bond_num, bond_run, bond_runs, run_from, run_to, run_shift, J = jacobian
        bond, row, number, weight = listed
        for i in range(live):
            t, r, j = entry(w, i, bond), entry(w, i, row), entry(w, i, number)
            dim, num, first, runs = index(bond_dim[t]), index(bond_num[t]), index(bond_run[t]), bond_runs[t]
            if dim == 3:
                y0, y1, y2 = real(0.0), real(0.0), real(0.0)
                for q in range(first, first + runs):
                    shift = index(run_shift[q])
                    for m in range(index(run_from[q]), run_to[q]):
                        v = x[w, shift + m]
                        y0 = y0 + J[w, j + m] * v
                        y1 = y1 + J[w, j + num + m] * v
                        y2 = y2 + J[w, j + 2 * num + m] * v
                out[w, r] = y0
                out[w, r + 1] = y1
                out[w, r + 2] = y2
            else:
                for s in range(dim):
                    y = real(0.0)
                    for q in range(first, first + runs):
                        shift = index(run_shift[q])
                        for m in range(index(run_from[q]), run_to[q]):
                            y = y + J[w, j + s * num + m] * x[w, shift + m]
                    out[w, r + s] = y

    @wp.func(inline=True)
    def add_bt(w: int, sign: real, bonds: Any, jacobian: Any, force: matrix, out: matrix):
        """``out += sign B' force``, where any lane has a force."""
        live, listed, bond_kind, bond_dim, parts = bonds
        bond_num, bond_run, bond_runs, run_from, run_to, run_shift, J = jacobian
        bond, row, number, weight = listed
        for i in range(live):
            t, r, j = entry(w, i, bond), entry(w, i, row), entry(w, i, number)
            dim, num, first, runs = index(bond_dim[t]), index(bond_num[t]), index(bond_run[t]), bond_runs[t]
            if dim == 3:
                f0, f1, f2 = sign * force[w, r], sign * force[w, r + 1], sign * force[w, r + 2]
                if wp.any_lane(wp.abs(f0) + wp.abs(f1) + wp.abs(f2) != real(0.0)):
                    for q in range(first, first + runs):
                        shift = index(run_shift[q])
                        for m in range(index(run_from[q]), run_to[q]):
                            y = out[w, shift + m] + J[w, j + m] * f0 + J[w, j + num + m] * f1
                            out[w, shift + m] = y + J[w, j + 2 * num + m] * f2
            else:
                for s in range(dim):
                    f = sign * force[w, r + s]
                    if wp.any_lane(f != real(0.0)):
                        for q in range(first, first + runs):
                            shift = index(run_shift[q])
                            for m in range(index(run_from[q]), run_to[q]):
                                out[w, shift + m] = out[w, shift + m] + J[w, j + s * num + m] * f

    return SimpleNamespace(mul_b=mul_b, add_bt=add_bt)
