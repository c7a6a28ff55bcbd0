"""Integrands: what is integrated over a domain, written as a Python function of a sample, the domain and fields."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..base.errors import KernelTypeError
from ..frontend.source import EMPTY, Parameter, Source
from ..lang.module import Module, check_options, module_of
from ..types.annotations import evaluated


class Domain:
    """The annotation of an integrand's parameter that stands for the domain of integration."""


class Field:
    """The annotation of an integrand's parameter that stands for a function on the domain: a discrete field, a test or
    a trial function. Inside, ``u(s)`` is its value at the sample ``s``."""


class Integrand:
    """A function to be integrated or interpolated, and what each of its parameters stands for.

    It is not called from Python: what it means depends on the domain and the fields that it is evaluated with.

    Attributes:
        func: the Python function.
        name: its name.
        module: the module that its kernels belong to.
        kernel_options: module options of these kernels.
        parameters: of each parameter, by name, its annotation: :class:`Field`, :class:`Domain`, ``Sample``, a type of
            the kernel language, or ``Any``.
    """

    def __init__(
        self, func: Callable, kernel_options: dict[str, Any] | None = None, names: dict[str, Any] | None = None
    ):
        source = Source(func, names)
        check_options(kernel_options or {})
        self.func = func
        self.name = func.__name__
        self.__doc__ = func.__doc__
        self.module: Module = module_of(func, None)
        self.kernel_options = dict(kernel_options or {})
        self.parameters = {p.name: _meant(p, source) for p in source.parameters()}

    def __repr__(self) -> str:
        return f"<treadle integrand {self.name}>"


def integrand(func: Callable | None = None, kernel_options: dict[str, Any] | None = None) -> Any:
    """Make ``func`` an integrand.

    Args:
        func: a function of the kernel language. Its parameters are annotated with ``Sample`` (or ``Sample_f64``),
            :class:`Domain`, :class:`Field`, or types as those of kernels; without annotation they take any type.
        kernel_options: module options for the kernels that evaluate it, such as ``{"enable_backward": False}``.

    Returns: the :class:`Integrand`, or a decorator where ``func`` is left out.

    Raises:
        KernelTypeError: a parameter is annotated with something that is no type.
        KernelSyntaxError: ``*args`` or ``**kwargs``.
        KernelValueError: an option that does not exist.

    >>> import treadle as wp
    >>> @wp.fem.integrand
    ... def mass(s: wp.fem.Sample, u: wp.fem.Field, v: wp.fem.Field):
    ...     return u(s) * v(s)
    >>> mass, list(mass.parameters)
    (<treadle integrand mass>, ['s', 'u', 'v'])
    """
    around = sys._getframe(1).f_locals

    def declare(f: Callable) -> Integrand:
        return Integrand(f, kernel_options, dict(around) if "<locals>" in f.__qualname__ else None)

    return declare if func is None else declare(func)


def _meant(p: Parameter, source: Source) -> Any:
    """What the annotation of ``p`` says, checked."""
    note = p.annotation
    if note is EMPTY:
        return Any
    try:
        note = evaluated(note, source.names()) if isinstance(note, str) else note
        if note not in (Any, Domain, Field):
            source.type_of(note)
    except KernelTypeError as error:
        what = f"parameter {p.name!r} of integrand {source.name}: {error.message}"
        raise KernelTypeError(what, source.span, error.hint) from None
    return note
