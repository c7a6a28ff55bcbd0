"""``wp.jvp``: run a kernel forwards together with the directional derivative of all that it computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..base.errors import LaunchError, LaunchTypeError
from ..runtime import watch
from ..runtime.array import allocate, array
from ..runtime.elements import element
from ..types.core import Indexed, Struct, Type, View
from ..types.layout import has_floats, has_tangent
from ..types.spelling import spell
from .kernel import Kernel
from .launch import bound
from .parts import span_of
from .plan import Plan
from .read_only import check_writes
from .struct import convert, zero_of


def jvp(
    kernel: Kernel,
    dim: int | Sequence[int],
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    tangents: Sequence[Any] | Mapping[str, Any] = (),
    device: Any = None,
) -> list[Any]:
    """Launch ``kernel``, and carry tangents beside its values: the Jacobian-vector product. Beyond Warp.

    The launch does what ``wp.launch`` does, bit for bit. Beside each float goes its directional derivative, in the
    direction that ``tangents`` give. Memory is no more than the tangents of the arrays; loops of any kind, branches and
    arrays stepped in place cost about one more evaluation. Many outputs of few inputs are cheaper this way than by a
    tape.

    A tangent goes with its array: what the kernel does to an array in place, it does to the tangent in place. So a
    chain of launches is a chain of ``jvp`` with the same arrays and tangents. Arrays that share memory share tangents.
    A tape records ``jvp`` like any launch: gone back through, the gradient of a tangent is the gradient, and that of a
    value holds second derivatives (``wp.hvp``).

    Args:
        kernel: what ``@wp.kernel`` made.
        dim: extent of the grid, as for ``wp.launch``.
        inputs, outputs: the arguments, in order.
        tangents: one for each argument, in order, or by parameter name; None, or left out, is zero. For an array an
            array of the same dtype and shape (updated in place), or anything that such an array can be made of; for a
            scalar, vector or matrix a value of its type; for a struct a struct of that class, whose arrays are
            tangents.
        device: where to run; the arrays' device.

    Returns: the tangents of ``outputs``, one each: the arrays that were given, or new ones; None for outputs that hold
        no floats.

    Raises:
        KernelGradientError: the derivative is asked of an operation that has none; the message names the line.
        LaunchTypeError: a tangent does not fit its argument; what is written, an argument or its tangent, must not be.
        LaunchError: arrays share memory and their tangents differ there; arguments that do not fit the kernel.

    >>> import treadle as wp
    >>> @wp.kernel
    ... def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    ...     i = wp.tid()
    ...     y[i] = x[i] * x[i]
    >>> x = wp.array([1.0, 2.0, 3.0], dtype=float)
    >>> y = wp.zeros(3, dtype=float)
    >>> (dy,) = wp.jvp(square, dim=3, inputs=[x], outputs=[y], tangents=[[1.0, 0.0, 10.0]])
    >>> y.list(), dy.list()
    ([1.0, 4.0, 9.0], [2.0, 0.0, 60.0])
    """
    if not isinstance(kernel, Kernel):
        raise LaunchTypeError(f"wp.jvp takes a kernel, not {type(kernel).__name__}", hint="decorate it with @wp.kernel")
    where, dims, values, types = bound(kernel, dim, [*inputs, *outputs], device)
    names = [p.name for p in kernel.parameters]
    given = _by_name(kernel, names, tangents)
    beside = Beside(values, types, names, given)
    run_beside(kernel, dims, beside, where)
    beside.give_back()
    return [beside.result(name) for name in names[len(values) - len(outputs) :]] if outputs else []


def run_beside(kernel: Kernel, dims: tuple[int, ...], beside: Beside, where: Any = None) -> set[str]:
    """Launch ``kernel`` with the tangents of ``beside``, and tell tapes; the paths of the arrays that had some (and, as
    ``"grad …"``, of gradients)."""
    overload = kernel.overload(beside.types, where)
    doubled = overload.doubled.get(beside.active)
    if doubled is None:
        doubled = overload.doubled[beside.active] = Doubled(kernel, overload, beside.active)
    program = doubled.variant(dims).program
    needed = set(program.entry.meta["tangents"])
    beside.provide(needed)
    args = [*beside.values, *beside.arguments()]
    check_writes(doubled, doubled.types, program, args)
    packed = program.pack(args)
    if program.meets(packed):  # the same in thread order
        program = doubled.variant(dims, shared=True).program
    command = program.command(packed, dims, args)
    if watch.watchers:
        watch.run(doubled.planned(program), dims, args, command, True)
    else:
        command()
    return needed


def _by_name(kernel: Kernel, names: list[str], tangents: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """The tangents that are not zero, by parameter name."""
    if not isinstance(tangents, Mapping):
        if len(tangents) > len(names):
            raise LaunchError(f"kernel {kernel.key} has {len(names)} arguments, {len(tangents)} tangents were given")
        tangents = dict(zip(names, tangents))
    unknown = [name for name in tangents if name not in names]
    if unknown:
        raise LaunchError(f"kernel {kernel.key} has no argument {unknown[0]!r}; it has {', '.join(names)}")
    return {name: t for name, t in tangents.items() if t is not None}


class Beside:
    """The tangents beside the arguments of one launch.

    ``arrays`` are the arrays of floats among the arguments, those in structs included, by path (``"a"``,
    ``"s.field"``); ``given`` the tangents that came with them. Arrays whose memory overlaps form a group, and
    share tangents. ``active``: the paths of all that may have tangents other than zero.
    """

    def __init__(self, values: list[Any], types: tuple[Type, ...], names: list[str], given: dict[str, Any]):
        self.values, self.types, self.names, self.tangents = values, types, names, given
        self.arrays: dict[str, array] = {}
        self.given: dict[str, Any] = {}
        self.made: dict[str, array] = {}
        active = set()
        for name, value, t in zip(names, values, types):
            tangent = given.get(name)
            if tangent is not None:
                active.add(name)
                if not has_tangent(t) or (isinstance(t, Struct) and type(tangent) is not type(value)):
                    raise LaunchTypeError(f"tangent of argument {name!r}: {_misfit(t, tangent)}")
            for path, a, own in _arrays(name, value, t, tangent):
                self.arrays[path] = a
                if own is not None:
                    self.given[path] = own
        self.groups = _groups(self.arrays)
        for group in self.groups:
            if len(group) > 1:  # what is stored to one may be read from another
                active.update(group)
        self.active = tuple(sorted(active))

    # ---- memory

    def provide(self, needed: set[str]) -> None:
        """Make the tangents of the arrays at the paths ``needed``, and of those that came with some."""
        for group in self.groups:
            wanted = not needed.isdisjoint(group) or not self.given.keys().isdisjoint(group)
            if wanted and group[0] not in self.made:
                self._provide(group)

    def _provide(self, group: list[str]) -> None:
        if len(group) == 1:
            a, given = self.arrays[group[0]], self.given.get(group[0])
            if isinstance(given, array) and _same_layout(a, given):
                self.made[group[0]] = given
                return
        low = min(span_of(self.arrays[path])[0] for path in group)
        high = max(span_of(self.arrays[path])[1] for path in group)
        base, start = self._owner(group, low, high)
        if base is None:
            device, room = self.arrays[group[0]].device, (max(high - low, 1),)
            base, start = allocate(element(np.uint8), room, device, False, zeroed=True), low
        for path in group:
            a = self.arrays[path]
            self.made[path] = base._with_grad(partial(_part, like=a, offset=a._address - start))
        for path in group:
            if path in self.given and self.given[path] is not base:
                self._fill(path)
        if len(group) > 1:
            self._agree(group)
        for path in group:
            if getattr(self.given.get(path), "read_only", False):  # so is what stands for it: nothing can be given back
                self.made[path]._freeze()

    def _owner(self, group: list[str], low: int, high: int) -> tuple[array | None, int]:
        """A tangent that was given and has room for all of the group, and the address of the array it goes with."""
        for path in group:
            a, t = self.arrays[path], self.given.get(path)
            if isinstance(t, array) and span_of(a) == (low, high) and _same_layout(a, t):
                return t, a._address
        return None, 0

    def _fill(self, path: str) -> None:
        made, given = self.made[path], self.given[path]
        try:
            shape = np.shape(given.numpy() if isinstance(given, array) else given)
            if shape != made.numpy().shape:
                raise ValueError(f"shape {shape} is not {made.numpy().shape}")
            made.assign(given)
        except (TypeError, ValueError) as error:
            raise LaunchTypeError(f"tangent of argument {path!r}: {error}") from None

    def _agree(self, group: list[str]) -> None:
        for path in group:
            given = self.given.get(path)
            if given is not None:
                rows = given.numpy() if isinstance(given, array) else np.asarray(given)
                if not np.array_equal(self.made[path].numpy(), rows.astype(self.made[path].numpy().dtype)):
                    raise LaunchError(f"arguments {' and '.join(group)} share memory, and their tangents differ there")

    # ---- arguments and results

    def arguments(self) -> list[Any]:
        """For the parameters of the tangents, one for each argument that can have one."""
        return [self.argument(name, value, t, self.tangents.get(name))
                for name, value, t in zip(self.names, self.values, self.types) if has_tangent(t)]  # fmt: skip

    def argument(self, path: str, value: Any, t: Type, tangent: Any) -> Any:
        """The tangent of ``value``."""
        if isinstance(t, View):
            return self.made.get(path)
        if isinstance(t, Indexed):
            data = self.made.get(f"{path}.data")
            return None if data is None else value._with_data(data)
        if not isinstance(t, Struct):
            return zero_of(t) if tangent is None else convert(tangent, t, f"tangent of argument {path!r}")
        made = type(value)()
        for name, field in t.fields:
            if has_tangent(field):
                inner = None if tangent is None else getattr(tangent, name)
                setattr(made, name, self.argument(f"{path}.{name}", getattr(value, name), field, inner))
        return made

    def give_back(self) -> None:
        """Bring what the launch did to tangents to the arrays that were given and could not be used themselves."""
        for path, given in self.given.items():
            if isinstance(given, array) and not given.read_only and given._address != self.made[path]._address:
                given.assign(self.made[path])

    def result(self, name: str) -> Any:
        """The tangent of argument ``name`` after the launch."""
        k = self.names.index(name)
        if not has_tangent(self.types[k]):
            return None
        self.provide({path for path in self.arrays if _within(path, name)})
        if isinstance(self.given.get(name), array):
            return self.given[name]
        return self.argument(name, self.values[k], self.types[k], self.tangents.get(name))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a launch with tangents."""

    name: str


