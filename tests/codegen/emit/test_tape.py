"""Stack and log of a gang: programs that go forwards and backwards, the same bits on every width as by the oracle."""

import random
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from tests.codegen.harness import Entry, KernelBuilder, agrees_with_oracle, same_on_all_widths
from treadle.codegen import cpu
from treadle.codegen.emit.unit import Options
from treadle.ir.node import Block, Func
from treadle.ir.verify import verify
from treadle.types.core import b1, bf16, f16, f32, f64, fixed, i8, i32, i64, u16, view

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


def simple(*arrays, ndim: int = 1):
    k = KernelBuilder((*arrays, i32), ndim=ndim)
    return k, *k.params


def test_values_of_all_kinds_come_back_as_they_were():
    """Uniform and contiguous ones take one place, truth values a bit a lane; the others a place a lane."""
    kinds = (b1, i8, u16, f16, bf16, i32, f32, i64, f64)
    k, x, y, n = simple(view(f32, 1), view(f64, 2))
    i = k.tid()
    v = k.load(x, i)
    varying = [k.cast(v, t) for t in kinds]
    alike = [k.cast(n, t) for t in kinds]
    rest = [k.op("add", i, n), k.op("lt", v, k.const(0.5, f32))]
    values = [x for pair in zip(varying, alike) for x in pair] + rest
    zero, one = k.const(0, i32), k.const(1, i32)
    k.for_(zero, n, one, [], lambda j: [k.b.op("push", (*values, j), site=1)][:0])

    def back(j):
        *got, number = k.b.op("pop", (), (*[w.type for w in values], i32), site=1)
        for place, w in enumerate([*got, number]):
            k.store(y, (i, k.const(place, i32)), k.cast(w, f64))
        return []

    k.for_(zero, n, one, [], back)
    make = lambda: (np.linspace(-3, 3, THREADS, dtype=np.float32), np.zeros((THREADS, len(values) + 1)), 5)
    found = same_on_all_widths(verify(k.func(), scalar=True), THREADS, make)
    agrees_with_oracle(k.func(), THREADS, make, found[1])


def test_views_come_back():
    row = view(f32, 1)
    k, table, y, n = simple(view(f32, 2), view(f32, 1))
    i, zero = k.tid(), k.const(0, i32)
    (own,) = k.b.op("subview", (table, i), (row,))
    (same,) = k.b.op("subview", (table, n), (row,))
    (local,) = k.b.op("local", (), (view(f32, 1, space="local"),), type=fixed(f32, (4,)))
    k.store(local, (n,), k.const(7.0, f32))
    k.b.op("push", (own, same, local), site=1)
    views = k.b.op("pop", (), (row, row, local.type), site=1)
    a, b, c = [k.load(v, at) for v, at in zip(views, (n, zero, n))]
    k.store(y, (i,), k.op("add", k.op("add", a, b), c))
    make = lambda: (np.arange(THREADS * 4, dtype=np.float32).reshape(THREADS, 4), np.zeros(THREADS, np.float32), 3)
    found = same_on_all_widths(verify(k.func(), scalar=True), THREADS, make)
    agrees_with_oracle(k.func(), THREADS, make, found[1])


def test_each_gang_begins_with_nothing_and_memory_grows():
    """Rows of a grid, more than a first piece of memory, and the threads that fill no gang."""
    k, y, n = simple(view(f32, 2), ndim=2)
    i, j = k.tid(0), k.tid(1)
    zero, one, less = k.const(0, i32), k.const(1, i32), k.const(-1, i32)
    rounds = k.op("add", n, k.op("bitand", j, k.const(3, i32)))
    k.for_(zero, rounds, one, [], lambda r: [k.b.op("push", (k.cast(k.op("mul", j, r), f32),), site=1)][:0])
    last = k.op("add", k.b.one("lanes_max", (rounds,), i32), less)

    def back(r, total):
        take = lambda: [k.op("add", total, k.b.op("pop", (), (f32,), site=1)[0])]
        return [k.if_(k.op("lt", r, rounds), take, lambda: [total])]

    (total,) = k.for_(last, less, less, [k.const(0.0, f32)], back)
    k.store(y, (i, j), total)
    func = verify(k.func(), scalar=True)
    make = lambda: (np.zeros((3, 37), np.float32), 3000)
    for rows in (False, True):
        (found,) = same_on_all_widths(func, (3, 37), make, Options(rows=rows))
        r = np.minimum(3000 + np.arange(37) % 4, 10000)
        assert np.allclose(found, np.arange(37) * r * (r - 1) / 2, rtol=1e-4)


def doubling(n: int) -> Func:
    """A function whose own stack is balanced: x goes through n rounds and back."""
    k = KernelBuilder((f32, i32))
    x, rounds = k.params
    zero, one, less = k.const(0, i32), k.const(1, i32), k.const(-1, i32)

    def there(j, x):
        k.b.op("push", (x,), site=1)
        k.b.op("record", (x,), site=1)
        return [k.op("add", k.op("mul", x, x), k.const(0.1, f32))]

    mark = k.b.one("mark", (), i64)
    (far,) = k.for_(zero, rounds, one, [x], there)
    k.b.op("seek", (mark,))
    k.b.op("recall", (), (f32,), site=1)
    last = k.op("add", k.b.one("lanes_max", (rounds,), i32), less)

    def back(j, a):
        take = lambda: [k.op("add", a, k.op("mul", a, k.b.op("pop", (), (f32,), site=1)[0]))]
        return [k.if_(k.op("lt", j, rounds), take, lambda: [a])]

    (a,) = k.for_(last, less, less, [far], back)
    return Func(f"doubling{n}", "function", k.params, Block((), tuple(k.b.ops), (a,)))


