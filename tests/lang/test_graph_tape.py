"""Tapes in graphs: forward and backward captured together give the gradients of separate runs, whatever is stepped,
copied, overwritten or kept by a schedule."""

import numpy as np
import pytest

import treadle as wp


@wp.kernel
def turn(x: wp.array(dtype=float), k: float):
    i = wp.tid()
    x[i] = wp.sin(x[i]) * k


@wp.kernel
def squares(x: wp.array(dtype=float), s: wp.array(dtype=float)):
    wp.atomic_add(s, 0, x[wp.tid()] * x[wp.tid()])


@wp.kernel
def mix(x: wp.array(dtype=float), j: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(y, j[i], x[i] * float(i + 1))


@wp.kernel
def swing(x: wp.array2d(dtype=wp.vec2), t: int):
    i = wp.tid()
    x[t + 1, i] = x[t, i] * wp.sin(x[t, i][1]) + wp.vec2(0.1, 0.2)


@wp.kernel
def gather(x: wp.array2d(dtype=wp.vec2), t: int, s: wp.array(dtype=float)):
    wp.atomic_add(s, 0, wp.length_sq(x[t, wp.tid()]))


def arr(values, **more):
    return wp.array(values, dtype=float, requires_grad=True, **more)


def in_place(x, loss, checkpoint="all"):
    tape = wp.Tape(checkpoint=checkpoint)
    with tape:
        z = wp.clone(x)
        for k in range(9):
            tape.step()
            wp.launch(turn, dim=z.size, inputs=[z, 1.0 + 0.1 * k])
        loss.zero_()
        wp.launch(squares, dim=z.size, inputs=[z], outputs=[loss])
    tape.backward(loss)


def copies(x, loss):
    y, other = wp.zeros(6, dtype=float, requires_grad=True), wp.zeros(6, dtype=float)
    with wp.Tape() as tape:
        wp.copy(y[::2], x)
        wp.copy(y, x, dest_offset=1, src_offset=1, count=2)
        other.assign(y)
        wp.launch(turn, dim=6, inputs=[other, 0.5])
        y[4:5].fill_(0.25)
        other[0] = 3.0
        loss.zero_()
        wp.launch(squares, dim=6, inputs=[other], outputs=[loss])
        wp.launch(squares, dim=6, inputs=[y], outputs=[loss])
    tape.backward(loss)


def scattered(x, loss):
    j, y = wp.array([2, 0, 2], dtype=int), wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(mix, dim=3, inputs=[x, j], outputs=[y])
        loss.zero_()
        wp.launch(squares, dim=3, inputs=[y], outputs=[loss])
    tape.backward(loss)


def seeds(x, loss):
    y = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x)
        wp.launch(turn, dim=3, inputs=[y, 2.0])
    tape.backward(grads={y: wp.array([1.0, 2.0, -3.0], dtype=float)})
    wp.copy(loss, y, count=1)


@pytest.mark.parametrize("program", [in_place, copies, scattered, seeds], ids=lambda f: f.__name__)
def test_gradients_are_those_of_separate_runs(program):
    x, loss = arr([0.3, -0.7, 1.1]), arr([0.0])

    def run(go):
        x.grad.zero_()
        loss.grad.zero_()
        go()
        return x.grad.list(), loss.list()

    expected = [run(lambda: program(x, loss))]
    x.assign([1.0, 0.2, -0.4])
    expected.append(run(lambda: program(x, loss)))
    x.grad.zero_()
    loss.grad.zero_()
    with wp.ScopedCapture() as capture:
        program(x, loss)
    assert x.grad.list() == [0.0] * 3
    for values, wanted in zip(([0.3, -0.7, 1.1], [1.0, 0.2, -0.4]), expected, strict=True):
        x.assign(values)
        for _ in range(2):
            assert run(lambda: wp.capture_launch(capture.graph)) == wanted


@pytest.mark.parametrize("checkpoint", [3, "sqrt", "100kB"])
def test_schedules_are_captured_too(checkpoint):
    x, loss = arr([0.3, -0.7, 1.1]), arr([0.0])
    in_place(x, loss)
    expected = x.grad.list()
    x.grad.zero_()
    loss.grad.zero_()
    with wp.ScopedCapture() as capture:
        in_place(x, loss, checkpoint)
    wp.capture_launch(capture.graph)
    assert x.grad.list() == expected


