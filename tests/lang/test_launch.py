"""Launches: arguments that fit, arguments that do not, recorded launches, checked mode."""

from __future__ import annotations

import contextlib
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import treadle as wp
from treadle.runtime import fast


@wp.kernel
def scale(a: wp.array(dtype=float), s: float):
    i = wp.tid()
    a[i] = a[i] * s


@wp.kernel
def generic(a: wp.array(dtype=Any), s: Any):
    i = wp.tid()
    a[i] = a[i] * s


@wp.kernel
def shift(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    a[i] = b[i + 1]


@wp.kernel
def grid(out: wp.array2d(dtype=int)):
    i, j = wp.tid()
    out[i, j] = 100 * i + j


@pytest.mark.parametrize("n", [0, 1, 7, 64, 1000])
def test_every_thread_runs_once(n):
    a = wp.array(np.arange(n, dtype=np.float32), dtype=float)
    wp.launch(scale, dim=n, inputs=[a], outputs=[2.0])
    np.testing.assert_array_equal(a.numpy(), 2.0 * np.arange(n))


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (4, 64), (7, 33)])
def test_grids_of_two_axes(shape):
    out = wp.zeros(shape, dtype=int)
    wp.launch(grid, dim=shape, inputs=[out])
    np.testing.assert_array_equal(out.numpy(), 100 * np.arange(shape[0])[:, None] + np.arange(shape[1]))


@pytest.mark.host
def test_numpy_arrays_are_arguments():
    a = np.arange(4, dtype=np.float32)
    wp.launch(scale, dim=4, inputs=[a, np.float32(3.0)])
    np.testing.assert_array_equal(a, [0, 3, 6, 9])


OUTSIDE = wp.zeros(3, dtype=float)


@wp.kernel
def reads_outside(out: wp.array(dtype=float)):
    out[0] = OUTSIDE[0]


def test_an_array_from_outside_is_not_a_constant():
    with pytest.raises(TypeError, match="an array from outside cannot be read in kernels"):
        wp.launch(reads_outside, dim=1, inputs=[wp.zeros(1, dtype=float)])


@wp.struct
class One:
    x: float


@wp.kernel
def of_struct(s: One):
    pass


def test_a_struct_is_passed_as_a_value_not_as_its_class():
    with pytest.raises(wp.LaunchTypeError, match="kernel of_struct: argument 's' expects One but got the class One"):
        wp.launch(of_struct, dim=1, inputs=[One])


@wp.kernel
def wants_much(out: wp.array(dtype=float)):
    i = wp.tid()
    own = wp.zeros(shape=3000000, dtype=float)
    own[i] = 3.0
    out[i] = own[i] + own[i + 1]


def test_a_threads_own_array_that_no_stack_holds_is_refused():
    with pytest.raises(TypeError, match="own = wp.zeros(.|\\n)*take 12000000 bytes here"):
        wp.launch(wants_much, dim=1, inputs=[wp.zeros(1, dtype=float)])


@wp.func
def component(m: wp.mat22, r: int):
    return m[r][1]


@wp.kernel
def components(at: wp.array(dtype=int), out: wp.array(dtype=wp.vec3), row: int):
    i = wp.tid()
    v = wp.vec3(1.0, 2.0, 3.0)
    if at[i] >= 0 and v[at[i]] > 1.5:
        v[at[i]] = component(wp.mat22(5.0, 6.0, 7.0, 8.0), row)
    out[i] = v


@pytest.mark.host
@pytest.mark.parametrize("width", [1, 8])
def test_checked_launch_finds_components_that_are_not_there(width, monkeypatch):
    monkeypatch.setattr(wp.config, "gang_width", width)
    at, out = np.array([0, 1, 2, -1] * 5, dtype=np.int32), wp.zeros(20, dtype=wp.vec3)
    wp.launch(components, dim=20, inputs=[at, out, 1], checked=True)
    np.testing.assert_array_equal(out.numpy()[:4], [[1, 2, 3], [1, 8, 3], [1, 2, 8], [1, 2, 3]])
    with pytest.raises(IndexError, match=r"return m\[r\]\[1\](.|\n)*index 2 is out of bounds of mat22f .*thread 1\)"):
        wp.launch(components, dim=20, inputs=[at, out, 2], checked=True)
    at[13] = 3
    with pytest.raises(IndexError, match=r"index 3 is out of bounds of vec3f \(kernel components, thread 13\)"):
        wp.launch(components, dim=20, inputs=[at, out, 1], checked=True)


