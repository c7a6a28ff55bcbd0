"""Random programs of launches and copies over the rows of one array, and their values and tangents by NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import treadle as wp

ROWS, COLUMNS = 4, 6
f8 = wp.float64


@wp.kernel
def own(x: wp.array(dtype=f8), y: wp.array(dtype=f8), c: f8):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * c + x[i] * x[i] * f8(0.1)


@wp.kernel
def inplace(x: wp.array(dtype=f8), c: f8):
    i = wp.tid()
    x[i] = x[i] * x[i] * f8(0.2) + c


@wp.kernel
def add(x: wp.array(dtype=f8), y: wp.array(dtype=f8)):
    i = wp.tid()
    y[i] += x[i] * x[i]


@wp.kernel
def scatter(x: wp.array(dtype=f8), p: wp.array(dtype=int), y: wp.array(dtype=f8)):
    i = wp.tid()
    if x[i] > f8(0.3):
        y[p[i]] = x[i] * x[i]


@wp.kernel
def collect(x: wp.array(dtype=f8), p: wp.array(dtype=int), y: wp.array(dtype=f8)):
    i = wp.tid()
    wp.atomic_add(y, p[i] // 2, wp.cos(x[i]))


@wp.kernel
def gather(x: wp.array(dtype=f8), p: wp.array(dtype=int), y: wp.array(dtype=f8)):
    i = wp.tid()
    y[i] = x[p[i]] * y[i]


@wp.kernel
def highest(x: wp.array(dtype=f8), p: wp.array(dtype=int), y: wp.array(dtype=f8)):
    i = wp.tid()
    wp.atomic_max(y, p[i] // 2, x[i])


@wp.kernel
def row(a: wp.array2d(dtype=f8), s: int, t: int):
    i = wp.tid()
    a[t, i] = wp.sin(a[s, i]) + a[t, i] * f8(0.5)


@wp.kernel
def weigh(a: wp.array2d(dtype=f8), w: wp.array2d(dtype=f8), out: wp.array(dtype=f8)):
    i, j = wp.tid()
    wp.atomic_add(out, 0, a[i, j] * w[i, j])


class Action(NamedTuple):
    """``kind`` with source row, target row, a permutation, a number, a first column and a length."""

    kind: str
    s: int
    t: int
    p: np.ndarray
    c: float
    low: int
    n: int


KINDS = {"own": 3, "inplace": 3, "add": 2, "scatter": 3, "collect": 2, "gather": 3, "row": 3, "highest": 2, "copy": 2,
         "zero": 1, "fill": 1, "item": 1, "slice": 2}  # fmt: skip
APART = ("scatter", "collect", "gather", "highest")  # those of one row to itself would be a race


class Program:
    """A random program, its start and the weights of its result."""

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        chances = np.array([*KINDS.values()]) / sum(KINDS.values())
        self.actions = []
        for _ in range(rng.integers(3, 14)):
            kind = str(rng.choice([*KINDS], p=chances))
            s, t = (int(k) for k in rng.integers(ROWS, size=2))
            made = Action(kind, s, t, rng.permutation(COLUMNS).astype(np.int32), float(rng.normal()),
                          int(rng.integers(COLUMNS)), int(rng.integers(1, COLUMNS + 1)))  # fmt: skip
            if not (kind in APART and s == t):
                self.actions.append(made)
        self.start, self.weights = rng.normal(size=(2, ROWS, COLUMNS))

    def run(self, checkpoint="all", step: int = 0):
        """Record it, with a mark every ``step`` actions; the array, the loss and the tape."""
        a = wp.array(self.start, dtype=f8, requires_grad=True)
        w, loss = wp.array(self.weights, dtype=f8), wp.zeros(1, dtype=f8, requires_grad=True)
        with wp.Tape(checkpoint=checkpoint) as tape:
            for number, action in enumerate(self.actions):
                if step and number % step == 0:
                    tape.step()
                act(a, action)
            wp.launch(weigh, dim=a.shape, inputs=[a, w], outputs=[loss])
        return a, loss, tape

    def gradient(self) -> tuple[np.ndarray, np.ndarray]:
        """Values at the end, and the gradient, one tangent after the other."""
        found = np.zeros((ROWS, COLUMNS))
        for at in np.ndindex(ROWS, COLUMNS):
            direction = np.zeros((ROWS, COLUMNS))
            direction[at] = 1.0
            values, tangent = self.forward(direction)
            found[at] = (tangent * self.weights).sum()
        return values, found

    def forward(self, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values at the end, and their derivative in a direction of the start."""
        a, d = self.start.copy(), direction.copy()
        touched, read = False, set()
        for action in self.actions:
            if action.kind in ("zero", "fill", "item") and not touched and action.t not in read:
                _set(a, action)  # the content that the array came with: its gradient stays
                continue
            touched = True
            _mirror(a, d, action)
        return a, d


