"""The names of all builtins and the files they are in, so that a name costs no import until it is used.

Kept by hand; a test compares it with what the files register.
"""

from __future__ import annotations

_FILES = {
    "operators": """
        add sub mul div mod floordiv neg pos eq ne lt le gt ge logical_not bitand bitor bitxor invert shl shr""",
    "memory": """
        atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor atomic_exch atomic_cas len zeros""",
    "scalar": """
        min max abs sqrt floor ceil trunc rint copysign fma isnan isinf isfinite popcount""",
}

MODULES: dict[str, list[str]] = {}
for _module, _names in _FILES.items():
    for _name in _names.split():
        MODULES.setdefault(_name, []).append(_module)

ALIASES = {
    "bit_and": "bitand", "bit_or": "bitor", "bit_xor": "bitxor", "lshift": "shl", "rshift": "shr", "unot": "logical_not",
    "bit_count": "popcount", "matmul": "mul",
}  # fmt: skip

HIDDEN = frozenset("eq ne lt le gt ge logical_not bitand bitor bitxor shl shr popcount matmul fma".split())
PUBLIC: tuple[str, ...] = tuple(sorted({*MODULES, *ALIASES} - HIDDEN))
"""What ``treadle`` offers under its own name; operators under the names Warp gives them."""
