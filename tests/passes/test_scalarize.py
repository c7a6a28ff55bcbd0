"""Composites become scalars and views."""

import numpy as np
import pytest

from tests.passes.text import of
from treadle.codegen import oracle
from treadle.ir import Func
from treadle.ir.read import read
from treadle.ir.show import show
from treadle.ir.verify import verify
from treadle.ir.walk import ops_of
from treadle.passes.scalarize import scalarize
from treadle.types.core import f32, i32, vector, view


def names(func: Func) -> list[str]:
    return [op.name for op in ops_of(func.body)]


def both(text: str, *args) -> tuple[Func, list]:
    """The scalarized program; arguments after a run of it, checked to be those after a run of the original."""
    func = verify(read(text))
    flat = verify(scalarize(func), scalar=True)
    results = []
    for f in (func, flat):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        oracle.run(f, copies, 2)
        results.append(copies)
    for a, b in zip(*results):
        assert np.array_equal(a, b)
    return flat, results[1]


def test_parameters_become_their_leaves_and_the_signature_stays():
    text = (
        "struct 's.P' (m: f32, v: vec<2,f32>, a: view<f32,1,(4)>)\n"
        'kernel @0 "k" (%0: struct<s.P>, %1: i32) {\n names (\'p\', \'n\')\n'
        " %2: view<f32,1,(4)> = extract %0 index=2\n %3: vec<2,f32> = extract %0 index=1\n"
        " %4: f32 = extract %3 index=1\n %5: i32 = tid axis=0\n store %2, %5, %4\n yield\n}"
    )
    out = np.zeros(2, np.float32)
    flat, _ = both(text, {"m": 1.0, "v": (2.0, 3.0), "a": out}, 5)
    assert [p.type for p in flat.params] == [f32, f32, f32, view(f32, 1), i32]
    assert [t.name for t in flat.signature] == ["struct<s.P>", "i32"]
    assert out.tolist() == [3.0, 3.0]
    assert names(flat) == ["tid", "store"]


def test_loads_and_stores_have_a_value_for_each_leaf():
    flat = scalarize(of("%9: vec<3,f32> = load %6, %1\n store %6, %1, %9"))
    load, store = flat.body.ops
    assert len(load.results) == 3 and store.args[2:] == load.results


def test_elementwise_ops_go_component_by_component():
    flat = verify(scalarize(of("%9: vec<3,f32> = add %5, %5\n %10: vec<3,f32> = mul %9, %2\n store %6, %1, %10")), True)
    assert names(flat).count("add") == 3 and names(flat).count("mul") == 3


def test_comparisons_of_composites_join_those_of_components():
    text = (
        'kernel @0 "k" (%0: view<vec<2,f32>,1,(8)>, %1: view<i32,1,(4)>) {{\n %2: i32 = tid axis=0\n'
        " %3: i32 = const value=0\n %4: vec<2,f32> = load %0, %2\n %5: vec<2,f32> = load %0, %3\n"
        " %6: bool = {} %4, %5\n %7: i32 = cast %6\n store %1, %2, %7\n yield\n}}"
    )
    data = np.array([[1, 2], [1, 3]], np.float32)
    for op, wanted in (("eq", [1, 0]), ("ne", [0, 1])):
        _, (_, out) = both(text.format(op), data, np.zeros(2, np.int32))
        assert out.tolist() == wanted


def test_branches_and_loops_carry_leaves():
    text = (
        "%9: i32 = const value=0\n %10: i32 = const value=1\n"
        "%11: vec<3,f32> = for %9, %1, %10, %5 {%12: i32, %13: vec<3,f32>\n"
        "%14: vec<3,f32> = if %4 {\n yield %5\n } {\n yield %13\n }\n yield %14\n }\n store %6, %1, %11"
    )
    flat = verify(scalarize(of(text)), scalar=True)
    loop = next(op for op in flat.body.ops if op.name == "for")
    assert len(loop.results) == 3 and len(loop.regions[0].params) == 4
    assert len(loop.regions[0].ops[0].results) == 3


