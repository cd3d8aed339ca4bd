"""A package is named once in pyproject.toml, and in the layers."""

from __future__ import annotations

from pathlib import Path

import pytest
from package_lists import with_lists

PROJECT = (Path(__file__).resolve().parents[3] / "pyproject.toml").read_text()


def test_the_lists_are_those_of_the_wheel() -> None:
    assert with_lists(PROJECT) == PROJECT


def test_a_new_package_is_written_into_the_other_lists() -> None:
    project = PROJECT.replace(
        '  "sdk/resolute",\n', '  "sdk/resolute",\n  "services/mail/resolute_mail",\n', 1
    )
    with pytest.raises(SystemExit, match="resolute_mail has no place in `layers`"):
        with_lists(project)
    written = with_lists(project.replace("resolute_logs |", "resolute_logs | resolute_mail |", 1))
    assert ":services/mail:" in written
    assert written.count('  "resolute_mail",\n') == 1
