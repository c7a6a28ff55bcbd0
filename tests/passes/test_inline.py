"""Calls of small or once-called functions become their bodies."""

from tests.passes.text import body, of
from treadle.passes.inline import SMALL, SMALL_BUILTIN, drop_rules, inline_small, size
from treadle.passes.scalarize import scalarize


def function(count: int, facts: str = "", number: int = 0) -> str:
    """A function of ``count`` ops that no pass can shorten."""
    lines = [f"%{k + 1}: f32 = {'mul' if k % 2 else 'add'} %{k}, %0" for k in range(count)]
    return f'function @{number} "f" (%0: f32) {facts} {{\n' + "\n".join(lines) + f"\n yield %{count}\n}}\n"


ONCE = "%9: f32 = call %2 func=@0\n store %0, %1, %9"
TWICE = ONCE + "\n %10: f32 = call %3 func=@0\n store %0, %1, %10"


def calls(text: str, functions: str) -> int:
    return body(inline_small(of(text, functions))).count("call")


def test_small_functions_are_inlined_everywhere():
    assert calls(TWICE, function(SMALL)) == 0


def test_big_functions_are_inlined_where_called_once():
    assert calls(ONCE, function(SMALL + 1)) == 0
    assert calls(TWICE, function(SMALL + 1)) == 2


def test_functions_that_seldom_run_stay_calls():
    assert calls(TWICE, function(1, "rare=true")) == 2


def test_bodies_of_builtins_are_inlined_until_they_are_huge():
    assert calls(TWICE, function(SMALL_BUILTIN, "builtin=true")) == 0
    assert calls(TWICE, function(SMALL_BUILTIN + 1, "builtin=true")) == 2


def test_callees_are_normalised_first():
    dead = "".join(f" %{k}: f32 = add %0, %0\n" for k in range(1, 200))
    assert calls(TWICE, f'function @0 "f" (%0: f32) {{\n{dead} yield %0\n}}\n') == 0


def test_calls_in_callees_are_inlined_too():
    outer = 'function @1 "g" (%0: f32) {\n %1: f32 = call %0 func=@0\n %2: f32 = call %1 func=@0\n yield %2\n}\n'
    text = body(inline_small(of("%9: f32 = call %2 func=@1\n store %0, %1, %9", function(3) + outer)))
    assert "call" not in text and text.count("add") == 4


def test_calls_in_regions_and_with_several_results():
    two = 'function @0 "f" (%0: f32) {\n %1: f32 = add %0, %0\n yield %1, %0\n}\n'
    text = body(inline_small(of("if %4 {\n %9: f32, %10: f32 = call %2 func=@0\n store %0, %1, %9\n store %0, %1, %10\n"
                                "yield\n } {\n yield\n }", two)))  # fmt: skip
    assert "call" not in text and "store %0, %1, %2" in text


def test_each_copy_has_values_of_its_own():
    loop = ('function @0 "f" (%0: f32, %1: i32) {\n %2: i32 = const value=0\n %3: i32 = const value=1\n'
            ' %4: f32 = for %2, %1, %3, %0 {%5: i32, %6: f32\n %7: f32 = add %6, %6\n yield %7\n }\n yield %4\n'
            '}\n')  # fmt: skip
    text = "%9: f32 = call %2, %1 func=@0\n %10: f32 = call %9, %1 func=@0\n store %0, %1, %10"
    assert body(inline_small(of(text, loop))).count("for") == 2  # ``body`` verifies that nothing is defined twice


def test_size_counts_regions():
    assert size(of("if %4 {\n %9: f32 = add %2, %2\n yield\n } {\n yield\n }")) == 2


def test_what_the_user_said_of_a_function_decides():
    assert calls(TWICE, function(1, "inline=false")) == 2
    assert calls(TWICE, function(SMALL + 1, "inline=true")) == 0


def test_sites_of_the_tape_get_numbers_of_their_own():
    """Each function numbers its sites by itself; inlined twice, they are told apart too."""
    function = 'function @0 "f" (%0: f32) {\n push %0 site=3\n %1: f32 = pop site=3\n yield %1\n}\n'
    text = "push %1 site=3\n" + ONCE + "\n %10: f32 = call %9 func=@0\n %11: i32 = pop site=3"
    made = inline_small(of(text, function))
    sites = [op.attrs["site"] for op in made.body.ops if op.name in ("push", "pop")]
    assert sites == [3, 4, 4, 5, 5, 3]
    body(made)


RULED = (
    'function @0 "f" (%0: f32) {\n %1: f32 = mul %0, %0\n yield %1\n}\n'
    'function @1 "rule" (%0: f32, %1: f32, %2: f32) {\n %3: f32 = add %0, %0\n %4: f32 = mul %3, %2\n'
    ' %5: f32 = add %1, %1\n yield %4\n}\n'
)  # fmt: skip


def test_calls_with_rules_stay_until_the_rules_are_dropped():
    made = inline_small(of("%9: f32 = call %2 func=@0 adjoint=@1\n store %0, %1, %9", RULED))
    assert "call %2 adjoint=@1 func=@0" in body(made)
    (op,) = [op for op in made.body.ops if op.name == "call"]
    assert size(op.attrs["adjoint"]) == 2  # normalised, like a callee: what nobody needs is gone
    text = body(inline_small(drop_rules(made)))
    assert "call" not in text and "mul %2, %2" in text


def test_a_kernel_may_inline_what_was_made_of_a_function_that_it_has_inlined():
    """Passes keep values: the second body, lowered, defines what the first one does."""
    text = "%9: f32 = call %2 func=@0 adjoint=@1\n %10: f32 = call %9 func=@0\n store %0, %1, %10"
    once = inline_small(of(text, RULED))
    assert body(once).count("mul") == 1
    assert body(inline_small(drop_rules(scalarize(once)))).count("mul") == 2  # ``body`` verifies that they differ
