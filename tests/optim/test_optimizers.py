"""Steps agree with the formulas of the papers, written out in NumPy, for every kind of parameter."""

import numpy as np
import pytest

import treadle as wp

KINDS = [(wp.float32, 1e-6), (wp.float64, 1e-14), (wp.float16, 2e-3), (wp.vec3, 1e-6), (wp.mat22, 1e-6)]


def adam(p, grads, lr=0.1, beta1=0.8, beta2=0.99, eps=1e-6):
    m = v = 0.0
    for t, g in enumerate(grads, 1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        p = p - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return p


def sgd(p, grads, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.05, nesterov=False):
    b = None
    for g in grads:
        g = g + weight_decay * p
        b = g if b is None else momentum * b + (1 - dampening) * g
        p = p - lr * (g + momentum * b if nesterov else b if momentum else g)
    return p


def stepped(optimizer, dtype, shape=(2, 3)):
    """What three steps make of random parameters: the array, and the numbers to begin with and the gradients."""
    rng = np.random.default_rng(3)
    whole = shape + tuple(getattr(dtype, "_shape_", ()))
    begin, *grads = rng.normal(size=(4, *whole)).astype(wp.dtype_to_numpy(getattr(dtype, "_wp_scalar_type_", dtype)))
    p = wp.array(begin, dtype=dtype)
    made = optimizer([p])
    for g in grads:
        made.step([wp.array(g, dtype=dtype)])
    return p.numpy(), begin.astype(np.float64), grads


@pytest.mark.parametrize(("dtype", "near"), KINDS, ids=lambda x: getattr(x, "__name__", ""))
def test_adam_is_that_of_the_paper(dtype, near):
    found, begin, grads = stepped(lambda p: wp.optim.Adam(p, lr=0.1, betas=(0.8, 0.99), eps=1e-6), dtype)
    np.testing.assert_allclose(found, adam(begin, grads), rtol=near, atol=near)


@pytest.mark.parametrize(("dtype", "near"), KINDS, ids=lambda x: getattr(x, "__name__", ""))
def test_sgd_is_that_of_the_paper(dtype, near):
    options = dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.05)
    found, begin, grads = stepped(lambda p: wp.optim.SGD(p, **options), dtype)
    np.testing.assert_allclose(found, sgd(begin, grads), rtol=near, atol=near)


@pytest.mark.parametrize("options", [dict(nesterov=True), dict(momentum=0.0), dict(dampening=0.0, weight_decay=0.0)])
def test_every_option_of_sgd_counts(options):
    options = dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.05) | options
    found, begin, grads = stepped(lambda p: wp.optim.SGD(p, **options), wp.float32)
    np.testing.assert_allclose(found, sgd(begin, grads, **options), rtol=1e-5)


def test_parameters_that_lie_apart_are_stepped_where_they_lie():
    whole = wp.ones((4, 4), dtype=float)
    p = whole[::2, 1:3]
    wp.optim.SGD([p], lr=0.5).step([wp.ones_like(p)])
    expected = np.ones((4, 4))
    expected[::2, 1:3] = 0.5
    np.testing.assert_array_equal(whole.numpy(), expected)


def test_state_stays_with_parameters_of_its_shape():
    a, b = wp.zeros(4, dtype=wp.float16), wp.zeros(3, dtype=wp.vec2)
    made = wp.optim.Adam([a, b])
    m, v = list(made.m), list(made.v)
    assert [x.dtype for x in m] == [wp.float32, wp.vec2]
    made.step([wp.ones_like(a), wp.ones_like(b)])
    made.set_params([wp.ones_like(a), wp.zeros(5, dtype=wp.vec2)])
    assert made.m[0] is m[0] and made.v[0] is v[0] and made.m[1] is not m[1]
    assert made.m[0].numpy().all() and made.t == 1
    made.reset_internal_state()
    assert not made.m[0].numpy().any() and made.t == 0


