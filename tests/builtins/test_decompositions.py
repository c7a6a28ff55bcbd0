"""Singular values, eigenvalues and QR against NumPy's, for matrices of every rank and scale."""

import numpy as np
import pytest

import treadle as wp
from treadle.types.core import bf16, f16, f32, f64, matrix, vector
from treadle.types.values import class_of

from .kernels import kernel, name_of, run

EPSILON = {f16: 2.0**-10, bf16: 2.0**-7, f32: 2.0**-23, f64: 2.0**-52}
DTYPE = {f16: np.float16, f32: np.float32, f64: np.float64}
TYPES = pytest.mark.parametrize("t", [f32, f64, f16], ids=name_of)


def samples(n: int, t) -> np.ndarray:
    """Matrices with n rows: ordinary ones, of low rank, with equal singular values, graded, and of extreme scales."""
    rng = np.random.default_rng(n)
    plain = rng.normal(size=(300, n, n))
    turns = np.linalg.qr(plain[:60])[0]
    eye = np.eye(n)
    mirror = np.diag([1.0, -1.0, 1.0][:n])
    fixed = np.array([eye, -eye, 0 * eye, 3 * eye, mirror, eye[::-1], np.ones((n, n)), eye * eye[0]])
    parts = [plain, turns, 0.3 * turns, plain[:60] * eye[0], plain[:60, :, :1] * plain[:60, :1, :]]
    rank2 = plain[:60] @ np.diag([1.0] * (n - 1) + [0.0]) @ plain[60:120]
    close = turns @ np.diag([1.0, 1.0 + 4 * EPSILON[t], 0.5][:n]) @ turns[::-1]
    graded = turns @ np.diag([1.0, 1e-3, 1e-6][:n]) @ turns[::-1]
    ordinary = np.concatenate([*parts, rank2, close, graded, fixed])
    scales = {f16: (1.0, 2.0**-7, 2.0**9), f32: (1.0, 1e-36, 3e37, 1e-42), f64: (1.0, 1e-300, 1e305, 1e-320)}[t]
    return np.concatenate([ordinary * s for s in scales]).astype(DTYPE[t])


def transposed(a):
    return a.transpose(0, 2, 1)


def times(*factors):
    out = np.eye(factors[0].shape[-1])
    for f in factors:
        out = out @ f.astype(np.float64)
    return out


def diagonal(s):
    return np.eye(s.shape[-1]) * s[:, None, :].astype(np.float64)


def sizes(a: np.ndarray) -> np.ndarray:
    """The largest components, against which errors are judged; no smaller than the smallest normal number."""
    return np.maximum(np.abs(a).max(axis=(1, 2)), np.finfo(a.dtype).tiny / np.finfo(a.dtype).eps).astype(np.float64)


def within(found, wanted, size, ulps: float, t) -> None:
    error = np.abs(found.astype(np.float64) - wanted).reshape(len(size), -1).max(axis=1) / size
    assert error.max() <= ulps * EPSILON[t], (error.argmax(), error.max() / EPSILON[t])


def orthogonal(q, t) -> None:
    within(times(transposed(q), q), np.eye(q.shape[-1]), np.ones(len(q)), 16, t)


@TYPES
@pytest.mark.parametrize("n", [2, 3])
def test_singular_values(n, t):
    a, m, v = samples(n, t), matrix(n, n, t), vector(n, t)
    found = run(["u", "s", "v"], [(m, a)], [m, v, m], before=f"u, s, v = wp.svd{n}(x0)")
    u, s, v = found
    size = sizes(a)
    orthogonal(u, t)
    orthogonal(v, t)
    within(times(u, diagonal(s), transposed(v)), a, size, 24, t)
    wanted = np.linalg.svd(a.astype(np.float64) / size[:, None, None])[1] * size[:, None]
    within(np.abs(s), wanted, size, 10, t)
    assert (np.diff(np.abs(s), axis=1) <= 0).all() and (s[:, :-1] >= 0).all()
    assert (np.linalg.det(v.astype(np.float64)) > 0).all()
    if n == 2:
        assert (s >= 0).all()
    else:
        assert (np.linalg.det(u.astype(np.float64)) > 0).all()


