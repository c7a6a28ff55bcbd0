"""Writes to memory that no argument names: tapes see them, and gradients are not silently wrong."""

import contextlib

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import KernelGradientError
from treadle.lang.held import held_by, holds_arrays
from treadle.types.core import f32, view


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def put(f: wp.fabricarray(dtype=float), v: float):
    f[wp.tid()] = v


@wp.kernel
def scale(f: wp.fabricarray(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = f[i] * x[i]


@wp.struct
class Bag:
    values: wp.array(dtype=float)


@wp.kernel
def put_in_bags(bags: wp.array(dtype=Bag), v: float):
    i = wp.tid()
    for k in range(bags[i].values.shape[0]):
        bags[i].values[k] = v


@wp.kernel
def square_into_bags(bags: wp.array(dtype=Bag), x: wp.array(dtype=float)):
    i = wp.tid()
    bags[0].values[i] = x[i] * x[i]


@wp.kernel
def add_to_bags(bags: wp.array(dtype=Bag), x: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(bags[0].values, i, x[i] * x[i])


@wp.kernel
def square_out_of_bags(bags: wp.array(dtype=Bag), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = bags[0].values[i] * bags[0].values[i]


@wp.kernel
def square_in_bags(bags: wp.array(dtype=Bag)):
    i = wp.tid()
    bags[1].values[i] = bags[0].values[i] * bags[0].values[i]


fabrics = pytest.mark.host  # its buckets lie in memory of the CPU here


def bag(values):
    made = Bag()
    made.values = values
    return made


def fabric(*arrays):
    facts = {"type": (True, "f4", 1, 0, ""), "access": 2, "pointers": [a.ptr for a in arrays]}
    facts["counts"] = [a.size for a in arrays]
    return wp.fabricarray({"version": 1, "device": "cpu", "attribs": {"v": facts}}, "v")


def floats(*values):
    return wp.array(values, dtype=float, requires_grad=True)


LEADS = [pytest.param(put, fabric, marks=fabrics), (put_in_bags, lambda a: wp.array([Bag(values=a)], dtype=Bag))]


@pytest.mark.parametrize("checkpoint", ["all", 1])
@pytest.mark.parametrize(("kernel", "lead"), LEADS)
def test_writes_through_memory_are_seen(kernel, lead, checkpoint):
    x, y = floats(1.0, 2.0, 3.0), floats(0.0, 0.0, 0.0)
    with wp.Tape(checkpoint=checkpoint) as tape:
        wp.launch(square, 3, inputs=[x], outputs=[y])
        wp.launch(kernel, 3 if kernel is put else 1, [lead(x), 50.0], record_tape=False)
        wp.launch(square, 3, inputs=[x], outputs=[y])
    wp.launch(kernel, 3 if kernel is put else 1, [lead(x), 100.0])
    tape.backward(grads={y: wp.ones(3, dtype=float)})
    assert x.grad.list() == [100.0] * 3 and x.list() == [100.0] * 3
    with wp.Tape(checkpoint=checkpoint) as tape:
        wp.launch(square, 3, inputs=[x], outputs=[y])
    wp.launch(kernel, 3 if kernel is put else 1, [lead(x), 1.0])
    x.grad.zero_()
    tape.backward(grads={y: wp.ones(3, dtype=float)})
    assert x.grad.list() == [200.0] * 3 and x.list() == [1.0] * 3


@fabrics
def test_what_a_launch_read_in_memory_stays_known():
    z, x, y = wp.array([5.0, 6.0], dtype=float), floats(1.0, 2.0), floats(0.0, 0.0)
    with wp.Tape() as tape:
        wp.launch(scale, 2, inputs=[fabric(z), x], outputs=[y])
        z.fill_(0.0)
    tape.backward(grads={y: wp.ones(2, dtype=float)})
    assert x.grad.list() == [5.0, 6.0] and z.list() == [0.0, 0.0]


@fabrics
def test_a_recorded_write_to_what_has_a_gradient_is_refused():
    x, y, z = floats(1.0, 2.0), floats(0.0, 0.0), wp.zeros(2, dtype=float)
    for target in (x, y, z):
        with wp.Tape() as tape:
            wp.launch(square, 2, inputs=[x], outputs=[y])
            wp.launch(put, 2, inputs=[fabric(target), 1.0])
        if target is z:
            tape.backward(grads={y: wp.ones(2, dtype=float)})
        else:
            with pytest.raises(KernelGradientError, match="kernel put writes through memory"):
                tape.backward(grads={y: wp.ones(2, dtype=float)})


@fabrics
def test_arrays_are_found_where_they_lie():
    a, b = wp.zeros(3, dtype=float), wp.zeros(2, dtype=float)
    bags = wp.array([Bag(values=a), Bag()], dtype=Bag)
    assert not holds_arrays(view(f32, 1)) and holds_arrays(bags.type) and holds_arrays(fabric(a).type)
    assert [x.ptr for x in held_by(bags, bags.type)] == [a.ptr]
    f = fabric(a, b)
    some = f[wp.array([0], dtype=int)]
    assert [x.ptr for x in held_by(some, some.type)] == [a.ptr, b.ptr]
    addresses, lengths = wp.array([a.ptr, b.ptr], dtype=wp.uint64), wp.array([3, 2], dtype=wp.uint64)
    facts = {"type": (True, "f4", 1, 1, ""), "pointers": [addresses.ptr], "counts": [2], "array_lengths": [lengths.ptr]}
    rows = wp.fabricarrayarray({"version": 1, "device": "cpu", "attribs": {"v": facts}}, "v")
    assert [(x.ptr, x.size) for x in held_by(rows, rows.type)] == [(a.ptr, 3), (b.ptr, 2)]
    assert list(held_by(None, bags.type)) == []


@wp.kernel
def move_in(x: wp.array(dtype=float), f: wp.fabricarray(dtype=float)):
    i = wp.tid()
    f[i] = x[i]


@wp.kernel
def add_squares(f: wp.fabricarray(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(y, 0, f[i] * f[i])


@fabrics
def test_values_that_go_through_fabric_in_kernels_are_refused():
    x, y, mem = floats(1.0, 2.0), floats(0.0), wp.zeros(2, dtype=float)
    for into, why in (
        (lambda: wp.launch(move_in, 2, [x, fabric(mem)]), "kernel move_in writes.*Fabric.*kernel add_squares reads"),
        (lambda: wp.copy(fabric(mem), x), "kernel add_squares reads.*Fabric"),
        (lambda: wp.copy(mem, x), "kernel add_squares reads.*Fabric"),
    ):
        with wp.Tape() as tape:
            into()
            wp.launch(add_squares, 2, [fabric(mem), y])
        with pytest.raises(KernelGradientError, match=why):
            tape.backward(y)
    with wp.Tape() as tape:
        wp.launch(square, 1, [x], [y])
        wp.launch(add_squares, 2, [fabric(x), y])
    with pytest.raises(KernelGradientError, match="kernel add_squares reads.*Fabric"):
        tape.backward(y)
    with wp.Tape() as tape:
        wp.launch(move_in, 2, [x, fabric(mem)])
        wp.copy(y, x, count=1)
    tape.backward(grads={y: wp.ones(1, dtype=float)})  # what is in the Fabric array is not asked for
    assert x.grad.list() == [1.0, 0.0]


@fabrics
def test_copies_to_and_from_fabric_have_gradients():
    x, y = floats(1.0, 2.0, 3.0), floats(0.0, 0.0, 0.0)
    a, b = wp.zeros(2, dtype=float), wp.zeros(1, dtype=float)
    some = wp.array([2, 0], dtype=int)
    with wp.Tape() as tape:
        fab = fabric(a, b)
        wp.copy(fab, x)
        wp.copy(y, fab)
        y[:2] = fab[some].contiguous()
    assert y.list() == [3.0, 1.0, 3.0]
    tape.backward(grads={y: wp.array([1.0, 10.0, 100.0], dtype=float)})
    assert x.grad.list() == [10.0, 0.0, 101.0]


@pytest.mark.parametrize("checkpoint", ["all", 1])
@pytest.mark.parametrize("kernel", [square_into_bags, add_to_bags])
@pytest.mark.parametrize("named", [False, True])
def test_what_is_written_to_arrays_in_elements_has_gradients(named, kernel, checkpoint):
    x, y, z = floats(1.0, 2.0, 3.0), floats(0.0, 0.0, 0.0), floats(0.0, 0.0, 0.0)
    bags = wp.array([bag(y)], dtype=Bag)
    with wp.Tape(checkpoint) as tape:
        wp.launch(kernel, 3, [bags, x])
        wp.launch(square if named else square_out_of_bags, 3, [y if named else bags, z])
    for k in (1, 2):  # gradients add up, and what a pass leaves in y is no seed of the next one
        tape.backward(grads={z: floats(1.0, 1.0, 1.0)})
        assert x.grad.list() == [k * 4.0, k * 32.0, k * 108.0]
    tape.zero()
    tape.backward(grads={z: floats(1.0, 1.0, 1.0)})
    assert x.grad.list() == [4.0, 32.0, 108.0]


@wp.struct
class Pair:
    v: wp.array(dtype=wp.float64)
    w: wp.array(dtype=wp.float64)


@wp.kernel
def step(pairs: wp.array(dtype=Pair), f: wp.array(dtype=wp.float64), n: int):
    i = wp.tid()
    for j in range(pairs[i].v.shape[0]):
        pairs[i].v[j] = pairs[i].v[j] * f[i] + wp.sin(pairs[i].w[j])
        for _ in range(n):
            if pairs[i].v[j] < wp.float64(2.0):
                pairs[i].w[j] += pairs[i].v[j] * pairs[i].v[j] * wp.float64(0.1)
            else:
                pairs[i].w[j] = pairs[i].w[j] * f[i] * wp.float64(0.5)


@wp.kernel
def total(pairs: wp.array(dtype=Pair), s: wp.array(dtype=wp.float64)):
    i = wp.tid()
    for j in range(pairs[i].v.shape[0]):
        wp.atomic_add(s, 0, pairs[i].v[j] * pairs[i].w[j])


def stepped(v, w, f, tape=None):
    """The total after four steps in place, with ``tape`` instead the gradients by all inputs."""
    double = {"dtype": wp.float64, "requires_grad": tape is not None}
    vs, ws = ([wp.array(row, **double) for row in rows] for rows in (v, w))
    pairs = wp.array([Pair(v=a, w=b) for a, b in zip(vs, ws, strict=True)], dtype=Pair)
    factor, s = wp.array(f, **double), wp.zeros(1, **double)
    with tape or contextlib.nullcontext():
        for _ in range(4):
            wp.launch(step, 3, [pairs, factor, 2])
        wp.launch(total, 3, [pairs, s])
    if tape is None:
        return s.numpy()[0]
    before = [a.numpy() for a in (*vs, *ws)]
    tape.backward(s)
    assert all((a.numpy() == content).all() for a, content in zip((*vs, *ws), before, strict=True))
    return [np.array([a.grad.numpy() for a in rows]) for rows in (vs, ws)] + [factor.grad.numpy()]


@pytest.mark.parametrize("checkpoint", ["all", 2, "sqrt"])
def test_steps_in_place_on_arrays_in_elements_have_gradients(checkpoint):
    rng, h = np.random.default_rng(0), 1e-6
    given = [rng.uniform(0.5, 1.5, shape) for shape in ((3, 4), (3, 4), 3)]
    for k, found in enumerate(stepped(*given, tape=wp.Tape(checkpoint))):
        for at in np.ndindex(*found.shape):
            ends = []
            for sign in (h, -h):
                moved = [a.copy() for a in given]
                moved[k][at] += sign
                ends.append(stepped(*moved))
            assert abs((ends[0] - ends[1]) / (2 * h) - found[at]) < 1e-6


def test_what_reads_and_writes_arrays_in_elements_has_gradients():
    x, y = floats(1.0, 2.0), floats(0.0, 0.0)
    bags = wp.array([bag(x), bag(y)], dtype=Bag)
    with wp.Tape() as tape:
        wp.launch(square_in_bags, 2, [bags])
    tape.backward(grads={y: floats(1.0, 1.0)})
    assert x.grad.list() == [2.0, 4.0]
    tape.zero()
    a, b = wp.ones(2, dtype=float), wp.zeros(2, dtype=float)
    plain = wp.array([bag(a), bag(b)], dtype=Bag)
    z = floats(0.0, 0.0)
    with wp.Tape() as tape:
        wp.launch(square_in_bags, 2, [plain])
        wp.launch(square, 2, [x, z])
    tape.backward(grads={z: floats(1.0, 1.0)})
    assert x.grad.list() == [2.0, 4.0] and b.list() == [1.0, 1.0]