def test_what_is_no_step_is_refused():
    p = wp.zeros(2, dtype=float)
    with pytest.raises(RuntimeError, match=r"SGD parameters must be set before calling step\(\)"):
        wp.optim.SGD().step([])
    with pytest.raises(TypeError, match="parameters are arrays of floats, not of int32"):
        wp.optim.SGD([wp.zeros(2, dtype=int)])
    with pytest.raises(TypeError, match="parameters are arrays of floats, not list"):
        wp.optim.SGD([[1.0]])
    made = wp.optim.Adam([p])
    with pytest.raises(ValueError, match="takes 1 gradients, one for each parameter: not 2"):
        made.step([p, p])
    with pytest.raises(TypeError, match="gradient dtype must match parameter dtype float32, got int32"):
        made.step([wp.zeros(2, dtype=int)])
    with pytest.raises(ValueError, match=r"gradient shape must match parameter shape \(2,\), got \(1, 2\)"):
        made.step([wp.zeros((1, 2), dtype=float)])
    assert made.t == 0 and not p.numpy().any()
    with pytest.raises(AttributeError, match="treadle.optim has no 'linear' yet: linear solvers are not part"):
        _ = wp.optim.linear


@pytest.mark.parametrize("make", [
    lambda p: wp.optim.Adam(p, lr=0.1), lambda p: wp.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.4),
    lambda p: wp.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
], ids=["adam", "sgd", "nesterov"])  # fmt: skip
def test_a_captured_step_is_one_more_each_time_the_graph_runs(make):
    found = []
    for graph in (False, True):
        p, g = wp.array([1.0, -2.0, 0.5], dtype=float), wp.array([0.5, 3.0, 0.0], dtype=float)
        made = make([p])
        step = lambda made=made, g=g: made.step([g])  # noqa: E731
        if graph:
            with wp.ScopedCapture() as capture:
                step()
            assert made.t == 0
            step = lambda capture=capture: wp.capture_launch(capture.graph)  # noqa: E731
        rows = []
        for k in range(6):
            if k == 4:
                made.reset_internal_state()
            step()
            g += 0.25
            rows += [p.list(), made.t]
        found.append(rows)
    assert found[0] == found[1]
    assert found[0][1::2] == [1, 2, 3, 4, 1, 2]


def test_steps_are_those_of_torch():
    torch = pytest.importorskip("torch")
    begin, grads = np.array([1.0, -2.0, 0.5], np.float32), np.random.default_rng(5).normal(size=(20, 3)).astype("f")
    for ours, theirs, options in (
        (wp.optim.Adam, torch.optim.Adam, dict(lr=0.1)),
        (wp.optim.SGD, torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True)),
        (wp.optim.SGD, torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.1)),
    ):
        p, q = wp.array(begin, dtype=float), torch.tensor(begin, requires_grad=True)
        one, other = ours([p], **options), theirs([q], **options)
        for g in grads:
            one.step([wp.array(g, dtype=float)])
            q.grad = torch.tensor(g)
            other.step()
        np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-5)


def test_the_number_of_steps_can_be_set():
    p, q = wp.ones(2, dtype=float), wp.ones(2, dtype=float)
    one, other = wp.optim.Adam([p], lr=0.1), wp.optim.Adam(lr=0.1)
    other.t = 3
    other.set_params([q])
    for _ in range(4):
        one.step([p])
    other.m[0].assign(one.m[0])
    assert other.t == 3 and one.t == 4
    other.step([q])
    assert other.t == 4


def test_numbers_that_make_no_sense_are_refused():
    for make, why in (
        (lambda: wp.optim.SGD(lr=-1.0), "SGD: lr must be 0 or more, not -1.0"),
        (lambda: wp.optim.SGD(momentum=-0.5), "momentum must be 0 or more"),
        (lambda: wp.optim.SGD(nesterov=True), "nesterov looks ahead along the momentum"),
        (lambda: wp.optim.Adam(lr=float("nan")), "Adam: lr must be 0 or more, not nan"),
        (lambda: wp.optim.Adam(betas=(0.9, -1.0)), "beta2 must be 0 or more"),
    ):
        with pytest.raises(ValueError, match=why):
            make()
