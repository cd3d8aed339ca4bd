"""Actions of the workflows are named by digest: what a tag names may be replaced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted((Path(__file__).parents[3] / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_named_by_its_digest_and_its_version(workflow: Path) -> None:
    used = re.findall(r"^\s*-? ?uses: (.*)$", workflow.read_text(), re.MULTILINE)
    assert used
    assert [use for use in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", use)] == []
