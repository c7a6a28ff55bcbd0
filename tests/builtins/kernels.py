"""Kernels made from text, to run one expression for many operands."""

from __future__ import annotations

import itertools
import linecache

import numpy as np

import treadle as wp
from treadle.types.core import Scalar, Type
from treadle.types.spelling import spell
from treadle.types.values import class_of

_count = itertools.count()


def kernel(expressions: list[str], inputs: list[Type], outputs: list[Type], width: int | None = None, before: str = ""):
    """A kernel with an array a parameter: ``out0[i] = expression0`` …; expressions read the operands ``x0``, ``x1`` …

    ``width``: the gang width it is compiled for. ``before``: a statement in front, such as one that unpacks a tuple.
    """
    names = {f"T{k}": class_of(t) for k, t in enumerate([*inputs, *outputs])}
    params = [f"a{k}: wp.array(dtype=T{k})" for k in range(len(inputs))]
    params += [f"o{k}: wp.array(dtype=T{len(inputs) + k})" for k in range(len(outputs))]
    lines = [f"@wp.kernel(gang_width={width})", f"def generated({', '.join(params)}):", "    i = wp.tid()"]
    lines += [f"    x{k} = a{k}[i]" for k in range(len(inputs))]
    lines += [f"    {before}"] if before else []
    lines += [f"    o{k}[i] = {expression}" for k, expression in enumerate(expressions)]
    text = "\n".join(lines) + "\n"
    file = f"<generated {next(_count)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"wp": wp, "__name__": "generated", **names}
    exec(compile(text, file, "exec"), space)
    return space["generated"]


def run(
    expressions: list[str],
    operands: list[tuple[Type, np.ndarray]],
    outputs: list[Type],
    width: int | None = None,
    before: str = "",
) -> list[np.ndarray]:
    """The value of each expression for all operands, as NumPy arrays."""
    count = len(operands[0][1])
    inputs = [wp.array(values, dtype=class_of(t)) for t, values in operands]
    made = [wp.zeros(count, dtype=class_of(t)) for t in outputs]
    wp.launch(kernel(expressions, [t for t, _ in operands], outputs, width, before), dim=count, inputs=[*inputs, *made])
    return [m.numpy() for m in made]


def name_of(t: Type) -> str:
    """A type as a test's id."""
    return spell(t) if isinstance(t, Scalar) else t.name
