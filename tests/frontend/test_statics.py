"""``wp.static`` is evaluated where a kernel is declared, if all its names have values there."""

import pytest

import treadle as wp


@wp.func
def double(x: int):
    return 2 * x


@wp.func
def triple(x: int):
    return 3 * x


def test_kernels_made_in_a_loop_keep_their_values():
    made, seen = [], []

    def note(x):
        seen.append(x)
        return x

    for number, function in ((1, double), (2, triple)):

        @wp.kernel(module="unique")
        def kernel(out: wp.array(dtype=int)):
            out[0] = wp.static(10 * number)
            out[1] = wp.static(function)(5)
            for i in range(2):
                out[2 + i] = wp.static(i + wp.static(note(number))) + wp.static(later)

        made.append(kernel)
    assert seen == [1, 2]
    later = 100
    for kernel, wanted in zip(made, ([10, 10, 101, 102], [20, 15, 102, 103]), strict=True):
        out = wp.zeros(4, dtype=int)
        wp.launch(kernel, dim=1, inputs=[out])
        assert out.numpy().tolist() == wanted
    assert seen == [1, 2]


def test_each_expression_is_evaluated_once():
    count = []

    def step():
        count.append(None)
        return len(count)

    fixed = wp.static

    @wp.kernel
    def kernel(out: wp.array(dtype=int)):
        out[0] = 10 * wp.static(step()) + wp.static(step())
        out[1] = fixed([k * k for k in range(4)][3])

    fixed = None
    out = wp.zeros(2, dtype=int)
    wp.launch(kernel, dim=1, inputs=[out])
    assert out.numpy().tolist() == [12, 9] and len(count) == 2


def test_what_an_expression_raises_is_told_at_its_place():
    with pytest.raises(wp.KernelTypeError, match=r"1 // 0\)\n +\^{6}\nError evaluating static expression: .*by zero"):

        @wp.kernel
        def kernel(out: wp.array(dtype=int)):
            out[0] = wp.static(1 // 0)


def test_code_of_another_process_is_used_for_the_same_values_only():
    from treadle.frontend.names import MISSING, look_up

    value = 5

    @wp.kernel
    def kernel(out: wp.array(dtype=int)):
        out[0] = wp.static(value + 1)

    value = 7
    assert look_up(kernel.source, "static 0", {}) == 6 and look_up(kernel.source, "static 1", {}) is MISSING


def test_a_statement_that_gives_what_kernels_cannot_hold_is_refused():
    @wp.struct
    class Table:
        rows: wp.array(dtype=float)

    for given, word in ((wp.zeros(1, dtype=float), "an array"), (Table(), "a Table"), (None, "None"), ([1], "a list")):

        @wp.kernel
        def k(out: wp.array(dtype=float)):
            wp.static(given)

        with pytest.raises(wp.KernelTypeError, match=f"wp.static gives {word} here, which a kernel cannot hold"):
            wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=float)])
