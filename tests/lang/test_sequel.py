"""What a tape saves ahead when a program goes on with the arrays of a recording: its gradients keep their bits."""

import ctypes
import gc
import os
import random
import signal
import threading
import weakref

import numpy as np
import pytest

import treadle as wp
from tests.lang.tapes import arr
from treadle.lang import undo
from treadle.lang.plan import plan_for
from treadle.lang.sequel import _whole
from treadle.runtime import watch

STEPS, N = 60, 50


@wp.kernel
def pull(x: wp.array(dtype=float), k: wp.array(dtype=float), f: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(f, i, -k[0] * wp.sin(x[i]))


@wp.kernel
def move(x: wp.array(dtype=float), f: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 0.01 * f[i] * x[i]


@wp.kernel
def judge(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, x[wp.tid()] * x[wp.tid()])


class Rollout:
    """States of a simulation, each with an array of its own."""

    def __init__(self, steps=STEPS, n=N):
        self.k, self.out, self.n = arr([1.5]), arr([0.0]), n
        self.x = [wp.zeros(n, dtype=float, requires_grad=True) for _ in range(steps + 1)]
        self.f = [wp.zeros(n, dtype=float, requires_grad=True) for _ in range(steps)]
        self.x[0].assign(np.linspace(0.1, 2.0, n))

    def run(self, steps=None):
        self.out.zero_()
        for x, f, y in [*zip(self.x, self.f, self.x[1:])][:steps]:
            f.zero_()
            wp.launch(pull, dim=self.n, inputs=[x, self.k], outputs=[f])
            wp.launch(move, dim=self.n, inputs=[x, f], outputs=[y])
        wp.launch(judge, dim=self.n, inputs=[self.x[-1]], outputs=[self.out])

    def record(self):
        with wp.Tape() as tape:
            self.run()
        return tape, self.gradients(tape)

    def gradients(self, tape):
        tape.zero()
        tape.backward(self.out)
        found = [a.grad.numpy().copy() for a in (self.k, self.x[0])]
        tape.zero()
        return found

    def content(self):
        return [a.numpy().copy() for a in (self.k, self.out, *self.x, *self.f)]

    @property
    def nbytes(self):
        return sum(a.nbytes for a in (self.k, self.out, *self.x, *self.f))

    def check(self, tape, wanted):
        """The tape gives the gradients ``wanted``, and leaves all arrays as they are, as often as it is asked."""
        before = self.content()
        for _ in range(2):
            assert same(self.gradients(tape), wanted)
            assert same(self.content(), before)


def same(one, other):
    return all((a == b).all() for a, b in zip(one, other, strict=True))


def saved_at(tape):
    return [(piece.position, piece.nbytes) for piece in tape._recorder.saved]


def test_a_program_that_is_run_again_over_a_living_tape_is_soon_not_looked_at():
    rollout = Rollout()
    tape, wanted = rollout.record()
    count, nbytes = len(tape._recorder.saved), tape.saved_bytes
    rollout.k.assign([0.7])
    rollout.x[0].assign(np.linspace(2.0, -1.0, N))
    rollout.run()
    assert not watch.watchers
    assert len(tape._recorder.saved) < count + 12
    assert rollout.nbytes * 0.9 < tape.saved_bytes - nbytes <= rollout.nbytes
    rollout.check(tape, wanted)


def test_it_may_stop_anywhere():
    for steps in (1, 2, 3, 5, 9, 30, STEPS - 1):
        rollout = Rollout()
        tape, wanted = rollout.record()
        rollout.k.assign([0.7])
        rollout.run(steps)
        rollout.check(tape, wanted)


def test_a_few_writes_save_a_few_arrays():
    rollout = Rollout()
    tape, wanted = rollout.record()
    nbytes = tape.saved_bytes
    rollout.x[30].zero_()
    rollout.x[7].fill_(2.0)
    rollout.x[50].zero_()
    assert tape.saved_bytes == nbytes + 3 * 4 * N and len(watch.watchers) == 1
    rollout.check(tape, wanted)
    tape, wanted = rollout.record()
    nbytes = tape.saved_bytes
    rollout.k.assign([0.7])
    rollout.run(2)
    assert tape.saved_bytes <= nbytes + 4 * 5 * 4 * N + 64
    rollout.check(tape, wanted)


@pytest.mark.parametrize("seed", range(6))
def test_writes_in_any_order_and_of_any_kind(seed):
    rng = random.Random(seed)
    rollout = Rollout()
    tape, wanted = rollout.record()
    arrays = [*rollout.x, *rollout.f]
    for _ in range(rng.choice([5, 40, 150])):
        at = rng.randrange(len(arrays))
        for a in arrays[at : at + rng.choice([1, 4])]:
            match rng.randrange(5):
                case 0:
                    a.fill_(rng.random())
                case 1:
                    wp.copy(a, rng.choice(arrays))
                case 2:
                    a[3] = rng.random()
                case 3:
                    wp.launch(move, dim=N, inputs=[rng.choice(arrays), rng.choice(arrays)], outputs=[a])
                case 4:
                    wp.launch(move, dim=N // 2, inputs=[rng.choice(arrays), rng.choice(arrays)], outputs=[a])
    rollout.check(tape, wanted)


def test_arrays_with_gaps_and_views_are_saved_when_they_are_written():
    rollout = Rollout()
    base = wp.zeros((STEPS, 2 * N), dtype=float, requires_grad=True)
    for t in range(10, 20):
        rollout.x[t] = base[t, ::2] if t % 2 else base[t, N:]
    tape, wanted = rollout.record()
    rollout.k.assign([0.7])
    rollout.run()
    rollout.check(tape, wanted)


def test_what_is_large_and_only_read_is_not_copied():
    @wp.kernel
    def weigh(x: wp.array(dtype=float), w: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i] * w[i * 100]

    rollout, w = Rollout(), wp.full(100_000, 1.25, dtype=float)
    with wp.Tape() as tape:
        wp.launch(weigh, dim=N, inputs=[rollout.x[0], w], outputs=[rollout.f[0]])
        rollout.run()
    wanted = rollout.gradients(tape)
    nbytes = tape.saved_bytes
    rollout.run()
    assert tape.saved_bytes <= nbytes + rollout.nbytes and len(watch.watchers) == 1
    w.zero_()
    rollout.check(tape, wanted)


def test_a_tape_that_was_done_records_again():
    rollout = Rollout()
    tape, _ = rollout.record()
    rollout.run()
    assert not watch.watchers
    before, other = rollout.x[1].numpy().copy(), arr([0.0])
    with tape:
        wp.launch(judge, dim=N, inputs=[rollout.x[1]], outputs=[other])
    assert len(watch.watchers) == 1
    rollout.x[1].zero_()
    rollout.x[1].retain_grad = True
    tape.backward(other)
    assert np.allclose(rollout.x[1].grad.numpy(), 2.0 * before)
    assert rollout.x[1].list() == [0.0] * N


def test_a_function_after_the_recording_is_heard_too():
    rollout = Rollout()
    tape, _ = rollout.record()
    rollout.run()
    assert not watch.watchers
    before, found = rollout.x[5].list(), []
    tape.record_func(lambda: found.extend(rollout.x[5].list()), [rollout.x[5]])
    rollout.x[5].zero_()
    tape.backward(rollout.out)
    assert found == before and rollout.x[5].list() == [0.0] * N


def gradients_of_a_seed(rollout, tape, left):
    """By a pass from the loss and from a gradient that the user writes, if ``left`` into what another has left."""
    for a in tape.gradients:
        if not (left and a is rollout.f[10]):
            a.grad.zero_()
    rollout.f[10].grad.assign(np.full(N, 0.5, np.float32))
    tape.backward(rollout.out)
    found = rollout.k.grad.numpy().copy(), rollout.x[0].grad.numpy().copy()
    tape.zero()
    return found


def test_gradients_that_the_user_writes_count_after_a_backward_pass():
    """Also where the tape would have nothing left to look at: what a pass left in results is no seed, this is."""
    rollout = Rollout(20)
    tape, _ = rollout.record()
    alone = gradients_of_a_seed(rollout, tape, left=False)
    tape.backward(rollout.out)
    rollout.run()
    assert same(alone, gradients_of_a_seed(rollout, tape, left=True))


@pytest.mark.parametrize("goes", [False, True])
def test_gradients_that_the_user_writes_count_after_the_pass_of_another_tape(goes):
    """The two share gradients, so what one leaves there is what the other must tell from seeds."""
    rollout = Rollout(20)
    one, two = rollout.record()[0], rollout.record()[0]
    alone = gradients_of_a_seed(rollout, two, left=False)
    one.backward(rollout.out)
    if goes:
        del one
    rollout.run()
    assert same(alone, gradients_of_a_seed(rollout, two, left=True))


def test_no_guess_while_writes_are_to_be_told(monkeypatch):
    monkeypatch.setattr(wp.config, "verify_autograd_array_access", True)
    rollout = Rollout(4)
    tape, wanted = rollout.record()
    with pytest.warns(UserWarning, match="keeps what is overwritten"):
        rollout.run()
    assert len(watch.watchers) == 1 and not any(n > 4 * N for _, n in saved_at(tape))
    rollout.check(tape, wanted)


def test_two_tapes_that_look_at_the_same_arrays():
    rollout = Rollout()
    one, wanted = rollout.record()
    rollout.k.assign([0.7])
    two, other = rollout.record()
    assert not same(wanted, other)
    rollout.k.assign([0.3])
    rollout.run()
    assert not watch.watchers
    rollout.check(two, other)
    rollout.check(one, wanted)


@pytest.mark.parametrize("n", [N, 50_000])
def test_threads_that_go_on_at_once(n):
    """Copies of large arrays let other threads run meanwhile."""
    rollouts, errors = [Rollout(n=n) for _ in range(3)], []
    with wp.Tape() as tape:
        for rollout in rollouts:
            rollout.run()
    tape.backward(grads={r.out: arr([1.0], grad=False) for r in rollouts})
    wanted = [r.k.grad.numpy().copy() for r in rollouts]
    tape.zero()

    def go_on(rollout, value):
        try:
            for k in range(5):
                rollout.k.fill_(value + k)
                rollout.run()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=go_on, args=(r, 0.1 * n)) for n, r in enumerate(rollouts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    before = [r.content() for r in rollouts]
    tape.backward(grads={r.out: arr([1.0], grad=False) for r in rollouts})
    assert same([r.k.grad.numpy() for r in rollouts], wanted)
    assert all(same(r.content(), was) for r, was in zip(rollouts, before))


def test_threads_that_write_to_different_arrays_of_a_tape(monkeypatch):
    """One thread saves an array, which lets others run; one of those saves the same array ahead."""
    rollout, errors, saving, ahead = Rollout(20), [], threading.Event(), threading.Event()
    tape, wanted = rollout.record()
    first = rollout.f[6]

    class Slow(undo.Bytes):
        def __init__(self, position, address, nbytes, owner):
            super().__init__(position, address, nbytes, owner)
            if owner is first:
                saving.set()
                ahead.wait(0.5)  # what the other thread does now must not touch the same array

    monkeypatch.setattr(undo, "Bytes", Slow)

    def write():
        try:
            first.fill_(3.0)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    saving.wait(5)
    rollout.run()
    ahead.set()
    thread.join()
    assert errors == [] and not watch.watchers
    rollout.check(tape, wanted)


def test_launches_of_several_threads_that_write_a_part():
    """What one must compare after it is not taken for what another, done earlier, must."""

    @wp.kernel
    def wipe(which: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        if which[i] > 0.0:
            y[i] = 0.0

    rollout, which = Rollout(4, n=200), wp.ones(200, dtype=float)
    tape, wanted = rollout.record()
    wp.launch(wipe, dim=200, inputs=[which, wp.zeros(200)])  # compiled
    first, second = rollout.x[1], rollout.x[2]

    def both():
        wp.launch(wipe, dim=200, inputs=[which, second])  # begins later, is done earlier
        ctypes.memset(first.ptr, 0, 400)

    watch.run(plan_for(wipe, [which, first]), (200,), [which, first], both, True)
    assert first.list()[:101] != first.list()[100:] and not second.numpy().any()
    rollout.check(tape, wanted)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system starts processes in another way")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_a_forked_process_goes_on_where_another_thread_was_saving():
    rollout = Rollout(4)
    tape, _ = rollout.record()
    held, done = threading.Event(), threading.Event()

    def hold():
        with tape._recorder.lock:
            held.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(5)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        rollout.x[1].zero_()
        os._exit(3)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_what_was_saved_goes_with_the_tape():
    rollout = Rollout()
    tape, _ = rollout.record()
    rollout.run()
    state = weakref.ref(rollout.x.pop(3))
    assert not watch.watchers and state() is not None
    tape.reset()
    gc.collect()
    assert state() is None and tape.saved_bytes == 0


def test_a_graph_overwrites_all_at_once():
    rollout = Rollout()
    tape, wanted = rollout.record()
    rollout.k.assign([0.7])
    with wp.ScopedCapture() as capture:
        rollout.run()
    nbytes = tape.saved_bytes
    wp.capture_launch(capture.graph)
    assert tape.saved_bytes <= nbytes + rollout.nbytes
    rollout.check(tape, wanted)


def test_arrays_without_gaps_are_told_from_others():
    dense = [wp.zeros(3), wp.zeros((2, 3, 4), dtype=wp.vec3), wp.zeros((5, 1), dtype=wp.float64)]
    others = [wp.zeros(8)[::2], wp.zeros((3, 4))[:, :2], wp.zeros((3, 4)).transpose((1, 0)), wp.zeros(0)]
    mixed = [a for pair in zip(dense, others) for a in pair] + others[3:] + ["something else"]
    arrays, keys, table = _whole(mixed, [*range(len(mixed))])
    assert all(a is b for a, b in zip(arrays, dense, strict=True)) and keys == [0, 2, 4]
    assert table["at"].tolist() == [a.ptr for a in dense] and table["nbytes"].tolist() == [a.nbytes for a in dense]
    assert _whole([], [])[0] == _whole([object()], [1])[0] == []