@pytest.mark.parametrize("a", [np.arange(4.0), np.arange(4), np.arange(8, dtype=np.float32).reshape(4, 2)])
def test_numpy_arrays_that_would_have_to_be_copied_are_refused(a):
    before = a.copy()
    with pytest.raises(wp.LaunchTypeError, match="kernel scale: argument 'a' expects an array of type array"):
        wp.launch(scale, dim=4, inputs=[a, 3.0])
    np.testing.assert_array_equal(a, before)


@pytest.mark.host
def test_strided_numpy_arrays_are_written_in_place():
    a = np.arange(8, dtype=np.float32)
    wp.launch(scale, dim=4, inputs=[a[::-2], 3.0])
    np.testing.assert_array_equal(a, [0, 3, 2, 9, 4, 15, 6, 21])


@wp.kernel
def flagged(a: wp.array(dtype=float), flag: bool, n: int, v: wp.vec3):
    i = wp.tid()
    if flag:
        a[i] = float(n) + v[0]


@pytest.mark.parametrize(("at", "value", "message"), [
    (1, "False", "must be bool, not str"), (1, None, "must be bool, not NoneType"),
    (2, np.float32(2.5), "must be int32; .* is not a whole number"),
    (2, 2**32, "4294967296 does not fit int32"), (3, None, "expects vec3f but got None"),
    (3, 1.0, "expects vec3f but got a single value"), (3, (1.0, 2.0), "takes 3 numbers, not 2"),
])  # fmt: skip
def test_values_are_not_bent_in_silence(at, value, message):
    given = [wp.zeros(1, dtype=float), True, 1, wp.vec3()]
    given[at] = value
    with pytest.raises(ValueError if at == 3 and value is None else wp.LaunchTypeError, match=message):
        wp.launch(flagged, dim=1, inputs=given)


@pytest.mark.parametrize("taped", [False, True])
def test_lists_of_arguments_are_lists(taped):
    a = wp.zeros(4, dtype=float)
    with wp.Tape() if taped else contextlib.nullcontext():
        for given, name in (({"inputs": a}, "inputs"), ({"inputs": [a, 1.0], "outputs": True}, "outputs"),
                            ({"inputs": None}, "inputs")):  # fmt: skip
            for _ in range(2):  # the native launcher knows the kernel the second time
                with pytest.raises(wp.LaunchTypeError, match=rf"kernel scale: {name} of .*\n.*{name}=\[x\]"):
                    wp.launch(scale, dim=4, **given)
                wp.launch(scale, dim=4, inputs=(a, 1.0))


@wp.kernel
def anything(x: Any):
    wp.tid()


def test_numbers_too_large_for_a_parameter_name_it():
    given = [wp.zeros(1, dtype=float), 10**400]
    with pytest.raises(wp.LaunchTypeError, match="kernel scale: argument 's' must be float32; an int of 1329 bits"):
        wp.launch(scale, dim=1, inputs=given)
    with pytest.raises(wp.LaunchTypeError, match="kernel anything: argument 'x': an int of 1329 bits does not fit"):
        wp.launch(anything, dim=1, inputs=[10**400])
    with pytest.raises(wp.LaunchTypeError, match="kernel flagged: argument 'v' must be vec3f: .* too large"):
        wp.launch(flagged, dim=1, inputs=[wp.zeros(1, dtype=float), True, 1, (10**400, 0, 0)])


