"""What happens to a snippet's text before a C parser reads it.

Directives of the preprocessor are done: what stands under ``#if defined(__CUDA_ARCH__)`` is for GPUs and goes away.
Spellings of C++ become such of C: ``wp::vec_t<3, float>`` is one name, ``float(x)`` and ``vec3 v(x, y, z)`` are calls.
Lines keep their numbers.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

from ...base.errors import KernelSyntaxError
from ...base.span import Span
from ...types.core import Type
from . import spellings

MAKE, BITS = "__make_", "__bits_"  # begin the names of calls that convert a value, or take its bits as they are
LIST = "__list"  # the name of the call that stands for ``{x, y}`` behind return

_TOKEN = re.compile(
    r"""\s+ | [A-Za-z_]\w* | (?:0[xX][0-9a-fA-F]+ | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | :: | -> | <<= | >>= | << | >> | [<>=!]= | && | \|\| | \+\+ | --
    | [-+*/%&|^]= | .""",
    re.VERBOSE | re.DOTALL,
)
_GONE = frozenset({"volatile", "__restrict__", "restrict", "inline", "CUDA_CALLABLE", "register"})
_GPU = {"__shared__": "shared memory", "threadIdx": "the index in a block", "blockIdx": "the index of a block",
        "blockDim": "the size of a block", "gridDim": "the size of a grid", "asm": "assembler",
        "__syncthreads": "a barrier", "__syncwarp": "a barrier"}  # fmt: skip
_START = frozenset({"", ";", "{", "}", "const", ")"})  # a declaration may follow


class Text(NamedTuple):
    """C text. ``types``: what names of types in it mean. ``references``: variables declared as ``T &name``."""

    c: str
    types: dict[str, Type | None]
    references: frozenset[str]


def rewrite(snippet: str, file: str) -> Text:
    """``snippet`` as C; ``file`` is its name in errors.

    Raises:
        KernelSyntaxError: something that snippets cannot have here.
    """
    return _Rewriter(preprocess(snippet, file), file).run()


def beyond(file: str, line: int, what: str, hint: str = "") -> NoReturn:
    """Refuse what is not part of the subset of C."""
    length = len(Span(file, line).text().rstrip())
    raise KernelSyntaxError(f"{what} cannot be used in snippets", Span(file, line, 0, length), hint)


# -- directives --------------------------------------------------------------------------------------------------------


def preprocess(snippet: str, file: str) -> str:
    """``snippet`` without comments and directives; lines that do not count are empty."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n") or " ", snippet, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", "", text)
    lines, macros = [], {}
    states: list[list[bool]] = []  # of each open #if whether its part counts now, and whether one has counted
    for number, line in enumerate(text.split("\n"), 1):
        directive = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        counts = all(now for now, _ in states)
        if directive is None:
            lines.append(_replaced(line, macros) if counts else "")
            continue
        lines.append("")
        word, rest = directive[1], directive[2].strip()
        if word in ("if", "ifdef", "ifndef"):
            test = rest if word == "if" else f"defined({rest})" if word == "ifdef" else f"!defined({rest})"
            now = counts and _holds(test, macros, file, number)
            states.append([now, now])
        elif word in ("elif", "else", "endif") and states:
            now, done = states.pop()
            if word != "endif":
                around = all(n for n, _ in states)
                now = around and not done and (word == "else" or _holds(rest, macros, file, number))
                states.append([now, done or now])
        elif word == "define" and counts:
            name, _, value = rest.partition(" ")
            if not name.isidentifier():
                beyond(file, number, "a macro with arguments", "write the expression, or a function under @wp.func")
            macros[name] = value.strip()
        elif word == "undef" and counts:
            macros.pop(rest, None)
        elif word != "pragma" and counts:
            beyond(file, number, f"the directive #{word}")
    return "\n".join(lines)


def _replaced(line: str, macros: dict[str, str]) -> str:
    if not macros:
        return line
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda m: macros.get(m[0], m[0]), line)


def _holds(test: str, macros: dict[str, str], file: str, line: int) -> bool:
    """The condition of an ``#if``. No macro of compilers is defined: the same program runs on every device."""
    text = re.sub(r"defined\s*\(\s*(\w+)\s*\)|defined\s+(\w+)", lambda m: str(int((m[1] or m[2]) in macros)), test)
    text = re.sub(r"\b[A-Za-z_]\w*\b", "0", _replaced(text, macros))
    text = text.replace("&&", " and ").replace("||", " or ").replace("!=", "≠").replace("!", " not ").replace("≠", "!=")
    if not re.fullmatch(r"[\d\s()<>=!+*%-]*(?:(?:and|or|not)[\d\s()<>=!+*%-]*)*", text):
        beyond(file, line, f"the condition {test}")
    try:
        return bool(eval(text, {"__builtins__": {}}))
    except SyntaxError:
        beyond(file, line, f"the condition {test}")


# -- spellings ---------------------------------------------------------------------------------------------------------


