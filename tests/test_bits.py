"""Same bits everywhere: any gang width, any number of workers, any run (see tests/bits.py for the programs)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import treadle as wp

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (1, 8, 16)
WORKERS = (1, 2, 3, 7)


def run_programs(*args: str, **environment: str) -> dict[str, list[str]]:
    """Digests that ``python -m tests.bits`` prints in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bits", *args],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@cache
def digests(width: int, workers: int) -> dict[str, list[str]]:
    return run_programs(TREADLE_GANG_WIDTH=str(width), TREADLE_WORKERS=str(workers))


def differing(a: dict[str, list[str]], b: dict[str, list[str]]) -> list[str]:
    assert a.keys() == b.keys() and len(a) > 10
    return [name for name in a if a[name][0] != b[name][0]]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("width", WIDTHS)
def test_width_and_workers_do_not_show(width, workers):
    assert differing(digests(width, workers), digests(1, 1)) == []


def test_three_runs_are_equal():
    runs = run_programs("--runs", "3")
    assert [name for name, each in runs.items() if len(set(each)) != 1 or len(each) != 3] == []
    assert differing(runs, digests(1, 1)) == []


def test_settings_in_the_program_do_the_same():
    assert differing(run_programs("--config", "8", "2"), digests(1, 1)) == []


def test_checks_do_not_show():
    assert differing(run_programs(TREADLE_MODE="debug"), digests(1, 1)) == []


@wp.kernel
def filled(x: wp.array(dtype=float), at: wp.array(dtype=int), bins: wp.array(dtype=float)):
    i = wp.tid()
    assert at[i] >= 0
    wp.atomic_add(bins, at[i], x[i])


@pytest.mark.parametrize("n", [10_000, 20_000, 40_000])
def test_the_work_of_checks_changes_no_number_of_private_copies(n):
    rng, found = np.random.default_rng(3), []
    x, at = wp.array(rng.random(n), dtype=float), wp.array(rng.integers(0, 64, n), dtype=int)
    for checked in (False, True):
        bins = wp.zeros(64, dtype=float)
        wp.launch(filled, n, inputs=[x, at, bins], checked=checked)
        found.append(bins.numpy())
    assert (found[0] == found[1]).all()


