"""How a release is made, in a clone of this repository."""

from __future__ import annotations

import datetime as dt
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
TODAY = dt.date(2030, 1, 2)


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with the files that a release reads and writes, as they are here."""
    root = tmp_path / "clone"
    names = subprocess.run(
        ["git", "ls-files", "-z", "protos", "buf.yaml", "pyproject.toml", "CHANGELOG.md", "changelog.d"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes((ROOT / name).read_bytes())
    (root / "changelog.d" / "search").mkdir(exist_ok=True)
    (root / "changelog.d" / "search" / "+something.fixed.md").write_text("- Something.\n")
    for command in (
        ["init", "--quiet"],
        ["config", "user.name", "Test"],
        ["config", "user.email", "test@example.org"],
        ["add", "."],
        ["commit", "--quiet", "--message", "Start"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


def test_a_release_is_a_commit_with_a_tag_a_number_and_an_image_of_the_contract(
    tool: ModuleType, clone: Path
) -> None:
    tool.release(clone, "9.8.7", today=TODAY, build=False)
    assert tool.run("git", "describe", "--exact-match", cwd=clone).strip() == "v9.8.7"
    assert tool.run("git", "status", "--porcelain", cwd=clone) == ""
    assert 'version = "9.8.7"' in (clone / "pyproject.toml").read_text()
    heading, *others = re.findall(r"^## .*", (clone / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading == "## [9.8.7] - 2030-01-02"
    assert "## [0.1.0] - 2026-11-22" in others
    released = (clone / "CHANGELOG.md").read_text().partition(heading)[2].partition(others[0])[0]
    search = released.partition("\n### Search\n")[2].partition("\n### ")[0]
    assert "- Something.\n" in search.partition("\n#### Fixed\n")[2]
    assert not list((clone / "changelog.d").glob("*/*.md"))
    buf = Path(sys.executable).with_name("buf")
    against = ["breaking", "--against", "protos/releases/v9.8.7.binpb"]
    tool.run(str(buf), *against, cwd=clone)
    proto = clone / "protos/resolute/api/common/v1/value.proto"
    proto.write_text(proto.read_text().replace("= 1;", "= 99;", 1))
    with pytest.raises(tool.ReleaseError, match=r"value\.proto"):
        tool.run(str(buf), *against, cwd=clone)


@pytest.mark.parametrize(
    ("version", "prepare", "message"),
    [
        ("1.0", lambda _root: None, "three numbers"),
        ("9.8.7", lambda root: (root / "buf.yaml").write_text("changed"), "has changes"),
        (
            "9.8.7",
            lambda root: subprocess.run(["git", "tag", "v9.8.7"], cwd=root, check=True),
            "tag v9.8.7 exists",
        ),
    ],
)
def test_what_is_in_the_way_of_a_release_is_said_and_nothing_is_committed(
    tool: ModuleType, clone: Path, version: str, prepare: Callable[[Path], object], message: str
) -> None:
    before = tool.run("git", "rev-parse", "HEAD", cwd=clone)
    prepare(clone)
    with pytest.raises(tool.ReleaseError, match=message):
        tool.release(clone, version, today=TODAY, build=False)
    assert tool.run("git", "rev-parse", "HEAD", cwd=clone) == before


def test_a_release_without_a_line_in_the_changelog_is_refused(tool: ModuleType, clone: Path) -> None:
    for fragment in (clone / "changelog.d").glob("*/*.md"):
        fragment.unlink()
    tool.run("git", "commit", "--quiet", "--all", "--message", "Empty", cwd=clone)
    with pytest.raises(tool.ReleaseError, match="no fragments"):
        tool.release(clone, "9.8.7", today=TODAY, build=False)


def test_every_line_of_a_fragment_is_in_the_next_release(tool: ModuleType) -> None:
    command = ("-m", "towncrier", "build", "--draft", "--version", "9.8.7")
    draft = set(tool.run(sys.executable, *command, cwd=ROOT).splitlines())
    fragments = [
        path for path in (ROOT / "changelog.d").rglob("*") if path.suffix != ".jinja" and path.is_file()
    ]
    missing = [
        path.name for path in fragments if not draft.issuperset(path.read_text().rstrip().splitlines())
    ]
    assert missing == []
    assert all(path.read_text().startswith("- ") for path in fragments)
