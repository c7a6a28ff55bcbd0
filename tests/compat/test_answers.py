"""Private names of Warp: those with a meaning are answered, machinery says what it is when it is used."""

import ast
import importlib
import os
from pathlib import Path

import pytest

import treadle as wp
from treadle import compat

FOLDER = Path(compat.__file__).parent


@pytest.mark.parametrize("module", compat.MODULES)
def test_every_name_that_is_promised_is_there(module):
    found = importlib.import_module(f"treadle.compat.{module}")
    if "." not in module:
        assert getattr(wp._src, module) is found
    tree = ast.parse(Path(found.__file__).read_text(encoding="utf-8"))
    tables = {node.targets[0].id: ast.literal_eval(node.value) for node in tree.body
              if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)}  # fmt: skip
    names = [entry for table in tables.values() for text in table.values() for entry in text.split()]
    for name in names:
        getattr(found, name.partition("=")[0])


def test_names_that_mean_something():
    context, types, logger = wp._src.context, wp._src.types, wp._src.logger
    assert types.concrete_array_type(wp.zeros(1)) is wp.array and types.get_type_code(wp.array2d[wp.vec3]) == "a2v3f4"
    assert types.vector is wp.types.vector and types.type_size is wp.types.type_size
    assert context.builtin_functions["sin"].__name__ == "sin" and "colour" not in context.builtin_functions
    assert context.runtime.get_device("cpu") == "cpu" == context.runtime.cpu_device
    assert context.type_str(tuple[int, ...]) == "tuple[int, ...]" and context.zeros is wp.zeros
    assert wp._src.utils.check_p2p() is False and logger.log_warning is wp._src.utils.log_warning
    appdirs = importlib.import_module("treadle.compat.thirdparty.appdirs")
    assert appdirs.user_cache_dir("tool", version="2").endswith(f"tool{os.sep}2") and wp.context is context
    assert context.user_modules is not None and wp._src.tape.Tape is wp.Tape


def test_machinery_can_be_imported_and_says_what_it_is_when_used():
    builder = wp._src.context.ModuleBuilder
    for use in (lambda: builder(1), lambda: builder.codegen, lambda: setattr(builder, "x", 1)):
        with pytest.raises(AttributeError, match="no 'warp._src.context.ModuleBuilder': it reads or writes"):
            use()
    assert "absent" in repr(builder)


def test_what_nobody_answers_for():
    with pytest.raises(AttributeError, match="no 'colour' of warp._src.types"):
        _ = wp._src.types.colour
    with pytest.raises(AttributeError, match="no private module 'colour' of Warp"):
        _ = wp._src.colour
    with pytest.raises(AttributeError, match="no 'core': there is no native library"):
        _ = wp._src.context.runtime.core


def test_the_room_only_reexports():
    """No module of the room but that of the mechanism defines anything."""
    for path in FOLDER.rglob("*.py"):
        if path.name in ("answers.py", "__init__.py"):
            continue
        body = ast.parse(path.read_text(encoding="utf-8")).body
        assert all(isinstance(node, ast.Expr | ast.ImportFrom | ast.Assign) for node in body), path
