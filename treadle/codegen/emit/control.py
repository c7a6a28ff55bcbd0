"""Branches and loops. What diverges runs under masks; the rest is ordinary control flow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...ir.node import Block, Op, Value
from ...ir.ops import info
from ...types.core import b1
from . import faults, tape
from .lasting import BLOCK
from .merge import Thing, blend, keeps, merge_all, part_steps, phi_text
from .scalar import Lower
from .text import MASK, vector
from .values import ViewX, X

if TYPE_CHECKING:
    from .emitter import Emitter

# An arm of pure ops up to this weight runs without asking whether any lane needs it.
CHEAP = 16
_HEAVY = {"div": 6, "mod": 8, "floordiv": 8, "sqrt": 6}


def weight(block: Block, taped: bool = False) -> int | None:
    """Roughly the instructions of ``block``; None if it must not run for lanes that did not ask for it. ``taped``: all
    the same if that is only because it works on stack or log."""
    total = 0
    for op in block.ops:
        if op.name == "if":
            arms = [weight(r, taped) for r in op.regions]
            if None in arms:
                return None
            total += sum(arms) + len(op.results)
        elif taped and info(op.name).tape:
            total += 1 + len(op.args) + len(op.results)
        elif op.regions or not info(op.name).pure or not info(op.name).safe:
            return None
        else:
            total += 0 if op.name == "const" else _HEAVY.get(op.name, 1)
    return total


def cheap(block: Block) -> bool:
    """Whether ``block`` may as well run when no lane needs it."""
    total = weight(block)
    return total is not None and total <= CHEAP


def split(e: Emitter, result: Value, a: X, b: X) -> bool:
    """Keep ``a and b`` of a uniform and a varying truth value as the two; False if they are not of these kinds."""
    if a.step is None and b.step == 0:
        a, b = b, a
    if a.step != 0 or a.text is None or b.step is not None or a.const is not None:
        return False
    if b.split is not None:
        more, b = b.split
        a = e.uniform(b1, e.t.ins(f"and i1 {a.text}, {more.text}"))
    x = X(b1, None, None, None)
    x.split, x.home = (a, b), e.t.slot()
    e.env[result] = x
    return True


@dataclass(slots=True)
class Exit:
    """A divergent loop being written: where control goes when it ends, and what its results are on each way there."""

    op: Op
    label: str
    old: list[Thing] = field(default_factory=list)  # results of lanes that left before this round
    edges: list[tuple[str, list[Thing]]] = field(default_factory=list)
    staying: dict[Value, tuple[str, bool]] = field(
        default_factory=dict
    )  # condition -> its lanes, and whether there is one


# --- if ----------------------------------------------------------------------------------------------------------


def _if(e: Emitter, op: Op) -> None:
    if op in e.lanes.divergent:
        if _as_conjunction(e, op):
            return
        mask, some = e.mask, e.some
        leaving = e.lanes.leaving.get(op)
        if leaving is not None and leaving.last and e.exits and op is e.exits[-1].op.regions[0].ops[-1]:
            _leave(e, op)
        else:
            _Divergent(e, op).write()
        e.mask, e.some = mask, some
        faults.refresh(e, op)
        return
    if _as_conjunction(e, op):
        return
    condition = e.number(op.args[0])
    yes, no, end = e.t.label("then"), e.t.label("else"), e.t.label("endif")
    everyone = e.pack(e.mask) if e.exits else ""
    before = e.t.known
    e.t.branch(condition.text, yes, no)
    arms: list[tuple[str, list[Thing]]] = []
    valids: list[list[str | None]] = []
    mask, some, known = e.mask, e.some, e.known_true
    for label, region in zip((yes, no), op.regions, strict=True):
        e.t.start(label, before)
        e.known_true = known | {condition.text} if label == yes else set(known)
        e.block(region)
        # A result that an inner leaving arm did not blend is that of some lanes only; who they are comes along.
        valids.append([e.pack(e.valid[y]) if y in e.valid else None for y in region.yields])
        things = [e.sealed(r, e.get(y)) for r, y in zip(op.results, region.yields, strict=True)]
        arms.append((e.t.block, things))
        e.t.jump(end)
        e.mask, e.some = mask, some
    e.known_true = known
    e.t.start(end, before)
    names = [
        (r, e.t.ins(f"phi {e.carried_bits} [ {a or everyone}, %{arms[0][0]} ], [ {b or everyone}, %{arms[1][0]} ]"))
        for r, a, b in zip(op.results, *valids, strict=True)
        if a is not None or b is not None
    ]
    merged = merge_all(e, [(r, [(b, things[i]) for b, things in arms]) for i, r in enumerate(op.results)])
    e.env.update(zip(op.results, merged, strict=True))
    e.valid.update((r, e.unpack(name)) for r, name in names)
    faults.refresh(e, op)


def _as_conjunction(e: Emitter, op: Op) -> bool:
    """Write ``if c {…; yield x} else {yield False}`` with few pure ops as ``c and x``; False if ``op`` is not of
    that form."""
    if e.width == 1 or len(op.results) != 1 or op.results[0].type is not b1 or e.lanes.steps[op.results[0]] is not None:
        return False
    then, other = op.regions
    made = e.env.get(other.yields[0])
    false = (
        made.const is False
        if isinstance(made, X)
        else any(o.name == "const" and o.results[0] is other.yields[0] and o.attrs["value"] is False for o in other.ops)
    )
    if not false or not cheap(then) or not cheap(other):
        return False
    e.block(then)
    c, x = e.number(op.args[0]), e.number(then.yields[0])
    if not split(e, op.results[0], c, x):
        e.env[op.results[0]] = X(b1, None, e.t.ins(f"and {e.bits} {e.wide(c)}, {e.wide(x)}"), None)
    return True


def _leave(e: Emitter, op: Op) -> None:
    """The last ``if`` of a loop whose other arm leaves it: when no lane stays, go straight to the loop's exit."""
    leaving, here = e.lanes.leaving[op], e.exits[-1]
    condition, stay, other = e.number(op.args[0]), op.regions[leaving.stay], op.regions[1 - leaving.stay]
    plain = weight(other) is not None and len(leaving.free) == sum(1 for r in op.results if r not in _stays(here.op))
    if not plain:
        _Divergent(e, op).write()
        return
    varying = condition
    if condition.split is not None and leaving.stay == 0:
        u, varying = condition.split
        if u.text not in e.known_true:
            _exit_unless(e, u.text)
            e.known_true = e.known_true | {u.text}
    lanes = (e.both if leaving.stay == 0 else e.without)(e.mask, e.wide(varying))
    tested = not cheap(stay)
    if tested:
        _exit_unless(e, e.any(lanes))
    if leaving.stay == 0:
        here.staying[op.args[0]] = lanes, tested
    e.mask, e.some = lanes, tested
    e.block(stay)
    for i, r in enumerate(op.results):
        y = stay.yields[i]
        e.env[r] = e.get(y)
        if i in leaving.free:
            e.valid[r] = e.valid.get(y, e.mask)
        else:  # the stay flag: lanes outside have left
            x = e.number(y)
            if x.const is True:
                e.env[r] = X(b1, None, e.mask, None)
            elif x.const is not False:
                e.env[r] = X(b1, None, e.both(e.mask, e.wide(x)), None)


