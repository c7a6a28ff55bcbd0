"""Memory that must not be changed is read like any other, and never written: a wrong program gets an error, where a
file mapped for reading would end the process."""

import warnings

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import AutogradError
from treadle.runtime import fast, packing

REFUSED = "must not be changed"


@wp.struct
class Pair:
    a: wp.array(dtype=float)
    b: wp.array(dtype=float)


@wp.kernel
def step(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 1.0


@wp.kernel
def add(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    wp.atomic_add(total, 0, x[wp.tid()])


@wp.kernel
def add_rows(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float), z: wp.array2d(dtype=float)):
    i, j = wp.tid()
    z[i, j] = x[i, j] + y[i, j]


@wp.kernel
def step_in_struct(p: Pair):
    i = wp.tid()
    p.b[i] = p.a[i] + 1.0


@wp.kernel
def step_in_elements(p: wp.array(dtype=Pair)):
    i = wp.tid()
    p[0].b[i] = p[0].a[i] + 1.0


@wp.kernel
def step_of_any(p: wp.array(dtype=Pair), which: int):
    i = wp.tid()
    into = p[0].a
    if which > 0:
        into = p[0].b
    into[i] = 1.0


@wp.kernel
def step_into_one(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    into = y
    if x[i] > 1.0:
        into = z
    into[i] = x[i]


@wp.kernel
def step_by_address(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.array(ptr=y.ptr, shape=(4,), dtype=float)[i] = x[i]


@wp.kernel
def step_indexed(x: wp.array(dtype=float), y: wp.indexedarray(dtype=float)):
    i = wp.tid()
    y[i] = x[i]


@pytest.fixture
def fixed(tmp_path):
    """Four floats in a file that is mapped for reading: who writes there gets SIGSEGV."""
    np.arange(4, dtype=np.float32).tofile(tmp_path / "floats")
    return wp.array(np.memmap(tmp_path / "floats", np.float32, "r"), copy=False)


def floats(*values: float) -> wp.array:
    return wp.array(values or (9.0,) * 4, dtype=float)


def test_who_gives_memory_says_whether_it_may_be_changed(fixed):
    rows = np.arange(4, dtype=np.float32)
    free = wp.array(rows, copy=False)
    rows.flags.writeable = False
    for a in (fixed, wp.array(rows, copy=False), wp.from_dlpack(rows), wp.from_dlpack(fixed),
              wp.from_dlpack(wp.to_dlpack(fixed)), wp.array(fixed, copy=False)):  # fmt: skip
        assert a.read_only and not a.numpy().flags.writeable and a.__array_interface__["data"][1]
        for view in (a[1:], a.reshape((2, 2)), a.reshape((2, 2)).transpose(), a.view(int), a.flatten(), a.__copy__()):
            assert view.read_only and not view.numpy().flags.writeable
        assert a[wp.array([0, 2], dtype=int)].read_only
        assert not any(made.read_only for made in (wp.array(a), wp.clone(a), wp.empty_like(a), a + a))
    assert not free.read_only and not np.from_dlpack(fixed).flags.writeable and np.from_dlpack(free).flags.writeable
    with pytest.raises(wp.ArrayError, match=r"max_version=\(1, 0\)"):
        fixed.__dlpack__()  # the first version of DLPack has no word for it


def test_a_gradient_is_memory_of_its_own(fixed):
    x, y = wp.array(fixed, copy=False, requires_grad=True), wp.zeros(4, dtype=float, requires_grad=True)
    assert x.read_only and not x.grad.read_only and x[1:].read_only and not x[1:].grad.read_only
    for _ in range(2):  # by the slow way, and by the native one
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(step, dim=4, inputs=[x, y])
        y.grad.fill_(2.0)
        tape.backward()
        assert x.grad.list() == [2.0] * 4 and x.read_only
    with pytest.raises(wp.ArrayError, match=REFUSED):
        floats().grad = fixed


def test_the_host_does_not_write_there(fixed):
    some = wp.array([0, 1], dtype=int)
    for write in (
        lambda: fixed.fill_(1.0), fixed.zero_, lambda: fixed.assign([1.0] * 4), lambda: fixed.__setitem__(0, 1.0),
        lambda: fixed.__setitem__(slice(2), 1.0), lambda: fixed.__setitem__(some, 1.0),
        lambda: wp.copy(fixed, floats()), lambda: wp.copy(fixed, floats(), 1, 0, 2),
        lambda: fixed[some].fill_(2.0), lambda: fixed[some].zero_(),
        lambda: wp.copy(fixed.reshape((2, 2)).transpose(), floats().reshape((2, 2))), lambda: fixed[1:].zero_(),
    ):  # fmt: skip
        with pytest.raises(wp.ArrayError, match="read-only.*\n.*copy=True"):
            write()
        with wp.ScopedCapture(), pytest.raises(wp.ArrayError, match="read-only"):
            write()
    for change in (lambda: fixed.__iadd__(1.0), lambda: wp.map(wp.sin, floats(), out=fixed),
                   lambda: wp.utils.array_cast(wp.zeros(4, dtype=int), fixed)):  # fmt: skip
        with pytest.raises(wp.LaunchTypeError, match=REFUSED):
            change()
    assert fixed.list() == [0.0, 1.0, 2.0, 3.0]


def test_a_kernel_reads_it_but_does_not_write_it(fixed):
    y = floats()
    for _ in range(2):  # before and after the kernel is known
        wp.launch(step, dim=4, inputs=[fixed, y])
        assert y.list() == [1.0, 2.0, 3.0, 4.0]
        with pytest.raises(wp.LaunchTypeError, match=r"kernel step .* 'y', an array that must not.*\n.*copy=True"):
            wp.launch(step, dim=4, inputs=[y, fixed])
        wp.launch(add, dim=4, inputs=[fixed, y])
        with pytest.raises(wp.LaunchTypeError, match=r"kernel add writes to its argument 'total'"):
            wp.launch(add, dim=4, inputs=[y, fixed])
        with wp.Tape(), pytest.raises(wp.LaunchTypeError, match="'y'"):
            wp.launch(step, dim=4, inputs=[y, fixed])


@pytest.mark.skipif(not fast.usable(), reason="launches take the slow way here")
def test_reading_it_stays_quick(fixed):
    y = floats()
    wp.launch(step, dim=4, inputs=[fixed, y])
    wp.launch(step_in_struct, dim=4, inputs=[Pair(fixed, y)])
    assert step.fast(4, [fixed, y], ()) is None and step.fast(4, [y, fixed], ()) is NotImplemented
    assert step_in_struct.fast(4, [Pair(fixed, y)], ()) is None
    assert step_in_struct.fast(4, [Pair(y, fixed)], ()) is NotImplemented


def test_parts_of_arguments_are_told_apart(fixed):
    y, at = floats(), wp.array([0, 1, 2, 3], dtype=int)
    for _ in range(2):
        wp.launch(step_in_struct, dim=4, inputs=[Pair(fixed, y)])
        with pytest.raises(wp.LaunchTypeError, match=r"'p\.b'"):
            wp.launch(step_in_struct, dim=4, inputs=[Pair(y, fixed)])
        wp.launch(step_indexed, dim=4, inputs=[fixed, y[at]])
        with pytest.raises(wp.LaunchTypeError, match="'y'"):
            wp.launch(step_indexed, dim=4, inputs=[y, fixed[at]])
        wp.launch(step_into_one, dim=4, inputs=[fixed, y, floats()])
        with pytest.raises(wp.LaunchTypeError, match="'y'"):
            wp.launch(step_into_one, dim=4, inputs=[y, fixed, y])
        with pytest.raises(wp.LaunchTypeError, match="'z'"):
            wp.launch(step_into_one, dim=4, inputs=[y, y, fixed])
        wp.launch(step_by_address, dim=4, inputs=[fixed, y])
        with pytest.raises(wp.LaunchTypeError, match="'y'"):
            wp.launch(step_by_address, dim=4, inputs=[y, fixed])


def test_arrays_in_elements_of_arrays_too(fixed, request):
    request.addfinalizer(packing.fixed.clear)
    y = floats()
    free = wp.array([Pair(floats(), y)], dtype=Pair)
    wp.launch(step_in_elements, dim=4, inputs=[free])  # the native launcher knows it from now on
    held, wrong = wp.array([Pair(fixed, y)], dtype=Pair), wp.array([Pair(y, fixed)], dtype=Pair)
    assert held.list()[0].a.read_only and not held.list()[0].b.read_only
    for _ in range(2):
        wp.launch(step_in_elements, dim=4, inputs=[held])
        assert y.list() == [1.0, 2.0, 3.0, 4.0]
        with pytest.raises(wp.LaunchTypeError, match=r"'p\[…\]\.b'"):
            wp.launch(step_in_elements, dim=4, inputs=[wrong])
        with pytest.raises(wp.LaunchTypeError, match="kernel step_of_any writes to its argument 'p'"):
            wp.launch(step_of_any, dim=4, inputs=[held, 1])
        wp.launch(step_in_elements, dim=4, inputs=[free])
    with wp.ScopedCapture(), pytest.raises(wp.LaunchTypeError, match=r"'p\[…\]\.b'"):
        wp.launch(step_in_elements, dim=4, inputs=[wrong])


def test_launches_that_are_kept_too(fixed):
    y = floats()
    with pytest.raises(wp.LaunchTypeError, match="'y'"):
        wp.launch(step, dim=4, inputs=[y, fixed], record_cmd=True)
    command = wp.launch(step, dim=4, inputs=[fixed, y], record_cmd=True)
    with pytest.raises(wp.LaunchTypeError, match="'y'"):
        command.set_param_by_name("y", fixed)
    command.launch()
    assert y.list() == [1.0, 2.0, 3.0, 4.0]
    with wp.ScopedCapture() as capture:
        wp.launch(step, dim=4, inputs=[fixed, y])
        with pytest.raises(wp.LaunchTypeError, match="'y'"):
            wp.launch(step, dim=4, inputs=[y, fixed])
    y.zero_()
    wp.capture_launch(capture.graph)
    assert y.list() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(wp.ArrayError, match="read-only"):
        capture.graph.use(fixed, y)


def test_forward_mode_writes_neither_values_nor_tangents_there(fixed):
    one, y, gaps = floats(), floats(), wp.zeros(8, dtype=float)[::2]
    (dy,) = wp.jvp(step, dim=4, inputs=[fixed], outputs=[y], tangents=[fixed])
    assert y.list() == [1.0, 2.0, 3.0, 4.0] and dy.list() == fixed.list()
    (dy,) = wp.jvp(step, dim=4, inputs=[gaps], outputs=[y], tangents=[fixed])  # the tangent is laid out as its array
    assert dy.list() == fixed.list()
    for outputs, given, name in ((fixed, [one], "y"), (y, [one, fixed], "tangent of y")):
        with pytest.raises(wp.LaunchTypeError, match=f"jvp of step writes to its argument '{name}', an array"):
            wp.jvp(step, dim=4, inputs=[floats()], outputs=[outputs], tangents=given)
        with wp.ScopedCapture(), pytest.raises(wp.LaunchTypeError, match=f"'{name}'"):
            wp.jvp(step, dim=4, inputs=[floats()], outputs=[outputs], tangents=given)
    with pytest.raises(wp.LaunchTypeError, match="'tangent of y'"):
        wp.jvp(step, dim=4, inputs=[floats()], outputs=[gaps], tangents=[one, fixed])
    assert not gaps.numpy().any()
    with pytest.raises(wp.LaunchTypeError, match=r"'p\.b'"):
        wp.jvp(step_in_struct, dim=4, inputs=[Pair(y, fixed)], tangents=[Pair(one, floats())])
    assert fixed.list() == [0.0, 1.0, 2.0, 3.0]


def test_jacobians_by_it_are_there_differences_say_no(fixed):
    x, y = wp.array(fixed, copy=False, requires_grad=True), wp.zeros(4, dtype=float, requires_grad=True)
    rows = wp.autograd.jacobian(step, dim=4, inputs=[x], outputs=[y])[0, 0].numpy()
    assert np.array_equal(rows, np.eye(4)) and x.list() == [0.0, 1.0, 2.0, 3.0]
    with wp.Tape() as tape:
        wp.launch(step, dim=4, inputs=[x], outputs=[y])
    for check in (lambda: wp.autograd.jacobian_fd(step, dim=4, inputs=[x], outputs=[y]),
                  lambda: wp.autograd.gradcheck(step, dim=4, inputs=[x], outputs=[y], show_summary=False),
                  lambda: wp.autograd.gradcheck_tape(tape, show_summary=False)):  # fmt: skip
        with pytest.raises(AutogradError, match="input 'x' of step, which is read-only.*\n.*copy=True"):
            check()
    assert x.list() == [0.0, 1.0, 2.0, 3.0]


def test_adjoint_launches_ask_before_they_run(fixed):
    square, rows = fixed.reshape((2, 2)), wp.array([1.0, 2.0, 3.0, 4.0], dtype=float).reshape((2, 2))
    for grad in (square, square.transpose()):  # laid out as its array, and otherwise
        added = wp.zeros((2, 2), dtype=float)
        with pytest.raises(wp.ArrayError, match="read-only.*\n.*copy=True"):
            wp.launch(add_rows, dim=(2, 2), inputs=[rows, rows], outputs=[wp.zeros((2, 2), dtype=float)], adjoint=True,
                      adj_inputs=[added, grad], adj_outputs=[wp.ones((2, 2), dtype=float)])  # fmt: skip
        assert not added.numpy().any()
        wp.launch(add_rows, dim=(2, 2), inputs=[rows, rows], outputs=[wp.zeros((2, 2), dtype=float)], adjoint=True,
                  adj_inputs=[added, added], adj_outputs=[grad])  # fmt: skip
        assert np.array_equal(added.numpy(), 2.0 * grad.numpy())
    assert fixed.list() == [0.0, 1.0, 2.0, 3.0]


def test_steps_that_are_replayed_put_back_only_what_was_written(request):
    request.addfinalizer(packing.fixed.clear)
    rows = np.arange(4, dtype=np.float32)
    rows.flags.writeable = False
    x, y = wp.array(rows, copy=False, requires_grad=True), wp.zeros(4, dtype=float, requires_grad=True)
    held, z = wp.array([Pair(x, y)], dtype=Pair), wp.zeros(4, dtype=float, requires_grad=True)
    with wp.Tape(checkpoint=1) as tape:
        for _ in range(3):
            wp.launch(step, dim=4, inputs=[x, z])
            wp.launch(step_in_elements, dim=4, inputs=[held], record_tape=False)
    tape.backward(grads={z: floats(1.0, 1.0, 1.0, 1.0)})
    assert x.grad.list() == [1.0] * 4 and y.list() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("checkpoint", ["all", 1])
def test_backward_passes_leave_arrays_in_elements_alone(fixed, request, checkpoint):
    request.addfinalizer(packing.fixed.clear)
    x, y = wp.array(fixed, copy=False), wp.zeros(4, dtype=float)
    held = wp.array([Pair(x, y)], dtype=Pair)
    z, w = wp.ones(4, dtype=float, requires_grad=True), wp.zeros(4, dtype=float, requires_grad=True)
    with wp.Tape(checkpoint) as tape:
        for _ in range(2):
            wp.launch(step_in_elements, dim=4, inputs=[held])
            wp.launch(step_in_elements, dim=4, inputs=[held], record_tape=False)
        wp.copy(w, z)
    tape.backward(grads={w: floats(1.0, 1.0, 1.0, 1.0)})
    assert z.grad.list() == [1.0] * 4
    assert y.list() == [1.0, 2.0, 3.0, 4.0] and x.list() == [0.0, 1.0, 2.0, 3.0]


def test_arrays_of_jax_are_values():
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(4.0)
    for dtype in (None, wp.vec4):
        for _ in range(2):  # the first array of its layout, and others like it
            a = wp.from_jax(x, dtype=dtype)
            assert a.read_only and np.array_equal(wp.to_jax(a).reshape(4), x)
            with pytest.raises(wp.ArrayError, match="read-only"):
                a.zero_()
    y = floats()
    wp.launch(step, dim=4, inputs=[wp.from_jax(x), y])
    for _ in range(2):
        with pytest.raises(wp.LaunchTypeError, match="'y'"):
            wp.launch(step, dim=4, inputs=[y, wp.from_jax(x)])
    half = wp.from_jax(x.astype(jax.numpy.bfloat16))
    assert wp.to_jax(half).tolist() == [0.0, 1.0, 2.0, 3.0] and x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_pytorch_warns_as_for_numpy(fixed):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings(record=True):  # once in a process
        assert wp.to_torch(fixed).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert torch.from_dlpack(fixed).tolist() == [0.0, 1.0, 2.0, 3.0]
