"""Schedules of kept states: the same bits as keeping everything, in less memory."""

from math import comb

import numpy as np
import pytest

import treadle as wp
from tests.lang.tape_programs import Program, act, f8, weigh
from treadle.lang.checkpoint import split

SCHEDULES = [1, 2, 3, "sqrt", "100B", "300B"]


@pytest.mark.parametrize("seeds", [range(k, k + 15) for k in range(200, 245, 15)], ids=str)
def test_random_programs_have_the_same_bits(seeds):
    for seed in seeds:
        program = Program(seed)
        a, loss, tape = program.run()
        tape.backward(loss)
        wanted = a.grad.numpy().tobytes()
        for checkpoint in SCHEDULES:
            b, loss, tape = program.run(checkpoint, step=seed % 4)
            b.zero_()
            tape.backward(loss)
            assert b.grad.numpy().tobytes() == wanted, (seed, checkpoint)
            assert not b.numpy().any()


@pytest.mark.host
def test_an_error_on_the_way_back_changes_nothing():
    for seed in range(30):
        program = Program(seed)
        results = []
        for checkpoint in ("all", *SCHEDULES):
            a, w = wp.array(program.start, dtype=f8, requires_grad=True), wp.array(program.weights, dtype=f8)
            loss, fails = wp.zeros(1, dtype=f8, requires_grad=True), [True]

            def backward():
                if fails[0]:
                    raise KeyError("on the way")

            with wp.Tape(checkpoint=checkpoint) as tape:
                for number, action in enumerate(program.actions):
                    if number == seed % len(program.actions):
                        tape.record_func(backward, [])
                    act(a, action)
                wp.launch(weigh, dim=a.shape, inputs=[a, w], outputs=[loss])
            a[1] = 5.0
            held = a.numpy().tobytes()
            for _ in range(2):
                with pytest.raises(KeyError, match="on the way"):
                    tape.backward(loss)
                assert a.numpy().tobytes() == held
            fails[0] = False
            a.grad.zero_()
            tape.backward(loss)
            assert a.numpy().tobytes() == held
            results.append(a.grad.numpy().tobytes())
        assert results == results[:1] * len(results), seed


@wp.kernel
def swing(x: wp.array(dtype=float), v: wp.array(dtype=float), k: wp.array(dtype=float)):
    i = wp.tid()
    v[i] = v[i] - 0.01 * k[i] * x[i] * (1.0 + x[i] * x[i])
    x[i] = x[i] + 0.01 * v[i]


@wp.kernel
def energy(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i] * x[i])


