"""Arrays in buckets: on the host, in kernels of every width, in structs, and what is refused."""

from typing import Any

import numpy as np
import pytest

import treadle as wp

pytestmark = pytest.mark.host  # what hosts of buckets tell of lies on the CPU here
INDICES = [9, 0, 4, 5]


def interface(arrays, kind=("f4", 1, 0, ""), lengths=None):
    facts = {"type": (True, *kind), "access": 2, "pointers": [a.ptr for a in arrays]}
    facts["counts"] = [a.size for a in arrays]
    if lengths is not None:
        facts["array_lengths"] = [a.ptr for a in lengths]
    return {"version": 1, "device": "cpu", "attribs": {"x": facts}, "kept": (arrays, lengths)}


def scalars(buckets=(3, 0, 1, 6), **kwargs):
    ends = np.cumsum(buckets)
    arrays = [wp.array(np.arange(end - n, end), dtype=float) for n, end in zip(buckets, ends, strict=True)]
    return wp.fabricarray(interface(arrays), "x", **kwargs), arrays


def nested():
    rows = [wp.array(np.arange(n) + n, dtype=float) for n in (2, 1, 3, 4, 2)]
    addresses = [wp.array([r.ptr for r in some], dtype=wp.uint64) for some in (rows[:2], rows[2:])]
    lengths = [wp.array([r.size for r in some], dtype=wp.uint64) for some in (rows[:2], rows[2:])]
    return wp.fabricarrayarray(interface(addresses, ("f4", 1, 1, ""), lengths), "x"), rows


@wp.kernel(gang_width=8)
def update(a: Any, o: wp.array(dtype=float)):
    i = wp.tid()
    o[i] = a[i] + float(a.shape[0] + a.size + len(a))
    a[i] = 2.0 * a[i]
    wp.atomic_add(a, i, 1.0)


@wp.kernel(gang_width=8)
def sums(a: Any, o: wp.array(dtype=float)):
    i = wp.tid()
    row = a[i]
    for j in range(row.shape[0]):
        o[i] += row[j]
    a[i, 0] = -1.0
    wp.atomic_add(a, wp.uint8(i), 0, -1.0)


@wp.struct
class Bag:
    values: wp.fabricarray(dtype=float)
    chosen: wp.indexedfabricarray(dtype=float)


@wp.kernel
def through_structs(bags: wp.array(dtype=Bag), one: Bag, empty: Bag):
    i = wp.tid()
    bag = bags[0]
    bag.values[i] = bag.values[i] + 1.0
    bag.chosen[i] = bag.chosen[i] + 10.0
    one.values[i + 5] = one.values[i + 5] * 2.0
    if empty.values:
        one.values[0] = -5.0


