"""Builtins that Python calls often become machine code: the same results, in a microsecond."""

import timeit

import numpy as np
import pytest

import treadle as wp
from treadle.base.config import config
from treadle.lang.direct import OFTEN
from treadle.lang.host import Builtin, evaluate

V, W, M = wp.vec3(1.0, -2.0, 0.5), wp.vec3(0.3, 0.4, -7.0), wp.mat33(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0)
Q = wp.quat(0.1, 0.2, 0.3, 0.9)
HALVES = wp.vec3h(1.0, 2.0, 3.0)

CALLS = [
    ("sin", (np.float64(0.5),)), ("sin", (wp.float16(0.5),)), ("mod", (-7.5, 2.0)), ("mod", (-7, 2)),
    ("mul", (wp.int8(100), wp.int8(3))), ("mul", (wp.uint64(2**63), wp.uint64(3))), ("min", (1, 2.5)),
    ("add", (wp.bfloat16(1.0), wp.bfloat16(2.0))), ("lt", (1, 2)), ("mul", (M, V)), ("normalize", (HALVES,)),
    ("transform_point", (wp.transform(V, Q), W)), ("max", (wp.vec3i(1, 5, 3),)), ("where", (True, V, W)),
    ("argmax", (wp.vec3d(1.0, 5.0, 3.0),)), ("quat_to_axis_angle", (Q,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), CALLS, ids=[f"{n}{k}" for k, (n, _) in enumerate(CALLS)])
def test_machine_code_gives_what_the_oracle_gives(name, args):
    called, expected = Builtin(name), evaluate(name, args, {})
    found = [called(*args) for _ in range(OFTEN + 2)]
    assert tuple(map(type, args)) in called._ready
    for x in found:
        assert type(x) is type(expected) and repr(x) == repr(expected)


def test_numbers_keep_their_type():
    for _ in range(OFTEN + 2):
        assert type(wp.sqrt(wp.float64(2.0))) is wp.float64 and type(wp.sqrt(2.0)) is float
        assert type(wp.trace(wp.mat22h(1.0, 2.0, 3.0, 4.0))) is wp.float16
    config.legacy_scalar_return_types = True
    try:
        assert type(wp.sqrt(wp.float64(2.0))) is float
    finally:
        config.legacy_scalar_return_types = False


def test_ints_out_of_range_take_another_type():
    called = Builtin("abs")
    assert [called(-5) for _ in range(OFTEN + 2)][-1] == 5
    assert called(-(2**40)) == 2**40 and type(called(-(2**40))) is wp.int64
    smaller = Builtin("min")
    assert [smaller(wp.uint8(7), 250) for _ in range(OFTEN + 2)][-1] == 7
    with pytest.raises(wp.KernelTypeError):
        smaller(wp.uint8(7), 300)


def test_what_changes_its_arguments_or_prints_is_evaluated():
    for _ in range(OFTEN + 2):
        t = wp.transform_identity()
        wp.transform_set_translation(t, V)
        assert t[0] == 1.0


def test_arguments_by_name():
    m = wp.identity(n=4, dtype=float)
    assert wp.transform_point(point=V, xform=m) == wp.transform_point(m, V) == wp.transform_point(point=V, mat=m)
    assert wp.quat_identity(dtype=None) == wp.quat_identity() and type(wp.quat_identity(dtype=wp.float64)) is wp.quatd
    assert wp.sin.key == "sin"


def test_a_warm_call_takes_little():
    def call():
        wp.normalize(V)

    for _ in range(OFTEN + 1):
        call()
    evaluated = timeit.timeit(lambda: evaluate("normalize", (V,), {}), number=5) / 5
    assert min(timeit.repeat(call, number=50, repeat=20)) / 50 < evaluated / 10


def test_what_a_call_from_python_cannot_take_is_told_with_its_classes():
    with pytest.raises(wp.KernelTypeError, match=r"int16\(…\)\n.*in this call from Python: mul\(int16, int\)$"):
        wp.mul(wp.int16(1), 100000)
