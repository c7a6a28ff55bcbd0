"""Every builtin: what a kernel computes is what Python computes when it calls the builtin, for each type it takes."""

import numpy as np
import pytest

from treadle.builtins import names, registry
from treadle.builtins.registry import Arg
from treadle.frontend.context import CONTEXT
from treadle.lang.host import evaluate
from treadle.types.core import FLOATS, Matrix, Scalar, Type, Vector, b1, bf16, f16, f32, f64, i32, u32
from treadle.types.values import class_of

from .kernels import run
from .samples import SIZES, call_text, example

SKIPPED = set("tid block_dim print printf zeros empty any_lane max_lane same_lane".split())  # not called from Python
COUNT = 9
BOUND = {
    "Scalar": (i32, f32), "Float": (f32, f64), "Int": (i32, u32), "Short": (f16,), "Num": (i32, f64), "Bits": (i32,),
    "Parts": (f32,), "Same": (f32,),
}  # fmt: skip
TOLERANCE = {f16: 2e-3, bf16: 2e-2, f32: 2e-6, f64: 1e-14}


def argument_types(record) -> list[list[Type]]:
    """Lists of argument types that fit the record's signature, one for each choice of its scalar."""
    found = []
    for choice in range(2):
        bound: dict = {name: ts[min(choice, len(ts) - 1)] for name, ts in BOUND.items()} | SIZES
        types = [example(p.pattern, bound) for p in record.signature.params]
        if None not in types and types not in found:
            found.append(types)
    return found


def groups() -> dict[tuple[Type, ...], list]:
    """All records that give something, by the argument types they are tried with: one kernel for each list."""
    found: dict[tuple[Type, ...], list] = {}
    for name in names.MODULES:
        for record in registry.records(name) if name not in SKIPPED else ():
            if record.kind == "primitive" or record.part("match"):
                continue
            for types in argument_types(record):
                result = record.match([Arg(t) for t in types], {}, CONTEXT).result
                if result is not None:
                    found.setdefault(tuple(types), []).append(
                        (name, result if isinstance(result, tuple) else (result,))
                    )
    return found


GROUPS = groups()


def samples(t: Type, count: int, seed: int) -> np.ndarray:
    """``count`` random values of ``t``, of ordinary size."""
    rng = np.random.default_rng(seed)
    shape = (count, t.n) if isinstance(t, Vector) else (count, t.rows, t.cols) if isinstance(t, Matrix) else (count,)
    elem: Scalar = t if isinstance(t, Scalar) else t.elem
    if elem is b1:
        return rng.integers(0, 2, shape).astype(bool)
    kind = np.dtype(f"{elem.kind}{elem.size}")
    if elem.is_int:
        return rng.integers(0 if elem.kind == "u" else -50, 50, shape).astype(kind)
    values = rng.uniform(0.05, 0.95, shape)
    if isinstance(t, Vector) and t.tag == "quat":
        values = values / np.linalg.norm(values, axis=1, keepdims=True)
    if isinstance(t, Vector) and t.tag == "transform":
        values[:, 3:] /= np.linalg.norm(values[:, 3:], axis=1, keepdims=True)
    return values.astype(kind)


@pytest.mark.parametrize("types", GROUPS, ids=lambda types: ",".join(t.name for t in types) or "none")
def test_kernels_and_python_agree(types):
    columns = [samples(t, COUNT, k) for k, t in enumerate(types)]
    lines, parts, results = [], [], []
    for i, (name, made) in enumerate(GROUPS[types]):
        operands = [f"x{k}_{i}" for k in range(len(types))]  # copies, since some builtins change their argument
        lines += [f"x{k}_{i} = x{k}" for k in range(len(types))]
        mine = [f"r{i}_{k}" for k in range(len(made))]
        lines.append(f"{', '.join(mine)} = {call_text(name, operands)}")
        parts += mine
        results += made
    outs = iter(run(parts, list(zip(types, columns)), results, before="; ".join(lines)))
    for name, made in GROUPS[types]:
        found = [next(outs) for _ in made]
        for i in range(COUNT):
            host = evaluate(name, tuple(class_of(t)(*np.ravel(c[i]).tolist()) for t, c in zip(types, columns)), {})
            for t, out, wanted in zip(made, found, host if len(made) > 1 else (host,), strict=True):
                assert close(out[i], np.asarray(wanted), t), (name, out[i], wanted)


def close(found, wanted, t: Type) -> bool:
    """Whether two values of ``t`` are equal, but for rounding."""
    elem = t if isinstance(t, Scalar) else t.elem
    if elem not in FLOATS:
        return np.array_equal(found, wanted)
    size = max(float(np.max(np.abs(wanted))), 1.0)
    return np.allclose(found, wanted, rtol=0, atol=20 * TOLERANCE[elem] * size)
