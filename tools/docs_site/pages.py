"""The pages that people wrote, copied with the layout of the repository: links between them stay true."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from posixpath import normpath

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/resolute-train/resolute/blob/main"
_LEFT_OUT = (".github/", "tests/")
_PICTURES = "docs/pictures/"
_LINK = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")


def copy_pages(target: Path) -> list[str]:
    """Copies every page and picture into a directory; returns their paths from the root of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", f"{_PICTURES}*"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = [path for path in listed.stdout.split() if not path.startswith(_LEFT_OUT)]
    known = set(paths)
    for path in paths:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        if path.startswith(_PICTURES):
            shutil.copy(ROOT / path, target / path)
            continue
        text = linked((ROOT / path).read_text(), path, is_page=known.__contains__)
        (target / path).write_text(text)
    return paths


def linked(text: str, path: str, *, is_page: Callable[[str], bool]) -> str:
    """Lets links to what is no page, such as code, lead to the repository; directories to their pages.

    Args:
        text: A page.
        path: Its path from the root of the repository.
        is_page: Whether there is a page at a path.
    """

    def target(match: re.Match[str]) -> str:
        link, anchor = match[1], match[2] or ""
        if re.match(r"[a-z]+:", link):
            return match[0]
        page = normpath((PurePosixPath(path).parent / link).as_posix())
        if is_page(page):
            return match[0]
        if is_page(f"{page}/README.md"):
            return f"{link.rstrip('/')}/README.md{anchor}"
        return f"{REPOSITORY}/{page}{anchor}"

    return _LINK.sub(target, text)
