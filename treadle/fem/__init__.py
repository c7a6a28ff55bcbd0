"""``wp.fem``: integrands, and the records that they are given. Spaces, fields and integration are not part of this
release, so integrands can be declared, and their annotations are checked; what would evaluate them says that it is
missing."""

from __future__ import annotations

from typing import Any

import treadle as wp

from ..absent import absent
from .integrand import Domain as Domain
from .integrand import Field as Field
from .integrand import Integrand as Integrand
from .integrand import integrand as integrand

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


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
