"""Springs that yield: beyond a threshold of extension their place of rest goes along (ideal elasto-plasticity).

What has yielded is state: of a slide or hinge its position at rest, of a ball its orientation, of a tendon the lengths
between which its spring rests (MuJoCo documentation, XML reference, springyield). Stages of springs read places of
rest of worlds, ``qpos_rest`` and ``length_rest``, where models without such springs have those of the model.
"""

from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.algebra import algebra, row, types
from treadle.mujoco.binding import launch
from treadle.mujoco.constants import BALL, SPRING, TENDON_FIXED
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model

ints = wp.array(dtype=int)


def given(m: Model) -> dict[str, wp.array]:
    """The model's own places of rest."""
    return {"given_qpos": m.field("qpos_spring"), "given_length": m.field("tendon_lengthspring")}


def plastic_rest(m: Model, d: Data, **other: Any) -> None:
    """Places of rest, with what has yielded: ``qpos_rest length_rest``."""
    launch(kernels(d.real)["plastic_rest"], m, d, **given(m), **other)


@cache
def kernels(real: Any) -> dict[str, wp.Kernel]:
    """The kernels of this file for one precision, by stage name."""
    return {**_rest(real), **_yielding(real), **_beginning(real)}


def _rest(real: Any) -> dict[str, wp.Kernel]:
    vec2 = types(real).vec2
    numbers = wp.array2d(dtype=real)

    @wp.kernel
    def plastic_rest(
        jnt_type: ints, jnt_qposadr: ints, jnt_plasticadr: ints, tendon_plasticadr: ints, given_qpos: numbers,
        given_length: wp.array2d(dtype=vec2), plastic: numbers, qpos_rest: numbers, length_rest: wp.array2d(dtype=vec2),
    ):  # fmt: skip
        """Places of rest: the model's, or those that have yielded."""
        w = wp.tid()
        for i in range(qpos_rest.shape[1]):
            qpos_rest[w, i] = given_qpos[row(w, given_qpos), i]
        for j in range(jnt_type.shape[0]):
            a = jnt_plasticadr[j]
            if a >= 0:
                for k in range(wp.where(jnt_type[j] == BALL, 4, 1)):
                    qpos_rest[w, jnt_qposadr[j] + k] = plastic[w, a + k]
        for t in range(tendon_plasticadr.shape[0]):
            a = tendon_plasticadr[t]
            length_rest[w, t] = given_length[row(w, given_length), t]
            if a >= 0:
                length_rest[w, t] = vec2(plastic[w, a], plastic[w, a + 1])

    return dict(plastic_rest=plastic_rest)


def _yielding(real: Any) -> dict[str, wp.Kernel]:
    t, a = types(real), algebra(real)
    quat, unit_quat, sub_quat, integrate_quat = t.quat, a.unit_quat, a.sub_quat, a.integrate_quat
    numbers = wp.array2d(dtype=real)

    @wp.kernel
    def springs_yield(
        opt_disableflags: int, opt_timestep: wp.array(dtype=real), jnt_type: ints, jnt_qposadr: ints,
        jnt_plasticadr: ints, jnt_springyield: numbers, tendon_type: ints, tendon_adr: ints, tendon_num: ints,
        tendon_plasticadr: ints, tendon_springyield: numbers, wrap_objid: ints, wrap_prm: wp.array(dtype=real),
        ten_J_rownnz: ints, ten_J_rowadr: ints, ten_J_colind: ints, ten_J: numbers, ten_length: numbers,
        qvel_integrated: numbers, qpos: numbers, plastic: numbers,
    ):  # fmt: skip
        """After positions have changed: what is beyond its threshold comes to rest at the threshold from here."""
        w = wp.tid()
        zero = real(0.0)
        if (opt_disableflags & SPRING) == 0:
            for j in range(jnt_type.shape[0]):
                p, q = jnt_plasticadr[j], jnt_qposadr[j]
                most = wp.max(jnt_springyield[row(w, jnt_springyield), j], zero)
                if p >= 0 and jnt_type[j] == BALL:
                    now = unit_quat(quat(qpos[w, q], qpos[w, q + 1], qpos[w, q + 2], qpos[w, q + 3]))
                    rest = quat(plastic[w, p], plastic[w, p + 1], plastic[w, p + 2], plastic[w, p + 3])
                    away = sub_quat(now, rest)
                    angle = wp.length(away)
                    if angle > most:
                        rest = integrate_quat(rest, away, (angle - most) / angle)
                        for k in range(4):
                            plastic[w, p + k] = rest[k]
                elif p >= 0:
                    plastic[w, p] = wp.clamp(plastic[w, p], qpos[w, q] - most, qpos[w, q] + most)
            for k in range(tendon_type.shape[0]):
                p = tendon_plasticadr[k]
                if p >= 0:
                    length = ten_length[w, k]
                    if tendon_type[k] == TENDON_FIXED:
                        length = zero
                        for x in range(tendon_adr[k], tendon_adr[k] + tendon_num[k]):
                            length = length + wrap_prm[x] * qpos[w, jnt_qposadr[wrap_objid[x]]]
                    else:  # as far as its velocity says
                        h = opt_timestep[row(w, opt_timestep)]
                        for e in range(ten_J_rowadr[k], ten_J_rowadr[k] + ten_J_rownnz[k]):
                            length = length + h * ten_J[w, e] * qvel_integrated[w, ten_J_colind[e]]
                    low, high = plastic[w, p], plastic[w, p + 1]
                    most = wp.max(tendon_springyield[row(w, tendon_springyield), k], zero)
                    longer, shorter = length - high - most, length - low + most
                    if longer > zero:
                        if low != zero or high <= zero:  # a rope stays slack at any length below
                            plastic[w, p] = low + longer
                        plastic[w, p + 1] = high + longer
                    elif shorter < zero:
                        plastic[w, p] = low + shorter
                        plastic[w, p + 1] = high + shorter

    return dict(springs_yield=springs_yield)


def _beginning(real: Any) -> dict[str, wp.Kernel]:
    vec2 = types(real).vec2
    numbers = wp.array2d(dtype=real)

    @wp.kernel
    def begin_plastic(
        reset_key: ints, jnt_type: ints, jnt_qposadr: ints, jnt_plasticadr: ints, tendon_plasticadr: ints,
        given_qpos: numbers, given_length: wp.array2d(dtype=vec2), key_plastic: numbers, plastic: numbers,
    ):  # fmt: skip
        """In worlds that are reset nothing has yielded, or what the keyframe says."""
        w = wp.tid()
        key = reset_key[w]
        if key > -2:
            for j in range(jnt_type.shape[0]):
                a = jnt_plasticadr[j]
                if a >= 0:
                    for k in range(wp.where(jnt_type[j] == BALL, 4, 1)):
                        plastic[w, a + k] = given_qpos[row(w, given_qpos), jnt_qposadr[j] + k]
            for t in range(tendon_plasticadr.shape[0]):
                a = tendon_plasticadr[t]
                if a >= 0:
                    rest = given_length[row(w, given_length), t]
                    plastic[w, a] = rest[0]
                    plastic[w, a + 1] = rest[1]
        if key >= 0:
            for k in range(plastic.shape[1]):
                plastic[w, k] = key_plastic[key, k]

    return dict(begin_plastic=begin_plastic)