class Doubled:
    """A kernel overload with tangents beside its arguments, as tapes see it: kernel and overload in one.

    ``tangents``: the paths of what has tangents other than zero.
    """

    def __init__(self, kernel: Kernel, overload: Any, tangents: tuple[str, ...]):
        self.overload, self.tangents = overload, tangents
        self.key, self.option = f"jvp of {kernel.key}", kernel.option
        moving = [p.name for p, t in zip(kernel.parameters, overload.types) if has_tangent(t)]
        self.parameters = [*kernel.parameters, *[Parameter(f"tangent of {name}") for name in moving]]
        self.types = (*overload.types, *[t for t in overload.types if has_tangent(t)])
        self.plan: Any = None
        self.fast: Any = None  # no native launcher
        self._hot: set[str] = set()

    def variant(self, dims: tuple[int, ...], checked: bool | None = None, shared: bool = False) -> Any:
        """The launch itself."""
        return self.overload.tangent(dims, self.tangents, shared=shared)

    def planned(self, program: Any) -> Any:
        """What tapes know of it."""
        if self.plan is None:
            self._hot.update(program.entry.meta["tangents"])
            self.plan = Plan(self, self, program.entry.meta)
            self.plan.detached = False  # what replaces the first derivative need not have the second one
            sites = {site.name: site for site in self.plan.sites}
            self.plan.pairs = [(site, sites[f"tangent of {name}"]) for name, site in sites.items()
                               if f"tangent of {name}" in sites]  # fmt: skip
        return self.plan

    def adjoint(
        self, dims: tuple[int, ...], active: tuple[str, ...], aliased: tuple[str, ...] = (), shared: bool = False
    ) -> Any:
        """Its adjoint. An array whose tangent has no gradient has none here either."""
        both = tuple([path for path in active if f"tangent of {path}" in active])
        tangents = sorted({*self.tangents, *self._hot, *[f"grad {path}" for path in both]})
        return self.overload.tangent(dims, tuple(tangents), both, aliased, shared)


