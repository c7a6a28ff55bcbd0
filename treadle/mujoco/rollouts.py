"""Many steps in a row: with controls given in advance, or with those that a policy returns between steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import treadle as wp
from treadle.frontend.names import near
from treadle.mujoco.arguments import shown, steps, whole
from treadle.mujoco.contents import contents, seen
from treadle.mujoco.data import Data
from treadle.mujoco.fields import Field
from treadle.mujoco.model import Model
from treadle.mujoco.public import step
from treadle.mujoco.stages import check_match
from treadle.runtime.foreign import lies_far

Policy = Callable[[Data, int], Any]


def rollout(
    m: Model,
    d: Data,
    controls: Any = None,
    *,
    nstep: int | None = None,
    fields: Sequence[str] = ("time", "qpos", "qvel"),
    every: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, np.ndarray]:
    """Step all worlds, and keep what became of them. ``d`` is left at the end.

    Args:
        m: the model.
        d: the worlds, where they start.
        controls: the controls of all steps, of shape ``(nworld, nstep, nu)`` as in MuJoCo's rollout, or ``(nstep, nu)``
            for all worlds alike; or a policy ``controls(d, k)`` that is called before step k and returns ``(nworld,
            nu)`` numbers, or None to leave ``d.ctrl`` as it set it; or None: the controls that stand in ``d``. Arrays
            of NumPy, PyTorch (also with gradients), JAX and treadle are taken as they are.
        nstep: number of steps; with controls in advance, theirs.
        fields: names of fields of ``d`` to keep. Those of the state are of the end of a step, derived ones
            (``sensordata``, ``xpos``, ``qacc``) of its start, as in MuJoCo.
        every: keep them after every so many steps, and count these as one row.
        progress: called as ``progress(done, nstep)`` after each step.

    Returns:
        an array for each field, of shape ``(nworld, nstep // every, …)``.

    Raises:
        TypeError: an argument is of a wrong type.
        ValueError: shapes do not fit, or nobody says how many steps to take, or nothing would be kept.
        AttributeError: there is no such field.

    Example:
        >>> import mujoco, numpy as np, treadle.mujoco as mjw
        >>> body = "<body><joint name='j' axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> drive = "<actuator><position joint='j' kp='3'/></actuator>"
        >>> xml = f"<mujoco><worldbody>{body}</worldbody>{drive}</mujoco>"
        >>> m = mjw.put_model(mujoco.MjModel.from_xml_string(xml))
        >>> d = mjw.make_data(m, nworld=3)
        >>> way = mjw.rollout(m, d, np.zeros((3, 50, 1)), fields=("qpos",))
        >>> way["qpos"].shape
        (3, 50, 1)
        >>> def hold(d, k):
        ...     return -0.5 * d.qvel.numpy()
        >>> mjw.rollout(m, d, hold, nstep=20, every=10)["time"].shape
        (3, 2)
    """
    check_match(m, d)
    policy, nstep = _policy(d, controls, nstep)
    if whole("every", every, 1) > nstep:
        raise ValueError(f"every is from 1 to nstep = {nstep}, not {every}")
    if isinstance(fields, str) or not isinstance(fields, Iterable):
        raise TypeError(f"fields is a sequence of names, such as ('qpos',), not {shown(fields)}")
    fields = tuple(fields)
    if not fields:
        raise ValueError("fields is empty, so nothing would be kept: name some, such as ('qpos',)")
    for name in fields:
        if not isinstance(name, str) or not isinstance(getattr(Data, name, None), Field):
            raise AttributeError(f"there is no field {name} of Data; {near(str(name), [r.name for r in Data.rows()])}")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is a function of two numbers, not {shown(progress)}")
    kept: dict[str, np.ndarray] = {}
    for k in range(nstep):
        given = policy(d, k)
        if given is not None:
            set_controls(d, given)
        step(m, d)
        if (k + 1) % every == 0:
            for name in fields:
                values = getattr(d, name).numpy()
                if name not in kept:
                    kept[name] = np.empty((d.nworld, nstep // every, *values.shape[1:]), values.dtype)
                kept[name][:, k // every] = values
        if progress is not None:
            progress(k + 1, nstep)
    d.check()
    return kept


def set_controls(d: Data, values: Any) -> None:
    """Write ``values``, ``(nworld, nu)`` numbers of any library, or ``(nu,)`` for all worlds, to ``d.ctrl``.

    Raises:
        TypeError: they are no numbers.
        ValueError: the shape does not fit.
    """
    numbers, nu = _numbers(values), d.sizes["nu"]
    if numbers.shape not in ((d.nworld, nu), (nu,)):
        raise ValueError(f"controls of a step have shape ({d.nworld}, {nu}) or ({nu},), not {numbers.shape}")
    with contents(d.ctrl) as ctrl:
        ctrl[...] = numbers


def _numbers(controls: Any) -> np.ndarray:
    """Controls as an array of numbers."""
    found = as_numpy(controls)
    if not (np.issubdtype(found.dtype, np.number) or found.dtype == bool) or np.iscomplexobj(found):
        raise TypeError(f"controls are numbers, or a policy, not {shown(controls)}")
    return found


def as_numpy(values: Any) -> np.ndarray:
    """What an array of any library holds, without a copy where it lies in the memory of this computer."""
    if isinstance(values, wp.array):
        return values.numpy()
    if getattr(values, "requires_grad", False):
        values = values.detach()
    return seen(values).numpy() if lies_far(values) else np.asarray(values)


def _policy(d: Data, controls: Any, nstep: int | None) -> tuple[Policy, int]:
    """Controls of any kind as a policy, and the number of steps."""
    if controls is None or callable(controls):
        if nstep is None:
            raise ValueError("nstep is needed, as controls do not say how many steps to take")
        return controls or (lambda d, k: None), steps(nstep)
    numbers, nu = _numbers(controls), d.sizes["nu"]
    if numbers.ndim == 2:
        numbers = np.broadcast_to(numbers, (d.nworld, *numbers.shape))
    if numbers.ndim != 3 or numbers.shape[0] != d.nworld or numbers.shape[2] != nu:
        raise ValueError(f"controls have shape ({d.nworld}, nstep, {nu}) or (nstep, {nu}), not {np.shape(controls)}")
    nstep = steps(numbers.shape[1] if nstep is None else nstep)
    if nstep > numbers.shape[1]:
        raise ValueError(f"nstep is {nstep}, but there are controls for {numbers.shape[1]} steps")
    return (lambda d, k: numbers[:, k]), nstep
