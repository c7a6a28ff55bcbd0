"""Elements, views, slices, fields, shapes."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from tests.frontend.language import error, outputs, program, run, struct, wp
from treadle.base.errors import KernelAssertionError, KernelAttributeError, KernelIndexError
from treadle.ir.walk import ops_of
from treadle.types.core import Struct, f32, i32, matrix, quaternion, transformation, vector, view


def names(func) -> list[str]:
    return [op.name for op in ops_of(func.body)]


def test_elements_of_more_dimensions():
    def kernel(a):
        i, j = wp.tid()
        a[i, j] = float(i * 10 + j)
        a[i][j] += 0.5

    a = np.zeros((2, 3), np.float32)
    run(kernel, [a], dim=(2, 3))
    assert a.tolist() == [[0.5, 1.5, 2.5], [10.5, 11.5, 12.5]]


def test_fewer_indices_give_a_view():
    def kernel(a, out):
        row = a[1]
        row[2] = 7.0
        plane = row
        out[0] = plane[2] + float(row.shape[0])

    a, out = np.zeros((2, 3), np.float32), np.zeros(1, np.float32)
    run(kernel, [a, out])
    assert a[1, 2] == 7.0
    assert out[0] == 10.0


def test_known_negative_indices_count_from_the_end():
    def kernel(a, b):
        a[-1] = 1.0
        b[0, -2] = 2.0
        b[-1][-1] = 3.0

    a, b = np.zeros(4, np.float32), np.zeros((2, 3), np.float32)
    run(kernel, [a, b])
    assert a.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert b.tolist() == [[0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]


SLICES = [
    slice(1, 4), slice(None, 3), slice(2, None), slice(None), slice(-3, -1), slice(None, None, 2),
    slice(None, None, -1),
    slice(4, 0, -2), slice(-1, -9, -3), slice(3, 3), slice(5, 2), slice(-99, 99), slice(0, 99, 4),
]  # fmt: skip


@pytest.mark.parametrize("cut", SLICES, ids=str)
def test_slices_follow_python(cut):
    written = ":".join("" if b is None else str(b) for b in (cut.start, cut.stop, cut.step))

    namespace: dict = {"wp": wp}
    source = (
        f"def kernel(a, bounds, out):\n    c = a[{written}]\n    out[0] = c.shape[0]\n    for i in range(c.shape[0]):\n"
        f"        out[1 + i] = c[i]\n    start = bounds[0]\n    stop = bounds[1]\n"
        f"    d = a[start:stop:{cut.step or 1}]\n    out[10] = d.shape[0]\n"
    )
    name = f"<slice {written}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), namespace)
    a, out = np.arange(100, 107, dtype=np.int32), np.zeros(11, np.int32)
    both = cut.start is not None and cut.stop is not None
    bounds = np.array([cut.start, cut.stop] if both else [0, 0], np.int32)
    run(namespace["kernel"], [a, bounds, out])
    want = a[cut].tolist()
    assert out[: 1 + len(want)].tolist() == [len(want), *want]
    if both:
        assert out[10] == len(want)


@pytest.mark.parametrize("bounds", [(0, 7, 2), (6, -8, -1), (-1, 1, -3), (5, 2, 1), (1, 99, 4), (-99, 3, 1)])
def test_slices_with_a_step_at_run_time(bounds):
    def kernel(a, bounds, out):
        c = a[bounds[0] : bounds[1] : bounds[2]]
        d = a[:: bounds[2]]
        out[0] = c.shape[0]
        for i in range(c.shape[0]):
            out[1 + i] = c[i]
        out[10] = d[0]

    a, out = np.arange(100, 107, dtype=np.int32), np.zeros(11, np.int32)
    run(kernel, [a, np.array(bounds, np.int32), out])
    want = a[slice(*bounds)].tolist()
    assert out[: 1 + len(want)].tolist() == [len(want), *want]
    assert out[10] == a[:: bounds[2]][0]
    with pytest.raises(KernelAssertionError, match="slice step"):
        run(kernel, [a, np.array([0, 1, 0], np.int32), out])


def test_an_index_behind_a_slice():
    def kernel(a, out):
        column = a[:, 1]
        column[2] = 5.0
        out[0] = column[0] + float(column.shape[0] * 100)
        last = a[1:, -1]
        out[1] = last[0]

    a, out = np.arange(12, dtype=np.float32).reshape(4, 3), np.zeros(2, np.float32)
    run(kernel, [a, out])
    assert out.tolist() == [401.0, 5.0]
    assert a[2, 1] == 5.0


def test_views_of_different_layout_meet():
    def kernel(a, b, out):
        i = wp.tid()
        if i > 0:
            c = a[::2]
        else:
            c = b
        out[i] = c[1]
        d = b
        d = a[::-1]
        out[2 + i] = d[0]

    a, b, out = np.arange(4, dtype=np.float32), np.arange(10, 14, dtype=np.float32), np.zeros(4, np.float32)
    run(kernel, [a, b, out], dim=2)
    assert out.tolist() == [11.0, 2.0, 3.0, 3.0]


def test_slices_of_two_dimensions():
    def kernel(a):
        b = a[1:3, 0:2]
        b[0, 1] = 5.0
        c = a[2, 1:]
        c[1] = 6.0

    a = np.zeros((3, 3), np.float32)
    run(kernel, [a])
    assert a[1, 1] == 5.0
    assert a[2, 2] == 6.0
    assert a.sum() == 11.0


def test_shapes_and_types_of_arrays():
    def kernel(a, out):
        out[0] = float(a.shape[1])
        out[1] = float(a.shape[-2])
        n = a.shape
        out[2] = float(n[0] * n[1])
        out[3] = float(a.size)
        out[4] = float(a.ndim)
        out[5] = out.dtype(3)
        x = out.dtype(0.5)
        out[6] = x
        out[7] = float(len(a))
        for k in range(a.shape[0] + wp.tid()):
            out[8] += float(a.shape[k] * (1 + 9 * k))

    a, out = np.zeros((2, 3), np.float32), np.zeros(9, np.float32)
    run(kernel, [a, out])
    assert out.tolist() == [3.0, 2.0, 6.0, 6.0, 2.0, 3.0, 0.5, 2.0, 32.0]


def test_matrices():
    def kernel(m, k, out):
        a = m[0]
        c = a[:, 1]
        out[0] = c[2]
        b = a[0:2, 0:2]
        out[1] = b[1, 1]
        out[2] = a[k[0]][2]
        out[3] = a[1, k[0]]
        r = m[0][k[0]]
        out[4] = r[0]
        out[5] = m[0][2][k[0]]

    m = np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3)
    out = np.zeros(6, np.float32)
    run(kernel, [m, np.array([1], np.int32), out], [view(matrix(3, 3, f32), 1), view(i32, 1), view(f32, 1)])
    assert out.tolist() == [8.0, 5.0, 6.0, 5.0, 4.0, 8.0]


def test_a_component_at_a_run_time_index_is_read_alone():
    def kernel(m, k, out):
        out[0] = m[0][2][k]
        m[0][k, 1] = 1.0

    func = program(kernel, [view(matrix(3, 3, f32), 1), i32, view(f32, 1)])
    assert names(func).count("load") == 1
    assert names(func).count("store") == 2


def test_quaternions_and_transforms():
    def kernel(q, t, out):
        out[0] = q[0].w
        q[0].x = 5.0
        p = t[0].p
        out[1] = p[1]
        out[2] = t[0].q.w
        t[0].p = wp.vec3(7.0, 8.0, 9.0)
        s = t[0]
        s.q = q[0]
        out[3] = s.q.x

    q, t = np.array([[1, 2, 3, 4]], np.float32), np.arange(7, dtype=np.float32).reshape(1, 7)
    out = np.zeros(4, np.float32)
    run(kernel, [q, t, out], [view(quaternion(f32), 1), view(transformation(f32), 1), view(f32, 1)])
    assert out.tolist() == [4.0, 1.0, 6.0, 5.0]
    assert q.tolist() == [[5, 2, 3, 4]]
    assert t.tolist() == [[7, 8, 9, 3, 4, 5, 6]]


@struct
class Inner:
    pos: wp.vec3
    mass: float


@struct
class Body:
    inner: Inner
    count: int
    data: wp.array(dtype=float)


def test_fields_of_structs_in_arrays():
    def kernel(b, out):
        i = wp.tid()
        b[i].inner.pos.x = 1.0
        b[i].inner.pos[2] = 3.0
        b[i].inner.mass += 2.0
        b[i].count = i
        b[i].data[i] = 9.0
        out[i] = b[i].inner.pos.x + b[i].inner.mass + float(b[i].data.shape[0])

    func = program(kernel, [view(Body.__treadle_type__, 1), view(f32, 1)])
    stores = [op for op in ops_of(func.body) if op.name == "store"]
    assert all(op.args[0].type.elem in (f32, i32) for op in stores)
    whole = [op for op in ops_of(func.body) if op.name == "load" and op.results[0].type is Body.__treadle_type__]
    assert not whole


def test_local_structs():
    def kernel(out):
        s = Inner()
        s.pos.x = 1.0
        s.pos[1] = 2.0
        t = s
        t.mass = 5.0
        out[0] = s.pos.x + s.pos.y + s.mass
        out[1] = t.mass + t.pos[1]
        u = Inner(wp.vec3(1.0, 1.0, 1.0), 4.0)
        out[2] = u.mass + u.pos.z

    assert outputs(kernel, 3) == [3.0, 7.0, 5.0]


def test_arrays_in_structs_are_reached_directly():
    def kernel(s, n):
        for i in range(n):
            s.data[i] = float(i)
            s.data[i] += 1.0

    func = program(kernel, [Body.__treadle_type__, i32])
    (loop,) = [op for op in func.body.ops if op.name == "for"]
    assert loop.results == ()


def test_a_threads_own_array():
    def kernel(out):
        a = wp.zeros(shape=(4,), dtype=float)
        n = 2
        b = wp.zeros(shape=(n, 2), dtype=wp.vec3)
        a[1] = 2.0
        a[1] += 1.0
        b[1, 1] = wp.vec3(1.0, 2.0, 3.0)
        b[1, 1][0] = 7.0
        for i in range(4):
            out[i] = a[i]
        out[4] = b[1, 1][0] + b[1][1].y
        out[5] = float(a.shape[0])

    assert outputs(kernel, 6) == [0.0, 3.0, 0.0, 0.0, 9.0, 4.0]
    assert "atomic" not in names(program(kernel, [view(f32, 1)]))


def test_tables_of_python_are_constants():
    table = {"a": (1.0, 2.0)}
    numbers = [3.0, 4.0]

    def kernel(out):
        out[0] = table["a"][1]
        out[1] = numbers[-1]
        out[2] = wp.static(numbers[0])

    assert outputs(kernel, 3) == [2.0, 4.0, 3.0]


def test_mistakes():
    vec, mat = view(vector(3, f32), 1), view(matrix(2, 2, f32), 1)

    def too_many(a):
        a[0, 1, 2] = 1.0

    def by_float(a):
        a[1.5] = 1.0

    def no_field(b):
        b[0].mas = 1.0

    def no_component(v):
        v[0].w = 1.0

    def outside(v):
        v[0][3] = 1.0

    def no_attribute(a):
        a.foo = 1.0

    def wrong_type(a):
        a[0] = 1 + a.shape[0]

    def whole_row(a):
        a[0] = 1.0

    def matrix_index(m):
        m[0][2, 0] = 1.0

    def call_result():
        wp.vec3(1.0, 2.0, 3.0)[0] = 1.0

    assert "array indexing: 3, the array has 2 dimensions" in str(error(too_many, [view(f32, 2)]))
    assert "an index must be an integer, not float32" in str(error(by_float, [view(f32, 1)]))
    missing = error(no_field, [view(Inner.__treadle_type__, 1)])
    assert isinstance(missing, KernelAttributeError) and "`mas` is not an attribute of" in str(missing)
    assert "`w` is not an attribute of vec3f" in str(error(no_component, [vec]))
    assert "index 3 is outside of 3 parts" in str(error(outside, [vec]))
    assert "`foo` is not an attribute of an array" in str(error(no_attribute, [view(f32, 1)]))
    assert "the element expects value of type float32, got int32" in str(error(wrong_type, [view(f32, 1)]))
    assert "2 indices are needed to store an element" in str(error(whole_row, [view(f32, 2)]))
    assert "index 2 is outside of 2 parts" in str(error(matrix_index, [mat]))
    assert "only variables, array elements" in str(error(call_result, []))


PAIR = (1.0, 2.0)


def test_known_indices_outside_of_what_they_count_are_index_errors():
    def component(a):
        a[0] = wp.vec3(1.0, 2.0, 3.0)[-4]

    def of_matrix(a):
        a[0] = wp.mat22(1.0, 2.0, 3.0, 4.0)[2, 0]

    def item(a):
        pair = (1.0, 2.0)
        a[0] = pair[2]

    def outer_item(a):
        a[0] = PAIR[2]

    def length(a):
        a[0] = float(a.shape[-2])

    def unrolled(a):
        v = wp.vec3()
        for k in range(4):
            v[k] += 1.0

    def own(a):
        mine = wp.zeros(shape=(4, 2), dtype=float)
        mine[3, 2] = a[0]

    def own_row(a):
        mine = wp.zeros(shape=(4, 2), dtype=float)
        a[0] = mine[3][-3]

    for kernel in (component, of_matrix, item, outer_item, length, unrolled, own, own_row):
        wrong = error(kernel, [view(f32, 1)])
        assert isinstance(wrong, KernelIndexError) and isinstance(wrong, IndexError), kernel.__name__
        assert wrong.span.line > kernel.__code__.co_firstlineno


def test_known_indices_behind_a_known_condition_may_be_anything():
    def kernel(a):
        mine = wp.zeros(shape=(4,), dtype=float)
        for k in range(5):
            if k + 1 < 4:
                mine[k + 1] = float(k)
        a[0] = mine[-1] + mine[-3]

    a = np.zeros(1, np.float32)
    run(kernel, [a])
    assert a[0] == 2.0


def test_structs_take_arrays_of_any_layout():
    general = Body.__treadle_type__
    dense = Struct(general.key, tuple((n, view(f32, 1) if n == "data" else t) for n, t in general.fields))

    def kernel(a, s, out):
        i = wp.tid()
        b = Body(Inner(), 3, a)
        out[0] = b.data[1]
        b.data = a[::2]
        out[1] = b.data[1]
        c = Body()
        if i == 0:
            c = s
        out[2] = c.data[0]
        c.data[0] = 9.0
        b = s
        out[3] = b.data[0]

    a, out = np.array([1.0, 2.0, 3.0], np.float32), np.zeros(4, np.float32)
    held = np.array([5.0, 6.0], np.float32)
    inner = {"pos": [0.0, 0.0, 0.0], "mass": 0.0}
    run(kernel, [a, {"inner": inner, "count": 1, "data": held}, out], [view(f32, 1), dense, view(f32, 1)])
    assert out.tolist() == [2.0, 3.0, 5.0, 9.0]
    assert held.tolist() == [9.0, 6.0]