def test_a_trajectory_in_one_array():
    n, steps = 5, 6
    start = np.random.default_rng(2).random((n, 2)).astype(np.float32)
    x, loss = wp.zeros((steps + 1, n), dtype=wp.vec2, requires_grad=True), arr([0.0])
    x[0].assign(start)

    def run():
        tape = wp.Tape()
        with tape:
            for t in range(steps):
                wp.launch(swing, dim=n, inputs=[x, t])
            loss.zero_()
            wp.launch(gather, dim=n, inputs=[x, steps, loss])
        tape.backward(loss)
        return tape

    run()
    expected = x.grad.numpy()[0].copy()
    with wp.ScopedCapture() as capture:
        tape = run()
    for _ in range(2):
        tape.zero()
        wp.capture_launch(capture.graph)
        assert (x.grad.numpy()[0] == expected).all()
    with wp.ScopedCapture() as capture:  # the tape's own zeroing as part of it
        tape.zero()
        run()
    for _ in range(2):
        wp.capture_launch(capture.graph)
        assert (x.grad.numpy()[0] == expected).all()


def test_a_tape_recorded_in_a_graph_goes_back_after_its_run():
    x, loss = arr([0.3, -0.7]), arr([0.0])
    with wp.ScopedCapture() as capture:
        tape = wp.Tape()
        with tape:
            z = wp.clone(x)
            wp.launch(turn, dim=2, inputs=[z, 2.0])
            wp.launch(turn, dim=2, inputs=[z, 3.0])
            wp.launch(squares, dim=2, inputs=[z], outputs=[loss])
    wp.capture_launch(capture.graph)
    tape.backward(loss)
    found = x.grad.list()
    other, loss = arr([0.3, -0.7]), arr([0.0])
    with wp.Tape() as tape:
        z = wp.clone(other)
        for k in (2.0, 3.0):
            wp.launch(turn, dim=2, inputs=[z, k])
        wp.launch(squares, dim=2, inputs=[z], outputs=[loss])
    tape.backward(loss)
    assert found == other.grad.list()


def test_adjoint_launches_and_functions_of_the_user():
    x, y = arr([0.5, 0.25]), arr([1.0])
    with wp.ScopedCapture() as capture:
        y.grad.fill_(2.0)
        wp.launch(squares, dim=2, inputs=[x], outputs=[y], adj_inputs=[x.grad], adj_outputs=[y.grad], adjoint=True)
        tape = wp.Tape()
        with tape:
            tape.record_func(lambda: x.grad[:1].fill_(7.0), [x])
        tape.backward()
    wp.capture_launch(capture.graph)
    assert x.grad.list() == [7.0, 1.0]


@wp.kernel
def greatest(
    x: wp.array(dtype=float), v: wp.array(dtype=wp.vec2), m: wp.array(dtype=float), w: wp.array(dtype=wp.vec2)
):
    i = wp.tid()
    wp.atomic_max(m, 0, x[i])
    wp.atomic_min(w, i % 2, v[i])


def test_winners_of_minima_and_maxima():
    x, v = arr([0.5, 3.0, 1.0]), wp.array([[1.0, 2.0], [3.0, 4.0], [0.5, 9.0]], dtype=wp.vec2, requires_grad=True)
    m, w = arr([0.0]), wp.zeros(4, dtype=wp.vec2, requires_grad=True)[::2]

    def run():
        for a in (x, v, m, w):
            a.grad.zero_()
        m.fill_(0.0)
        w.fill_(wp.vec2(5.0, 1.0))
        tape = wp.Tape()
        with tape:
            wp.launch(greatest, dim=3, inputs=[x, v], outputs=[m, w])
        m.grad.fill_(2.0)
        w.grad.fill_(wp.vec2(1.0, 3.0))
        tape.backward()

    run()
    expected = [a.grad.numpy().tolist() for a in (x, v, m, w)]
    with wp.ScopedCapture() as capture:
        run()
    for a in (x, v, m, w):
        a.grad.zero_()
    wp.capture_launch(capture.graph)
    assert [a.grad.numpy().tolist() for a in (x, v, m, w)] == expected and expected[0] == [0.0, 2.0, 0.0]


