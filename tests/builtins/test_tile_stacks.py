"""Stacks of blocks behave as Python's lists do."""

import numpy as np
import pytest

import treadle as wp


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("dtype", [wp.int32, wp.float32, wp.vec2])
def test_a_stack_is_a_list_with_a_capacity(dtype, width, monkeypatch):
    monkeypatch.setattr(wp.config, "gang_width", width)

    @wp.kernel
    def kernel(todo: wp.array2d(dtype=int), items: wp.array(dtype=dtype), out: wp.array2d(dtype=dtype),
               said: wp.array2d(dtype=int)):  # fmt: skip
        i = wp.tid()
        s = wp.tile_stack(capacity=5, dtype=dtype)
        for k in range(todo.shape[1]):
            if todo[i, k] == 99:
                wp.tile_stack_clear(s)
                said[i, k] = wp.tile_stack_count(s)
            elif todo[i, k] < 0:
                value, slot = wp.tile_stack_pop(s)
                out[i, k] = value
                said[i, k] = slot
            else:
                said[i, k] = wp.tile_stack_push(s, items[todo[i, k]], todo[i, k] != 50)

    rng = np.random.default_rng(0)
    todo = rng.integers(0, 51, size=(9, 40)).astype(np.int32)
    todo[rng.random(todo.shape) < 0.45] = -1
    todo[rng.random(todo.shape) < 0.03] = 99
    items = np.arange(51)[:, None] * np.ones(2) if dtype is wp.vec2 else np.arange(51)
    out, said = wp.zeros((9, 40), dtype=dtype), wp.zeros((9, 40), dtype=int)
    wp.launch_tiled(kernel, dim=9, inputs=[wp.array(todo), wp.array(items, dtype=dtype), out, said], block_dim=16)
    got, answers = out.numpy(), said.numpy()
    for i in range(9):
        s = []
        for k, x in enumerate(todo[i]):
            if x == 99:
                s, answer = [], 0
            elif x < 0:
                answer = len(s) - 1
                np.testing.assert_array_equal(got[i, k], np.full(got[i, k].shape, s.pop() if s else 0))
            else:
                answer = len(s) if len(s) < 5 and x != 50 else -1
                if answer >= 0:
                    s.append(x)
            assert answers[i, k] == answer


@wp.func
def push_twice(s: wp.tile_stack(capacity=4, dtype=int), x: int):
    wp.tile_stack_push(s, x, True)
    return wp.tile_stack_push(s, x + 1, True)


def test_functions_take_stacks():
    @wp.kernel
    def kernel(out: wp.array(dtype=int)):
        s = wp.tile_stack(4, int)
        for k in range(2):
            out[k] = push_twice(s, 10 * k)
        value, slot = wp.tile_stack_pop(s)
        out[2] = value + 1000 * slot + wp.tid()

    out = wp.zeros(3, dtype=int)
    wp.launch_tiled(kernel, dim=1, inputs=[out], block_dim=4)
    assert out.list() == [1, 3, 3011]


def test_what_cannot_be_counted_is_refused():
    @wp.kernel
    def kernel():
        wp.tile_stack(capacity=200, dtype=wp.int8)

    with pytest.raises(wp.KernelTypeError, match="a stack of int8 cannot count to 200"):
        wp.launch_tiled(kernel, dim=1, block_dim=1)
