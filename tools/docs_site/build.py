"""Builds the site: ``python tools/docs_site/build.py`` writes build/site/html; a broken link fails it.

The pages are assembled here, with the project's own environment; Zensical, which lies in one of its own,
makes HTML of them.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs_site import archives, command_line, config_fields, contract, pages, python_api

OUT = pages.ROOT / "build/site"
_FINISHED = "Build finished"
_NO_ISSUES = "No issues found"
_QUIET_SECONDS = 900.0
_END_SECONDS = 10.0
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
    archives.offer(target, pages.copy_pages(target))
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
    own = Path(__file__).parent
    shutil.copy(own / "zensical.toml", OUT)
    shutil.copy(own / "narrow.css", OUT / "pages")
    return asyncio.run(render(zensical, OUT))


async def render(zensical: str, folder: Path, *, end_seconds: float = _END_SECONDS) -> int:
    """Makes HTML of the pages, and shows the messages of the build.

    When it says that it is finished, all files are written. What follows is the end of its interpreter, which
    looks at every object of the references once more: a second on an idle machine, twenty were seen on a busy
    one. So it is given some seconds, then it is killed, and what it found counts.

    Args:
        zensical: The program.
        folder: Where its settings are.
        end_seconds: How long it may take to end after it has finished.

    Returns:
        The exit code; 1 where it fell silent before it was finished.
    """
    command = (zensical, "build", "--strict", "--clean")
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert process.stdout is not None
    output = ""
    try:
        while line := await asyncio.wait_for(
            process.stdout.readline(), end_seconds if _FINISHED in output else _QUIET_SECONDS
        ):
            output += line.decode(errors="replace")
            sys.stdout.write(line.decode(errors="replace"))
            sys.stdout.flush()
        return await asyncio.wait_for(process.wait(), end_seconds)
    except asyncio.TimeoutError:
        sys.stderr.write(f"{zensical} did not end by itself and was killed\n")
        return 0 if _FINISHED in output and _NO_ISSUES in output else 1
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1] if len(sys.argv) > 1 else "zensical"))
