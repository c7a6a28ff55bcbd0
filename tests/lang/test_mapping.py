"""``wp.map`` and operators between arrays."""

import numpy as np
import pytest

import treadle as wp
from treadle.lang import mapping
from treadle.lang.mapping import KERNELS


@wp.struct
class Pair:
    a: float
    b: float


@wp.func
def pair(a: float, b: float):
    p = Pair()
    p.a, p.b = a, b
    return p


@wp.func
def swapped(p: Pair):
    return pair(p.b, p.a)


def test_functions_builtins_and_lambdas_over_arrays_and_values():
    a = wp.array([1.0, 2.0, 3.0], dtype=float)
    k = 3.0
    assert wp.map(lambda x: x + k, a).list() == [4.0, 5.0, 6.0]
    assert [v * 2.0 for v in wp.map(lambda x, y: x + 2.0 * y, a, a).list()] == [6.0, 12.0, 18.0]
    assert wp.map(wp.clamp, a, 1.5, 2.5, out=a) is a
    assert a.list() == [1.5, 2.0, 2.5]
    assert wp.map(wp.where, wp.array([True, False], dtype=bool), 1.0, 0.0).list() == [1.0, 0.0]
    t = wp.transform(wp.vec3(1.0, 2.0, 3.0), wp.quat_identity())
    moved = wp.map(wp.transform_point, t, wp.array([(1.0, 1.0, 1.0)], dtype=wp.vec3))
    assert moved.list() == [wp.vec3(2.0, 3.0, 4.0)]
    assert wp.map(wp.add, wp.array([1.0], dtype=wp.float64), 0.1).list() == [1.1]  # a number is as wide as the array's

    def plain(x, y):
        return x * y, wp.vec2(x, y)

    products, pairs = wp.map(plain, a, a)
    assert products.list() == [2.25, 4.0, 6.25] and pairs.list()[2] == wp.vec2(2.5, 2.5)
    outs = [wp.zeros(3, dtype=float), wp.zeros(3, dtype=wp.vec2)]
    assert wp.map(plain, a, a, out=outs) == outs and outs[0].list() == products.list()
    structs = wp.map(swapped, wp.map(pair, a, 7.0))
    assert [(p.a, p.b) for p in structs.list()] == [(7.0, 1.5), (7.0, 2.0), (7.0, 2.5)]


def test_shapes_go_together_as_in_numpy():
    rng = np.random.default_rng(1)
    x, y = rng.random((3, 1, 4), np.float32), rng.random((5, 4), np.float32)
    made = wp.map(lambda p, q: p - q, wp.array(x, dtype=float), wp.array(y, dtype=float))
    np.testing.assert_array_equal(made.numpy(), x - y)
    z = wp.array(np.arange(6.0).reshape(2, 3), dtype=float)[:, ::2]  # with gaps
    np.testing.assert_array_equal(wp.map(lambda p: p + 1.0, z).numpy(), z.numpy() + 1)


def test_indexed_arrays_are_inputs_and_outputs():
    data = wp.array(np.arange(6.0), dtype=float)
    odd = wp.indexedarray(data, [wp.array([1, 3, 5], dtype=int)])
    assert wp.map(lambda x: 10.0 * x, odd).list() == [10.0, 30.0, 50.0]
    wp.map(lambda x: 10.0 * x, odd, out=odd)
    assert data.list() == [0.0, 10.0, 2.0, 30.0, 4.0, 50.0]
    odd += 1.0
    assert (2.0 * odd).list() == [22.0, 62.0, 102.0]


def test_outputs_may_lie_over_inputs_in_any_way():
    x = np.random.default_rng(2).normal(size=(40, 3))
    a = wp.array(x, dtype=wp.float64, requires_grad=True)
    back = wp.array(np.arange(40)[::-1], dtype=int)
    with wp.Tape() as tape:
        a -= a[0]  # of which the first row itself becomes zero
        a[1:] += a[:-1]
        a *= a[:, 1:2]
        rows = a[back]
        rows += a
        wp.map(lambda p, q: (p + q, p - q), a[::-1], a, out=[a, wp.zeros_like(a)])
    expected = x - x[0]
    expected[1:] += expected[:-1].copy()
    expected *= expected[:, 1:2].copy()
    for _ in range(2):
        expected += expected[::-1].copy()
    np.testing.assert_allclose(a.numpy(), expected, atol=1e-12)
    tape.backward(grads={a: wp.ones((40, 3), dtype=wp.float64)})

    def total(x):
        y = x - x[0]
        y = np.concatenate([y[:1], y[1:] + y[:-1]])
        return 4 * (y * y[:, 1:2]).sum()  # either addition of the rows in reverse doubles the sum

    steps = 1e-6 * np.eye(x.size).reshape(-1, *x.shape)
    np.testing.assert_allclose(a.grad.numpy().ravel(), [(total(x + h) - total(x - h)) / 2e-6 for h in steps], atol=1e-6)


def test_gradients():
    a = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        b = a * a + wp.map(wp.sin, a)
    tape.backward(grads={b: wp.ones(3, dtype=float)})
    np.testing.assert_allclose(a.grad.numpy(), 2 * a.numpy() + np.cos(a.numpy()), 1e-6)
    counts = wp.map(lambda x: int(x), a)
    assert not counts.requires_grad


