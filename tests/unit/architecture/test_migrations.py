"""The migrations of each service are one line, in the order of their numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SERVICES = Path(__file__).resolve().parents[3] / "services"
FOLDERS = sorted(SERVICES.glob("*/*/migrations/versions"))
_DOWN = re.compile(r'^down_revision = (?:"(?P<number>\d{4})"|None)$', re.MULTILINE)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SERVICES).parts[0]))
def test_each_migration_follows_the_one_before(folder: Path) -> None:
    before = None
    for page in sorted(folder.glob("[0-9]*.py")):
        source = page.read_text()
        assert f'revision = "{page.name[:4]}"' in source.splitlines()
        found = _DOWN.search(source)
        assert found is not None, page.name
        assert found["number"] == before, page.name
        before = page.name[:4]
    assert before is not None
