"""What a tape knows of launches before they run."""

import treadle as wp
from treadle.lang.parts import span_of
from treadle.lang.plan import plan_of


@wp.struct
class State:
    x: wp.array2d(dtype=wp.vec3)
    row: int


@wp.kernel
def move(s: State, shift: wp.vec2i, ids: wp.array(dtype=int), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    s.x[s.row + 1, j] = s.x[s.row, j] + s.x[shift[1], j]
    wp.atomic_add(out, i, ids[j], 1.0)


def planned(kernel, args, dims):
    _, types = kernel.bind(args)
    overload = kernel.overload(types)
    return plan_of(kernel, overload, overload.variant(dims).program)


def arguments():
    s = State()
    s.x, s.row = wp.zeros((5, 4), dtype=wp.vec3), 2
    return [s, wp.vec2i(0, 3), wp.zeros(4, dtype=int), wp.zeros((3, 4), dtype=float)]


def test_sites():
    args = arguments()
    plan = planned(move, args, (3, 4))
    s_x, ids, out = plan.sites
    assert [(s.name, s.floats, s.loads, s.writes) for s in plan.sites] == [
        ("s.x", True, True, True), ("ids", False, True, False), ("out", True, False, True),
    ]  # fmt: skip
    assert s_x.needs and s_x.keeps and ids.needs and not out.needs
    assert not plan.plain and plan.vectors == (0, 1)
    assert s_x.of(args) is args[0].x and plan.written(args) == [args[0].x, args[3]]


def test_boxes_of_a_launch():
    args = arguments()
    plan = planned(move, args, (3, 4))
    x, out = args[0].x, args[3]
    s_x, _, out_site = plan.sites

    def rows(parts):
        return [((low - x.ptr) // 48, (high - x.ptr) // 48) for low, high, _ in parts]

    assert rows(plan.parts(s_x, s_x.boxes, x, (3, 4), args)) == [(3, 4)]
    assert rows(plan.parts(s_x, s_x.read_boxes, x, (3, 4), args)) == [(2, 4)]  # two boxes that touch
    args[0].row = -2  # rows that count from the end
    assert rows(plan.parts(s_x, s_x.boxes, x, (3, 4), args)) == [(4, 5)]
    for row in (4, -8):  # past either end
        args[0].row = row
        assert plan.parts(s_x, s_x.boxes, x, (3, 4), args) == []
    ((low, high, elements),) = plan.parts(out_site, out_site.boxes, out, (2, 4), args)
    assert (low, high, elements) == (out.ptr, out.ptr + 32, None)


def test_where_arrays_lie():
    a = wp.zeros((4, 3), dtype=float)
    assert span_of(a) == (a.ptr, a.ptr + 48)
    assert span_of(a[1:, 1]) == (a.ptr + 16, a.ptr + 44)
    assert span_of(a[::-1]) == (a.ptr, a.ptr + 48)
