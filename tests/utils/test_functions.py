"""Functions made of plain Python functions."""

from __future__ import annotations

import re

import treadle as wp
from treadle import utils


def test_a_lambda_becomes_a_function_that_kernels_call():
    half, module = utils.create_warp_function(lambda x: 0.5 * x)
    assert re.fullmatch("func_[0-9a-f]{16}", half.key)
    assert module.functions == {half.key: half}

    @wp.kernel
    def apply(a: wp.array(dtype=float)):
        i = wp.tid()
        a[i] = half(a[i])

    a = wp.array([1.0, 3.0], dtype=float)
    wp.launch(apply, 2, inputs=[a])
    assert a.list() == [0.5, 1.5]
