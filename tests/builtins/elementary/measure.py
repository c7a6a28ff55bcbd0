"""Measure elementary bodies against a wider format: float32 against the C library's double, float64 against quad.

``Measure(bodies)`` translates the bodies (``to_c``), adds the references below, and builds one shared library with the
C compiler. Errors are in units in the last place of the exact result: subnormal results count in the spacing of
subnormals, an infinite result as the power of two that follows the largest finite number.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from tests.builtins.elementary.to_c import C_TYPES, HEAD, Unit
from treadle.builtins.elementary import BODIES

BINARY = ("atan2", "pow")
COMPILER = shutil.which("gcc")  # __float128 and libquadmath are GCC's
FLAGS = ["-O1", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC", "-w"]

REFERENCES = """
#include <quadmath.h>
typedef __float128 quad;
static quad q_of(double x) { return x; }

/* y solves erf(y) = x or erfc(y) = x: Halley's method from a guess, in the tails on the side without cancellation */
#define INVERSES(T, P, ERF, ERFC, EXP, SLOPE) \\
    static T P##_step(T y, T residual) { T u = residual * SLOPE * EXP(y * y); return y + u / (1 + y * u); } \\
    static T P##_tail(T c, T y) { for (int k = 0; k < 3; k++) y = P##_step(y, ERFC(y) - c); return y; } \\
    static T P##_middle(T x, T y) { for (int k = 0; k < 3; k++) y = P##_step(y, x - ERF(y)); return y; } \\
    static T P##_erfinv(T x, T guess) { \\
        if (x == 0) return x; \\
        if (!(x < 1 && x > -1)) return x == 1 || x == -1 ? x * INFINITY : NAN; \\
        if (guess - guess != 0) return 0; \\
        if (x > 0.5) return P##_tail(1 - x, guess); \\
        if (x < -0.5) return -P##_tail(1 + x, -guess); \\
        return P##_middle(x, guess); } \\
    static T P##_erfcinv(T x, T guess) { \\
        if (!(x > 0 && x < 2)) return x == 0 ? INFINITY : x == 2 ? -INFINITY : NAN; \\
        if (guess - guess != 0) return 0; \\
        if (x < 0.5) return P##_tail(x, guess); \\
        if (x > 1.5) return -P##_tail(2 - x, -guess); \\
        return P##_middle(1 - x, guess); }
INVERSES(double, d, erf, erfc, exp, 0.886226925452758013649)
INVERSES(quad, q, erfq, erfcq, expq, 0.886226925452758013649083741670572591398774728Q)
static double clampd(double x) { return x > 1 ? 1 : x < -1 ? -1 : x; }
#define PLAIN(NAME) \\
    static double d_##NAME(double x, double guess) { return NAME(x); } \\
    static quad q_##NAME(quad x, quad guess) { return NAME##q(x); }
PLAIN(sin) PLAIN(cos) PLAIN(tan) PLAIN(atan) PLAIN(exp) PLAIN(sinh) PLAIN(cosh) PLAIN(tanh)
PLAIN(log) PLAIN(log2) PLAIN(log10) PLAIN(cbrt) PLAIN(erf) PLAIN(erfc)
static double d_asin(double x, double g) { return asin(clampd(x)); }
static double d_acos(double x, double g) { return acos(clampd(x)); }
static quad q_asin(quad x, quad g) { return asinq(clampd(x)); }
static quad q_acos(quad x, quad g) { return acosq(clampd(x)); }