def _part(base: array, like: array, offset: int) -> array:
    """What lies ``offset`` bytes on in ``base``, laid out as ``like``."""
    return base._view(like.shape, like.strides, offset, like._element, like.component_stride)


def _within(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def _arrays(path: str, value: Any, t: Type, tangent: Any) -> Iterator[tuple[str, array, Any]]:
    """Path, array and tangent (or None) of each array of floats in an argument."""
    if isinstance(t, View) and value is not None and has_floats(t.elem):
        yield path, value, tangent
    elif isinstance(t, Struct) and value is not None:
        for name, field in t.fields:
            inner = None if tangent is None else getattr(tangent, name)
            yield from _arrays(f"{path}.{name}", getattr(value, name), field, inner)


def _groups(arrays: dict[str, array]) -> list[list[str]]:
    """The paths of ``arrays``, those together whose bytes overlap."""
    found: list[list[str]] = []
    end = 0
    for low, high, path in sorted((*span_of(a), path) for path, a in arrays.items()):
        if found and low < end:
            found[-1].append(path)
        else:
            found.append([path])
        end = max(end, high)
    return found


def _same_layout(a: array, t: array) -> bool:
    same = t._element.type is a._element.type and t.shape == a.shape and t.strides == a.strides
    return same and t.component_stride == a.component_stride


def _misfit(t: Type, tangent: Any) -> str:
    if not has_tangent(t):
        return f"{spell(t)} has none"
    due = "an indexed array" if isinstance(t, Indexed) else "a struct of the same class"
    return f"{due} is due, not {type(tangent).__name__}"
