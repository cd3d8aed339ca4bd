"""The code that docs/clients.md shows is code of the scenarios, which other tests run."""

from __future__ import annotations

import re
import textwrap

import pytest
from support.pages.commands import ROOT

_BLOCK = re.compile(r"^<!-- (clients/\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWN = _BLOCK.findall((ROOT / "docs/clients.md").read_text())


def _lines(text: str) -> list[str]:
    return [line.strip() for line in textwrap.dedent(text).splitlines() if line.strip()]


@pytest.mark.parametrize("language", ["python", "typescript", "go", "java", "curl"])
def test_the_page_shows_what_the_scenario_does(language: str) -> None:
    shown = [(file, code) for file, code in _SHOWN if file.startswith(f"clients/{language}/")]
    assert len(shown) >= 3
    for file, code in shown:
        source = "\n".join(_lines((ROOT / file).read_text()))
        assert "\n".join(_lines(code)) in source, f"{file} does not have\n{code}"
