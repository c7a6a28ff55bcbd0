"""Jacobians of kernels and functions, and the check that compares them."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import AutogradError
from treadle.lang import jacobians as room

autograd = wp.autograd
QUIET = dict(show_summary=False)


@wp.kernel
def mixed(
    x: wp.array(dtype=wp.vec3),
    s: wp.array(dtype=float),
    n: int,
    y: wp.array(dtype=float),
    z: wp.array2d(dtype=wp.vec2),
):
    i = wp.tid()
    sum = float(0.0)
    for j in range(n):
        sum = sum * 0.5 + wp.dot(x[i], x[i]) * s[j]
    y[i] = sum
    z[i, 1] = wp.vec2(sum, wp.sin(x[i][0]))


def arguments():
    rng = np.random.default_rng(1)
    x = wp.array(rng.normal(size=(3, 3)), dtype=wp.vec3, requires_grad=True)
    s = wp.array(rng.normal(size=2), dtype=float, requires_grad=True)
    y, z = wp.zeros(3, dtype=float, requires_grad=True), wp.zeros((3, 2), dtype=wp.vec2, requires_grad=True)
    return [x, s, 2], [y, z]


def by_hand(x, s):
    """The Jacobians of ``mixed``."""
    x, s = x.numpy().astype(np.float64), s.numpy().astype(np.float64)
    square, weight = (x * x).sum(1), s[0] * 0.5 + s[1]
    yx, zx = np.zeros((3, 3, 3)), np.zeros((3, 2, 2, 3, 3))
    ys, zs = square[:, None] * [0.5, 1.0], np.zeros((3, 2, 2, 2))
    for i in range(3):
        yx[i, i] = zx[i, 1, 0, i] = 2.0 * x[i] * weight
        zx[i, 1, 1, i, 0], zs[i, 1, 0] = np.cos(x[i, 0]), ys[i]
    return {(0, 0): yx, (0, 1): zx.reshape(12, 3, 3), (1, 0): ys, (1, 1): zs.reshape(12, 2)}


@pytest.mark.parametrize("forward", [True, False])
def test_jacobians_have_a_row_for_each_scalar_of_the_output(forward, monkeypatch):
    if not forward:
        monkeypatch.setattr("treadle.lang.autograd.by_tangents", lambda *a: None)
    inputs, outputs = arguments()
    want = by_hand(*inputs[:2])
    found = autograd.jacobian(mixed, 3, inputs, outputs)
    assert set(found) == set(want)
    for pair, jacobian in found.items():
        assert jacobian.dtype is inputs[pair[0]].dtype and jacobian.shape == want[pair].shape[:2]
        np.testing.assert_allclose(jacobian.numpy(), want[pair], rtol=1e-5, atol=1e-6)


def test_forward_mode_serves_where_there_are_fewer_inputs(monkeypatch):
    inputs, outputs = arguments()
    used = []
    real = room.by_tangents
    monkeypatch.setattr("treadle.lang.autograd.by_tangents", lambda *a: used.append(real(*a)) or used[-1])
    autograd.jacobian(mixed, 3, inputs, outputs, input_output_mask=[("s", "z")])
    autograd.jacobian(mixed, 3, inputs, outputs, input_output_mask=[("x", "y")])
    assert [made is not None for made in used] == [True, False]


def test_differences_come_close():
    inputs, outputs = arguments()
    want = by_hand(*inputs[:2])
    for pair, jacobian in autograd.jacobian_fd(mixed, 3, inputs, outputs, eps=1e-2).items():
        np.testing.assert_allclose(jacobian.numpy(), want[pair], atol=2e-4)


def test_pairs_are_chosen_by_name_or_number():
    inputs, outputs = arguments()
    found = autograd.jacobian(mixed, 3, inputs, outputs, input_output_mask=[("s", "z"), (1, 0), (0, "y")])
    assert set(found) == {(1, 1), (1, 0), (0, 0)}
    inputs[0] = wp.array(inputs[0].numpy(), dtype=wp.vec3)
    assert set(autograd.jacobian_fd(mixed, 3, inputs, outputs)) == {(1, 0), (1, 1)}


def test_limits_leave_the_rest_nan():
    inputs, outputs = arguments()
    rows = autograd.jacobian(mixed, 3, inputs, outputs, max_outputs_per_var=2)[1, 0].numpy()
    assert not np.isnan(rows[:2]).any() and np.isnan(rows[2:]).all()
    columns = autograd.jacobian_fd(mixed, 3, inputs, outputs, max_inputs_per_var=1)[1, 0].numpy()
    assert not np.isnan(columns[:, 0]).any() and np.isnan(columns[:, 1]).all()
    assert autograd.gradcheck(mixed, 3, inputs, outputs, max_inputs_per_var=1, max_outputs_per_var=1, **QUIET)


def test_arrays_and_gradients_hold_afterwards_what_they_held():
    inputs, outputs = arguments()
    outputs[0].fill_(7.0)
    inputs[1].grad.fill_(3.0)
    outputs[1].grad.fill_(wp.vec2(4.0, 5.0))
    before = [a.numpy().copy() for a in (*inputs[:2], *outputs, *[a.grad for a in (*inputs[:2], *outputs)])]
    assert autograd.gradcheck(mixed, 3, inputs, outputs, **QUIET)
    autograd.jacobian(mixed, 3, inputs, outputs)
    after = [a.numpy() for a in (*inputs[:2], *outputs, *[a.grad for a in (*inputs[:2], *outputs)])]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@wp.kernel
def square(a: wp.array(dtype=wp.float64)):
    i = wp.tid()
    a[i] = a[i] * a[i]


def test_functions_that_work_in_place():
    def fourth(a):
        for _ in range(2):
            wp.launch(square, 3, inputs=[a])
        return a

    def fills(a):
        wp.launch(square, 3, inputs=[a])

    a = wp.array([1.0, 2.0, 3.0], dtype=wp.float64, requires_grad=True)
    jacobian = autograd.jacobian(fourth, inputs=[a])[0, 0].numpy()
    np.testing.assert_allclose(jacobian, np.diag([4.0, 32.0, 108.0]))
    assert autograd.gradcheck(fourth, inputs=[a], eps=1e-6, atol=1e-6, rtol=1e-8, **QUIET)
    assert autograd.gradcheck(fills, inputs=[a], outputs=[a], eps=1e-6, atol=1e-6, rtol=1e-8, **QUIET)
    assert a.list() == [1.0, 2.0, 3.0]


def test_functions_that_make_their_results():
    def run(x, s):
        _, outputs = arguments()
        wp.launch(mixed, 3, inputs=[x, s, 2], outputs=outputs)
        return outputs

    (x, s, _), _ = arguments()
    want = by_hand(x, s)
    for pair, jacobian in autograd.jacobian(run, inputs=[x, s]).items():
        np.testing.assert_allclose(jacobian.numpy(), want[pair], rtol=1e-5, atol=1e-6)
    assert autograd.gradcheck(run, inputs=[x, s], **QUIET)


def test_what_is_not_put_back_drifts():
    def grows(x):
        wp.launch(plus_one, 3, inputs=[x])
        y = wp.zeros_like(x)
        wp.launch(squared, 3, inputs=[x], outputs=[y])
        return y

    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    assert autograd.gradcheck(grows, inputs=[x], **QUIET) and x.list() == [1.0, 2.0, 3.0]
    assert not autograd.gradcheck(grows, inputs=[x], restore_inputs=False, raise_exception=False, **QUIET)
    assert x.list() != [1.0, 2.0, 3.0]


@wp.kernel
def plus_one(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] += 1.0


@wp.kernel
def squared(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def test_strides():
    @wp.kernel
    def lengths(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = wp.length(x[i])

    rng = np.random.default_rng(3)
    whole = wp.array(rng.normal(size=(8, 3)), dtype=wp.vec3, requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    assert autograd.gradcheck(lengths, 4, [whole[::2]], [y], eps=1e-2, **QUIET)


@wp.kernel
def halved(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wrong(x[i])


@wp.func
def wrong(x: float):
    return x * 0.5


@wp.func_grad(wrong)
def adj_wrong(x: float, adj: float):
    if x > 2.0:
        wp.adjoint[x] += adj * 0.75
    else:
        wp.adjoint[x] += adj * 0.5


def pair_of_arrays(values):
    return [wp.array(values, dtype=float, requires_grad=True)], [wp.zeros(len(values), dtype=float, requires_grad=True)]


def test_what_differs_is_told(capsys):
    inputs, outputs = pair_of_arrays([1.0, 2.0, 3.0])
    with pytest.raises(AutogradError, match=r"output 'y' by input 'x' 1 of 9 entries, the worst one \(2, 2\): 0.75"):
        autograd.gradcheck(halved, 3, inputs, outputs)
    assert "FAIL" in capsys.readouterr().out
    assert autograd.gradcheck(halved, 3, inputs, outputs, raise_exception=False) is False
    assert "differ from central differences" in capsys.readouterr().out
    assert autograd.gradcheck(halved, 2, inputs, outputs) is True
    assert "agree with" in capsys.readouterr().out
    assert autograd.gradcheck(halved, 3, inputs, outputs, rtol=0.6, **QUIET) is True


def test_not_a_number_is_no_gradient():
    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = nothing(x[i])

    @wp.func
    def nothing(x: float):
        return x

    @wp.func_grad(nothing)
    def adj_nothing(x: float, adj: float):
        wp.adjoint[x] += adj * wp.nan

    inputs, outputs = pair_of_arrays([1.0])
    with pytest.raises(ValueError, match="nan instead of 1"):
        autograd.gradcheck(k, 1, inputs, outputs, rtol=1e9, **QUIET)


def test_launches_of_a_tape_are_checked_one_by_one():
    (x, s, n), (y, z) = arguments()
    inputs, outputs = pair_of_arrays([1.0, 2.0, 3.0])
    plain = wp.zeros(3, dtype=float)
    with wp.Tape() as tape:
        wp.launch(mixed, 3, inputs=[x, s, n, y, z])
        wp.launch(halved, 3, inputs=[plain, plain])
        wp.launch(halved, 3, inputs=inputs, outputs=outputs)
    assert autograd.gradcheck_tape(tape, whitelist_kernels=["mixed"], **QUIET)
    assert autograd.gradcheck_tape(tape, blacklist_kernels=["halved"], **QUIET)
    assert autograd.gradcheck_tape(tape, raise_exception=False, **QUIET) is False
    assert autograd.gradcheck_tape(tape, skip_to_launch_index=3, **QUIET)
    assert autograd.gradcheck_tape(tape, reverse_launches=True, skip_to_launch_index=1, **QUIET)
    with pytest.raises(AutogradError, match="gradients of halved differ"):
        autograd.gradcheck_tape(tape, input_output_masks={"mixed": [("x", "y")]}, **QUIET)


def test_wrong_arguments_are_told():
    inputs, outputs = pair_of_arrays([1.0, 2.0])
    constants = [wp.zeros(2, dtype=float)]
    cases = [
        (dict(function=halved, dim=2), "inputs are missing"),
        (dict(function=halved, dim=2, inputs=inputs), "outputs of kernel halved are missing"),
        (dict(function=halved, inputs=inputs, outputs=outputs), "extent of its grid"),
        (dict(function=halved, dim=2, inputs=constants, outputs=outputs), "no input of halved has a gradient"),
        (dict(function=halved, dim=2, inputs=inputs, outputs=constants), "no output of halved has a gradient"),
        (dict(function=halved, dim=2, inputs=inputs, outputs=outputs, input_output_mask=[("q", "y")]), "input 'q'"),
        (dict(function=halved, dim=2, inputs=inputs, outputs=outputs, input_output_mask=[(0, 5)]), "output 5"),
        (dict(function=lambda x: None, inputs=inputs), "returns nothing"),
        (dict(function=7, inputs=inputs), "not int"),
    ]
    for given, words in cases:
        for compute in (autograd.jacobian, autograd.jacobian_fd, autograd.gradcheck):
            with pytest.raises(AutogradError, match=words):
                compute(**given)


def test_kernels_without_gradients_are_refused():
    @wp.kernel(enable_backward=False)
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i]

    inputs, outputs = pair_of_arrays([1.0, 2.0])
    with pytest.raises(AutogradError, match="to compute Jacobians: enable_backward is False in .* of .*k"):
        autograd.jacobian(k, 2, inputs, outputs)
    assert autograd.jacobian_fd(k, 2, inputs, outputs)[0, 0].shape == (2, 2)

    def run(x):
        wp.launch(k, 2, inputs=[x], outputs=outputs)
        return outputs

    with pytest.raises(AutogradError, match="run launches .*k. Kernel must have backward pass enabled"):
        autograd.gradcheck(run, inputs=inputs)


def test_options_reach_the_kernel():
    @wp.kernel(enable_backward=False)
    def off(x: wp.array(dtype=float)):
        x[0] = 1.0

    @wp.kernel(module="unique", module_options={"enable_backward": False})
    def off_by_module(x: wp.array(dtype=float)):
        x[0] = 1.0

    assert off.option("enable_backward") is False and off_by_module.option("enable_backward") is False
    assert halved.option("enable_backward") is None and wp.config.enable_backward is True
