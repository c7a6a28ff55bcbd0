"""What lanes have in common, found out by analysis."""

from tests.codegen.harness import KernelBuilder
from treadle.passes.lanes import BASE, analyse
from treadle.types.core import b1, f32, fixed, i32, i64, vector, view


def kernel(ndim=1):
    k = KernelBuilder((view(f32, 1), view(f32, 2), i32), ndim=ndim)
    return k, *k.params


def test_integer_sums_keep_the_step_from_lane_to_lane():
    k, _, _, n = kernel()
    i, c = k.tid(), lambda v: k.const(v, i32)
    cases = {
        1: k.op("add", i, n), -1: k.op("sub", n, i), 6: k.op("mul", k.op("add", i, c(5)), c(6)),
        8: k.op("shl", i, c(3)),
        0: k.op("sub", k.op("add", i, n), i), 3: k.op("add", k.op("mul", c(2), i), i),
    }  # fmt: skip
    unknown = [k.op("mul", i, n), k.op("mul", i, i), k.op("mul", i, c(1 << 20)), k.cast(i, f32), k.op("min", i, n)]
    steps = analyse(k.func()).steps
    for step, v in cases.items():
        assert steps[v] == step
    assert all(steps[v] is None for v in unknown)


def test_only_what_cannot_wrap_around_keeps_its_step_when_it_is_widened():
    k, _, _, n = kernel()
    i = k.tid()
    exact, sums = k.cast(i, i64), k.cast(k.op("add", i, n), i64)
    back = k.cast(exact, i32)
    steps = analyse(k.func()).steps
    assert (steps[exact], steps[sums], steps[back]) == (1, None, 1)


def test_grids():
    k, *_ = kernel(ndim=2)
    i, j = k.tid(0), k.tid(1)
    func = k.func()
    assert [analyse(func, rows=True).steps[v] for v in (i, j)] == [0, 1]
    assert [analyse(func).steps[v] for v in (i, j)] == [None, None]
    assert [analyse(func, width=1).steps[v] for v in (i, j)] == [0, 0]


def test_loads_and_views():
    k, x, m, n = kernel()
    i = k.tid()
    (row,) = k.b.op("subview", (m, i), (view(f32, 1),))
    (same,) = k.b.op("subview", (m, n), (view(f32, 1),))
    (own,) = k.b.op("local", (), (view(f32, 1, space="local"),), type=fixed(f32, (4,)))
    values = [k.load(x, n), k.load(x, i), k.load(own, n), k.load(same, n), k.load(row, n)]
    length = k.b.one("shape", (row,), i32, axis=0)
    steps = analyse(k.func()).steps
    assert [steps[v] for v in values] == [0, None, None, 0, None]
    assert (steps[row], steps[same], steps[own], steps[length]) == (BASE, 0, 0, 0)


def test_branches_diverge_by_their_condition():
    k, x, _, n = kernel()
    i = k.tid()
    pick = lambda c: k.if_(c, lambda: [k.op("add", n, n)], lambda: [n])
    uniform, varying = pick(k.op("gt", n, k.const(1, i32))), pick(k.op("gt", i, n))
    func = k.func()
    lanes = analyse(func)
    assert (lanes.steps[uniform], lanes.steps[varying]) == (0, None)
    assert [op.results[0] for op in lanes.divergent] == [varying]


def loop_with_a_break(k, x):
    """while c < 9: (leave if x·c > 1); c += 1; the value of c after it."""

    def body(c, v):
        go = k.op("lt", k.op("mul", k.cast(c, f32), v), k.const(1.0, f32))
        return [go, *k.if_(go, lambda: [k.op("add", c, k.const(1, i32)), k.op("mul", v, v)], lambda: [c, v])]

    return k.while_([k.const(0, i32), x], body)


def test_the_two_faces_of_a_counter():
    k, x, _, _ = kernel()
    c, _ = loop_with_a_break(k, k.load(x, k.tid()))
    func = k.func()
    lanes = analyse(func)
    loop = func.body.ops[-1]
    assert loop in lanes.divergent
    assert lanes.steps[loop.regions[0].params[0]] == 0  # inside: running lanes have counted alike
    assert lanes.steps[c] is None  # after it: they left at different times


def test_the_arm_that_stays_needs_no_blend():
    k, x, _, _ = kernel()
    loop_with_a_break(k, k.load(x, k.tid()))
    func = k.func()
    body = func.body.ops[-1].regions[0]
    branch = body.ops[-1]
    found = analyse(func).leaving[branch]
    assert found.stay == 0 and found.last and list(found.free.values()) == list(body.params)