@pytest.mark.filterwarnings("ignore:Array 'x' is being written to")
def test_settings_that_look_at_launches_leave_captures_alone(monkeypatch):
    for setting in ("verify_fp", "verify_autograd_array_access"):
        monkeypatch.setattr(wp.config, setting, True)
    x, loss = arr([0.3, -0.7, 1.1]), arr([0.0])
    with wp.ScopedCapture() as capture:
        in_place(x, loss)
    wp.capture_launch(capture.graph)
    assert x.grad.numpy().any()


def test_tapes_of_others_are_told_when_a_graph_runs_not_when_it_is_captured():
    x, y, s = arr([0.5, -0.25, 1.0]), wp.zeros(3, dtype=float, requires_grad=True), arr([0.0])
    grid = wp.zeros((2, 3), dtype=float)

    def overwrite():
        x.fill_(9.0)
        wp.copy(grid[:, 1], y[:2])
        wp.launch(turn, dim=3, inputs=[y, 4.0])
        wp.copy(y[::2], x[1:])

    def record():
        x.assign([0.5, -0.25, 1.0])
        with wp.Tape() as tape:
            wp.copy(y, x)
            wp.launch(turn, dim=3, inputs=[y, 2.0])
            wp.launch(squares, dim=3, inputs=[y], outputs=[s])
        s.grad.fill_(1.0)
        return tape

    tape = record()
    tape.backward()
    expected = x.grad.list()
    x.grad.zero_()
    tape = record()
    with wp.ScopedCapture() as capture:
        overwrite()
    for _ in range(2):
        wp.capture_launch(capture.graph)
    assert x.list() == [9.0] * 3
    tape.backward()
    assert x.grad.list() == expected and x.list() == [9.0] * 3


@wp.kernel
def weigh(x: wp.array(dtype=float), k: wp.vec2, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] += k[0] * x[i] * x[i] + k[1]


@pytest.mark.parametrize("checkpoint", ["all", 2])
def test_a_graph_captured_in_the_block_of_a_tape_is_recorded_each_time_it_runs(checkpoint):
    def gradients(graph):
        x, loss, k = arr([0.3, -0.7, 1.1]), arr([0.0]), wp.vec2(0.5, 0.1)

        def step():
            tape.step()
            y = wp.zeros(3, dtype=float, requires_grad=True)
            wp.launch(turn, dim=3, inputs=[x, 1.5])
            wp.launch(weigh, dim=3, inputs=[x, k], outputs=[y])
            y[2:].fill_(0.25)
            wp.copy(x, y)
            wp.launch(squares, dim=3, inputs=[x], outputs=[loss])

        tape = wp.Tape(checkpoint=checkpoint)
        with tape:
            go = step
            if graph:
                with wp.ScopedCapture() as capture:
                    step()
                k[0] = 7.0  # values of the host are those of the capture
                assert not tape.launches and loss.list() == [0.0]
                go = lambda: wp.capture_launch(capture.graph)  # noqa: E731
            for _ in range(3):
                go()
        tape.backward(loss)
        return loss.list(), x.list(), x.grad.list(), tape.launches

    expected, found = gradients(False), gradients(True)
    assert found[:3] == expected[:3] and any(found[2])


def test_a_graph_in_a_graph_under_a_tape():
    x, loss = arr([0.3, -0.7]), arr([0.0])

    def run(graph):
        with wp.Tape() as tape:
            z = wp.clone(x)
            if graph:
                with wp.ScopedCapture() as inner:
                    wp.launch(turn, dim=2, inputs=[z, 2.0])
                with wp.ScopedCapture() as outer:
                    for _ in range(2):
                        wp.capture_launch(inner.graph)
                wp.capture_launch(outer.graph)
            else:
                for _ in range(2):
                    wp.launch(turn, dim=2, inputs=[z, 2.0])
            wp.launch(squares, dim=2, inputs=[z], outputs=[loss])
        tape.backward(loss)
        found = x.grad.list()
        tape.zero()
        return found

    assert run(True) == run(False)


