"""Random differentiable kernels, and whether forward mode, reverse mode and difference quotients agree on them.

Every kernel works in float64 and keeps its values small. It nests loops, leaves them early, branches on floats and
integers, returns early, has vectors, matrices, own arrays and structs, calls functions that do the same, steps arrays
in place, reads and writes slices that lie over each other, and adds to shared sums. Threads meet nowhere else, so every
order of threads gives the same.

``python -m tests.random_gradients --count 2000 --seed 0`` judges as many programs and prints what it found.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

THREADS, ROW, SHARED = 3, 6, 3
HEAD = """\
import treadle as wp


@wp.struct
class Body:
    mass: wp.float64
    place: wp.vec3d
    count: int


@wp.func
def soft(x: wp.float64):
    return x / wp.sqrt(1.0 + x * x)


"""
HELPERS = {
    "mix": ("a: wp.float64, b: wp.float64, k: int", "c = wp.float64(0.3)\n", "return {}\n"),
    "turn": ("v: wp.vec3d, a: wp.float64, k: int", "b = v[0]\nc = wp.float64(0.1)\n",
             "return v * {} + wp.vec3d(b, c, a)\n"),
    "work": ("row: wp.array(dtype=wp.float64), a: wp.float64, k: int", "b = row[1]\nc = wp.float64(0.7)\n",
             "row[2] = {}\nreturn row[0] * a + c\n"),
    "push": ("s: Body, a: wp.float64, k: int", "b = s.mass\nc = s.place[1]\n", "s.mass += 0.1 * {}\nreturn s\n"),
}  # fmt: skip
PARAMETERS = {
    "x": "wp.array(dtype=wp.float64)", "y": "wp.array(dtype=wp.float64)", "u": "wp.array(dtype=wp.vec3d)",
    "w": "wp.array2d(dtype=wp.float64)", "left": "wp.array2d(dtype=wp.float64)",
    "right": "wp.array2d(dtype=wp.float64)", "shared": "wp.array(dtype=wp.float64)",
    "peaks": "wp.array(dtype=wp.float64)",
    "bodies": "wp.array(dtype=Body)", "m0": "wp.mat22d", "p": "wp.float64", "out": "wp.array(dtype=wp.float64)",
}  # fmt: skip
NO_ARRAYS = ("m0", "p")
START = """\
i = wp.tid()
a = x[i]
b = p * y[i]
c = wp.float64(0.5)
k = i
v = u[i]
m = m0
s = bodies[i]
own = wp.zeros(4, dtype=wp.float64)
row = w[i]
low = row[0:4]
high = row[2:6]
"""


class Writer:
    """Writes one program. ``kinds`` are the statements of the function being written, ``floats`` the ways in it to get
    a float, ``weight`` how many statements may still come."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.loops, self.weight = 0, 0
        self.functions: list[str] = []
        self.kernel = False
        self.end = ""

    def module(self) -> str:
        """The source of a module with one kernel named ``kernel``."""
        text, names = HEAD, self.random.sample(list(HELPERS), self.random.randint(1, 4))
        for name in names:
            text += self.helper(name)
        self.functions, self.kernel, self.weight = names, True, 36
        self.end = "out[i] = {}\n"
        body = START + self.block(3, False) + self.update() + self.end.format(self.value(2))
        head = ", ".join(f"{name}: {t}" for name, t in PARAMETERS.items())
        return f"{text}@wp.kernel\ndef kernel({head}):\n{indent(body)}"

    def helper(self, name: str) -> str:
        parameters, start, self.end = HELPERS[name]
        self.functions, self.kernel, self.weight = [], False, self.random.choice((3, 8, 16))
        self.vector, self.row, self.body = "v:" in parameters, "row:" in parameters, "s:" in parameters
        body = start + self.block(2, False) + self.end.format(self.value(1))
        return f"@wp.func\ndef {name}({parameters}):\n{indent(body)}\n\n"

    # ---- statements

    def block(self, depth: int, in_loop: bool) -> str:
        return "".join(self.statement(depth, in_loop) for _ in range(self.random.randint(1, 4))) or "pass\n"

    def statement(self, depth: int, in_loop: bool) -> str:
        self.weight -= 1
        kinds: list[Callable[[int, bool], str]] = [self.assign] * 4 + [self.augment, self.step]
        if self.kernel:
            kinds += [self.vectors, self.matrix, self.bodies, self.arrays, self.arrays, self.slices, self.slices]
            kinds += [self.own, self.own]
            kinds += [self.calls] * 3 + [lambda *_: self.update()]
        elif self.row:
            kinds += [lambda *_: f"row[{self.index(4)}] = {self.bounded()}\n"] * 2
        elif self.body:
            kinds += [lambda *_: f"s.place[{self.index(3)}] = {self.bounded()}\n"] * 2
        if depth and self.weight > 0:
            kinds += [self.branch] * 3 + [self.count] * 2 + [self.repeat, self.give_back]
        if in_loop:
            kinds += [self.leave] * 6
        return self.random.choice(kinds)(depth, in_loop)

    def assign(self, depth: int, in_loop: bool) -> str:
        return f"{self.random.choice('abc')} = {self.bounded()}\n"

    def augment(self, depth: int, in_loop: bool) -> str:
        return f"{self.random.choice('abc')} {self.random.choice(('+=', '-='))} 0.1 * {self.value(1)}\n"

    def step(self, depth: int, in_loop: bool) -> str:
        of_floats = f"k = int(4.0 * wp.abs({self.value(0)})) % 7\n"
        return self.pick(f"k = ({self.whole()} * 3 + {self.whole()}) % 7\n", of_floats)

    def vectors(self, depth: int, in_loop: bool) -> str:
        return self.pick(
            f"v = 0.5 * v + u[i] * {self.value(0)}\n", f"v[{self.index(3)}] = {self.bounded()}\n",
            "v = wp.cross(v, wp.vec3d(a, b, c)) * 0.3\n", f"u[i] = v + wp.vec3d({self.value(0)}, c, 0.1)\n",
            f"v = wp.vec3d({self.bounded()}, {self.value(0)}, v[0])\n", f"u[i] += v * {self.value(0)}\n",
            "v = v / wp.length(v + wp.vec3d(2.0, a * a, 0.0))\n",
        )  # fmt: skip

    def matrix(self, depth: int, in_loop: bool) -> str:
        return self.pick(
            f"m[{self.index(2)}, {self.index(2)}] = {self.bounded()}\n", "m = m * m0 * 0.4\n",
            "m = 0.5 * m + wp.transpose(m0) * c\n", f"c = soft(wp.determinant(m) + {self.value(0)})\n",
        )  # fmt: skip

    def bodies(self, depth: int, in_loop: bool) -> str:
        return self.pick(
            f"s.mass = {self.bounded()}\n", f"s.place = v * {self.value(0)}\n", "bodies[i] = s\n",
            f"s.place[{self.index(3)}] += 0.1 * {self.value(0)}\n", "s = bodies[i]\ns.count += k\n",
            f"bodies[i].mass = {self.bounded()}\n", "v = s.place * 0.7\n",
        )  # fmt: skip

    def arrays(self, depth: int, in_loop: bool) -> str:
        value = self.bounded()
        return self.pick(
            f"y[i] = {value}\n", f"y[i] += 0.1 * {value}\n", f"y[i] *= {value}\n", f"w[i, {self.index(6)}] = {value}\n",
            f"w[i, {self.index(6)}] -= 0.2 * {value}\n", f"row[{self.index(6)}] = {value}\n",
        )  # fmt: skip

    def slices(self, depth: int, in_loop: bool) -> str:
        into = self.pick("low", "high", "left[i]", "right[i]")
        return f"{into}[{self.index(4)}] {self.pick('=', '+=')} {self.bounded()} * 0.6\n"

    def own(self, depth: int, in_loop: bool) -> str:
        return f"own[{self.index(4)}] {self.pick('=', '=', '+=', '-=')} 0.3 * {self.value(1)}\n"

    def update(self) -> str:
        kind = self.pick("add", "add", "sub")
        return self.pick(
            f"wp.atomic_{kind}(shared, {self.index(SHARED)}, {self.bounded()})\n",
            f"wp.atomic_{kind}(shared, {self.index(SHARED)}, {self.bounded()})\n",
            f"wp.atomic_max(peaks, {self.random.choice((0, 1))}, {self.bounded()})\n",
            f"wp.atomic_min(peaks, 2, {self.bounded()})\n",
        )

    def calls(self, depth: int, in_loop: bool) -> str:
        match self.random.choice(self.functions):
            case "mix":
                return f"{self.pick(*'abc')} = soft(mix({self.value(1)}, {self.value(1)}, {self.whole()}))\n"
            case "turn":
                return f"v = turn(v, {self.bounded()}, {self.whole()}) * 0.4\n"
            case "work":
                rows = self.pick("row", "low", "high", "left[i]", "own", "own")
                return f"{self.pick(*'abc')} = soft(work({rows}, {self.bounded()}, {self.whole()}))\n"
            case _:
                return f"s = push(s, {self.bounded()}, {self.whole()})\n"

    def branch(self, depth: int, in_loop: bool) -> str:
        text = f"if {self.condition()}:\n" + indent(self.block(depth - 1, in_loop))
        if self.random.random() < 0.3:
            text += f"elif {self.condition()}:\n" + indent(self.block(depth - 1, in_loop))
        if self.random.random() < 0.5:
            text += "else:\n" + indent(self.block(depth - 1, in_loop))
        return text

    def count(self, depth: int, in_loop: bool) -> str:
        self.loops += 1
        name = f"j{self.loops}"
        start = self.pick("", "", f"{self.random.randint(0, 2)}, ")
        stop = self.pick(f"({self.whole()}) % 5", f"{self.random.randint(2, 20)} % (k + 2)", "3", "k - 1")
        head, first = f"for {name} in range({start}{stop}):\n", f"k = (k + {name}) % 7\n"
        return head + indent(first + self.block(depth - 1, True))

    def repeat(self, depth: int, in_loop: bool) -> str:
        self.loops += 1
        name = f"t{self.loops}"
        head = f"{name} = 0\nwhile {name} < {self.random.randint(1, 5)} and ({self.condition()}):\n"
        return head + indent(f"{name} += 1\n" + self.block(depth - 1, True))

    def leave(self, depth: int, in_loop: bool) -> str:
        return f"if {self.condition()}:\n" + indent(self.pick("break\n", "continue\n"))

    def give_back(self, depth: int, in_loop: bool) -> str:
        end = self.end.format(self.value(1))
        return f"if {self.condition()}:\n" + indent(end if "return" in end else f"{end}return\n")

    # ---- expressions

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def condition(self) -> str:
        simple = self.pick(
            f"{self.value(1)} {self.pick('<', '>')} {self.value(0)}",
            f"{self.whole()} % 3 == {self.random.randint(0, 2)}",
            f"{self.whole()} < {self.random.randint(1, 6)}",
        )  # fmt: skip
        return self.pick(
            simple, simple, f"({simple}) {self.pick('and', 'or')} {self.value(0)} < 0.4", f"not ({simple})"
        )

    def whole(self) -> str:
        return self.pick("k", "k", "i" if self.kernel else "k", str(self.random.randint(0, 5)))

    def index(self, extent: int) -> str:
        """An index below ``extent``, known or not."""
        return self.pick(str(self.random.randrange(extent)), f"({self.whole()} + {self.whole()}) % {extent}")

    def bounded(self) -> str:
        """A float that stays below about 2."""
        return self.pick(
            f"soft({self.value(2)})", f"(0.4 * {self.value(1)} - 0.3 * {self.value(0)})",
            f"{self.value(0)} / (1.5 + {self.value(1)} * {self.value(1)})", f"wp.sin({self.value(2)})",
            f"wp.exp(-wp.abs({self.value(1)}))", f"wp.cos({self.value(1)}) * {self.value(0)}",
            f"wp.where({self.condition()}, {self.value(0)} * 0.6, soft({self.value(1)}))",
            f"(soft({self.value(1)}) if {self.condition()} else 0.3 * {self.value(0)})",
        )  # fmt: skip

    def value(self, depth: int) -> str:
        if depth == 0:
            return self.leaf()
        left, right = self.value(depth - 1), self.value(depth - 1)
        return self.pick(
            f"{left} * {right}", f"({left} + {right})", f"({left} - {right})", f"wp.min({left}, {right})",
            f"wp.max({left}, 0.5)", f"wp.sqrt(0.3 + {left} * {left})", left, f"(-{left})",
        )  # fmt: skip

    def leaf(self) -> str:
        choices = [*"abc", *"abc", f"wp.float64({self.random.uniform(-1, 1):.2f})"]
        if self.kernel:
            choices += [
                f"x[({self.whole()}) % {THREADS}]", "y[i]", "v[1]", f"v[{self.index(3)}]", f"row[{self.index(6)}]",
                f"low[{self.index(4)}]", f"high[{self.index(4)}]", f"left[i, {self.index(4)}]",
                f"right[i, {self.index(4)}]", "m[0, 1]", f"own[{self.index(4)}]", "s.mass", "s.place[2]", "p",
                "wp.float64(k) * 0.1", f"u[i][{self.index(3)}]", "bodies[i].place[0]",
                f"m[{self.index(2)}, 1]",
            ]  # fmt: skip
        elif self.row:
            choices += [f"row[{self.index(4)}]"] * 3
        elif self.vector:
            choices += [f"v[{self.index(3)}]"] * 3
        elif self.body:
            choices += ["s.mass", f"s.place[{self.index(3)}]"]
        return self.random.choice(choices)


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def main() -> int:
    """Judge many programs; the exit status is 1 if one is wrong."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--launches", action="store_true", help="also compile, and compare wp.jvp with wp.Tape")
    asked = options.parse_args()
    from tests.gradient_runs import Verdict, judge

    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(asked.seed, asked.seed + asked.count):
            try:
                verdicts.append(judge(seed, Path(folder), asked.launches))
            except Exception as error:  # whatever it is, it is a finding
                verdicts.append(Verdict(seed, wrong=[f"{type(error).__name__}: {error}"]))
            for text in verdicts[-1].wrong:
                print(f"program {seed}: {text}", flush=True)
    wrong = sum(bool(v.wrong) for v in verdicts)
    count, judged = sum(v.count for v in verdicts), sum(v.judged for v in verdicts)
    share = f"difference quotients judged {judged / count:.1%} of {count} derivatives"
    print(f"{len(verdicts)} programs, {wrong} wrong; {share}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
