"""Random scalarized kernels that exercise control flow and memory: every gang width must give their bits."""

from __future__ import annotations

import random

from treadle.ir.node import Func, Value
from treadle.types.core import b1, f32, fixed, i32, vector, view

from .harness import KernelBuilder

SIZE = 64  # length of the arrays that are read at computed places


class Program:
    """A random kernel over arrays (ints, floats, vectors, out). What it reads it never writes, but at its own index."""

    signature = (view(i32, 1), view(f32, 1), view(vector(3, f32), 1), view(f32, 1), view(i32, 1), i32, f32)

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.k = KernelBuilder(self.signature)
        self.ints, self.floats, self.vectors, self.out, self.iout, n, x, *self.sums = self.k.params
        self.scope: list[Value] = [n, x]
        self.depth = 0
        i = self.k.tid()
        self.thread = i
        self.scope.append(i)
        self.scope.append(self.k.const(self.r.randint(-3, 5), i32))
        self.scope.append(self.k.const(self.r.choice([0.5, -1.25, 3.0]), f32))
        (self.local,) = self.k.b.op("local", (), (view(f32, 1, space="local"),), type=fixed(f32, (8,)))
        self.statements(self.r.randint(3, 7))
        self.k.store(self.out, (i,), self.pick(f32))
        self.k.store(self.iout, (i,), self.pick(i32))

    def func(self) -> Func:
        return self.k.func()

    def pick(self, t) -> Value:
        found = [v for v in self.scope if v.type is t]
        return self.r.choice(found[-6:] if found and self.r.random() < 0.7 else found) if found else self.k.const(1, t)

    def condition(self) -> Value:
        k, r = self.k, self.r
        kind = r.random()
        if kind < 0.25:
            return k.op("bitand", self.compare(), self.compare())
        if kind < 0.45:
            first = self.compare()
            return k.if_(first, lambda: [self.compare()], lambda: [k.const(False, b1)])
        return self.compare()

    def compare(self) -> Value:
        t = self.r.choice([i32, f32])
        return self.k.op(self.r.choice(["lt", "le", "gt", "ge", "eq", "ne"]), self.pick(t), self.pick(t))

    def place(self, size: int) -> Value:
        """An index below ``size``, a power of two: uniform, contiguous or arbitrary."""
        return self.k.op("bitand", self.pick(i32), self.k.const(size - 1, i32))

    def expression(self) -> Value:
        k, r = self.k, self.r
        kind = r.random()
        if kind < 0.35:
            return k.op(r.choice(["add", "sub", "mul", "min", "max"]), self.pick(f32), self.pick(f32))
        if kind < 0.65:
            return k.op(r.choice(["add", "sub", "mul", "bitxor", "div", "mod"]), self.pick(i32), self.pick(i32))
        if kind < 0.72:
            return k.cast(self.pick(i32), f32)
        if kind < 0.76:
            return k.cast(self.pick(f32), i32)
        if kind < 0.82:
            t = r.choice([i32, f32])
            return k.select(self.condition(), self.pick(t), self.pick(t))
        if kind < 0.87:
            return k.load(self.local, self.place(8))
        if kind < 0.92:
            return k.load(self.ints, self.place(SIZE))
        if kind < 0.96:
            return r.choice(k.load(self.vectors, r.choice([self.place(SIZE), self.thread])))
        return k.load(self.floats, r.choice([self.place(SIZE), self.thread]))

    def statements(self, count: int) -> None:
        for _ in range(count):
            self.statement()

    def statement(self) -> None:
        k, r = self.k, self.r
        kind = r.random()
        if self.depth >= 3 or kind < 0.5:
            self.scope.append(self.expression())
        elif kind < 0.56:
            k.store(self.local, (self.place(8),), self.pick(f32))
        elif kind < 0.6:
            k.store(self.out, (self.thread,), self.pick(f32))
        elif kind < 0.76:
            self.branch()
        elif kind < 0.88:
            self.counted()
        else:
            self.loop()

    def inside(self, extra, write):
        """Run ``write`` with a scope of its own."""
        kept, self.depth = len(self.scope), self.depth + 1
        self.scope.extend(extra)
        out = write()
        del self.scope[kept:]
        self.depth -= 1
        return out

    def branch(self) -> None:
        c, types = self.condition(), [self.r.choice([i32, f32]) for _ in range(self.r.randint(0, 3))]
        old = [self.pick(t) for t in types]

        def arm(keep: bool):
            def write():
                def run():
                    self.statements(self.r.randint(1, 3))
                    return [self.pick(t) for t in types]

                return list(old) if keep else self.inside([], run)

            return write

        found = self.k.if_(c, arm(self.r.random() < 0.15), arm(self.r.random() < 0.4))
        self.scope.extend(found if isinstance(found, tuple) else [found])

    def carried(self):
        types = [self.r.choice([i32, f32]) for _ in range(self.r.randint(1, 3))]
        return types, [self.pick(t) for t in types]

    def flag(self, outer: list[Value]) -> Value:
        """A condition; often one that is the same in all lanes."""
        if self.r.random() < 0.4:
            return self.k.op("lt", outer[0], self.k.const(self.r.randint(1, 6), i32))
        return self.condition()

    def step(self, types, values, outer):
        """A loop body's new values, perhaps behind a guard, with the flag that stays."""
        k, r = self.k, self.r

        def run():
            self.statements(r.randint(1, 3))
            return [
                r.choice([self.pick(t), v]) if r.random() < 0.3 else self.pick(t)
                for t, v in zip(types, values, strict=True)
            ]

        if r.random() < 0.5:
            return k.op("logical_not", self.condition()), self.inside(values, run)
        go = self.flag(outer)
        change = [self.pick(t) for t in types] if r.random() < 0.3 else list(values)

        def guarded():
            if r.random() < 0.4:  # a guard in a guard
                if r.random() < 0.3:
                    return [self.step(types, values, outer)[0], *self.inside(values, run)]
                return nested()
            new = self.inside(values, run)
            return [k.op("logical_not", self.condition()) if r.random() < 0.5 else k.const(True, b1), *new]

        def nested():
            stay, new = self.step(types, values, outer)
            return [stay, *new]

        found = k.if_(go, guarded, lambda: [k.const(False, b1), *change])
        found = found if isinstance(found, tuple) else (found,)
        return (found[0] if r.random() < 0.7 else go), list(found[1:])

    def counted(self) -> None:
        k, r = self.k, self.r
        types, inits = self.carried()
        stop = r.choice([k.const(r.randint(0, 6), i32), self.place(8)])
        start, step = r.choice([k.const(0, i32), self.place(4)]), k.const(r.choice([1, 1, 2, 3]), i32)
        if r.random() < 0.25:
            start, stop, step = stop, start, k.const(r.choice([-1, -2]), i32)
        stays = r.random() < 0.5

        def body(i, *values):
            def write():
                if stays:
                    stay, new = self.step(types, values, [i])
                    return [stay, *new]
                self.statements(r.randint(1, 3))
                return [self.pick(t) for t in types]

            return self.inside([i, *values], write)

        self.scope.extend(k.for_(start, stop, step, inits, body, stays))

    def loop(self) -> None:
        k = self.k
        types, inits = self.carried()
        limit = k.const(self.r.randint(1, 7), i32)

        def body(n, *values):
            def write():
                stay, new = self.step(types, values, [n])
                more = k.op("lt", n, limit)
                return [k.op("bitand", more, stay), k.op("add", n, k.const(1, i32)), *new]

            return self.inside([n, *values], write)

        found = k.while_([k.const(0, i32), *inits], body)
        self.scope.extend(found)


