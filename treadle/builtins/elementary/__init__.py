"""Elementary functions, written in the kernel language: one body for float32 and one for float64, at most 2 ulp from
the truth.

Every target compiles these bodies, so scalar code, gangs of any width and GPUs give the same digits. A body reduces
the argument, evaluates a polynomial of our own fitting (``tools/fit``) and puts the parts together; both sides of a
choice are computed and selected, and a real ``if`` stands only before a path that few arguments need. Special values
follow C99, but ``asin`` and ``acos`` take arguments beyond -1 and 1 as -1 and 1.

``BODIES[name][type]`` is the body. ``ULP[name]`` is the largest error of the float32 and of the float64 body in
units in the last place: what was measured at every 13th float32, and at some millions of float64 numbers and of pairs,
with some room (``tools/fit/sweep.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

__all__ = ["BODIES", "FILES", "ULP"]

FILES: dict[str, str] = {
    name: topic
    for topic, names in {
        "trigonometry": "sin cos tan",
        "inverse_trigonometry": "asin acos atan atan2",
        "exponential": "exp sinh cosh tanh",
        "logarithm": "log log2 log10",
        "power": "pow cbrt",
        "error": "erf erfc erfinv erfcinv",
    }.items()
    for name in names.split()
}
"""The file of each function, without the suffix ``_f32`` or ``_f64``."""

ULP: dict[str, tuple[float, float]] = {
    "sin": (1.7, 1.0), "cos": (1.7, 1.0), "tan": (1.4, 1.4),
    "asin": (1.9, 1.8), "acos": (1.4, 1.4), "atan": (1.5, 1.6), "atan2": (1.7, 1.7),
    "exp": (1.1, 1.1), "sinh": (1.8, 1.8), "cosh": (1.6, 1.6), "tanh": (1.5, 1.5),
    "log": (1.0, 1.0), "log2": (1.1, 1.1), "log10": (1.0, 1.0),
    "pow": (0.6, 1.0), "cbrt": (1.0, 1.0),
    "erf": (1.3, 1.2), "erfc": (1.7, 1.7), "erfinv": (1.5, 1.6), "erfcinv": (1.6, 1.6),
}  # fmt: skip

BODIES: dict[str, dict[str, Callable]]


def __getattr__(name: str) -> object:
    """``BODIES`` is made when first asked for: programs read only the files they use."""
    if name != "BODIES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    bodies = {}
    for function, topic in FILES.items():
        kinds = (("float32", "f32"), ("float64", "f64"))
        homes = {kind: (import_module(f"{__name__}.{topic}_{suffix}"), suffix) for kind, suffix in kinds}
        bodies[function] = {kind: getattr(home, f"{function}_{suffix}") for kind, (home, suffix) in homes.items()}
    globals()["BODIES"] = bodies
    return bodies
