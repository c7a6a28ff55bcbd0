"""Finding a function's text, wherever it was written."""

from __future__ import annotations

import ast
import inspect
import linecache

import pytest

import treadle
from treadle.base.errors import KernelNameError, KernelSyntaxError, KernelTypeError
from treadle.frontend.source import EMPTY, Source
from treadle.types.core import f32, i32


def decorate(**_):
    return lambda f: f


# fmt: off
@decorate(
    name="x",
)
def decorated(
    a: int,
    b: float = 2.0,
):
    """Text less indented than
the code."""
    c = (
1,
    )
    return a, b, c
    # a comment at the end


class Holder:
    @staticmethod
    def nested(x):
        def deeper(y): return y
        return deeper
    after = 1
# fmt: on


@pytest.mark.parametrize(
    "function", [decorated, Holder.nested, Holder.nested(1), inspect.getsource], ids=lambda f: f.__name__
)
def test_the_tree_is_that_of_the_function_with_its_lines(function):
    tree = Source(function).tree
    lines, first = inspect.getsourcelines(function)
    assert tree.name == function.__name__
    assert min([tree.lineno, *[d.lineno for d in tree.decorator_list]]) == first
    assert first < tree.end_lineno + 1 <= first + len(lines)
    text = linecache.getline(function.__code__.co_filename, tree.lineno)
    assert text[tree.col_offset :].startswith("def " + tree.name)


def test_parameters():
    a, b = Source(decorated).parameters()
    assert (a.name, a.default, b.name, b.default) == ("a", EMPTY, "b", 2.0)
    assert Source(decorated).parameter_types() == [i32, f32]


def test_annotations_may_be_any_or_missing():
    def f(a, b: "Any", c: float):  # noqa: F821, UP037
        pass

    assert Source(f).parameter_types() == [None, None, f32]


def test_captured_variables_are_read_when_asked():
    def make():
        def f():
            return value

        before = Source(f).closure
        value = 3
        return before, Source(f)

    before, source = make()
    assert before == {}
    assert source.closure == {"value": 3}


def test_results():
    def pair() -> tuple[int, float]: ...

    def nothing() -> None: ...

    def unsaid(): ...

    assert Source(pair).return_type() == (i32, f32)
    assert Source(nothing).return_type() is None
    assert Source(unsaid).return_type() is EMPTY


def test_text_without_a_file():
    namespace: dict = {}
    exec("def gone(x):\n    return x\n", namespace)
    with pytest.raises(KernelSyntaxError, match="the source of gone cannot be found"):
        _ = Source(namespace["gone"]).tree


def test_text_known_to_linecache():
    text = "def f(x):\n    return x\n"
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
    namespace: dict = {}
    exec(compile(text, "<cell 1>", "exec"), namespace)
    assert isinstance(Source(namespace["f"]).tree, ast.FunctionDef)


def test_lambdas_are_found_inside_of_statements():
    z = 2.0
    found = [lambda x: x + z, lambda x: x + z + 1.0, lambda a, b: a.foo(1.0) if b > 2 else -a, lambda: 3.0 * 2.0,
             (lambda x, y: (x  # over several lines
                            + y * 2.0)), lambda x: ((x), z)]  # fmt: skip
    text = [ast.unparse(Source(f).tree.body[0].value) for f in found]
    assert text == ["x + z", "x + z + 1.0", "a.foo(1.0) if b > 2 else -a", "3.0 * 2.0", "x + y * 2.0", "(x, z)"]
    assert Source(found[4]).tree.lineno == found[4].__code__.co_firstlineno


def test_lambdas_without_a_source():
    with pytest.raises(KernelSyntaxError, match="the source of a lambda cannot be found"):
        _ = Source(eval(compile("\n" * 3 + "lambda q: q", __file__, "eval"))).tree


def test_what_is_no_function():
    with pytest.raises(KernelSyntaxError, match="is no Python function"):
        Source(len)
    with pytest.raises(KernelSyntaxError, match="name each parameter"):
        Source(lambda *x: x).parameters()


def test_an_annotation_that_means_no_type_names_parameter_and_line():
    def wrong(a: int, b: float, c: float):
        pass

    wrong.__annotations__.update(b="missing", c="wp.array(dtype=float, ndim=5)")
    with pytest.raises(KernelNameError, match="parameter 'b' of wrong: .*'missing'") as caught:
        Source(wrong, namespace={"wp": treadle}).parameter_types()
    assert caught.value.span.file == __file__
    wrong.__annotations__["b"] = "int"
    with pytest.raises(KernelTypeError, match="parameter 'c' of wrong: an array has 1 to 4 dimensions, not 5"):
        Source(wrong, namespace={"wp": treadle}).parameter_types()


def test_a_file_that_changes_after_its_functions_were_declared(tmp_path):
    """Each function has the text that its file had when it was declared, even if nobody asked for it then."""
    path, made = tmp_path / "edited.py", []
    for text in ("def f(x):\n    return x + 1\n", "# a line more\n\ndef f(x):\n    return x + 22\n"):
        path.write_text(text)
        scope: dict = {}
        exec(compile(text, str(path), "exec"), scope)
        made.append(Source(scope["f"]))
    path.unlink()
    assert ["22" in ast.unparse(source.tree) for source in made] == [False, True]
