"""A place in the user's source: what every operation carries and every error prints."""

from __future__ import annotations

import linecache
from typing import NamedTuple


class Span(NamedTuple):
    """A range of source text: file, first line (1-based), first and last column (0-based, in characters)."""

    file: str
    line: int
    column: int = 0
    end_column: int = 0

    def text(self) -> str:
        """The source line, without its newline; empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def show(self) -> str:
        """``file:line``, the source line, and a caret line under the range."""
        where = f"{self.file}:{self.line}"
        text = self.text()
        if not text.strip():
            return where
        indent = len(text) - len(text.lstrip())
        start = max(self.column - indent, 0)
        width = max(self.end_column - self.column, 1)
        return f"{where}\n    {text.strip()}\n    {' ' * start}{'^' * width}"


NOWHERE = Span("<treadle>", 0)
