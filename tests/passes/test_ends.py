"""Indices that are negative at run time count from the end; indices that cannot be are left alone."""

import numpy as np
import pytest

import treadle as wp
from tests.frontend.language import program
from treadle.ir.show import show
from treadle.ir.verify import verify
from treadle.ir.walk import callees, ops_of
from treadle.passes.ends import count_from_end
from treadle.types.core import f32, i32, u32, view

X, N = view(f32, 1), view(i32, 1)


def counted(kernel, *types) -> int:
    """How many indices of ``kernel`` and the functions it calls are counted from the end."""
    made = verify(count_from_end(program(kernel, types)))
    assert show(count_from_end(made)) == show(made)  # once is enough
    return sum(op.name == "invert" for f in (made, *callees(made)) for op in ops_of(f.body))


def language():
    from tests.frontend.language import wp

    return wp


def test_indices_that_cannot_be_negative_are_left_alone():
    wp = language()

    def threads(x, n):
        i, j = wp.tid()
        x[i] = x[i + 3 * j] + x[i * 7 % 5] + x[(i + j) // 2] + x[wp.min(i, j)] + x[wp.max(n, 0)] + x[n & 7]

    def loops(x, n):
        for i in range(n):
            for j in range(i, n):
                x[j] = x[i] + x[j - i + i]
        for k in range(n - 1, -1, -1):
            x[k] = 1.0
        q = 0
        while x[q] < 1.0:
            if x[q + 1] > 0.0:
                q += 2
            else:
                q += 1

    def guarded(x, n):
        i = n
        if i > 0 and i < 10:
            x[i - 1] = 1.0
        if i < 2:
            return
        x[i - 2] = 2.0
        j = wp.tid()
        if j == 0:
            return
        x[j - 1] = 3.0

    def unsigned(x, n):
        x[n] = x[wp.int64(n)]

    assert counted(threads, X, i32) == 0 and counted(guarded, X, i32) == 0
    assert counted(loops, X, i32) == 1  # j - i + i: the smaller part is not known
    assert counted(unsigned, X, u32) == 0


def test_products_that_may_wrap_have_remainders_that_may_be_negative():
    wp = language()

    @wp.func
    def at(x: X, h: int, m: int) -> float:
        return x[h % m]

    def hashed(x, n):
        i, j = wp.tid()
        x[(i * 73856093) % 7] = x[((i * 73856093) ^ (j * 19349663)) % 7] + x[(i << 20) >> 3] + x[(i * i * 99999) // 9]
        if n > 0:
            x[(n * n) % 7] = at(x, i * 73856093 + 1, 7) + x[n % 7]
        h = 7
        for k in range(9):
            h = h * 31 + k
        x[h % 7] = 1.0

    def indices(x, n):
        i, j = wp.tid()
        x[(i * x.shape[0] + j) * 3 % 7] = x[(j << 4) // 3] + at(x, i * 9 + j, 7) + x[(i & 65535) * 3 % 7]
        q = 0
        for k in range(n):
            x[(k * n + i * k) % 7] = x[q % 7] + x[wp.int64(i) * wp.int64(1000003) % wp.int64(7)]
            q = q + 2

    assert counted(hashed, X, i32) == 7
    assert counted(indices, X, i32) == 1  # k * n: n is any number


def test_neighbours_of_a_thread_stay_side_by_side():
    wp = language()

    def kernel(x, n, m):
        i = wp.tid()
        x[i] = x[i - 1] + x[i + n] + x[i + m[n]] + x[m[i]]

    assert counted(kernel, X, i32, N) == 2  # m[n] by itself, and x[m[i]]


def test_functions_know_what_they_are_called_with():
    wp = language()

    @wp.func
    def at(x: X, i: int, j: int) -> float:
        return x[i] + x[j]

    def kernel(x, m):
        i = wp.tid()
        x[i] = at(x, i, i + 1) + at(x, i + 2, m[i])

    assert counted(kernel, X, N) == 1


@wp.kernel
def everywhere(
    x: wp.array(dtype=float), at: wp.array(dtype=int), rows: wp.array2d(dtype=wp.vec2), wide: wp.array(dtype=wp.int64),
    out: wp.array2d(dtype=float),
):  # fmt: skip
    i = wp.tid()
    j = at[i]
    out[i, 0] = x[j]
    out[i, 1] = rows[j, -1 - j % 2][1]
    row = rows[j]
    out[i, 2] = row[(j - 1) % 2].x
    out[i, 3] = x[wide[i]]
    wp.atomic_add(x, (i - 5) % 4, 100.0)
    own = wp.zeros(shape=4, dtype=float)
    own[j % 4] = 7.0
    out[i, 4] = own[3]


def test_every_access_counts_from_the_end():
    x = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    at = np.array([-1, -4, 3, -2, 0], np.int32)
    rows = np.arange(16, dtype=np.float32).reshape(4, 2, 2)
    out = wp.zeros((5, 5), dtype=float)
    given = wp.array(x, dtype=float)
    wp.launch(everywhere, dim=5, inputs=[
        given, wp.array(at), wp.array(rows, dtype=wp.vec2), wp.array(at.astype(np.int64)), out])  # fmt: skip
    for i, j in enumerate(at):
        part = int(np.fmod(j, 2))
        before = int(np.fmod(j - 1, 2))
        own = 7.0 if int(np.fmod(j, 4)) % 4 == 3 else 0.0
        wanted = [rows[j, -1 - part, 1], rows[j, before, 0], own]
        assert out.numpy()[i, [1, 2, 4]].tolist() == wanted
    assert given.numpy().tolist() == [101.0, 102.0, 103.0, 204.0]


def test_hashes_stay_in_the_array():
    @wp.kernel
    def kernel(x: wp.array(dtype=int), out: wp.array(dtype=int)):
        i = wp.tid()
        out[i] = x[(i * 73856093) % x.shape[0]]

    n, out = 1000, wp.zeros(200, dtype=int)
    wp.launch(kernel, dim=200, inputs=[wp.array(np.arange(n), dtype=int), out])
    wrapped = (np.arange(200) * 73856093).astype(np.int32)
    assert (wrapped < 0).any() and out.list() == (np.fmod(wrapped, n) % n).tolist()


def test_what_is_before_the_first_element_is_still_out_of_bounds():
    @wp.kernel
    def kernel(x: wp.array(dtype=float), at: wp.array(dtype=int)):
        i = wp.tid()
        x[at[i]] = 1.0

    mode, wp.config.mode = wp.config.mode, "debug"
    try:
        with pytest.raises(wp.IndexOutOfRange, match="index -5 is out of bounds"):
            wp.launch(kernel, dim=1, inputs=[wp.zeros(4, dtype=float), wp.array([-5], dtype=int)])
    finally:
        wp.config.mode = mode


def test_derivatives_reach_the_elements_that_were_read():
    @wp.kernel
    def kernel(x: wp.array(dtype=float), at: wp.array(dtype=int), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[at[i]] * x[at[i]]

    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=2, inputs=[x, wp.array([-1, -3], dtype=int), y])
    tape.backward(grads={y: wp.ones(2, dtype=float)})
    assert y.numpy().tolist() == [9.0, 1.0] and x.grad.numpy().tolist() == [2.0, 0.0, 6.0]
