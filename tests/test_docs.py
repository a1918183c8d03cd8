"""What the README and the docs show is true: their Python runs, their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks() -> list[tuple[str, str]]:
    """Every ``python`` block of every page, with where it begins."""
    found = []
    for page in PAGES:
        for match in re.finditer(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M):
            line = page.read_text()[: match.start()].count("\n") + 1
            found.append((f"{page.name}:{line}", match.group(1)))
    return found


@pytest.mark.parametrize("code", [pytest.param(code, id=place) for place, code in python_blocks()])
def test_python_in_the_docs_runs(code: str) -> None:
    exec(compile(code, "<docs>", "exec"), {"__name__": "__docs__"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for text, target in re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name}: [{text}]({target})"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.M)
            slugs = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]
            assert anchor in slugs, f"{page.name}: [{text}]({target}), headings {slugs}"


def test_the_readme_has_the_commands_that_ci_runs() -> None:
    text = (ROOT / "README.md").read_text()
    for name in ("train", "test"):
        assert re.search(rf"<!-- command: {name} -->\n```bash\n.+?^```", text, re.S | re.M), name
