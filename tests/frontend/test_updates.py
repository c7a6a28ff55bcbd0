"""``a[i] += x`` is atomic, but where every access is at the thread's own index it is a plain sum."""

from __future__ import annotations

import pytest

from tests.frontend.language import program, struct, wp
from treadle.ir.walk import ops_of
from treadle.types.core import f32, i32, vector, view


def atomics(kernel, types) -> int:
    return sum(op.name == "atomic" for op in ops_of(program(kernel, types).body))


A, M, N = view(f32, 1), view(f32, 2), view(i32, 1)


@struct
class Particles:
    pos: wp.array(dtype=wp.vec3)
    mass: wp.array(dtype=float)


def own(a):
    i = wp.tid()
    a[i] += 1.0
    a[i] -= 2.0


def own_in_a_loop(a, m):
    i = wp.tid()
    for k in range(m.shape[1]):
        m[i, k] += a[i]


def own_row(a, m):
    i = wp.tid()
    row = m[i]
    for k in range(m.shape[1]):
        row[k] += a[i]


def own_both(m):
    i, j = wp.tid()
    m[j, i] += 1.0


def own_component(v):
    i = wp.tid()
    v[i].x += 1.0
    v[i][i] += 1.0


def own_in_struct(p):
    i = wp.tid()
    p.pos[i] += wp.vec3(1.0, 0.0, 0.0)
    p.mass[i] += 1.0


def next_one(a):
    i = wp.tid()
    a[i + 1] += 1.0


def fixed_place(a):
    a[0] += 1.0


def reads_the_neighbour(a):
    i = wp.tid()
    a[i] += a[i + 1]


def transposed_too(m):
    i, j = wp.tid()
    m[i, j] += 1.0
    m[j, i] += 1.0


def only_one_axis(m, a):
    i, j = wp.tid()
    a[i] += m[i, j]


def also_elsewhere(a, n):
    i = wp.tid()
    a[i] += 1.0
    a[n[i]] = 2.0


@wp.func
def scatter(a: wp.array(dtype=float), k: int):
    a[k] += 1.0


@wp.func
def scatter_in(p: Particles, k: int):
    p.mass[k] += 1.0


def also_through_a_struct(a, v, n):
    i = wp.tid()
    a[i] += 1.0
    scatter_in(Particles(v, a), n[i])


def also_in_a_function(a, n):
    i = wp.tid()
    a[i] += 1.0
    scatter(a, n[i])


@pytest.mark.parametrize(
    ("kernel", "types", "left"),
    [
        (own, [A], 0), (own_in_a_loop, [A, M], 0), (own_row, [A, M], 0), (own_both, [M], 0),
        (own_component, [view(vector(3, f32), 1)], 0), (own_in_struct, [Particles.__treadle_type__], 0),
        (next_one, [A], 1), (reads_the_neighbour, [A], 1),
        (fixed_place, [A], 1), (transposed_too, [M], 2), (only_one_axis, [M, A], 1),
        (also_elsewhere, [A, N], 1), (also_in_a_function, [A, N], 1),
        (also_through_a_struct, [A, view(vector(3, f32), 1), N], 1),
    ],
    ids=lambda x: x.__name__ if callable(x) else "",
)  # fmt: skip
def test_atomics_left(kernel, types, left):
    assert atomics(kernel, types) == left


def called(a, n):
    i = wp.tid()
    wp.atomic_max(a, i, float(wp.atomic_add(n, i, 1)))


def test_what_was_there_before_is_what_a_plain_update_reads():
    func = program(called, [A, N])
    assert atomics(called, [A, N]) == 0 and set(func.facts["updated"]) == {"a", "n"}
    load = next(op for op in func.body.ops if op.name == "load")
    assert any(op.name == "cast" and op.args == load.results for op in func.body.ops)


def test_sums_of_bits_are_atomic_too():
    def kernel(a):
        a[0] += 1
        a[0] -= 1
        a[0] &= 3
        a[0] |= 3
        a[0] ^= 3
        a[0] *= 2

    kinds = [op.attrs["op"] for op in program(kernel, [N]).body.ops if op.name == "atomic"]
    assert kinds == ["add", "sub", "and", "or", "xor"]
