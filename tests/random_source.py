"""Random kernels as source text whose plain-Python meaning is their meaning.

Every value is a small non-negative int (kept below 1009 after each operation), so Python's integers, C's and any
width's agree, and a program can be run by Python itself, thread by thread. The programs nest branches and loops,
leave them early, return early, and sometimes read a name that nothing assigned.
"""

from __future__ import annotations

import random

NAMES = ("a", "b", "c", "d")
HEADER = "import treadle as wp\n\n\n@wp.kernel\ndef kernel(x: wp.array(dtype=int), out: wp.array(dtype=int)):\n"
START = "i = wp.tid()\na = x[i]\nb = i % 7\nc = 3\n"


class Writer:
    """Writes the body of one kernel; ``maybe`` allows names that some paths leave unassigned."""

    def __init__(self, seed: int, maybe: bool):
        self.random, self.loops = random.Random(seed), 0
        self.names = NAMES if maybe else NAMES[:3]

    def kernel(self) -> str:
        """The source of a module with one kernel named ``kernel``."""
        perhaps = f"if i < {self.random.choice((9, 99))}:\n    d = a\n" if "d" in self.names else ""
        body = START + perhaps + self.block(depth=3, in_loop=False) + f"out[i] = {self.value(2)}\n"
        return HEADER + indent(body)

    def block(self, depth: int, in_loop: bool) -> str:
        return "".join(self.statement(depth, in_loop) for _ in range(self.random.randint(1, 4)))

    def statement(self, depth: int, in_loop: bool) -> str:
        kinds = [self.assign] * 4 + [self.augment]
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
        return f"if {self.condition()}:\n" + indent(f"out[i] = {self.value(1)}\nreturn\n")

    def condition(self) -> str:
        simple = f"{self.value(1)} {self.random.choice(['<', '>', '==', '!=', '<=', '>='])} {self.value(1)}"
        match self.random.randint(0, 4):
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
        match self.random.randint(0, 6):
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


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
