"""Random differentiable kernels, and whether forward mode, reverse mode and difference quotients agree on them.

Every kernel works in float64 and keeps its values small. It nests loops, leaves them early, branches on floats and
integers, returns early, has vectors, matrices, own arrays and structs, calls functions that do the same, steps arrays
in place, reads and writes slices that lie over each other, and adds to shared sums. Threads meet nowhere else, so every
order of threads gives the same.

``python -m tests.random_gradients --count 2000 --seed 0`` judges as many programs and prints what it found.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

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


# ---- running them

STEPS = (1e-5, 3e-6)  # of difference quotients
AGREE, NEAR = 1e-6, 1e-5  # how near two quotients must be to be believed, and how near a tangent must be to them
EQUAL = 1e-12  # how near reverse mode must be to forward mode, of the sum of all contributions


class State:
    """The memory of one run: what the kernel's arguments show. ``mem`` is behind both ``left`` and ``right``."""

    NAMES = ("x", "y", "u", "w", "mem", "shared", "peaks", "bodies", "m0", "p", "out")

    def __init__(self, rng: np.random.Generator, body: np.dtype):
        n = THREADS
        shapes = {"x": n, "y": n, "u": (n, 3), "w": (n, ROW), "mem": (n, 8), "shared": SHARED, "peaks": SHARED,
                  "m0": (2, 2), "p": (), "out": n}  # fmt: skip
        self.of: dict[str, np.ndarray] = {name: rng.uniform(-1, 1, shape) for name, shape in shapes.items()}
        self.of["bodies"] = np.zeros(n, body)
        self.of["bodies"]["mass"] = rng.uniform(-1, 1, n)
        self.of["bodies"]["place"] = rng.uniform(-1, 1, (n, 3))

    def copy(self) -> State:
        made = State.__new__(State)
        made.of = {name: a.copy() for name, a in self.of.items()}
        return made

    def floats(self) -> list[np.ndarray]:
        """All memory that holds floats, as views."""
        return [part for name in self.NAMES if name in self.of for part in self._parts(name)]

    def _parts(self, name: str) -> list[np.ndarray]:
        a = self.of[name]
        return [a["mass"], a["place"]] if name == "bodies" else [a]

    def flat(self) -> np.ndarray:
        return np.concatenate([a.reshape(-1) for a in self.floats()])

    def moved(self, direction: State, step: float) -> State:
        """This state a step further."""
        made = self.copy()
        for a, d in zip(made.floats(), direction.floats(), strict=True):
            a += step * d
        return made

    def arguments(self) -> list[Any]:
        """For ``PARAMETERS``, as NumPy arrays over this memory."""
        views = {**self.of, "left": self.of["mem"][:, 0:4], "right": self.of["mem"][:, 2:6]}
        return [float(views[name]) if name == "p" else views[name] for name in PARAMETERS]


@dataclass
class Verdict:
    """What was found of one program. ``judged``: how many of its ``count`` derivatives difference quotients could
    judge; ``wrong`` says what is wrong, if anything."""

    seed: int
    count: int = 0
    judged: int = 0
    wrong: list[str] = field(default_factory=list)


class Program:
    """One random program through the compiler: ``plain`` to run, ``prepared`` to differentiate, ``forward`` mode."""

    def __init__(self, seed: int, folder: Path):
        from treadle.frontend.core import Options
        from treadle.frontend.parse import parse
        from treadle.ir.effects import leaf_paths
        from treadle.passes.adjoint import reverse
        from treadle.passes.pipeline import LOWER, NORMALIZE, PREPARE, RELEASE, run
        from treadle.passes.tangent import tangent
        from treadle.types.core import Array, View, f64, view

        self.seed, self.source = seed, Writer(seed).module()
        self.module = load(self.source, folder / f"gradient_{seed}.py")
        kernel = self.module.kernel
        types = [view(t.elem, t.ndim) if isinstance(t, Array) else t for t in kernel.declared]
        for k, name in enumerate(PARAMETERS):
            if name in ("left", "right"):
                types[k] = view(f64, 2, (None, f64.size))
        parsed = [parse(kernel.source, tuple(types), Options(gradient=g), "kernel", name="kernel") for g in (0, 1)]
        self.plain = run(LOWER, run(RELEASE, run(NORMALIZE, parsed[0])))
        self.prepared = run(PREPARE, run(NORMALIZE, parsed[1]))
        self.forward = run(LOWER, tangent(self.prepared, tuple(PARAMETERS)))
        arrays = [path for p, path in zip(self.prepared.params, leaf_paths(self.prepared)) if isinstance(p.type, View)]
        self.reverse = run(LOWER, run(NORMALIZE, reverse(self.prepared, tuple(arrays), aliased=("left", "right"))))

    def states(self) -> tuple[State, State]:
        """Where the program starts, and a direction."""
        rng = np.random.default_rng(self.seed)
        body = self.module.Body.numpy_dtype()
        return State(rng, body), State(rng, body)


