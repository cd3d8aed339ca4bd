"""The documents hang together: links lead somewhere, and every decision is in the index."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("docs", "examples", "services", "engines", "launchers", "compat", "changelog.d")
_FOUND = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
# What npm installed below the page is not written here.
PAGES = sorted(page for page in _FOUND if "node_modules" not in page.parts)
_LINK = re.compile(r"\]\((?!https?://|mailto:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """What a page's headings are linked by."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    # A release moves fragments into the changelog: their links begin where that stands.
    start = ROOT if ROOT / "changelog.d" in page.parents else page.parent
    broken = []
    for link in _LINK.finditer(page.read_text()):
        target = start / link["path"] if link["path"] else page
        exists = target.exists()
        if not exists or (link["anchor"] and link["anchor"] not in anchors(target)):
            broken.append(link[0])
    assert broken == []


def test_every_decision_has_its_number_and_is_in_the_index() -> None:
    folder = ROOT / "docs" / "adr"
    index = (folder / "README.md").read_text()
    decisions = sorted(page for page in folder.glob("*.md") if page.name != "README.md")
    # There may be gaps: numbers are given before decisions are written.
    assert len({page.name[:4] for page in decisions}) == len(decisions)
    for page in decisions:
        assert page.read_text().startswith(f"# {page.name[:4]} ")
        assert f"({page.name})" in index


def test_every_hint_to_install_names_the_distribution() -> None:
    """``pip install resolute`` would install another project."""
    hint = re.compile(r"pip install[^\n]*\bresolute(?!-train)\b|\bresolute\[")
    sources = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.toml", "*.yaml", "*.cfg", "Makefile"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    wrong = [
        f"{name}: {found[0]}"
        for name in sources.stdout.split()
        if name != "tests/unit/architecture/test_documents.py" and not name.lower().startswith("changelog")
        for found in hint.finditer((ROOT / name).read_text())
    ]
    assert wrong == []
