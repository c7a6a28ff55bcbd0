"""Data for worlds: made for a model, taken from MuJoCo's data, and given back to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

from treadle.mujoco.arguments import instance, of_model, precision, room, whole
from treadle.mujoco.capacity import Capacity
from treadle.mujoco.contents import contents
from treadle.mujoco.data import Data
from treadle.mujoco.fields import Field
from treadle.mujoco.model import Model, sizes_of
from treadle.mujoco.reset import reset_data
from treadle.mujoco.stages import TABLE
from treadle.mujoco.structure import actuator_columns, frames


def _new(mjm: mujoco.MjModel | Model, nworld: int, dtype: Any, rooms: dict[str, int | None]) -> Data:
    """Data of zeros, with the room that ``rooms`` ask for."""
    known = isinstance(mjm, Model)
    real = precision(dtype, mjm.real if known else None)
    nworld = whole("nworld", nworld, 1)
    rooms = {name: room(name, value) for name, value in rooms.items()}
    nconmax, naconmax = rooms["nconmax"], rooms["naconmax"]
    if nconmax is None and naconmax is not None:  # contacts of all worlds together
        nconmax = -(-naconmax // nworld)
    capacity = mjm.capacity if known else Capacity.of(mjm)
    sizes = mjm.sizes if known else sizes_of(mjm)
    return Data(real, {**sizes, **capacity.sizes(nconmax, rooms["njmax"])}, nworld)


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
        nconmax, njmax: room for contacts and rows of constraints in each world; if None what the model may need. It
            grows where worlds need more, except within captures (`Data.check`).
        naconmax: room for contacts of all worlds together, in place of ``nconmax``.
        nccdmax, njmax_nnz, naccdmax, nvmax: other capacities of MuJoCo Warp, which are not needed here.
        dtype: precision, that of the model; if None that of ``mjm`` after `put_model`, else ``wp.float32``.

    Raises:
        TypeError: ``mjm`` is no model, a number no integer, or there is no such precision, or the model has another.
        ValueError: ``nworld`` is less than 1, or a capacity less than 0.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
        >>> d = mjw.make_data(mujoco.MjModel.from_xml_string(xml), nworld=3)
        >>> d.qpos.shape, d.xpos.numpy().shape
        ((3, 1), (3, 2, 3))
    """
    instance("mjm", mjm, (mujoco.MjModel, Model), "MuJoCo's MjModel, or what put_model returns")
    d = _new(mjm, nworld, dtype, dict(nconmax=nconmax, nccdmax=nccdmax, njmax=njmax, njmax_nnz=njmax_nnz,
                                      naconmax=naconmax, naccdmax=naccdmax, nvmax=nvmax))  # fmt: skip
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
    """Data of ``nworld`` worlds, each a copy of ``mjd``: of its state, controls and derived fields.

    Args:
        mjm: MuJoCo's model.
        mjd: MuJoCo's data for it.
        nworld, nconmax, nccdmax, njmax, njmax_nnz, naconmax, naccdmax, nvmax, dtype: as for `make_data`.

    Raises:
        TypeError, ValueError: as for `make_data`; or ``mjd`` is no MjData, or that of another model.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> mjm = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
        >>> mjd = mujoco.MjData(mjm)
        >>> mjd.qpos[0] = 0.5
        >>> mjw.put_data(mjm, mjd, nworld=2).qpos.numpy()[:, 0]
        array([0.5, 0.5], dtype=float32)
    """
    instance("mjm", mjm, mujoco.MjModel, "MuJoCo's MjModel")
    of_model("mjd", mjd, mjm)
    d = _new(mjm, nworld, dtype, dict(nconmax=nconmax, nccdmax=nccdmax, njmax=njmax, njmax_nnz=njmax_nnz,
                                      naconmax=naconmax, naccdmax=naccdmax, nvmax=nvmax))  # fmt: skip
    for row, values in fields_of(mjm, mjd):
        if "njmax" in row.shape or "nconmax" in row.shape:
            symbol = row.shape[1]
            if len(values) > d.sizes[symbol]:
                d.grow(symbol, len(values))
    for row, values in fields_of(mjm, mjd):
        if row.shape[1:2] in (("njmax",), ("nconmax",), ("nwrappoint",)):
            with contents(d.read(row)) as target:
                target[:, : len(values)] = np.reshape(values, (len(values), *target.shape[2:]))
        else:
            d.fill(row, values)
    d.pushed = bool(np.any(mjd.xfrc_applied))
    for stage in TABLE:  # derived fields count as those of the state
        d.mark(stage.name)
    return d