def load(source: str, path: Path) -> Any:
    """The module of ``source``, written to ``path``, where its text is found."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def quotient(program: Program, start: State, direction: State, step: float) -> np.ndarray:
    """The central difference quotient of all memory."""
    from treadle.codegen import oracle

    ends = [start.moved(direction, s) for s in (step, -step)]
    for end in ends:
        oracle.run(program.plain, end.arguments(), THREADS)
    return (ends[0].flat() - ends[1].flat()) / (2 * step)


def run_forward(program: Program, start: State, direction: State) -> tuple[State, State]:
    """Values and tangents after a run in forward mode."""
    from treadle.codegen import oracle

    values, tangents = start.copy(), direction.copy()
    oracle.run(program.forward, [*values.arguments(), *tangents.arguments()], THREADS)
    return values, tangents


def run_reverse(program: Program, start: State, seeds: State) -> State:
    """The gradients of the memory at the start, from those of the memory at the end."""
    from treadle.codegen import oracle

    values, gradients = start.copy(), seeds.copy()
    left, aside = gradients.of["peaks"], np.zeros(SHARED)
    if "peaks" in program.reverse.facts["winners"]:  # it sees what the run leaves there, as the tape sees to
        end = start.copy()
        oracle.run(program.plain, end.arguments(), THREADS)
        same = end.of["peaks"] == values.of["peaks"]
        values.of["peaks"], aside = end.of["peaks"], np.where(same, left, 0.0)
        left[same] = 0.0
    given = zip(values.arguments(), gradients.arguments(), PARAMETERS)
    oracle.run(program.reverse, [v if name in NO_ARRAYS else (v, g) for v, g, name in given], THREADS)
    left += aside
    return gradients


def compare_modes(program: Program, start: State, direction: State) -> str:
    """What is wrong where reverse and forward mode differ: the end's tangents, weighted, must be the start's, weighted
    by the gradient of that sum. Only arrays have gradients, so other arguments stay."""
    direction = direction.copy()
    for name in NO_ARRAYS:
        direction.of[name][...] = 0.0
    _, tangents = run_forward(program, start, direction)
    seeds = State(np.random.default_rng(program.seed + 10**6), direction.of["bodies"].dtype)
    for name in NO_ARRAYS:
        seeds.of[name][...] = 0.0
    forward = seeds.flat() * tangents.flat()
    backward = run_reverse(program, start, seeds).flat() * direction.flat()
    scale = np.abs(forward).sum() + np.abs(backward).sum()
    if abs(forward.sum() - backward.sum()) <= EQUAL * scale:
        return ""
    return f"forward mode says {forward.sum()}, reverse mode {backward.sum()}"


def judge(seed: int, folder: Path, launches: bool = False) -> Verdict:
    """Compare forward mode with difference quotients, and reverse mode with forward mode, on program ``seed``; with
    ``launches`` in machine code too."""
    from treadle.codegen import oracle

    verdict = Verdict(seed)
    program = Program(seed, folder)
    start, direction = program.states()
    plain = start.copy()
    oracle.run(program.plain, plain.arguments(), THREADS)
    values, tangents = run_forward(program, start, direction)
    if plain.flat().tobytes() != values.flat().tobytes():
        verdict.wrong.append("forward mode computes other values")
    first, second = (quotient(program, start, direction, step) for step in STEPS)
    found = tangents.flat()
    scale = 1 + np.abs(first)
    judged = np.abs(first - second) <= AGREE * scale
    verdict.count, verdict.judged = judged.size, int(judged.sum())
    off = judged & ~(np.abs(found - first) <= NEAR * scale)
    if off.any():
        k = int(np.argmax(off))
        verdict.wrong.append(f"tangent {k} is {found[k]}, difference quotients say {first[k]} and {second[k]}")
    differences = [compare_modes(program, start, direction)]
    if launches:
        differences += [compare(program, start, direction) for compare in (compare_launches, compare_second)]
    verdict.wrong += filter(None, differences)
    return verdict


# ---- the same by launches


class Arrays:
    """A state as treadle's arrays, with a gradient each if asked for."""

    def __init__(self, program: Program, state: State, requires_grad: bool = False):
        import treadle as wp

        types = {"u": wp.vec3d, "bodies": program.module.Body}
        self.of = {name: wp.array(state.of[name], dtype=types.get(name, wp.float64), requires_grad=requires_grad)
                   for name in State.NAMES if name not in NO_ARRAYS}  # fmt: skip
        self.state = state

    def arguments(self) -> list[Any]:
        import treadle as wp

        given = {**self.of, "m0": wp.mat22d(self.state.of["m0"]), "p": float(self.state.of["p"]),
                 "left": self.of["mem"][:, 0:4], "right": self.of["mem"][:, 2:6]}  # fmt: skip
        return [given[name] for name in PARAMETERS]

    def flat(self, gradients: bool = False) -> np.ndarray:
        """What the arrays, or their gradients, hold, as ``State.flat`` has it, without what is no array."""
        made = self.state.copy()
        for name in State.NAMES:
            a = self.of.get(name)
            made.of[name] = np.zeros(0) if a is None else (a.grad if gradients else a).numpy()
        return made.flat()