def test_a_block_of_fewer_than_no_threads_is_refused():
    given = [wp.zeros(4, dtype=float), 1.0]
    with pytest.raises(wp.GridError, match="block_dim must not be negative, but is -3"):
        wp.launch(scale, dim=4, inputs=given, block_dim=-3)
    wp.launch(scale, dim=4, inputs=given, block_dim=0)


def test_whole_numbers_give_their_bits():
    a = wp.zeros(1, dtype=float)
    wp.launch(flagged, dim=1, inputs=[a, True, 2**32 - 1, wp.vec3()])
    assert a.list() == [-1.0] and wp.rand_init(2**32 - 1) == wp.rand_init(-1)


def test_numpy_scalars_stand_for_any():
    a = wp.ones(2, dtype=wp.float64)
    wp.launch(generic, dim=2, inputs=[a, np.float64(3.0)])
    assert a.list() == [3.0, 3.0]


def test_what_does_not_fit_is_named():
    a = wp.zeros(4, dtype=float)
    with pytest.raises(wp.LaunchError, match=r"takes 2 arguments \(a, s\), 1 were given"):
        wp.launch(scale, dim=4, inputs=[a])
    with pytest.raises(wp.LaunchTypeError, match="kernel scale: argument 'a' expects an array of type array"):
        wp.launch(scale, dim=4, inputs=[wp.zeros(4, dtype=int), 1.0])
    with pytest.raises(wp.LaunchTypeError, match="kernel scale: argument 's' must be float32, not str"):
        wp.launch(scale, dim=4, inputs=[a, "two"])
    with pytest.raises(wp.LaunchTypeError, match="dim of a launch"):
        wp.launch(scale, dim=2.5, inputs=[a, 1.0])
    with pytest.raises(wp.LaunchTypeError, match="takes a kernel, not function"):
        wp.launch(lambda: None, dim=1)
    with pytest.raises(wp.LaunchError, match="cannot be called"):
        scale(a, 1.0)
    np.testing.assert_array_equal(a.numpy(), 0.0)


def test_own_index_beyond_the_array_is_found_at_the_launch():
    a = wp.zeros(4, dtype=float)
    for _ in range(2):  # the first launch goes through Python, the second through the native launcher
        with pytest.raises(IndexError, match=r"index 4 is out of bounds in dimension 0 of array 'a'"):
            wp.launch(scale, dim=5, inputs=[a, 1.0])
        wp.launch(scale, dim=4, inputs=[a, 1.0])


@pytest.mark.host
def test_checked_launch_names_line_array_index_and_thread():
    a, b = wp.zeros(3, dtype=float), wp.zeros(3, dtype=float)
    with pytest.raises(IndexError) as caught:
        wp.launch(shift, dim=3, inputs=[a, b], checked=True)
    text = str(caught.value)
    for word in ("test_launch.py", "a[i] = b[i + 1]", "index 3", "array 'b'", "(3,)", "thread 2", "kernel shift"):
        assert word in text


@pytest.mark.host
@pytest.mark.parametrize("width", [1, 8])
def test_checked_launch_finds_a_wrong_row_too(width, monkeypatch):
    monkeypatch.setattr(wp.config, "gang_width", width)

    @wp.kernel
    def rows(a: wp.array3d(dtype=float), by: int, rounds: int, out: wp.array(dtype=float)):
        i = wp.tid()
        for _ in range(rounds):
            plane = a[i + by]
            row = plane[1]
            out[i] = row[2]

    a, out = wp.ones((5, 2, 3), dtype=float), wp.zeros(5, dtype=float)
    wp.launch(rows, dim=5, inputs=[a, 0, 1, out], checked=True)
    wp.launch(rows, dim=5, inputs=[a, 10**6, 0, out], checked=True)  # nothing is read
    assert out.list() == [1.0] * 5
    with pytest.raises(IndexError, match=r"index \(5, 1, 2\) is out of bounds of array 'a' of shape \(5, 2, 3\)"):
        wp.launch(rows, dim=5, inputs=[a, 1, 1, out], checked=True)


