"""The backward pass: go back through a log, and run the adjoint of each operation on the memory it had then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import KernelGradientError
from ..runtime import capture, fast
from ..runtime.array import array, build, graded_late
from ..runtime.launch import normal_dims
from ..runtime.ranges import Ranges
from ..runtime.writes import gapless
from .contents import Aside, copied, put_value
from .host_writes import Function, HostWrite, Kept, add_all
from .parts import span_of
from .plan import Plan, Site
from .shadows import Shadow, with_shadows
from .undo import FOREIGN, Log

MOST = 10_000  # launches of a kernel whose adjoint is remembered


class Reverse:
    """The adjoint of a plan's kernel for one set of arrays with gradients.

    ``active``: the paths of these arrays. ``again``: sites that the adjoint kernel writes to as the kernel did;
    ``unsaved``: those of them whose content nobody asked for, so that the log does not put it back.
    ``winners``: sites of which it must see the content from after the launch; of those in ``seen`` alone it only looks
    at that, while the others hold a least or greatest value of many. ``careful``: any of these need looking after.
    ``rereads``: it repeats stores to memory that no argument names, such as arrays in elements; ``nameless``:
    derivatives pass through that. ``aliased``: arrays that lie over a written one, ``shared``: so do gradients that
    are updated.
    """

    __slots__ = ("active", "again", "aliased", "careful", "nameless", "plan", "quick", "rereads", "seen", "shared",
                 "unsaved", "variants", "winners")  # fmt: skip

    def __init__(
        self, plan: Plan, active: tuple[str, ...], aliased: tuple[str, ...], shared: bool, dims: tuple[int, ...]
    ):
        self.plan, self.active, self.aliased, self.shared = plan, active, aliased, shared
        self.quick = fast.launcher()
        self.variants: dict[tuple[int, ...], Any] = {}
        meta = self.variant(dims).meta
        facts = {tuple(fact["path"]): fact for fact in meta["touched"]["arrays"]}
        winners, seen, kept = ({tuple(path) for path in meta[key]} for key in ("winners", "seen", "kept"))
        self.again, self.winners, self.seen = [], [], []
        for site in plan.sites:
            path = (site.k, *site.path)
            fact = facts.get(path)
            if fact is not None and (fact["stores"] or fact["added"]) and path not in kept:
                self.again.append(site)
            if path in winners | seen:
                self.winners.append(site)
            if path in seen - winners:
                self.seen.append(site)
        self.unsaved = [site for site in self.again if not site.keeps]
        self.rereads, self.nameless = plan.unseen and meta["rereads"], plan.unseen and meta["nameless"]
        self.careful = bool(self.again or self.winners or self.rereads)

    def variant(self, dims: tuple[int, ...]) -> Any:
        """The code for a grid of ``dims``, which may be on its way still."""
        found = self.variants.get(dims)
        if found is None:
            find = self.plan.overload.adjoint
            found = self.variants[dims] = find(dims, self.active, self.aliased, self.shared)
        return found

    def run(self, dim: Any, args: Sequence[Any]) -> None:
        """Launch the adjoint."""
        done = self.quick(dim, args, ())
        if done is None:
            return
        if done is not NotImplemented:
            raise fast.error(done)
        dims = normal_dims(dim)
        program = self.variant(dims).program
        if self.plan.native:
            fast.add(self.quick, program, alone=True)
        program.command(program.pack(args), dims, args)()

    def run_with_winners(self, dim: Any, args: Sequence[Any], after: list[array]) -> None:
        """As :meth:`run`, with ``after``, the content that the launch left, in the arrays of ``winners``. The gradient
        of elements that it did not change stays: it belongs to the content from before."""
        kept: list[tuple[array, array]] = []
        aside, arrays = [], [site.of(args) for site in self.winners]
        befores = [copied(a) for a in arrays]
        try:
            for site, a, before, now in zip(self.winners, arrays, befores, after, strict=True):
                put_value(a, now)
                if a._grad is None or site in self.seen:
                    continue
                if capture.deferring(a):
                    from .winners import set_aside

                    kept.append((a._grad, set_aside(a._grad, before, now)))
                else:
                    aside += _set_aside(a._grad.numpy(), before.numpy(), now.numpy())
            self.run(dim, args)
        finally:
            for rows, same, values in aside:
                rows[same] += values
            for grad, content in kept:
                add_all(grad, content)
            for a, before in zip(arrays, befores, strict=True):
                put_value(a, before)


def _set_aside(grad: np.ndarray, before: np.ndarray, after: np.ndarray) -> list[tuple]:
    """Take out of ``grad`` what belongs to elements that are the same ``before`` and ``after``."""
    if before.dtype.fields is not None:
        return [item for name in before.dtype.names for item in _set_aside(grad[name], before[name], after[name])]
    if grad.dtype.kind != "f":
        return []
    same = before == after
    values = grad[same]
    grad[same] = 0
    return [(grad, same, values)]


class Hidden:
    """Gradients of arrays that have none of their own but lie between an input that has one and the results. What no
    operation reads has none: it would be 0.

    They live as long as a backward pass. ``ranges``: the bytes that depend on such an input; each range of them has
    one block of gradients, so that views of the same memory share them. ``marks`` tells what stands for arrays with
    such gradients where launches are compared: blocks are new memory each time, and lie over nothing else.
    ``untold``: bytes that depend on such an input in a way that nobody knows (``lang/untold.py``).
    """

    def __init__(self, ops: list[Any], likes: list[Any]):
        """``likes``: what :func:`_likeness` says of each of ``ops``."""
        self.ranges, self.untold = Ranges(), Ranges()
        self.owned: dict[bytes, tuple[int, int, array]] = {}
        self.made: dict[bytes, array] = {}
        self.shadows: dict[bytes, array | None] = {}
        self.marks: dict[bytes, tuple[bytes, bool]] = {}
        unlike = dict(zip(likes, ops, strict=True)).values()
        each = {a._desc: a for a in [a for op in unlike for a in arrays_of(op)] + [*graded_late]}
        for desc, a in each.items():
            if a._grad is not None:
                self.owned[desc] = (*span_of(a), a)
        self.mine = Ranges([(low, high) for low, high, _ in self.owned.values()])
        self.read = Ranges([span_of(a) for op in unlike for a in _read_by(op)])
        bare = [a for a in each.values() if a._grad is None]
        done: dict[Any, int] = {}  # bytes that depended when an operation was looked at, or one like it
        known = -1
        while known != self.nbytes:  # what gets a gradient has it in earlier operations too
            known = self.nbytes
            self.follow(ops, likes, done)
            self.round_off(bare)
        self.blocks = {low: capture.zeros(high - low, low) for low, high in self.ranges}

    def follow(self, ops: list[Any], likes: list[Any], done: dict[Any, int]) -> None:
        """Carry dependence on an input with a gradient from what each of ``ops`` reads to what it writes."""
        now = self.nbytes
        for op, like in zip(ops, likes, strict=True):
            if done.get(like) != now:
                self.carry(op)
                now = done[like] = self.nbytes

    @property
    def nbytes(self) -> int:
        """How many bytes are known to depend."""
        return self.ranges.nbytes + self.untold.nbytes

    def carry(self, op: Any) -> None:
        """The same of one operation."""
        if type(op) is tuple:
            plan, _, args = op
            if plan.detached:
                return
            inputs = [site.of(args) for site in plan.floats if site.loads or site.writes]
            outputs = [site.of(args) for site in plan.floats if site.writes]
            held = plan.held(args) if plan.holders else ()
            inputs += held
            if plan.unseen and any([a is not None and self.depends(a) for a in inputs]):
                for a in held:
                    if a._grad is None:  # else the adjoint finds the gradient where it finds the array
                        self.untold.add(*span_of(a))
        elif isinstance(op, HostWrite) and op.source is not None:
            inputs, outputs = [op.source], [op.dest]
        else:
            if untold(op) and op.depends(self.mine, self.ranges, self.untold):
                for low, high in op.written:
                    self.untold.add(low, high)
            return
        if any([a is not None and self.depends(a) for a in inputs]):
            self.add(outputs)
        for pair in plan.pairs if type(op) is tuple else ():
            both = [site.of(args) for site in pair]
            if None not in both and any(a._grad is not None or self.knows(a) for a in both):
                self.add(both, unread=True)

    def round_off(self, arrays: list[array]) -> None:
        """Let each of ``arrays`` that depends on an input in part do so in whole, so that it has one gradient."""
        known = -1
        while known != self.ranges.nbytes:
            known = self.ranges.nbytes
            self.add([a for a in arrays if self.ranges.meets(*span_of(a))])

    def add(self, arrays: list[array | None], unread: bool = False) -> None:
        """Those of ``arrays`` that have no gradient get one; ``unread``: also where no operation reads them."""
        for a in arrays:
            if a is not None and a._grad is None and (unread or self.read.meets(*span_of(a))):
                for low, high in self.mine.outside(*span_of(a)):
                    self.ranges.add(low, high)

    def knows(self, a: array) -> bool:
        span = span_of(a)
        return self.ranges.meets(*span) or self.mine.meets(*span)

    def depends(self, a: array) -> bool:
        """Whether ``a`` has a gradient or needs one, also where it depends on others in a way that is not known."""
        return a._grad is not None or self.knows(a) or (bool(self.untold) and self.untold.meets(*span_of(a)))

    def of(self, a: array) -> array | None:
        """The gradient of ``a``, its own or a hidden one."""
        if a._grad is not None:
            return a._grad
        found = self.made.get(a._desc)
        if found is None:
            address = self._address(a)
            if address is None:
                return None
            e = a._element
            found = build(e, a.shape, a.strides, a.component_stride, address, None, 0, a.device)
            self.made[a._desc] = found
        return found

    def _address(self, a: array) -> int | None:
        low, high = span_of(a)
        for begin, end, owner in self.owned.values() if self.mine.meets(low, high) else ():
            if begin <= low and high <= end:
                return owner._grad._address + a._address - owner._address
        around = self.ranges.around(low)
        if around is not None and high <= around[1]:
            return self.blocks[around[0]][1] + a._address - around[0]
        if self.knows(a):
            raise KernelGradientError(
                f"{a!r} lies partly over an array that has a gradient", hint="give both a gradient, or make it a view"
            )
        return None

    def shadow(self, a: array) -> array | None:
        """``a`` with its hidden gradient; None if it has none."""
        if a._desc not in self.shadows:
            grad = self.of(a)
            made = None if grad is None else a._view(a.shape, a.strides)
            if made is not None:
                made._adopt(grad)
                if not self.mine.meets(*span_of(a)):
                    self.marks[made._desc] = a._desc, True
            self.shadows[a._desc] = made
        return self.shadows[a._desc]


def _likeness(op: Any) -> Any:
    """Equal for operations that work on the same arrays in the same way."""
    if type(op) is not tuple:
        return id(op)
    plan, dim, args = op
    return (plan, dim, plan.pick(args)) if plan.plain else (plan, dim, *[id(site.of(args)) for site in plan.sites])


def arrays_of(op: Any) -> list[array]:
    """The arrays with floating-point elements that ``op`` works on."""
    if type(op) is not tuple:
        return op.arrays()
    plan, _, args = op
    return [a for a in [site.of(args) for site in plan.floats] if a is not None]


def _read_by(op: Any) -> list[array]:
    """The arrays with floating-point elements that ``op`` reads, as far as is known."""
    if type(op) is not tuple:
        return op.arrays() if not isinstance(op, HostWrite) else [op.source] if op.source is not None else []
    plan, _, args = op
    return [*[a for a in [site.of(args) for site in plan.floats if site.loads] if a is not None], *plan.held(args)]


class Pass:
    """One backward pass over ``log``: prepared first, so that what cannot be differentiated raises before anything
    has changed, then run."""

    def __init__(self, log: Log):
        self.log = log
        self.hidden: Hidden | None = None
        self.named: dict[int, array] | None = None  # arrays with gradients that operations name, by where these are
        self.steps: list[Any] = []
        self.results: dict[int, array] = {}  # arrays whose gradient may be left over, by id
        self.silent: set[str] = set()  # kernels on the way whose backward is switched off
        self.allowed: dict[Plan, bool] = {}
        # Adjoints, and arrays with hidden gradients, of launches by their likeness.
        self.known: dict[Any, tuple[Reverse | None, list[Shadow]]] = {}
        self.left = 0
        late = {id(a._memory) for a in graded_late if a._grad is not None} if graded_late else set()
        if late:
            from .late import refuse_own_gradients, refuse_two_gradients

            refuse_two_gradients(log.ops, late)
            refuse_own_gradients(log.ops, late)
        likes: Sequence[Any] = log.ops
        if any(_bare(op, late) for op in log.ops):
            likes = [_likeness(op) for op in log.ops]
            self.hidden = Hidden(log.ops, likes)
            from .untold import refuse_unseen_writes, refuse_untold

            refuse_unseen_writes(log.ops, self.hidden)
            refuse_untold(log.ops, self.hidden)
        for op, like in zip(log.ops, likes, strict=True):
            self.steps.append(self.prepared(op, like) if type(op) is tuple else op)
            if isinstance(op, HostWrite) and op.dest._grad is not None:
                self.results[id(op.dest)] = op.dest
            if array._retains:
                self.results.update({id(a): a for a in written_by(op) if a.retain_grad})
        if log.bodies:
            from .bodies import refuse_bodies

            active = [type(step) is tuple or (step is not None and self.goes_back(step)) for step in self.steps]
            refuse_bodies(log.bodies, active, self.restored())

    def goes_back(self, op: Any) -> bool:
        """Whether an operation that is no launch does anything to gradients."""
        return type(op) is Function or (isinstance(op, HostWrite) and self.grad_of(op.dest) is not None)

    def restored(self) -> set[int]:
        """The operations before which memory was saved that is put back on the way."""
        return {piece.position for piece in self.log.saved}

    def grad_of(self, a: array) -> array | None:
        return a._grad if self.hidden is None else self.hidden.of(a)

    def prepared(self, op: tuple, like: Any) -> tuple[Reverse, Any, Sequence[Any]] | None:
        """A launch ready to be run backwards; None where nothing depends on it. ``like``: its likeness, where arrays
        have hidden gradients."""
        plan, dim, args = op
        if plan.detached:
            return None
        allowed = self.allowed.get(plan)
        if allowed is None:
            allowed = self.allowed[plan] = plan.differentiates()
        if not allowed:
            if any([a is not None and self.grad_of(a) is not None for a in [site.of(args) for site in plan.floats]]):
                self.silent.add(plan.kernel.key)
            return None
        if self.hidden is None:
            reverse = self.adjoint(plan, dim, args)
            return None if reverse is None else (reverse, dim, args)
        found = self.known.get(like)
        if found is None:
            floats = [(site, a) for site, a in [(site, site.of(args)) for site in plan.floats] if a is not None]
            both = [((site.k, site.fields), self.hidden.shadow(a)) for site, a in floats if a._grad is None]
            shadows = [(place, shadow) for place, shadow in both if shadow is not None]
            found = self.known[like] = self.adjoint(plan, dim, with_shadows(args, shadows)), shadows
        reverse, shadows = found
        return None if reverse is None else (reverse, dim, with_shadows(args, shadows) if shadows else args)

    def same(self, a: array) -> array:
        """The array with the gradient of ``a``, which was found in memory: one that is on the tape by itself, or what
        an earlier pass found there. So it is the same from pass to pass, and what one leaves in it is known."""
        if self.named is None:
            named = [b for op in self.log.ops for b in arrays_of(op) if b._grad is not None]
            self.named = {b._grad._address: b for b in named}
        at = a._grad._address
        return self.named.get(at) or self.log.in_elements.setdefault(at, a)

    def adjoint(self, plan: Plan, dim: Any, args: Sequence[Any]) -> Reverse | None:
        """The adjoint of a launch with these arrays."""
        held = plan.graded(args)
        self.results.update({id(a): a for a in [self.same(a) for a in held]})
        key: Any = None
        try:
            arrays = [args[k] for k in plan.arrays] if plan.plain else [site.of(args) for site in plan.sites]
            descs: list[Any] = [a._desc for a in arrays]
            if self.hidden is not None:
                descs = [self.hidden.marks.get(desc, desc) for desc in descs]
            key = (dim, bool(held), *descs)
        except AttributeError:  # an array may be left out
            pass
        found = plan.reverses.get(key) if key is not None else None
        if found is None:
            found = self.choose(plan, dim, args, bool(held))
            if key is not None:
                if len(plan.reverses) > MOST:
                    plan.reverses.clear()
                plan.reverses[key] = found
        reverse, left = found
        for site in left:
            a = site.of(args)
            self.results[id(a)] = a
        if reverse is not None and reverse.nameless:
            from .untold import refuse_nameless

            refuse_nameless(plan, args)
        return reverse

    @staticmethod
    def choose(plan: Plan, dim: Any, args: Sequence[Any], held: bool) -> tuple[Reverse | None, list[Site]]:
        """The adjoint for a launch with these arrays, and the sites whose gradient may not be used up by it. ``held``:
        whether it may write to others with gradients, which lie in memory."""
        dims = normal_dims(dim)
        arrays = [(site, site.of(args)) for site in plan.sites]
        active = [(site, a) for site, a in arrays if site.floats and a is not None and a._grad is not None]
        results = [(site, a) for site, a in active if site.writes]
        left = [site for site, a in results if site.loads or not site.covered(a, dims)]
        if not results and not held:
            return None, left
        names = tuple([site.name for site, _ in active])
        key = names, (), False
        if not apart([a for _, a in arrays if a is not None]):
            spans = [(site, span_of(a)) for site, a in arrays if a is not None]
            aliased = tuple([
                one.name for one, (low, high) in spans if any(
                    one is not other and (one.writes or other.writes) and low < end and begin < high
                    for other, (begin, end) in spans)
            ])  # fmt: skip
            program = plan.overload.adjoint(dims, names, aliased).program
            key = names, aliased, program.meets(program.pack(args))
        found = plan.reverses.get(key)
        if found is None:
            found = plan.reverses[key] = Reverse(plan, *key, dims)
        return found, left

    def leftovers(self) -> list[array]:
        """Results whose gradient an earlier backward pass left there; it is no seed of this one."""
        return [a for a in self.results.values() if getattr(a._grad, "_left", False)]

    def mark_leftovers(self) -> None:
        """Note that this pass leaves gradients in results."""
        for a in self.results.values():
            if a._grad is not None:
                a._grad._left = True

    def run(self, retained: dict[int, tuple] | None) -> None:
        """Go back. Memory is afterwards what it was before, whatever happens."""
        saved = self.log.saved
        try:
            self.go_back(saved, 0, len(self.steps), retained)
        finally:
            for piece in saved[self.left :]:
                piece.swap()

    def go_back(self, saved: list[Any], first: int, end: int, retained: dict[int, tuple] | None) -> None:
        """Run the adjoints of operations ``end - 1`` down to ``first``. ``saved`` are the pieces to put back on the
        way, their positions counted from ``first``; afterwards, and after an error, ``left`` of them are where they
        were."""
        self.left = s = len(saved)
        for k in range(end - first - 1, -1, -1):
            before = s
            while s and saved[s - 1].position >= k:
                s -= 1
            step = self.steps[first + k]
            if retained is not None:
                self.retain(first + k, retained)
            if type(step) is tuple and step[0].careful:
                self.left = s
                self.run_carefully(first + k, saved[s:before])
                continue
            if s < before:
                for piece in reversed(saved[s:before]):
                    piece.swap()
                self.left = s
            if type(step) is tuple:
                reverse, dim, args = step
                if self.log.sums is not None:
                    self.verify(first + k)
                done = reverse.quick(dim, args, ())
                if done is not None:
                    reverse.run(dim, args)
            elif step is not None:
                step.backward(self.grad_of)

    def verify(self, k: int) -> None:
        """Raise where an array is not what launch ``k`` found in it."""
        if k not in self.log.sums:
            return
        plan, _, args = self.log.ops[k]
        now = plan.checksums(args)
        changed = [repr(name) for name, was in self.log.sums[k].items() if now.get(name, was) != was]
        if changed:
            raise KernelGradientError(
                f"{', '.join(changed)} changed after kernel {plan.kernel.key} had read it, in a way that the tape "
                "could not see", hint="write with assign(), or by an index on the array, not through a NumPy view",
            )  # fmt: skip

    def run_carefully(self, k: int, pieces: list[Any]) -> None:
        """Launch ``k``, whose adjoint writes to its arrays again, or must see what the launch left in them."""
        reverse, dim, args = self.steps[k]
        after = [copied(site.of(args)) for site in reverse.winners]
        befores = [Aside(piece.at, piece.nbytes) for piece in pieces]
        for piece in reversed(pieces):
            piece.swap()
        unsaved = [site.of(args) for site in reverse.unsaved]
        if reverse.rereads:
            unsaved += [a for a in reverse.plan.held(args) if not a.read_only]
        aside = [(a, copied(a)) for a in unsaved if a is not None]
        try:
            if self.log.sums is not None:
                self.verify(k)
            if after:
                reverse.run_with_winners(dim, args, after)
            else:
                reverse.run(dim, args)
        finally:
            for a, content in aside:
                put_value(a, content)
            for piece, before in zip(reversed(pieces), reversed(befores), strict=True):
                piece.put(before)

    def retain(self, k: int, retained: dict[int, tuple]) -> None:
        """Keep a copy of gradients that operation ``k`` is about to use up, of arrays that ask for it."""
        for a in written_by(self.log.ops[k]):
            if a.retain_grad and id(a) not in retained:
                retained[id(a)] = a._grad, copied(a._grad)


def written_by(op: Any) -> list[array]:
    """The arrays that ``op`` writes, as far as is known."""
    if type(op) is tuple:
        return op[0].written(op[2])
    return [op.dest] if isinstance(op, HostWrite) else op.arrays()


def apart(arrays: list[array]) -> bool:
    """Whether it is plain that no two of ``arrays`` and their gradients, nor elements of one, lie over each other."""
    spans = []
    for a in arrays:
        nbytes = gapless(a)
        if nbytes < 0:
            return False
        spans.append((a._address, a._address + nbytes))
        if a._grad is not None:
            spans.append((a._grad._address, a._grad._address + nbytes))
    spans.sort()
    return all([end <= begin for (_, end), (begin, _) in zip(spans, spans[1:])])


def _bare(op: Any, late: set[int]) -> bool:
    """Whether ``op`` works on an array without a gradient that may need one: it writes it, or the array may show what
    another shows, since its memory is foreign or among ``late``, where arrays got gradients after they were made."""
    if type(op) is tuple:
        plan, _, args = op
        if plan.pairs or plan.holders:
            return True
        for site in plan.floats:
            a = args[site.k] if not site.fields else site.of(args)
            if a is not None and a._grad is None and (site.writes or _shown(a, late)):
                return True
        return False
    if not isinstance(op, HostWrite):
        return untold(op)
    shown = [a for a in op.arrays() if a._grad is None and _shown(a, late)]
    return bool(shown) or (op.source is not None and op.dest._grad is None)


def untold(op: Any) -> bool:
    """Whether ``op``, no launch, is the run of a graph of whose operations nobody told (``lang/untold.py``)."""
    return isinstance(op, Kept) and op.untold


def _shown(a: array, late: set[int]) -> bool:
    memory = a._memory
    return memory.__class__ in FOREIGN or id(memory) in late


def add_back(grad: array, content: array) -> None:
    """Add ``content`` to ``grad``."""
    add_all(grad, content)
