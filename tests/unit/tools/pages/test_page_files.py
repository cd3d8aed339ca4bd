"""Pages name the files that their blocks are: the comments by which tests keep them are not shown."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
KEPT = re.compile(r"^<!-- file: (\S+) -->$", re.MULTILINE)


def test_a_page_names_each_file_before_its_block() -> None:
    unnamed = []
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text()
        for match in KEPT.finditer(text):
            before = text[: match.start()].rstrip().split("\n\n")[-1]
            if not re.search(rf"[`/]{re.escape(Path(match[1]).name)}`", before):
                unnamed.append(f"{page.name}: {match[1]}")
    assert unnamed == []
