"""Data for worlds: made for a model, taken from MuJoCo's data, and given back to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

import treadle as wp
from treadle.mujoco.capacity import Capacity
from treadle.mujoco.data import Data
from treadle.mujoco.fields import Field
from treadle.mujoco.model import Model, sizes_of
from treadle.mujoco.reset import reset_data
from treadle.mujoco.structure import actuator_columns


def _sizes(
    mjm: mujoco.MjModel | Model, nworld: int, nconmax: int | None, naconmax: int | None, njmax: int | None
) -> dict[str, int]:
    known = isinstance(mjm, Model)
    capacity = mjm.capacity if known else Capacity.of(mjm)
    if nconmax is None and naconmax is not None:  # contacts of all worlds together
        nconmax = -(-naconmax // nworld)
    return {**(mjm.sizes if known else sizes_of(mjm)), **capacity.sizes(nconmax, njmax)}


def _precision(mjm: mujoco.MjModel | Model, dtype: Any) -> Any:
    if dtype not in (None, float):
        return dtype
    return mjm.real if isinstance(mjm, Model) else wp.float32


def make_data(
    mjm: mujoco.MjModel | Model,
    nworld: int = 1,
    nconmax: int | None = None,
    nccdmax: int | None = None,
    njmax: int | None = None,
    njmax_nnz: int | None = None,
    naconmax: int | None = None,
    naccdmax: int | None = None,
    nvmax: int | None = None,
    *,
    dtype: Any = None,
) -> Data:
    """Data of ``nworld`` worlds at the model's reference pose, at rest.

    Args:
        mjm: MuJoCo's model, or beyond MuJoCo Warp the result of `put_model`.
        nworld: number of worlds.
        nconmax, nccdmax, njmax, njmax_nnz, naconmax, naccdmax, nvmax: capacities for contacts, constraints and sleeping
            that MuJoCo Warp asks for; taken and not needed here.
        dtype: precision, that of the model; if None that of ``mjm`` after `put_model`, else ``wp.float32``.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
        >>> d = mjw.make_data(mujoco.MjModel.from_xml_string(xml), nworld=3)
        >>> d.qpos.shape, d.xpos.numpy().shape
        ((3, 1), (3, 2, 3))
    """
    d = Data(_precision(mjm, dtype), _sizes(mjm, nworld, nconmax, naconmax, njmax), nworld)
    if isinstance(mjm, Model):
        reset_data(mjm, d)
        return d
    d.fill(Data.qpos, mjm.qpos0)
    d.fill(Data.eq_active, mjm.eq_active0)
    for row in (Data.history, Data.plastic):
        if d.extent(row)[1]:
            d.fill(row, getattr(mujoco.MjData(mjm), row.name))
    mocap = np.argsort(mjm.body_mocapid)[mjm.nbody - mjm.nmocap :]
    d.fill(Data.mocap_pos, mjm.body_pos[mocap])
    d.fill(Data.mocap_quat, mjm.body_quat[mocap])
    return d


def put_data(
    mjm: mujoco.MjModel,
    mjd: mujoco.MjData,
    nworld: int = 1,
    nconmax: int | None = None,
    nccdmax: int | None = None,
    njmax: int | None = None,
    njmax_nnz: int | None = None,
    naconmax: int | None = None,
    naccdmax: int | None = None,
    nvmax: int | None = None,
    *,
    dtype: Any = None,
) -> Data:
    """Data of ``nworld`` worlds, each a copy of ``mjd``; arguments as in `make_data`."""
    d = Data(_precision(mjm, dtype), _sizes(mjm, nworld, nconmax, naconmax, njmax), nworld)
    for row, values in fields_of(mjm, mjd):
        if "njmax" in row.shape or "nconmax" in row.shape:
            symbol = row.shape[1]
            if len(values) > d.sizes[symbol]:
                d.grow(symbol, len(values))
    for row, values in fields_of(mjm, mjd):
        if row.shape[1:2] in (("njmax",), ("nconmax",), ("nwrappoint",)):
            target = d.read(row).numpy()
            target[:, : len(values)] = np.reshape(values, (len(values), *target.shape[2:]))
        else:
            d.fill(row, values)
    d.pushed = bool(np.any(mjd.xfrc_applied))
    return d


def get_data_into(result: mujoco.MjData, mjm: mujoco.MjModel, d: Data, world_id: int = 0) -> None:
    """Copy one world into MuJoCo's ``result``: state, controls and derived fields.

    Raises:
        IndexError: there is no world ``world_id``.
    """
    if not 0 <= world_id < d.nworld:
        raise IndexError(f"world_id is {world_id}, but there are {d.nworld} worlds")
    for row in Data.rows():
        if row.role == "scratch" or not hasattr(result, row.name) or row.name in _PACKED:
            continue
        values = d.read(row).numpy()[world_id]
        if row.name == "time":
            result.time = float(values)
        elif row.shape[1:2] not in (("njmax",), ("nconmax",)) and len(row.shape) > 1:
            target = getattr(result, row.name)
            target[...] = np.reshape(values, target.shape)
    _give_moments(result, mjm, d.read(Data.actuator_moment).numpy()[world_id])
    _give_constraints(result, mjm, d, world_id)


# What MuJoCo keeps in another form.
_PACKED = ("actuator_moment", "efc_J", "solver_niter", "ncon", "ne", "nf", "nl", "nefc")


def _give_moments(result: mujoco.MjData, mjm: mujoco.MjModel, values: np.ndarray) -> None:
    columns = actuator_columns(mjm)
    if len(result.moment_colind) < len(columns["moment_colind"]):
        return  # MuJoCo counts, of bodies that adhere, only what they touch
    result.actuator_moment[: len(values)] = values
    result.moment_colind[: len(values)] = columns["moment_colind"]
    result.moment_rownnz[:] = columns["moment_rownnz"]
    result.moment_rowadr[:] = columns["moment_rowadr"]


def _give_constraints(result: mujoco.MjData, mjm: mujoco.MjModel, d: Data, world: int) -> None:
    """Contacts and rows of constraints, for which MuJoCo's arrays are made anew."""
    counts = {name: int(d.field(name).numpy()[world]) for name in ("ncon", "ne", "nf", "nl", "nefc")}
    counts["ncon"], counts["nefc"] = min(counts["ncon"], d.sizes["nconmax"]), min(counts["nefc"], d.sizes["njmax"])
    ncon, nefc = counts["ncon"], counts["nefc"]
    mujoco._functions._realloc_con_efc(result, ncon=ncon, nefc=nefc, nJ=nefc * mjm.nv)
    for name in ("ncon", "ne", "nf", "nl"):
        setattr(result, name, counts[name])
    result.solver_niter[0] = d.field("solver_niter").numpy()[world]
    for row in Data.rows():
        if row.role != "scratch" and row.shape[1:2] == ("njmax",) and row.name != "efc_J" and hasattr(result, row.name):
            getattr(result, row.name)[:nefc] = d.read(row).numpy()[world, :nefc]
    J = d.field("efc_J").numpy()[world, :nefc]
    if mujoco.mj_isSparse(mjm):
        mujoco.mju_dense2sparse(result.efc_J, J, result.efc_J_rownnz, result.efc_J_rowadr, result.efc_J_colind)
    else:
        result.efc_J[: J.size] = J.reshape(-1)
    for attribute, name in _CONTACT.items():
        getattr(result.contact, attribute)[:ncon] = np.reshape(
            d.field(name).numpy()[world, :ncon], getattr(result.contact, attribute)[:ncon].shape
        )
    for k, name in enumerate(("geom1", "geom2")):  # MuJoCo keeps them twice
        result.contact.geom[:ncon, k] = d.field(f"contact_{name}").numpy()[world, :ncon]
        getattr(result.contact, name)[:ncon] = result.contact.geom[:ncon, k]
    for name in ("flex", "elem", "vert"):
        getattr(result.contact, name)[:ncon] = -1  # what touches are geoms
    pushes = result.contact.efc_address[:ncon] >= 0
    slide = result.contact.friction[:ncon, 0] / np.sqrt(mjm.opt.impratio)
    result.contact.mu[:ncon] = np.where(pushes & (result.contact.dim[:ncon] > 1), slide, 0.0)


