"""Modules: options reach the kernels, and forgetting makes the next launch compile again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as wp
from treadle.lang.module import Module


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


def test_options_that_mean_nothing_are_kept_with_a_warning():
    module = Module("options")
    with pytest.warns(UserWarning, match="no module option 'fuse'"):
        module.set_options({"fuse": False})
    with pytest.warns(UserWarning, match=r"no module option 'enable_backwards' \(did you mean 'enable_backward'\?\)"):
        module.set_options({"enable_backwards": False})
    module.set_options({"max_unroll": 4, "strip_hash": True})
    assert module.options["max_unroll"] == 4 and module.options["strip_hash"] and not module.options["fuse"]


def test_options_of_a_unique_module_are_checked():
    def declare(module="unique", **options):
        @wp.kernel(module=module, module_options=options)
        def nothing(a: wp.array(dtype=float)):
            a[0] = 1.0

        return nothing

    assert declare(fast_math=True).module.options["fast_math"] is True
    with pytest.raises(ValueError, match="no module option 'fast_mth'\n.*Valid options: block_dim"):
        declare(fast_mth=True)
    with pytest.raises(ValueError, match='needs module="unique"'):
        declare(module="named")
    for value, error in ((1.5, TypeError), (True, TypeError), (-1, ValueError)):
        with pytest.raises(error, match="max_unroll"):
            declare(max_unroll=value)


def test_names_and_entries_of_kernels_are_checked():
    def nothing():
        pass

    for options, why in (
        ({"name": "1st"}, r"valid C\+\+ identifier: '1st' is none"), ({"name": "straße"}, "identifier"),
        ({"entry_point_abi": "mine"}, "must be 'warp' or"),
        ({"entry_point_abi": "external_constant_params"}, "requires enable_backward=False"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=why):
            wp.kernel(nothing, **options)
    elsewhere = wp.kernel(nothing, entry_point_abi="external_constant_params", enable_backward=False)
    with pytest.raises(wp.LaunchError, match="cannot be launched with wp.launch"):
        wp.launch(elsewhere, dim=1)
    wp.launch(wp.kernel(nothing, name="another", entry_point_abi="warp"), dim=1)


def doubling(factor: float, *, launch_bounds=None):
    @wp.kernel(module="unique", launch_bounds=launch_bounds)
    def scale(a: wp.array(dtype=float)):
        a[wp.tid()] *= factor

    return scale


def test_a_kernel_declared_again_in_a_unique_module_is_the_same():
    assert doubling(2.0) is doubling(2.0)
    others = [doubling(3.0), doubling(2.0, launch_bounds=64), doubling(2)]
    assert len({id(k) for k in (doubling(2.0), *others)}) == 4
    assert len({k.module.name for k in (doubling(2.0), *others)}) == 4
    for k in (doubling(2.0), doubling(3.0)):
        a = wp.ones(2, dtype=float)
        wp.launch(k, dim=2, inputs=[a])
        assert a.list() == [2.0, 2.0] if k is doubling(2.0) else [3.0, 3.0]


@pytest.mark.host
def test_a_generic_kernel_stays_the_same_once_it_is_compiled():
    def declared():
        @wp.kernel(module="unique")
        def halve(a: wp.array(dtype=Any)):
            a[wp.tid()] *= a.dtype(0.5)

        return halve

    first, digests = declared(), []
    for dtype in (wp.float32, wp.float64, wp.float32):
        digests.append(first.module.hash_module())
        wp.launch(declared(), dim=1, inputs=[wp.ones(1, dtype=dtype)])
    assert declared() is first and first.is_generic and len(first.overloads) == 2
    assert len(set(digests)) == 3 and first.module.hash_module() == digests[-1]


def tenths(result):
    @wp.func
    def tenth() -> result:
        return 0.1

    @wp.kernel(module="unique")
    def write(a: wp.array(dtype=wp.float64)):
        a[0] = wp.float64(tenth())

    return write


def test_what_a_function_is_declared_to_give_back_tells_kernels_apart():
    for result, wanted in ((float, float(np.float32(0.1))), (wp.float64, 0.1)):
        a = wp.zeros(1, dtype=wp.float64)
        wp.launch(tenths(result), dim=1, inputs=[a])
        assert a.list() == [wanted]
    with pytest.raises(wp.KernelTypeError, match="declared to return nothing"):
        wp.launch(tenths(None), dim=1, inputs=[a])


def reading(values):
    @wp.kernel(module="unique")
    def read(a: wp.array(dtype=int)):
        for i in range(wp.static(len(values))):
            a[i] = wp.static(values[i])

    return read


def test_lists_count_by_what_they_hold_now():
    values = [1, 2]
    first = reading(values)
    assert reading([1, 2]) is first and reading([1, 3]) is not first
    values[1] = 5
    second = reading([1, 2])
    assert second is not first
    a = wp.zeros(2, dtype=int)
    wp.launch(second, dim=1, inputs=[a])
    assert a.list() == [1, 2]


def test_hashes_tell_modules_apart_by_what_kernels_do():
    def module(constant, option=None, named="hashes"):
        made = Module(named)

        @wp.func(module=made)
        def inner(x: float):
            return x * constant

        @wp.kernel(module=made)
        def outer(a: wp.array(dtype=float)):
            a[wp.tid()] = inner(a[wp.tid()])

        made.options["max_unroll"] = option
        return made

    same = module(2.0).hash_module()
    assert module(2.0, named="another").hash_module() == same
    assert module(2.0, wp.config.max_unroll).get_module_hash() == same
    assert len({same, module(3.0).hash_module(), module(2.0, 3).hash_module(), module(2.0).hash_module(64)}) == 4
    loaded = module(2.0)
    assert not loaded.execs
    loaded.load()
    assert loaded.hash_module() == same and [*loaded.execs] == [(None, 1)]


def test_hashes_know_structs_by_their_fields():
    made = Module("redeclared")

    def hashed(field, made=made):
        @wp.struct(module=made)
        class Piece:
            x: field

        one = Piece()

        @wp.kernel(module=made)
        def fill(a: wp.array(dtype=Piece)):
            a[wp.tid()] = wp.static(one)

        return made.hash_module()

    first = hashed(int)
    assert hashed(int) == first and hashed(float) != first
    assert hashed(int, Module("of another name")) == first


def test_what_cannot_be_compiled_does_not_keep_the_others_from_being_loaded():
    home = Module("halves")

    @wp.kernel(module=home)
    def bad(a: wp.array(dtype=float)):
        a[0] = nowhere  # noqa: F821

    good = multiply(home)
    with pytest.raises(NameError, match="nowhere"):
        wp.load_module(home)
    assert good.overloads and good.module.execs


def test_a_module_without_kernels_cannot_be_loaded():
    with pytest.raises(RuntimeError, match="'json' does not contain any Warp kernels"):
        wp.load_module("json")
    wp.load_module(wp.utils)  # its kernels are in modules inside of it


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
