"""Elementary functions as records: their bodies, one for float32 and one for float64, are in ``elementary``.

16-bit floats work in float32 and round the result.
"""

from types import FunctionType

from ..types.core import bf16, f16, f32, f64
from ..types.values import float32
from .elementary import FILES, dsl
from .language import Word
from .patterns import Var
from .registry import Deferred, Param, Signature, builtin, rule

Short = Var("Short", (f16, bf16))

_MEANINGS = {
    "sin": ("The sine of an angle in radians", "0.0", "0.0"),
    "cos": ("The cosine of an angle in radians", "0.0", "1.0"),
    "tan": ("The tangent of an angle in radians", "0.0", "0.0"),
    "asin": ("The angle from -π/2 to π/2 with sine ``x``, which counts as -1 or 1 beyond", "0.0", "0.0"),
    "acos": ("The angle from 0 to π with cosine ``x``, which counts as -1 or 1 beyond", "1.0", "0.0"),
    "atan": ("The angle from -π/2 to π/2 with tangent ``x``", "0.0", "0.0"),
    "atan2": ("The angle from -π to π of the point (``x``, ``y``)", "0.0, 1.0", "0.0"),
    "exp": ("e to the power ``x``", "0.0", "1.0"),
    "sinh": ("The hyperbolic sine", "0.0", "0.0"),
    "cosh": ("The hyperbolic cosine", "0.0", "1.0"),
    "tanh": ("The hyperbolic tangent", "0.0", "0.0"),
    "log": ("The natural logarithm; -∞ for 0, NaN below", "1.0", "0.0"),
    "log2": ("The logarithm to base 2; -∞ for 0, NaN below", "8.0", "3.0"),
    "log10": ("The logarithm to base 10; -∞ for 0, NaN below", "1000.0", "3.0"),
    "pow": ("``x`` to the power ``y``, with C's rules for special values", "2.0, 3.0", "8.0"),
    "cbrt": ("The cube root, of negative numbers too", "-27.0", "-3.0"),
    "erf": ("The error function", "0.0", "0.0"),
    "erfc": ("The complementary error function 1 - erf(x)", "0.0", "1.0"),
    "erfinv": ("The inverse of the error function", "0.0", "0.0"),
    "erfcinv": ("The inverse of the complementary error function", "1.0", "0.0"),
}
_PARAMETERS = {"atan2": "yx", "pow": "xy"}
_DERIVATIVES = {  # what is to be said of them
    "asin": "The derivative at -1 and 1, and beyond, is 0.",
    "acos": "The derivative at -1 and 1, and beyond, is 0.",
    "atan2": "The derivatives at the origin are 0.",
    "log": "The derivative at 0 is infinite.",
    "log2": "The derivative at 0 is infinite.",
    "log10": "The derivative at 0 is infinite.",
    "pow": "At ``x`` = 0 the derivatives are 0 where they would be infinite for ``y`` from 0 to 1; that for ``y`` is 0 "
    "for ``x`` ≤ 0.",
    "cbrt": "The derivative at 0, where the slope is infinite, counts as 0.",
    "erfinv": "The derivatives at -1 and 1 are infinite.",
    "erfcinv": "The derivatives at 0 and 2 are infinite.",
}


def _documentation(name: str) -> str:
    meaning, example, result = _MEANINGS[name]
    about = f"\n\n{_DERIVATIVES[name]}" if name in _DERIVATIVES else ""
    return f"{meaning}.{about}\n\n>>> wp.{name}({example})\n{result}"


def _define(name: str, suffix: str, t, body) -> None:
    params = tuple(Param(p, t) for p in _PARAMETERS.get(name, "x"))
    members = {"__doc__": _documentation(name), "sig": Signature(params, t), "body": body}
    if t is not Short:  # its body rests on float32, whose derivative serves
        members["adjoint"] = rule(f"of_{name}")
    module = __name__ if t is not f64 else f"{__name__}_f64"
    builtin("scalar math", name)(type(f"{name}_{suffix}", (), {**members, "__module__": module}))


def define_all(suffix: str, t) -> None:
    """Register the bodies for scalar type ``t``, found in the files that end in ``suffix``."""
    for name, topic in FILES.items():
        _define(name, suffix, t, Deferred(f"{__package__}.elementary.{topic}_{suffix}", f"{name}_{suffix}"))


def _of_one(word: Word):
    def body(x):
        return type(x)(word(float32(x)))

    return body


def _of_two(word: Word):
    def body(x, y):
        return type(x)(word(float32(x), float32(y)))

    return body


def _name_words() -> None:
    """Tell the translator which builtins the words of the elementary bodies are."""
    for word in dsl.__all__:
        meaning = getattr(dsl, word)
        if isinstance(meaning, FunctionType):
            meaning.__treadle_builtin__ = {"bitcast": "cast"}.get(word, word)


_name_words()
define_all("f32", f32)
for _name in _MEANINGS:
    _define(_name, "short", Short, (_of_two if _name in _PARAMETERS else _of_one)(Word(_name)))
