"""The oracle: what each op means."""

import math

import numpy as np
import pytest

from treadle.base.errors import IndexOutOfRange, KernelAssertionError, LaunchTypeError, UnassignedError
from treadle.builtins.registry import primitive
from treadle.codegen import oracle
from treadle.ir.read import read
from treadle.ir.verify import verify

for _name in "add sub mul div fma lt eq bitand min".split():
    primitive(_name)


def run(head: str, body: str, *args, dim=1, before: str = "", result: str = ""):
    """Run a kernel, or a function if it has a ``result``."""
    kind = "function" if result else "kernel"
    text = f'{before}\n{kind} @{before.count("@")} "k" ({head}) {{\n{body}\n yield {result}\n}}'
    return oracle.run(verify(read(text)), args, dim)


def value(head: str, body: str, result: str, *args, **options):
    (values,) = run(head, body, *args, result=result, **options).values
    return values[0]


def test_threads_run_in_linear_order_the_last_axis_fastest():
    body = ("%1: i32 = const value=0\n %2: i32 = const value=1\n %3: i32 = atomic %0, %1, %2 op='add'\n"
            " %4: i32 = const value=10\n %5: i32 = tid axis=0\n %6: i32 = tid axis=1\n %7: i32 = mul %5, %4\n"
            " %8: i32 = add %7, %6\n %9: i32 = add %3, %2\n store %0, %9, %8")  # fmt: skip
    out = np.zeros(7, np.int32)
    run("%0: view<i32,1,(4)>", body, out, dim=(2, 3))
    assert out.tolist() == [6, 0, 1, 2, 10, 11, 12]


def test_scalars_are_exact():
    assert value("%0: f32, %1: f32", "%2: f32 = add %0, %1", "%2", 2.0**24, 1.0) == 2.0**24
    assert value("%0: i32, %1: i32", "%2: i32 = add %0, %1", "%2", 2**31 - 1, 1) == -(2**31)
    assert math.isinf(value("%0: f16, %1: f16", "%2: f16 = mul %0, %1", "%2", 1000.0, 1000.0))
    assert value("%0: bf16, %1: bf16", "%2: bf16 = add %0, %1", "%2", 1.0, 2.0**-8) == 1.0


@pytest.mark.parametrize("t, ulp", [("f32", 2.0**-24), ("f64", 2.0**-53)])
def test_fma_rounds_once(t, ulp):
    x = 1.0 + 2 * ulp  # x*x = 1 + 4 ulp + 4 ulp², whose last term a product alone would lose
    head = f"%0: {t}, %1: {t}, %2: {t}"
    assert value(head, f"%3: {t} = fma %0, %1, %2", "%3", x, x, -(1.0 + 4 * ulp)) == 4 * ulp * ulp


def test_casts_are_defined_for_every_value():
    cast = lambda a, b, x: value(f"%0: {a}", f"%1: {b} = cast %0", "%1", x).item()
    assert [cast("f32", "i32", x) for x in (-1.9, 3e9, -3e9, math.nan)] == [-1, 2**31 - 1, -(2**31), 0]
    assert cast("f64", "u8", 256.0) == 255 and cast("f64", "u8", -1.0) == 0
    assert cast("i32", "i8", 200) == -56 and cast("i32", "u64", -1) == 2**64 - 1
    assert cast("f32", "bool", 0.5) is True and cast("bool", "f32", True) == 1.0
    assert cast("f64", "f32", 1e300) == math.inf and cast("f32", "bf16", 1.005859375) == 1.0078125


def test_bitcasts_keep_bits():
    assert value("%0: f32", "%1: u32 = bitcast %0", "%1", 1.0) == 0x3F800000
    assert value("%0: bf16", "%1: u16 = bitcast %0", "%1", 1.0) == 0x3F80


def test_arrays_of_vectors_may_lie_side_by_side_or_in_planes():
    body = ("%1: i32 = tid axis=0\n %2: vec<3,f32> = load %0, %1\n %3: vec<3,f32> = add %2, %2\n store %0, %1, %3\n"
            "%4: view<f32,1,{}> = field %0 index=1\n %5: f32 = load %4, %1\n %6: f32 = add %5, %5\n"
            " store %4, %1, %6")  # fmt: skip
    beside = np.arange(6, dtype=np.float32).reshape(2, 3)
    planes = np.asfortranarray(beside)
    run("%0: view<vec<3,f32>,1,(12)>", body.format("(12)"), beside, dim=2)
    run("%0: view<vec<3,f32>,1,(?),planar>", body.format("(?)"), planes, dim=2)
    assert beside.tolist() == planes.tolist() == [[0, 4, 4], [6, 16, 10]]


