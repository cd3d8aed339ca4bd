"""Makes a release: ``make release VERSION=0.2.0``.

Sets the version, moves the fragments of ``changelog.d`` into the changelog, freezes the contract as an image
that later changes are compared with, builds the distributions, commits and tags. Nothing is pushed or
uploaded: the last line that it prints says how.
"""

from __future__ import annotations

import argparse
import datetime as dt
import pathlib
import re
import subprocess
import sys

CONTRACTS = pathlib.Path("protos/releases")
FRAGMENTS = pathlib.Path("changelog.d")
_VERSION = re.compile(r'^version = "(?P<number>[^"]+)"$', re.MULTILINE)


class ReleaseError(Exception):
    """The release cannot be made; says why and what to do."""


def run(*command: str, cwd: pathlib.Path) -> str:
    """Runs a command and returns what it printed.

    Raises:
        ReleaseError: The command failed.
    """
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if result.returncode:
        raise ReleaseError(f"`{' '.join(command)}` failed: {result.stderr or result.stdout}")
    return result.stdout


def check(root: pathlib.Path, version: str) -> None:
    """Makes sure that the release can be made.

    Raises:
        ReleaseError: It cannot.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ReleaseError(f"{version!r} is no version: write three numbers, such as 0.2.0")
    if run("git", "status", "--porcelain", cwd=root):
        raise ReleaseError("the working tree has changes: commit or stash them first")
    if run("git", "tag", "--list", f"v{version}", cwd=root):
        raise ReleaseError(f"the tag v{version} exists: choose the next version")
    if not any((root / FRAGMENTS).glob("*/*.md")):
        raise ReleaseError(f"{FRAGMENTS} has no fragments: say what this release changes")


def set_version(root: pathlib.Path, version: str, *, today: dt.date) -> None:
    """Writes the version into ``pyproject.toml`` and the fragments, as its part, into the changelog."""
    project = root / "pyproject.toml"
    project.write_text(_VERSION.sub(f'version = "{version}"', project.read_text(), count=1))
    towncrier = (sys.executable, "-m", "towncrier", "build", "--yes")
    run(*towncrier, "--version", version, "--date", today.isoformat(), cwd=root)


def freeze_contract(root: pathlib.Path, version: str) -> pathlib.Path:
    """Writes the image of the contract; returns its path below ``root``."""
    image = CONTRACTS / f"v{version}.binpb"
    (root / CONTRACTS).mkdir(exist_ok=True)
    buf = pathlib.Path(sys.executable).with_name("buf")
    run(str(buf), "build", "--exclude-source-info", "--output", str(image), cwd=root)
    return image


def release(root: pathlib.Path, version: str, *, today: dt.date, build: bool = True) -> None:
    """Makes the release in a checkout.

    Raises:
        ReleaseError: It cannot be made; nothing was committed.
    """
    check(root, version)
    set_version(root, version, today=today)
    image = freeze_contract(root, version)
    if build:
        run(sys.executable, "-m", "build", "--outdir", "dist", cwd=root)
    run("git", "add", "pyproject.toml", "CHANGELOG.md", str(image), cwd=root)
    run("git", "commit", "--quiet", "--message", f"Release {version}", cwd=root)
    run("git", "tag", "--annotate", "--message", f"Release {version}", f"v{version}", cwd=root)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    version = parser.parse_args().version
    try:
        release(
            pathlib.Path(__file__).resolve().parent.parent,
            version,
            today=dt.datetime.now(tz=dt.timezone.utc).date(),
        )
    except ReleaseError as error:
        sys.exit(f"no release was made: {error}")
    print(
        f"v{version} is committed, tagged and built: `git push --follow-tags`, then upload dist/*{version}*"
    )


if __name__ == "__main__":
    main()