_CONTACT = {
    name: f"contact_{name}"
    for name in ("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp", "dim",
                 "efc_address")
}  # fmt: skip


def fields_of(mjm: mujoco.MjModel, mjd: mujoco.MjData) -> Iterator[tuple[Field, np.ndarray]]:
    """The fields that MuJoCo's data has too, each with its values there, in the form of ours.

    Of contacts, rows of constraints and points of tendons only those that there are.
    """
    for row in Data.rows():
        values = None if row.role == "scratch" else value_of(mjm, mjd, row.name)
        if values is not None:
            yield row, values


def value_of(mjm: mujoco.MjModel, mjd: mujoco.MjData, name: str) -> np.ndarray | None:
    """The field ``name`` of MuJoCo's data in the form of ours; None if MuJoCo does not have it."""
    if name == "actuator_moment":  # MuJoCo packs rows as they come, we have a fixed pattern
        columns = actuator_columns(mjm)
        dense = np.zeros((mjm.nout, mjm.nv))
        mujoco.mju_sparse2dense(dense, mjd.actuator_moment, mjd.moment_rownnz, mjd.moment_rowadr, mjd.moment_colind)
        return dense[np.repeat(np.arange(mjm.nout), columns["moment_rownnz"]), columns["moment_colind"]]
    if name in ("wrap_obj", "wrap_xpos"):
        points = np.reshape(getattr(mjd, name), (2 * mjm.nwrap, 3 if name == "wrap_xpos" else 1))
        return points[: int(mjd.ten_wrapnum.sum())]
    if name == "efc_J":
        dense = np.zeros((mjd.nefc, mjm.nv))
        if not mujoco.mj_isSparse(mjm):
            return np.reshape(mjd.efc_J[: dense.size], dense.shape)
        mujoco.mju_sparse2dense(dense, mjd.efc_J, mjd.efc_J_rownnz, mjd.efc_J_rowadr, mjd.efc_J_colind)
        return dense
    if name in ("contact_geom1", "contact_geom2"):
        return mjd.contact.geom[:, int(name[-1]) - 1]
    if name.removeprefix("contact_") in _CONTACT:
        return getattr(mjd.contact, name.removeprefix("contact_"))
    if name == "solver_niter":  # one number for each island
        return np.asarray(mjd.solver_niter[:1]).reshape(())
    return np.asarray(getattr(mjd, name)) if hasattr(mjd, name) else None
