"""Random programs in the C that snippets can have, for ``int a, unsigned int b, float x, double y``."""

import random

INTEGERS = ("int", "unsigned int", "short", "unsigned char", "long long", "uint64_t", "int8_t", "uint16_t")
FLOATS = ("float", "double")
Variables = list[tuple[str, str]]


class Writer:
    """Writes programs; the same for the same ``seed``. Nothing in them is undefined in C, save signed overflow."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.count = 0

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def program(self) -> tuple[str, str]:
        """A body, and the type of its result: "double" or "long long"."""
        known: Variables = [("a", "int"), ("b", "unsigned int"), ("x", "float"), ("y", "double")]
        kind = self.random.choice("if")
        body = self.statements(known, 2, 6)
        return f"{body} return {self.expression(known, 3, kind)};", "double" if kind == "f" else "long long"

    def expression(self, known: Variables, depth: int, kind: str) -> str:
        """An expression of integers ("i") or floats ("f")."""
        r = self.random
        if depth <= 0 or r.random() < 0.15:
            names = [name for name, t in known if t not in FLOATS or kind == "f"]
            literals = (
                ("1.5f", "2.0", "0.25f", "7") if kind == "f" else ("1", "7", "0xFFu", "1000", "3ll", "0x80000000")
            )
            return r.choice(names) if r.random() < 0.75 else r.choice(literals)

        def inner(kind: str = kind) -> str:
            return self.expression(known, depth - 1, kind)

        common = [
            lambda: f"({inner()} {r.choice('+-*')} {inner()})",
            lambda: f"({self.condition(known, depth - 1)} ? {inner()} : {inner()})",
        ]
        if kind == "f":
            return r.choice([
                *common, common[0], lambda: f"({r.choice(FLOATS)})({inner(r.choice('if'))})",
                lambda: f"fabsf({inner()})", lambda: f"(- {inner()})",
            ])()  # fmt: skip
        return r.choice([
            *common, lambda: f"({inner()} {r.choice('&|^')} {inner()})",
            lambda: f"({inner()} {r.choice(['<<', '>>'])} {r.randrange(7)})",
            lambda: f"({inner()} {r.choice('/%')} {r.choice(['3', '7u', '5ll', '11'])})",
            lambda: f"(({r.choice(INTEGERS)}){inner()})", lambda: f"({r.choice('~-')} {inner()})",
        ])()  # fmt: skip

    def condition(self, known: Variables, depth: int) -> str:
        r = self.random
        if depth > 0 and r.random() < 0.3:
            return r.choice([
                lambda: f"({self.condition(known, 0)} {r.choice(['&&', '||'])} {self.condition(known, 0)})",
                lambda: f"(!{self.condition(known, 0)})",
            ])()  # fmt: skip
        kind, sign = r.choice("if"), r.choice(["<", ">", "<=", ">=", "==", "!="])
        return f"({self.expression(known, depth, kind)} {sign} {self.expression(known, depth, kind)})"

    def statements(self, known: Variables, depth: int, count: int) -> str:
        known = list(known)
        return " ".join([self.statement(known, depth) for _ in range(count)])

    def statement(self, known: Variables, depth: int) -> str:
        r = self.random
        choice = r.random()
        if choice < 0.4:
            t, name = r.choice(INTEGERS + FLOATS), self.fresh("v")
            text = f"{t} {name} = {self.expression(known, 3, 'f' if t in FLOATS else 'i')};"
            known.append((name, t))
            return text
        if choice < 0.7 or depth == 0:
            name, t = r.choice(known)
            kind = "f" if t in FLOATS else "i"
            sign = r.choice(["=", "+=", "-=", "*=", *([] if kind == "f" else ["&=", "|=", "^="])])
            return f"{name} {sign} {self.expression(known, 3, kind)};"
        inside = self.statements(known, depth - 1, 2)
        if choice < 0.85:
            return f"if ({self.condition(known, 2)}) {{ {inside} }} else {{ {self.statements(known, depth - 1, 1)} }}"
        k = self.fresh("k")
        jump = r.choice(["", f"if ({k} == 2) continue;", f"if ({self.condition(known, 1)}) break;"])
        return f"for (int {k} = 0; {k} < {r.randrange(1, 6)}; {k}++) {{ {jump} {inside} }}"