def act(a: wp.array, action: Action) -> None:
    """Do it to ``a``."""
    kind, s, t, p, c, low, n = action
    x, y = a[s], a[t]
    m = min(n, COLUMNS - low)
    match kind:
        case "own":
            wp.launch(own, dim=n, inputs=[x, y, c])
        case "inplace":
            wp.launch(inplace, dim=COLUMNS, inputs=[x, c])
        case "add":
            wp.launch(add, dim=COLUMNS, inputs=[x, y])
        case "scatter" | "collect" | "gather" | "highest":
            wp.launch(globals()[kind], dim=COLUMNS, inputs=[x, wp.array(p, dtype=int), y])
        case "row":
            wp.launch(row, dim=COLUMNS, inputs=[a, s, t])
        case "copy":
            wp.copy(a, a, t * COLUMNS + low, s * COLUMNS, m)
        case "zero":
            y.zero_()
        case "fill":
            y[:n].fill_(c)
        case "item":
            a[t, low] = c
        case "slice":
            a[t, low : low + m] = x[:m]


def _set(a: np.ndarray, action: Action) -> None:
    if action.kind == "zero":
        a[action.t] = 0
    elif action.kind == "fill":
        a[action.t, : action.n] = action.c
    else:
        a[action.t, action.low] = action.c


def _mirror(a: np.ndarray, d: np.ndarray, action: Action) -> None:
    """The same to values ``a`` and tangents ``d``."""
    kind, s, t, p, c, low, n = action
    x, dx, y, dy = a[s].copy(), d[s].copy(), a[t].copy(), d[t].copy()
    m = min(n, COLUMNS - low)
    match kind:
        case "own":
            a[t, :n] = np.sin(x[:n]) * c + x[:n] ** 2 * 0.1
            d[t, :n] = (np.cos(x[:n]) * c + 0.2 * x[:n]) * dx[:n]
        case "inplace":
            a[s], d[s] = x * x * 0.2 + c, 0.4 * x * dx
        case "add":
            a[t], d[t] = y + x * x, dy + 2 * x * dx
        case "scatter":
            to = p[x > 0.3]
            a[t, to], d[t, to] = x[x > 0.3] ** 2, (2 * x * dx)[x > 0.3]
        case "collect":
            np.add.at(a[t], p // 2, np.cos(x))
            np.add.at(d[t], p // 2, -np.sin(x) * dx)
        case "gather":
            a[t], d[t] = x[p] * y, dx[p] * y + x[p] * dy
        case "highest":
            for i, to in enumerate(p // 2):
                if x[i] > a[t, to]:
                    a[t, to], d[t, to] = x[i], dx[i]
        case "row":
            a[t], d[t] = np.sin(x) + y * 0.5, np.cos(x) * dx + dy * 0.5
        case "copy" | "slice":
            a[t, low : low + m], d[t, low : low + m] = x[:m], dx[:m]
        case _:
            _set(a, action)
            _set(d, action._replace(c=0.0))