def test_calls_pass_leaves():
    text = (
        'function @0 "f" (%0: vec<3,f32>, %1: f32) {\n %2: vec<3,f32> = mul %0, %1\n yield %2, %1\n}\n'
        'kernel @1 "k" (%0: view<vec<3,f32>,1,(12)>, %1: f32) {\n %2: i32 = tid axis=0\n %3: vec<3,f32> = load %0, %2\n'
        " %4: vec<3,f32>, %5: f32 = call %3, %1 func=@0\n store %0, %2, %4\n yield\n}"
    )
    flat, (data, _) = both(text, np.ones((2, 3), np.float32), 2.0)
    (call,) = [op for op in ops_of(flat.body) if op.name == "call"]
    assert len(call.args) == 4 and len(call.results) == 4
    assert data.tolist() == [[2, 2, 2]] * 2


def test_updates_of_vectors_are_updates_of_components():
    text = ('kernel @0 "k" (%0: view<vec<3,f32>,1,(12)>, %1: vec<3,f32>) {\n %2: i32 = const value=0\n'
            " %3: vec<3,f32> = atomic %0, %2, %1 op='add'\n yield\n}")  # fmt: skip
    flat, (data, _) = both(text, np.zeros((1, 3), np.float32), (1.0, 2.0, 3.0))
    assert names(flat).count("atomic") == 3
    assert data.tolist() == [[2, 4, 6]]


INDEXED = (
    'kernel @0 "k" (%0: view<{t},1,({size})>, %1: view<f32,1,(4)>, %2: view<i32,2,(?,4)>) {{\n %3: i32 = tid axis=0\n'
    " %4: i32 = const value=0\n %5: i32 = const value=1\n %6: i32 = load %2, %3, %4\n %7: i32 = load %2, %3, %5\n"
    " %8: {t} = load %0, %3\n {body}\n yield\n}}"
)


@pytest.mark.parametrize("n, memory", [(2, False), (3, False), (4, False), (5, True), (9, True)])
def test_picks_choose_among_few_and_read_among_many(n, memory):
    text = INDEXED.format(t=f"vec<{n},f32>", size=4 * n, body="%9: f32 = pick %8, %6\n store %1, %3, %9")
    data = np.arange(2 * n, dtype=np.float32).reshape(2, n)
    indices = np.array([[1, 0], [n - 1, 0]], np.int32)
    flat, (_, out, _) = both(text, data, np.zeros(2, np.float32), indices)
    assert out.tolist() == [data[0, 1], data[1, n - 1]]
    assert ("local" in names(flat)) == memory


@pytest.mark.parametrize("n", [2, 3, 5, 16, 20])
def test_puts_change_one_component(n):
    text = INDEXED.format(t=f"vec<{n},f32>", size=4 * n, body=f"%9: f32 = const value=9.0\n"
                                                              f" %10: vec<{n},f32> = put %8, %9, %6\n"
                                                              f" store %0, %3, %10")
    data = np.arange(2 * n, dtype=np.float32).reshape(2, n)
    flat, (after, _, _) = both(text, data, np.zeros(2, np.float32), np.array([[1, 0], [n - 1, 0]], np.int32))
    wanted = data.copy()
    wanted[0, 1] = wanted[1, n - 1] = 9
    assert np.array_equal(after, wanted)
    assert ("local" in names(flat)) == (n > 16)


@pytest.mark.parametrize("rows, cols", [(2, 2), (3, 3), (2, 3), (5, 4)])
def test_matrices_are_indexed_by_row_and_column(rows, cols):
    t, row = f"mat<{rows},{cols},f32>", f"vec<{cols},f32>"
    body = (f"%9: f32 = pick %8, %6, %7\n store %1, %3, %9\n %10: {row} = pick %8, %6\n"
            f" %11: f32 = extract %10 index=0\n"
            f"%12: {t} = put %8, %11, %6, %7\n %13: {t} = put %12, %10, %5\n %14: f32 = pick %13, %5, %7\n"
            f"%15: f32 = pick %13, %6, %4\n %16: {t} = put %13, %15, %4, %7\n %17: {t} = put %16, %14, %6, %5\n"
            f" store %0, %3, %17")  # fmt: skip
    data = np.arange(2.0 * rows * cols, dtype=np.float32).reshape(2, rows, cols)
    indices = np.array([[0, 1], [rows - 1, cols - 1]], np.int32)
    _, (_, out, _) = both(INDEXED.format(t=t, size=4 * rows * cols, body=body), data, np.zeros(2, np.float32), indices)
    assert out.tolist() == [data[0, 0, 1], data[1, rows - 1, cols - 1]]