@wp.kernel
def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@pytest.mark.filterwarnings("ignore:the gradient of array")
@pytest.mark.parametrize("schedule", ["all", 1])
def test_what_a_graph_makes_of_others_in_between_is_an_error(schedule):
    """Also where it has no gradient of its own, and comes by way of another graph, or of a kernel."""
    x, loss = arr([0.3, -0.7]), arr([0.0])
    y, z, w, v = (wp.zeros(2, dtype=float) for _ in range(4))
    with wp.ScopedCapture() as first:
        wp.copy(y, x)
    with wp.ScopedCapture() as second:
        wp.copy(z, y)

    def back(*steps):
        with wp.Tape(schedule) as tape:
            for step in steps:
                step()
            wp.launch(squares, dim=2, inputs=[v], outputs=[loss])
        tape.backward(loss)

    one, two = (lambda graph=each.graph: wp.capture_launch(graph) for each in (first, second))
    why = "has a gradient and writes.*kernel mix reads that then.*was not captured inside"
    steps = wp.array([0, 1], dtype=int)
    for made, between in ((y, [one]), (z, [one, two]), (y, [lambda: wp.copy(w, x), one])):
        with pytest.raises(wp.KernelGradientError, match=why):
            back(*between, lambda made=made: wp.launch(mix, dim=2, inputs=[made, steps], outputs=[v]))
    with pytest.raises(wp.KernelGradientError, match="a copy reads that then"):
        back(one, lambda: wp.copy(v, y))
    assert x.grad.list() == [0.0, 0.0]
    x.grad.zero_()
    back(one, lambda: y.fill_(2.0), lambda: wp.copy(v, y))  # what it wrote is gone before anybody reads it
    back(one, lambda: wp.launch(twice, dim=2, inputs=[x], outputs=[y]), lambda: wp.copy(v, y))
    back(one, lambda: wp.copy(v, x))
    assert x.grad.numpy() == pytest.approx(10 * x.numpy())


def test_what_a_tape_cannot_know_of_a_graph_is_an_error():
    x, plain, yes, loss = arr([0.3, -0.7]), wp.zeros(2, dtype=float), wp.ones(1, dtype=int), arr([0.0])
    with wp.ScopedCapture() as before:
        wp.launch(turn, dim=2, inputs=[x, 2.0])
    with wp.ScopedCapture() as harmless:
        wp.launch(turn, dim=2, inputs=[plain, 2.0])
    plain.assign([0.3, -0.7])
    with wp.Tape() as tape:
        with wp.ScopedCapture() as branches:
            wp.capture_if(yes, lambda: wp.launch(turn, dim=2, inputs=[x, 2.0]))
        for graph, why in ((before, "not captured inside"), (branches, "more than launches and copies")):
            with pytest.raises(wp.KernelGradientError, match=f"wp.capture_launch: a tape is recording.*{why}"):
                wp.capture_launch(graph.graph)
        wp.launch(weigh, dim=2, inputs=[plain, wp.vec2(1.0, 0.0)], outputs=[x])
        wp.capture_launch(harmless.graph)
        wp.launch(squares, dim=2, inputs=[x], outputs=[loss])
    tape.backward(loss)
    assert x.grad.numpy() == pytest.approx(2 * (x.numpy()))
    wp.capture_launch(before.graph)


@wp.kernel
def count(c: wp.array(dtype=int), rounds: wp.array(dtype=int)):
    c[0] -= 1
    rounds[0] += 1


@wp.kernel
def weigh_by(x: wp.array(dtype=float), k: wp.array(dtype=float), c: wp.array(dtype=int), s: wp.array(dtype=float)):
    wp.atomic_add(s, 0, x[wp.tid()] * k[0] * float(c[0]))


@pytest.mark.parametrize("checkpoint", ["all", 1])
@pytest.mark.parametrize("branch", [wp.capture_if, wp.capture_while])
def test_no_tape_goes_back_through_a_body_that_it_recorded_once(branch, checkpoint):
    x, loss, c = arr([0.3, -0.7]), arr([0.0]), wp.array([2], dtype=int)
    with wp.ScopedCapture(), wp.Tape(checkpoint) as tape:
        z = wp.clone(x)
        branch(c, lambda: wp.launch(turn, dim=2, inputs=[z, 2.0]))
        wp.launch(squares, dim=2, inputs=[z], outputs=[loss])
        why = rf"through the body of wp.{branch.__name__} at {__file__}:\d+"
        with pytest.raises(wp.KernelGradientError, match=why):
            tape.backward(loss)