def rollout(checkpoint, steps=5000, marks=False):
    n = 32
    x, v = wp.array(np.linspace(0.5, 1.0, n), dtype=float), wp.zeros(n, dtype=float)
    k, out = wp.ones(n, dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape(checkpoint=checkpoint) as tape:
        for _ in range(steps):
            if marks:
                tape.step()
            wp.launch(swing, dim=n, inputs=[x, v, k])
        wp.launch(energy, dim=n, inputs=[x], outputs=[out])
    held = tape.saved_bytes
    tape.backward(out)
    assert tape.saved_bytes == held
    return k.grad.numpy().tobytes(), held, tape


@pytest.mark.host
def test_a_long_rollout_in_little_memory():
    wanted, everything, _ = rollout("all")
    assert everything == 5000 * 2 * 32 * 4
    for checkpoint, most in (("sqrt", 0.02 * everything), (100, 0.011 * everything), ("30kB", 15_000)):
        for marks in (False, True):
            got, held, tape = rollout(checkpoint, marks=marks)
            assert got == wanted
            assert held <= most, (checkpoint, held)


def test_backward_twice_and_after_an_error():
    wanted, _, _ = rollout("all", 50)
    x, out = wp.array([1.0], dtype=float), wp.zeros(1, dtype=float, requires_grad=True)
    k, v = wp.ones(1, dtype=float, requires_grad=True), wp.zeros(1, dtype=float)
    calls = []

    def backward():
        calls.append(x.list())
        if len(calls) == 1:
            raise ValueError("not now")

    with wp.Tape(checkpoint=4) as tape:
        for step in range(20):
            wp.launch(swing, dim=1, inputs=[x, v, k])
            if step == 9:
                tape.record_func(backward, [x])
                middle = x.list()
        wp.launch(energy, dim=1, inputs=[x], outputs=[out])
    end = x.list(), v.list()
    with pytest.raises(ValueError, match="not now"):
        tape.backward(out)
    assert (x.list(), v.list()) == end
    k.grad.zero_()
    tape.backward(out)
    first = k.grad.list()
    tape.zero()
    tape.backward(out)
    assert k.grad.list() == first and calls == [middle] * 3 and (x.list(), v.list()) == end


def test_what_cannot_run_again_is_kept(capsys):
    @wp.kernel
    def shout(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = 2.0 * x[i]
        print(x[i])

    grads = []
    for checkpoint in ("all", 2):
        x, k = wp.array([1.0], dtype=float, requires_grad=True), wp.ones(1, dtype=float)
        v, out = wp.zeros(1, dtype=float), wp.zeros(1, dtype=float, requires_grad=True)
        given = np.array([0.25], dtype=np.float32)
        with wp.Tape(checkpoint=checkpoint) as tape:
            for step in range(6):
                wp.launch(swing, dim=1, inputs=[x, v, k])
                wp.launch(shout, dim=1, inputs=[x])
                v.assign(given * step)
                given[0] += 1.0  # the tape has its own copy
                wp.launch(shout, dim=1, inputs=[v], record_tape=False)
            wp.launch(energy, dim=1, inputs=[x], outputs=[out])
        said = capsys.readouterr().out
        tape.backward(out)
        assert said and capsys.readouterr().out == ""
        grads.append(x.grad.list())
    assert grads[0] == grads[1]


def test_launches_that_are_not_recorded_are_kept_where_the_step_had_saved_the_array_before():
    @wp.kernel
    def square(x: wp.array(dtype=f8)):
        x[wp.tid()] *= x[wp.tid()]

    for checkpoint in ("all", *SCHEDULES, 4, 100):
        x, w = wp.array([1.1, 1.2, 1.3], dtype=f8, requires_grad=True), wp.ones((1, 3), dtype=f8)
        loss = wp.zeros(1, dtype=f8, requires_grad=True)
        with wp.Tape(checkpoint=checkpoint) as tape:
            for step in range(4):
                tape.step()
                wp.launch(square, dim=3, inputs=[x])
                if step == 1:
                    wp.launch(square, dim=2, inputs=[x], record_tape=False)
            wp.launch(weigh, dim=(1, 3), inputs=[x.reshape((1, 3)), w], outputs=[loss])
        tape.backward(loss)
        # values: squared 4 or 5 times; derivatives: 2 x at each recorded one
        wanted = [16.0 * v ** (1 + 2 + 8 + 16) for v in (1.1, 1.2)] + [16.0 * 1.3**15]
        np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-12, err_msg=str(checkpoint))


@pytest.mark.parametrize("n", [4, 16, 1000])
def test_a_graph_that_runs_meanwhile_takes_no_gradients_away(n):
    """It may write gradients, for all that is known, and does so where it has a tape of its own: they are not put back
    with what it overwrote of the steps. (Arrays of 16 floats lie side by side.)"""

    @wp.kernel
    def move(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = wp.cos(x[i]) * x[i]

    @wp.kernel
    def judge(x: wp.array(dtype=float), out: wp.array(dtype=float)):
        wp.atomic_add(out, 0, x[wp.tid()] * x[wp.tid()])

    x, y, out = (wp.zeros(k, dtype=float, requires_grad=True) for k in (n, n, 1))

    def run():
        out.zero_()
        wp.launch(move, dim=n, inputs=[x, y])
        wp.launch(judge, dim=n, inputs=[y], outputs=[out])

    def gradient(tape):
        tape.zero()
        tape.backward(out)
        return x.grad.numpy().copy()

    def learn():
        with wp.Tape() as own:
            run()
        own.backward(out)

    for body in (run, learn):
        x.assign(np.linspace(0.1, 2.0, n))
        tape = wp.Tape(checkpoint=3)
        with tape:
            run()
        wanted = gradient(tape)
        with wp.ScopedCapture() as capture:
            body()
        x.fill_(0.3)
        wp.capture_launch(capture.graph)
        before = [a.numpy().copy() for a in (x, y, out)]
        assert (gradient(tape) == wanted).all()
        assert all((a.numpy() == was).all() for a, was in zip((x, y, out), before, strict=True))


def test_the_split_reaches_as_far_as_binomials_say():
    def runs(steps: int, slots: int) -> int:
        """How often a step is run at most."""
        if steps <= max(slots, 1):
            return 1
        at = split(steps, slots)
        assert 0 < at < steps
        return max(1 + runs(at, slots), runs(steps - at, slots - 1))

    for slots in (2, 3, 5, 20):
        for repeats in (1, 2, 3):
            assert runs(comb(slots + repeats - 1, repeats), slots) == repeats
            assert runs(comb(slots + repeats - 1, repeats) + 1, slots) == repeats + 1


@pytest.mark.parametrize("checkpoint", [0, -1, True, "none", "5", "5 MiB", 2.5, None])
def test_other_schedules_are_refused(checkpoint):
    with pytest.raises(ValueError, match="checkpoint is 'all', 'sqrt'"):
        wp.Tape(checkpoint=checkpoint)


def test_saved_bytes_are_counted_as_they_come():
    x, y = wp.ones(1000, dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape(checkpoint=2) as tape:
        wp.launch(energy, dim=1000, inputs=[x], outputs=[y])
        before = tape.saved_bytes
        x.assign(np.full(1000, 2.0, np.float32))  # what was there is kept, and what is written
        assert tape.saved_bytes == before + 2 * 4000
        for _ in range(5):
            wp.launch(energy, dim=1000, inputs=[x], outputs=[y])
    recorder = tape._recorder
    recount = sum(piece.nbytes for segment in recorder.segments for piece in segment.saved)
    assert tape.saved_bytes == recount + 4000