@TYPES
def test_qr(t):
    a, m = samples(3, t), matrix(3, 3, t)
    q, r = run(["q", "r"], [(m, a)], [m, m], before="q, r = wp.qr3(x0)")
    orthogonal(q, t)
    within(times(q, r), a, sizes(a), 16, t)
    assert (np.linalg.det(q.astype(np.float64)) > 0).all()
    assert not np.tril(r, -1).any() and (r[:, 0, 0] >= 0).all() and (r[:, 1, 1] >= 0).all()


@TYPES
def test_eigenvalues(t):
    m, v = matrix(3, 3, t), vector(3, t)
    a = samples(3, t) / DTYPE[t](2)
    a = a + transposed(a)
    q, d = run(["q", "d"], [(m, a)], [m, v], before="q, d = wp.eig3(x0)")
    size = sizes(a)
    orthogonal(q, t)
    within(times(q, diagonal(d), transposed(q)), a, size, 24, t)
    wanted = np.linalg.eigvalsh(a.astype(np.float64) / size[:, None, None])[:, ::-1] * size[:, None]
    within(d, wanted, size, 24, t)
    assert (np.diff(d, axis=1) <= 0).all() and (np.linalg.det(q.astype(np.float64)) > 0).all()


@pytest.mark.parametrize(
    "name, n, given", [("svd2", 2, "mvm"), ("svd3", 3, "mvm"), ("qr3", 3, "mm"), ("eig3", 3, "mv")]
)
@pytest.mark.parametrize("named", [False, True], ids=["by position", "by name"])
def test_factors_are_written_to_variables(name, n, given, named):
    kinds = {"m": matrix(n, n, f32), "v": vector(n, f32)}
    outputs = [kinds[k] for k in given]
    called = {"svd2": "U sigma V", "svd3": "U sigma V", "qr3": "Q R", "eig3": "Q d"}[name].split()
    passed = ", ".join(f"{p}=y{k}" if named else f"y{k}" for k, p in enumerate(called))
    a = samples(n, f32)[:20]
    empty = {kinds["m"]: np.zeros((20, n, n), np.float32), kinds["v"]: np.zeros((20, n), np.float32)}
    inputs = [(kinds["m"], a), *[(t, empty[t]) for t in outputs]]
    copies = "; ".join(f"y{k} = x{k + 1}" for k in range(len(outputs)))
    written = run([f"y{k}" for k in range(len(outputs))], inputs, outputs, before=f"{copies}; wp.{name}(x0, {passed})")
    names = ", ".join(f"y{k}" for k in range(len(outputs)))
    given_back = run(names.split(", "), [(kinds["m"], a)], outputs, before=f"{names} = wp.{name}(x0)")
    for w, g in zip(written, given_back, strict=True):
        assert np.array_equal(w, g) and w.any()


