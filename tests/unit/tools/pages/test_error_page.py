"""The page about errors says what the command line says."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_the_page_is_current() -> None:
    tool = runpy.run_path(str(ROOT / "tools/pages/error_page.py"))
    assert (ROOT / "docs/errors.md").read_text() == tool["page"](), "run tools/pages/error_page.py"
