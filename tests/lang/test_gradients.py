"""Gradients of kernels of every kind against central differences, by each array and by what was in it before."""

import numpy as np
import pytest

import treadle as wp
from tests.lang import zoo
from treadle.base.errors import KernelGradientError

NAMES = list(zoo.zoo(wp.float64))
IN_F32 = NAMES[::4]


def launched(case):
    """The launch as a function of all its float arrays, those that it writes included."""
    first = [k for k, a in enumerate(case.inputs) if isinstance(a, wp.array) and a.requires_grad]

    def run(*arrays):
        inputs, outputs = list(case.inputs), arrays[len(first) :]
        for k, a in zip(first, arrays, strict=False):
            inputs[k] = a
        wp.launch(case.kernel, case.dim, inputs=inputs, outputs=outputs)
        return list(outputs)

    return run, [*[case.inputs[k] for k in first], *case.outputs]


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_the_derivative(name):
    run, arrays = launched(zoo.case(wp.float64, name))
    assert wp.autograd.gradcheck(run, inputs=arrays, eps=1e-6, atol=1e-7, rtol=1e-6, show_summary=False)


@pytest.mark.parametrize("name", IN_F32)
def test_gradients_in_single_precision(name):
    run, arrays = launched(zoo.case(wp.float32, name))
    assert wp.autograd.gradcheck(run, inputs=arrays, eps=2e-3, atol=4e-3, rtol=2e-2, show_summary=False)


# ---- loops whose bounds lie far apart


@wp.kernel
def squares_by_steps(x: wp.array(dtype=float), y: wp.array(dtype=float), start: int, stop: int, step: int):
    t = wp.tid()
    for _ in range(start, stop, step):
        y[t] = y[t] + x[t] * x[t]


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 10, 2**31 - 1), (0, 10, 3), (0, 9, 3), (3, -8, -(2**31)), (3, -8, -5), (-(2**31), 2**31 - 1, 2**30),
     (5, 3, 2)],
)
def test_long_steps_are_counted(start, stop, step):
    x, y = wp.array([1.0, 2.0], dtype=float, requires_grad=True), wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(squares_by_steps, dim=2, inputs=[x, y, start, stop, step])
    trips = len(range(start, stop, step))
    np.testing.assert_array_equal(y.numpy(), [trips, 4.0 * trips])
    tape.backward(grads={y: wp.ones(2, dtype=float)})
    np.testing.assert_array_equal(x.grad.numpy(), [2.0 * trips, 4.0 * trips])


# ---- arrays of structs, arrays in structs, planes


@wp.struct
class Inner:
    weight: wp.float64
    place: wp.vec3d


@wp.struct
class Outer:
    inner: Inner
    scale: wp.float64
    count: int


@wp.struct
class Arrays:
    a: wp.array(dtype=wp.float64)
    places: wp.array(dtype=wp.vec3d)
    factor: wp.float64