@wp.kernel
def total_of_pairs(x: wp.array2d(dtype=float), total: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(total, 0, x[i, j])


@wp.kernel
def total_of(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    wp.atomic_add(total, 0, x[wp.tid()])


def test_gangs_along_rows_sum_up_as_others():
    x = wp.array(np.random.default_rng(4).normal(size=(150_000, 8)), dtype=float)
    found = set()
    try:
        for wp.config.gang_width in (4, 8, 16):
            total = wp.zeros(1, dtype=float)
            wp.launch(total_of_pairs, x.shape, inputs=[x, total])
            found.add(total.list()[0])
    finally:
        wp.config.gang_width = None
    assert len(found) == 1


@pytest.mark.parametrize("n", [1_300_010, 1_400_013])
def test_tangents_beside_a_sum_change_no_bit(n):
    x = wp.array(np.random.default_rng(n).normal(size=n), dtype=float)
    plain, beside = wp.zeros(1, dtype=float), wp.zeros(1, dtype=float)
    wp.launch(total_of, n, inputs=[x, plain])
    wp.jvp(total_of, n, inputs=[x, beside], tangents={"x": wp.ones(n, dtype=float)})
    assert plain.list() == beside.list()


def test_digest_sees_a_bit_and_forgives_nans():
    from tests.bits import digest

    x = np.linspace(0.0, 1.0, 7, dtype=np.float32)
    y = x.copy()
    y.view(np.int32)[3] ^= 1
    assert digest({"x": x}) != digest({"x": y})
    assert digest({"x": np.float32([0.0])}) != digest({"x": np.float32([-0.0])})
    quiet, other = np.array([0x7FC00000], np.uint32), np.array([0xFFC00001], np.uint32)
    assert digest({"x": quiet.view(np.float32)}) == digest({"x": other.view(np.float32)})


def test_counter_gives_slots_in_thread_order():
    from tests import bits

    out = bits.counter(10_001)
    want = np.flatnonzero(bits._normal(10_001) > np.float32(0.3))
    assert out["count"][0] == len(want)
    assert (out["kept"][: len(want)] == want).all()
    assert (out["kept"][len(want) :] == 0).all()


def test_several_turns_at_a_counter_come_in_thread_order():
    from tests import bits

    n = 10_007
    x, counts, pairs, out = bits._normal(n), [0, 2 * n], np.zeros(2 * n + 1, np.int32), np.zeros(5 * n, np.int32)
    for i in range(n):
        slot, counts[0] = counts[0], counts[0] + 1
        out[slot] = i
        for k in range(i % 3):
            if x[i] > np.float32(0.1) * np.float32(k):
                slot, counts[0] = counts[0], counts[0] + 2
                out[slot], out[slot + 1] = i, -k
        if slot % 4 == 1:
            pairs[counts[1]] = i
            counts[1] -= 1 + slot % 3
    found = bits.turns(n)
    assert list(found["counts"]) == counts and (found["out"] == out).all() and (found["pairs"] == pairs).all()


def test_seats_are_given_by_cell_in_thread_order():
    from tests import bits

    n, cells = 20_011, 50
    found = bits.seats(n, cells)
    cell = (np.random.default_rng(25).integers(0, cells, n) * 7 + np.arange(n)) % cells
    assert (found["cell"] == cell).all()
    assert (found["counts"] == np.bincount(cell, minlength=cells)).all()
    assert all((found["seat"][cell == c] == np.arange((cell == c).sum())).all() for c in range(cells))


def test_loops_that_add_to_a_table_add_the_right_numbers():
    from tests import bits_slots

    for case in ((), (70, 33), (2_011, bits_slots.BEYOND)):  # the last one without slots
        want = bits_slots.mixed_expected(*case)
        assert np.allclose(bits_slots.mixed(*case)["table"], want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


def test_tangents_beside_slots_change_no_bit():
    import treadle as wp
    from tests import bits_slots

    n, size = 3_001, 203
    x, where = wp.array(bits_slots.normal(n)), wp.array(np.arange(n, dtype=np.int32) % size)
    plain, beside, along = (wp.zeros(size, dtype=float) for _ in range(3))
    wp.launch(bits_slots.mixed_kernel, dim=n, inputs=[x, where, plain, 40, 3])
    direction = wp.full(n, 1.0, dtype=float)
    wp.jvp(bits_slots.mixed_kernel, n, [x, where, beside, 40, 3], tangents=[direction, None, along, None, None])
    assert plain.numpy().tobytes() == beside.numpy().tobytes()
    want = 1.3 * np.bincount(where.numpy(), minlength=size) + (np.arange(size) < n)
    for j in range(40):
        want[j * 3 % size] += (x.numpy() > np.float32(0.05) * np.float32(j) - 1.0).sum() * (j + 1)
    assert np.allclose(along.numpy(), want, rtol=1e-4)


def test_slots_copies_and_sums_do_not_disturb_each_other():
    from tests import bits_slots

    found = bits_slots.beside()
    for n in (700, 40_003):
        x, where = bits_slots.normal(n).astype(float), found[f"where {n}"]
        table = np.stack([(x[:, None] * np.stack([x, 0.1 + 0 * x, k + 0 * x], 1)).sum(0) for k in range(21)])
        other = np.bincount(where, x, 90) + 0.3 * np.bincount(where // 2, minlength=90)
        for name, want in (("table", table), ("other", other), ("total", [x.sum()])):
            assert np.allclose(found[f"{name} {n}"], want, rtol=1e-4, atol=1e-2), name
        assert (found[f"count {n}"] == np.bincount(where, minlength=90)).all()


def test_gradients_of_bodies_are_right_on_both_sides_of_the_size_rule():
    """With few threads the gradient is too large for slots: the kernel is the same, and what it adds is."""
    from tests import bits_slots

    x, seed = bits_slots.normal(300, 3), bits_slots.normal(300, 3, seed=6)
    d = x[None].astype(float) - x[:, None]
    r2 = (d * d).sum(2, keepdims=True) + 0.01
    for n in (300, 1):
        along = (d * seed[:n, None]).sum(2, keepdims=True) if n == 300 else (d[:1] * seed[0]).sum(2, keepdims=True)
        each = seed[:n, None] * r2[:n] ** -1.5 - 3.0 * along * d[:n] * r2[:n] ** -2.5
        want = each.sum(0)
        want[:n] -= each.sum(1)
        array = bits_slots.wp.array(x, dtype=bits_slots.wp.vec3, requires_grad=True)
        f = bits_slots.wp.zeros(n, dtype=bits_slots.wp.vec3, requires_grad=True)
        with bits_slots.wp.Tape() as tape:
            bits_slots.wp.launch(bits_slots.forces_kernel, dim=n, inputs=[array, f, 300])
        tape.backward(grads={f: bits_slots.wp.array(seed[:n], dtype=bits_slots.wp.vec3)})
        assert np.allclose(array.grad.numpy(), want, rtol=1e-4, atol=1e-5 * np.abs(want).max())


def test_programs_take_every_order():
    """The comparisons above mean little for kernels that run on one worker in any case."""
    from tests import bits
    from treadle.lang.compile import Options, translate

    found = {}
    for kernel in (bits.scatter_kernel, bits.sums_kernel, bits.counter_kernel, bits.chain_kernel, bits.restart_kernel,
                   bits.turns_kernel, bits.seats_kernel):  # fmt: skip
        types = kernel.declared_variants()[0].types
        found[kernel.key] = translate(kernel, types, Options(16, False, False, 8)).found.order
    assert found == {
        "scatter_kernel": "free", "sums_kernel": "free", "counter_kernel": "counted", "chain_kernel": "ordered",
        "restart_kernel": "ordered", "turns_kernel": "counted", "seats_kernel": "counted",
    }  # fmt: skip