def test_arrays_that_do_not_lie_as_their_type_says_are_refused():
    with pytest.raises(LaunchTypeError, match="strides"):
        run("%0: view<f32,1,(4)>", "", np.zeros(8, np.float32)[::2])
    with pytest.raises(LaunchTypeError, match="dimensions"):
        run("%0: view<f32,1,(4)>", "", np.zeros((2, 2), np.float32))


def test_views_of_views():
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    body = ("%1: i32 = const value=1\n %2: view<f32,2,(16,4)> = subview %0, %1\n %3: i32 = const value=3\n"
            "%4: i32 = const value=-2\n %5: i32 = const value=2\n"
            " %6: view<f32,2,(16,?)> = slice %2, %3, %4, %5 axis=1\n"
            "%7: f32 = load %6, %5, %1\n %8: i32 = shape %6 axis=1\n %9: f32 = cast %8\n"
            " %10: f32 = add %7, %9")  # fmt: skip
    assert value("%0: view<f32,3,(48,16,4)>", body, "%10", data) == data[1, 2, 3::-2][1] + 2


def test_an_index_may_fix_a_later_dimension():
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    body = ("%1: i32 = const value=2\n %2: view<f32,1,(?)> = subview %0, %1 axis=1\n %3: i32 = const value=1\n"
            "%4: f32 = load %2, %3")  # fmt: skip
    assert value("%0: view<f32,2,(?,4)>", body, "%4", data) == data[1, 2]


def test_structs_hold_arrays_and_are_elements():
    element = np.dtype([("m", np.float32), ("k", np.int32), ("v", np.float32, 2)])
    data = np.zeros(2, element)
    data["k"] = 7
    text = ("struct 's.E' (m: f32, k: i32, v: vec<2,f32>)\nstruct 's.P' (a: view<struct<s.E>,1,(16)>, x: f32)\n"
            'kernel @0 "k" (%0: struct<s.P>) {\n %1: i32 = tid axis=0\n'
            ' %2: view<struct<s.E>,1,(16)> = extract %0 index=0\n'
            " %3: struct<s.E> = load %2, %1\n %4: f32 = extract %0 index=1\n %5: struct<s.E> = insert %3, %4 index=0\n"
            " store %2, %1, %5\n %6: view<vec<2,f32>,1,(16)> = field %2 index=2\n %7: vec<2,f32> = make %4, %4\n"
            " store %6, %1, %7\n yield\n}")  # fmt: skip
    oracle.run(verify(read(text)), [{"a": data, "x": 2.5}], 2)
    assert data["m"].tolist() == [2.5, 2.5] and data["k"].tolist() == [7, 7] and data["v"].tolist() == [[2.5, 2.5]] * 2


def test_arrays_are_reached_by_address():
    data = np.arange(6, dtype=np.float32)
    body = ("%1: u64 = address %0\n %2: i32 = const value=2\n %3: i32 = const value=3\n"
            "%4: view<f32,2,(?,4)> = view_at %1, %2, %3\n %5: i32 = const value=1\n"
            " %6: f32 = load %4, %5, %2")  # fmt: skip
    assert value("%0: view<f32,1,(4)>", body, "%6", data) == 5


def test_own_arrays_start_as_zeros_each_time():
    body = ("%1: i32 = const value=0\n %2: i32 = const value=1\n %3: i32 = const value=3\n %4: f32 = const value=1.0\n"
            "%9: f32 = const value=0.0\n %5: f32 = for %1, %3, %2, %9 {%6: i32, %7: f32\n"
            "%8: local<f32,1,(4)> = local type=!fixed<f32,(4)>\n %10: f32 = load %8, %2\n store %8, %2, %4\n"
            "%11: f32 = load %8, %2\n %12: f32 = add %10, %11\n %13: f32 = add %7, %12\n yield %13\n }")  # fmt: skip
    assert value("", body, "%5") == 3


