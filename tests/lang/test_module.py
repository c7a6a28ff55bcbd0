"""Modules: options reach the kernels, and forgetting makes the next launch compile again."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as wp
from treadle.lang.module import OPTIONS, Module


@wp.func(inline=False)
def times(x: float, y: float):
    return x * y + 1.0


def multiply(module: Module):
    @wp.kernel(module=module)
    def kernel(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
        i = wp.tid()
        c[i] = a[i] * b[i] + c[i] + times(a[i], b[i])

    return kernel


def test_without_fuse_fp_every_product_is_rounded():
    a, b, c = (np.random.default_rng(k).normal(size=1000).astype(np.float32) for k in range(3))
    module = Module("fusing")
    kernel = multiply(module)
    results = {}
    for fuse in (True, False, True):
        module.set_options({"fuse_fp": fuse})
        out = wp.array(c)
        wp.launch(kernel, dim=1000, inputs=[wp.array(a), wp.array(b), out])
        results.setdefault(fuse, out.numpy())
        assert (out.numpy() == results[fuse]).all()
    plain = (a * b + c) + (a * b + np.float32(1.0))
    assert (results[False] == plain).all() and (results[True] != plain).any()


def test_options_that_do_not_exist_are_refused():
    module = Module("options")
    with pytest.raises(KeyError, match="'fuse' does not exist; there are block_dim, .*fuse_fp"):
        module.set_options({"fuse": False})
    module.set_options({"max_unroll": 4, "strip_hash": True})
    assert module.options == {**OPTIONS, "max_unroll": 4, "strip_hash": True}


def test_options_of_the_calling_module():
    before = dict(wp.get_module_options())
    wp.set_module_options({"max_unroll": 3})
    try:
        assert wp.get_module_options()["max_unroll"] == 3 and wp.get_module(__name__).options["max_unroll"] == 3
    finally:
        wp.set_module_options(before)


def test_a_module_that_is_unloaded_compiles_again():
    module = Module("unloading")
    kernel = multiply(module)
    module.load()
    assert kernel.overloads
    module.unload()
    assert not kernel.overloads
