"""Parameters by reference: what a function assigns to them, its caller has."""

import numpy as np
import pytest

import treadle as wp


@wp.struct
class Inner:
    value: float


@wp.struct
class Box:
    inner: Inner
    vec: wp.vec3
    mat: wp.mat33
    frame: wp.transform


@wp.func
def increase(n: wp.ref[int]):
    n += 1


@wp.func
def store(x: wp.ref[wp.float32], value: float):
    x = value


@wp.func
def swap(a: wp.ref[float], b: wp.ref[float]):
    a, b = b, a


@wp.func
def clamped(x: "wp.ref[float]", enough: bool) -> float:
    if enough:
        return x
    for _ in range(10):
        x += 1.0
        if x > 5.0:
            return 100.0
    x = -1.0
    return x


@wp.func
def fill(box: wp.ref[Box], x: float):
    store(box.inner.value, x)
    box.vec[1] += 2.0


@wp.kernel
def variables(out: wp.array(dtype=float)):
    n = 0
    for _ in range(3):
        increase(n)
    out[0] = float(n)
    a, b = 1.0, 2.0
    swap(a, b)
    out[1] = a
    out[2] = b
    x, y, z = 2.0, -20.0, 7.0
    out[3] = clamped(x, False) + x
    out[4] = clamped(y, False) + y
    out[5] = clamped(z, True) + z
    box = Box()
    fill(box, 3.0)
    m = wp.mat33()
    store(m[-1, -1], 9.0)
    out[6] = box.inner.value + box.vec[1] + m[2, 2]
    v = wp.vec3(1.0, 2.0, 3.0)
    copied = v.x
    store(copied, 9.0)
    out[7] = v.x


def test_variables_and_their_parts():
    out = wp.zeros(8, dtype=float)
    wp.launch(variables, dim=1, inputs=[out])
    assert out.numpy().tolist() == [3.0, 2.0, 1.0, 106.0, -2.0, 14.0, 14.0, 1.0]


@wp.kernel
def elements(boxes: wp.array(dtype=Box), n: wp.array(dtype=int), count: wp.array(dtype=int), rows: wp.array2d[float]):
    i = wp.tid()
    store(boxes[i].inner.value, float(i) + 4.0)
    store(boxes[i].vec.y, 5.0)
    store(boxes[i].mat[1, -1], 6.0)
    store(boxes[i].frame.p.x, 7.0)
    increase(n[wp.atomic_add(count, 0, 1) + 1])  # the index is found once
    row = rows[i]
    swap(row[0], row[1])


def test_elements_and_their_parts():
    boxes, n, count = wp.zeros(3, dtype=Box), wp.zeros(4, dtype=int), wp.zeros(1, dtype=int)
    rows = wp.array(np.arange(6, dtype=np.float32).reshape(3, 2), dtype=float)
    wp.launch(elements, dim=3, inputs=[boxes, n, count, rows])
    found = boxes.numpy()
    assert found["inner"]["value"].tolist() == [4.0, 5.0, 6.0] and found["vec"][:, 1].tolist() == [5.0] * 3
    assert found["mat"][:, 1, 2].tolist() == [6.0] * 3 and found["frame"][:, 0].tolist() == [7.0] * 3
    assert n.numpy().tolist() == [0, 1, 1, 1] and count.numpy()[0] == 3
    assert rows.numpy().tolist() == [[1.0, 0.0], [3.0, 2.0], [5.0, 4.0]]


@wp.func
def scale(x: wp.ref[float], by: float):
    if by > 0.0:
        x = x * by


