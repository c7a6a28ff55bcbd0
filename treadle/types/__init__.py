"""Floor 1: types, their layout in memory, the host values of composite types, and what annotations mean."""

from .core import *  # noqa: F403
from .core import __all__  # noqa: F401
