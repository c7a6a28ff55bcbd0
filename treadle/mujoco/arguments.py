"""What users pass is looked at here, so that an error names the argument, what came, and what was expected."""

from __future__ import annotations

import operator
from typing import Any

import mujoco

import treadle as wp

PRECISIONS = (wp.float32, wp.float64)


def whole(name: str, value: Any, least: int | None = None) -> int:
    """``value`` as an integer, not below ``least``.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is less than ``least``.
    """
    try:
        number = operator.index(value)
    except TypeError:
        bound = "" if least is None else f", at least {least}"
        raise TypeError(f"{name} is an integer{bound}, not {shown(value)}") from None
    if least is not None and number < least:
        raise ValueError(f"{name} is at least {least}, not {number}")
    return number


MOST_STEPS = 2**31 - 1  # of one call: native code counts them so


def steps(nstep: Any) -> int:
    """A number of steps.

    Raises:
        TypeError, ValueError: it is no whole number, less than 1, or more than `MOST_STEPS`.
    """
    number = whole("nstep", nstep, 1)
    if number > MOST_STEPS:
        raise ValueError(f"nstep is at most {MOST_STEPS}, not {number}")
    return number


def room(name: str, value: Any) -> int | None:
    """A capacity: None where it is to be computed."""
    return None if value is None else whole(name, value, 0)


def precision(dtype: Any, given: Any = None) -> Any:
    """The precision ``dtype``; if it is None that of the model, ``given``, or single.

    Raises:
        TypeError: there is no such precision, or the model has another one.
    """
    real = wp.float32 if dtype is float else dtype
    if not any(real is known for known in (None, *PRECISIONS)):
        raise TypeError(f"dtype is wp.float32 or wp.float64, not {shown(dtype)}")
    if None not in (real, given) and real is not given:
        raise TypeError(f"dtype is {real.__name__}, but the model is of {given.__name__}")
    return real or given or wp.float32


def instance(name: str, value: Any, kinds: type | tuple[type, ...], maker: str) -> None:
    """Raise a TypeError if ``value`` is none of ``kinds``; ``maker`` says in words what is expected."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {maker}, not {shown(value)}")


def of_model(name: str, mjd: mujoco.MjData, mjm: mujoco.MjModel) -> None:
    """Raise if ``mjd`` is no data of MuJoCo's, or of another model.

    Raises:
        TypeError: it is of another type.
        ValueError: its sizes are others.
    """
    instance(name, mjd, mujoco.MjData, "MuJoCo's MjData")
    for field, size in (("qpos", "nq"), ("qvel", "nv"), ("act", "na"), ("ctrl", "nu"), ("xpos", "nbody"),
                        ("geom_xpos", "ngeom"), ("site_xpos", "nsite"), ("ten_length", "ntendon"),
                        ("sensordata", "nsensordata"), ("eq_active", "neq")):  # fmt: skip
        here, there = len(getattr(mjd, field)), int(getattr(mjm, size))
        if here != there:
            raise ValueError(f"{name} has {size} = {here}, the model {there}: it was made for another model")


def shown(value: Any) -> str:
    """A value of a wrong type, in few words."""
    text = repr(value)
    if not isinstance(value, type) and len(text) <= 60 and "\n" not in text and not text.startswith("<"):
        return text
    kind = value if isinstance(value, type) else type(value)
    package = kind.__module__.partition(".")[0]
    plain = "" if isinstance(value, type) else "a "
    owner = plain if package in ("builtins", "__main__") else f"{package}'s "
    shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") and not isinstance(value, type) else ""
    return f"{owner}{kind.__name__}{shape}"