@wp.kernel
def arrays_of_structs(s: wp.array(dtype=Outer), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    s[i].scale = s[i].scale * s[i].inner.weight
    y[i] = s[i].scale * s[i].inner.place[1] * s[(i + 1) % 3].inner.place.x


@wp.kernel
def arrays_in_structs(s: Arrays, y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    s.a[i] = s.a[i] * s.factor
    y[i] = s.a[i] * wp.length_sq(s.places[i])


def test_arrays_of_structs_have_gradients_of_structs():
    rng = np.random.default_rng(5)
    w, c, place = rng.normal(size=3), rng.normal(size=3), rng.normal(size=(3, 3))
    rows = []
    for k in range(3):
        row = Outer()
        row.inner = Inner()
        row.inner.weight, row.inner.place, row.scale, row.count = w[k], wp.vec3d(*place[k]), c[k], k
        rows.append(row)
    s = wp.array(rows, dtype=Outer, requires_grad=True)
    y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(arrays_of_structs, 3, inputs=[s], outputs=[y])
    seed = np.array([1.0, -2.0, 0.5])
    tape.backward(grads={y: wp.array(seed, dtype=wp.float64)})
    grad = s.grad.numpy()
    after = np.roll(place[:, 0], -1)
    np.testing.assert_allclose(grad["scale"], seed * w * place[:, 1] * after)
    np.testing.assert_allclose(grad["inner"]["weight"], seed * c * place[:, 1] * after)
    np.testing.assert_allclose(grad["inner"]["place"][:, 1], seed * c * w * after)
    np.testing.assert_allclose(grad["inner"]["place"][:, 0], np.roll(seed * c * w * place[:, 1], 1))
    assert not grad["inner"]["place"][:, 2].any() and not grad["count"].any()
    np.testing.assert_allclose(s.numpy()["scale"], c * w)


def test_arrays_in_structs():
    rng = np.random.default_rng(6)
    a = wp.array(rng.normal(size=4), dtype=wp.float64, requires_grad=True)
    places = wp.array(rng.normal(size=(4, 3)), dtype=wp.vec3d, requires_grad=True)

    def run(a, places):
        s = Arrays()
        s.a, s.places, s.factor = a, places, 3.0
        y = wp.zeros(4, dtype=wp.float64, requires_grad=True)
        wp.launch(arrays_in_structs, 4, inputs=[s], outputs=[y])
        return [y, a]

    assert wp.autograd.gradcheck(run, inputs=[a, places], eps=1e-6, atol=1e-7, rtol=1e-6, show_summary=False)


def planes(rows):
    """Vectors in planes, one for each component."""
    n = len(rows)
    memory = np.zeros(3 * n)
    made = wp.array(ptr=memory.ctypes.data, dtype=wp.vec3d, shape=(n,), strides=(8,), component_stride=8 * n,
                    capacity=memory.nbytes, deleter=lambda ptr, capacity, memory=memory: None)  # fmt: skip
    made.numpy()[...] = rows
    made.requires_grad = True
    return made


@pytest.mark.host
def test_planes():
    case = zoo.case(wp.float64, "neighbours")
    rng = np.random.default_rng(7)
    x, y = planes(rng.normal(size=(5, 3))), planes(rng.normal(size=(5, 3)))
    run, arrays = launched(case._replace(inputs=[x], outputs=[y]))
    assert wp.autograd.gradcheck(run, inputs=arrays, eps=1e-6, atol=1e-7, rtol=1e-6, show_summary=False)


# ---- programs of several launches


@wp.kernel
def spring_step(x: wp.array(dtype=wp.vec2d), v: wp.array(dtype=wp.vec2d), k: wp.array(dtype=wp.float64)):
    i = wp.tid()
    f = wp.vec2d()
    for j in range(x.shape[0]):
        if j == i:
            continue
        d = x[j] - x[i]
        f += d * (k[0] * (wp.length(d) - wp.float64(0.7)))
    v[i] = v[i] * wp.float64(0.95) + f * wp.float64(0.05)


@wp.kernel
def move_step(x: wp.array(dtype=wp.vec2d), v: wp.array(dtype=wp.vec2d)):
    i = wp.tid()
    x[i] += v[i] * wp.float64(0.05)
    if x[i][1] < wp.float64(-0.5):
        v[i][1] = -v[i][1]


@wp.kernel
def spread(x: wp.array(dtype=wp.vec2d), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.length_sq(x[i] - wp.vec2d(wp.float64(0.2), wp.float64(0.1))))


@pytest.mark.parametrize("steps", [1, 7])
def test_a_state_stepped_in_place(steps):
    rng = np.random.default_rng(8)
    x = wp.array(rng.normal(size=(4, 2)), dtype=wp.vec2d, requires_grad=True)
    v = wp.array(rng.normal(size=(4, 2)), dtype=wp.vec2d, requires_grad=True)
    k = wp.array([1.7], dtype=wp.float64, requires_grad=True)

    def run(x, v, k):
        loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        for _ in range(steps):
            wp.launch(spring_step, 4, inputs=[x, v, k])
            wp.launch(move_step, 4, inputs=[x, v])
        wp.launch(spread, 4, inputs=[x], outputs=[loss])
        return [loss, x, v]

    assert wp.autograd.gradcheck(run, inputs=[x, v, k], eps=1e-6, atol=1e-7, rtol=1e-6, show_summary=False)


@wp.kernel
def chain_of_joints(
    parent: wp.array(dtype=int), axis: wp.array(dtype=wp.vec3d), q: wp.array2d(dtype=wp.float64),
    place: wp.array2d(dtype=wp.vec3d), turn: wp.array2d(dtype=wp.quatd),
):  # fmt: skip
    w, b = wp.tid()
    for body in range(1, parent.shape[0]):
        p = wp.vec3d(wp.float64(0.3), wp.float64(0.1), wp.float64(-0.2))
        r = wp.quatd(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0), wp.float64(1.0))
        up = parent[body]
        p = place[w, up] + wp.quat_rotate(turn[w, up], p)
        r = turn[w, up]
        for j in range(body % 2 + 1):
            r = r * wp.quat_from_axis_angle(axis[body], q[w, body] * wp.float64(j + 1))
        place[w, body] = p
        turn[w, body] = r


def test_a_tree_of_joints_in_nested_dynamic_loops():
    rng = np.random.default_rng(9)
    parent = wp.array([0, 0, 1, 1, 3], dtype=int)
    axis = rng.normal(size=(5, 3))
    axis = wp.array(axis / np.linalg.norm(axis, axis=1, keepdims=True), dtype=wp.vec3d)
    q = wp.array(rng.normal(size=(2, 5)), dtype=wp.float64, requires_grad=True)

    def run(q):
        place = wp.zeros((2, 5), dtype=wp.vec3d, requires_grad=True)
        turn = wp.array(np.tile([0.0, 0.0, 0.0, 1.0], (2, 5, 1)), dtype=wp.quatd, requires_grad=True)
        wp.launch(chain_of_joints, (2, 1), inputs=[parent, axis, q, place, turn])
        return [place, turn]

    assert wp.autograd.gradcheck(run, inputs=[q], eps=1e-6, atol=1e-7, rtol=1e-6, show_summary=False)


@wp.kernel
def keep_positive(x: wp.array(dtype=wp.float64), counter: wp.array(dtype=int), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    if x[i] > wp.float64(0.0):
        n = wp.atomic_add(counter, 0, 1)
        y[n] = x[i] * x[i]


def test_places_drawn_from_a_counter_are_drawn_again():
    x = zoo.case(wp.float64, "newton_while").inputs[0]

    def run(x):
        counter, y = wp.zeros(1, dtype=int), wp.zeros(5, dtype=wp.float64, requires_grad=True)
        wp.launch(keep_positive, 5, inputs=[x, counter, y])
        return y

    assert wp.autograd.gradcheck(run, inputs=[x], eps=1e-6, atol=1e-7, rtol=1e-6, show_summary=False)


@wp.func(inline=False)
def outlined(x: wp.float64, v: wp.vec3d, n: int):
    s = x
    for j in range(n):
        s = s * wp.float64(0.5) + wp.sin(s) * v[j % 3]
        if s > wp.float64(1.5):
            return s * s, v * s
    return s, v + wp.vec3d(s, s, s)


@wp.func(inline=False)
def refill(a: wp.array(dtype=wp.float64), x: wp.float64):
    for j in range(a.shape[0]):
        a[j] = x * wp.float64(j + 1) + a[j] * a[j]
    return a[0] * a[3]


@wp.kernel
def calls_functions(x: wp.array(dtype=wp.float64), v: wp.array(dtype=wp.vec3d), n: int, y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    a = wp.zeros(shape=4, dtype=wp.float64)
    s = wp.float64(0.0)
    for j in range(n):
        p, w = outlined(x[i] + s, v[i], i + j)
        q, u = outlined(p, w, 2)
        s += q * u[0] + refill(a, q) * wp.float64(0.1)
    y[i] = s + a[2]


def test_functions_that_stay_calls():
    rng = np.random.default_rng(11)
    x = wp.array(rng.normal(size=4), dtype=wp.float64, requires_grad=True)
    v = wp.array(rng.normal(size=(4, 3)), dtype=wp.vec3d, requires_grad=True)
    y = wp.zeros(4, dtype=wp.float64, requires_grad=True)
    check = dict(eps=1e-6, atol=1e-7, rtol=1e-6, show_summary=False)
    assert wp.autograd.gradcheck(calls_functions, 4, [x, v, 2], [y], **check)


@wp.struct
class Pair:
    a: wp.float64
    v: wp.vec3d


@wp.kernel
def local_structs(x: wp.array(dtype=wp.float64), n: int, y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    t = wp.zeros(shape=3, dtype=Pair)
    for j in range(n):
        k = j % 3
        t[k].a = x[i] * wp.float64(j + 1) + t[(k + 1) % 3].a * wp.float64(0.3)
        t[k].v[j % 2] = t[k].a * x[j]
    y[i] = t[0].a * t[1].v[0] + wp.dot(t[2].v, t[0].v)


def test_own_arrays_of_structs():
    case = zoo.case(wp.float64, "used_after_the_loop")
    run, arrays = launched(case._replace(kernel=local_structs, inputs=[case.inputs[0], 5]))
    assert wp.autograd.gradcheck(run, inputs=arrays, eps=1e-6, atol=1e-7, rtol=1e-6, show_summary=False)


@wp.struct
class Several:
    p: wp.array(dtype=wp.float64)
    q: wp.array(dtype=wp.float64)
    r: wp.array(dtype=wp.float64)
    which: int


@wp.func
def picked(s: Several, n: int):
    if s.which > n:
        return s.p
    if s.which == n:
        return s.r
    return s.q


@wp.kernel
def chooses_arrays(
    many: wp.array(dtype=Several), s: Several, b: wp.array2d(dtype=wp.float64), y: wp.array(dtype=wp.float64)
):
    i = wp.tid()
    for j in range(3):
        v = picked(s, i)
        w = v[1:4]
        if j == i:
            w = b[j]
        u = picked(many[0], j)
        if w[j] > wp.float64(0.1):
            y[i] += w[0] * w[1] * u[i]
            w[2] = w[2] * w[0] + wp.float64(0.1)
        y[i] = y[i] * u[0] + w[2]


@pytest.mark.parametrize("without", [(), ("p",), ("b", "q")])
def test_arrays_that_are_chosen_while_the_program_runs(without):
    rng = np.random.default_rng(12)
    shapes = {"p": 5, "q": 5, "a": 5, "b": (3, 3), "far": 5, "near": 5, "y": 1}
    arrays = [wp.array(rng.uniform(-1, 1, shape), dtype=wp.float64, requires_grad=name not in without)
              for name, shape in shapes.items()]  # fmt: skip

    def run(p, q, a, b, far, near, y):
        s, t = Several(), Several()
        s.p, s.q, s.r, s.which = p, q, a, 1
        t.p, t.q, t.r, t.which = far, near, a, 0
        wp.launch(chooses_arrays, 1, inputs=[wp.array([t], dtype=Several), s, b, y])
        return [y, a]

    assert wp.autograd.gradcheck(run, inputs=arrays, eps=1e-6, atol=1e-7, rtol=1e-6, show_summary=False)


@wp.kernel
def wandering_view(a: wp.array2d(dtype=wp.float64), n: int, y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    row = a[i]
    for j in range(n):
        y[i] += row[0] * row[1]
        row = a[j]


def test_an_array_that_changes_from_round_to_round_is_refused():
    a = wp.ones((2, 2), dtype=wp.float64, requires_grad=True)
    y = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    with pytest.raises(wp.KernelGradientError, match="changes from round to round of a loop") as caught:
        wp.autograd.gradcheck(wandering_view, 2, [a, 2], [y])
    assert caught.value.span.line


# ---- the least of many, in an array that the kernel knows by another name


@wp.kernel
def scaled_and_least(
    least: wp.array(dtype=float), scale: wp.array(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)
):
    i = wp.tid()
    y[i] = scale[0] * x[i]
    wp.atomic_min(least, 0, x[i])


def test_the_least_of_many_under_another_name_is_refused():
    def gradients(least, scale):
        x, y = wp.array([3.0], dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(scaled_and_least, dim=1, inputs=[least, scale, x, y])
        tape.backward(grads={y: wp.ones(1, dtype=float)})
        return x.grad.list(), scale.grad.list()

    least, scale = (wp.array([5.0], dtype=float, requires_grad=True) for _ in range(2))
    assert gradients(least, scale) == ([5.0], [3.0])
    with pytest.raises(KernelGradientError, match="atomic_min changes and the kernel also reads"):
        gradients(scale, scale)


# ---- memory that no argument names


@wp.struct
class Holder:
    a: wp.array(dtype=float)


@wp.kernel
def scaled_in_place(holders: wp.array(dtype=Holder), factor: wp.array(dtype=float)):
    i = wp.tid()
    holders[i].a[0] = holders[i].a[0] * factor[i]


@wp.kernel
def stored_then_read(holders: wp.array(dtype=Holder), factor: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    holders[i].a[0] = factor[i] * factor[i]
    y[i] = holders[i].a[0] * factor[i]


@wp.kernel
def scaled_by_address(address: wp.uint64, factor: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    a = wp.array(ptr=address, shape=1, dtype=float)
    a[0] = a[0] * factor[i]
    y[i] = a[0]


def test_arrays_in_elements_are_put_back_and_what_an_address_leads_to_is_refused():
    made = Holder()
    made.a = wp.array([2.0], dtype=float, requires_grad=True)
    holders, factor = wp.array([made], dtype=Holder), wp.array([3.0], dtype=float, requires_grad=True)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(stored_then_read, dim=1, inputs=[holders, factor, y])
    tape.backward(grads={y: wp.ones(1, dtype=float)})
    assert factor.grad.list() == [27.0]  # 3 x^2
    with wp.Tape() as tape:
        wp.launch(scaled_in_place, dim=1, inputs=[holders, factor])
    tape.zero()
    tape.backward(grads={made.a: wp.ones(1, dtype=float)})
    assert factor.grad.list() == [9.0] and made.a.grad.list() == [3.0] and made.a.list() == [27.0]
    mem = wp.array([2.0], dtype=float)
    with wp.Tape() as tape:
        wp.launch(scaled_by_address, dim=1, inputs=[mem.ptr, factor, y])
    with pytest.raises(KernelGradientError, match="memory that an address alone leads to"):
        tape.backward(grads={y: wp.ones(1, dtype=float)})


def test_a_derivative_that_arrays_in_elements_would_lose_is_refused():
    made = Holder()
    made.a = wp.array([2.0], dtype=float)
    holders, factor = wp.array([made], dtype=Holder), wp.array([3.0], dtype=float, requires_grad=True)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(stored_then_read, dim=1, inputs=[holders, factor, y])
    with pytest.raises(KernelGradientError, match="reads again what it stores to arrays in memory.*no gradient"):
        tape.backward(grads={y: wp.ones(1, dtype=float)})
    grads = [None, wp.zeros(1, dtype=float), wp.ones(1, dtype=float)]
    with pytest.raises(KernelGradientError, match="reads again what it stores to arrays in memory"):
        wp.launch(stored_then_read, 1, [holders, factor, y], adj_inputs=grads, adjoint=True)


@wp.kernel
def splits(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    a = x[i]
    if i % 2 == 0:
        a = a * y[i] * x[i]
        if i % 4 == 0:
            a += y[i]
    else:
        a = a + x[i] * y[i]
    y[i] = y[i] * a
    x[i] = a
    y[i] = y[i] * x[i]


def test_both_arms_find_what_they_read_where_a_gang_splits():
    rng = np.random.default_rng(3)
    arrays = [wp.array(rng.uniform(0.5, 1.5, 19), dtype=wp.float64, requires_grad=True) for _ in range(2)]

    def run(x, y):
        wp.launch(splits, dim=len(x), inputs=[x, y])
        return [x, y]

    assert wp.autograd.gradcheck(run, inputs=arrays, eps=1e-6, atol=1e-6, rtol=1e-6, show_summary=False)


# ---- structs with arrays, carried through loops


@wp.struct
class Walk:
    x: float
    table: wp.array(dtype=float)


@wp.func
def advance(s: Walk, i: int):
    r = s
    r.x = s.x * s.table[i]
    return r


@wp.func
def begin(table: wp.array(dtype=float)):
    s = Walk()
    s.x, s.table = 1.0, table
    return s


@wp.kernel
def by_while(table: wp.array(dtype=float), o: wp.array(dtype=float)):
    s, i = begin(table), int(0)
    while i < table.shape[0]:
        s = advance(s, i)
        i += 1
    wp.atomic_add(o, 0, s.x)


@wp.kernel
def until_break(table: wp.array(dtype=float), o: wp.array(dtype=float)):
    s = begin(table)
    for i in range(table.shape[0]):
        if s.x > 100.0:
            break
        s = advance(s, i)
    wp.atomic_add(o, 0, s.x)


@wp.kernel
def under_conditions(table: wp.array(dtype=float), o: wp.array(dtype=float)):
    s = begin(table)
    for i in range(table.shape[0]):
        if s.x < 100.0:
            s = advance(s, i)
    wp.atomic_add(o, 0, s.x)


@wp.kernel
def in_nested_loops(table: wp.array(dtype=float), o: wp.array(dtype=float)):
    s = begin(table)
    for i in range(table.shape[0]):
        j = int(0)
        while j < 3:
            if j == i:
                s = advance(s, i)
            j += 1
    wp.atomic_add(o, 0, s.x)


@wp.kernel
def of_two(table: wp.array(dtype=float), o: wp.array(dtype=float)):
    s, t = begin(table), begin(o)
    for i in range(table.shape[0]):
        s = advance(s, i)
        s, t = t, s
    wp.atomic_add(o, 0, s.x)


@pytest.mark.parametrize("kernel", [by_while, until_break, under_conditions, in_nested_loops], ids=lambda k: k.key)
def test_a_loop_may_hand_on_a_struct_with_one_array(kernel):
    table, o = wp.array([2.0, 3.0, 4.0], dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[table], outputs=[o])
    tape.backward(o)
    assert o.list() == [24.0] and table.grad.list() == [12.0, 8.0, 6.0]


def test_a_loop_that_chooses_among_arrays_is_refused():
    table, o = wp.ones(1, dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(of_two, dim=1, inputs=[table], outputs=[o])
    with pytest.raises(wp.KernelGradientError, match="changes from round to round of a loop"):
        tape.backward(o)
