"""Random kernels over all types, whose meaning C and IEEE arithmetic fix: machine code, the oracle and Warp must agree
in every bit (any two NaNs are one).

Each program works on a few types T, with inputs ``x_T``, results ``o_T``, shared memory ``s_T`` for atomics, and
results ``l_T`` of which only the first digits must agree. What the documentation explains is avoided or allowed for:

* Elementary functions are within 2 ulp, in Warp of whatever library it was built with: their results go to ``l_T`` at
  once, and must agree to 8 ulp.
* So do results of sums whose order is nobody's promise (``normalize``, ``inverse`` …), which must agree to
  4096 ulp, in float16 to 32. Sums of small multiples of a quarter (``dot``, products of matrices …) are exact and go
  on as any value.
* Products and sums are not fused where Warp is asked: by which rule they fuse is treadle's own.
* The negative of 0.0 is -0.0; Warp has it so for components, and for a scalar is asked for the product by -1.
* Integers wrap around, which C promises of unsigned ones only: Warp's compiler is asked for it (``-fwrapv``).
* Integers are not divided by zero, nor the least one by -1: 0 and itself here, in C the end of the process.
* Shifts are by less than the width, and floats become integers only where they fit: otherwise undefined in C.
* Loops of constant length are not unrolled by Warp here: where it converts the number of an unrolled loop to two types,
  its code reads the first of both before it is set.
* Names are assigned before control flow begins, constants are of the type that they meet, and floats are compared by
  the functions of one type only: treadle accepts more.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

THREADS = 11  # a gang of eight, and a rest
READS = 32  # elements of an input
WRITES = 6  # results of one type, a thread
SHARED = 3  # elements that atomics update

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
FLOATS = ("float16", "float32", "float64")
ULPS = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
ELEMENTARY = {
    "sin": "{x}", "cos": "{x}", "tan": "{x}", "exp": "{x}", "atan": "{x}", "sinh": "{x}", "cosh": "{x}",
    "tanh": "{x}", "cbrt": "{x}", "asin": "wp.clamp({x}, -{one}, {one})", "acos": "wp.clamp({x}, -{one}, {one})",
    "log": "wp.abs({x}) + {one}", "log2": "wp.abs({x}) + {one}", "log10": "wp.abs({x}) + {one}",
    "atan2": "{x}, {y}", "pow": "wp.abs({x}) + {one}, {y}", "sqrt": "wp.abs({x})",
}  # fmt: skip
LOOSE = {"float16": 32, "float32": 4096, "float64": 4096}  # ulp, for sums in any order


@dataclass(frozen=True)
class Kind:
    """A type: a scalar, or of scalars a vector (one extent), a matrix (two), or a quaternion."""

    scalar: str
    shape: tuple[int, ...] = ()
    turns: bool = False

    @property
    def name(self) -> str:
        letter = "q" if self.turns else " vm"[len(self.shape)]
        return f"{letter}{'x'.join(map(str, self.shape))}_{self.scalar}" if self.shape else self.scalar

    @property
    def text(self) -> str:
        """As a program writes it."""
        return self.name if self.shape else f"wp.{self.scalar}"

    @property
    def declaration(self) -> str:
        if self.turns:
            return f"{self.name} = wp.types.quaternion(dtype=wp.{self.scalar})\n"
        if len(self.shape) == 1:
            return f"{self.name} = wp.types.vector(length={self.shape[0]}, dtype=wp.{self.scalar})\n"
        return f"{self.name} = wp.types.matrix(shape={self.shape}, dtype=wp.{self.scalar})\n"

    @property
    def is_float(self) -> bool:
        return self.scalar in FLOATS

    @property
    def signed(self) -> bool:
        return not self.scalar.startswith("u")

    @property
    def component(self) -> Kind:
        return Kind(self.scalar)


INDEX = Kind("int32")


class Typed:
    """Writes program number ``seed``: its struct, its functions and its kernel ``kernel{seed}``.

    Afterwards ``parameters`` has the arrays in order, as pairs (role, kind), and ``loose`` says which columns of which
    ``l_T`` must agree to how many ulp.
    """

    def __init__(self, seed: int):
        self.seed, self.random = seed, random.Random(f"typed {seed}")
        r = self.random
        scalars = [r.choice([*BITS]), r.choice(FLOATS)]
        self.kinds = [INDEX, *map(Kind, scalars)]
        for scalar in r.sample(scalars, 1 if r.random() < 0.7 else 2):
            self.kinds.append(self.composite(scalar))
        self.kinds = list(dict.fromkeys(self.kinds))
        self.scalars = [k for k in self.kinds if not k.shape]
        self.composites = [k for k in self.kinds if k.shape]
        self.variables: dict[Kind, list[str]] = {}
        self.arrays: dict[str, Kind] = {}
        self.functions: list[tuple[str, tuple[Kind, ...], Kind]] = []
        self.fields: list[tuple[str, Kind]] = []
        self.loops: list[str] = []
        self.loose: dict[tuple[str, int], int] = {}
        self.in_kernel, self.ready, self.count = False, False, 0
        self.text = self.program()

    def composite(self, scalar: str) -> Kind:
        r = self.random
        if scalar in FLOATS and r.random() < 0.2:
            return Kind(scalar, (4,), True)
        if r.random() < 0.5:
            return Kind(scalar, (r.choice((2, 3, 3, 4, 5)),))
        return Kind(scalar, r.choice(((2, 2), (2, 2), (3, 3), (2, 3), (3, 2))))

    @property
    def parameters(self) -> list[tuple[str, Kind]]:
        found = [(role, k) for k in self.kinds for role in "xo"]
        found += [("l", k) for k in self.scalars if k.is_float]
        return found + [("s", k) for k in self.scalars if k.scalar in ADDED]

    # ---- the whole

    def program(self) -> str:
        struct = ""
        if self.random.random() < 0.4:
            self.fields = [(f"f{k}", self.random.choice(self.kinds)) for k in range(self.random.randint(1, 3))]
            struct = f"@wp.struct\nclass Struct{self.seed}:\n" + indent(
                "".join(f"{name}: {k.text}\n" for name, k in self.fields)
            )
        functions = "".join(self.function(k) for k in range(self.random.choice((0, 1, 1, 2))))
        return "\n\n".join(part for part in (struct, functions, self.kernel()) if part)

    def function(self, number: int) -> str:
        taken, given = tuple(self.random.choices(self.kinds, k=self.random.randint(1, 3))), self.any_kind()
        self.variables = {}
        for k, kind in enumerate(taken):
            self.variables.setdefault(kind, []).append(f"a{k}")
        start = self.declared()
        body = self.block(1, False)
        name = f"f{self.seed}_{number}"
        head = f"@wp.func\ndef {name}({', '.join(f'a{k}: {t.text}' for k, t in enumerate(taken))}) -> {given.text}:\n"
        early = f"if {self.condition(1)}:\n" + indent(f"return {self.value(given, 1)}\n")
        body = start + body + (early if self.random.random() < 0.5 else "") + f"return {self.value(given, 2)}\n"
        self.functions.append((name, taken, given))
        return head + indent(body) + "\n\n"

    def kernel(self) -> str:
        self.variables, self.in_kernel = {}, True
        start = "i = wp.tid()\n" + self.declared()
        for _ in range(self.random.randint(0, 1)):
            name, kind = f"t{len(self.arrays)}", self.any_kind()
            self.arrays[name] = kind
            start += f"{name} = wp.zeros(shape=4, dtype={kind.text})\n"
        if self.fields:
            start += f"s = Struct{self.seed}()\n" + "".join(
                f"s.{name} = {self.value(kind, 1)}\n" for name, kind in self.fields
            )
            self.ready = True
        body = "".join(self.statement(2, False) for _ in range(self.random.randint(2, 4)))
        end = "".join(f"o_{k.name}[i, {WRITES - 1}] = {self.value(k, 1)}\n" for k in self.kinds)
        given = []
        for role, k in self.parameters:
            given.append(f"{role}_{k.name}: wp.array{'2d' if role in 'ol' else ''}(dtype={k.text})")
        return f"@wp.kernel\ndef kernel{self.seed}({', '.join(given)}):\n" + indent(start + body + end)

    def declared(self) -> str:
        """Variables, assigned."""
        text = ""
        for kind in self.kinds:
            for _ in range(2 if self.in_kernel and not kind.shape else 1):
                name = f"v{self.count}"
                self.count += 1
                text += f"{name} = {self.leaf(kind)}\n"
                self.variables.setdefault(kind, []).append(name)
        return text

    # ---- statements

    def block(self, depth: int, in_loop: bool) -> str:
        return "".join(self.statement(depth, in_loop) for _ in range(self.random.randint(1, 2)))

    def statement(self, depth: int, in_loop: bool) -> str:
        kinds = [self.assign] * 3 + [self.augment, self.component]
        if self.in_kernel:
            kinds += [self.store] * 2 + [self.roughly] * 2 + [self.atomic, self.element, self.field]
        if depth:
            kinds += [self.branch] * 2 + [self.count_loop, self.while_loop]
        if in_loop:
            kinds += [self.leave]
        return self.random.choice(kinds)(depth, in_loop)

    def any_kind(self) -> Kind:
        return self.random.choice(self.kinds)

    def assign(self, depth: int, in_loop: bool) -> str:
        kind = self.any_kind()
        return f"{self.random.choice(self.variables[kind])} = {self.value(kind, 2)}\n"

    def augment(self, depth: int, in_loop: bool) -> str:
        kind = self.any_kind()
        sign = self.random.choice("+-" if kind.shape else "+-*")
        return f"{self.random.choice(self.variables[kind])} {sign}= {self.value(kind, 2)}\n"

    def component(self, depth: int, in_loop: bool) -> str:
        kind = self.random.choice(self.composites)
        places = ", ".join(self.place(n) for n in kind.shape)
        return f"{self.random.choice(self.variables[kind])}[{places}] = {self.value(kind.component, 2)}\n"

    def place(self, extent: int) -> str:
        """An index of ``extent``: a number, or one known when the program runs."""
        if self.random.random() < 0.7:
            return str(self.random.randrange(extent))
        below = 1 << (extent.bit_length() - 1)  # a power of two
        return f"({self.value(INDEX, 1)}) & wp.int32({below - 1})"

    def store(self, depth: int, in_loop: bool) -> str:
        kind = self.any_kind()
        return f"o_{kind.name}[i, {self.random.randrange(WRITES - 1)}] = {self.value(kind, 2)}\n"

    def roughly(self, depth: int, in_loop: bool) -> str:
        """A result of which the first digits count; each has a place of its own."""
        kind = self.random.choice([k for k in self.scalars if k.is_float])
        name = f"l_{kind.name}"
        column = sum(n == name for n, _ in self.loose)
        if column == WRITES:
            return self.store(depth, in_loop)
        if self.random.random() < 0.6:
            f = self.random.choice([*ELEMENTARY])
            shape = ELEMENTARY[f].format(x=self.small(kind), y=self.small(kind), one=f"{kind.text}(1.0)")
            text, ulps = f"wp.{f}({shape})", 8
        else:
            text, ulps = self.summed(kind), LOOSE[kind.scalar]
        self.loose[name, column] = ulps
        return f"{name}[i, {column}] = {text}\n"

    def small(self, kind: Kind) -> str:
        """A float between -4 and 4."""
        return f"wp.clamp({self.read(kind)} / {kind.text}(8.0), {kind.text}(-4.0), {kind.text}(4.0))"

    def summed(self, kind: Kind) -> str:
        """A sum of products of small numbers, by some builtin."""
        x = lambda: self.read(kind)
        n = 2 if kind.scalar == "float16" else self.random.choice((2, 3, 4))  # what is left of 60⁴ is infinite
        vector = lambda: f"wp.vector({', '.join(x() for _ in range(n))}, dtype={kind.text})"
        one = f"wp.vector({', '.join([f'{kind.text}(1.0)'] * n)}, dtype={kind.text})"
        matrix = f"wp.matrix_from_rows({', '.join(vector() for _ in range(n))})"
        solid = f"({matrix} + {kind.text}(60.0) * wp.identity(n={n}, dtype={kind.text}))"
        return self.random.choice([
            f"wp.length({vector()} + {one})", f"wp.normalize({vector()})[{self.random.randrange(n)}]",
            f"wp.length_sq({vector()})", f"wp.inverse({solid})[0, {self.random.randrange(n)}]",
            f"wp.dot({vector()}, {vector()})", f"wp.determinant({solid})", f"wp.trace({solid} * {matrix})",
            f"wp.lerp({x()}, {x()}, {self.small(kind)})", f"({solid} * {vector()})[{self.random.randrange(n)}]",
            f"wp.smoothstep({kind.text}(-4.0), {kind.text}(4.0), {self.small(kind)})",
        ])  # fmt: skip

    def atomic(self, depth: int, in_loop: bool) -> str:
        """An update of shared memory. What floats add up to is small and exact; results are used of integers."""
        kind = self.random.choice([k for k in self.scalars if k.scalar in ADDED])
        given = self.read(kind) if kind.is_float else self.value(kind, 2)
        f = self.random.choice(["add", "add", "sub"])
        if self.seed % 3 == 0 and not kind.is_float:
            f = self.random.choice(["add", "min", "max", "and", "or", "xor", "exch"])
        call = f"wp.atomic_{f}(s_{kind.name}, {self.place(SHARED)}, {given})\n"
        used = self.seed % 3 < 2 and not kind.is_float
        return f"{self.random.choice(self.variables[kind])} = {call}" if used else call

    def element(self, depth: int, in_loop: bool) -> str:
        if not self.arrays:
            return self.assign(depth, in_loop)
        name, kind = self.random.choice([*self.arrays.items()])
        return f"{name}[{self.place(4)}] = {self.value(kind, 2)}\n"

    def field(self, depth: int, in_loop: bool) -> str:
        if not self.fields:
            return self.assign(depth, in_loop)
        name, kind = self.random.choice(self.fields)
        return f"s.{name} = {self.value(kind, 2)}\n"

    def branch(self, depth: int, in_loop: bool) -> str:
        text = f"if {self.condition(2)}:\n" + indent(self.block(depth - 1, in_loop))
        if self.random.random() < 0.3:
            text += f"elif {self.condition(1)}:\n" + indent(self.block(depth - 1, in_loop))
        if self.random.random() < 0.5:
            text += "else:\n" + indent(self.block(depth - 1, in_loop))
        return text

    def count_loop(self, depth: int, in_loop: bool) -> str:
        self.count += 1
        name = f"k{self.count}"
        stop = "3" if self.random.random() < 0.4 else f"({self.value(INDEX, 1)}) & wp.int32(3)"
        self.loops.append(name)
        body = self.block(depth - 1, True)
        self.loops.pop()
        return f"for {name} in range({stop}):\n" + indent(body)

    def while_loop(self, depth: int, in_loop: bool) -> str:
        self.count += 1
        name = f"n{self.count}"
        head = f"{name} = int(0)\nwhile {name} < {self.random.randint(1, 4)} and {self.condition(1)}:\n"
        return head + indent(f"{name} += 1\n" + self.block(depth - 1, True))

    def leave(self, depth: int, in_loop: bool) -> str:
        return f"if {self.condition(1)}:\n" + indent(self.random.choice(["break\n", "continue\n"]))

    # ---- values

    def condition(self, depth: int) -> str:
        r = self.random
        if depth > 1 and r.random() < 0.4:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return r.choice([f"({left} and {right})", f"({left} or {right})", f"(not {left})"])
        kind = r.choice(self.scalars)
        sign = r.choice(["<", ">", "==", "!=", "<=", ">="])
        return f"({self.value(kind, depth - 1)} {sign} {self.value(kind, depth - 1)})"

    def constant(self, kind: Kind) -> str:
        if kind.is_float:
            return f"{kind.text}({self.random.choice((0.0, 1.0, -0.5, 3.25, 0.1, -7.0))})"
        value = self.random.choice((0, 1, 2, 5, 100, 127))
        if kind.signed and self.random.random() < 0.3:
            value = -value
        return f"{kind.text}({value})"

    def read(self, kind: Kind) -> str:
        """An input: of floats a small multiple of a quarter."""
        if not self.in_kernel:
            return f"({kind.text}({self.random.choice((0.25, 1.5, -3.75))}))"
        place = f"i + {self.random.randrange(READS - THREADS)}" if self.random.random() < 0.8 else self.place(READS)
        return f"x_{kind.name}[{place}]"

    def leaf(self, kind: Kind) -> str:
        r = self.random
        choices = [*self.variables.get(kind, ())] * 2
        if self.in_kernel:
            choices += [self.read(kind)] * 2
            choices += [f"s.{name}" for name, k in self.fields if k == kind and self.ready]
            choices += [f"{name}[{self.place(4)}]" for name, k in self.arrays.items() if k == kind]
        if not kind.shape:
            choices += [self.constant(kind)]
            choices += [f"{kind.text}({name})" for name in self.loops]
            choices += [f"{kind.text}(i)"] if self.in_kernel else []
        elif not choices:
            n = kind.shape[0] * (kind.shape[1] if len(kind.shape) == 2 else 1)
            choices = [f"{kind.text}({', '.join(self.constant(kind.component) for _ in range(n))})"]
        return r.choice(choices)

    def value(self, kind: Kind, depth: int) -> str:
        """An expression of type ``kind``."""
        if depth <= 0 or self.random.random() < 0.15:
            return self.leaf(kind)
        r = self.random.random()
        if r < 0.1:
            f = self.random.choice(["where", "if"])
            a, b, c = self.value(kind, depth - 1), self.value(kind, depth - 1), self.condition(1)
            return f"wp.where({c}, {a}, {b})" if f == "where" else f"({a} if {c} else {b})"
        fitting = [f for f in self.functions if f[2] == kind]
        if r < 0.2 and fitting and self.in_kernel:
            name, taken, _ = self.random.choice(fitting)
            return f"{name}({', '.join(self.value(t, depth - 1) for t in taken)})"
        if kind.shape:
            return self.composed(kind, depth - 1)
        if r < 0.4:
            return self.converted(kind, depth - 1)
        if r < 0.5 and any(k.scalar == kind.scalar for k in self.composites):
            return self.taken(kind, depth - 1)
        return self.real(kind, depth - 1) if kind.is_float else self.whole(kind, depth - 1)

    def converted(self, kind: Kind, depth: int) -> str:
        """A cast."""
        if self.random.random() < 0.15:
            return f"{kind.text}({self.condition(1)})"
        source = self.random.choice(self.scalars)
        x = self.value(source, depth)
        if source.is_float and not kind.is_float:
            x = f"fitting_{source.scalar}({x})"
            x = x if kind.signed else f"wp.abs({x})"
        return f"{kind.text}({x})"

    def taken(self, kind: Kind, depth: int) -> str:
        """A component of a composite, or what a builtin makes of all of them."""
        whole = self.random.choice([k for k in self.composites if k.scalar == kind.scalar])
        exact = not kind.is_float or (kind.scalar != "float16" and self.in_kernel)
        if exact and self.random.random() < 0.4:
            x = (lambda: self.read(whole)) if kind.is_float else (lambda: self.value(whole, depth))
            if len(whole.shape) == 1:
                return f"wp.dot({x()}, {x()})" if not whole.turns else f"wp.dot({self.read(whole)}, {self.read(whole)})"
            if whole.shape[0] == whole.shape[1]:
                return self.random.choice([f"wp.trace({x()})", f"wp.ddot({x()}, {x()})"])
            return f"wp.ddot({x()}, {x()})"
        names = self.variables.get(whole)
        if not names:
            return self.leaf(kind)
        return f"{self.random.choice(names)}[{', '.join(self.place(n) for n in whole.shape)}]"

    def whole(self, kind: Kind, depth: int) -> str:
        """Arithmetic of integers."""
        a, b, t = self.value(kind, depth), self.value(kind, depth), kind.text
        match self.random.randrange(14):
            case 0 | 1:
                return f"({a} {self.random.choice('+-*')} {b})"
            case 2 | 3:
                nonzero = f"(({b}) & {t}(7)) + {t}(1)"
                if kind.signed and self.random.random() < 0.3:
                    nonzero = f"-({nonzero}) - {t}(1)"
                return f"({a} {self.random.choice(['/', '//', '%'])} ({nonzero}))"
            case 4 | 5:
                return f"({a} {self.random.choice('&|^')} {b})"
            case 6:
                return f"({a} {self.random.choice(['<<', '>>'])} (({b}) & {t}({BITS[kind.scalar] - 1})))"
            case 7:
                return f"(~({a}))"
            case 8:
                return f"(-({a}))"
            case 9:
                return f"wp.{self.random.choice(['min', 'max'])}({a}, {b})"
            case 10:
                return f"wp.{self.random.choice(['abs', 'sign', 'nonzero'])}({a})"
            case 11:
                return f"wp.clamp({a}, {self.constant(kind)}, {b})"
            case 12:
                return f"wp.step({a})"
            case _:
                return f"({a} + {b})"

    def real(self, kind: Kind, depth: int) -> str:
        """Arithmetic of floats, every operation rounded as IEEE says."""
        a, b = self.value(kind, depth), self.value(kind, depth)
        match self.random.randrange(10):
            case 0 | 1 | 2:
                return f"({a} {self.random.choice('+-*')} {b})"
            case 3:
                return f"({a} {self.random.choice(['/', '//', '%'])} {b})"
            case 4:
                return f"wp.{self.random.choice(['min', 'max'])}({a}, {b})"
            case 5:
                return f"wp.{self.random.choice(['floor', 'ceil', 'trunc', 'round', 'rint', 'frac'])}({a})"
            case 6:
                return f"wp.{self.random.choice(['abs', 'sign', 'nonzero', 'step'])}({a})"
            case 7:
                return f"wp.clamp({a}, {self.constant(kind)}, {b})"
            case 8:
                return f"negative_{kind.scalar}({a})"
            case _:
                return f"wp.sqrt(wp.abs({a}))"

    def composed(self, kind: Kind, depth: int) -> str:
        """A vector, matrix or quaternion."""
        a, b, s = self.value(kind, depth), self.value(kind, depth), self.value(kind.component, depth)
        n = kind.shape[0] * (kind.shape[1] if len(kind.shape) == 2 else 1)
        choices = [f"({a} + {b})", f"({a} - {b})", f"({a} * {s})", f"({s} * {a})", f"(-({a}))",
                   f"{kind.text}({', '.join(self.leaf(kind.component) for _ in range(n))})"]  # fmt: skip
        if kind.turns:
            return self.random.choice([*choices, f"wp.quat_inverse({a})", f"({a} / {s})"])
        choices += [f"wp.cw_mul({a}, {b})", f"{kind.text}({s})"]
        if kind.is_float:
            choices += [f"wp.cw_div({a}, {b})", f"({a} / {s})"]
        if len(kind.shape) == 1:
            choices += [f"wp.{f}({a}, {b})" for f in ("min", "max")] + [f"wp.abs({a})", f"wp.sign({a})"]
            choices += [f"wp.cross({a}, {b})"] if n == 3 else []
            choices += [f"{kind.text}({k.text}({x}))" for k, x in self.other(kind)]
        else:
            choices += self.matrices(kind, a, b, depth)
        return self.random.choice(choices)

    def other(self, kind: Kind) -> list[tuple[Kind, str]]:
        """Vectors of the same length, of another type that casts as C says."""
        found = [k for k in self.composites if k != kind and k.shape == kind.shape and not k.turns]
        return [(k, self.leaf(k)) for k in found if k.is_float == kind.is_float or kind.is_float]

    def matrices(self, kind: Kind, a: str, b: str, depth: int) -> list[str]:
        exact = not kind.is_float or (kind.scalar != "float16" and self.in_kernel)
        choices, (rows, cols) = [], kind.shape
        if rows == cols:
            choices += [f"wp.transpose({a})"]
            if exact:
                x = (lambda: self.read(kind)) if kind.is_float else (lambda: self.value(kind, depth - 1))
                choices += [f"({x()} * {x()})"] * 2
        vectors = {k.shape[0]: k for k in self.composites if len(k.shape) == 1 and k.scalar == kind.scalar}
        if rows in vectors and cols in vectors and not vectors[rows].turns and not vectors[cols].turns:
            choices += [f"wp.outer({self.value(vectors[rows], depth - 1)}, {self.value(vectors[cols], depth - 1)})"]
        return choices


ADDED = ("int32", "uint32", "int64", "uint64", "float32", "float64")  # what atomics add


def module(programs: list[Typed], language: str) -> str:
    """The text of a module of ``programs`` in ``language``, treadle or warp."""
    kinds = dict.fromkeys(k for p in programs for k in p.kinds if k.shape)
    head = f"import {language} as wp\n\n" + "".join(k.declaration for k in kinds)
    if language == "warp":
        head += "wp.set_module_options({'enable_backward': False, 'fuse_fp': False, 'optimization_level': 0})\n"
    functions = "".join(
        f"\n\n@wp.func\ndef fitting_{f}(x: wp.{f}) -> wp.{f}:\n"
        f"    if x >= wp.{f}(-100.0) and x <= wp.{f}(100.0):\n        return x\n    return wp.{f}(3.0)\n"
        for f in FLOATS
    )
    functions += "".join(
        f"\n\n@wp.func\ndef negative_{f}(x: wp.{f}) -> wp.{f}:\n    return "
        f"{'-x' if language == 'treadle' else f'x * wp.{f}(-1.0)'}\n"
        for f in FLOATS
    )
    text = head + functions + "\n\n" + "\n\n".join(p.text for p in programs)
    return text.replace("in range(3):", "in range(int(3)):") if language == "warp" else text


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
