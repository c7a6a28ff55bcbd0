"""Powers with small constant exponents, which are products; tried before the general power."""

from ..types.core import FLOATS, INTS, Scalar
from .patterns import Float, Known
from .registry import Arg, Match, Mismatch, builtin

EXPONENTS = (1, 2, 3, 4)


@builtin("scalar math")
class pow:
    """``x`` to a constant power of 1 to 4, or -1: a product, or the reciprocal. ``x`` may be an integer for 1 to 4.

    >>> wp.pow(3.0, 2.0)
    9.0
    """

    def sig(x: Float, y: Known("a constant")) -> Float: ...

    def match(args, kwargs, context):
        if kwargs or len(args) != 2 or not args[1].literal or args[1].value not in (*EXPONENTS, -1):
            raise Mismatch("the exponent is no small constant")
        base: Arg = args[0]
        exponent = int(args[1].value)
        whole = base.type in INTS and not base.literal and isinstance(args[1].value, int) and exponent > 0
        if not isinstance(base.type, Scalar) or not (whole or (base.type in FLOATS and not base.literal)):
            raise Mismatch("the base is no number")
        return Match("pow", [base.type, None], base.type, lambda b, values: power(b, values[0], exponent))


def power(b, x, exponent: int):
    """``x`` multiplied with itself."""
    t = x.type
    if exponent == -1:
        return b.one("div", (b.const(1.0, t), x), t)
    if exponent == 1:
        return x
    square = b.one("mul", (x, x), t)
    if exponent == 2:
        return square
    return b.one("mul", (square, x if exponent == 3 else square), t)
