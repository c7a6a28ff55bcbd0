"""``wp.func_native``: gradients, replay and redefinition. What snippets compute: tests/frontend/snippet."""

import gc
import weakref

import numpy as np
import pytest

import treadle as wp

N = 16


SQUARE_RULE = "adj_a += x[i] * x[i] * adj_out[i]; adj_x[i] += 2 * a * x[i] * adj_out[i];"


@wp.func_native("out[i] = a * x[i] * x[i];", SQUARE_RULE)
def scaled_square(a: float, x: wp.array(dtype=float), out: wp.array(dtype=float), i: int): ...


@wp.func_native("float s = x * x; return s * x;", "adj_x += 7 * adj_ret;")  # not the true one, to be told from it
def ruled(x: float) -> float: ...


@wp.func_native("float s = 1; for (int k = 0; k < 3; k++) s *= x; return wp::vec2(s, x > 2 ? x : 0.5 * x);")
def cubed(x: float) -> wp.vec2: ...


@wp.kernel
def several(a: wp.array(dtype=float), x: wp.array(dtype=float), out: wp.array(dtype=float), y: wp.array2d(dtype=float)):
    i = wp.tid()
    scaled_square(a[i], x, out, i)
    y[0, i] = ruled(x[i])
    v = cubed(x[i])
    y[1, i] = v[0] + 10.0 * v[1]


def test_gradients_go_through_the_snippet_or_its_rule():
    x_np = np.linspace(-1.0, 4.0, N, dtype=np.float32)
    a = wp.array(np.full(N, 3.0), dtype=float, requires_grad=True)
    x = wp.array(x_np, dtype=float, requires_grad=True)
    out, y = wp.zeros(N, dtype=float, requires_grad=True), wp.zeros((2, N), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(several, N, inputs=[a, x], outputs=[out, y])
    tape.backward(grads={out: wp.ones(N, dtype=float), y: wp.ones((2, N), dtype=float)})
    np.testing.assert_allclose(out.numpy(), 3 * x_np**2, 1e-6)
    np.testing.assert_allclose(y.numpy(), [x_np**3, x_np**3 + 10 * np.where(x_np > 2, x_np, x_np / 2)], 1e-5)
    np.testing.assert_allclose(a.grad.numpy(), x_np**2, 1e-6)
    by_x = 6 * x_np + 7 + 3 * x_np**2 + np.where(x_np > 2, 10, 5)
    np.testing.assert_allclose(x.grad.numpy(), by_x, 1e-5)


@wp.func_native("int next = atomicAdd(counter, 1); drawn[i] = next;", replay_snippet="")
def draw(counter: wp.array(dtype=int), drawn: wp.array(dtype=int), i: int): ...


@wp.func_native("y[i] = powf(x[i], 2.0);", "adj_x[i] += 2.0 * adj_y[i];", "y[i] = x[i];")
def square(x: wp.array(dtype=float), y: wp.array(dtype=float), i: int): ...


@wp.kernel
def spread(x: wp.array(dtype=float), counter: wp.array(dtype=int), drawn: wp.array(dtype=int),
           out: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    draw(counter, drawn, i)
    k = drawn[i]
    out[k] = x[k] * x[k]


@wp.kernel
def log_square(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    square(x, y, i)
    z[i] = wp.log(y[i])


def test_replay_stands_for_the_snippet_going_back():
    x = wp.array(np.arange(N) + 1.0, dtype=float, requires_grad=True)
    out = wp.zeros(N, dtype=float, requires_grad=True)
    counter, drawn = wp.zeros(1, dtype=int), wp.zeros(N, dtype=int)
    with wp.Tape() as tape:
        wp.launch(spread, N, inputs=[x, counter, drawn], outputs=[out])
    tape.backward(grads={out: wp.ones(N, dtype=float)})
    assert counter.list() == [N]  # it was not drawn again
    np.testing.assert_array_equal(x.grad.numpy(), 2 * x.numpy())

    x.grad.zero_()
    y, z = wp.zeros(N, dtype=float, requires_grad=True), wp.zeros(N, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(log_square, N, inputs=[x, y], outputs=[z])
    tape.backward(grads={z: wp.ones(N, dtype=float)})
    np.testing.assert_allclose(x.grad.numpy(), 2 / x.numpy(), 1e-6)  # of log(x), times the rule's 2


def test_a_snippet_written_anew_is_seen():
    @wp.func_native("return x + 1.0f;")
    def step(x: float) -> float: ...

    @wp.kernel
    def use(x: wp.array(dtype=float)):
        x[wp.tid()] = step(x[wp.tid()])

    x = wp.zeros(1, dtype=float)
    wp.launch(use, 1, inputs=[x])

    @wp.func_native("return x + 10.0f;")
    def step(x: float) -> float: ...  # noqa: F811

    wp.launch(use, 1, inputs=[x])
    assert x.list() == [11.0]
    assert step.__name__ == "step"


def test_nothing_around_it_is_kept():
    class State:
        pass

    def declared():
        @wp.func_native("return x;")
        def same(x: float) -> float: ...

        return same

    def caller():
        state = State()
        declared()
        return weakref.ref(state)

    gc.disable()
    try:
        assert caller()() is None
    finally:
        gc.enable()


def test_struct_results_are_refused():
    @wp.struct
    class Pair:
        x: float

    @wp.func_native("return {};")
    def make() -> Pair: ...

    with pytest.raises(wp.KernelTypeError, match="unsupported return type"):
        make()
