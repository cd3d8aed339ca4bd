"""Builds the site: ``python tools/docs_site/build.py`` writes build/site/html; a broken link fails it.

The pages are assembled here, with the project's own environment; Zensical, which lies in one of its own,
makes HTML of them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs_site import command_line, config_fields, contract, pages, python_api

OUT = pages.ROOT / "build/site"
_SECTIONS = {
    "reference/commands": command_line.pages,
    "reference/services": contract.pages,
    "reference/python": python_api.pages,
}
_REFERENCE = """\
# Reference

- [Commands](commands/README.md)
- [Fields of the config](config.md)
- [Python](python/README.md)
- [Services](services/README.md), call by call
- [Errors by their reason](../errors.md)
"""


def assemble(target: Path) -> None:
    """Writes all pages, as Markdown, into a directory."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    pages.copy_pages(target)
    docs = target / "docs"
    for section, write in _SECTIONS.items():
        (docs / section).mkdir(parents=True)
        for name, text in write():
            (docs / section / name).write_text(text)
    (docs / "reference/config.md").write_text(config_fields.page())
    (docs / "reference/README.md").write_text(_REFERENCE)


def main(zensical: str) -> int:
    """Builds the site with the program ``zensical``; returns its exit code."""
    assemble(OUT / "pages")
    shutil.copy(Path(__file__).parent / "zensical.toml", OUT / "zensical.toml")
    return subprocess.run([zensical, "build", "--strict", "--clean"], cwd=OUT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1] if len(sys.argv) > 1 else "zensical"))