def get_data_into(result: mujoco.MjData, mjm: mujoco.MjModel, d: Data, world_id: int = 0) -> None:
    """Copy one world into MuJoCo's ``result``: state, controls, derived fields and the numbers of warnings.

    What this engine does not compute stays as it is in ``result``: islands, what is asleep, what solvers and
    integrators keep for themselves, timers, statistics of solvers but ``solver_niter``, ``userdata``. Matrices of
    solvers of the dual problem, ``efc_AR`` and ``efc_Y``, are empty afterwards, ``nA`` and ``nY`` 0.

    Args:
        result: MuJoCo's data, which is written to.
        mjm: MuJoCo's model.
        d: the worlds.
        world_id: number of the world.

    Raises:
        TypeError: an argument is of another type.
        ValueError: ``result`` or ``d`` is that of another model.
        IndexError: there is no world ``world_id``.

    Example:
        >>> import mujoco, treadle.mujoco as mjw
        >>> body = "<body><joint axis='0 1 0'/><geom size='.1' pos='.2 0 0'/></body>"
        >>> mjm = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
        >>> m, d, mjd = mjw.put_model(mjm), mjw.make_data(mjm, nworld=4), mujoco.MjData(mjm)
        >>> mjw.step(m, d, nstep=10)
        >>> mjw.get_data_into(mjd, mjm, d, world_id=3)
        >>> print(round(mjd.time, 3), mjd.xpos.shape)
        0.02 (2, 3)
    """
    instance("mjm", mjm, mujoco.MjModel, "MuJoCo's MjModel")
    of_model("result", result, mjm)
    instance("d", d, Data, "what make_data or put_data returns")
    for name, size in sizes_of(mjm).items():
        if d.sizes[name] != size:
            raise ValueError(f"d has {name} = {d.sizes[name]}, the model {size}: it was made for another model")
    if not 0 <= whole("world_id", world_id) < d.nworld:
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
    _give_turns(result, mjm)
    for name, counts in d.warning.items():
        result.warning[int(getattr(mujoco.mjtWarning, f"mjWARN_{name}"))].number = int(counts[world_id])
    for name in ("energypos", "energyvel", "subtreevel", "rnepost"):
        setattr(result, f"flg_{name}", False)  # so that MuJoCo computes what was not asked for here
    _give_moments(result, mjm, d.read(Data.actuator_moment).numpy()[world_id])
    _give_constraints(result, mjm, d, world_id)


# What MuJoCo keeps in another form.
_PACKED = ("actuator_moment", "efc_J", "solver_niter", "ncon", "ne", "nf", "nl", "nefc")


def _give_turns(result: mujoco.MjData, mjm: mujoco.MjModel) -> None:
    """Orientations as quaternions of what is fixed to bodies, which here are matrices alone."""
    found = frames(mjm)
    for name, quat, bodies in (
        ("xiquat", "body_iquat", slice(None)),
        ("geom_xquat", "geom_quat", mjm.geom_bodyid),
        ("site_xquat", "site_quat", mjm.site_bodyid),
    ):
        if hasattr(result, name):  # version 3 does not have them
            getattr(result, name)[:] = _product(result.xquat[bodies], found[quat])


def _product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Products of quaternions, row by row."""
    scalar = p[:, :1] * q[:, :1] - np.sum(p[:, 1:] * q[:, 1:], axis=1, keepdims=True)
    return np.hstack([scalar, p[:, :1] * q[:, 1:] + q[:, :1] * p[:, 1:] + np.cross(p[:, 1:], q[:, 1:])])


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
    _give_tendon_rows(result, mjm)
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
    apart = result.contact.dist[:ncon] >= result.contact.includemargin[:ncon]
    result.contact.exclude[:ncon] = np.select([apart, ~pushes], [_IN_GAP, _MOVES_NOTHING], 0)


def _give_tendon_rows(result: mujoco.MjData, mjm: mujoco.MjModel) -> None:
    """The first row of constraints of each tendon, -1 if it has none."""
    if not hasattr(result, "tendon_efcadr"):  # version 3 does not have it
        return
    result.tendon_efcadr[:] = -1
    kind = mujoco.mjtConstraint
    own = (int(kind.mjCNSTR_FRICTION_TENDON), int(kind.mjCNSTR_LIMIT_TENDON))
    for row in reversed(range(result.nefc)):
        number = int(result.efc_id[row])
        if result.efc_type[row] in own:
            result.tendon_efcadr[number] = row
        elif result.efc_type[row] == int(kind.mjCNSTR_EQUALITY) and mjm.eq_type[number] == mujoco.mjtEq.mjEQ_TENDON:
            for tendon in (mjm.eq_obj1id[number], mjm.eq_obj2id[number]):
                if tendon >= 0:
                    result.tendon_efcadr[tendon] = row


_IN_GAP, _MOVES_NOTHING = 1, 3  # reasons why a contact has no rows (mjContact.exclude)
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
