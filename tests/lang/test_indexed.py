"""Indexed arrays as arguments of kernels: elements, structs, functions, generics, checks, tapes and tangents."""

from typing import Any, Literal

import numpy as np
import pytest

import treadle as wp

ROWS, COLUMNS = [3, 0, 3], [4, 1]


def ints(items):
    return wp.array(items, dtype=int)


def grid(dtype=float):
    return wp.array(np.arange(20).reshape(4, 5), dtype=dtype)


# ---- elements


@wp.kernel
def double_all(x: wp.indexedarray2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    x[i, j] = 2.0 * x[i, j]
    out[i, j] = x[i][j]


@pytest.mark.parametrize("lists", [(ROWS[:2], None), (None, COLUMNS), (ROWS[:2], COLUMNS), (None, None)], ids=str)
def test_kernels_read_and_write_the_data(lists):
    a = grid()
    x = wp.indexedarray(a, [None if n is None else ints(n) for n in lists])
    out, expected = wp.zeros(x.shape, dtype=float), a.numpy().copy()
    every = np.ix_(*[range(m) if n is None else n for n, m in zip(lists, a.shape, strict=True)])
    expected[every] *= 2.0
    wp.launch(double_all, x.shape, inputs=[x, out])
    assert np.array_equal(a.numpy(), expected) and np.array_equal(out.numpy(), expected[every])


@wp.kernel
def add_ones(x: wp.indexedarray[wp.vec3], y: wp.indexedarray[wp.vec3]):
    i = wp.tid()
    wp.atomic_add(x, i, wp.vec3(1.0, 2.0, 3.0))
    x[i] += wp.vec3(1.0, 0.0, 0.0)
    wp.atomic_max(y, i, wp.vec3(0.0, 0.0, float(i)))


def test_updates_of_elements_that_stand_in_the_list_twice():
    a, b = wp.zeros(4, dtype=wp.vec3), wp.zeros(4, dtype=wp.vec3)
    wp.launch(add_ones, 5, inputs=[a[ints([1, 3, 1, 1, 3])], b[ints([1, 0, 1, 0, 1])]])
    assert a.numpy().tolist() == [[0, 0, 0], [6, 6, 9], [0, 0, 0], [4, 4, 6]]
    assert b.numpy()[:, 2].tolist() == [3, 4, 0, 0]


@wp.kernel
def place_in_list(taken: wp.array(dtype=int), x: wp.indexedarray(dtype=int), k: int):
    i = wp.tid()
    before = wp.atomic_add(taken, 0, 1)
    x[before] = i
    x[-1] = wp.lower_bound(x, k) + len(x) * 100


def test_places_from_counters_and_known_negative_ones():
    a, order = wp.zeros(8, dtype=int), [7, 1, 0, 5, 2]
    wp.launch(place_in_list, 4, inputs=[wp.zeros(1, dtype=int), a[ints(order)], 2])
    assert a.numpy()[order].tolist() == [0, 1, 2, 3, 502]


@wp.kernel
def parts_of_parts(x: wp.indexedarray[float, Literal[3]], out: wp.array(dtype=float)):
    i = wp.tid()
    plane = x[i]
    cut = plane[1:, ::-1]
    row = cut[0]
    for _ in range(i):  # the same variable shows another part
        row = row[1:]
    first = x[0] if i == 0 else x[1]
    out[i] = row[0] + float(len(row)) * 1000.0 + float(cut.shape[0]) * 100.0 + first[0, 0] * 0.5
    if x and plane:
        out[i] += 0.25


@pytest.mark.parametrize("axes", [(0, 1, 2), (0,), (1,), (2,), (1, 2)], ids=str)
def test_rows_slices_and_rebinding(axes):
    data = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    lists = [[2, 0], [3, 1, 2], [4, 0, 2, 3]]
    x = wp.indexedarray(wp.array(data), [ints(lists[k]) if k in axes else None for k in range(3)])
    seen, out = x.numpy(), wp.zeros(2, dtype=float)
    wp.launch(parts_of_parts, 2, inputs=[x, out])
    expected = [
        seen[i, 1, -1 - i] + (seen.shape[2] - i) * 1000 + (seen.shape[1] - 1) * 100 + seen[i, 0, 0] / 2 + 0.25
        for i in range(2)
    ]
    assert out.list() == expected


@wp.kernel
def numbered(x: wp.indexedarray2d(dtype=float), start: int):
    i, j = wp.tid()
    x[i, j] = float(start + 10 * i + j)


def test_later_launches():
    """Native launchers take them; other lists, layouts and dimensions with lists are told apart."""
    rows, columns = ints([1, 2]), ints([3, 0])
    for choose in 2 * [lambda a: a[rows, columns], lambda a: a[rows], lambda a: a[:, columns], lambda a: a[rows[::-1]],
                       lambda a: a[:, 1:][rows, columns], lambda a: a[rows, ::2]]:  # fmt: skip
        a, b = grid(), grid()
        wp.launch(numbered, (2, 2), inputs=[choose(a), 100])
        wp.launch(numbered, (2, 2), inputs=[choose(b)], outputs=[100])
        assert np.array_equal(a.numpy(), b.numpy())
        assert choose(b).numpy()[:2, :2].tolist() == [[100, 101], [110, 111]]
        assert (b.numpy() >= 100).sum() == 4
    for wrong, error in ((b, wp.LaunchTypeError), (b[0][rows], wp.LaunchTypeError), (b[ints([1])], wp.IndexOutOfRange)):
        with pytest.raises(error):
            wp.launch(numbered, (2, 2), inputs=[wrong, 100])


def test_a_gradient_that_came_later_is_seen():
    x, w, y = (wp.array([1.0, 2.0], dtype=wp.float64) for _ in range(3))
    chosen = [x[ints([1, 0])], w, y[ints([0, 1])]]
    wp.launch(squares, 2, inputs=chosen)
    x.requires_grad = y.requires_grad = True
    for _ in range(2):
        y.grad.fill_(1.0)
        wp.launch(squares, 2, inputs=chosen, adjoint=True)
    assert x.grad.list() == [2 * 2.0 * 2, 2 * 4.0 * 1]


# ---- functions, generics, structs


@wp.func
def total(x: wp.indexedarray(dtype=float), n: int):
    s = float(0.0)
    for k in range(n):
        s += x[k]
    return s


@wp.func
def total(x: wp.array(dtype=float), n: int):  # noqa: F811
    return 1000.0 + x[0]


@wp.func
def first(x: Any):
    return x[0]


@wp.kernel
def call_functions(x: wp.indexedarray2d(dtype=float), a: wp.array2d(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = total(x[i], 2) + total(a[0], 2) + first(x[i]) * 0.5 + first(a[i])


def test_functions_take_them():
    a = grid()
    x, out = a[ints(ROWS), ints(COLUMNS)], wp.zeros(3, dtype=float)
    wp.launch(call_functions, 3, inputs=[x, a, out])
    seen = x.numpy()
    assert out.list() == [seen[i].sum() + 1000 + seen[i, 0] * 0.5 + a.numpy()[i, 0] for i in range(3)]


@wp.kernel
def increment(a: Any):
    i = wp.tid()
    a[i] = a[i] + a.dtype(1)


@wp.kernel
def increment_indexed(a: wp.indexedarray(dtype=Any)):
    i = wp.tid()
    a[i] = a[i] + a.dtype(1)


def test_generic_kernels():
    for dtype in (float, int, wp.float64):
        a = wp.zeros(4, dtype=dtype)
        wp.launch(increment, 4, inputs=[a])
        wp.launch(increment, 2, inputs=[a[ints([2, 0])]])
        wp.launch(increment_indexed, 1, inputs=[a[ints([3])]])
        assert a.list() == [2, 1, 2, 2]
    typed = wp.overload(increment, [wp.indexedarray[int]])
    b = wp.zeros(4, dtype=int)
    wp.launch(typed, 1, inputs=[b[ints([2])]])
    assert b.list() == [0, 0, 1, 0]


@wp.struct
class Piece:
    places: wp.indexedarray(dtype=wp.vec3)
    table: wp.indexedarray2d(dtype=float)
    scale: float


@wp.struct
class Whole:
    piece: Piece


@wp.func
def value(p: Piece, i: int):
    return p.places[i][1] * p.scale + p.table[i, 1] + p.table[i][0] + float(p.table.shape[1]) * 1000.0


@wp.kernel
def of_structs(p: Piece, w: Whole, many: wp.array(dtype=Piece), out: wp.array2d(dtype=float)):
    i = wp.tid()
    out[0, i] = value(p, i)
    out[1, i] = value(w.piece, i)
    out[2, i] = value(many[i], i)
    one = many[0]
    one.table[i, 1] = 0.5
    w.piece.places[i].y = 0.25


def test_structs_hold_them():
    a, points = grid(), wp.array(np.arange(12), dtype=wp.vec3)
    p, w = Piece(), Whole()
    assert p.places is None
    p.places, p.table, p.scale = points[ints([2, 0])], a[ints([3, 1])], 2.0
    w.piece = p
    out = wp.zeros((3, 2), dtype=float)
    wp.launch(of_structs, 2, inputs=[p, w, wp.array([p, p], dtype=Piece), out])
    assert out.numpy().tolist() == [[14 + 16 + 15 + 5000, 2 + 6 + 5 + 5000]] * 3
    assert a.numpy()[[3, 1], 1].tolist() == [0.5, 0.5] and points.numpy()[[2, 0], 1].tolist() == [0.25, 0.25]
    (back,) = wp.array([p], dtype=Piece).list()
    assert np.array_equal(back.table.numpy(), p.table.numpy()) and back.places.indices[0].list() == [2, 0]
    assert p.numpy_value()["scale"] == 2.0 and Piece.numpy_dtype()["names"] == ["places", "table", "scale"]


@wp.kernel
def gather_structs(points: wp.indexedarray(dtype=wp.vec3), table: wp.indexedarray2d(dtype=float),
                   many: wp.array(dtype=Piece)):  # fmt: skip
    i = wp.tid()
    p = Piece(points, table, 2.0)
    p.places = points
    many[i] = p


def test_kernels_put_them_into_structs():
    a, points, many = grid(), wp.zeros(4, dtype=wp.vec3), wp.zeros(2, dtype=Piece)
    x = a[ints(ROWS), ints(COLUMNS)]
    wp.launch(gather_structs, 2, inputs=[points[ints([1, 2])], x, many])
    assert all([np.array_equal(p.table.numpy(), x.numpy()) for p in many.list()])
    with pytest.raises(wp.KernelTypeError, match="give the array a list for each"):
        wp.launch(gather_structs, 2, inputs=[points[ints([1, 2])], a[ints(ROWS)], many])


# ---- what does not fit


@wp.kernel
def copy_out(x: wp.indexedarray(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i]


@wp.kernel
def copy_array(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i]


@wp.kernel
def wrong_family(x: wp.indexedarray2d(dtype=float), out: wp.array(dtype=float)):
    out[0] = plain(x[0])


@wp.func
def plain(x: wp.array(dtype=float)):
    return x[0]


def test_the_wrong_family_is_told():
    a, out = wp.zeros(4, dtype=float), wp.zeros(4, dtype=float)
    x = a[ints([1, 2])]
    for kernel, arg, message in [
        (copy_out, a, "expects an array of type indexedarray.*has type array"),
        (copy_out, grid()[ints([1])], r"indexedarray\(ndim=1, dtype=float32\), but .* 2 dimension"),
        (copy_out, wp.zeros(4, dtype=int)[ints([1])], "indexedarray.* but the passed array has dtype int32"),
        (copy_out, np.zeros(4, np.float32), "indexedarray.* but passed value has type ndarray"),
        (copy_array, x, "but passed value has type indexedarray"),
    ]:
        with pytest.raises(wp.LaunchTypeError, match=message):
            wp.launch(kernel, 1, inputs=[arg, out])
    with pytest.raises(wp.KernelTypeError, match=r"must be array\(dtype=float32\), not indexedarray"):
        wp.launch(wrong_family, 1, inputs=[grid()[ints([1])], out])
    wp.launch(copy_out, 0, inputs=[None, out])
    p = Piece()
    for wrong, message in ((grid(), "indexed array, got array"), (x, "with 2 dimension.*1 dimension"), (3, "got int")):
        with pytest.raises(wp.LaunchTypeError, match=message):
            p.table = wrong


@pytest.mark.host
def test_indices_are_checked():
    a, out = wp.zeros(4, dtype=float), wp.zeros(4, dtype=float)
    with pytest.raises(wp.IndexOutOfRange, match=r"index 2 is out of bounds in dimension 0 of array 'x.indices\[0\]'"):
        wp.launch(copy_out, 3, inputs=[a[ints([1, 2])], out])  # once, before anything runs
    with pytest.raises(wp.IndexOutOfRange, match=r"index 9 is out of bounds of array 'x.data' of shape \(4,\)"):
        wp.launch(copy_out, 2, inputs=[wp.indexedarray(a, ints([1, 9])), out], checked=True)


# ---- derivatives


@wp.kernel
def squares(x: wp.indexedarray(dtype=wp.float64), w: wp.array(dtype=wp.float64), y: wp.indexedarray(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i] * w[i]


@wp.kernel
def scattered(x: wp.array(dtype=wp.float64), y: wp.indexedarray2d(dtype=wp.float64)):
    i, j = wp.tid()
    wp.atomic_add(y, i, j, wp.sin(x[i]) * x[j])


@wp.struct
class Held:
    x: wp.indexedarray(dtype=wp.float64)


@wp.kernel
def from_struct(h: Held, many: wp.array(dtype=Held), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    s = h.x[0]
    for k in range(len(h.x)):
        s = s * h.x[k] + many[0].x[i]
    y[i] = s


LIST, OTHER = [4, 1, 1, 0], [2, 0, 3, 5]


def numbers(n, seed=0):
    return wp.array(np.random.default_rng(seed).uniform(0.5, 1.5, n), dtype=wp.float64, requires_grad=True)


def through_gathers(x, w):
    y, out = wp.zeros(6, dtype=wp.float64, requires_grad=True), wp.zeros((3, 6), dtype=wp.float64, requires_grad=True)
    wp.launch(squares, 4, inputs=[x[ints(LIST)], w], outputs=[y[ints(OTHER)]])
    wp.launch(scattered, (3, 2), inputs=[y], outputs=[out[:, ints([5, 5])]])
    return [y, out]


def in_place(x, w):
    x = wp.clone(x)
    for _ in range(3):
        wp.launch(squares, 4, inputs=[x[ints(OTHER[:3] + [4])], w], outputs=[x[ints(OTHER[:3] + [4])]])
    return [x]


def by_host_writes(x, w):
    y, z = (wp.zeros(6, dtype=wp.float64, requires_grad=True) for _ in range(2))
    wp.copy(y[ints(OTHER)], x[ints(LIST)])
    z[ints([0, 0, 3, 2])] = x[ints(LIST)].contiguous()  # the last of equal indices wins
    wp.launch(squares, 4, inputs=[y[ints(OTHER)], w], outputs=[y[ints(OTHER)]])
    y[ints([5])].fill_(3.0)
    z[1:3].assign(y[ints([2, 3])])
    return [y, z, wp.clone(y[ints(OTHER)])]


def through_structs(x, w):
    h, y = Held(), wp.zeros(3, dtype=wp.float64, requires_grad=True)
    h.x = x[ints(LIST)]
    wp.launch(from_struct, 3, inputs=[h, wp.array([h], dtype=Held)], outputs=[y])
    return [y]


def given_rule(x, w):
    y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    wp.launch(call_ruled, 3, inputs=[x[ints(LIST)]], outputs=[y])
    return [y]


@wp.func
def ruled(x: wp.indexedarray(dtype=wp.float64), i: int):
    return x[i] * x[i]


@wp.func_grad(ruled)
def ruled_gradient(x: wp.indexedarray(dtype=wp.float64), i: int, adj: wp.float64):
    wp.adjoint[x][i] += wp.float64(2.0) * x[i] * adj


@wp.kernel
def call_ruled(x: wp.indexedarray(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = ruled(x, i) * x[i + 1]


@pytest.mark.parametrize("run", [through_gathers, in_place, by_host_writes, given_rule])
def test_gradients_reach_the_data(run):
    assert wp.autograd.gradcheck(run, inputs=[numbers(6), numbers(4, 1)], eps=1e-6, atol=1e-7, rtol=1e-6,
                                 show_summary=False)  # fmt: skip


def test_gradients_through_data_without_one():
    x, y, loss = numbers(6), wp.zeros(6, dtype=wp.float64), wp.zeros(1, dtype=wp.float64, requires_grad=True)
    w, end = wp.ones(6, dtype=wp.float64), wp.array([0], dtype=int)
    with wp.Tape() as tape:
        wp.launch(squares, 4, inputs=[x[ints(LIST)], w, y[ints(OTHER)]])
        wp.launch(squares, 1, inputs=[y[ints([2])], w, loss[end]])
    tape.backward(loss)
    assert np.allclose(x.grad.numpy(), np.eye(6)[4] * 4 * x.numpy() ** 3)
    assert tape.gradients[x] is x.grad


def test_adjoint_launches():
    x, w, y = numbers(6), wp.ones(4, dtype=wp.float64), wp.zeros(6, dtype=wp.float64, requires_grad=True)
    y.grad.fill_(1.0)
    args = {"inputs": [x[ints(LIST)], w], "outputs": [y[ints(OTHER)]], "adjoint": True}
    wp.launch(squares, 4, **args)
    expected = np.zeros(6)
    np.add.at(expected, LIST, 2 * x.numpy()[LIST])
    assert np.allclose(x.grad.numpy(), expected)
    own, seed = wp.zeros_like(x), wp.ones_like(y)  # the gradient of an indexed array is that of its data
    wp.launch(squares, 4, **args, adj_inputs=[own, None], adj_outputs=[seed])
    assert np.allclose(own.numpy(), expected) and np.allclose(x.grad.numpy(), expected)


def test_gradients_through_structs():
    x = numbers(6)
    x.requires_grad = True
    (y,) = through_structs(x, None)
    with wp.Tape() as tape:
        (y,) = through_structs(x, None)
    tape.backward(grads={y: wp.ones_like(y)})
    found = x.grad.numpy().copy()
    for k in range(6):
        sides = []
        for step in (1e-6, -1e-6):
            moved = x.numpy().copy()
            moved[k] += step
            sides.append(through_structs(wp.array(moved, dtype=wp.float64), None)[0].numpy().sum())
        assert abs((sides[0] - sides[1]) / 2e-6 - found[k]) < 1e-6


def test_tangents():
    x, w, y = numbers(6), wp.ones(4, dtype=wp.float64), wp.zeros(6, dtype=wp.float64)
    dx = wp.array(np.arange(6), dtype=wp.float64)
    (dy,) = wp.jvp(squares, 4, inputs=[x[ints(LIST)], w], outputs=[y[ints(OTHER)]], tangents=[dx[ints(LIST)]])
    assert np.allclose(dy.numpy(), 2 * x.numpy()[LIST] * dx.numpy()[LIST])
    assert np.allclose(dy.data.numpy()[OTHER], dy.numpy()) and dy.data.numpy()[[1, 4]].tolist() == [0, 0]
    with pytest.raises(wp.LaunchTypeError, match="an indexed array is due, not array"):
        wp.jvp(squares, 4, inputs=[x[ints(LIST)], w, y[ints(OTHER)]], tangents=[dx])


def test_assignments_of_another_size_and_fills_with_fractions_are_refused():
    a, whole = wp.zeros(3, dtype=float), wp.zeros(3, dtype=int)
    few = wp.indexedarray(a, [wp.array([0, 2], dtype=int)])
    with pytest.raises(wp.ArrayError, match=r"data of shape \(5,\) cannot be assigned to an array of shape \(2,\)"):
        few.assign(np.zeros(5))
    with pytest.raises(wp.ArrayError, match=r"data of shape \(5,\) .* shape \(3,\)"), wp.ScopedCapture():
        a.assign(np.zeros(5))
    with pytest.raises(wp.ArrayError, match="an array of int32 cannot be filled with 2.5"):
        wp.indexedarray(whole, [wp.array([0, 2], dtype=int)]).fill_(2.5)
    assert not whole.numpy().any()