class _Rewriter:
    """The tokens of a snippet; those that C does not have are replaced one after the other."""

    def __init__(self, text: str, file: str):
        self.file = file
        self.tokens = _TOKEN.findall(text)
        self.types: dict[str, Type | None] = dict(spellings.names())
        self.references: set[str] = set()

    def run(self) -> Text:
        self._namespaces()
        self._templates()
        self._calls()
        used = [name for name in self.types if name.isidentifier() and name not in spellings.KEYWORDS]
        names = "".join([f"typedef int {name};" for name in (*used, spellings.AUTO)])
        body = "".join(self.tokens)
        return Text(f"{names}\nvoid snippet(void) {{ {body}\n}}", self.types, frozenset(self.references))

    def line(self, i: int) -> int:
        """The line of token ``i``."""
        return 1 + sum([t.count("\n") for t in self.tokens[:i]])

    def next(self, i: int) -> int:
        """The first token from ``i`` on that is no space; the number of tokens at the end."""
        while i < len(self.tokens) and not self.tokens[i].strip():
            i += 1
        return i

    def at(self, i: int) -> str:
        return self.tokens[i] if i < len(self.tokens) else ""

    def _namespaces(self) -> None:
        """``wp::dot`` is ``dot``. Words that say nothing here go away, those for GPUs are told."""
        for i, token in enumerate(self.tokens):
            if token == "::":
                self.tokens[i] = ""
                if i and self.tokens[i - 1] in ("wp", "std"):
                    self.tokens[i - 1] = ""
            elif token in _GONE:
                self.tokens[i] = ""
            elif token == "constexpr":
                self.tokens[i] = "const"
            elif token == "auto":
                self.tokens[i] = spellings.AUTO
            elif token in _GPU:
                what = f"{token} ({_GPU[token]})"
                beyond(self.file, self.line(i), what, "put it under #if defined(__CUDA_ARCH__), another way beside")
        self.tokens = [t for t in self.tokens if t]

    def _templates(self) -> None:
        """``vec_t<3, float>`` becomes a name; ``static_cast<T>`` and ``reinterpret_cast<T>`` names of calls."""
        i = 0
        while i < len(self.tokens):
            token = self.tokens[i]
            if token in spellings.TEMPLATES or token in ("static_cast", "reinterpret_cast", "const_cast"):
                args, end, mark = self._arguments(i)
                if token in spellings.TEMPLATES:
                    name = self._named(spellings.template(token, args), i)
                else:
                    bits = token == "reinterpret_cast" and mark
                    name = (BITS if bits else MAKE) + self._named(args[0] if args else None, i)
                lost = sum([t.count("\n") for t in self.tokens[i:end]])
                self.tokens[i:end] = [name, "\n" * lost] if lost else [name]
            i += 1

    def _arguments(self, i: int) -> tuple[list[Any], int, str]:
        """What stands in ``<…>`` behind token ``i``: types and numbers, where it ends, and a ``&`` or ``*`` in it."""
        start = i
        i = self.next(i + 1)
        if self.at(i) != "<":
            beyond(self.file, self.line(start), f"{self.at(start)} without <…>")
        args: list[Any] = []
        words: list[str] = []
        mark = ""
        i = self.next(i + 1)
        while i < len(self.tokens):
            token = self.tokens[i]
            if token in spellings.TEMPLATES:
                inner, end, _ = self._arguments(i)
                args.append(spellings.template(token, inner))
                i = end - 1
            elif token in (",", ">"):
                if words:
                    text = " ".join(words)
                    args.append(int(text) if text.isdigit() else self.types.get(text))
                    words = []
                if token == ">":
                    return args, i + 1, mark
            elif token in ("&", "*"):
                mark = token
            elif token != "const":
                words.append(token)
            i = self.next(i + 1)
        beyond(self.file, self.line(start), f"{self.at(start)} without an end")

    def _named(self, t: Type | None, i: int) -> str:
        """A name for the type ``t`` that ends at token ``i``."""
        if t is None:
            return spellings.AUTO if self.tokens[i] == "array_t" else beyond(self.file, self.line(i), "this type")
        name = "__t_" + re.sub(r"\W", "_", t.name)
        self.types[name] = t
        return name

    def _calls(self) -> None:
        """``float(x)``, ``vec3{x, y, z}``, ``vec3 v(x, y, z)``, ``return {x, y, z}`` and ``T &name``."""
        before = ""
        i = self.next(0)
        while i < len(self.tokens):
            token = self.tokens[i]
            if token in self.types or token == spellings.AUTO:
                j = self.next(i + 1)
                if self.at(j) in ("(", "{") and token != spellings.AUTO:
                    self._round(j)
                    self.tokens[i] = MAKE + token
                elif before in _START and self.at(j) == "&":
                    name = self.at(self.next(j + 1))
                    if name.isidentifier():
                        self.references.add(name)
                    self.tokens[j] = ""
                elif before in _START and self.at(j).isidentifier() and self.at(j) not in self.types:
                    k = self.next(j + 1)
                    if self.at(k) in ("(", "{"):
                        self._round(k)
                        self.tokens[j] = f"{self.tokens[j]} = {MAKE}{token}"
            elif token == "return" and self.at(self.next(i + 1)) == "{":
                self._round(self.next(i + 1))
                self.tokens[i] += f" {LIST}"
            before = self.tokens[i]
            i = self.next(i + 1)

    def _round(self, i: int) -> None:
        """Make parentheses of the braces that open at token ``i``."""
        depth = 0
        if self.tokens[i] == "{":
            for j in range(i, len(self.tokens)):
                depth += (self.tokens[j] == "{") - (self.tokens[j] == "}")
                if not depth:
                    self.tokens[i], self.tokens[j] = "(", ")"
                    return