def test_kernels_are_made_once_for_a_function_types_and_ranks():
    a, b = wp.zeros(3, dtype=float), wp.zeros((2, 3), dtype=float)
    before = len(KERNELS)
    for x in (a, wp.zeros(7, dtype=float)):
        for _ in range(2):
            wp.map(lambda p, q: p + 0.125 * q, x, x)
    assert len(KERNELS) == before + 1
    wp.map(lambda p, q: p + 0.125 * q, a, b)
    wp.map(lambda p, q: p + 0.125 * q, a, wp.zeros(1, dtype=float))  # one element used everywhere
    assert len(KERNELS) == before + 3
    found = []
    for k in (1.0, 2.0):
        found.append(wp.map(lambda p: p + k, a).list()[0])  # another value is another function
    assert found == [1.0, 2.0]
    kernel = wp.map(lambda p: p + 2.0, a, return_kernel=True)
    out = wp.zeros(7, dtype=float)
    wp.launch(kernel, dim=7, inputs=[wp.ones(7, dtype=float)], outputs=[out])
    assert isinstance(kernel, wp.Kernel) and out.list() == [3.0] * 7


def test_old_kernels_are_forgotten(monkeypatch):
    a = wp.ones(2, dtype=float)
    for known in ("KERNELS", "MEANINGS"):
        monkeypatch.setattr(mapping, known, {})
    monkeypatch.setattr(mapping, "MOST", 2)
    for k in (1.0, 2.0, 3.0, 1.0):
        assert wp.map(lambda p: p + k, a).list() == [1.0 + k] * 2
    assert len(mapping.KERNELS) == len(mapping.MEANINGS) == 2


def test_operators():
    x, y = np.array([7.5, -2.0, 3.0], np.float32), np.array([2.0, 3.0, -1.5], np.float32)
    a, b = wp.array(x, dtype=float), wp.array(y, dtype=float)
    with np.errstate(all="ignore"):
        for made, want in ((a + b, x + y), (a - 2.0, x - 2), (2.0 - a, 2 - x), (a * b, x * y), (a / b, x / y),
                           (2.0 / b, 2 / y), (b**2.0, y**2), (-a, -x), (+a, x), (a // b, x // y),
                           (a % b, np.fmod(x, y))):  # fmt: skip
            np.testing.assert_allclose(made.numpy(), want, 1e-6)
    a -= b
    np.testing.assert_array_equal(a.numpy(), x - y)
    n = wp.array([7, -7], dtype=int)
    assert (n / wp.array([2, 2], dtype=int)).list() == [3, -3]  # integers divide towards zero, as in kernels
    v = wp.array([(1.0, 2.0)], dtype=wp.vec2)
    assert (v * 2.0 + v).list() == [wp.vec2(3.0, 6.0)]
    with pytest.raises(TypeError):
        a + "text"


@wp.func
def nothing(x: float):
    pass


@wp.func
def one(x: float):
    return x


@wp.func
def counted(x: int):
    return x


def test_wrong_inputs_and_outputs_are_told():
    a, b = wp.zeros(3, dtype=float), wp.zeros(5, dtype=float)

    def both(x, y):
        return x, y

    f32, i32, f32_2 = wp.zeros(3, dtype=float), wp.zeros(3, dtype=int), wp.zeros((3, 1), dtype=float)
    for error, match, act in (
        (TypeError, "must return a value", lambda: wp.map(nothing, a)),
        (TypeError, "takes 1 arguments, wp.map was given 2", lambda: wp.map(one, a, a)),
        (TypeError, "counted does not take float32", lambda: wp.map(counted, a)),
        (ValueError, r"Shapes \(3,\) and \(5,\) are not", lambda: wp.map(both, a, b)),
        (ValueError, "at least one", lambda: wp.map(both, 1.0, 2.0)),
        (TypeError, "argument 1 of wp.map cannot be a str", lambda: wp.map(both, a, "x")),
        (TypeError, "takes a function, not int", lambda: wp.map(3, a)),
        (TypeError, r"Output array shape \(5,\) does not match expected shape \(3,\)", lambda: wp.map(one, a, out=b)),
        (TypeError, "out has dtype int32, the results float32", lambda: wp.map(one, a, out=i32)),
        (TypeError, "a list of 2 arrays", lambda: wp.map(both, a, a, out=f32)),
        (TypeError, "out has 1 arrays; the function gives 2", lambda: wp.map(both, a, a, out=[f32])),
        (TypeError, r"out\[1\]: Output array shape \(3, 1\)", lambda: wp.map(both, a, a, out=[f32, f32_2])),
    ):
        with pytest.raises(error, match=match):
            act()


class Settings:
    scale = 2.0


def test_functions_are_told_apart_by_annotations_and_by_what_they_read():
    a = wp.array([1.0, 2.0], dtype=float)

    def taking(t):
        def same(x: t):
            return x

        return same

    assert wp.map(taking(float), a).list() == [1.0, 2.0]
    with pytest.raises(TypeError, match="same does not take float32"):
        wp.map(taking(wp.float64), a)
    for scale in (2.0, 3.0):
        Settings.scale = scale
        assert wp.map(lambda x: x * Settings.scale, a).list() == [scale, 2.0 * scale]


def test_values_from_outside_that_have_changed():
    a = wp.array([1.0, 2.0], dtype=float)
    v, numbers, half = wp.vec3(1.0, 2.0, 3.0), [1.0, (4.0, 5.0)], wp.bfloat16(0.5)

    def scaled(x: float):
        return x * v[1] * numbers[0] * numbers[1][1] + float(half)

    assert wp.map(scaled, a).list() == [10.5, 20.5]
    v[1] = 3.0
    assert wp.map(scaled, a).list() == [15.5, 30.5]
    numbers[0] = 2.0
    assert wp.map(scaled, a).list() == [30.5, 60.5]
    numbers[1] = (0.0, 1.0)
    half = wp.bfloat16(0.25)
    assert wp.map(scaled, a).list() == [6.25, 12.25]
