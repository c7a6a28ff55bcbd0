"""Compiling ahead: launches that only say what they will need, so that several cores can work on it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..base.errors import KernelError, alone
from ..runtime import capture
from .natives import install
from .stores import stores

_running = threading.local()


@dataclass(frozen=True, slots=True, eq=False)
class Deferred:
    """A launch that has not been done: what :func:`launch` was given."""

    kernel: Any
    dims: tuple[int, ...]
    args: list[Any]
    types: tuple[Any, ...]
    device: Any
    checked: bool | None

    def begin(self) -> Any:
        """Translate the kernel, and let another thread compile it; the variant, whose program waits for that."""
        try:
            return self.kernel.overload(self.types, self.device).variant(self.dims, self.checked, begin=True)
        except KernelError as error:
            wrong = alone(error)
        self.kernel.forget_failed()
        raise wrong

    def run(self) -> None:
        """Launch it."""
        from .launch import launch

        launch(self.kernel, self.dims, self.args, device=self.device, checked=self.checked)

    def touched(self) -> Iterator[tuple[Any, bool]]:
        """The arguments, each with whether something may be stored to it: as the compiler found if the code is known
        already, else as far as the source tells."""
        known = self.kernel.overload(self.types, self.device).known(self.dims, self.checked)
        if known is not None and known.meta["touched"]["unknown"] != "written":
            facts = known.meta["touched"]["arrays"]
            places = {fact["path"][0] for fact in facts if fact["stores"] or fact["added"]}
        else:
            stored = stores(self.kernel.source)
            places = {k for k, p in enumerate(self.kernel.parameters) if p.name in stored}
        yield from ((a, k in places) for k, a in enumerate(self.args))


@contextmanager
def deferred() -> Iterator[list[Deferred]]:
    """Launches of this thread in the block are not done, they are put into the list. What else is in it, copies for
    instance, is done as ever."""
    install()
    outer, _running.launches = asked(), []
    try:
        with capture.declining():
            yield _running.launches
    finally:
        _running.launches = outer


def prepare(launches: Iterable[Deferred]) -> None:
    """Compile and load what ``launches`` need, on several cores: translated in this order, by this thread, while
    another one compiles what has been translated."""
    for variant in [launch.begin() for launch in launches]:
        variant.program  # noqa: B018  is loaded when it is asked for


@contextmanager
def ahead() -> Iterator[None]:
    """Launches of this thread in the block do not run: their kernels are compiled, on several cores, and all are ready
    when the block ends. Everything else in it, copies for instance, is done as ever.

    What is launched must not depend on results of launches before. Errors of kernels are raised as launches raise them.

    >>> import treadle as wp
    >>> from treadle.lang.ahead import ahead
    >>> @wp.kernel
    ... def count(n: wp.array(dtype=int)):
    ...     wp.atomic_add(n, 0, 1)
    >>> n = wp.zeros(1, dtype=int)
    >>> with ahead():
    ...     wp.launch(count, dim=8, inputs=[n])
    >>> n.list()
    [0]
    """
    with deferred() as launches:
        yield
    prepare(launches)


def asked() -> list[Deferred] | None:
    """Where a launch of this thread leaves what it was given, in place of running; None where it runs."""
    return getattr(_running, "launches", None)
