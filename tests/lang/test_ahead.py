"""Launches that only have their kernels compiled: nothing runs, everything is ready, errors come as ever."""

import numpy as np
import pytest

import treadle as wp
from treadle.base.errors import KernelTypeError
from treadle.codegen import workers
from treadle.lang.ahead import ahead


@wp.kernel
def add(x: wp.array(dtype=float), y: wp.array(dtype=float), n: wp.array(dtype=int)):
    i = wp.tid()
    x[i] += y[i]
    wp.atomic_add(n, 0, 1)


@wp.kernel
def scale(x: wp.array2d(dtype=float), by: float):
    i, j = wp.tid()
    x[i, j] *= by


@wp.kernel
def wrong(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.vec3(1.0)


def test_launches_compile_and_do_not_run():
    x, y, n, m = wp.zeros(4, dtype=float), wp.ones(4, dtype=float), wp.zeros(1, dtype=int), wp.ones((3, 5), dtype=float)
    for _ in range(2):  # the second time launchers know the kernels
        with ahead():
            wp.launch(add, dim=4, inputs=[x, y, n])
            wp.launch(scale, dim=(3, 5), inputs=[m, 2.0])
        assert not x.numpy().any() and n.list() == [0] and (m.numpy() == 1).all()
    compiled = [
        len(overload.variants)
        for kernel in (add, scale)
        for overload in (*kernel.overloads.values(), *kernel.elsewhere.values())
    ]
    jobs = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers.Job, "__init__", lambda *args: jobs.append(args))
        wp.launch(add, dim=4, inputs=[x, y, n])
        wp.launch(scale, dim=(3, 5), inputs=[m, 2.0])
    assert not jobs and compiled == [1, 1]
    assert x.list() == [1.0] * 4 and n.list() == [4] and (m.numpy() == 2).all()


def test_tapes_note_nothing_and_other_work_is_done():
    x, y, n = wp.zeros(4, dtype=float, requires_grad=True), wp.ones(4, dtype=float), wp.zeros(1, dtype=int)
    with wp.Tape() as tape, ahead():
        wp.launch(add, dim=4, inputs=[x, y, n])
        wp.copy(x, y)
    assert x.list() == y.list() and n.list() == [0] and len(tape.launches) == 1  # the copy


def test_errors_come_from_the_launch_and_launches_run_afterwards():
    x, n = wp.zeros(4, dtype=float), wp.zeros(1, dtype=int)
    with pytest.raises(KernelTypeError), ahead():
        wp.launch(wrong, dim=4, inputs=[x])
    wp.launch(add, dim=4, inputs=[x, wp.array(np.ones(4, np.float32)), n])
    assert x.list() == [1.0] * 4
