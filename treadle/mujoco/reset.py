"""Putting worlds back to where they start: the reference pose or a keyframe."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import treadle as wp
from treadle.mujoco import history, plastic
from treadle.mujoco.algebra import row, types
from treadle.mujoco.arguments import whole
from treadle.mujoco.binding import launch
from treadle.mujoco.contents import brought_to
from treadle.mujoco.data import WARM, Data
from treadle.mujoco.fields import Fields
from treadle.mujoco.model import Model
from treadle.mujoco.stages import check_match

ints = wp.array(dtype=int)
REFERENCE = wp.constant(-1)  # in place of a keyframe's number: the reference pose
LEFT = wp.constant(-2)  # the world goes on


def reset_data(m: Model, d: Data, reset: Any = None) -> None:
    """Put worlds back to the reference pose, at rest, at time 0, without controls and forces.

    Args:
        m: the model.
        d: the worlds.
        reset: an array (of any library) or a list of ``nworld`` bools or integers; worlds with False or 0 go on. None
            resets all. Captures on a GPU keep what memory of the host held.

    Raises:
        TypeError: these are no model and data of ours, or ``reset`` holds neither bools nor integers.
        ValueError: ``reset`` has another shape, or the data was made for another model.

    Derived fields stay as they are until the next forward or step.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> mjm = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
        >>> m, d = mjw.put_model(mjm), mjw.make_data(mjm, nworld=3)
        >>> mjw.step(m, d, nstep=10)
        >>> mjw.reset_data(m, d, [True, False, True])
        >>> print(d.time.numpy().round(3))
        [0.   0.02 0.  ]
    """
    check_match(m, d)
    if reset is None:
        d._late -= {WARM}  # all warm starts are 0 then
        d.field("reset_key").fill_(REFERENCE)
    else:
        wp.launch(mark, dim=d.nworld, inputs=[_of_each_world("reset", reset, d), d.field("reset_key")])
    _reset(m, d)


def reset_data_keyframe(m: Model, d: Data, key: Any) -> None:
    """Put worlds to keyframes of the model.

    Args:
        m: the model.
        d: the worlds.
        key: the number of a keyframe, for all worlds; or an array (of any library) or a list of ``nworld`` numbers:
            worlds with the number of no keyframe go on.

    Raises:
        TypeError: these are no model and data of ours, or ``key`` holds no integers.
        ValueError: there is no keyframe ``key``, or the array has another shape, or the data that of another model.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> keys = "<keyframe><key qpos='1'/><key qpos='2'/></keyframe>"
        >>> mjm = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody>{keys}</mujoco>")
        >>> m, d = mjw.put_model(mjm), mjw.make_data(mjm, nworld=3)
        >>> mjw.reset_data_keyframe(m, d, [1, -1, 0])
        >>> print(d.qpos.numpy()[:, 0])
        [2. 0. 1.]
    """
    check_match(m, d)
    if isinstance(key, list | tuple) or getattr(key, "shape", ()) != ():
        keys = _of_each_world("key", key, d)
        wp.launch(mark_keys, dim=d.nworld, inputs=[keys, m.nkey, d.field("reset_key")])
    else:
        if not 0 <= whole("key", key) < m.nkey:
            raise ValueError(f"there is no keyframe {key}: the model has {m.nkey}")
        d.field("reset_key").fill_(int(key))
    _reset(m, d)


def _of_each_world(name: str, values: Any, d: Data) -> Any:
    """``values`` as an array for kernels over worlds, which must have one bool or integer for each world."""
    values = values if hasattr(values, "shape") else np.asarray(values)
    if tuple(values.shape) != (d.nworld,):
        raise ValueError(f"{name} has shape {tuple(values.shape)}, not ({d.nworld},)")
    if isinstance(values, np.ndarray):  # in the byte order of this machine
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
    kind = str(values.dtype) if not isinstance(values, wp.array) else values.dtype.__name__
    if "int" not in kind and "bool" not in kind:
        raise TypeError(f"{name} holds bools or integers, one for each world, not {kind}")
    return brought_to(d.field("reset_key").device, values)


def _reset(m: Model, d: Data) -> None:
    given = {"xfrc_applied": d.read(Data.xfrc_applied)}
    if not m.constrained:  # no solver starts warm, so the last accelerations need not be computed for it
        given["qacc_warmstart"] = Fields.read(d, Data.qacc_warmstart)
    launch(reset_kernel(d.real), m, d, **given)
    _begin(m, d)
    d.moved()


def begin_anew(m: Model, d: Data) -> None:
    """After a step: worlds whose state it has reset begin without a past."""
    if m.nhistory or m.nplastic:
        wp.launch(mark_lost, dim=d.nworld, inputs=[d.field("time"), d.field("reset_key")])
        _begin(m, d)


def _begin(m: Model, d: Data) -> None:
    """Put back what worlds remember besides their state."""
    if m.nhistory:
        launch(history.kernels(d.real)["begin_history"], m, d)
    if m.nplastic:
        launch(plastic.kernels(d.real)["begin_plastic"], m, d, **plastic.given(m))


@wp.kernel
def mark_lost(time: wp.array(dtype=Any), reset_key: ints):
    """The reference pose where a step has just led to it: after a step only these worlds are at time 0."""
    w = wp.tid()
    reset_key[w] = LEFT
    if time[w] == 0.0:
        reset_key[w] = REFERENCE


@wp.kernel
def mark(reset: wp.array(dtype=Any), reset_key: ints):
    """The reference pose where ``reset`` says so."""
    w = wp.tid()
    reset_key[w] = LEFT
    if reset[w]:
        reset_key[w] = REFERENCE


@wp.kernel
def mark_keys(key: wp.array(dtype=Any), nkey: int, reset_key: ints):
    """The keyframes ``key``, where there are such."""
    w = wp.tid()
    reset_key[w] = LEFT
    if key[w] >= 0 and key[w] < nkey:
        reset_key[w] = int(key[w])


@cache
def reset_kernel(real: Any) -> wp.Kernel:
    """The kernel behind `reset_data` and `reset_data_keyframe`."""
    t = types(real)
    vec3, quat, spatial = t.vec3, t.quat, t.spatial
    numbers = wp.array2d(dtype=real)

    @wp.kernel
    def reset_worlds(
        reset_key: ints, pushed: bool, body_mocapid: ints, body_pos: wp.array2d(dtype=vec3),
        body_quat: wp.array2d(dtype=quat), eq_active0: ints, qpos0: numbers, key_time: wp.array(dtype=real),
        key_qpos: numbers, key_qvel: numbers, key_act: numbers, key_ctrl: numbers,
        key_mpos: wp.array2d(dtype=vec3), key_mquat: wp.array2d(dtype=quat),
        time: wp.array(dtype=real), qpos: numbers, qvel: numbers, act: numbers, qacc_warmstart: numbers,
        ctrl: numbers, qfrc_applied: numbers, xfrc_applied: wp.array2d(dtype=spatial),
        mocap_pos: wp.array2d(dtype=vec3), mocap_quat: wp.array2d(dtype=quat), eq_active: wp.array2d(dtype=int),
        warned: wp.array2d(dtype=int),
    ):  # fmt: skip
        w = wp.tid()
        k = reset_key[w]
        framed = k >= 0
        k = wp.max(k, 0)
        zero = real(0.0)
        if reset_key[w] >= REFERENCE:
            time[w] = zero
            for i in range(warned.shape[1]):
                warned[w, i] = 0
            for i in range(qpos.shape[1]):
                qpos[w, i] = qpos0[row(w, qpos0), i]
            for i in range(qvel.shape[1]):
                qvel[w, i] = zero
                qfrc_applied[w, i] = zero
                qacc_warmstart[w, i] = zero
            for i in range(act.shape[1]):
                act[w, i] = zero
            for i in range(ctrl.shape[1]):
                ctrl[w, i] = zero
            for i in range(eq_active.shape[1]):
                eq_active[w, i] = eq_active0[i]
            for b in range(body_mocapid.shape[0]):
                if body_mocapid[b] >= 0:
                    mocap_pos[w, body_mocapid[b]] = body_pos[row(w, body_pos), b]
                    mocap_quat[w, body_mocapid[b]] = body_quat[row(w, body_quat), b]
            if pushed:
                for b in range(xfrc_applied.shape[1]):
                    xfrc_applied[w, b] = spatial()
        if framed:
            time[w] = key_time[k]
            for i in range(qpos.shape[1]):
                qpos[w, i] = key_qpos[k, i]
            for i in range(qvel.shape[1]):
                qvel[w, i] = key_qvel[k, i]
            for i in range(act.shape[1]):
                act[w, i] = key_act[k, i]
            for i in range(ctrl.shape[1]):
                ctrl[w, i] = key_ctrl[k, i]
            for i in range(mocap_pos.shape[1]):
                mocap_pos[w, i] = key_mpos[k, i]
                mocap_quat[w, i] = key_mquat[k, i]

    return reset_worlds
