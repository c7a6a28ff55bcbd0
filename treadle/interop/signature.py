"""The parameters of kernels and functions as frameworks see them: operands, and results at the end."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import LaunchError, LaunchTypeError
from ..runtime.elements import Element
from ..types.annotations import type_of
from ..types.core import Array, Type
from ..types.spelling import spell


class Signature:
    """Parameters in order, of which the last ``num_outputs``, without those in ``in_out``, are only made.

    Args:
        what: the kernel or function in words, for messages.
        names: of the parameters.
        declared: their types; None where any type is taken.
        num_outputs: how many results there are.
        in_out: names of parameters that are operands and results, in the order given.
        traced: whether numbers, vectors and matrices may be computed by JAX.

    Raises:
        ValueError: these do not go together.
    """

    def __init__(self, what: str, names: Sequence[str], declared: Sequence[Type | None], num_outputs: int,
                 in_out: Sequence[str], traced: bool = True):  # fmt: skip
        self.traced = traced
        self.what, self.names, self.declared, self.in_out = what, tuple(names), tuple(declared), tuple(in_out)
        self.key = what.rpartition(" ")[2]
        if len(set(in_out)) != len(in_out):
            raise ValueError(f"in_out_argnames of {what} must not contain duplicate names: {list(in_out)}")
        for name in in_out:
            if name not in names:
                raise ValueError(
                    f"in_out_argnames: {name!r} did not match any function argument names of {what}: {', '.join(names)}"
                )
        made = num_outputs - len(in_out)
        if num_outputs < 1 or made < 0 or made > len(names):
            raise ValueError(
                f"num_outputs of {what} is {num_outputs}; it counts the {len(in_out)} of in_out_argnames and those "
                f"arguments at the end, of {len(names)}, that are only written"
            )
        self.inputs = self.names[: len(names) - made]
        self.made = tuple(zip(self.names, self.declared, strict=True))[len(names) - made :]
        for name in in_out:
            if name not in self.inputs:
                raise ValueError(
                    f"in_out arguments should be placed before output-only arguments: {name!r} of {what} is among the "
                    f"last {made}, which are only written"
                )
        for name, t in zip(self.names, self.declared, strict=True):
            result = name in in_out or name not in self.inputs
            if isinstance(t, Array) and (t.indexed or t.family != "array"):
                raise LaunchTypeError(f"argument {name!r} of {what}: JAX has arrays only, no {t.family}")
            if result and t is not None and not isinstance(t, Array):
                raise LaunchTypeError(
                    f"argument {name!r} of {what} is a result, so it must be an array, not {spell(t)}"
                )

    def count(self, args: Sequence[Any]) -> None:
        """Raise LaunchError where these are not as many as there are inputs."""
        if len(args) != len(self.inputs):
            listed = ", ".join(self.inputs)
            raise LaunchError(f"{self.what} takes {len(self.inputs)} arguments ({listed}), {len(args)} were given")

    def check_names(self, output_dims: Any) -> None:
        """Raise LaunchError where shapes are given by name, and there is no argument of a name."""
        unknown = [n for n in output_dims if n not in self.names] if isinstance(output_dims, Mapping) else []
        if unknown:
            listed = ", ".join([name for name, _ in self.made])
            raise LaunchError(f"output_dims: {self.what} has no argument {unknown[0]!r}; its results are {listed}")

    def shape_of(self, name: str, e: Element, ndim: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a result, components included, where its elements have ``shape``, or all of it has.

        Raises:
            LaunchError: it has another number of dimensions.
        """
        if e.inner and len(shape) == ndim + len(e.inner) and shape[ndim:] == e.inner:
            shape = shape[:ndim]
        if len(shape) != ndim:
            raise LaunchError(
                f"argument {name!r} of {self.what} has {ndim} dimensions, its shape would be {shape}",
                hint=f"say its shape: output_dims={{{name!r}: …}}",
            )
        return (*shape, *e.inner)


def declared_of(func: Any, name: str) -> tuple[list[str], list[Any]]:
    """Names and types of the parameters of a function.

    Raises:
        LaunchTypeError: one has no annotation, or one that leaves its type open.
    """
    names, types = [], []
    namespace = {**getattr(inspect.unwrap(func), "__globals__", {})}
    if inspect.isfunction(func):
        namespace |= inspect.getclosurevars(func).nonlocals
    for p in inspect.signature(func).parameters.values():
        if p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            raise LaunchTypeError(f"argument {p.name!r} of function {name} must be one that is given by position")
        if p.annotation is p.empty:
            raise LaunchTypeError(f"argument {p.name!r} of function {name} has no type",
                                  hint="annotate it, for example with float or wp.array(dtype=float)")  # fmt: skip
        t = type_of(p.annotation, namespace)
        if t is None or (isinstance(t, Array) and t.elem is None):
            what = "Any" if t is None else spell(t)
            raise LaunchTypeError(f"argument {p.name!r} of function {name} must have one type, not {what}")
        names.append(p.name)
        types.append(t)
    return names, types


def dims_of(given: Any, what: str) -> tuple[int, ...]:
    """A shape given as an int or a sequence of them."""
    try:
        return (given.__index__(),) if hasattr(given, "__index__") else tuple([n.__index__() for n in given])
    except (TypeError, AttributeError):
        raise LaunchTypeError(f"{what} is an int or a sequence of ints, not {given!r}") from None


def output_shape(name: str, output_dims: Any) -> tuple[int, ...] | None:
    """What ``output_dims`` say of a result: a shape for all, or shapes by name; None where they say nothing.

    Raises:
        LaunchTypeError: no ints.
    """
    if output_dims is None:
        return None
    given = output_dims.get(name) if isinstance(output_dims, Mapping) else output_dims
    return None if given is None else dims_of(given, f"output_dims of {name!r}")


def frozen_dims(output_dims: Any) -> Any:
    """Shapes of results as a key."""
    if isinstance(output_dims, dict):
        return tuple(sorted([(name, dims_of(dims, "output_dims")) for name, dims in output_dims.items()]))
    return None if output_dims is None else dims_of(output_dims, "output_dims")
