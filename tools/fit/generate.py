"""Fit every polynomial and write ``treadle/builtins/elementary/polynomials_f32.py`` and ``polynomials_f64.py``.

    python tools/fit/generate.py            # fit all and write both files: minutes; needs mpmath, better with gmpy2
    python tools/fit/generate.py tangent    # fit these only, keep the rest of the files

The files are kept in the tree, because a fit takes minutes and its digits are part of the results of every program.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from textwrap import fill

from mpmath import log
from remez import fit
from specs import FLOAT32, FLOAT64

TARGET = Path(__file__).resolve().parents[2] / "treadle" / "builtins" / "elementary"
TABLES = {24: FLOAT32, 53: FLOAT64}
HEAD = '''"""Minimax polynomials of the {type} functions, by Horner's rule; written by ``tools/fit/generate.py``."""

from .dsl import {type}, fma
'''


def text(row: tuple[int, int]) -> str:
    """The Python source of one polynomial: its place in the table, and the precision of the table."""
    precision, place = row
    spec = TABLES[precision][place]
    result = fit(spec.target, spec.weight, spec.interval, spec.count, precision)
    kind = "float32" if precision == 24 else "float64"
    error = f"Largest error of the fit, relative to the result: 2^{float(log(result.error, 2)):.1f}."
    doc = fill(f'"""{spec.meaning}. {error}"""', 116, initial_indent="    ", subsequent_indent="    ")
    lines = [f"def {spec.name}({spec.variable}: {kind}) -> {kind}:", doc]
    *rest, last = [f"{kind}({float(c)!r})" for c in result.coefficients]
    lines.append(f"    p = {last}")
    lines += [f"    p = fma(p, {spec.variable}, {c})" for c in reversed(rest)]
    lines[-1] = lines[-1].replace("p = ", "return ", 1)
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> None:
    for precision, suffix in ((24, "f32"), (53, "f64")):
        rows = [(precision, k) for k, s in enumerate(TABLES[precision]) if not names or s.name in names]
        with ProcessPoolExecutor(max_workers=2) as pool:
            fitted = {TABLES[p][k].name: piece for (p, k), piece in zip(rows, pool.map(text, rows))}
        path = TARGET / f"polynomials_{suffix}.py"
        old = path.read_text().split("\n\n\ndef ")[1:] if names else []
        kept = {piece[: piece.index("(")]: f"def {piece.rstrip()}\n" for piece in old}
        pieces = [(kept | fitted)[s.name] for s in TABLES[precision]]
        head = HEAD.format(type="float32" if precision == 24 else "float64")
        path.write_text(head + "".join("\n\n" + piece for piece in pieces))


if __name__ == "__main__":
    main(sys.argv[1:])
