"""``wp.fem``: finite elements. So far what integrands are written in terms of; spaces and quadrature come later."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import treadle as wp

from ..absent import absent

ElementIndex = int  # number of an element of the geometry
QuadraturePointIndex = int
NodeIndex = int
Coords = wp.vec3  # coordinates inside an element
Coords_f64 = wp.vec3d

NULL_ELEMENT_INDEX = NULL_QP_INDEX = -1
NULL_NODE_INDEX = 2**31 - 1
OUTSIDE = -1.0e8  # each coordinate of a point that lies in no element


@wp.struct
class Sample:
    """A point at which an integrand is evaluated: its element, where in it, and its quadrature point and weight."""

    element_index: int
    element_coords: wp.vec3
    qp_index: int
    qp_weight: float
    test_dof: wp.vec2i
    trial_dof: wp.vec2i


@wp.struct
class Sample_f64:
    """:class:`Sample` in double precision."""

    element_index: int
    element_coords: wp.vec3d
    qp_index: int
    qp_weight: wp.float64
    test_dof: wp.vec2i
    trial_dof: wp.vec2i


class Integrand:
    """A function of fields at a sample, to be integrated or interpolated. ``arguments``: its parameters by name."""

    def __init__(self, func: Callable):
        self.func, self.name = func, func.__qualname__
        self.arguments = dict(inspect.signature(func).parameters)

    def __repr__(self) -> str:
        return f"<treadle integrand {self.name}>"


def integrand(func: Callable) -> Integrand:
    """Declare ``func`` an integrand."""
    return Integrand(func)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
