"""What of a git work tree is recorded with a submission."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from resolute.client.submission.git_state import MAX_DIFF_BYTES, VARIABLE, known_secrets, read_git_state
from resolute.runtime.redaction import Secrets

NO_SECRETS = Secrets()


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    command = ["git", *identity, "-C", str(directory), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Code in a subdirectory of a work tree, everything committed."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", VARIABLE):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "tree" / "code"
    (path / "data").mkdir(parents=True)
    for name in ("train.py", "data/big.txt", "old.py", "../elsewhere.py"):
        (path / name).write_text("before\n")
    (path / ".detignore").write_text("data/\n")
    git(path.parent, "init", "-q", "-b", "main")
    git(path.parent, "add", ".")
    git(path.parent, "commit", "-q", "-m", "first")
    return path


def test_an_unchanged_tree_has_a_commit_and_no_diff(code: Path) -> None:
    state = read_git_state(code, secrets=NO_SECRETS)
    assert state is not None
    assert (state.commit, state.branch, state.diff) == (git(code, "rev-parse", "HEAD"), "main", "")
    git(code, "checkout", "-q", "--detach")
    state = read_git_state(code, secrets=NO_SECRETS)
    assert state is not None
    assert state.branch == ""


def test_only_changes_of_submitted_files_are_in_it_and_no_secrets(code: Path) -> None:
    (code / "train.py").write_text("token = 'hush-hush-4711'\n")
    (code / "data" / "big.txt").write_text("ignored\n")
    (code / "old.py").unlink()
    (code.parent / "elsewhere.py").write_text("not submitted\n")
    secrets = known_secrets("", {"SERVICE_TOKEN": "hush-hush-4711", "HOME": "before", "API_KEY": "short"})
    state = read_git_state(code, secrets=secrets)
    assert state is not None
    assert "+token = '***'" in state.diff
    assert "hush" not in state.diff
    assert "deleted file" in state.diff
    assert "-before" in state.diff
    assert "ignored" not in state.diff
    assert "not submitted" not in state.diff
    alone = read_git_state(code / "train.py", secrets=secrets)
    assert alone is not None
    assert "train.py" in alone.diff
    assert "old.py" not in alone.diff


def test_settings_of_the_work_tree_run_no_programs(code: Path, tmp_path: Path) -> None:
    evidence = tmp_path / "ran"
    git(code, "config", "diff.external", f"touch {evidence} #")
    git(code, "config", "core.fsmonitor", f"touch {evidence} #")
    (code / "train.py").write_text("after\n")
    state = read_git_state(code, secrets=NO_SECRETS)
    assert state is not None
    assert "+after" in state.diff
    assert not evidence.exists()


def test_a_long_diff_is_cut_between_characters(code: Path) -> None:
    (code / "train.py").write_text("\u00e9" * MAX_DIFF_BYTES)
    state = read_git_state(code, secrets=NO_SECRETS)
    assert state is not None
    assert state.truncated
    assert MAX_DIFF_BYTES - 1 <= len(state.diff.encode()) <= MAX_DIFF_BYTES


def test_without_git_or_against_the_users_wish_nothing_is_told(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert read_git_state(plain, secrets=NO_SECRETS) is None
    assert read_git_state(None, secrets=NO_SECRETS) is None
    monkeypatch.setenv(VARIABLE, "1")
    assert read_git_state(code, secrets=NO_SECRETS) is None
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv("PATH", str(plain))
    assert read_git_state(code, secrets=NO_SECRETS) is None
