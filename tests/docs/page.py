"""Run the Python of one page: ``python -m tests.docs.page README.md``.

The blocks of a page are one program, run in order with shared names. What a block prints must equal the ``text`` block
that follows it, if one does, but for white space at line ends. A block opened by ```` ```python raises ```` must raise,
and each line of its ``text`` block must occur in the message. Each block runs from a file of its own, because kernels
are compiled from their source.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block of Python: where it stands, what it says, whether it must raise, and what must come out."""

    line: int
    source: str
    raises: bool
    expected: str | None


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page."""
    fences = list(FENCE.finditer(text))
    found = []
    for at, fence in enumerate(fences):
        kind = fence[1].split()
        if kind[:1] != ["python"]:
            continue
        after = fences[at + 1] if at + 1 < len(fences) else None
        answered = after is not None and after[1].strip() == "text" and not text[fence.end() : after.start()].strip()
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(line, fence[2], "raises" in kind, after[2] if answered else None))
    return found


def run(page: Path) -> list[str]:
    """Run a page; a sentence for each block that did not do what the page says."""
    module = ModuleType("page_" + page.stem)
    sys.modules[module.__name__] = module  # where postponed annotations look for their names
    names = vars(module)
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for number, block in enumerate(blocks(page.read_text(encoding="utf-8"))):
            path = Path(folder) / f"block_{number}.py"
            path.write_text(block.source, encoding="utf-8")
            problem = _run_block(block, path, names)
            if problem:
                wrong.append(f"{page.name}:{block.line}: {problem}")
    return wrong


def _run_block(block: Block, path: Path, names: dict[str, object]) -> str:
    printed, error = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(block.source, str(path), "exec"), names)
    except Exception as caught:
        error = caught
    if block.raises:
        if error is None:
            return "should have raised"
        missing = [line for line in _lines(block.expected or "") if line.strip() not in str(error)]
        return f"the message lacks {missing}:\n{error}" if missing else ""
    if error is not None:
        return "".join(traceback.format_exception(error))
    if block.expected is not None and _lines(printed.getvalue()) != _lines(block.expected):
        return f"printed\n{printed.getvalue()}\nthe page says\n{block.expected}"
    return ""


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


if __name__ == "__main__":
    problems = [problem for page in sys.argv[1:] for problem in run(Path(page))]
    print("\n".join(problems))
    sys.exit(bool(problems))