def test_a_value_that_changes_before_a_break_is_blended():
    k, x, out, n = kernel()
    v = k.load(x, k.tid())

    def body(c):
        go = k.op("lt", k.cast(c, f32), v)
        after = k.op("add", c, k.const(1, i32))
        return [go, k.if_(go, lambda: [k.op("mul", after, k.const(2, i32))], lambda: [after])]

    (c,) = k.while_([k.const(0, i32)], body)
    k.store(x, (k.tid(),), k.cast(c, f32))
    func = k.func()
    lanes = analyse(func)
    (loop,) = [op for op in func.body.ops if op.name == "while"]
    (branch,) = [op for op in loop.regions[0].ops if op.name == "if"]
    assert not lanes.leaving[branch].free


def test_a_conjunction_leaves_by_each_of_its_parts():
    k, x, _, n = kernel()
    v = k.load(x, k.tid())

    def body(c):
        near = k.op("lt", k.cast(c, f32), v)
        go = k.op("bitand", k.op("lt", c, n), near)
        rest = k.if_(near, lambda: [k.op("add", c, k.const(1, i32))], lambda: [c])
        return [go, rest]

    k.while_([k.const(0, i32)], body)
    func = k.func()
    branch = func.body.ops[-1].regions[0].ops[-1]
    assert analyse(func).leaving[branch].stay == 0


def test_counters_of_ranges():
    k, x, _, n = kernel()
    i, one = k.tid(), k.const(1, i32)
    seen = {}

    def body(name):
        def write(j):
            seen[name] = j
            return []

        return write

    k.for_(k.const(0, i32), n, one, [], body("uniform"))
    k.for_(i, n, one, [], body("contiguous"))
    k.for_(k.const(0, i32), i, one, [], body("varying stop"))
    k.for_(k.const(0, i32), n, i, [], body("varying step"))
    func = k.func()
    lanes = analyse(func)
    assert [lanes.steps[v] for v in seen.values()] == [0, 1, 0, None]
    assert [op in lanes.divergent for op in func.body.ops if op.name == "for"] == [False, True, True, True]


def test_vectors_of_loads_have_a_step_each():
    k = KernelBuilder((view(vector(3, f32), 1), i32))
    x, n = k.params
    parts = k.load(x, n)
    assert all(analyse(k.func()).steps[p] == 0 for p in parts)


def test_what_is_taken_back_varies_as_what_was_put_there():
    k, x, _, n = kernel()
    i = k.tid()
    v = k.load(x, i)
    k.b.op("push", (n, k.op("add", i, n), v), site=1)
    k.b.op("push", (n,), site=2)
    taken = k.b.op("pop", (), (i32,), site=2) + k.b.op("pop", (), (i32, i32, f32), site=1)
    k.b.op("push", (n,), site=2)
    k.b.op("push", (i,), site=2)  # of all that a site is given
    k.b.op("record", (n,), site=2)  # the log's sites are others
    recalled = k.b.op("recall", (), (i32,), site=2)
    alike = [k.b.one("mark", (), i64), k.b.one("lanes_max", (i,), i32)]
    steps = analyse(k.func()).steps
    assert [steps[r] for r in taken] == [None, 0, 1, None]
    assert [steps[r] for r in (*recalled, *alike)] == [0, 0, 0]


def test_what_is_put_aside_later_counts_for_what_was_taken_before():
    k, x, _, n = kernel()
    zero, one = k.const(0, i32), k.const(1, i32)
    taken = []
    k.b.op("push", (n,), site=1)

    def round_(j):
        taken.extend(k.b.op("pop", (), (i32,), site=1))
        k.b.op("push", (k.op("add", j, k.tid()),), site=1)
        return []

    k.for_(zero, n, one, [], round_)
    assert analyse(k.func()).steps[taken[0]] is None


def test_gradients_vary_as_their_data():
    rows = view(view(f32, 1), 1)
    k = KernelBuilder((rows, i32))
    table, n = k.params
    own = k.load(table, k.tid())
    same = k.load(table, n)
    made = [k.b.one("grad", (v,), v.type) for v in (own, same)] + [k.b.one("has_grad", (v,), b1) for v in (own, same)]
    steps = analyse(k.func()).steps
    assert [steps[v] for v in made] == [None, 0, None, 0]
