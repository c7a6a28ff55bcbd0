"""Structs: fields convert, arrays specialise the type, and values travel into kernels and back."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as wp


@wp.struct
class Inner:
    weight: float
    axis: wp.vec3


@wp.struct
class Outer:
    count: int
    inner: Inner
    values: wp.array(dtype=float)
    flag: bool


@wp.kernel
def read(s: Outer, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = s.values[i] * s.inner.weight + s.inner.axis[1] + float(s.count)


@wp.kernel
def build(xs: wp.array(dtype=Inner)):
    i = wp.tid()
    made = Inner()
    made.weight = float(i)
    made.axis = wp.vec3(1.0, 2.0, 3.0) * float(i)
    xs[i] = made
    xs[i].axis[2] = -1.0


def test_fields_start_at_zero_and_convert():
    s = Outer()
    assert (s.count, s.flag, s.values, s.inner.weight) == (0, False, None, 0.0)
    s.inner.axis = (1, 2, 3)
    assert list(s.inner.axis) == [1.0, 2.0, 3.0]
    s.count = np.int64(7)
    assert s.count == 7


def test_wrong_fields_are_named():
    s = Outer()
    with pytest.raises(wp.KernelAttributeError, match="no field 'colour'"):
        s.colour = 1
    with pytest.raises(wp.LaunchTypeError, match="Struct field 'values' expects a Warp array, got float"):
        s.values = 3.0
    with pytest.raises(wp.LaunchTypeError, match="not a whole number"):
        s.count = 1.5
    with pytest.raises(wp.LaunchTypeError, match="Struct field 'count': 4294967296 does not fit int32"):
        s.count = 2**32
    with pytest.raises(TypeError, match="4 fields, 5 values"):
        Outer(1, Inner(), None, True, 5)


def test_fields_keep_the_class_of_numbers_and_take_components():
    s = Outer()
    assert type(s.count) is wp.int32 and type(s.inner.weight) is wp.float32
    s.count, s.inner.weight = 3, wp.float32(0.5)
    assert type(s.count) is int and type(s.inner.weight) is wp.float32
    s.inner.axis = wp.vec3(1.0, 2.0, 3.0)
    s.inner.axis = None
    assert s.inner.axis == wp.vec3()
    with pytest.raises(TypeError, match="Struct field 'axis' expects vec3f but got a single value"):
        s.inner.axis = 2.0
    with pytest.warns(DeprecationWarning, match="struct field 'axis', is deprecated"):
        s.inner.axis = np.float32(2.0)
    assert s.inner.axis == wp.vec3(2.0, 2.0, 2.0)
    ints, square = wp.zeros(1, dtype=int), wp.zeros((1, 1))
    for wrong, message in ((ints, "dtype float32, got int32"), (square, "1 dim.* 2")):
        with pytest.raises(TypeError, match=f"Struct field 'values' expects .*{message}"):
            s.values = wrong


def test_fields_hold_values_not_variables():
    s, inner, v = Outer(), Inner(), wp.vec3(1.0, 2.0, 3.0)
    inner.axis, s.inner = v, inner
    v[0], inner.weight = 9.0, 9.0
    assert s.inner.weight == 0.0 and s.inner.axis == inner.axis == wp.vec3(1.0, 2.0, 3.0)
    s.inner.axis[1] = 5.0
    assert s.inner.axis[1] == 5.0 and inner.axis[1] == 2.0


@pytest.mark.host
def test_copies_have_their_own_structs():
    s = Outer(count=2, values=wp.ones(3, dtype=float))
    s.inner.axis = wp.vec3(1.0, 2.0, 3.0)
    t, u = Outer(), s.to("cpu")
    t.assign(s)
    t.inner.axis[0] = 9.0
    assert (t.count, t.values) == (2, s.values) and s.inner.axis[0] == 1.0
    assert u == s and u.values is s.values and u.inner is not s.inner
    with pytest.raises(TypeError, match="cannot be assigned a Inner"):
        t.assign(Inner())


def test_structs_have_no_parents():
    with pytest.raises(wp.KernelTypeError, match="type Inner instead. Warp structs must be defined as base classes"):

        @wp.struct
        class Longer(Inner):
            more: float


def test_kernels_read_structs_with_arrays():
    s = Outer(count=2)
    s.inner.weight, s.inner.axis = 3.0, wp.vec3(0.0, 0.5, 0.0)
    s.values = wp.array(np.arange(5.0), dtype=float)
    out = wp.zeros(5, dtype=float)
    wp.launch(read, dim=5, inputs=[s, out])
    np.testing.assert_array_equal(out.numpy(), np.arange(5) * 3.0 + 2.5)
    s.values = wp.array(np.arange(10.0), dtype=float)[::2]  # another layout is another type, compiled when launched
    wp.launch(read, dim=5, inputs=[s, out])
    np.testing.assert_array_equal(out.numpy(), np.arange(0, 10, 2) * 3.0 + 2.5)


def test_arrays_of_structs():
    xs = wp.zeros(3, dtype=Inner)
    wp.launch(build, dim=3, inputs=[xs])
    found = xs.numpy()
    np.testing.assert_array_equal(found["weight"], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(found["axis"], [[0, 0, -1], [1, 2, -1], [2, 4, -1]])


def test_another_declaration_is_another_type():
    @wp.struct
    class Inner:  # noqa: F811
        weight: float
        axis: wp.vec3

    s = Outer()
    with pytest.raises(wp.LaunchTypeError, match="Struct field 'inner' must be a Inner"):
        s.inner = Inner()


def test_a_field_without_a_meaning_is_named():
    with pytest.raises(TypeError, match="field 'items' of struct Bag: list is no type"):

        @wp.struct
        class Bag:
            items: list


def test_a_struct_of_a_module_that_is_not_registered():
    names = {"wp": wp, "__name__": "nowhere_to_be_found"}
    exec("@wp.struct\nclass Lone:\n    x: 'wp.vec3'\n", names)
    assert names["Lone"]().x == wp.vec3()


@wp.struct
class Entry:
    key: int
    cls: float
    shape: int


@wp.kernel
def count_up(entries: wp.array(dtype=Entry), step: Entry):
    i = wp.tid()
    entries[i].key = step.key + step.shape * i
    entries[i].cls = step.cls


def test_fields_may_have_the_names_of_attributes():
    entries = wp.zeros(3, dtype=Entry)
    wp.launch(count_up, dim=3, inputs=[entries, Entry(key=5, cls=0.5, shape=2)])
    assert entries.numpy()["key"].tolist() == [5, 7, 9] and (entries.numpy()["cls"] == 0.5).all()


@pytest.mark.parametrize("name", ["numpy_dtype", "treadle_type", "_type", "__init__"])
def test_a_field_cannot_hide_what_structs_need(name):
    with pytest.raises(TypeError, match=f"field '{name}' of struct Odd: structs have an attribute of that name"):
        wp.struct(type("Odd", (), {"__annotations__": {name: int}, "__module__": __name__}))


@wp.struct
class Nothing:
    pass


@wp.struct
class Around:
    before: Nothing
    count: int
    after: Nothing


@wp.func
def one_more(nothing: Nothing, around: Around):
    made = around
    made.count += 1
    return made


@wp.kernel
def with_nothing(nothing: Nothing, around: Around, many: wp.array(dtype=Around), empty: wp.array(dtype=Nothing)):
    i = wp.tid()
    made = one_more(Nothing(), around)
    if i > 1:
        made = one_more(nothing, made)
    many[i] = made
    empty[i] = made.after
    many[i].count += Around(nothing, 3, empty[i]).count * 10


def test_structs_without_fields():
    around, many = Around(), wp.zeros(3, dtype=Around)
    around.count = 5
    wp.launch(with_nothing, dim=3, inputs=[Nothing(), around, many, wp.zeros(3, dtype=Nothing)])
    assert [a.count for a in many.list()] == [36, 36, 37]