@pytest.mark.parametrize(
    "op, start, x, after",
    [("add", 3, 4, 7), ("sub", 3, 4, -1), ("min", 3, 4, 3), ("max", 3, 4, 4), ("and", 6, 3, 2), ("or", 6, 3, 7),
     ("xor", 6, 3, 5), ("exch", 3, 4, 4)],
)  # fmt: skip
def test_atomics_give_the_old_value(op, start, x, after):
    data = np.array([start], np.int32)
    body = f"%2: i32 = const value=0\n %3: i32 = atomic %0, %2, %1 op='{op}'"
    assert value("%0: view<i32,1,(4)>, %1: i32", body, "%3", data, x) == start
    assert data[0] == after


def test_compare_and_swap_writes_only_where_equal():
    data = np.array([5], np.int32)
    body = "%3: i32 = const value=0\n %4: i32 = atomic %0, %3, %1, %2 op='cas'"
    head = "%0: view<i32,1,(4)>, %1: i32, %2: i32"
    assert value(head, body, "%4", data, 4, 9) == 5 and data[0] == 5
    assert value(head, body, "%4", data, 5, 9) == 5 and data[0] == 9


LOOP = "%3: i32 = for %0, %1, %2, %0 {stays}{{%4: i32, %5: i32\n %6: i32 = add %5, %4\n {yields}\n }}"


@pytest.mark.parametrize(
    "bounds, total", [((0, 4, 1), 6), ((4, 0, -1), 14), ((0, 7, 3), 9), ((3, 3, 1), 3), ((4, 0, 1), 4), ((4, 0, 0), 4)]
)
def test_for_counts_as_range_does(bounds, total):
    assert value("%0: i32, %1: i32, %2: i32", LOOP.format(stays="", yields="yield %6"), "%3", *bounds) == total


def test_a_loop_that_does_not_stay_ends_after_the_round():
    body = LOOP.format(stays="stays=true ", yields="%7: bool = lt %6, %1\n yield %7, %6")
    assert value("%0: i32, %1: i32, %2: i32", body, "%3", 0, 5, 1) == 6


def test_a_while_runs_until_it_does_not_stay():
    body = "%2: i32 = while %0 {%3: i32\n %4: i32 = add %3, %3\n %5: bool = lt %4, %1\n yield %5, %4\n }"
    assert value("%0: i32, %1: i32", body, "%2", 1, 100) == 128


def test_calls_nest():
    before = 'function @0 "twice" (%0: f32) {\n %1: f32 = add %0, %0\n yield %1\n}\nfunction @1 "four" (%0: f32) {\n' \
             " %1: f32 = call %0 func=@0\n %2: f32 = call %1 func=@0\n yield %2\n}"  # fmt: skip
    text = before + '\nfunction @2 "k" (%0: f32) {\n %1: f32 = call %0 func=@1\n yield %1\n}'
    assert oracle.run(verify(read(text)), [3.0]).values == [(12.0,)]


def test_prints_come_in_thread_order():
    body = "%0: i32 = tid axis=0\n %1: str = const value='yes'\n print %0, %1 format='%d %s %%\\n'"
    assert run("", body, dim=2).printed == "0 yes %\n1 yes %\n"
    assert run("%0: i64", "print %0 format='%5lld|'", 7).printed == "    7|"


@pytest.mark.parametrize("kind, error", [("assert", KernelAssertionError), ("unassigned", UnassignedError)])
def test_checks_raise_their_error(kind, error):
    body = f"check %0 kind='{kind}' message='no good'"
    run("%0: bool", body, True)
    with pytest.raises(error, match="no good"):
        run("%0: bool", body, False)


def test_indices_outside_raise():
    for i in (-1, 3):
        with pytest.raises(IndexOutOfRange, match=f"index {i} on axis 0"):
            run("%0: view<f32,1,(4)>, %1: i32", "%2: f32 = load %0, %1", np.zeros(3, np.float32), i)
    with pytest.raises(IndexOutOfRange):
        run("%0: vec<3,f32>, %1: i32", "%2: f32 = pick %0, %1", (1, 2, 3), 3)


def test_what_nobody_looks_at_harms_nobody():
    body = "%2: f32 = poison\n %3: f32 = add %2, %1\n %4: f32 = select %0, %1, %3"
    assert value("%0: bool, %1: f32", body, "%4", True, 2.0) == 2.0
