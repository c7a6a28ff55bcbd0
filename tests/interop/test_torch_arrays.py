"""Tensors as arrays and arrays as tensors."""

import doctest
import gc

import numpy as np
import pytest

import treadle as wp

torch = pytest.importorskip("torch")


@wp.kernel
def double(a: wp.array2d(dtype=float)):
    i, j = wp.tid()
    a[i, j] *= 2.0


def test_memory_is_shared_both_ways_strides_included():
    a = wp.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    for source in (a, a.transpose(), a[1:, ::2]):
        t = wp.to_torch(source)
        assert t.data_ptr() == source.ptr and np.array_equal(t.numpy(), source.numpy())
        back = wp.from_torch(t)
        assert (back.ptr, back.shape, back.strides) == (source.ptr, source.shape, source.strides)
    t = torch.arange(6.0).reshape(2, 3)
    wp.launch(double, dim=(3, 2), inputs=[t.t()])
    assert t.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert wp.from_torch(t[:, 1:]).capacity == 20  # what is left of the storage


def test_types_go_over():
    names = "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 bool"
    for name in names.split():
        t = torch.zeros(3, dtype=getattr(torch, name))
        a = wp.from_torch(t)
        assert a.dtype is getattr(wp, name) and wp.to_torch(a).dtype is t.dtype
        assert wp.dtype_to_torch(a.dtype) is t.dtype and wp.dtype_from_torch(t.dtype) is a.dtype
    assert wp.from_torch(torch.zeros(2, 3), dtype=wp.vec3).shape == (2,)
    assert wp.dtype_to_torch(wp.uint32) is torch.int32
    assert wp.from_torch(torch.zeros(2, dtype=torch.int32), dtype=wp.uint32).dtype is wp.uint32
    with pytest.raises(TypeError, match="complex64"):
        wp.from_torch(torch.zeros(2, dtype=torch.complex64))
    assert wp.device_to_torch("cpu") == "cpu" and wp.device_from_torch(torch.device("cpu")).is_cpu
    assert wp.stream_from_torch("cpu").device.is_cpu and wp.stream_to_torch("cpu") is not None


def test_gradients_go_over():
    t = torch.ones(3, requires_grad=True)
    a = wp.from_torch(t)
    a.grad.fill_(5.0)
    assert t.grad.tolist() == [5, 5, 5]
    b = wp.ones(2, dtype=float, requires_grad=True)
    u = wp.to_torch(b)
    assert u.requires_grad and u.grad.data_ptr() == b.grad.ptr
    assert not wp.from_torch(t, requires_grad=False).requires_grad
    with pytest.raises(wp.ArrayError, match="a result of PyTorch"):
        wp.from_torch(t * 2.0)
    assert wp.from_torch(t, return_ctype=True).grad == t.grad.data_ptr()


def test_memory_lives_as_long_as_either():
    a = wp.from_torch(torch.full((1000,), 7.0))
    gc.collect()
    assert a.numpy().min() == 7.0
    t = wp.to_torch(wp.full(1000, 3.0, dtype=float))
    gc.collect()
    assert t.min() == 3.0


def test_examples():
    module = __import__("treadle.interop.torch_arrays", fromlist=["x"])
    assert doctest.testmod(module).failed == 0


def test_what_is_no_tensor_with_strides_is_an_error():
    with pytest.raises(TypeError, match="takes a tensor of PyTorch, not ndarray"):
        wp.from_torch(np.zeros(3))
    with pytest.raises(wp.ArrayError, match="layout is torch.sparse_coo"):
        wp.from_torch(torch.zeros(3).to_sparse())


def test_what_pytorch_cannot_share_is_an_error():
    @wp.struct
    class Pair:
        a: int
        b: float

    with pytest.raises(wp.ArrayError, match="no dtype for the struct Pair"):
        wp.to_torch(wp.zeros(2, dtype=Pair))
    with pytest.raises(wp.ArrayError, match="cannot share"):
        wp.to_torch(wp.zeros(3, dtype=float)[::-1])