def gradient(text: str, a: np.ndarray, adj: np.ndarray, t, before: str) -> np.ndarray:
    """The adjoint of the matrices ``a`` for that of an expression's value."""
    m = matrix(3, 3, t)
    x = wp.array(a, dtype=class_of(m), requires_grad=True)
    out = wp.zeros(len(a), dtype=class_of(m), requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(kernel([text], [m], [m], before=before), dim=len(a), inputs=[x, out])
    tape.backward(grads={out: wp.array(adj, dtype=class_of(m))})
    return x.grad.numpy()


RETURNED, WRITTEN = "u, s, v = wp.svd3(x0)", "u = x0; s = x0[0]; v = x0; wp.svd3(x0, u, s, v)"


@pytest.mark.parametrize("t", [f32, f64], ids=name_of)
@pytest.mark.parametrize("before", [RETURNED, WRITTEN], ids=["returned", "written"])
def test_the_nearest_rotation_has_its_derivative_at_equal_singular_values(t, before):
    """At a rotation R, ``U Vᵀ`` follows ``A`` in all that turns: the derivative is ``(Ȧ - R Ȧᵀ R)/2``."""
    rng = np.random.default_rng(1)
    turns = np.linalg.qr(rng.normal(size=(30, 3, 3)))[0]
    turns *= np.sign(np.linalg.det(turns))[:, None, None]
    turns[0] = np.eye(3)
    adj = rng.normal(size=turns.shape).astype(DTYPE[t])
    found = gradient("u * wp.transpose(v)", turns.astype(DTYPE[t]), adj, t, before)
    wanted = (adj - turns @ transposed(adj) @ turns) / 2
    assert np.allclose(found, wanted, rtol=0, atol=2e-5 if t is f32 else 1e-13)


PRODUCTS = {
    "svd3": ("u * wp.diag(s) * wp.transpose(v)", "u, s, v = wp.svd3(x0)"), "qr3": ("q * r", "q, r = wp.qr3(x0)"),
    "eig3": ("q * wp.diag(d) * wp.transpose(q)", "q, d = wp.eig3(x0)"),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_factors_have_the_derivative_of_the_matrix(name):
    text, before = PRODUCTS[name]
    rng = np.random.default_rng(2)
    turns = np.linalg.qr(rng.normal(size=(20, 3, 3)))[0]
    a, adj = turns @ np.diag([3.0, 2.0, 1.0]) @ transposed(turns), rng.normal(size=turns.shape)
    adj += transposed(adj)
    assert np.allclose(gradient(text, a, adj, f64, before), adj, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name, values", [("svd3", "s"), ("eig3", "d")])
def test_symmetric_functions_of_equal_values_have_their_derivatives(name, values):
    """The sum of the squares is that of the components, whose derivative is 2 ``A``."""
    turns = np.linalg.qr(np.random.default_rng(2).normal(size=(20, 3, 3)))[0]
    ties = ([3, 2, 1], [2, 2, 1], [2, 2, 2], [2, -2, 2])
    a = np.concatenate([turns @ np.diag(s) @ transposed(turns) for s in ties])
    text = f"wp.diag(wp.cw_mul({values}, {values}))"
    found = gradient(text, a, np.broadcast_to(np.eye(3), a.shape), f64, PRODUCTS[name][1])
    assert np.allclose(found, 2 * a, rtol=0, atol=1e-12)


def test_ties_give_finite_derivatives():
    a = np.array([np.eye(3), np.zeros((3, 3)), np.ones((3, 3)), np.diag([2.0, 1.0, 1.0]), np.diag([1.0, 1.0, -1.0])])
    for text, before in (("u", "u, s, v = wp.svd3(x0)"), ("q", "q, d = wp.eig3(x0)"), ("q", "q, r = wp.qr3(x0)")):
        found = gradient(text, a, np.random.default_rng(0).normal(size=a.shape), f64, before)
        assert np.isfinite(found).all() and np.abs(found).max() < 10


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_ends_and_leaves_its_neighbours_alone(bad):
    a = np.random.default_rng(0).normal(size=(16, 3, 3)).astype(np.float32)
    broken = a.copy()
    broken[5, 1, 2] = bad
    before = "u, s, v = wp.svd3(x0); q, d = wp.eig3(x0); p, r = wp.qr3(x0)"
    kinds = [vector(3, f32), vector(3, f32), matrix(3, 3, f32)]
    good, found = (run(["s", "d", "r"], [(matrix(3, 3, f32), x)], kinds, before=before) for x in (a, broken))
    for g, f in zip(good, found, strict=True):
        assert np.isnan(f[5]).all() and np.array_equal(np.delete(f, 5, 0), np.delete(g, 5, 0))