def test_a_known_row_or_column_leaves_few_to_choose_from():
    body = "%9: f32 = pick %8, %6, %5\n store %1, %3, %9"
    data = np.arange(18.0, dtype=np.float32).reshape(2, 3, 3)
    flat, (_, out, _) = both(INDEXED.format(t="mat<3,3,f32>", size=36, body=body), data, np.zeros(2, np.float32),
                             np.array([[0, 0], [2, 0]], np.int32))  # fmt: skip
    assert "local" not in names(flat) and names(flat).count("select") == 2
    assert out.tolist() == [1, 16]


def test_a_vector_picked_in_a_loop_is_stored_once():
    text = (
        'kernel @0 "k" (%0: view<vec<8,f32>,1,(32)>, %1: view<f32,1,(4)>, %2: i32) {\n %3: i32 = tid axis=0\n'
        " %4: vec<8,f32> = load %0, %3\n %5: i32 = const value=0\n %6: i32 = const value=1\n"
        " %7: f32 = const value=0.0\n"
        " %8: f32 = for %5, %2, %6, %7 {%9: i32, %10: f32\n %11: f32 = pick %4, %9\n %12: f32 = add %10, %11\n"
        " yield %12\n }\n"
        " store %1, %3, %8\n yield\n}"
    )
    flat, (_, out, _) = both(text, np.ones((2, 8), np.float32), np.zeros(2, np.float32), 8)
    assert out.tolist() == [8, 8]
    loop = next(op for op in ops_of(flat.body) if op.name == "for")
    assert [op.name for op in loop.regions[0].ops if op.name in ("load", "store", "local")] == ["load"]
    assert names(flat).count("store") == 9


def test_carried_vectors_are_picked_from_as_they_are_in_each_round():
    text = (
        'kernel @0 "k" (%0: view<vec<6,f32>,1,(24)>, %1: view<f32,1,(4)>) {\n %3: i32 = tid axis=0\n'
        " %4: vec<6,f32> = load %0, %3\n %5: i32 = const value=0\n %6: i32 = const value=1\n %7: i32 = const value=6\n"
        " %8: vec<6,f32> = for %5, %7, %6, %4 {%9: i32, %10: vec<6,f32>\n %11: f32 = pick %10, %9\n"
        " %12: f32 = add %11, %11\n"
        " %15: vec<6,f32> = put %10, %12, %9\n %16: vec<6,f32> = add %15, %15\n yield %16\n }\n"
        " %17: f32 = pick %8, %3\n"
        " store %0, %3, %8\n store %1, %3, %17\n yield\n}"
    )
    data = np.arange(12.0, dtype=np.float32).reshape(2, 6)
    both(text, data, np.zeros(2, np.float32))


def test_views_keep_their_type():
    flat = scalarize(of("%9: view<f32,1,(12)> = field %6 index=1\n store %9, %1, %2"))
    assert flat.params[-2].type is view(vector(3, f32), 1)
    assert names(flat) == ["field", "store"]


def test_a_scalar_program_has_the_same_ops():
    f = of("%9: f32 = add %2, %3\n store %0, %1, %9")
    assert all(a is b for a, b in zip(scalarize(f).body.ops, f.body.ops, strict=True))


def test_twice_is_once():
    once = scalarize(of("%9: vec<3,f32> = add %5, %5\n store %6, %1, %9"))
    assert show(scalarize(once)) == show(once)


def test_rules_for_derivatives_are_about_floats_alone():
    """The adjoint of a struct is a struct; of its parts only the floats have one."""
    text = (
        "struct 's.P' (m: f32, n: i32, a: view<f32,1,(4)>)\n"
        'function @0 "f" (%0: struct<s.P>) {\n yield %0\n}\n'
        'function @1 "rule" (%0: struct<s.P>, %1: struct<s.P>, %2: struct<s.P>) {\n yield %2\n}\n'
        'kernel @2 "k" (%0: struct<s.P>, %1: view<f32,1,(4)>) {\n %2: struct<s.P> = call %0 func=@0 adjoint=@1\n'
        " %3: f32 = extract %2 index=0\n %4: i32 = tid axis=0\n store %1, %4, %3\n yield\n}"
    )
    flat = verify(scalarize(verify(read(text))), scalar=True)
    (call,) = [op for op in ops_of(flat.body) if op.name == "call"]
    rule = call.attrs["adjoint"]
    assert [p.type.name for p in rule.params] == ["f32", "i32", "view<f32,1,(4)>"] * 2 + ["f32"]
    assert rule.body.yields == rule.params[6:]
