"""What is captured for a graph inside a tape's block, kept so that the tape can be told of it whenever the graph runs.

At the capture nothing happens, so the tape has nothing to record. The capture's *story* has its operations as tapes
are told of them; a run of the graph under the tape does them again, one by one, and each is recorded then.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..base.errors import KernelGradientError
from ..runtime import watch
from ..runtime.array import array
from ..runtime.capture import Call, Capture
from ..runtime.ranges import Ranges
from ..runtime.writes import put_zeros
from ..types.core import u8
from ..types.values import class_of
from .parts import span_of
from .plan import Plan
from .shadows import copy_struct
from .untold import HINT


class Story:
    """The operations of ``capture`` up to entry number ``covered``; ``told`` is False once there was something among
    them of which tapes are not told: a branch, a loop, a function of native code."""

    def __init__(self, capture: Capture):
        self.capture, self.covered, self.told = capture, 0, True
        self.ops: list[Callable[[], None]] = []
        self.arrays: dict[int, array] = {}

    def launch(self, plan: Plan, dims: tuple[int, ...], args: Sequence[Any], command: Any, record: bool) -> None:
        """``command`` is captured, a launch with ``args``."""
        args = kept(args) if plan.plain else kept_structs(args)
        own = command.program.command(bytearray(command.packed), dims, args)
        self.note(lambda: watch.run(plan, dims, [*args], own, record), args)
        command()
        self.covered = len(self.capture.entries)

    def write(self, dest: array, perform: Callable[..., None], args: tuple, source: array | None) -> None:
        """``perform(dest, *args)`` is captured."""
        args = tuple(kept(args))
        self.note(lambda: watch.write(dest, perform, args, source), (dest, source))
        perform(dest, *args)
        self.covered = len(self.capture.entries)

    def note(self, again: Callable[[], None], args: Sequence[Any] = ()) -> None:
        """``again()`` does what comes now, which works on ``args``."""
        self.fill_gap()
        self.ops.append(again)
        self.arrays.update((id(a), a) for a in args if isinstance(a, array))

    def fill_gap(self) -> None:
        """What was captured meanwhile: zeros of new arrays, or something of which nobody knows."""
        entries = self.capture.entries
        for entry in entries[self.covered :]:
            if isinstance(entry, Call) and entry.name == "zero":
                (address,) = struct.unpack_from("<Q", entry.words)
                self.ops.append(lambda low=address, size=entry.nbytes: self.zero(low, size))
            else:
                self.told = False
        self.covered = len(entries)
        if self.capture.body is not entries:
            self.told = False

    def zero(self, low: int, size: int) -> None:
        """Memory of arrays that are made in the capture is 0 again, and so are gradients on the way back."""
        raw = array(ptr=low, shape=size, dtype=class_of(u8), device=self.capture.device)
        watch.write(raw, put_zeros, (), None)
        for a in self.arrays.values():
            begin, end = span_of(a)
            if low <= begin and end <= low + size and a._grad is not None:
                watch.write(a, put_zeros, (), None)

    def again(self) -> None:
        """Do everything once more, now."""
        for op in self.ops:
            op()


def kept(args: Sequence[Any]) -> list[Any]:
    """``args`` with values of the host as they are now."""
    return [x.__copy__() if hasattr(x, "__copy__") and not isinstance(x, array) else x for x in args]


def kept_structs(args: Sequence[Any]) -> list[Any]:
    """The same, and structs as they are now."""
    return [copy_struct(x) if hasattr(type(x), "treadle_type") else x for x in kept(args)]


def story_of(capture: Capture) -> Story:
    """The story of a capture, which may begin here."""
    if capture.story is None:
        capture.story = Story(capture)
    return capture.story


EVERYWHERE = ((0, 1 << 64),)


def story_for_tape(graph: Any, matters: Iterable[tuple[int, int]]) -> Story | None:
    """The story of a graph that is about to run while a tape records; None where there is nothing to be recorded, as it
    writes to nothing that ``matters``.

    Raises:
        KernelGradientError: it writes arrays with gradients, and nobody knows how.
    """
    story: Story | None = graph.capture.story
    if story is not None:
        story.fill_gap()
        if story.told:
            return story
    written = Ranges([span_of(each) for each in graph.written()])
    if not any(written.meets(low, high) for low, high in matters):
        return None
    raise KernelGradientError(
        "wp.capture_launch: a tape is recording, and the graph writes to arrays with gradients but "
        f"{untold(graph)}, so the tape cannot record what it does", hint=HINT,
    )  # fmt: skip


def untold(graph: Any) -> str:
    """Why a tape is not told what a graph does."""
    inside = graph.capture.story is not None
    return "has more than launches and copies" if inside else "was not captured inside the tape's block"