def test_nor_where_the_body_overwrites_what_an_adjoint_looks_at():
    x, k, c, loss = arr([0.3, -0.7]), wp.ones(1, dtype=float), wp.ones(1, dtype=int), arr([0.0])
    with wp.ScopedCapture():
        with wp.Tape() as tape:
            wp.launch(weigh_by, dim=2, inputs=[x, k, c, loss])
        wp.capture_if(c, lambda: k.fill_(7.0))
        with pytest.raises(wp.KernelGradientError, match="through the body of wp.capture_if"):
            tape.backward(loss)


def test_bodies_without_gradients_and_whole_tapes_in_them_have_the_same_gradients():
    x, loss, k = arr([0.3, -0.7]), arr([0.0]), wp.array([2.0], dtype=float)
    start, c, rounds = wp.array([3], dtype=int), wp.zeros(1, dtype=int), wp.zeros(1, dtype=int)

    def counted():
        wp.capture_while(c, lambda: wp.launch(count, dim=1, inputs=[c, rounds]))
        wp.launch(weigh_by, dim=2, inputs=[x, k, rounds, loss])

    def forward_and_back():
        with wp.Tape() as inner:
            wp.launch(weigh_by, dim=2, inputs=[x, k, rounds, loss])
        inner.backward(loss)
        wp.launch(count, dim=1, inputs=[c, rounds])

    with wp.ScopedCapture() as capture:
        x.grad.zero_(), loss.zero_(), rounds.zero_(), wp.copy(c, start)
        with wp.Tape() as tape:
            counted()
        tape.backward(loss)
        wp.copy(c, start)
        wp.capture_while(c, forward_and_back)  # 3, 4 and 5 rounds
    for _ in range(2):
        wp.capture_launch(capture.graph)
        assert x.grad.list() == [2 * (3 + 3 + 4 + 5)] * 2

    with wp.ScopedCapture() as capture:
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(weigh_by, dim=2, inputs=[x, k, rounds, loss])
        wp.capture_if(c, on_false=lambda: tape.backward(loss))
    wp.capture_launch(capture.graph)
    assert x.grad.list() == [2 * 6] * 2


def test_a_graph_within_a_graph_may_overwrite_what_an_adjoint_looks_at():
    x, k, c, loss = arr([0.3, -0.7]), wp.array([2.0], dtype=float), wp.ones(1, dtype=int), arr([0.0])
    with wp.ScopedCapture() as inner:
        k.fill_(7.0)
    with wp.ScopedCapture() as capture:
        x.grad.zero_(), k.fill_(2.0)
        with wp.Tape() as tape:
            wp.launch(weigh_by, dim=2, inputs=[x, k, c, loss])
        wp.capture_launch(inner.graph)
        tape.backward(loss)
    wp.capture_launch(capture.graph)
    assert x.grad.list() == [2.0, 2.0] and k.list() == [7.0]


@wp.struct
class Speck:
    at: wp.vec2
    n: int


@wp.struct
class Cloud:
    n: int
    mass: float
    first: Speck


def test_gradients_of_structs_that_are_copied():
    """Field by field: what is no float has none, and is left alone."""
    one = Cloud(n=3, mass=1.0)
    one.first = Speck(at=wp.vec2(1.0, 2.0), n=5)
    a, b = wp.array([one, one], dtype=Cloud, requires_grad=True), wp.zeros(2, dtype=Cloud, requires_grad=True)
    seed = Cloud(n=7, mass=2.0)
    seed.first = Speck(at=wp.vec2(3.0, 4.0), n=9)
    with wp.ScopedCapture() as capture:
        with wp.Tape() as tape:
            wp.copy(b, a)
        tape.backward()
    for times in (1, 2):
        b.grad.assign([seed, Cloud()])
        wp.capture_launch(capture.graph)
        first, other = a.grad.list()
        assert (first.mass, first.first.at) == (2.0 * times, times * wp.vec2(3.0, 4.0))
        assert (first.n, first.first.n, other.mass, other.first.at) == (0, 0, 0.0, wp.vec2(0.0, 0.0))
        assert b.grad.list()[0].mass == 0.0