def _stays(loop: Op) -> tuple[Value, ...]:
    return loop.regions[0].yields[:1]


def _exit_unless(e: Emitter, condition: str) -> None:
    """Leave the innermost loop unless ``condition``; its results are those of the lanes that left before."""
    here, go = e.exits[-1], e.t.label("on")
    old = [e.sealed(r, x) for r, x in zip(here.op.results, here.old, strict=True)]
    e.t.branch(condition, go, here.label)
    here.edges.append((e.t.block, old))
    e.t.start(go, e.t.known)


class _Divergent:
    """An ``if`` whose lanes disagree: each arm under its own mask, results blended unless nobody can see the
    difference."""

    def __init__(self, e: Emitter, op: Op):
        self.e, self.op = e, op
        self.leaving = e.lanes.leaving.get(op)
        condition = e.wide(e.number(op.args[0]))
        self.masks = [e.both(e.mask, condition), ""]
        self.masks[1] = e.without(e.mask, condition)
        self.result: list[Thing | None] = [None] * len(op.results)
        self.outer = e.mask, e.some
        self.since = 0  # the names there were when the arm that is being written began
        # A yield known before the arms are written is what lanes of the other arm blend with.
        self.before: list[list[Thing | None]] = [[e.env.get(y) for y in region.yields] for region in op.regions]

    def write(self) -> None:
        e, op = self.e, self.op
        order = (0, 1) if self.leaving is None else (1 - self.leaving.stay, self.leaving.stay)
        if e.unit.taped:
            order = tape.turns(op) or order
        for side in order:
            self.arm(side, first=side == order[0])
        for i, r in enumerate(op.results):
            thing = self.result[i]
            e.env[r] = e.get(op.regions[0].yields[i]) if thing is None else thing

    def arm(self, side: int, first: bool) -> None:
        """Write one arm and bring its results together with what the other arm left or will leave."""
        e, region, mask = self.e, self.op.regions[side], self.masks[side]
        e.mask, e.some, self.since = mask, False, e.t.count
        guarded = not cheap(region)
        if guarded:
            skipped = [e.sealed(r, self.skipped(i, side)) for i, r in enumerate(self.op.results)]
            go, end, start = e.t.label("arm"), e.t.label("endarm"), e.t.block
            e.t.branch(e.any(mask), go, end)
            before = e.t.known
            e.t.start(go, before)
            e.some = True
        known = e.known_true
        e.block(region)
        e.known_true = known
        changes = [c for c in (self.outcome(i, side, first) for i in range(len(self.result))) if c is not None]
        valids = [(self.op.results[i], e.valid.get(region.yields[i], e.mask)) for i, _, _ in changes if self.free(i)]
        if guarded:
            valids = [(r, e.pack(v)) for r, v in valids]
            done = [(self.op.results[i], e.sealed(self.op.results[i], new), skipped[i]) for i, new, _ in changes]
            last = e.t.block
            e.t.jump(end)
            e.t.start(end, before)
            names = [
                (r, e.t.ins(f"phi {e.carried_bits} [ {v}, %{last} ], [ zeroinitializer, %{start} ]")) for r, v in valids
            ]
            merged = merge_all(e, [(r, [(last, new), (start, old)]) for r, new, old in done])
            for (i, new, old), thing in zip(changes, merged, strict=True):
                if thing is not new:
                    thing.kept = (old, e.t.count) if keeps(new, old, self.since) else None
                self.result[i] = thing
            e.valid.update((r, e.unpack(v)) for r, v in names)
        else:
            for i, new, _ in changes:
                self.result[i] = new
            e.valid.update(valids)
        e.mask, e.some = self.outer

    def skipped(self, i: int, side: int) -> Thing:
        """What result ``i`` is if no lane runs this arm; nothing in particular where the arm has no say in it."""
        theirs, so_far = self.before[1 - side][i], self.result[i]
        if self.free(i) or (theirs is None and so_far is None):
            return self.e.zero(self.op.results[i])
        return so_far if theirs is None else theirs

    def free(self, i: int) -> bool:
        return self.leaving is not None and i in self.leaving.free

    def outcome(self, i: int, side: int, first: bool) -> tuple[int, Thing, Thing] | None:
        """Result ``i`` if this arm ran, and if it was skipped; None if this arm has no say in it."""
        e, region = self.e, self.op.regions[side]
        y, other = region.yields[i], self.op.regions[1 - side].yields[i]
        if y is other:
            return None
        if self.free(i):
            assert self.leaving is not None
            return (i, e.get(y), e.zero(self.op.results[i])) if side == self.leaving.stay else None
        mine, theirs = self.before[side][i], self.before[1 - side][i]
        if theirs is not None and (mine is None or first):
            return i, blend(e, self.masks[side], e.get(y), theirs, self.since), theirs
        if mine is not None:
            return None  # the other arm blends with it
        if first:
            return i, e.get(y), e.zero(self.op.results[i])
        so_far = self.result[i]
        assert so_far is not None
        return i, blend(e, self.masks[side], e.get(y), so_far, self.since), so_far


