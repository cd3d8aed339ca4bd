"""Archives of the examples, which their pages offer for download."""

from __future__ import annotations

import gzip
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from docs_site.pages import ROOT

_EXAMPLES = "examples"
_TIME = 946_684_800.0
"""Of the files in an archive, so that equal files make equal archives: the year 2000."""


def offer(target: Path, paths: Iterable[str]) -> list[str]:
    """Writes ``examples/NAME.tgz`` for each example that has a page, and links to it at the page's end.

    Args:
        target: Directory of the copied pages.
        paths: The pages, from the root of the repository.

    Returns:
        The paths of the archives, from the root of the site.
    """
    examples = [
        PurePosixPath(path).parent for path in paths if PurePosixPath(path).match("examples/*/README.md")
    ]
    for example in examples:
        page = target / example / "README.md"
        page.write_text(
            f"{page.read_text().rstrip()}\n\nAll files: [{example.name}.tgz](../{example.name}.tgz)\n"
        )
        _write(target / f"{example}.tgz", example)
    return [f"{example}.tgz" for example in examples]


def _write(archive: Path, example: PurePosixPath) -> None:
    command = ["git", "ls-files", "-z", "--", str(example)]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    with gzip.GzipFile(archive, "wb", mtime=_TIME) as packed, tarfile.open(fileobj=packed, mode="w") as files:
        for path in sorted(filter(None, listed.split("\0"))):
            files.add(ROOT / path, str(PurePosixPath(path).relative_to(_EXAMPLES)), filter=_impersonal)


def _impersonal(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = _TIME
    return member
