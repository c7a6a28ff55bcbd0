"""Kernels' parameters are named after fields, which is how a launch finds its arguments."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import treadle as wp
from treadle.mujoco.data import Data
from treadle.mujoco.model import Model, Option


@cache
def parameters(kernel: wp.Kernel) -> tuple[str, ...]:
    """Names of a kernel's parameters: they are names of fields."""
    return tuple(inspect.signature(kernel.func).parameters)


def bind(kernel: wp.Kernel, m: Model, d: Data, **other: Any) -> list[Any]:
    """Arguments of ``kernel`` by the names of its parameters: fields of ``m.opt``, ``m`` and ``d``, or ``other``."""

    def argument(name: str) -> Any:
        if name in other:
            return other[name]
        if m.nplastic:  # springs may have yielded (`plastic`)
            name = {"qpos_spring": "qpos_rest", "tendon_lengthspring": "length_rest"}.get(name, name)
        if name == "pushed":
            return d.pushed
        if name == "meaninertia":
            return m.real(m.meaninertia)
        if name.startswith("opt_"):
            return getattr(m.opt, name[4:]) if name[4:] in Option.NUMBERS else m.opt.field(name[4:])
        return (m if hasattr(Model, name) else d).field(name)

    return [argument(name) for name in parameters(kernel)]


def launch(kernel: wp.Kernel, m: Model, d: Data, **other: Any) -> None:
    """Run ``kernel`` in all worlds."""
    wp.launch(kernel, dim=d.nworld, inputs=bind(kernel, m, d, **other))
