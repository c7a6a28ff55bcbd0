"""Where instructions come from, for profilers and debuggers; and arithmetic that may be less exact.

Handlers leave marks in the text, as comments; once the text is whole, each instruction gets the last mark before it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from ...ir.node import Func

_MARK = "; at "


class _Marked(dict):
    """Handlers that first say where their op stands."""

    def get(self, name: str, default: Any = None) -> Callable[..., None]:
        from ..emit.emitter import primitive

        handler = super().get(name) or primitive

        def write(e: Any, op: Any) -> None:
            mark = f"{_MARK}{op.span.line} {op.span.column} {op.span.file}"
            e.t.lines.append(mark)
            handler(e, op)
            if op.regions:
                e.t.lines.append(mark)

        return write


def marked(handlers: dict[str, Callable[..., None]]) -> dict[str, Callable[..., None]]:
    """``handlers`` that leave marks."""
    return _Marked(handlers)


def resolved(text: str, func: Func) -> str:
    """``text`` with debug information in place of marks."""
    facts: list[str] = []
    numbers: dict[tuple, int] = {}

    def number(key: tuple, fact: str) -> int:
        if key not in numbers:
            numbers[key] = len(facts) + 1  # !0 is taken
            facts.append(f"!{len(facts) + 1} = {fact}")
        return numbers[key]

    def file(path: str) -> int:
        folder, name = os.path.split(path)
        return number(("file", path), f'!DIFile(filename: "{_plain(name)}", directory: "{_plain(folder)}")')

    out: list[str] = []
    scope, place = 0, ""
    for line in text.splitlines():
        if line.startswith("define"):
            scope, place = 0, ""
            at = len(out)
        elif line.startswith(_MARK):
            row, column, path = line[len(_MARK) :].split(" ", 2)
            if not scope:
                unit = number(("unit",), f'distinct !DICompileUnit(language: DW_LANG_C, file: !{file(path)}, '
                                         'producer: "treadle", emissionKind: LineTablesOnly)')  # fmt: skip
                kind = number(("kind",), "!DISubroutineType(types: !{})")
                name = re.search(r"@([\w.]+)\(", out[at])[1]
                scope = number(("scope", name), f'distinct !DISubprogram(name: "{name}", file: !{file(path)}, '
                    f"line: {row}, type: !{kind}, unit: !{unit}, spFlags: DISPFlagDefinition)")  # fmt: skip
                out[at] = out[at].replace(" {", f" !dbg !{scope} {{")
            home = scope
            if file(path) != file(_home(facts, scope, numbers)):
                home = number(("block", scope, path), f"!DILexicalBlockFile(scope: !{scope}, file: !{file(path)}, "
                                                      "discriminator: 0)")  # fmt: skip
            where = number((row, column, home), f"!DILocation(line: {row}, column: {column}, scope: !{home})")
            place = f", !dbg !{where}"
            continue
        elif scope and line.startswith("  "):
            line += place
        out.append(line)
    if not facts:
        return text
    flags = len(facts) + 1
    facts.append(f'!{flags} = !{{i32 2, !"Debug Info Version", i32 3}}')
    head = [f"!llvm.dbg.cu = !{{!{numbers[('unit',)]}}}", f"!llvm.module.flags = !{{!{flags}}}"]
    return "\n".join([*out, *head, *facts, ""])


def _home(facts: list[str], scope: int, numbers: dict[tuple, int]) -> str:
    """The path of the file in which a function begins."""
    file = int(re.search(r"file: !(\d+)", facts[scope - 1])[1])
    return next(key[1] for key, n in numbers.items() if key[0] == "file" and n == file)


def _plain(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "'")


_ARITHMETIC = re.compile(r" = (fadd|fsub|fmul|fdiv) ")
_ROOTS = re.compile(r" = call (float|double) @llvm\.sqrt")


def fast(text: str) -> str:
    """``text`` in which products fuse with sums, and quotients and roots are the hardware's quick ones."""
    return _ROOTS.sub(r" = call afn \1 @llvm.sqrt", _ARITHMETIC.sub(r" = \1 contract arcp afn ", text))