static double ulps32(float y, double r) {
    if (r != r || y != y) return (r != r) == (y != y) ? 0 : INFINITY;
    if (y == 0 && r == 0) return !signbit(y) == !signbit(r) ? 0 : INFINITY;
    double top = 0x1p128, v = y;
    if (isinf(y)) v = copysign(top, v);
    if (fabs(r) > top) r = copysign(top, r);
    int exponent; frexp(r, &exponent);
    if (fabs(r) == top) exponent = 128;
    exponent = exponent < -125 ? -125 : exponent;
    return fabs(v - r) / ldexp(1.0, exponent - 24);
}
static double ulps64(double y, quad r) {
    if (r != r || y != y) return (r != r) == (y != y) ? 0 : INFINITY;
    if (y == 0 && r == 0) return !signbit(y) == !signbitq(r) ? 0 : INFINITY;
    quad top = 0x1p1023Q * 2, v = y;
    if (isinf(y)) v = copysignq(top, v);
    if (fabsq(r) > top) r = copysignq(top, r);
    int exponent; frexpq(r, &exponent);
    if (fabsq(r) == top) exponent = 1024;
    exponent = exponent < -1021 ? -1021 : exponent;
    return fabsq(v - r) / scalbnq(1, exponent - 53);
}
"""
RUN = """
void run_{name}_{kind}(const {c} *x, const {c} *x2, {c} *y, long n) {{ for (long i = 0; i < n; i++) y[i] = {call}; }}
double worst_{name}_{kind}(const {c} *x, const {c} *x2, const {c} *y, long n, long *at) {{
    double worst = -1;
    for (long i = 0; i < n; i++) {{
        double e = {error};
        if (e > worst) {{ worst = e; *at = i; }}
    }}
    return worst;
}}
"""


class Measure:
    """Bodies as machine code, and their errors."""

    def __init__(self, bodies: dict[str, dict[str, Callable]], flags: list[str] | None = None):
        unit, runs = Unit(), []
        for name, kinds in bodies.items():
            for kind, body in kinds.items():
                runs.append(self._run(name, kind, unit.add(body).name))
        self.folder = tempfile.TemporaryDirectory()
        source, library = Path(self.folder.name, "bodies.c"), Path(self.folder.name, "bodies.so")
        source.write_text(HEAD + "\n".join(unit.text) + REFERENCES + "".join(runs))
        command = [COMPILER, *FLAGS, *(flags or _fma_flags()), str(source), "-o", str(library), "-lquadmath", "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(done.stderr[:4000])
        self.library = ctypes.CDLL(str(library))

    @staticmethod
    def _run(name: str, kind: str, symbol: str) -> str:
        single = kind == "float32"
        wide, reference = ("double", "d") if single else ("quad", "q")
        if name in BINARY:
            call = f"{symbol}(x[i], x2[i])"
            function = name if single else f"{name}q"
            exact = f"{function}(({wide})x[i], ({wide})x2[i])"
        else:
            call, exact = f"{symbol}(x[i])", f"{reference}_{name}(x[i], y[i])"
        error = f"{'ulps32' if single else 'ulps64'}(y[i], {exact})"
        return RUN.format(name=name, kind=kind, c=C_TYPES[kind], call=call, error=error)

    def run(self, name: str, x: np.ndarray, x2: np.ndarray | None = None) -> np.ndarray:
        """The body of ``name`` for the type of ``x`` at each element."""
        x = np.ascontiguousarray(x)
        x2 = x if x2 is None else np.ascontiguousarray(x2)
        y = np.empty_like(x)
        getattr(self.library, f"run_{name}_{x.dtype.name}")(*map(_pointer, (x, x2, y)), ctypes.c_long(x.size))
        return y

    def worst(self, name: str, x: np.ndarray, x2: np.ndarray | None = None, y: np.ndarray | None = None):
        """The largest error over the elements, in ulp, and the arguments and the result where it is.

        ``y``: results to judge; None for those of the body.
        """
        x = np.ascontiguousarray(x)
        x2 = x if x2 is None else np.ascontiguousarray(x2)
        y = self.run(name, x, x2) if y is None else np.ascontiguousarray(y)
        function = getattr(self.library, f"worst_{name}_{x.dtype.name}")
        function.restype = ctypes.c_double
        at = ctypes.c_long(0)
        error = function(*map(_pointer, (x, x2, y)), ctypes.c_long(x.size), ctypes.byref(at))
        arguments = (x[at.value], x2[at.value]) if name in BINARY else (x[at.value],)
        return error, (*arguments, y[at.value])


@cache
def measure() -> Measure:
    """All bodies, built once a process."""
    return Measure(BODIES)


def _pointer(a: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(a.ctypes.data)


def _fma_flags() -> list[str]:
    """``-mfma`` where the processor has it; ``fma`` is exact without it too, only slow."""
    try:
        return ["-mfma"] if " fma " in Path("/proc/cpuinfo").read_text() else []
    except OSError:
        return []
