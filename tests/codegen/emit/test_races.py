"""Threads that meet at an element, one of them with a plain store, are found, named and shown."""

import numpy as np
import pytest

import treadle as wp

N = 2000  # more than a new table has places for


@wp.struct
class Pair:
    values: wp.array(dtype=float)
    count: int


@wp.func
def put(row: wp.array(dtype=int), value: int):
    row[1] = value  # stored in a function


@wp.kernel
def many(case: int, a: wp.array(dtype=float), v: wp.array(dtype=wp.vec3), grid: wp.array2d(dtype=int), pair: Pair,
         pairs: wp.array(dtype=Pair)):  # fmt: skip
    i = wp.tid()
    own = wp.zeros(shape=2, dtype=float)
    own[i % 2] = 1.0
    if case == 0:
        a[i + 1] = a[i]  # reads what another stores
    elif case == 1:
        a[i // 2] = 1.0  # both store
    elif case == 2:
        wp.atomic_add(a, 5, 1.0)  # updated atomically
        if i == 7:
            a[5] = 0.0  # stored beside it
    elif case == 3:
        v[i // 4][i % 2] = 1.0  # components of one vector
    elif case == 4:
        if i == 3 or i == 8:
            put(grid[2], i)
    elif case == 5:
        pair.values[i % 9] = own[0]  # an array in a struct
    elif case == 6:
        pairs[0].values[i % 9] = own[0]  # an array in an array of structs
    elif case == 7:
        a[i] += 1.0
        a[i] = 2.0 * a[i] + float(pair.count)
        v[i // 3][i % 3] = a[i]
        wp.atomic_add(grid, 0, 0, 1)
        wp.atomic_max(grid, 0, 1, i)
        grid[1 + i, 1] = grid[0, 2]


RACES = {  # case: element, thread and what it does, the other and what it did, text of their lines
    0: ("a[1]", "thread 1 reads", "thread 0 writes", "a[i + 1] = a[i]"),
    1: ("a[0]", "thread 1 writes", "thread 0 writes", "a[i // 2] = 1.0"),
    2: ("a[5]", "thread 7 writes", "thread 0 updates", "wp.atomic_add(a, 5, 1.0)"),
    3: ("v[0, 0]", "thread 2 writes", "thread 0 writes", "v[i // 4][i % 2] = 1.0"),
    4: ("grid[2, 1]", "thread 8 writes", "thread 3 writes", "row[1] = value"),
    5: ("pair.values[0]", "thread 9 writes", "thread 0 writes", "pair.values[i % 9] = own[0]"),
    6: ("[0]", "thread 9 writes", "thread 0 writes", "pairs[0].values[i % 9] = own[0]"),
}


def arguments(case: int) -> list:
    pair = Pair()
    pair.values, pair.count = wp.zeros(N, dtype=float), 1
    grid = wp.zeros((N + 1, 3), dtype=int)
    return [case, wp.zeros(N + 1, dtype=float), wp.zeros(N, dtype=wp.vec3), grid, pair, wp.array([pair], dtype=Pair)]


@pytest.fixture
def watched():
    wp.config.check_races = True
    yield
    wp.config.check_races = False


@pytest.mark.parametrize("case", RACES)
def test_a_race_is_an_error_that_names_element_threads_and_lines(watched, case):
    element, later, earlier, line = RACES[case]
    with pytest.raises(wp.DataRaceError) as raised:
        wp.launch(many, dim=20, inputs=arguments(case))
    said = str(raised.value)
    assert f"{element}: {later} it here, {earlier} it in the same launch (kernel many)" in said
    assert line in said and said.count("test_races.py:") == 2


def test_what_is_no_race_runs_as_ever(watched):
    found, wanted = arguments(7), arguments(7)
    for _ in range(2):  # nothing is remembered from launch to launch
        wp.launch(many, dim=N, inputs=found)
    wp.config.check_races = False
    for _ in range(2):
        wp.launch(many, dim=N, inputs=wanted)
    for a, b in zip(found[1:4], wanted[1:4], strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


def test_the_process_goes_on_and_indices_are_checked_too(watched):
    with pytest.raises(wp.DataRaceError, match="data race"):
        wp.launch(many, dim=20, inputs=arguments(1))
    with pytest.raises(IndexError, match="index 1 is out of bounds of array 'a'"):
        wp.launch(many, dim=2, inputs=[0, wp.zeros(1, dtype=float), *arguments(0)[2:]])
    wp.launch(many, dim=N, inputs=arguments(7))


def test_grids_name_threads_by_their_place(watched):
    @wp.kernel
    def columns(grid: wp.array2d(dtype=int)):
        i, j = wp.tid()
        grid[0, j] = i

    with pytest.raises(wp.DataRaceError, match=r"grid\[0, 0\]: thread \(1, 0\) writes it here, thread \(0, 0\) writes"):
        wp.launch(columns, dim=(3, 20), inputs=[wp.zeros((1, 20), dtype=int)])


def test_launches_that_say_so_are_not_checked(watched):
    a = arguments(1)
    wp.launch(many, dim=20, inputs=a, checked=False)
    assert a[1].numpy()[:11].tolist() == [1.0] * 10 + [0.0]


def test_gradients_go_on(watched):
    @wp.kernel
    def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * x[0]

    x, y = (wp.full(3, 2.0, dtype=float, requires_grad=True) for _ in range(2))
    with wp.Tape() as tape:
        wp.launch(square, dim=3, inputs=[x, y])
    y.grad.fill_(1.0)
    tape.backward()
    assert x.grad.list() == [8.0, 2.0, 2.0]
