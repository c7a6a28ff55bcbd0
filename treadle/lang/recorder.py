"""What a tape keeps while it records: a log of operations, told of each before and after it happens."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ..base.config import config
from ..runtime import capture
from ..runtime.array import array
from ..runtime.ranges import Ranges
from .host_writes import Function, HostWrite, Kept
from .parts import span_of
from .plan import Plan
from .reverse import Pass, written_by
from .undo import Log, Scattered

if TYPE_CHECKING:
    from .sequel import Sequel
    from .untold import Untold


class Recorder(Log):
    """A log that keeps all that was overwritten. Its entries of launches are ``(plan, dim, args)``.

    One thread records. Once it has, any thread may write to what is watched, and several do so at once: whoever saves
    for a write that is not recorded holds ``lock`` meanwhile, but not while it writes.
    """

    keeps_contents = False  # whether results of what cannot be run again are copied
    sums: dict[int, dict[str, int]] | None = None  # checksums of what launches read, where those are asked for
    strange: Ranges | None = None  # what graphs wrote of whose operations nobody told
    passed = 0  # how many operations a backward pass has gone through
    leave: Callable[[], Any] | None = None  # once the recording has ended: what lets the tape watch no more
    spent = False  # whether it was called
    sequel: Sequel | None = None  # what is likely to be overwritten since

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()

    # ---- launches

    before_launch = Log.before

    def note_sums(self, plan: Plan, args: Sequence[Any]) -> None:
        """Remember what the launch that comes next finds in the arrays that it reads, if that is there yet."""
        if capture.recording():
            return
        self.sums = self.sums or {}
        self.sums[len(self.ops)] = plan.checksums(args)

    def launched(self, plan: Plan, dim: Any, args: list[Any]) -> None:
        """The launch is done."""
        if self.pending:
            self.after()
        if plan.vectors:
            for k in plan.vectors:
                args[k] = _own(args[k])
        self.ops.append((plan, dim if type(dim) is int else tuple(dim), args))

    def failed(self, written: list[array]) -> None:
        """The launch ended with an error; what it wrote until then can be undone."""
        self.after()
        self.ops.append(Kept(written if self.keeps_contents else None))

    # ---- writes from the host

    def host_write(self, dest: array, perform: Callable[..., None], args: tuple, source: array | None) -> None:
        """Let ``perform(dest, *args)`` happen and record it.

        A value written to memory that nothing recorded has touched is the content that the array came with: its
        gradient stays in ``.grad``.
        """
        if source is None and self.fresh(dest):
            perform(dest, *args)
            return
        if source is not None:
            self.wrote.add(id(source._memory))  # what is written there later is not fresh
        self.wrote.add(id(dest._memory))
        self.writes(dest)
        perform(dest, *args)
        self.ops.append(HostWrite(dest, perform, args, source))

    def record_function(self, call: Callable[[], Any], arrays: list[array]) -> None:
        """``call`` is the adjoint of what happened to ``arrays``."""
        for a in arrays:
            self.reads(a)
            self.wrote.add(id(a._memory))
        self.ops.append(Function(call, arrays, self.keeps_contents))

    def ran_untold(self, op: Untold) -> None:
        """A graph is about to run of whose operations nobody tells."""
        self.strange = self.strange or Ranges()
        for low, high in op.written:
            self.strange.add(low, high)
        self.ops.append(op)

    def fresh(self, a: array) -> bool:
        return super().fresh(a) and (self.strange is None or not self.strange.meets(*span_of(a)))

    # ---- writes that are not recorded

    def before_foreign(self, written: list[array]) -> bool:
        """Arrays are about to be written by what is not recorded; whether that destroys anything."""
        with self.lock:
            count = self.foreign_begins()
            met = any([self.writes(a) for a in written])
            self.save_ahead(count)
            return met

    def before_foreign_launch(self, plan: Plan, dims: tuple[int, ...], args: Sequence[Any]) -> bool | list[Any]:
        """The same of a launch; where it must be compared what that changed, what there is to compare: writes of other
        threads begin and end meanwhile."""
        with self.lock:
            count = self.foreign_begins()
            self.before(plan, dims, args, reading=False)
            met = len(self.saved) > count
            self.save_ahead(count)
            pending, self.pending = self.pending, []
            return pending or met

    def after_foreign(self, met: bool | list[Any], written: list[array]) -> None:
        """It is done, and ``met`` is what was answered before."""
        if met:
            with self.lock:
                if met is not True:
                    self.pending = met
                self.after()
                self.ops.append(Kept(self.to_keep(written)))

    def to_keep(self, written: list[array]) -> list[array]:
        """Whose results must be copied of ``written`` by what is not recorded."""
        return []

    # ---- after the recording

    def rest(self, leave: Callable[[], Any] | None) -> None:
        """The recording has ended, and ``leave`` is to be called once nothing is left to be watched; None: it goes
        on."""
        self.leave, self.spent, self.sequel = leave, False, None

    def foreign_begins(self) -> int:
        """How many pieces there are before a write that is not recorded."""
        if self.leave is not None and self.sequel is None:
            from .sequel import Sequel

            self.sequel = Sequel(self.cells, self.wrote)
        return len(self.saved)

    def save_ahead(self, first: int) -> None:
        """Pieces from number ``first`` on were saved before a write that is not recorded: save with them what is likely
        to be overwritten next."""
        sequel = self.sequel
        if sequel is None or self.mixed or capture.active or config.verify_autograd_array_access:
            return
        for piece in self.saved[first:]:
            for runs, arrays, keys in sequel.after(piece.owner, piece.nbytes):
                self.saved.append(Scattered(len(self.ops), runs, arrays))
                self.unwatch(arrays, keys)
        if not self.cells and self.leave is not None and not self.left_over():
            self.spent, self.sequel = True, None
            self.leave()

    def left_over(self) -> bool:
        """Whether a backward pass, of this tape or another, left gradients where this one may look for seeds: what the
        user writes there instead is one, so the tape must hear of it."""
        return any([getattr(a._grad, "_left", False) for a in self.arrays()])

    def unwatch(self, arrays: list[array], keys: list[int]) -> None:
        """Nobody needs to know any more what is in ``arrays``, each alone in its allocation: that of ``keys``."""
        deque(map(self.cells.pop, keys, repeat(None)), 0)
        deque(map(self.seen.pop, map(id, arrays), repeat(None)), 0)
        self.version += 1

    # ---- steps

    def mark_step(self) -> None:
        """A step begins. Who keeps everything need not know."""

    # ---- the backward pass

    def prepare(self) -> Pass:
        """A backward pass over everything that was recorded."""
        return Pass(self)

    def awaits(self, a: array) -> bool:
        """Whether a backward pass that is to come looks at what is in ``a``."""
        return self.passed < len(self.ops) and self.looks_at(a)

    def looks_at(self, a: array) -> bool:
        """Whether any byte of ``a`` is watched, which any thread may ask."""
        with self.lock:
            return self.meets(a)

    def writes_to(self, a: array) -> bool:
        """Whether something recorded writes to ``a``, or may do so unseen."""
        low, high = span_of(a)
        for op in reversed(self.ops):
            for b in written_by(op):
                begin, end = span_of(b)
                if begin < high and low < end:
                    return True
        return False

    def arrays(self) -> Iterator[array]:
        """The arrays that operations worked on, some several times."""
        for op in self.ops:
            if type(op) is tuple:
                plan, _, args = op
                found = [args[k] for k in plan.floats_at] if plan.plain else [site.of(args) for site in plan.floats]
                yield from [a for a in found if a is not None]
            else:
                yield from op.arrays()


def recorder_for(checkpoint: int | str) -> Recorder:
    """The recorder for ``wp.Tape(checkpoint=…)``.

    Raises:
        ValueError: no schedule of that name.
    """
    if checkpoint == "all":
        return Recorder()
    from .checkpoint import scheduled

    return scheduled(checkpoint)


def _own(vector: Any) -> Any:
    """A copy of a host vector or matrix, which its owner cannot change."""
    return vector.__copy__() if hasattr(vector, "__copy__") else vector
