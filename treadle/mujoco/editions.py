"""What a model has held: fields that are computed after a step are those of the numbers with which it was taken.

Users write to a model's arrays in whatever way they like: by assignment, through NumPy, in kernels. So each step notes
the *edition* with which it sets out: the model's attributes and arrays as they are, with copies of what those hold that
somebody has seen, as nobody can have written to others. A field that is late is computed with the edition of its step,
which is the model itself as long as nothing has changed. Editions that no data needs any more are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

import treadle as wp
from treadle.mujoco.contents import contents

if TYPE_CHECKING:
    from treadle.mujoco.model import Model


class Edition:
    """A model as it was: ``model`` is a copy of its tables, ``held`` what arrays held then, by their identities."""

    __slots__ = ("__weakref__", "held", "model")

    def __init__(self, model: Model, held: dict[int, bytes]):
        self.model, self.held = model, held

    def restored(self) -> Model:
        """The model that holds what it held then: arrays that were written to since have others in their places."""
        for table in (self.model, self.model.opt):
            for name, array in [*table._arrays.items()]:
                content = self.held.get(id(array))
                if content is None:
                    continue
                values = array.numpy()
                if values.tobytes() != content:
                    own = table.allocate(getattr(type(table), name))
                    with contents(own) as target:
                        target[...] = np.frombuffer(content, values.dtype).reshape(values.shape)
                    table._arrays[name] = own
                    table.version += 1
        return self.model


class Editions:
    """The editions of one model that data still need, and the one that the next step sets out with."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[wp.array, np.ndarray, bytes]] = {}  # in memory of the host, with their content
        self._living: WeakSet[Edition] = WeakSet()
        self._now: Edition | None = None
        self._versions: Any = None

    def note(self, array: wp.array) -> None:
        """Somebody sees ``array`` from now on, and may write to it.

        In memory of the host each step looks whether that has happened. Other memory is too far for that: there whoever
        asks for an array again may write to it again.
        """
        if id(array) in self._seen or not array.size or wp.get_device().is_capturing:
            return
        values = array.numpy()
        content = values.tobytes()
        for edition in self._living:
            edition.held.setdefault(id(array), content)
        if values.ctypes.data == array.ptr:
            self._seen[id(array)] = array, values, content
        else:
            self._now = None

    def now(self, m: Model) -> Edition:
        """The edition of ``m`` with which a step sets out now."""
        if self._now is None or self._versions != (m.version, m.opt.version) or (self._seen and self._written()):
            here = {id(array) for table in (m, m.opt) for array in table._arrays.values()}
            self._seen = {k: (a, values, values.tobytes()) for k, (a, values, _) in self._seen.items() if k in here}
            self._now = Edition(m.copied(), {k: content for k, (*_, content) in self._seen.items()})
            self._living.add(self._now)
            self._versions = m.version, m.opt.version
        return self._now

    def _written(self) -> bool:
        for _, values, content in self._seen.values():  # each step asks: a generator would take longer
            if values.tobytes() != content:
                return True
        return False
