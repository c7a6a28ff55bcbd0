"""What the documentation says is what happens: its programs run, and its links lead somewhere."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import page as runner

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
WITH_CODE = [page for page in PAGES if runner.blocks(page.read_text(encoding="utf-8"))]


NEEDS = {"jax.md": "jax", "torch.md": "torch"}  # what is not installed everywhere that tests run


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_programs_do_what_the_page_says(page):
    if page.name in NEEDS and importlib.util.find_spec(NEEDS[page.name]) is None:
        pytest.skip(f"{NEEDS[page.name]} is not installed")
    command = [sys.executable, "-m", "tests.docs.page", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = runner.FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_the_runner_has_teeth(tmp_path):
    page = tmp_path / "a.md"
    page.write_text(
        "```python\nx = 1\nprint(x)\n```\n```text\n1\n```\n"
        "```python\nprint(x + 1)\n```\n\n```text\n3\n```\n"
        "```python raises\nint('a')\n```\n```text\nliteral for int\n```\n"
        "```python raises\nint('1')\n```\n"
        "```python\nundefined_name\n```\n"
        "```sh\nnot python\n```\n"
    )
    wrong = runner.run(page)
    assert [each.split(": ")[0] for each in wrong] == ["a.md:8", "a.md:21", "a.md:24"]
    assert "the page says\n3" in wrong[0] and "should have raised" in wrong[1] and "NameError" in wrong[2]