@wp.kernel
def scaled(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    y = x[i]
    scale(y, x[i])
    out[i] = y


def test_derivatives_go_through_references():
    x = wp.array([2.0, -3.0], dtype=float, requires_grad=True)
    out = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(scaled, dim=2, inputs=[x, out])
    tape.backward(grads={out: wp.ones(2, dtype=float)})
    assert out.numpy().tolist() == [4.0, -3.0] and x.grad.numpy().tolist() == [4.0, 1.0]


@wp.kernel
def decompose(a: wp.array(dtype=wp.mat33), u: wp.array(dtype=wp.mat33), s: wp.array2d[wp.vec3]):
    i = wp.tid()
    v = wp.mat33()
    wp.svd3(a[i], u[i], s[i, 0], v)


def test_builtins_give_their_results_to_elements():
    a = wp.array(np.diag([3.0, 2.0, 1.0])[None].astype(np.float32), dtype=wp.mat33)
    u, s = wp.zeros(1, dtype=wp.mat33), wp.zeros((1, 1), dtype=wp.vec3)
    wp.launch(decompose, dim=1, inputs=[a, u, s])
    assert s.numpy()[0, 0].tolist() == [3.0, 2.0, 1.0] and abs(np.linalg.det(u.numpy()[0])) == pytest.approx(1.0)


@wp.func
def store_double(x: wp.ref[float], y: float):
    x = 2.0 * y


@wp.func_grad(store_double)
def adj_store_double(x: wp.ref[float], y: float):
    wp.adjoint[y] += 20.0 * wp.adjoint[x]
    wp.adjoint[x] = 0.0


@wp.kernel
def with_rule(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    y = x[i]
    store_double(y, x[i])
    out[i] = y
    store_double(out[i + 2], x[i])


def test_gradient_functions_see_the_adjoint_of_what_was_left():
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    out = wp.zeros(4, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(with_rule, dim=2, inputs=[x, out])
    tape.backward(grads={out: wp.ones(4, dtype=float)})
    assert out.numpy().tolist() == [2.0, 4.0, 2.0, 4.0] and x.grad.numpy().tolist() == [40.0, 40.0]


@wp.kernel
def by_address(boxes: wp.array(dtype=Box), x: wp.array2d[float]):
    i = wp.tid()
    wp.array(ptr=wp.address_of(x[i, 1]), shape=1, dtype=float)[0] = 7.0
    wp.array(ptr=wp.address_of(boxes[i].vec.y), shape=1, dtype=float)[0] = 8.0


def test_addresses_of_elements_and_their_parts():
    boxes, x = wp.zeros(2, dtype=Box), wp.zeros((2, 2), dtype=float)
    wp.launch(by_address, dim=2, inputs=[boxes, x])
    assert x.numpy().tolist() == [[0.0, 7.0]] * 2 and boxes.numpy()["vec"].tolist() == [[0.0, 8.0, 0.0]] * 2


@wp.func
def add_one(at: wp.uint64):
    wp.array(ptr=at, shape=1, dtype=float)[0] += 1.0


@wp.kernel(enable_backward=False)
def lent(sums: wp.array(dtype=float), vectors: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    x = float(i)
    box = Box()
    box.inner.value = 10.0
    for j in range(i % 4):
        add_one(wp.address_of(x))
        add_one(wp.address_of(box.vec[j]))
        if j > 1:
            add_one(wp.address_of(box.inner.value))
    sums[i] = x + box.inner.value
    vectors[i] = box.vec


def test_variables_have_an_address_while_a_function_runs():
    sums, vectors, i = wp.zeros(21, dtype=float), wp.zeros(21, dtype=wp.vec3), np.arange(21)
    wp.launch(lent, dim=21, inputs=[sums, vectors])
    assert np.array_equal(sums.numpy(), i + i % 4 + 10 + (i % 4 > 2))
    assert np.array_equal(vectors.numpy(), i[:, None] % 4 > np.arange(3))


def test_what_cannot_be_given_by_address():
    @wp.kernel
    def kept(n: wp.array(dtype=wp.uint64)):
        y = float(1.0)
        n[0] = wp.address_of(y)

    @wp.kernel
    def untyped():
        y = 1.0
        add_one(wp.address_of(y))

    @wp.kernel
    def whole():
        v = wp.vec3(1.0)
        add_one(wp.address_of(v))

    @wp.kernel
    def differentiated(x: wp.array(dtype=float)):
        y = x[0]
        add_one(wp.address_of(y))
        x[0] = y

    address = wp.zeros(1, dtype=wp.uint64)
    for kernel, given, why in (
        (kept, [address], "only while a function runs"), (untyped, [], "y = wp.float32"), (whole, [], "only scalars"),
    ):  # fmt: skip
        with pytest.raises(wp.KernelTypeError, match=why):
            wp.launch(kernel, dim=1, inputs=given)
    x = wp.ones(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(differentiated, dim=1, inputs=[x])
    with pytest.raises(wp.KernelGradientError, match="given by address has no derivative"):
        tape.backward(grads={x: wp.ones(1, dtype=float)})


def test_overloads_differ_by_more_than_references():
    @wp.func
    def twice(x: int) -> int:
        return x + x

    with pytest.raises(wp.KernelTypeError, match="differ only by wp.ref"):

        @wp.func
        def twice(x: wp.ref[int]):
            x += x


def test_values_cannot_be_passed_by_reference():
    @wp.kernel
    def number():
        increase(5)

    @wp.kernel
    def result(x: wp.array(dtype=float)):
        store(wp.vec3(x[0]).x, 1.0)

    @wp.kernel
    def parameter(n: wp.ref[int]):
        pass

    for kernel, inputs in ((number, []), (result, [wp.zeros(1, dtype=float)])):
        with pytest.raises(wp.KernelTypeError, match="argument 1 of .* is passed by reference: it must be a variable"):
            wp.launch(kernel, dim=1, inputs=inputs)
    with pytest.raises(wp.KernelTypeError, match="kernel .* takes 'n' by reference"):
        wp.launch(parameter, dim=1, inputs=[1])


def test_annotations_of_references():
    assert wp.ref[int] == wp.ref[int] != wp.ref[float] and hash(wp.ref[int]) == hash(wp.ref[int])
    assert repr(wp.ref[wp.vec3]) == "wp.ref[vec3f]" and wp.ref[float].dtype is float
