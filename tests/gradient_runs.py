"""Random differentiable kernels (tests/random_gradients.py) run: backwards, forwards, beside difference quotients."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.random_gradients import NO_ARRAYS, PARAMETERS, ROW, SHARED, THREADS, Writer

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
