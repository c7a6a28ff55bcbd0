"""What a model has held: fields that are computed after a step are those of the numbers with which it was taken.

Users write to a model's arrays in whatever way they like: by assignment, through NumPy, in kernels. So each step notes
the *edition* with which it sets out: the model's attributes and arrays as they are, with copies of what those hold that
somebody has seen, as nobody can have written to others. Copies of arrays on a GPU lie there, and are looked at when a
field is computed. A field that is late is computed with the edition of its step, which is the model itself as long as
nothing has changed. Editions that no data needs any more are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

import treadle as wp
from treadle.mujoco.contents import contents, outside_of_captures
from treadle.runtime.copies import put_value

if TYPE_CHECKING:
    from treadle.mujoco.model import Model


class Edition:
    """A model as it was: ``model`` is a copy of its tables, ``held`` what arrays held then, by their identities."""

    __slots__ = ("__weakref__", "held", "model")

    def __init__(self, model: Model, held: dict[int, bytes | wp.array]):
        self.model, self.held = model, held

    def stands(self, m: Model) -> bool:
        """Whether ``m`` still holds all that it held then, wherever its arrays are."""
        return (m.version, m.opt.version) == (self.model.version, self.model.opt.version) and not any(
            self._differs(array) for table in (self.model, self.model.opt) for array in table._arrays.values()
        )

    def _differs(self, array: wp.array) -> bool:
        """Whether an array has been written to since, as far as that is watched."""
        then = self.held.get(id(array))
        if isinstance(then, wp.array):
            return then.numpy().tobytes() != array.numpy().tobytes()
        return then is not None and then != memory_of(array.numpy()).tobytes()

    def restored(self, before: tuple[Edition, Model] | None) -> Model:
        """The model that holds what it held then: arrays that were written to since have others in their places.

        ``before`` is an edition that was restored, and what that gave. Where but the content of arrays tells the two
        apart it is given again, with this one's: plans of it still hold.
        """
        if before is not None and self._resembles(before[0]):
            past = before[1]
        else:
            past = self.model.copied()
        for table, then in ((past, self.model), (past.opt, self.model.opt)):
            for name, array in then._arrays.items():
                own = table._arrays[name]
                if own is array:
                    if not self._differs(array):
                        continue
                    own = table._arrays[name] = table.allocate(getattr(type(table), name))
                    table.version += 1
                content, values = self.held.get(id(array)), array.numpy()
                if isinstance(content, wp.array):
                    values = content.numpy()
                elif content is not None:
                    values = as_values(content, values)
                with contents(own) as target:
                    target[...] = values
        return past

    def _resembles(self, other: Edition) -> bool:
        """Whether both have the same arrays, and the same numbers and flags beside them."""
        mine, others = self.model, other.model
        return all(
            a.version == b.version and a._arrays.keys() == b._arrays.keys()
            and all(x is y for x, y in zip(a._arrays.values(), b._arrays.values()))
            for a, b in ((mine, others), (mine.opt, others.opt))
        )  # fmt: skip


def memory_of(values: np.ndarray) -> np.ndarray:
    """The memory that ``values`` lie in, if there is little else in it: that is copied and compared in one go."""
    span = values.itemsize + sum((n - 1) * step for n, step in zip(values.shape, values.strides))
    if values.flags.c_contiguous or min(values.strides) < 0 or span > 2 * values.nbytes:
        return values
    return np.lib.stride_tricks.as_strided(values, (span // values.itemsize,), (values.itemsize,))


def as_values(content: bytes, values: np.ndarray) -> np.ndarray:
    """An array like ``values`` that holds what the bytes of `memory_of` say."""
    strides = None if memory_of(values) is values else values.strides
    return np.ndarray(values.shape, values.dtype, content, strides=strides)


def copy_of(array: wp.array) -> wp.array:
    """What ``array`` holds, copied where it lies; tapes and captures do not hear of it."""
    with outside_of_captures():
        made = wp.empty(array.shape, dtype=array.dtype, device=array.device)
        put_value(made, array)
    return made


class Editions:
    """The editions of one model that data still need, and the one that the next step sets out with."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[wp.array, np.ndarray, bytes]] = {}  # in memory of the host, with their content
        self._far: dict[int, wp.array] = {}  # in other memory
        self._living: WeakSet[Edition] = WeakSet()
        self._now: Edition | None = None
        self._versions: Any = None

    def note(self, array: wp.array) -> None:
        """Somebody sees ``array`` from now on, and may write to it.

        In memory of the host each step looks whether that has happened. Other memory is too far for that: there each
        step keeps a copy.
        """
        if id(array) in self._seen or id(array) in self._far or not array.size:
            return
        with outside_of_captures():
            values = memory_of(array.numpy())
        content = values.tobytes()
        for edition in self._living:
            edition.held.setdefault(id(array), content)
        if values.ctypes.data == array.ptr:
            self._seen[id(array)] = array, values, content
        else:
            self._far[id(array)] = array

    def now(self, m: Model) -> Edition:
        """The edition of ``m`` with which a step sets out now."""
        versions = m.version, m.opt.version
        if self._now is None or self._versions != versions or self._far or (self._seen and self._written()):
            here = {id(array) for table in (m, m.opt) for array in table._arrays.values()}
            self._seen = {k: (a, values, values.tobytes()) for k, (a, values, _) in self._seen.items() if k in here}
            self._far = {k: a for k, a in self._far.items() if k in here}
            held: dict[int, bytes | wp.array] = {k: content for k, (*_, content) in self._seen.items()}
            held.update({k: copy_of(a) for k, a in self._far.items()})
            self._now = Edition(m.copied(), held)
            self._living.add(self._now)
            self._versions = versions
        return self._now

    def hold(self, edition: Edition, m: Model) -> bool:
        """Whether ``m`` is what it was in ``edition``."""
        return edition.stands(m) if self._far else edition is self.now(m)

    def _written(self) -> bool:
        for _, values, content in self._seen.values():  # each step asks: a generator would take longer
            if values.tobytes() != content:
                return True
        return False