def test_functions_work_on_the_tape_of_their_caller():
    k, x, bounds, n = simple(view(f32, 1), view(i32, 1))
    i = k.tid()
    v, rounds = k.load(x, i), k.load(bounds, i)
    k.b.op("push", (v, rounds), site=1)
    func = doubling(0)
    call = lambda a, r: k.b.op("call", (a, r), (f32,), func=func)[0]
    a = k.if_(k.op("gt", v, k.const(0.0, f32)), lambda: [call(v, rounds)], lambda: [call(k.op("neg", v), n)])
    before, count = k.b.op("pop", (), (f32, i32), site=1)
    k.store(x, (i,), k.op("add", a, k.op("mul", before, k.cast(count, f32))))
    rng = np.random.default_rng(3)
    start, rounds = rng.uniform(-1, 1, THREADS).astype(np.float32), rng.integers(1, 6, THREADS).astype(np.int32)
    make = lambda: (start.copy(), rounds, 2)
    found = same_on_all_widths(verify(k.func(), scalar=True), THREADS, make)
    agrees_with_oracle(k.func(), THREADS, make, *found)


def test_a_check_that_fails_ends_the_gang():
    """Which lanes take part stays as it was: the tape's positions depend on it."""
    k, x, n = simple(view(f32, 1))
    i = k.tid()
    k.b.op("push", (k.load(x, i),), site=1)
    k.b.op("check", (k.op("ne", i, n),), kind="assert", message="not this one")
    (v,) = k.b.op("pop", (), (f32,), site=1)
    k.store(x, (i,), k.op("neg", v))
    func = verify(k.func(), scalar=True)
    for width in (1, 8):
        entry, x = Entry(func, width), np.ones(64, np.float32)
        assert entry(64, x, 21) == 1
        assert list(entry.fault)[:2] == [2, 21]
        assert (x[:16] == -1).all() and (x[24:] == 1).all()


@pytest.mark.parametrize("last", [64, 1])
def test_memory_is_given_back(last):
    """At the end, and where a check ends the run."""
    k, x, n = simple(view(f32, 1))
    i, zero, one = k.tid(), k.const(0, i32), k.const(1, i32)
    v = k.load(x, i)
    for name, site in (("push", 1), ("record", 2)):
        k.for_(zero, k.const(5000, i32), one, [], lambda j, name=name, site=site: k.b.op(name, (v,), site=site))
    k.b.op("check", (k.op("lt", i, n),), kind="assert", message="no more")
    (back,) = k.b.op("pop", (), (f32,), site=1)
    k.store(x, (i,), back)
    entry, x = Entry(verify(k.func(), scalar=True), 8), np.zeros(64, np.float32)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        assert entry(64, x, last) == (last != 64)
        after, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most - before > 2 * 5000 * 32 and after - before < 10_000


def test_memory_that_cannot_be_had_is_a_fault():
    """In a process that may have no more than a little memory."""
    program = """
import resource
import numpy as np
from tests.codegen.emit.test_tape import endless
from tests.codegen.harness import Entry
entry = Entry(endless(), 8)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), -1))
status = entry(8, np.zeros(8, np.float32), 1 << 30)
print(status, entry.fault[0], entry.binary.meta["sites"][entry.fault[2]]["kind"])
"""
    if sys.platform != "linux":
        pytest.skip("limits of memory are set in another way here")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["1", "2", "memory"], done.stderr


def endless() -> Func:
    """Pushes without end."""
    k, x, n = simple(view(f32, 1))
    zero, one = k.const(0, i32), k.const(1, i32)
    v = k.load(x, k.tid())
    k.for_(zero, n, one, [], lambda j: [k.b.op("push", (v,), site=1)][:0])
    (back,) = k.b.op("pop", (), (f32,), site=1)
    k.store(x, (k.tid(),), back)
    return k.func()


def test_short_loops_that_push_get_gangs_of_two_vectors():
    k, x, bounds, n = simple(view(f32, 1), view(i32, 1))
    i, zero, one, less = k.tid(), k.const(0, i32), k.const(1, i32), k.const(-1, i32)
    rounds = k.load(bounds, i)

    def there(j, v):
        k.b.op("push", (v,), site=1)
        return [k.op("mul", v, k.op("sub", k.const(1.5, f32), v))]

    (far,) = k.for_(zero, rounds, one, [k.load(x, i)], there)
    last = k.op("add", k.b.one("lanes_max", (rounds,), i32), less)

    def back(j, a):
        take = lambda: [k.op("mul", a, k.b.op("pop", (), (f32,), site=1)[0])]
        return [k.if_(k.op("lt", j, rounds), take, lambda: [a])]

    (a,) = k.for_(last, less, less, [far], back)
    k.store(x, (i,), a)
    func = verify(k.func(), scalar=True)
    assert [cpu.draft(func, cpu.host_target(w)).meta["width"] for w in (1, 8, 16)] == [1, 16, 32]
    start = np.random.default_rng(7).uniform(0.1, 1, THREADS).astype(np.float32)
    make = lambda: (start.copy(), np.arange(THREADS, dtype=np.int32) % 9, 0)
    found = same_on_all_widths(func, THREADS, make, widths=(1, 4, 8, 16, 32))
    agrees_with_oracle(func, THREADS, make, *found)
