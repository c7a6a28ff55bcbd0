"""``wp.Tape``: what is recorded, and what its gradients are."""

import copy
import doctest
import gc
import threading

import numpy as np
import pytest

import treadle as wp
from tests.lang.tape_programs import Program
from tests.lang.tapes import arr, chain, double, grow, squares
from treadle.base.errors import KernelGradientError
from treadle.runtime import watch


@wp.kernel
def grown(x: wp.array(dtype=float), k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + k[0] * x[i] * x[i]


# ---- gradients


def test_a_chain_of_launches():
    x, y, out, tape = chain()
    tape.backward(out)
    assert x.grad.list() == [40.0, 80.0]
    assert y.grad.list() == [0.0, 0.0]  # used up by the store that made y
    assert out.grad.list() == [1.0]
    assert tape.gradients == {x: x.grad, y: y.grad, out: out.grad}
    assert tape.get_adjoint(x) is x.grad and tape.get_adjoint(2.0) is None


def test_gradients_accumulate_until_zeroed():
    x, y, out, tape = chain()
    tape.backward(out)
    tape.backward(out)
    assert x.grad.list() == [80.0, 160.0]
    tape.zero()
    assert x.grad.list() == [0.0, 0.0] and out.grad.list() == [0.0]


def test_what_a_pass_leaves_in_results_is_no_seed_of_the_next():
    """An array that is only added to keeps its gradient; running backward again must not count it twice."""
    x, part, out = arr([3.0]), arr([0.0]), arr([0.0])
    with wp.Tape() as tape:
        wp.launch(squares, dim=1, inputs=[x], outputs=[part])
        wp.launch(double, dim=1, inputs=[part], outputs=[out])
    tape.backward(out)
    assert x.grad.list() == [60.0] and part.grad.list() == [2.0]
    tape.backward(out)
    assert x.grad.list() == [120.0] and part.grad.list() == [4.0]


def test_without_arguments_it_starts_from_the_gradients_there_are():
    x, y, _, tape = chain()
    y.grad.fill_(1.0)
    tape.backward()
    assert x.grad.list() == [2.0, 2.0]


def test_given_gradients_are_copied():
    x, y, _, tape = chain()
    given = arr([3.0, 4.0], grad=False)
    tape.backward(grads={y: given})
    assert x.grad.list() == [6.0, 8.0] and given.list() == [3.0, 4.0]


def test_given_gradients_make_room_for_themselves():
    x, y = arr([1.0]), arr([0.0], grad=False)
    with wp.Tape() as tape:
        wp.launch(double, dim=1, inputs=[x], outputs=[y])
    tape.backward(grads={y: arr([1.0], grad=False)})
    assert x.grad.list() == [2.0] and y.requires_grad


def test_retained_gradients_stay():
    x, z = arr([1.0, 2.0]), arr([0.0, 0.0])
    y = wp.zeros(2, dtype=float, requires_grad=True, retain_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, dim=2, inputs=[x], outputs=[y])
        wp.launch(double, dim=2, inputs=[y], outputs=[z])
    for k in (1.0, 2.0):
        tape.backward(grads={z: arr([1.0, 1.0], grad=False)})
        assert y.grad.list() == [2.0 * k] * 2 and x.grad.list() == [4.0 * k] * 2


def test_views_retain_what_their_array_retains():
    t = wp.zeros((3, 2), dtype=float, requires_grad=True, retain_grad=True)
    t[0] = [1.0, 2.0]
    with wp.Tape() as tape:
        for k in range(2):
            wp.launch(double, dim=2, inputs=[t[k]], outputs=[t[k + 1]])
    tape.backward(grads={t[2]: arr([1.0, 1.0], grad=False)})
    assert t.grad.numpy().tolist() == [[4.0, 4.0], [2.0, 2.0], [1.0, 1.0]]


def test_stepping_in_place_gives_the_bits_of_separate_states():
    k, start = arr([0.01]), np.linspace(0.1, 0.9, 16, dtype=np.float32)
    x, out = arr(start), arr([0.0])
    with wp.Tape() as tape:
        for _ in range(500):
            wp.launch(grow, dim=16, inputs=[x, k])
        wp.launch(squares, dim=16, inputs=[x], outputs=[out])
    end = x.numpy().copy()
    tape.backward(out)
    assert x.numpy().tolist() == end.tolist()
    assert tape.saved_bytes == 500 * 64
    in_place = k.grad.numpy().copy(), x.grad.numpy().copy()
    k.grad.zero_()
    states = [arr(start) for _ in range(501)]
    out.zero_()
    with wp.Tape() as tape:
        for one, following in zip(states, states[1:]):
            wp.launch(grown, dim=16, inputs=[one, k], outputs=[following])
        wp.launch(squares, dim=16, inputs=[states[-1]], outputs=[out])
    tape.backward(out)
    assert tape.saved_bytes == 0
    assert in_place[0].tobytes() == k.grad.numpy().tobytes()
    assert in_place[1].tobytes() == states[0].grad.numpy().tobytes()


@pytest.mark.parametrize("seeds", [range(k, k + 20) for k in range(0, 100, 20)], ids=str)
def test_random_programs(seeds):
    for seed in seeds:
        program = Program(seed)
        values, wanted = program.gradient()
        a, loss, tape = program.run()
        assert np.allclose(a.numpy(), values, rtol=1e-12, atol=1e-13), seed
        a.zero_()  # after the recording: undone for the backward pass, and redone
        tape.backward(loss)
        assert not a.numpy().any()
        assert np.allclose(a.grad.numpy(), wanted, rtol=1e-10, atol=1e-11), seed


def test_arrays_without_a_gradient_on_the_way_cut_nothing():
    x, out = arr([1.0, 2.0, 3.0]), arr([0.0])
    y, z = arr([0.0] * 3, grad=False), arr([0.0] * 3, grad=False)
    with wp.Tape() as tape:
        wp.launch(double, dim=3, inputs=[x], outputs=[y])
        wp.copy(z, y)
        wp.launch(grow, dim=2, inputs=[z[1:], arr([0.5], grad=False)])
        wp.launch(squares, dim=2, inputs=[z[1:]], outputs=[out])
    tape.backward(out)
    v = np.array([4.0, 6.0])
    assert np.allclose(x.grad.numpy(), [0.0, *(20.0 * (v + 0.5 * v * v) * (1.0 + v))])
    assert y.grad is None and z.grad is None


def test_arrays_that_only_later_depend_on_an_input():
    """The first launch comes before anything depends on ``x``, but ``y`` will: all that both change has a gradient."""

    @wp.kernel
    def mix(y: wp.array(dtype=float), z: wp.array(dtype=float), times: int):
        i = wp.tid()
        for _ in range(times):
            z[i] = 0.5 * z[i] + y[i]
            y[i] = y[i] + z[i] * z[i]

    @wp.kernel
    def take(y: wp.array(dtype=float), x: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = y[i] * x[i]

    x, out = arr([1.0, 2.0]), arr([0.0])
    y, z = arr([3.0, 4.0], grad=False), arr([0.0, 0.0], grad=False)
    with wp.Tape() as tape:
        wp.launch(mix, dim=2, inputs=[y, z, 1])
        wp.launch(take, dim=2, inputs=[y, x])
        wp.launch(squares, dim=2, inputs=[y], outputs=[out])
    tape.backward(out)
    np.testing.assert_allclose(x.grad.numpy(), [10.0 * 12.0 * 12.0, 10.0 * 20.0 * 20.0 * 2.0])


def test_parts_of_arrays_without_a_gradient():
    x, out, y = arr([1.0, 2.0]), arr([0.0]), arr([5.0] * 4, grad=False)
    with wp.Tape() as tape:
        wp.launch(double, dim=2, inputs=[x], outputs=[y[1:3]])
        wp.launch(squares, dim=4, inputs=[y], outputs=[out])
        wp.launch(squares, dim=2, inputs=[y[2:]], outputs=[out])
    tape.backward(out)
    assert x.grad.list() == [40.0, 160.0]
    overlap = wp.array(ptr=x.ptr + 4, shape=2, dtype=float)  # one element of x, and what follows it
    with wp.Tape() as tape:
        wp.launch(squares, dim=1, inputs=[overlap], outputs=[out])
        wp.launch(squares, dim=2, inputs=[x], outputs=[out])
    with pytest.raises(KernelGradientError, match="lies partly over an array that has a gradient"):
        tape.backward(out)


def test_arrays_in_structs():
    @wp.struct
    class Pair:
        a: wp.array(dtype=float)
        k: float

    @wp.kernel
    def weigh(s: Pair, y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = s.a[i] * s.a[i] * s.k

    x, y, s = arr([1.0, 2.0]), arr([0.0, 0.0]), Pair()
    s.a, s.k = x, 2.0
    with wp.Tape() as tape:
        wp.launch(weigh, dim=2, inputs=[s], outputs=[y])
        s.k = 100.0  # what was recorded stays as it was
        x.fill_(7.0)
    tape.backward(grads={y: arr([1.0, 1.0], grad=False)})
    assert x.list() == [7.0, 7.0] and x.grad.list() == [4.0, 8.0]


def test_a_vector_argument_that_changes_later():
    @wp.kernel
    def along(x: wp.array(dtype=wp.vec3), d: wp.vec3, y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = wp.dot(x[i], d)

    x, y, d = wp.ones(1, dtype=wp.vec3, requires_grad=True), arr([0.0]), wp.vec3(1.0, 2.0, 3.0)
    for _ in range(2):
        d[0] = 1.0
        with wp.Tape() as tape:
            wp.launch(along, dim=1, inputs=[x, d], outputs=[y])
            d[0] = 9.0
        tape.backward(y)
        assert x.grad.numpy().tolist() == [[1.0, 2.0, 3.0]]
        tape.zero()


def test_minima_give_their_gradient_to_the_winner_or_to_what_was_there():
    @wp.kernel
    def lowest(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_min(y, i % 2, x[i] * x[i])

    x, y, first = arr([3.0, -4.0, -2.0, 5.0]), arr([0.0, 0.0]), arr([100.0, 1.0])
    with wp.Tape() as tape:
        wp.copy(y, first)
        wp.launch(lowest, dim=4, inputs=[x], outputs=[y])
        y.zero_()
        wp.copy(y, first)
        wp.launch(lowest, dim=4, inputs=[x], outputs=[y])
    tape.backward(grads={y: arr([1.0, 1.0], grad=False)})
    assert y.list() == [4.0, 1.0]
    assert x.grad.list() == [0.0, 0.0, -4.0, 0.0] and first.grad.list() == [0.0, 1.0]


def test_a_function_of_the_user_has_its_place():
    x, y, z = arr([1.0, 2.0]), arr([0.0, 0.0]), arr([0.0, 0.0])
    with wp.Tape() as tape:
        wp.launch(double, dim=2, inputs=[x], outputs=[y])
        z.numpy()[...] = np.sin(y.numpy())

        def backward():
            y.grad.assign(y.grad.numpy() + np.cos(y.numpy()) * z.grad.numpy())

        tape.record_func(backward, arrays=[y, z])
        y.fill_(0.0)
    tape.backward(grads={z: arr([1.0, 1.0], grad=False)})
    assert np.allclose(x.grad.numpy(), 2 * np.cos([2.0, 4.0])) and y.list() == [0.0, 0.0]
    tape.zero()
    assert z.grad.list() == [0.0, 0.0]


# ---- what is recorded


def test_copies_and_values():
    a, b = arr([1.0, 2.0]), arr([0.0, 0.0])
    writes = {
        "copy": (lambda: wp.copy(b, a), [1.0, 2.0], [0.0, 0.0]),
        "assign": (lambda: b.assign(a), [1.0, 2.0], [0.0, 0.0]),
        "slice": (lambda: b.__setitem__(slice(0, 1), a[1:2]), [0.0, 1.0], [0.0, 2.0]),
        "part": (lambda: wp.copy(b, a, 1, 0, 1), [2.0, 0.0], [1.0, 0.0]),
        "value": (lambda: b.fill_(3.0), [0.0, 0.0], [1.0, 2.0]),  # what b came with
    }
    for name, (write, into, left) in writes.items():
        with wp.Tape() as tape:
            write()
        a.grad.zero_()
        b.grad.assign([1.0, 2.0])
        tape.backward()
        assert (a.grad.list(), b.grad.list()) == (into, left), name
    with wp.Tape() as tape:
        c = wp.clone(a)
    a.grad.zero_()
    c.grad.fill_(3.0)
    tape.backward()
    assert a.grad.list() == [3.0, 3.0]


def test_a_value_written_over_a_result_stops_its_gradient():
    x, y = arr([1.0, 2.0]), arr([0.0, 0.0])
    with wp.Tape() as tape:
        wp.launch(double, dim=2, inputs=[x], outputs=[y])
        y[0] = 5.0
    tape.backward(grads={y: arr([1.0, 1.0], grad=False)})
    assert x.grad.list() == [0.0, 2.0]


def test_copies_convert_and_reshape():
    a, b = wp.array([[1.0, 2.0]], dtype=wp.float64, requires_grad=True), arr([0.0, 0.0])
    with wp.Tape() as tape:
        b.assign(a)
    tape.backward(grads={b: arr([1.0, 3.0], grad=False)})
    assert a.grad.numpy().tolist() == [[1.0, 3.0]]


def test_commands_are_recorded_and_records_can_be_declined():
    x, y = arr([1.0]), arr([0.0])
    command = wp.launch(double, dim=1, inputs=[x], outputs=[y], record_cmd=True)
    with wp.Tape() as tape:
        command.launch()
        wp.launch(double, dim=1, inputs=[x], outputs=[y], record_tape=False)
        assert len(tape.launches) == 1
    with tape:
        command.launch()
    assert len(tape.launches) == 2
    tape.backward(y)
    assert x.grad.list() == [2.0]


def test_kernels_whose_backward_is_off_are_named():
    @wp.kernel(enable_backward=False)
    def closed(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[wp.tid()] = x[wp.tid()]

    x, y = arr([1.0]), arr([0.0])
    with wp.Tape() as tape:
        wp.launch(closed, dim=1, inputs=[x], outputs=[y])
    with pytest.warns(UserWarning, match="closed: enable_backward is False"):
        tape.backward(y)
    assert x.grad.list() == [0.0]
    _, _, out, tape = chain()
    wp.config.enable_backward = False
    try:
        with pytest.warns(UserWarning, match="double, squares"):
            tape.backward(out)
    finally:
        wp.config.enable_backward = True


def test_several_overloads_of_one_kernel():
    from typing import Any

    @wp.kernel
    def twice(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
        i = wp.tid()
        y[i] = x[i] * x[i]

    for _ in range(2):
        for dtype in (wp.float32, wp.float64):
            x, y = wp.full(1, 3.0, dtype=dtype, requires_grad=True), wp.zeros(1, dtype=dtype, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(twice, dim=1, inputs=[x], outputs=[y])
            tape.backward(y)
            assert x.grad.list() == [6.0]


# ---- memory


def test_no_cycle_keeps_a_tape():
    _, _, out, tape = chain()
    tape.backward(out)
    gc.collect()
    gc.disable()
    try:
        del tape
        assert not watch.watchers
    finally:
        gc.enable()


@pytest.mark.host
def test_arrays_over_the_same_address_are_one_memory():
    """Foreign views carry no gradient of their own; bytes decide whose it is, and what must be saved."""
    base, out = arr([1.0, 2.0, 3.0]), arr([0.0])
    part = wp.array(ptr=base.ptr + 4, shape=2, dtype=float)
    shared = wp.array(base.numpy()[1:], copy=False)
    y = arr([0.0, 0.0])
    with wp.Tape() as tape:
        wp.launch(double, dim=2, inputs=[part], outputs=[y])
        wp.launch(grow, dim=2, inputs=[shared, arr([1.0])])
        wp.launch(squares, dim=3, inputs=[base], outputs=[out])
        part.zero_()
    y.grad.assign([100.0, 1000.0])
    tape.backward(out)
    x = np.array([2.0, 3.0])
    wanted = 10.0 * (x + x * x) * (1.0 + 2.0 * x) + 2.0 * np.array([100.0, 1000.0])
    assert base.grad.list() == [10.0, *wanted]
    assert base.list() == [1.0, 0.0, 0.0]


def test_views_from_before_an_array_got_its_gradient():
    base, out = arr([1.0, 2.0, 3.0], grad=False), arr([0.0])
    early = base[1:]
    base.requires_grad = True
    with wp.Tape() as tape:
        wp.launch(squares, dim=2, inputs=[early], outputs=[out])
        early.zero_()
    tape.backward(out)
    assert base.grad.list() == [0.0, 20.0, 30.0] and base.list() == [1.0, 0.0, 0.0] and early.grad is None


def test_the_docstring_does_what_it_says():
    from treadle.lang import tape

    assert doctest.testmod(tape).failed == 0


# ---- several tapes, and indices of few bits


@wp.kernel
def cubes(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i] * x[i] * x[i])


@pytest.mark.parametrize("checkpoint", ["all", 2, "sqrt"])
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_gradient_that_another_tape_read_is_put_back(checkpoint, by_hand):
    x, y = wp.array([1.0, 2.0], dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as first:
        wp.launch(cubes, dim=2, inputs=[x], outputs=[y])
    first.backward(y)
    slope, z = x.grad, wp.zeros(1, dtype=float, requires_grad=True)
    slope.requires_grad = True
    with wp.Tape(checkpoint=checkpoint) as second:
        wp.launch(cubes, dim=2, inputs=[slope], outputs=[z])
    if by_hand:
        wp.launch(cubes, dim=2, inputs=[x], outputs=[y], adjoint=True, adj_inputs=[None], adj_outputs=[None])
    else:
        first.backward(y)
    second.backward(z)
    np.testing.assert_array_equal(slope.grad.numpy(), 3.0 * np.array([3.0, 12.0]) ** 2)


@wp.kernel
def put_at(x: wp.array(dtype=float), v: wp.array(dtype=float), a: wp.uint8, b: wp.uint8):
    x[int(a + b)] = v[0]


def test_indices_that_wrap_around_early():
    x = wp.array(np.arange(400) + 1.0, dtype=float, requires_grad=True)
    v, total = wp.array([7.0], dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cubes, dim=400, inputs=[x], outputs=[total])
        wp.launch(put_at, dim=1, inputs=[x, v, wp.uint8(200), wp.uint8(100)])
    assert x.numpy()[44] == 7.0  # 300 modulo 256
    tape.backward(total)
    assert x.grad.numpy()[44] == 3.0 * 45.0**2


@pytest.mark.parametrize(
    "copied",
    [
        wp.array,
        copy.deepcopy,
        lambda a: wp.array(a, dtype=float, requires_grad=True),
        lambda a: wp.array(a, shape=(3, 1)).flatten(),
    ],
)
def test_arrays_made_of_arrays_are_copies_of_which_the_tape_knows(copied):
    @wp.kernel
    def squares(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_add(loss, 0, x[i] * x[i])

    x, loss = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(squares, dim=3, inputs=[copied(x), loss])
    tape.backward(loss)
    assert x.grad.list() == [2.0, 4.0, 6.0]


@wp.struct
class Factors:
    x: wp.array(dtype=float)
    scale: float


@wp.struct
class Product:
    factors: Factors
    y: wp.array(dtype=float)


@wp.kernel
def multiply(p: Product, z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = p.factors.x[i] * p.y[i] * p.factors.scale


def test_gradients_of_structs():
    p = Product()
    p.factors.x, p.factors.scale = wp.array([1.0, 2.0], dtype=float, requires_grad=True), 10.0
    p.y, z = wp.array([3.0, 4.0], dtype=float), wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(multiply, dim=2, inputs=[p], outputs=[z])
    tape.backward(grads={z: wp.ones(2, dtype=float)})
    assert tape.gradients[p].factors.x.list() == [30.0, 40.0] == tape.get_adjoint(p).factors.x.list()
    assert tape.gradients[p].y is None and p not in tape.gradients
    with pytest.raises(KeyError):
        tape.gradients[wp.zeros(1)]


@wp.kernel(detached=True)
def find_root(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    guess = float(1.0)
    for _ in range(20):
        guess = 0.5 * (guess + x[i] / guess)
    y[i] = guess


@wp.kernel
def at_root(x: wp.array(dtype=float), y: wp.array(dtype=float), root: wp.array(dtype=float)):
    i = wp.tid()
    root[i] = y[i] - (y[i] * y[i] - x[i]) / (2.0 * y[i])


@pytest.mark.parametrize("checkpoint", ["all", 1])
def test_what_a_detached_kernel_writes_is_constant(checkpoint, recwarn):
    x, y, once, twice = (wp.array(v, dtype=float) for v in ([4.0, 9.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]))
    x.requires_grad = True
    with wp.Tape(checkpoint) as tape:
        for given, root in ((x, once), (once, twice)):  # the square root's square root
            wp.launch(find_root, 2, [given, y])
            wp.launch(at_root, 2, [given, y, root])
    tape.backward(grads={twice: wp.ones(2, dtype=float)})
    np.testing.assert_allclose(x.grad.numpy(), [0.25 * v**-0.75 for v in (4.0, 9.0)], rtol=1e-5)
    assert not recwarn and y.grad is None


def test_a_thread_that_ended_inside_a_tape_records_no_more():
    @wp.kernel(module="unique")
    def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = x[0] * x[0]

    x, y = wp.array([3.0], dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()

    def begin():
        tape.__enter__()
        wp.launch(square, dim=1, inputs=[x], outputs=[y])

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    x.fill_(100.0)  # the tape puts back what stood there
    y.grad.fill_(1.0)
    tape.backward()
    assert x.grad.list() == [6.0] and x.list() == [100.0]