def test_hosts_see_one_array():
    a, parts = scalars()
    assert (a.shape, a.ndim, a.size, a.dtype, a.access) == ((10,), 1, 10, wp.float32, 2)
    assert a.list() == list(range(10)) and (a[3], a[-1]) == (3.0, 9.0) and str(a) == str(np.arange(10.0))
    a[4] = 40.0
    assert parts[3].list() == [40.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    a.fill_(2)
    a.assign(np.arange(10) * 2)
    assert parts[0].list() == [0.0, 2.0, 4.0] and wp.clone(a).list() == a.contiguous().list() == a.list()
    wp.copy(a, wp.ones(10, dtype=float))
    wp.copy(parts[3], a[wp.array([0, 1, 2, 3, 4, 5], dtype=int)])
    assert a.numpy().sum() == 10.0
    a.zero_()
    assert not wp.zeros_like(a).numpy().any() and not a.numpy().any() and a.to("cpu") is a


def test_hosts_see_the_elements_of_a_list():
    a, parts = scalars()
    some = a[wp.array(INDICES, dtype=int)]
    assert some.list() == INDICES and some.shape == (4,) and (some[0], some[3]) == (9.0, 5.0)
    some.fill_(-1.0)
    assert a.list() == [-1, 1, 2, 3, -1, -1, 6, 7, 8, -1]
    some.assign([1, 2, 3, 4])
    some[wp.array([1, 0], dtype=int)].assign([20, 10])
    some[2] = 30.0
    assert some.contiguous().list() == [10.0, 20.0, 30.0, 4.0] and parts[0].list() == [20.0, 1.0, 2.0]
    some.zero_()
    assert a.numpy().sum() == 27.0


def test_kernels_find_the_bucket():
    a, o = scalars()[0], wp.zeros(10, dtype=float)
    wp.launch(update, dim=10, inputs=[a, o])
    assert o.list() == [i + 30.0 for i in range(10)] and a.list() == [2.0 * i + 1.0 for i in range(10)]
    some, o = a[wp.array(INDICES, dtype=int)], wp.zeros(4, dtype=float)
    wp.launch(update, dim=4, inputs=[some, o])
    assert o.list() == [2.0 * i + 13.0 for i in INDICES] and some.list() == [4.0 * i + 3.0 for i in INDICES]


def test_indices_count_from_the_end_and_are_checked():
    @wp.kernel(gang_width=8)
    def shifted(a: Any, by: int, o: wp.array(dtype=float)):
        i = wp.tid()
        o[i] = a[i + by] + a[-1]

    a, o = scalars()[0], wp.zeros(2, dtype=float)
    wp.launch(shifted, dim=2, inputs=[a, -2, o], checked=True)
    assert o.list() == [17.0, 18.0]
    for array, by, wrong in ((a, 9, 10), (a, -12, -12), (a[wp.array([3, 4, 20], dtype=int)], 1, 20)):
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds of a Fabric array of float32"):
            wp.launch(shifted, dim=2, inputs=[array, by, o], checked=True)


def test_elements_may_be_arrays():
    a, rows = nested()
    assert (a.shape, a.ndim, a.dtype) == ((5,), 2, wp.float32) and a[3].list() == [4.0, 5.0, 6.0, 7.0]
    want = [r.numpy().sum() for r in rows]
    o, few = wp.zeros(5, dtype=float), wp.zeros(2, dtype=float)
    wp.launch(sums, dim=2, inputs=[a[wp.array([4, 1], dtype=int)], few])
    assert few.list() == [want[4], want[1]] and rows[4].list() == [-2.0, 3.0] and rows[0].list() == [2.0, 3.0]
    want = [r.numpy().sum() for r in rows]
    wp.launch(sums, dim=5, inputs=[a, o])
    assert o.list() == want and [r.numpy()[0] for r in rows] == [-2.0] * 5


def test_structs_hold_them():
    (a, _), (b, _), empty = scalars(), scalars(), Bag()
    bag = Bag(values=a, chosen=b[wp.array(INDICES, dtype=int)])
    wp.launch(through_structs, dim=4, inputs=[wp.array([bag], dtype=Bag), bag, empty])
    assert a.list() == [1, 2, 3, 4, 4, 10, 12, 14, 16, 9] and b.list() == [10, 1, 2, 3, 14, 15, 6, 7, 8, 19]
    back = wp.array([bag, empty], dtype=Bag).list()
    assert back[0].values.list() == a.list() and back[0].chosen.list() == bag.chosen.list() and back[1].values is None
    assert bag.to("cpu").values is a
    with pytest.raises(TypeError, match="expects a Warp indexed Fabric array, got fabricarray"):
        bag.chosen = a


def test_element_types_follow_the_interface():
    for kind, dtype in (
        (("f8", 3, 0, "position"), wp.vec3d),
        (("f4", 4, 0, "quat"), wp.quat),
        (("f4", 16, 0, "frame"), wp.mat44),
        (("u1", 4, 0, "color"), wp.vec4ub),
        (("b", 1, 0, ""), wp.bool),
    ):
        parts = [wp.ones(n, dtype=dtype) for n in (2, 1)]
        a = wp.fabricarray(interface(parts, kind), "x", dtype=dtype)
        a[wp.array([2], dtype=int)].zero_()
        assert a.dtype is dtype and parts[0].numpy().all() and not parts[1].numpy().any()
    assert wp.fabricarray(interface([]), "x").list() == [] and wp.fabricarray[float] == wp.fabricarray(dtype=float)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda a, i: wp.fabricarray(i, "y"), "no Fabric attribute 'y'; there are x"),
        (lambda a, i: wp.fabricarray({**i, "version": 2}, "x"), "version 2"),
        (lambda a, i: wp.fabricarray(3, "x"), "has __fabric_arrays_interface__, not 3"),
        (lambda a, i: wp.fabricarray(i, "x", dtype=int), "has elements float32, not"),
        (lambda a, i: wp.fabricarrayarray(i, "x"), r"has 1 dimension\(s\), not 2"),
        (lambda a, i: wp.fabricarray(interface([], ("f4", 1, 0)), "x"), "must contain five elements, got 4"),
        (lambda a, i: wp.fabricarray(interface([], ("f4", 6, 0, "matrix")), "x"), "square element count, got 6"),
        (lambda a, i: wp.fabricarray(interface([], ("u1", 9, 0, "text")), "x"), "no numbers: 'u1', role 'text'"),
        (lambda a, i: a[0:2], "not slice"),
        (lambda a, i: a[wp.zeros(2)], "array of int32"),
        (lambda a, i: a.assign([1.0]), "1 numbers cannot be assigned"),
        (lambda a, i: a[10], "index 10 is outside of 10"),
        (lambda a, i: a[wp.array([10], dtype=int)].numpy(), "outside of 10"),
        (lambda a, i: nested()[0].numpy(), "elements of this Fabric array are arrays"),
        (lambda a, i: wp.indexedfabricarray(wp.zeros(1), None), "not of a array"),
        (lambda a, i: wp.launch(needs_array, dim=1, inputs=[a]), r"annotate wp.fabricarray\(dtype=…\)"),
        (lambda a, i: wp.launch(cut, dim=1, inputs=[a]), "Fabric arrays cannot be cut in kernels"),
    ],
)
def test_what_does_not_fit_is_told(wrong, error):
    a, _ = scalars()
    with pytest.raises((ValueError, TypeError, IndexError), match=error):
        wrong(a, a._kept)


@wp.kernel
def needs_array(a: wp.array(dtype=float)):
    a[0] = 1.0


@wp.kernel
def cut(a: wp.fabricarray(dtype=float)):
    b = a[1:2]


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"counts": [5]}, "1 counts, 2 pointers: a bucket has one of each"),
        ({"pointers": [0, 0]}, "whose pointer is null"),
    ],
)
def test_buckets_that_do_not_fit_are_told(facts, error):
    data = interface([wp.zeros(3, dtype=float), wp.zeros(2, dtype=float)])
    data["attribs"]["x"].update(facts)
    with pytest.raises(wp.ArrayError, match=error):
        wp.fabricarray(data, "x")