def test_generic_kernels_compile_once_per_type():
    for dtype in (wp.float32, wp.float64, wp.int32):
        a = wp.array([1, 2, 3], dtype=dtype)
        wp.launch(generic, dim=3, inputs=[a, dtype(2)])
        assert a.list() == [2, 4, 6]
    assert len(generic.overloads) == 3


def test_numbers_have_their_own_types_in_generic_kernels_whatever_was_launched_before():
    @wp.kernel
    def half(x: Any, out: wp.array(dtype=wp.float64)):
        out[0] = wp.float64(x / type(x)(2))

    out = wp.zeros(1, dtype=wp.float64)
    single = float(np.float32(0.1) / 2)
    for x, expected in [(wp.float64(0.1), 0.05), (0.1, single), (3, 1.0), (0.1, single), (wp.float64(3.0), 1.5),
                        (3, 1.0), (wp.int64(2**40), 2.0**39), (3, 1.0), (3.0, 1.5), (3, 1.0)] * 2:  # fmt: skip
        wp.launch(half, dim=1, inputs=[x, out])
        assert out.list() == [expected]
    with pytest.raises(wp.KernelTypeError, match="bool"):
        wp.launch(half, dim=1, inputs=[True, out])


def test_generic_kernels_keep_to_their_limits():
    @wp.kernel
    def scale(a: wp.array(dtype=wp.types.vector(length=Any, dtype=wp.Float)), s: wp.Float, n: wp.Int):
        i = wp.tid()
        a[i] *= s

    pairs = wp.ones(2, dtype=wp.vec2d)
    wp.launch(scale, dim=2, inputs=[pairs, wp.float64(3.0), 1])
    assert pairs.list() == [wp.vec2d(3.0)] * 2
    six = wp.ones(1, dtype=wp.spatial_vector)
    wp.launch(scale, dim=1, inputs=[six, 3.0, wp.uint8(1)])
    assert six.list() == [wp.spatial_vector(3.0)]
    for refused, told in [
        ([wp.ones(2, dtype=wp.vec2i), 1.0, 1], r"kernel scale: argument 'a' must be .*Float.*, not array\(.*vec2i"),
        ([wp.ones(2, dtype=float), 1.0, 1], "kernel scale: argument 'a'"),
        ([pairs, 3, 1], "kernel scale: argument 's' must be wp.Float, not int32"),
        ([pairs, wp.float64(3.0), 1.0], "kernel scale: argument 'n' must be wp.Int, not float32"),
    ]:
        with pytest.raises(wp.LaunchTypeError, match=told):
            wp.launch(scale, dim=2, inputs=refused)


def test_overload_fixes_types():
    typed = wp.overload(generic, [wp.array(dtype=wp.float64), wp.float64])
    a = wp.array([1.5], dtype=wp.float64)
    wp.launch(typed, dim=1, inputs=[a, 2])
    assert a.list() == [3.0]
    with pytest.raises(wp.LaunchTypeError, match=r"dtype=float64\), but .* dtype float32"):
        wp.launch(typed, dim=1, inputs=[wp.zeros(1, dtype=float), 2])
    by_example = wp.overload(generic, [wp.zeros((2, 2), dtype=wp.float64)[0], wp.float64])
    wp.launch(by_example, dim=1, inputs=[a, 2])
    assert a.list() == [6.0]
    with pytest.raises(wp.KernelTypeError, match=r"'a' of kernel generic: a fixedarray\(.*\) belongs to a thread"):
        wp.overload(generic, [wp.fixedarray(dtype=float, shape=2), float])


@wp.kernel
def both(f: wp.array(dtype=float), g: wp.array(dtype=float), place: wp.array(dtype=int)):
    i = wp.tid()
    f[i] += 1.0
    wp.atomic_add(g, place[i], 0.1)