# --- loops -------------------------------------------------------------------------------------------------------


class _Loop:
    """A ``for`` or ``while`` being written, its test at the end of a round."""

    def __init__(self, e: Emitter, op: Op):
        self.e, self.op, self.region = e, op, op.regions[0]
        self.counted = op.name == "for"
        self.stays = not self.counted or op.attrs.get("stays", False)
        head = 3 if self.counted else 0
        self.inits = [e.get(a) for a in op.args[head:]]
        self.carried = self.region.params[1 if self.counted else 0 :]
        self.yields = self.region.yields[1 if self.stays else 0 :]
        self.diverges = op in e.lanes.divergent
        # Results that somebody reads and that differ from the face inside: blended as lanes leave.
        self.kept = [self.diverges and e.lanes.uses.get(r, 0) > 0 and y is not p
                     for r, y, p in zip(op.results, self.yields, self.carried, strict=True)]  # fmt: skip
        self.exit = Exit(op, e.t.label("endloop"))
        self.sure = False  # an any-test in the round found a lane that stays
        self.first_packed: list[str] = []  # the mask of the first round, and of each, as it travels
        self.packed: list[str] = []
        self.arriving: dict[X, X] = {}  # truth values of a round: the form in which they come
        self.body = e.t.label("loop")
        if self.counted:
            self.bounds = [e.number(a) for a in op.args[:3]]
            self.scalar = all(e.lanes.steps[a] == 0 for a in op.args[:3])
        self.left = (
            e.t.name() if op in e.unit.lasting else ""
        )  # rounds until a loop that may last asks for the stop flag

    def write(self) -> None:
        e = self.e
        mask, some, known = e.mask, e.some, e.known_true
        entry = self.enter()
        pairs = list(zip(self.carried, self.op.results, self.inits, strict=True))
        self.firsts = [e.sealed(p, x) for p, _, x in pairs]
        self.olds = [e.sealed(r, x) for _, r, x in pairs]
        before = e.t.block
        if entry is None:
            e.t.jump(self.body)
        else:
            e.t.branch(entry, self.body, self.exit.label)
            self.exit.edges.append((before, list(self.olds)))
        outside = e.t.known
        e.t.start(self.body, outside)
        self.header()
        faults.poll(e, self.op)
        if self.left:
            self.count_down()
        e.exits.append(self.exit)
        e.block(self.region)
        e.exits.pop()
        self.latch(before)
        e.t.start(self.exit.label, outside)
        self.results()
        e.mask, e.some, e.known_true = mask, some, known
        faults.refresh(e, self.op)

    def enter(self) -> str | None:
        """The test before the first round (None: always), and the mask of that round."""
        e = self.e
        if self.diverges:
            self.first_packed = self.carry(e.mask)
        if not self.counted:
            return None
        low = Lower(e, self.bounds[0].type, b1, self.scalar)
        test = self.first_round(low)
        if self.scalar:
            return test.text
        first = e.both(e.mask, e.wide(test))
        self.first_packed = self.carry(first)
        return e.any(first)

    def header(self) -> None:
        """The phis. Their texts are filled in when the next round's values are known."""
        e = self.e
        self.phis: list = e.t.slot()
        home = e.t.slot()
        if self.counted:
            self.counter = self.face(self.region.params[0], self.bounds[0], home)
            e.env[self.region.params[0]] = self.counter
        self.faces: list[Thing] = []
        for p, init, r, kept in zip(self.carried, self.inits, self.op.results, self.kept, strict=True):
            inside = self.face(p, init, home)
            e.env[p] = inside
            self.faces.append(inside)
            apart = kept and e.lanes.steps[p] is not None
            self.exit.old.append(self.face(r, init, home) if apart else inside if kept or not self.diverges else init)
        if self.diverges:
            self.packed = [e.t.name() for _ in self.first_packed]
            self.mask_name = e.joined(self.packed) if len(self.packed) > 1 else e.unpack(self.packed[0])
            e.mask, e.some = self.mask_name, True
        else:
            faults.refresh(e, self.op)

    def face(self, value: Value, init: Thing, home: list) -> Thing:
        """A phi to be: ``value`` at the start of a round."""
        e, step = self.e, self.e.lanes.steps[value]
        if isinstance(init, ViewX):
            steps = part_steps(step, len(init.parts()))
            return init.rebuilt([self.number(s, x, home) for s, x in zip(steps, init.parts(), strict=True)])
        made = self.number(step, init, home)
        if not e.seals(value):
            return made
        arrived = e.unsealed(X(MASK, None, made.wide, None))
        self.arriving[arrived] = made
        return arrived

    def number(self, step: int | None | str, init: X, home: list) -> X:
        name = self.e.t.name()
        if step is None:
            x = X(init.type, None, name, None)
        else:
            x = X(init.type, name, None, step if isinstance(step, int) else 0)
            x.home = home
        return x

    def count_down(self) -> None:
        """Ask for the stop flag if this round is the last of its block."""
        e, here, asks, go = self.e, self.e.t.block, self.e.t.label("ask"), self.e.t.label("go")
        less = e.t.ins(f"add i32 {self.left}, -1")
        known = e.t.known
        e.t.declare(f'!1 = !{{!"branch_weights", i32 1, i32 {BLOCK}}}')
        e.t.do(f"br i1 {e.t.ins(f'icmp eq i32 {less}, 0')}, label %{asks}, label %{go}, !prof !1")
        e.t.start(asks, known)
        faults.ask(e, go)
        e.t.start(go, known)
        self.less = e.t.ins(f"phi i32 [ {less}, %{here} ], [ {BLOCK}, %{asks} ]")

    def latch(self, before: str) -> None:
        """End of a round: who stays, what the next round finds, what those who leave take along."""
        e, region = self.e, self.region
        tests: list[str] = []
        mask = e.mask
        if self.stays:
            mask = self.staying(region.yields[0], tests)
        if self.counted:
            low = Lower(e, self.bounds[0].type, b1, self.scalar)
            more, following = self.next_round(low)
            if self.scalar:
                tests.append(more.text)
            else:
                mask = e.both(mask, e.wide(more))
        nexts, outs = self.successors()
        nexts = [e.sealed(p, x) for p, x in zip(self.carried, nexts, strict=True)]
        outs = [e.sealed(r, x) for r, x in zip(self.op.results, outs, strict=True)]
        tested = mask == e.mask and self.sure
        if self.diverges and not tested:
            tests.append(e.any(mask))
        after = self.carry(mask) if self.diverges else []
        last = e.t.block
        if tests:
            condition = tests[0]
            for t in tests[1:]:
                condition = e.t.ins(f"and i1 {condition}, {t}")
            e.t.branch(condition, self.body, self.exit.label)
            self.exit.edges.append((last, outs))
        else:
            e.t.jump(self.body)
        if self.left:
            self.phis.append(f"  {self.left} = phi i32 [ {BLOCK}, %{before} ], [ {self.less}, %{last} ]")
        if self.counted:
            self.fill(self.region.params[0], self.counter, before, self.bounds[0], last, following)
        for j, p in enumerate(self.carried):
            self.fill(p, self.faces[j], before, self.firsts[j], last, nexts[j])
            if self.kept[j] and e.lanes.steps[p] is not None:
                self.fill(self.op.results[j], self.exit.old[j], before, self.olds[j], last, outs[j])
        kind = vector("i1", e.unit.target.lanes) if len(after) > 1 else e.carried_bits
        for name, first, following in zip(self.packed, self.first_packed, after, strict=True):
            self.phis.append(f"  {name} = phi {kind} [ {first}, %{before} ], [ {following}, %{last} ]")

    def carry(self, mask: str | None) -> list[str]:
        """``mask`` in the form, or the parts, in which it goes to the next round."""
        return self.e.cut(self.e.pack(mask)) if self.e.cuts_masks else [self.e.pack(mask)]

    def staying(self, flag: Value, tests: list[str]) -> str | None:
        """The lanes that stay by the loop's flag; uniform conditions go to ``tests``."""
        e = self.e
        if flag in self.exit.staying:
            lanes, tested = self.exit.staying[flag]
            if tested and not faults.may_fail(e.unit, self.op):
                self.sure = True
                e.mask = lanes
                return lanes
        x = e.number(flag)
        if x.split is not None:
            u, x = x.split
            if u.text not in e.known_true:
                tests.append(u.text)
        if x.step == 0 and x.text is not None:
            if x.const is not True:
                tests.append(x.text)
            return e.mask
        if not self.diverges:
            tests.append(x.text)
            return e.mask
        return e.both(e.mask, e.wide(x))

    def successors(self) -> tuple[list[Thing], list[Thing]]:
        """What each carried value is in the next round, and what each result is if the loop ends now."""
        e = self.e
        nexts: list[Thing] = []
        outs: list[Thing] = []
        for j, (p, y) in enumerate(zip(self.carried, self.yields, strict=True)):
            new = e.get(y)
            if not self.kept[j]:
                nexts.append(new)
                outs.append(new if not self.diverges else self.exit.old[j])
                continue
            valid = e.valid.get(y, self.mask_name)  # all that ran this round
            out = blend(e, valid, new, self.exit.old[j])
            outs.append(out)
            nexts.append(out if e.lanes.steps[p] is None else new)
        return nexts, outs

    def fill(self, value: Value, face: Thing, before: str, first: Thing, last: str, following: Thing) -> None:
        """Write the phi promised by :meth:`face`."""
        if isinstance(face, ViewX):
            assert isinstance(first, ViewX) and isinstance(following, ViewX)
            for f, a, b in zip(face.parts(), first.parts(), following.parts(), strict=True):
                self.fill_number(f, before, a, last, b)
        else:
            self.fill_number(face, before, first, last, following)

    def fill_number(self, face: X, before: str, first: X, last: str, following: X) -> None:
        face = self.arriving.get(face, face)
        edges = [(before, first), (last, following)]
        if face.text is None:
            self.phis.append(f"  {face.wide} = {phi_text(self.e, None, edges)}")
        else:
            self.phis.append(f"  {face.text} = {phi_text(self.e, 0, edges)}")

    def results(self) -> None:
        e, edges = self.e, self.exit.edges
        wanted = [
            (j, r) for j, r in enumerate(self.op.results)
            if e.lanes.uses.get(r, 0) and not (self.diverges and self.yields[j] is self.carried[j])
        ]  # fmt: skip
        if edges:
            merged = merge_all(e, [(r, [(b, things[j]) for b, things in edges]) for j, r in wanted])
            e.env.update(zip((r for _, r in wanted), merged, strict=True))
        for j, r in enumerate(self.op.results):
            if r not in e.env or not edges:
                e.env[r] = self.inits[j]

    # --- counting: range(start, stop, step) without overflow

    def first_round(self, low: Lower) -> X:
        """Whether the range has a first number."""
        start, stop, step = self.bounds
        signed = "s" if start.type.is_signed else "u"
        if step.const is not None:
            return (
                low.icmp(f"{signed}{'lt' if step.const > 0 else 'gt'}", start, stop)
                if step.const
                else low.const_of(b1, False)
            )
        zero = low.const(0)
        up = low.binary("and", low.icmp(f"{signed}gt", step, zero), low.icmp(f"{signed}lt", start, stop))
        if signed == "u":
            return up
        down = low.binary("and", low.icmp("slt", step, zero), low.icmp("sgt", start, stop))
        return low.binary("or", up, down)

    def next_round(self, low: Lower) -> tuple[X, X]:
        """Whether another number follows, and that number. ``stop - i`` is compared: ``i + step`` might wrap around."""
        e = self.e
        _, stop, step = self.bounds
        i = self.counter
        assert isinstance(i, X)
        advance = Lower(e, i.type, i.type, i.text is not None)
        following = advance.binary("add", i, step)
        if i.text is not None:
            following.step, following.home = i.step, e.t.slot()
        if step.const == 1:
            return low.icmp("slt" if i.type.is_signed else "ult", following, stop), following
        if step.const == -1 and i.type.is_signed:
            return low.icmp("sgt", following, stop), following
        if step.const is not None:
            left = low.binary("sub", stop, i) if step.const > 0 else low.binary("sub", i, stop)
            return low.icmp("ugt", left, low.const(abs(step.const))), following
        zero = low.const(0)
        up = low.icmp("sgt" if i.type.is_signed else "ugt", step, zero)
        left = low.select(up, low.binary("sub", stop, i), low.binary("sub", i, stop))
        return low.icmp("ugt", left, low.select(up, step, low.binary("sub", zero, step))), following


def _loop(e: Emitter, op: Op) -> None:
    _Loop(e, op).write()


HANDLERS = {"if": _if, "for": _loop, "while": _loop}
