"""What an IR value is while code is written: a scalar operand, a vector operand, or the parts of a view."""

from __future__ import annotations

from dataclasses import dataclass

from ...types.core import Scalar, View


class X:
    """A number. ``text`` is the scalar operand if the value is uniform (``step`` 0) or contiguous (lane l holds ``text
    + step·l``); ``wide`` the vector operand once somebody needed it, written into ``home``. A varying value has
    ``wide`` alone.

    ``const``: the Python number of a constant. ``split``: a truth value that is ``uniform and varying``, as these two.
    ``kept``: the value that lanes outside this value's own mask hold, if that is known, and how many names there were
    when it was blended with that value: under the same or a wider mask it needs no blend with it again. ``made``: of a
    varying value, how it came about if that may be of use: an operation with its arguments, or a part of a window.
    """

    __slots__ = ("const", "home", "kept", "made", "split", "step", "text", "type", "wide")

    def __init__(
        self, type: Scalar, text: str | None = None, wide: str | None = None, step: int | None = 0, const=None
    ):
        self.type, self.text, self.wide, self.step, self.const = type, text, wide, step, const
        self.home: list | None = None
        self.split: tuple[X, X] | None = None
        self.kept: tuple[X | ViewX, int] | None = None
        self.made: tuple | None = None  # see alike.py


@dataclass(slots=True, eq=False)
class ViewX:
    """A view: pointer and strides as they stand in registers.

    ``data``: an :class:`X` of type ``PTR`` (of a thread's own array: an i64, the byte offset of the element as if there
    were one lane). ``strides`` in bytes and ``shape``: an X of type i64 each. ``component``: the run-time component
    stride of a planar view. ``base``: the memory of a thread's own array, else None. ``path``: where the view came
    from, for those who ask which array was meant. ``owed``: in checked code, the indices that led here, each with the
    extent that it must lie below: an access checks them along with its own. Views that meet in a branch owe nothing.
    ``inside``: of a view of a part of each element, where that begins and how many bytes the whole element has.
    """

    type: View
    data: X
    grad: X
    shape: list[X]
    strides: list[X]
    component: X
    base: str | None = None
    path: str = ""
    kept: tuple[X | ViewX, int] | None = None
    owed: tuple[tuple[X, X], ...] = ()
    inside: tuple[int, int] | None = None

    def parts(self) -> list[X]:
        """All numbers in the order they have in memory."""
        return [self.data, self.grad, *self.shape, *self.strides, self.component]

    def rebuilt(self, parts: list[X]) -> ViewX:
        """The same kind of view from other numbers."""
        n = self.type.ndim
        return ViewX(
            self.type, parts[0], parts[1], parts[2 : 2 + n], parts[2 + n : 2 + 2 * n], parts[-1], self.base, self.path
        )