@pytest.mark.host
@pytest.mark.parametrize("width", [1, 8])
def test_updated_arrays_may_lie_over_each_other(width, monkeypatch):
    monkeypatch.setattr(wp.config, "gang_width", width)
    n = 300_000
    place = np.random.default_rng(3).integers(0, n, n).astype(np.int32)
    want = np.zeros(n, np.float32)
    for i, j in enumerate(place.tolist()[:2000]):  # threads one after the other
        want[i] += np.float32(1.0)
        want[j] += np.float32(0.1)
    few = wp.zeros(n, dtype=float)
    wp.launch(both, dim=2000, inputs=[few, few, wp.array(place)])
    assert (few.numpy() == want).all()
    apart, row = [wp.zeros(n, dtype=float) for _ in range(2)], wp.zeros(n + 1, dtype=float)
    straight = wp.array(np.arange(n, dtype=np.int32))
    for _ in range(3):
        wp.launch(both, dim=n, inputs=[*apart, straight])
        wp.launch(both, dim=n, inputs=[row[:-1], row[1:], straight])
    wp.launch(both, dim=n, inputs=[row[1:], row[:-1], straight], record_cmd=True).launch()
    assert set(apart[0].list()) == {3.0}
    assert abs(row.numpy()[1:-1] - 4.4).max() < 1e-5
    orders = [(o.shared, v.program.entry.meta["order"]) for k in both.overloads.values() for o, v in k.variants.items()]
    assert (False, "free") in orders and (True, "ordered") in orders


