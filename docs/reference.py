"""Write the reference pages from what the code itself knows: ``python docs/reference.py docs_out``.

``builtins.md`` lists every builtin with its signatures, description and example, from its record; ``fields.md`` every
array of a physics Model and Data, from the tables of fields (where the ``mujoco`` package is installed).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from treadle.builtins.names import ALIASES, MODULES
from treadle.builtins.registry import Record, records


def builtins_page() -> str:
    """All builtins as Markdown, by group, each overload with its signature."""
    groups: dict[str, list[str]] = {}
    for name in MODULES:
        found = list(records(name))
        groups.setdefault(found[0].group, []).append(name)
    parts = ["# Builtins\n"]
    for group, names in groups.items():
        parts.append(f"\n## {group[0].upper() + group[1:]}\n")
        parts += [_entry(name, list(records(name))) for name in names]
    return "\n".join(parts)


def _entry(name: str, overloads: list[Record]) -> str:
    others = sorted(alias for alias, meant in ALIASES.items() if meant == name)
    also = f" (also `{'`, `'.join(others)}`)" if others else ""
    shown = list(dict.fromkeys(_signature(name, each) for each in overloads))
    texts = list(dict.fromkeys(_formatted(each.doc) for each in overloads if each.doc))
    return f"### {name}{also}\n\n```python\n" + "\n".join(shown) + "\n```\n\n" + "\n\n".join(texts) + "\n"


def _signature(name: str, record: Record) -> str:
    if record.part("sig") is None and record.part("body") is None:
        return f"{name}(...)"  # a record that looks at its arguments itself: the text below says what it takes
    return record.signature.show(name)


def _formatted(doc: str) -> str:
    """A docstring as Markdown: its example becomes a block of code."""
    text, mark, example = doc.partition("\n>>> ")
    return text.strip() + (f"\n\n```python\n>>> {example.strip()}\n```" if mark else "")


def fields_page() -> str:
    """The tables of fields as Markdown."""
    import treadle.mujoco as mjw

    tables = (f"## {t.__name__}\n\n```text\n{t.document()}\n```\n" for t in (mjw.Model, mjw.Data))
    return "# Fields\n\n" + "\n".join(tables)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs_out")
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"builtins.md": builtins_page()}
    if importlib.util.find_spec("mujoco"):
        pages["fields.md"] = fields_page()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
        print(folder / name)


if __name__ == "__main__":
    main()
