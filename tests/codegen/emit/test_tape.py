"""Stack and log of a gang: programs that go forwards and backwards, the same bits on every width as by the oracle."""

import random

import numpy as np
import pytest

from tests.codegen.harness import KernelBuilder, agrees_with_oracle, same_on_all_widths
from treadle.ir.verify import verify
from treadle.types.core import b1, f32, i32, i64, view

THREADS = 67


class Backwards:
    """A small program over a value ``x`` of each thread, run forwards, then backwards with a value ``a``.

    It is a list of items, made at random: ("step", factor), ("load",), ("if", uniform, then, other) and ("loop",
    uniform, breaks, body). Going backwards over a loop, each round is computed again from what was pushed at its start;
    what memory held is not read again but recalled.
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.sites = 0
        self.k = k = KernelBuilder((view(f32, 1), view(f32, 1), view(i32, 1), i32))
        self.table, out, bounds, self.same = k.params
        self.i = k.tid()
        self.bound = k.load(bounds, self.i)
        items = self.items(2)
        x, a = k.load(out, self.i), k.const(1.0, f32)
        for _ in range(2):  # the log goes on where the first time ended
            x = self.forwards(items, x, "record")
            a = self.backwards(items, a)
        k.store(out, (self.i,), k.op("add", x, a))
        self.func = verify(k.func(), scalar=True)

    def items(self, depth: int) -> list[dict]:
        kinds = ["step", "load", "if", "loop", "loop"] if depth else ["step", "load"]
        return [self.item(kind, depth) for kind in self.random.choices(kinds, k=self.random.randint(1, 3))]

    def item(self, kind: str, depth: int) -> dict:
        self.sites += 1
        made = {"kind": kind, "site": self.sites, "uniform": self.random.random() < 0.3}
        if kind in ("if", "loop"):
            made["body"] = self.items(depth - 1)
            made["other"] = self.items(depth - 1) if self.random.random() < 0.5 else []
            made["breaks"] = self.random.random() < 0.6
        made["factor"] = self.random.uniform(-1.2, 1.2)
        return made

    def number(self, value: float):
        return self.k.const(value, f32)

    def push(self, item: dict, *xs):
        self.k.b.op("push", xs, site=item["site"])

    def pop(self, item: dict, *types):
        return self.k.b.op("pop", (), types, site=item["site"])

    # forwards: plain, or with what going backwards needs pushed

    def plain(self, items, x, mode):
        for item in items:
            x, _ = getattr(self, item["kind"])(item, x, mode, self.plain)
        return x

    def forwards(self, items, x, mode):
        for item in items:
            before = x
            x, extra = getattr(self, item["kind"])(item, x, mode, self.forwards)
            pushed = {"step": [before, item.get("same")], "load": [extra], "if": [extra], "loop": [extra]}
            self.push(item, *[p for p in pushed[item["kind"]] if p is not None])
        return x

    def step(self, item, x, mode, inner):
        item["same"] = self.same if item["uniform"] else None
        return self.k.op("add", self.k.op("mul", x, self.number(item["factor"])), self.number(0.25)), None

    def load(self, item, x, mode, inner):
        if mode == "record":
            place = self.k.op("bitand", self.k.cast(self.k.op("mul", x, self.number(8.0)), i32), self.k.const(7, i32))
            place = self.k.op("add", place, self.k.op("mul", self.i, self.k.const(8, i32)))  # in a row of its own
            v = self.k.load(self.table, place)
            self.k.store(self.table, (place,), self.k.op("mul", v, self.number(0.5)))
            self.k.b.op("record", (v,), site=item["site"])
        else:
            (v,) = self.k.b.op("recall", (), (f32,), site=item["site"])
        return self.k.op("add", x, v), v

    def condition(self, item, x):
        if item["uniform"]:
            return self.k.op("lt", self.same, self.k.const(int(8 * item["factor"]), i32))
        return self.k.op("lt", x, self.number(item["factor"]))

    def _if(self, item, x, mode, inner):
        c = self.condition(item, x)
        made = self.k.if_(c, lambda: [inner(item["body"], x, mode)], lambda: [inner(item["other"], x, mode)])
        return made, c

    def loop(self, item, x, mode, inner):
        k, one = self.k, self.k.const(1, i32)

        def round_(i, x, n):
            if inner == self.forwards:
                mark = k.b.one("mark", (), i64, **({} if mode == "record" else {"read": True}))
                self.k.b.op("push", (x, mark, i), site=1000 + item["site"])
            x = self.plain(item["body"], x, mode)
            stay = [self.condition({"uniform": False, "factor": 1.5}, x)] if item["breaks"] else []
            return [*stay, x, k.op("add", n, one)]

        stop = self.same if item["uniform"] else self.bound
        return k.for_(k.const(0, i32), stop, one, [x, k.const(0, i32)], round_, stays=item["breaks"])

    # backwards

    def backwards(self, items, a):
        for item in reversed(items):
            a = getattr(self, "back_" + item["kind"])(item, a)
        return a

    def back_step(self, item, a):
        x, *_ = self.pop(item, f32, *([i32] if item["uniform"] else []))
        return self.k.op("add", self.k.op("mul", a, self.number(item["factor"])), self.k.op("mul", x, self.number(0.1)))

    def back_load(self, item, a):
        (v,) = self.pop(item, f32)
        return self.k.op("add", a, v)

    def back_if(self, item, a):
        (c,) = self.pop(item, b1)
        return self.k.if_(c, lambda: [self.backwards(item["body"], a)], lambda: [self.backwards(item["other"], a)])

    def back_loop(self, item, a):
        k, less = self.k, self.k.const(-1, i32)
        (n,) = self.pop(item, i32)

        def again(j, a):
            def run():
                x, mark, i = k.b.op("pop", (), (f32, i64, i32), site=1000 + item["site"])
                k.b.op("seek", (mark,))
                self.forwards(item["body"], x, "recall")
                rounds = k.op("mul", k.cast(i, f32), self.number(0.01))
                return [k.op("add", self.backwards(item["body"], a), rounds)]

            return [k.if_(k.op("lt", j, n), run, lambda: [a])]

        last = k.op("add", k.b.one("lanes_max", (n,), i32), less)
        (a,) = k.for_(last, less, less, [a], again)
        return a


setattr(Backwards, "if", Backwards._if)


def arguments():
    rng = np.random.default_rng(5)
    return (rng.uniform(-1, 1, 8 * THREADS).astype(np.float32), rng.uniform(-2, 2, THREADS).astype(np.float32),
            rng.integers(0, 5, THREADS).astype(np.int32), 3)  # fmt: skip


@pytest.mark.parametrize("seed", range(24))
def test_programs_that_go_forwards_and_backwards(seed):
    func = Backwards(seed).func
    found = same_on_all_widths(func, THREADS, arguments)
    agrees_with_oracle(func, THREADS, arguments, *found)
