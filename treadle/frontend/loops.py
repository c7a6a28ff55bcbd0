"""Loops: carried values, early ends, and the loops that are unrolled."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..base.errors import TreadleError, UnassignedError
from ..ir.builder import Builder
from ..ir.indexed import extent
from ..ir.node import NO_ATTRS, Block, Op, Value
from ..types.core import Indexed, Matrix, Scalar, Struct, Tile, Tuple, Type, Vector, View, any_layout, b1, i32
from ..types.layout import children
from ..types.spelling import spell
from .calls import Calls
from .constants import FALSE, TRUE, Constant, Operand, adapted, constant_of, describe
from .control import FLOWS, Flow, operand_type
from .core import common_type
from .environment import ADJOINT, BROKE, RESULT, RETURNED, STAY, Broken, Environment, Variable
from .facts import Names

UNROLLED_NODES = 6000  # a loop is not unrolled for speed if that makes more syntax than this


Items = range | list[Operand]
Item = Callable[[Operand], Operand]


class Carried:
    """A variable that a loop carries: its parameter in the body, its value before, and the same for its defined bit."""

    __slots__ = ("bit", "bit_start", "name", "param", "span", "start", "unknown")

    def __init__(self, name: str, param: Value, start: Operand | None, bit: Value | None, bit_start: Operand, span):
        self.name, self.param, self.start = name, param, start
        self.bit, self.bit_start, self.span = bit, bit_start, span
        self.unknown = param.type is None  # nothing has told its type when the body begins


class Loops(Calls):
    """Translation of ``for`` and ``while``."""

    depth = 0  # of loops that are loops of the program
    copies = 1  # how often the place being translated is repeated by unrolling

    # -- for -----------------------------------------------------------------------------------------------------------

    def _for(self, s: ast.For, live: Names) -> Flow:
        if not isinstance(s.target, ast.Name):
            self.no_syntax(s.target, "a loop over several variables", "use one index and read the rest with it")
        live = self._live_after(s, live)
        known, bounds, item = self._iterated(s)

        def loop() -> Flow:
            if known is None:
                return self._for_op(s, bounds, live, False, item)
            if not self._unroll(s, known, bounds is None):
                return self._for_op(s, bounds, live, True, item)
            numbers = isinstance(known, range)
            t = self._index_type(bounds) if numbers else None
            return self._unrolled(s, [Constant(v, t) for v in known] if numbers else known, live, item)

        return self._with_orelse(s, loop, live)

    def _unroll(self, s: ast.For, items: Items, always: bool) -> bool:
        """Whether to copy the body for each of ``items`` instead of making a loop of the program."""
        nodes, static = self._weight(s)
        if always or static or not items:
            return True
        small = len(items) <= self.options.max_unroll and len(items) * self.copies * nodes <= UNROLLED_NODES
        return small and not self.facts.loop_exits(s).leaves

    def _with_orelse(self, s: ast.For | ast.While, loop: Callable[[], Flow], live: Names) -> Flow:
        """Translate a loop, and its ``else``, which runs unless a break has left the loop."""
        outer = self.env.pop(BROKE, None)
        if s.orelse and self.facts.loop_exits(s).breaks:
            self.env[BROKE] = Variable(FALSE)
        flow, live = loop(), live | FLOWS
        broke = self.env.pop(BROKE, None)
        if outer is not None:
            self.env[BROKE] = outer
        if not s.orelse or flow is False:
            return flow

        def rest() -> Flow:
            if broke is None or broke.operand is FALSE:
                return self.block(s.orelse, live)
            if broke.operand is TRUE:
                return True
            unbroken = self.negate(broke.operand, s)
            return self.branch(unbroken, lambda: self.block(s.orelse, live), lambda: True, live, s)

        return rest() if flow is True else self.branch(flow, rest, lambda: False, live, s)

    def _live_after(self, s: ast.For | ast.While, live: Names) -> Names:
        own = self.facts.after[s].union(*[self.facts.reads(inner) for inner in s.orelse])
        return own | live - FLOWS if self.facts.of[s].leaves else own

    def _iterated(self, s: ast.For) -> tuple[Items | None, list[Operand] | None, Item | None]:
        """What the loop runs over: its items, if they are known; start, stop and step, if it is a range or the indices
        of an array; and what the variable is for an index, if it is not the index."""
        call = s.iter
        if (
            isinstance(call, ast.Call)
            and self.callee_is(call.func, reversed)
            and len(call.args) == 1
            and not call.keywords
        ):
            inner = call.args[0]
            if isinstance(inner, ast.Call) and self.callee_is(inner.func, range):
                known, bounds = self._range(inner)
                return (None, self._reversed(bounds, inner), None) if known is None else (known[::-1], bounds, None)
        if isinstance(call, ast.Call) and self.callee_is(call.func, range):
            return *self._range(call), None
        x = self.expression(call)
        if isinstance(x, Constant) and isinstance(x.value, tuple | list | range):
            return [constant_of(v) for v in x.value], None, None
        if isinstance(x, tuple):
            return list(x), None, None
        t = operand_type(x) if x is not None else None
        if isinstance(t, View | Indexed):
            return self._elements(self.value(x, call), call)
        if isinstance(t, Vector | Matrix | Tuple) and not isinstance(t, Tile):
            return list(self.spread(x, call)), None, None
        self.no_syntax(call, "a loop over anything but ranges, tuples, arrays, vectors and matrices", "use range(n)")

    def _elements(self, v: Value, node: ast.expr) -> tuple[Items | None, list[Operand], Item]:
        """The indices along the first dimension of an array, and the element, or the row, at an index."""
        bounds = [Constant(0, i32), extent(self.here(node), v, 0), Constant(1, i32)]
        return None, bounds, lambda i: self.read(self.element(v, (self.value(i, node),)), node)

    def _range(self, call: ast.Call) -> tuple[range | None, list[Operand]]:
        """The numbers of ``range(…)`` if they are known; its start, stop and step."""
        if call.keywords or not 1 <= len(call.args) <= 3:
            self.fail(call, "range takes one to three arguments")
        given = [self.operand(a) for a in call.args]
        for i, node in enumerate(call.args):
            x = given[i]
            if isinstance(x, Constant) and x.type is b1:
                given[i] = x = Constant(int(x.value), i32, True)
            t = operand_type(x)
            if not (isinstance(t, Scalar) and t.is_int):
                self.fail(node, f"range takes integers, not {describe(x)}", "write int(…)")
        bounds = [*([Constant(0, i32, True)] if len(given) == 1 else []), *given, Constant(1, i32, True)][:3]
        start, stop, step = bounds
        if isinstance(step, Constant) and step.value == 0:
            self.fail(call, "the step of a range cannot be 0")
        types = {x.type for x in bounds if not (isinstance(x, Constant) and x.literal)}
        if len(types) > 1:
            shown = " and ".join(sorted(spell(t) for t in types))
            self.fail(
                call, f"the bounds of a range must be of one type, here are {shown}", "convert them, as in int(…)"
            )
        t = types.pop() if types else max((x.type for x in bounds), key=lambda t: t.bits)  # literals may be wide
        if all(isinstance(x, Constant) for x in bounds):
            return range(start.value, stop.value, step.value), [adapted(x, t) for x in bounds]
        return None, [adapted(x, t) if isinstance(x, Constant) else x for x in bounds]

    def _weight(self, s: ast.For) -> tuple[int, bool]:
        """How much syntax the loop is, and whether a ``wp.static`` in it uses the loop's variable."""
        found = self.weights.get(s)
        if found is None:
            nodes = list(ast.walk(s))
            calls = [n for n in nodes if isinstance(n, ast.Call) and self.is_static(n.func)]
            static = any(s.target.id in self.facts.reads(a) for call in calls for a in call.args)
            found = self.weights[s] = (len(nodes), static)
        return found

    def _reversed(self, bounds: list[Operand], call: ast.Call) -> list[Operand]:
        """Start, stop and step of the same numbers from the last to the first.

        There are n = max((stop - start + step - sign(step)) / step, 0) of them, the last is start + (n - 1) step.
        """
        start, stop, step = bounds
        one = Constant(1, self._index_type(bounds))
        forward = self.truth(self.binary("gt", step, Constant(0, i32, True), call), call)
        if isinstance(forward, bool):
            sign: Operand = one if forward else Constant(-1, one.type)
        else:
            given = (forward, self.value(one, call), self.value(Constant(-1, one.type), call))
            sign = self.here(call).one("select", given, one.type)
        span = self.binary("sub", self.binary("add", self.binary("sub", stop, start, call), step, call), sign, call)
        count = self.value(self.binary("div", span, step, call), call, one.type)
        b = self.here(call)
        before = b.one("sub", (b.one("max", (count, b.const(0, one.type)), one.type), b.const(1, one.type)), one.type)
        last = self.binary("add", start, self.binary("mul", before, step, call), call)
        return [last, self.binary("sub", start, step, call), self.binary("sub", Constant(0, one.type), step, call)]

    def _index_type(self, bounds: list[Operand]) -> Type:
        return next((x.type for x in bounds if not (isinstance(x, Constant) and x.literal)), bounds[1].type)

    def _unrolled(self, s: ast.For, items: list[Operand], live: Names, item: Item | None) -> Flow:
        """One copy of the body for each item; the loop's variable is that, or what ``item`` makes of it."""
        inside = self.facts.head[s] | live
        stay, copies = self.env.pop(STAY, None), self.copies
        if self.facts.of[s].returns and RETURNED not in self.env:
            self.env[RETURNED] = Variable(FALSE)
        self.copies *= max(len(items), 1)
        self.depth += 1
        try:
            self._iterations(s, items, inside, item)
        finally:
            self.copies = copies
            self.depth -= 1
        self.env.pop(STAY, None)
        if stay is not None:
            self.env[STAY] = stay
        return self._after_returns(s)

    def _iterations(self, s: ast.For, items: list[Operand], inside: Names, made: Item | None) -> Flow:
        for i, item in enumerate(items):
            self.env[STAY] = Variable(TRUE)
            self.env.pop(s.target.id, None)
            self.bind(s.target.id, item if made is None else made(item), s.target)
            self.block(s.body, inside)
            stay = self.env[STAY].operand
            if stay is FALSE:
                break
            if isinstance(stay, Value):
                rest = items[i + 1 :]
                if rest:
                    further = lambda rest=rest: self._iterations(s, rest, inside, made)  # noqa: E731
                    self.branch(stay, further, lambda: True, inside, s)
                break
        return True

    def _after_returns(self, s: ast.For | ast.While) -> Flow:
        """The flow behind a loop: false where a return inside has run."""
        if not self.facts.of[s].returns or RETURNED not in self.env:
            return True
        returned = self.env[RETURNED].operand
        if isinstance(returned, Constant):
            if returned.value and STAY in self.env:
                self.env[STAY] = Variable(FALSE)
            return not returned.value
        go = self.negate(returned, s)
        if STAY in self.env:
            self.env[STAY] = Variable(go)
        return go

    def _for_op(self, s: ast.For, bounds: list[Operand], live: Names, runs: bool, item: Item | None) -> Flow:
        """A loop of the program. ``runs``: it has at least one iteration for certain. ``item`` tells what the variable
        is for an index."""
        t = self._index_type(bounds)
        given = tuple(self.value(x, s.iter, t) for x in bounds)
        index = Value(t, s.target.id)

        def body() -> Operand:
            self.env[s.target.id] = Variable(index if item is None else item(index), True, self.span(s.target))
            self.block(s.body, self.facts.head[s] | live)
            return self.env[STAY].operand

        return self._loop(s, "for", (index,), given, body, live, runs)

    # -- while ---------------------------------------------------------------------------------------------------------

    def _while(self, s: ast.While, live: Names) -> Flow:
        live = self._live_after(s, live)
        never = isinstance(s.test, ast.Constant) and not s.test.value
        return self._with_orelse(s, lambda: True if never else self._while_op(s, live), live)

    def _while_op(self, s: ast.While, live: Names) -> Flow:
        inside = self.facts.head[s] | live

        def run() -> Flow:
            self.env[STAY] = Variable(TRUE)
            self.block(s.body, inside)
            return True

        def leave() -> Flow:
            self.env[STAY] = Variable(FALSE)
            return True

        def body() -> Operand:
            test = self.truth(self.expression(s.test), s.test)
            if isinstance(test, bool):
                (run if test else leave)()
            else:
                self.branch(test, run, leave, inside, s)
            return self.env[STAY].operand

        return self._loop(s, "while", (), (), body, live, False)

    # -- both ----------------------------------------------------------------------------------------------------------

    def _loop(
        self,
        s: ast.For | ast.While,
        op: str,
        first: tuple[Value, ...],
        given: tuple[Value, ...],
        body: Callable[[], Operand],
        live: Names,
        runs: bool,
    ) -> Flow:
        """A loop op around what ``body`` translates; ``body`` answers whether to stay in the loop."""
        if self.facts.of[s].returns and RETURNED not in self.env:
            self.env[RETURNED] = Variable(FALSE)
        outer, before, errors = self.builder, self.env, len(self.errors)
        known: Environment = {}
        while True:
            carried = list(self._carried(s, live, before, known))
            ends, stay = self._body(carried, before, body)
            late = [c.name for c in carried if c.unknown and c.name in self.needed]
            spans = {n: self.needed.pop(n) for n in late}
            found = {
                n: ends[n] for n in late if n in ends and operand_type(ends[n].operand) and type(ends[n]) is Variable
            }
            if not found:
                break
            known |= found  # a read came before the assignment that tells the type: now it is known
            del self.errors[errors:]
        for name, span in spans.items():
            if type(ends.get(name)) is not Broken:
                self.errors.append(
                    UnassignedError(f"variable {name!r} is read before anything is assigned to it", span)
                )
        inner = self.builder
        self.builder, self.env = outer, dict(before)
        self._finish(s, op, first, given, carried, ends, stay, inner, live, runs)
        return self._after_returns(s)

    def _body(
        self, carried: list[Carried], before: Environment, body: Callable[[], Operand]
    ) -> tuple[Environment, Operand]:
        """Translate the body once, into a builder of its own."""
        self.builder = Builder(self.builder.span)
        self.env = dict(before)
        for c in carried:
            self.env[c.name] = Variable(c.param, True if c.bit is None else c.bit, c.span)
        self.env[STAY] = Variable(TRUE)
        if RETURNED in self.env:
            self.env[RETURNED] = Variable(FALSE)  # else control would not be here
        self.depth += 1
        try:
            stay = body()
        finally:
            self.depth -= 1
        return self.env, stay

    def _carried(
        self, s: ast.For | ast.While, live: Names, before: Environment, known: Environment
    ) -> Iterator[Carried]:
        """The variables that the loop changes and that somebody reads in a later iteration or behind it."""
        facts, inside = self.facts.of[s], self.facts.head[s] | live
        names = [
            n
            for n in facts.rebinds
            if n in inside and not (isinstance(s, ast.For) and n == s.target.id and n not in live)
        ]
        names += [
            n for n in facts.touches if n in inside and n not in facts.rebinds and self._changes(n, facts.touches[n])
        ]
        names += [n for n in facts.passes if n in inside and n not in names and self._is_tile(n)]
        if BROKE in before:
            names.append(BROKE)
        if facts.returns:
            names += [RETURNED] + ([RESULT] if self.kind != "kernel" else [])
        if self.differentiated is not None:
            names += [n for n in before if n.startswith(ADJOINT)]
        for name in names:
            v = before.get(name)
            found = operand_type(known[name].operand) if name in known else None
            if v is None:
                bit = None if name == RESULT else Value(b1)
                yield Carried(name, Value(found, name), None, bit, FALSE, self.span(s))
            elif not isinstance(v, Broken):
                t = operand_type(v.operand)
                if t is None and isinstance(v.operand, Value):  # a loop around this one does not know it yet either
                    v.operand.type = t = found
                elif t is None:
                    continue
                array = isinstance(t, Indexed) or isinstance(t, View) and t.space == "global"
                if array and (name in facts.rebinds or name == RESULT):
                    t = any_layout(t)  # views of any layout follow
                bit = Value(b1) if isinstance(v.defined, Value) else None
                yield Carried(name, Value(t, name), v.operand, bit, v.defined, v.span)

    def _is_tile(self, name: str) -> bool:
        v = self.env.get(name)
        return v is not None and isinstance(operand_type(v.operand), Tile)

    def _changes(self, name: str, targets: list[ast.expr]) -> bool:
        """Whether a store to one of ``targets`` changes the variable, not memory that it leads to."""
        v = self.env.get(name)
        t = None if v is None else operand_type(v.operand)
        if t is None or isinstance(t, View | Indexed):
            return False
        return any(not self._through_view(t, target) for target in targets)

    def _through_view(self, t: Type, target: ast.expr) -> bool:
        steps = []
        while isinstance(target, ast.Subscript | ast.Attribute):
            steps.append(target)
            target = target.value
        for step in reversed(steps):
            if isinstance(t, View | Indexed):
                return True
            if isinstance(step, ast.Attribute) and isinstance(t, Struct):
                index = t.index.get(step.attr)
                if index is None:
                    return False
                t = children(t)[index]
            else:
                return False
        return False

    def _finish(
        self,
        s: ast.For | ast.While,
        op: str,
        first: tuple[Value, ...],
        given: tuple[Value, ...],
        carried: list[Carried],
        ends: Environment,
        stay: Operand,
        inner: Builder,
        live: Names,
        runs: bool,
    ) -> None:
        """Build the op from the translated body and bind the carried variables to its results."""
        outer = self.here(s)
        inner.span = outer.span
        params, starts, yields, results = [], [], [], []

        def carry(param: Value, start: Value, end: Value) -> Value:
            params.append(param)
            starts.append(start)
            yields.append(end)
            results.append(Value(param.type, param.name))
            return results[-1]

        self._forget(s, ends, live)
        for c in carried:
            end = ends.get(c.name)
            t = None if end is None else operand_type(end.operand)
            if end is None or isinstance(end, Broken) or t is None:
                if end is not None and end.operand is not c.param:  # broken, or a compile-time object
                    self.env[c.name] = end
                continue
            if c.param.type is None:
                c.param.type = t
            if isinstance(c.start, Value) and c.start.type is None:
                c.start.type = t
            self._check_type(c, end, s)
            start = outer.one("poison", (), c.param.type) if c.start is None else self.value(c.start, s)
            start = self.laid_out(start, c.param.type, s)
            after = carry(c.param, start, self._inside(inner, end.operand, s, c.param.type))
            defined: bool | Value = True
            if c.bit is not None:
                bit = self._inside(inner, TRUE if end.defined is True else end.defined, s)
                defined = carry(c.bit, self.value(c.bit_start, s), bit)
                if runs and end.defined is True:
                    defined = True
            self.env[c.name] = Variable(after, defined, end.span)
        stays = op == "while" or stay is not TRUE
        if stays:
            yields.insert(0, self._inside(inner, stay, s))
        region = Block((*first, *params), tuple(inner.ops), tuple(yields))
        attrs = {"stays": True} if stays and op == "for" else NO_ATTRS
        outer.ops.append(Op(op, (*given, *starts), tuple(results), attrs, (region,), outer.span))

    def _forget(self, s: ast.For | ast.While, ends: Environment, live: Names) -> None:
        """Unbind what the loop assigns and nobody reads; refuse what would be one of several compile-time objects."""
        for name in self.facts.of[s].rebinds:
            before = self.env.get(name)
            if before is None:
                continue
            if name not in live:
                del self.env[name]
            elif operand_type(before.operand) is None and not isinstance(before, Broken):
                if isinstance(before.operand, Value):  # a loop around this one does not know it yet
                    continue
                end = ends.get(name, before).operand
                if end is not before.operand and not (isinstance(end, Constant) and end.same(before.operand)):
                    self.fail(s, f"{name!r} is a different compile-time object before and after the loop",
                              "choose it outside of the kernel, or with wp.static")  # fmt: skip

    def _check_type(self, c: Carried, end: Variable, s: ast.stmt) -> None:
        t = operand_type(end.operand)
        if common_type(t, c.param.type) is not c.param.type:
            try:
                self.two_types(c.name, Variable(c.param, True, c.span), t, end.span, s)
            except TreadleError as error:
                self.errors.append(error)

    def _inside(self, inner: Builder, x: Operand, node: ast.AST, t: Type | None = None) -> Value:
        """``x`` as a value made at the end of the body; ``t``: the type its arrays must have."""
        outer, self.builder = self.builder, inner
        try:
            v = self.value(x, node)
            return v if t is None else self.laid_out(v, t, node)
        finally:
            self.builder = outer
