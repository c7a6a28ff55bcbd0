"""``warp._src.apic.capture``: all of it is machinery."""

from ..answers import answers

_MACHINERY = {"graphs are tables of entries, which no file holds": "APICapture"}

__getattr__ = answers(__name__, {}, _MACHINERY)
