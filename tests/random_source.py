"""Random kernels as source text whose plain-Python meaning is their meaning.

The others, over all types, are in ``random_typed``; ``python -m tests.random_source --count 5000 --seed 0`` compares
machine code of these with the oracle, ``--against warp`` launches with those of Warp, where ``warp-lang`` is installed.
What may differ, and why, is listed there.

Here every value is a small non-negative int (kept below 1009 after each operation), so Python's integers, C's and
any width's agree, and a program can be run by Python itself, thread by thread. Floats are small multiples of a quarter,
so sums and products of them are exact. The programs nest branches and loops, leave them early, return early, call a
function that does the same, update shared numbers atomically, and sometimes read a name that nothing assigned.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

NAMES = ("a", "b", "c", "d")
FUNCTION = "@wp.func\ndef helper(x: wp.array(dtype=int), i: int, a: int, b: int):\n"
KERNEL = "@wp.kernel\ndef kernel(x: wp.array(dtype=int), out: wp.array(dtype=int), shared: wp.array(dtype=int)):\n"
START = "i = wp.tid()\na = x[i]\nb = i % 7\nc = 3\nf = 0.25 * float(b)\n"
ATOMICS = ("none", "added", "used", "read")


class Writer:
    """Writes one kernel and its helper.

    ``maybe`` allows names that some paths leave unassigned. ``atomics``: "none", "added" (nobody looks at the result,
    so that threads may run in any order), "used" or "read" (each thread sees what the threads before it did, by results
    of atomics alone or by plain reads too).
    """

    def __init__(self, seed: int, maybe: bool = False, atomics: str = "none"):
        self.random, self.loops = random.Random(seed), 0
        self.names = NAMES if maybe else NAMES[:3]
        self.atomics, self.in_kernel = atomics, False

    def module(self) -> str:
        """The source of a module with one kernel named ``kernel``."""
        names, self.names = self.names, NAMES[:3]
        helper = "c = 2\nf = 1.5\n" + self.block(depth=2, in_loop=False) + f"return {self.value(1)}\n"
        self.names, self.in_kernel = names, True
        perhaps = f"if i < {self.random.choice((9, 99))}:\n    d = a\n" if "d" in self.names else ""
        body = START + perhaps + self.block(depth=3, in_loop=False)
        if self.atomics != "none":
            body += self.update(depth=3, in_loop=False)
        body += f"out[i] = {self.value(2)}\n"
        return f"import treadle as wp\n\n\n{FUNCTION}{indent(helper)}\n\n{KERNEL}{indent(body)}"

    def block(self, depth: int, in_loop: bool) -> str:
        return "".join(self.statement(depth, in_loop) for _ in range(self.random.randint(1, 4)))

    def statement(self, depth: int, in_loop: bool) -> str:
        kinds = [self.assign] * 4 + [self.augment, self.assign_float]
        if self.in_kernel and self.atomics != "none":
            kinds += [self.update] * 2
        if depth:
            kinds += [self.branch] * 3 + [self.count, self.repeat, self.give_back]
        if in_loop:
            kinds += [self.leave] * 2
        return self.random.choice(kinds)(depth, in_loop)

    def assign(self, depth: int, in_loop: bool) -> str:
        return f"{self.random.choice(self.names)} = {self.value(2)}\n"

    def augment(self, depth: int, in_loop: bool) -> str:
        name = self.random.choice(NAMES[:3])
        return f"{name} += {self.value(1)}\n{name} %= 1009\n"

    def assign_float(self, depth: int, in_loop: bool) -> str:
        return f"f = {self.number()}\n"

    def update(self, depth: int, in_loop: bool) -> str:
        call = f"wp.atomic_add(shared, ({self.value(1)}) % {self.random.choice((1, 3))}, {self.value(1)})"
        if self.atomics == "added":
            return f"{call}\n"
        if self.atomics == "read" and self.random.random() < 0.5:
            call = f"shared[({self.value(1)}) % 3]"
        return f"{self.random.choice(NAMES[:3])} = {call} % 1009\n"

    def branch(self, depth: int, in_loop: bool) -> str:
        text = f"if {self.condition()}:\n" + indent(self.block(depth - 1, in_loop))
        if self.random.random() < 0.3:
            text += f"elif {self.condition()}:\n" + indent(self.block(depth - 1, in_loop))
        if self.random.random() < 0.5:
            text += "else:\n" + indent(self.block(depth - 1, in_loop))
        return text

    def count(self, depth: int, in_loop: bool) -> str:
        self.loops += 1
        start = self.random.choice(["", f"{self.random.randint(0, 2)}, "])
        head = f"for k{self.loops} in range({start}({self.value(1)}) % {self.random.randint(2, 6)}):\n"
        return head + indent(f"b = (b + k{self.loops}) % 1009\n" + self.block(depth - 1, True))

    def repeat(self, depth: int, in_loop: bool) -> str:
        self.loops += 1
        name = f"t{self.loops}"
        head = f"{name} = 0\nwhile {name} < {self.random.randint(1, 6)} and ({self.condition()}):\n"
        return head + indent(f"{name} += 1\n" + self.block(depth - 1, True))

    def leave(self, depth: int, in_loop: bool) -> str:
        return f"if {self.condition()}:\n" + indent(self.random.choice(["break\n", "continue\n"]))

    def give_back(self, depth: int, in_loop: bool) -> str:
        result = f"out[i] = {self.value(1)}\nreturn\n" if self.in_kernel else f"return {self.value(1)}\n"
        return f"if {self.condition()}:\n" + indent(result)

    def condition(self) -> str:
        simple = f"{self.value(1)} {self.random.choice(['<', '>', '==', '!=', '<=', '>='])} {self.value(1)}"
        match self.random.randint(0, 5):
            case 5:
                return f"f {self.random.choice(['<', '>=', '=='])} {self.number()}"
            case 0:
                return f"({simple}) {self.random.choice(['and', 'or'])} {self.value(0)} % 3 == 1"
            case 1:
                return f"not ({simple})"
            case _:
                return simple

    def value(self, depth: int) -> str:
        if depth == 0:
            return self.random.choice([*self.names, *NAMES[:3], "i", str(self.random.randint(0, 20))])
        left, right = self.value(depth - 1), self.value(depth - 1)
        match self.random.randint(0, 8):
            case 7:
                return f"helper(x, i, {left}, {right})" if self.in_kernel else left
            case 8:
                return "int(4.0 * f)"
            case 0:
                return f"({left} * {right}) % 1009"
            case 1:
                return f"({left} + {right}) % 1009"
            case 2:
                return f"wp.abs({left} - {right})"
            case 3:
                return f"wp.min({left}, {right})"
            case 4:
                return f"({left} if {left} < {right} else {self.value(0)})"
            case 5:
                return f"x[({left}) % x.shape[0]]"
            case _:
                return left

    def number(self) -> str:
        """A float: a multiple of a quarter between 0 and 64."""
        whole = f"float(({self.value(1)}) % 64)"
        match self.random.randint(0, 3):
            case 0:
                return f"0.25 * {whole}"
            case 1:
                return f"wp.min(f + 1.25, {whole})"
            case 2:
                return f"(f if f < {whole} else 2.5)"
            case _:
                return f"wp.abs(f - {whole})"


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def main() -> None:
    """Compare random typed programs and say which differ; the exit code is 1 if some do."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_source", description=main.__doc__)
    parser.add_argument("--count", type=int, default=300, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first")
    parser.add_argument("--against", choices=["oracle", "warp"], default="oracle", help="who says what is right")
    parser.add_argument("--batch", type=int, default=100, help="programs in one module, which Warp builds at once")
    asked = parser.parse_args()
    from tests.random_runs import against_oracle, against_warp

    compare = against_warp if asked.against == "warp" else against_oracle
    done, wrong, end = 0, 0, asked.seed + asked.count
    with tempfile.TemporaryDirectory() as folder:
        for start in range(asked.seed, end, asked.batch):
            for program, said in compare(range(start, min(start + asked.batch, end)), Path(folder)):
                done, wrong = done + 1, wrong + bool(said)
                if said:
                    print(f"program {program.seed}: {said}", flush=True)
            print(f"{done} programs against {asked.against}, {wrong} differ", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
