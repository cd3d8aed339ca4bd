"""How a release is made, in a clone of this repository."""

from __future__ import annotations

import datetime as dt
import importlib.util
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
        ["git", "ls-files", "-z", "protos", "buf.yaml", "pyproject.toml", "CHANGELOG.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes((ROOT / name).read_bytes())
    changelog = root / "CHANGELOG.md"
    changelog.write_text(
        changelog.read_text().replace("## [Unreleased]", "## [Unreleased]\n\n- Something.", 1)
    )
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
    changelog = (clone / "CHANGELOG.md").read_text()
    assert "## [Unreleased]\n\n## [9.8.7] - 2030-01-02\n\n- Something." in changelog
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
    changelog = clone / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## [Unreleased]\n\n## [0.0.1] - 2029-01-01\n\n- Older.\n")
    tool.run("git", "commit", "--quiet", "--all", "--message", "Empty", cwd=clone)
    with pytest.raises(tool.ReleaseError, match="nothing under Unreleased"):
        tool.release(clone, "9.8.7", today=TODAY, build=False)
