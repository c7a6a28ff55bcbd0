"""Components computed alike: whole windows, the bits of single components, and what is taken apart after all."""

import numpy as np
import pytest

from tests.codegen.emit.test_memory import V3, N, rand, text_of
from tests.codegen.harness import KernelBuilder, agrees_with_oracle, same_on_all_widths
from treadle.types.core import f32, f64, i32, vector, view


def step(elem=V3, scalar=f32, masked=False):
    """A step of a particle: two arrays of vectors, a vector and a number of the launch, constants, a mass each."""
    k = KernelBuilder((view(elem, 1), view(elem, 1), elem, scalar, view(scalar, 1)))
    n = elem.n
    x, v = k.params[:2]
    g, dt, mass = k.params[2 : 2 + n], k.params[2 + n], k.params[3 + n]
    i = k.tid()
    damp = k.const(0.99, scalar)

    def body():
        m, at, speed = k.load(mass, i), k.load(x, i), k.load(v, i)
        speed = [k.op("mul", k.op("fma", k.op("mul", a, m), dt, s), damp) for a, s in zip(g, speed, strict=True)]
        k.store(v, (i,), *speed)
        k.store(x, (i,), *[k.op("fma", s, dt, a) for s, a in zip(speed, at, strict=True)])
        return ()

    if masked:
        k.if_(k.op("ne", k.op("mod", i, k.const(3, i32)), k.const(1, i32)), body)
    else:
        body()
    return k.func()


@pytest.mark.parametrize(("elem", "scalar", "masked"), [
    (V3, f32, False), (V3, f32, True), (vector(2, f64), f64, False), (vector(4, f32), f32, False),
])  # fmt: skip
def test_bits_are_those_of_single_components(elem, scalar, masked):
    func, kind = step(elem, scalar, masked), np.float64 if scalar is f64 else np.float32
    some = lambda *shape, seed: rand(*shape, seed=seed).astype(kind)
    make = lambda: (
        some(N, elem.n, seed=1), some(N, elem.n, seed=2), some(elem.n, seed=3), kind(0.01), some(N, seed=4),
    )  # fmt: skip
    agrees_with_oracle(func, N, make, *same_on_all_widths(func, N, make))


def test_what_is_stored_is_not_put_together():
    assert "call <24 x float> @llvm.fma.v24f32" in text_of(step())
    assert "<i32 0, i32 8, i32 16, i32 1," in text_of(step())  # the gang's vector, once for all gangs


@pytest.mark.parametrize("how", ["other operations", "other order", "too long"])
def test_components_that_differ_are_taken_apart(how):
    k = KernelBuilder((view(V3, 1), view(V3, 1)))
    x, y = k.params
    i = k.tid()
    a, b, c = k.load(x, i)
    match how:
        case "other operations":
            parts = [k.op("add", a, a), k.op("mul", b, b), k.op("add", c, c)]
        case "other order":
            parts = [k.op("neg", p) for p in (b, a, c)]
        case _:
            parts = [a, b, c]
            for _ in range(20):
                parts = [k.op("mul", p, p) for p in parts]
    k.store(y, (i,), *parts)
    text = text_of(k.func())
    assert not [line for line in text.splitlines() if "<24 x float>" in line and ("fmul" in line or "fneg" in line)]
    make = lambda: (rand(N, 3, seed=5), np.zeros((N, 3), np.float32))
    agrees_with_oracle(k.func(), N, make, same_on_all_widths(k.func(), N, make)[1])
