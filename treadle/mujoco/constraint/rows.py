"""Where rows of constraints are kept, and how one is written.

Rows of a world are packed in MuJoCo's order: equality, dry friction of joints and tendons, limits of joints and
tendons, contacts. A writer leaves the Jacobian of a row and what is known of it (`spec`); `impedance` makes stiffness,
damping and regularisation of all rows afterwards. The cursor ``n`` of a world counts on where there is no room, so in
the end it says how many rows were needed.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import types

ints = wp.array(dtype=int)
ints2 = wp.array2d(dtype=int)

# numbers that a writer leaves of a row, in the order of `spec` below
POS = wp.constant(0)
NORM = wp.constant(1)
MARGIN = wp.constant(2)
DIAG = wp.constant(3)
LOSS = wp.constant(4)
FRICTION = wp.constant(5)
SOLREF = wp.constant(6)
SOLIMP = wp.constant(8)


@cache
def writers(real: Any) -> SimpleNamespace:
    """The kernel functions ``spec`` and ``put`` for one precision."""
    t = types(real)
    vec2, vec5, numbers = t.vec2, t.vec5, t.spec

    @wp.func
    def spec(
        pos: real, norm: real, margin: real, diag: real, loss: real, friction: real, solref: vec2, solimp: vec5,
    ):  # fmt: skip
        """What is known of a row.

        Its position, the position that impedance looks at, its margin, the inverse mass that it feels, dry friction, a
        friction coefficient, and the parameters of softness.
        """
        return numbers(
            pos, norm, margin, diag, loss, friction,
            solref[0], solref[1], solimp[0], solimp[1], solimp[2], solimp[3], solimp[4],
        )  # fmt: skip

    @wp.func
    def put(
        w: int, n: int, kind: int, id: int, dim: int, known: numbers,
        efc_type: ints2, efc_id: ints2, efc_dim: ints2, efc_spec: wp.array2d(dtype=numbers),
    ):  # fmt: skip
        """Write all of row ``n`` but its Jacobian. ``dim`` is the number of rows of a contact that begins here, 0
        within one, 1 elsewhere."""
        if n < efc_type.shape[1]:
            efc_type[w, n] = kind
            efc_id[w, n] = id
            efc_dim[w, n] = dim
            efc_spec[w, n] = known

    return SimpleNamespace(spec=spec, put=put)