@pytest.mark.host
@pytest.mark.parametrize(
    ("shape", "strides"),
    [((5000,), (0,)), ((5000,), (-8,)), ((1000, 5), (4, 4)), ((1000, 5), (4, 0)), ((5, 1000), (8, 4)),
     ((5, 1000), (4000, 4)), ((5, 1000), (4, 20)), ((1000, 1), (-4, 4))],
)  # fmt: skip
def test_elements_of_an_updated_array_may_lie_over_each_other(shape, strides):
    memory = np.zeros(20_000, np.float32)
    middle = memory[10_000:]
    a = wp.array(ptr=middle.ctypes.data, dtype=float, shape=shape, strides=strides)
    want = np.zeros_like(memory)
    places = sum(np.indices(shape)[k] * strides[k] // 4 for k in range(len(shape)))
    for _ in range(2):  # through Python, then by the native launcher
        wp.launch(grow1 if len(shape) == 1 else grow2, dim=shape, inputs=[a])
        np.add.at(want, 10_000 + places.ravel(), np.float32(1.0))
    assert (memory == want).all()


@wp.kernel
def grow1(a: wp.array(dtype=float)):
    a[wp.tid()] += 1.0


@wp.kernel
def grow2(a: wp.array2d(dtype=float)):
    i, j = wp.tid()
    a[i, j] += 1.0


@wp.kernel
def product(a: wp.array(dtype=float), b: wp.array(dtype=float), place: wp.array(dtype=int), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = a[i] * b[place[i]]


def quick(program, dim, values):
    """A launch by the native launcher alone: None if it was done, NotImplemented if it was declined."""
    native = fast.launcher()
    fast.add(native, program)
    return native(dim, values, [])


@pytest.mark.host
def test_gradients_may_lie_over_each_other_and_over_data():
    """One array for two parameters has one gradient, which threads then add to one after the other."""
    n = 1000
    place = np.random.default_rng(4).permutation(n).astype(np.int32)
    x, y = [wp.array(np.linspace(k, k + 1, n), dtype=float, requires_grad=True) for k in (1, 2)]
    out = wp.zeros(n, dtype=float, requires_grad=True)
    out.grad.fill_(1.0)
    twice, types = product.bind([x, x, wp.array(place), out])
    adjoint = lambda **how: product.overload(types).adjoint((n,), ("a", "b", "out"), **how).program
    assert adjoint().meets(adjoint().pack(twice)) and quick(adjoint(), n, twice) is NotImplemented
    adjoint(shared=True).run(twice, (n,))
    values = np.linspace(1, 2, n)
    assert np.allclose(x.grad.numpy(), values[place] + values[np.argsort(place)])
    over = wp.array(np.zeros(n), dtype=float, requires_grad=True)
    over.grad = y  # the data of another argument
    mixed, _ = product.bind([over, y, wp.array(place), out])
    assert adjoint().meets(adjoint().pack(mixed)) and quick(adjoint(), n, mixed) is NotImplemented
    apart, _ = product.bind([over, x, wp.array(place), out])
    out.grad.fill_(1.0)
    assert not adjoint().meets(adjoint().pack(apart)) and quick(adjoint(), n, apart) is None
    assert np.allclose(y.numpy(), np.linspace(2, 3, n) + values[place])


@wp.kernel
def gather(x: wp.array(dtype=wp.vec3), place: wp.array(dtype=int), weight: wp.array(dtype=float),
           out: wp.array(dtype=float)):
    i = wp.tid()
    v = x[place[i]]
    wp.atomic_add(out, 0, weight[i] * (v[0] + 2.0 * v[1] - v[2]))


@pytest.mark.parametrize("dense", [True, False])
def test_gradients_are_gathered_in_private_copies(dense, monkeypatch):
    """Many threads add to few gradients: copies a chunk, put together at the end, with and without gaps."""
    n, m = 100_000, 50
    rng = np.random.default_rng(6)
    place, weight = rng.integers(0, m, n).astype(np.int32), rng.uniform(-1, 1, n).astype(np.float32)
    found = []
    for width in (1, 8):
        rows = wp.zeros((m, 2), dtype=wp.vec3, requires_grad=True)
        x = wp.zeros(m, dtype=wp.vec3, requires_grad=True) if dense else rows[:, 1]
        out = wp.zeros(1, dtype=float, requires_grad=True)
        out.grad.fill_(1.0)
        gather.overloads.clear()
        values, types = gather.bind([x, wp.array(place), wp.array(weight), out])
        overload = gather.overload(types)
        monkeypatch.setattr(wp.config, "gang_width", width)
        program = overload.adjoint((n,), ("x", "out")).program
        assert [item["path"] for item in program.entry.meta["atomics"]] == [[0, "grad"]]
        assert not program.meets(program.pack(values))
        program.run(values, (n,))
        found.append(x.grad.numpy().copy())
        assert dense or not rows.grad.numpy()[:, 0].any()
    assert found[0].tobytes() == found[1].tobytes()
    want = np.bincount(place, weight, m)[:, None] * np.array([1.0, 2.0, -1.0])
    assert np.allclose(found[0], want, atol=1e-4)


def test_overload_by_signature():
    kernel = globals()["generic"]

    @wp.overload
    def generic(a: wp.array(dtype=wp.int64), s: wp.int64): ...

    assert generic is kernel and len(kernel.overloads) >= 1
    a = wp.array([3], dtype=wp.int64)
    wp.launch(generic, dim=1, inputs=[a, 2])  # the number becomes an int64, as the overload has it
    assert a.list() == [6]
    b = wp.array([3.0], dtype=float)
    wp.launch(generic, dim=1, inputs=[b, 2.0])  # other types as ever
    assert b.list() == [6.0]


def test_wrong_overloads_are_told():
    kernel = globals()["generic"]
    with pytest.raises(wp.KernelTypeError, match="Return annotations are not allowed on @wp.overload stubs"):

        @wp.overload
        def generic(a: wp.array(dtype=int), s: int) -> int: ...

    for name in ("first", "second"):
        wp.kernel(name=name)(kernel.func)
    with pytest.raises(wp.KernelTypeError, match="Ambiguous kernel lookup"):
        wp.overload(kernel.func)
    for name in ("first", "second"):
        del kernel.module.kernels[name]
    with pytest.raises(wp.KernelTypeError, match="no parameter 'q'"):
        wp.overload(kernel, {"q": float})
    with pytest.raises(wp.KernelTypeError, match="takes 2 arguments, 1 types were given"):
        wp.overload(kernel, [float])
    with pytest.raises(wp.KernelTypeError, match="needs the argument types"):
        wp.overload(kernel)
    with pytest.raises(wp.KernelTypeError, match="no kernel 'unheard_of'"):

        @wp.overload
        def unheard_of(a: float): ...


def test_recorded_launch_runs_again_with_other_arguments():
    a, b = wp.array([1.0, 2.0], dtype=float), wp.array([5.0], dtype=float)
    command = wp.launch(scale, dim=2, inputs=[a, 2.0], record_cmd=True)
    assert a.list() == [1.0, 2.0]
    command.launch()
    command.set_param_by_name("s", 10.0)
    command.launch()
    assert a.list() == [20.0, 40.0]
    command.set_param_at_index(0, b)
    command.set_dim(1)
    command.launch()
    assert b.list() == [50.0]
    with pytest.raises(wp.LaunchError, match="no argument 'q'"):
        command.set_param_by_name("q", 1)


def test_settings_take_effect_after_a_launch(monkeypatch):
    a, b = wp.zeros(3, dtype=float), wp.zeros(3, dtype=float)
    wp.launch(shift, dim=2, inputs=[a, b])
    wp.launch(shift, dim=2, inputs=[a, b])
    monkeypatch.setattr(wp.config, "mode", "debug")
    with pytest.raises(IndexError):
        wp.launch(shift, dim=3, inputs=[a, b])


@wp.kernel
def one_index(out: wp.array(dtype=int), counter: wp.array(dtype=int)):
    i = wp.tid()
    out[wp.atomic_add(counter, 0, 1)] = i


@wp.kernel
def two_indices(out: wp.array(dtype=int), counter: wp.array(dtype=int)):
    i, j = wp.tid()
    out[wp.atomic_add(counter, 0, 1)] = 10 * i + j


@wp.kernel
def accumulate(out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] += 1.0


@pytest.mark.parametrize("kernel, dim, want", [
    (one_index, (2, 3), [0, 0, 0, 1, 1, 1]),
    (one_index, 6, [0, 1, 2, 3, 4, 5]),
    (two_indices, (1, 2, 3), [0, 0, 0, 1, 1, 1]),
    (two_indices, 6, [0, 10, 20, 30, 40, 50]),
    (two_indices, (2, 3), [0, 1, 2, 10, 11, 12]),
])  # fmt: skip
def test_fewer_indices_than_the_grid_has_axes_are_the_first_ones(kernel, dim, want):
    for _ in range(2):
        out, counter = wp.zeros(6, dtype=int), wp.zeros(1, dtype=int)
        wp.launch(kernel, dim=dim, inputs=[out, counter])
        assert out.list() == want


def test_threads_that_share_an_index_all_count():
    out = wp.zeros(3, dtype=float)
    wp.launch(accumulate, dim=3, inputs=[out])
    wp.launch(accumulate, dim=(3, 100), inputs=[out])
    assert out.list() == [101.0, 101.0, 101.0]


def test_errors_of_wrong_kernels_do_not_hold_them():
    def wrong():
        @wp.kernel(module=wp.Module("of its own"))
        def of_nothing(a: wp.array(dtype=float)):
            a[0] = "nothing"

        return of_nothing

    a, made, errors, gone = wp.zeros(1, dtype=float), [], [], []
    for run in (
        lambda: wp.launch(made.pop(), dim=1, inputs=[a]),
        lambda: wp.launch_tiled(made.pop(), dim=1, inputs=[a], block_dim=32),
        lambda: wp.load_module(made.pop().module),
    ):
        made.append(wrong())
        gone.append(weakref.ref(made[0]))
        module = made[0].module
        with pytest.raises(wp.KernelTypeError) as caught:
            run()
        ours = [entry.path.name for entry in caught.traceback if "treadle" in entry.path.parts]
        assert ours in (["launch.py"], ["tiles.py", "launch.py"], ["module.py", "module.py"])
        errors.append(caught.value)
        module.kernels.clear()  # as another kernel of its name does
    gc.collect()
    assert [each() for each in gone] == [None] * 3
