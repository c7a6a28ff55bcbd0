"""One table of rows says what arrays there are; every array has the shape, type and layout of its row."""

import numpy as np
import pytest

import treadle as wp
import treadle.mujoco as mjw
from tests.mujoco import models
from treadle.mujoco.algebra import COMPONENTS
from treadle.mujoco.planes import LINE, plane_bytes


@pytest.mark.parametrize("dtype, itemsize", [(wp.float32, 4), (wp.float64, 8)])
def test_arrays_are_as_their_rows_say(dtype, itemsize):
    mjm = models.tree()
    m = mjw.put_model(mjm, dtype=dtype)
    d = mjw.make_data(m, nworld=3)
    for table in (m, m.opt, d):
        for row in type(table).rows():
            array = getattr(table, row.name)
            values = array.numpy()
            assert array.shape == table.extent(row), row
            assert values.itemsize == {"int": 4, "double": 8}.get(row.kind, itemsize), row
            assert values.size == int(np.prod(array.shape)) * COMPONENTS[row.kind], row


def test_worlds_are_neighbours_and_planes_are_padded():
    d = mjw.make_data(models.tree(), nworld=100)
    for row in mjw.Data.rows():
        array = getattr(d, row.name)
        assert array.strides[0] == (8 if row.kind == "double" else 4), row
        components = (array.component_stride,) if COMPONENTS[row.kind] > 1 else ()
        for stride in (*array.strides[1:], *components):
            assert stride % LINE == 0, row
        assert (array.ptr or 0) % LINE == 0, row


@pytest.mark.parametrize("nworld", [1, 15, 16, 17, 2048, 4096])
def test_a_plane_holds_its_worlds_and_an_odd_number_of_lines(nworld):
    size = plane_bytes(nworld, 4)
    assert size >= nworld * 4 and size < nworld * 4 + 2 * LINE
    assert (size // LINE) % 2 == 1


def test_another_array_takes_a_fields_place_only_if_it_fits():
    d = mjw.make_data(models.tree(), nworld=3)
    mine = wp.full(d.ctrl.shape, 0.25, dtype=float)
    d.ctrl = mine
    assert d.ctrl is mine
    with pytest.raises(ValueError, match=r"ctrl has shape \(3, 5\) \(nworld, nu\).*not \(2, 5\)"):
        d.ctrl = wp.zeros((2, 5), dtype=float)
    with pytest.raises(TypeError, match="ctrl.assign"):
        d.ctrl = np.zeros((3, 5))


def test_a_replaced_array_is_used_by_the_next_step():
    mjm = models.pair()
    m = mjw.put_model(mjm)
    kept, swapped = mjw.make_data(m, 2), mjw.make_data(m, 2)
    mjw.step(m, swapped)
    mjw.step(m, kept)
    values = np.full((2, mjm.nu), 0.8, dtype=np.float32)
    swapped.ctrl = wp.array(values, dtype=float)
    kept.ctrl.assign(values)
    mjw.step(m, swapped)
    mjw.step(m, kept)
    np.testing.assert_array_equal(swapped.qvel.numpy(), kept.qvel.numpy())


def test_the_table_documents_itself():
    text = mjw.Data.document()
    assert "qpos: state real (nworld, nq), joint positions" in text
    assert len(text.splitlines()) == len(list(mjw.Data.rows()))


def test_bytes_of_one_world_are_counted():
    mjm = models.pair()
    d = mjw.make_data(mjm, nworld=1)
    mjw.step(mjw.put_model(mjm), d)
    assert d.nbytes >= d.qpos.numpy().nbytes + d.qvel.numpy().nbytes


def test_an_error_inside_of_a_property_is_shown_as_it_is(monkeypatch):
    d = mjw.make_data(models.pair(), nworld=1)
    monkeypatch.setattr(type(d), "nbytes", property(lambda d: d.qpos.weight))
    with pytest.raises(AttributeError, match="weight"):
        d.nbytes  # noqa: B018 - reading it is what fails
