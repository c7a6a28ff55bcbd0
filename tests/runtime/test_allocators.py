"""Allocators that the program sets: arrays live in their memory and give it back."""

import gc

import pytest

import treadle as wp


class Counting:
    """Passes on to the built-in allocator, and counts."""

    def __init__(self):
        self.inner = wp.get_device("cpu").default_allocator
        self.sizes = {}

    def allocate(self, size_in_bytes):
        address = self.inner.allocate(size_in_bytes)
        self.sizes[address] = size_in_bytes
        return address

    def deallocate(self, ptr, size_in_bytes):
        assert self.sizes.pop(ptr) == size_in_bytes
        self.inner.deallocate(ptr, size_in_bytes)


@pytest.mark.host
def test_arrays_take_memory_from_an_allocator_and_give_it_back():
    allocator = Counting()
    with wp.ScopedAllocator("cpu", allocator):
        assert wp.get_device_allocator("cpu") is allocator
        a = wp.zeros(1000, dtype=wp.vec3)
        part = a[10:20]
        empty = wp.zeros(0, dtype=float)
    assert allocator.sizes == {a.ptr: 12000} and (a.numpy() == 0).all() and empty.size == 0
    assert wp.get_device_allocator("cpu") is wp.get_device("cpu").default_allocator
    b = wp.zeros(1000, dtype=wp.vec3)
    assert b.ptr not in allocator.sizes
    del a
    gc.collect()
    assert len(allocator.sizes) == 1  # the slice keeps it
    del part
    gc.collect()
    assert allocator.sizes == {}


def test_an_error_restores_the_allocator():
    with pytest.raises(ZeroDivisionError), wp.ScopedAllocator("cpu", Counting()):
        1 / 0  # noqa: B018
    assert wp.get_device_allocator() is wp.get_device().get_allocator() is wp.get_device().default_allocator


class Without:
    def allocate(self, size_in_bytes):
        return 0

    def deallocate(self, ptr, size_in_bytes):
        raise AssertionError


@pytest.mark.host
def test_what_is_no_allocator_is_refused():
    with pytest.raises(TypeError, match="allocate and deallocate; int has not"):
        wp.set_device_allocator("cpu", 3)
    with pytest.raises(RuntimeError, match="no CUDA device here"):
        wp.set_cuda_allocator(Counting())
    with pytest.raises(RuntimeError, match="no block of this allocator"):
        wp.get_device("cpu").pinned_allocator.deallocate(123, 4)
    with pytest.raises(MemoryError, match="Without gave no memory for 4 bytes"), wp.ScopedAllocator("cpu", Without()):
        wp.zeros(1, dtype=float)


@pytest.mark.host
def test_kinds_of_memory():
    assert wp.zeros(3).memory_kind is wp.MemoryKind.HOST and wp.MemoryKind(5) is wp.MemoryKind.CUDA_MANAGED
    assert isinstance(wp.get_device_allocator(), wp.Allocator)
