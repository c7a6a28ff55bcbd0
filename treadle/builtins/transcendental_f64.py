"""The elementary functions of float64; a file of its own, so that programs without float64 do not read the bodies."""

from ..types.core import f64
from .transcendental import define_all

define_all("f64", f64)