class Scatter(Program):
    """A random kernel that also adds to arrays of sums, anywhere: (floats, ints, one float that all threads share)."""

    signature = (*Program.signature, view(f32, 1), view(i32, 1), view(f32, 1))

    def statement(self) -> None:
        k, r = self.k, self.r
        floats, ints, shared = self.sums
        kind = r.random()
        if kind < 0.75:
            super().statement()
        elif kind < 0.88:
            k.b.op("atomic", (floats, self.place(8), self.amount()), (f32,), op=r.choice(["add", "sub"]))
        elif kind < 0.94:
            k.b.op("atomic", (ints, self.place(8), self.pick(i32)), (i32,), op="add")
        else:
            k.b.op("atomic", (shared, k.const(0, i32), self.amount()), (f32,), op="add")

    def amount(self) -> Value:
        """A float whose sums stay finite."""
        return self.k.op("min", self.k.op("max", self.pick(f32), self.k.const(-99.0, f32)), self.k.const(99.0, f32))


class Counters(Program):
    """A random kernel that also draws from counters, and writes down what it got: (counters at constant places, seats
    at any, results by thread)."""

    signature = (*Program.signature, view(i32, 1), view(i32, 1), view(i32, 1))

    def __init__(self, seed: int):
        self.book: Value | None = None  # an array of the thread's own, where results are noted
        super().__init__(seed)
        if self.book is not None:
            noted = [self.k.load(self.book, self.k.const(i, i32)) for i in range(4)]
            for i, old in enumerate(noted):
                self.k.store(self.sums[2], (self.k.op("add", self.times4(self.thread), self.k.const(i, i32)),), old)

    def times4(self, v: Value) -> Value:
        return self.k.op("mul", v, self.k.const(4, i32))

    def statements(self, count: int) -> None:
        if self.book is None:
            (self.book,) = self.k.b.op("local", (), (view(i32, 1, space="local"),), type=fixed(i32, (4,)))
        super().statements(count)

    def statement(self) -> None:
        k, r = self.k, self.r
        kind = r.random()
        if kind < 0.75:
            super().statement()
            return
        amount = k.op("bitand", self.pick(i32), k.const(7, i32)) if r.random() < 0.5 else k.const(r.randint(-1, 3), i32)
        where = (self.sums[0], k.const(r.randrange(3), i32)) if kind < 0.95 else (self.sums[1], self.place(8))
        (old,) = k.b.op("atomic", (*where, amount), (i32,), op=r.choice(["add", "add", "sub"]))
        if r.random() < 0.8:
            page = k.const(r.randrange(4), i32)
            k.store(self.book, (page,), k.op("add", k.op("mul", k.load(self.book, page), k.const(31, i32)), old))
        if r.random() < 0.1:
            self.scope.append(old)