def compare_launches(program: Program, start: State, direction: State) -> str:
    """What is wrong where ``wp.jvp`` and ``wp.Tape`` differ from each other, or from a launch."""
    import treadle as wp

    kernel = program.module.kernel
    direction, rng = direction.copy(), np.random.default_rng(program.seed + 10**6)
    seeds = State(rng, direction.of["bodies"].dtype)
    for name in NO_ARRAYS:
        direction.of[name][...] = 0.0
    plain, values, tangents = Arrays(program, start), Arrays(program, start), Arrays(program, direction)
    wp.launch(kernel, THREADS, plain.arguments())
    wp.jvp(kernel, THREADS, values.arguments(), tangents=tangents.arguments())
    taped = seeded(program, start, seeds)
    with wp.Tape() as tape:
        wp.launch(kernel, THREADS, taped.arguments())
    tape.backward()
    if plain.flat().tobytes() != taped.flat().tobytes():
        return "a launch and a recorded one leave other values"
    if not same_values(program, plain.flat(), values.flat()):
        return "a launch and jvp leave other values"
    forward = Arrays(program, seeds).flat() * tangents.flat()
    backward = taped.flat(gradients=True) * Arrays(program, direction).flat()
    scale = np.abs(forward).sum() + np.abs(backward).sum()
    if abs(forward.sum() - backward.sum()) <= EQUAL * scale:
        return ""
    return f"wp.jvp says {forward.sum()}, wp.Tape {backward.sum()}"


def same_values(program: Program, plain: np.ndarray, other: np.ndarray) -> bool:
    """Whether a launch and one with tangents agree to the last bit; where the tangents of least and greatest values
    make the threads run in order, sums of floats are made in another one, and agree to rounding."""
    from treadle.ir.effects import order

    if order(program.plain) == order(program.forward):
        return plain.tobytes() == other.tobytes()
    return bool(np.allclose(plain, other, rtol=EQUAL, atol=EQUAL))


def gradient(program: Program, start: State, seeds: State) -> np.ndarray:
    """The gradient at ``start`` of the end, weighted by ``seeds``."""
    import treadle as wp

    taped = seeded(program, start, seeds)
    with wp.Tape() as tape:
        wp.launch(program.module.kernel, THREADS, taped.arguments())
    tape.backward()
    return taped.flat(gradients=True)


def seeded(program: Program, start: State, seeds: State) -> Arrays:
    """The arrays of ``start``, with ``seeds`` as their gradients."""
    made, given = Arrays(program, start, True), Arrays(program, seeds)
    for name, a in made.of.items():
        a.grad.assign(given.of[name])
    return made


def compare_second(program: Program, start: State, direction: State) -> str:
    """What is wrong where a tape that goes back through ``wp.jvp`` gives other second derivatives than differences of
    gradients."""
    import treadle as wp

    direction = direction.copy()
    for name in NO_ARRAYS:
        direction.of[name][...] = 0.0
    seeds = State(np.random.default_rng(program.seed + 10**6), direction.of["bodies"].dtype)
    values, tangents = Arrays(program, start, True), seeded(program, direction, seeds)
    with wp.Tape() as tape:
        wp.jvp(program.module.kernel, THREADS, values.arguments(), tangents=tangents.arguments())
    tape.backward()
    if not np.allclose(tangents.flat(gradients=True), gradient(program, start, seeds), rtol=1e-12, atol=1e-12):
        return "the gradient of a tangent is not the gradient"
    ends = [[gradient(program, start.moved(direction, sign * step), seeds) for sign in (1, -1)] for step in STEPS]
    first, second = [(a - b) / (2 * step) for (a, b), step in zip(ends, STEPS)]
    found, scale = values.flat(gradients=True), 1 + np.abs(first)
    off = (np.abs(first - second) <= AGREE * scale) & ~(np.abs(found - first) <= NEAR * scale)
    if not off.any():
        return ""
    k = int(np.argmax(off))
    return f"second derivative {k} is {found[k]}, differences of gradients say {first[k]} and {second[k]}"


def main() -> int:
    """Judge many programs; the exit status is 1 if one is wrong."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--launches", action="store_true", help="also compile, and compare wp.jvp with wp.Tape")
    asked = options.parse_args()
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
