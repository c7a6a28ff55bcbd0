"""JAX's arrays as arrays and arrays as JAX's."""

import doctest
import gc

import numpy as np
import pytest

import treadle as wp

jax = pytest.importorskip("jax")
jnp = jax.numpy


@wp.kernel
def total(a: wp.array(dtype=wp.vec3), s: wp.array(dtype=float)):
    wp.atomic_add(s, 0, wp.length(a[wp.tid()]))


def test_memory_is_shared_both_ways():
    a = wp.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    x = wp.to_jax(a)
    assert x.unsafe_buffer_pointer() == a.ptr and np.array_equal(x, a.numpy())
    back = wp.from_jax(x)
    assert (back.ptr, back.shape, back.strides) == (a.ptr, a.shape, a.strides)
    assert wp.from_jax(jnp.ones((2, 3, 3)), dtype=wp.mat33).shape == (2,)
    assert np.array_equal(wp.to_jax(a.transpose()), a.numpy().T)  # JAX lays it out anew
    s = wp.zeros(1, dtype=float)
    wp.launch(total, dim=2, inputs=[jnp.array([[3.0, 4.0, 0.0], [0.0, 0.0, 2.0]]), s])
    assert s.list() == [7.0]


def test_launches_do_not_write_to_values():
    @wp.kernel
    def negate(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        i = wp.tid()
        b[i] = -a[i]

    x, b = jnp.ones(3), wp.zeros(3, dtype=float)
    for _ in range(2):  # the usual way, and the native launcher
        with pytest.raises(wp.LaunchTypeError, match="writes to its argument 'b'"):
            wp.launch(negate, dim=3, inputs=[x], outputs=[x])
        wp.launch(negate, dim=3, inputs=[x], outputs=[b])
    assert b.list() == [-1] * 3 and x.tolist() == [1] * 3


def test_types_and_devices_go_over():
    for name in "float16 float32 bfloat16 int8 int16 int32 uint8 uint16 uint32".split():
        dtype, own = getattr(jnp, name), getattr(wp, name)
        assert wp.dtype_to_jax(own) is dtype and wp.dtype_from_jax(jnp.dtype(dtype)) is own
        assert wp.from_jax(jnp.zeros(2, dtype)).dtype is own and wp.to_jax(wp.zeros(2, dtype=own)).dtype == dtype
    assert wp.dtype_from_jax(bool) is wp.bool
    assert wp.device_from_jax(wp.device_to_jax("cpu")).is_cpu and wp.device_from_jax(jax.devices()[-1]).is_cpu


def test_memory_lives_and_is_not_given_away():
    a = wp.from_jax(jnp.full(1000, 7.0))
    gc.collect()
    assert a.numpy().min() == 7.0
    x = jnp.arange(4.0)
    b = wp.from_jax(x)
    jax.jit(lambda v: v + 1, donate_argnums=0)(x)  # a donation that would take memory which somebody sees
    assert b.list() == [0, 1, 2, 3]
    y = wp.to_jax(wp.full(1000, 3.0, dtype=float))
    gc.collect()
    assert float(y.min()) == 3.0


def test_what_has_no_memory_is_said():
    with pytest.raises(wp.ArrayError, match="no memory yet"):
        jax.jit(lambda x: wp.from_jax(x))(jnp.ones(2))
    with pytest.raises(TypeError, match="not list"):
        wp.from_jax([1.0])
    with pytest.raises(TypeError, match="takes an array of JAX, not ndarray"):
        wp.from_jax(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="takes an array of treadle, not ndarray"):
        wp.to_jax(np.zeros(3))

    @wp.struct
    class Pair:
        a: float

    with pytest.raises(wp.ArrayError, match="no dtype"):
        wp.to_jax(wp.zeros(2, dtype=Pair))


def test_examples():
    module = __import__("treadle.interop.jax_arrays", fromlist=["x"])
    assert doctest.testmod(module).failed == 0


def test_what_was_asked_for_before_is_the_same_again():
    """Arrays keep what NumPy shows of them for the next time, which must change nothing."""
    torch = pytest.importorskip("torch")
    kinds = [wp.zeros(4, dtype=float), wp.zeros(4, dtype=wp.vec3), wp.zeros((4, 6), dtype=float)[:, ::2],
             wp.zeros(3, dtype=wp.bfloat16), wp.zeros((2, 3), dtype=float).transpose()]  # fmt: skip
    for a in kinds:
        for _ in range(3):
            a.fill_(2.0)
            assert (np.asarray(wp.to_jax(a)).astype(float) == 2.0).all() and bool((wp.to_torch(a) == 2.0).all())
            assert wp.to_torch(a).data_ptr() == a.ptr and wp.to_torch(a).shape == wp.to_jax(a).shape
        with wp.ScopedCapture(), pytest.raises(wp.CaptureError):
            wp.to_torch(a)
        with wp.ScopedCapture(), pytest.raises(wp.CaptureError):
            wp.to_jax(a)
    a = kinds[0]
    a.requires_grad = True
    assert wp.to_torch(a).requires_grad and wp.to_torch(a).grad.data_ptr() == a.grad.ptr
    t = wp.to_torch(a, requires_grad=False)
    del a, kinds
    gc.collect()
    assert t.tolist() == [2.0] * 4
    for _ in range(2):
        assert wp.from_jax(jnp.ones(4)).dtype is wp.float32 and wp.from_jax(jnp.ones(4, int)).dtype is wp.int32
        assert wp.from_jax(jnp.ones((2, 3)), dtype=wp.vec3).shape == (2,) and wp.from_jax(jnp.ones((2, 3))).ndim == 2
    s = wp.zeros(2, dtype=Pair)
    for _ in range(2):
        with pytest.raises(wp.ArrayError, match="JAX has no dtype"):
            wp.to_jax(s)


@wp.struct
class Pair:
    a: float
    b: int
