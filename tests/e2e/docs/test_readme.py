"""The tour works: every command of it is run, in order, as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.pages.commands import ROOT, blocks_of, run_script, script_of

pytestmark = pytest.mark.timeout(1000)

PAGE = "docs/tour.md"
PAGES = ("README.md", PAGE)


def test_few_blocks_are_left_out_and_each_says_why() -> None:
    left_out = [block for page in PAGES for block in blocks_of(page) if block.reason]
    assert len(left_out) <= 2
    # The targets that run these pages, and the installation, which `make install-lines` runs.
    assert all("make" in block.code or "pip install" in block.code for block in left_out)


def test_what_is_left_out_are_targets_that_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name
        for page in PAGES
        for block in blocks_of(page)
        for name in re.findall(r"\bmake (\w+)", block.code)
    }
    assert named <= targets


def test_the_first_page_fits_a_screen_and_has_a_picture() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 70
    pictures = re.findall(r"!\[.+\]\((.+)\)", text)
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


@pytest.mark.sampled(2, group="pages that run long")
def test_the_tour_runs_from_beginning_to_end(tmp_path: Path) -> None:
    tour = script_of(PAGE).replace("/tmp/resolute-tour", str(tmp_path / "tour"))
    said = run_script(tour, tmp_path, timeout=900)
    assert (tmp_path / "tour" / "best" / "model.pt").is_file()
    assert said.count("COMPLETED") >= 5
