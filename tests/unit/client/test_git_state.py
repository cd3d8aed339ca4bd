"""What of a git work tree is recorded with a submission."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from resolute.client.submission import git_state
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
    monkeypatch.setattr(git_state, "SECONDS", 60.0)  # many tests may run beside this one
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
    for name in ("clean", "process"):
        git(code, "config", f"filter.tool.{name}", f"touch {evidence} #")
    git(code, "config", "filter.tool.required", "true")
    (code.parent / ".gitattributes").write_text("*.py filter=tool\n")
    (code / "train.py").write_text("after\n")
    state = read_git_state(code, secrets=NO_SECRETS)
    assert state is not None
    assert "+after" in state.diff
    assert not evidence.exists()


def test_settings_of_the_user_do_not_change_the_diff(code: Path) -> None:
    (code / "train.py").write_text("before\n\nafter\n")
    (code / "old.py").rename(code / "new.py")
    git(code, "add", "-A")
    plain = read_git_state(code, secrets=NO_SECRETS)
    settings = {
        "noprefix": "true",
        "context": "0",
        "renames": "copies",
        "relative": "true",
        "algorithm": "patience",
    }
    for name, value in settings.items():
        git(code, "config", f"diff.{name}", value)
    git(code, "config", "core.abbrev", "12")
    assert read_git_state(code, secrets=NO_SECRETS) == plain


def test_variables_of_another_repository_have_no_effect(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(code, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    state = read_git_state(code, secrets=NO_SECRETS)
    assert state is not None
    assert (state.commit, state.diff) == (commit, "")


def test_changed_files_that_are_left_out_are_told(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code / "train.py").write_text("after\n")
    (code / "old.py").write_text("after\n")
    monkeypatch.setattr(git_state, "_MAX_FILES", 1)
    state = read_git_state(code, secrets=NO_SECRETS)
    assert state is not None
    assert state.truncated
    assert "old.py" in state.diff
    assert "train.py" not in state.diff


def test_of_a_deleted_file_only_the_name_is_told(code: Path) -> None:
    (code / "old.py").unlink()
    state = read_git_state(code, secrets=NO_SECRETS)
    assert state is not None
    assert "old.py" in state.diff
    assert "before" not in state.diff


def test_git_that_does_not_end_is_warned_of(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(git_state, "SECONDS", 0.1)
    assert read_git_state(code, secrets=NO_SECRETS) is None
    assert "git took longer than 0.1 seconds" in caplog.text


@pytest.mark.parametrize(
    "name", ["PGPASSWORD", "MYSQL_PWD", "DB_PASS", "GH_PAT", "SIGNING_PASSPHRASE", "AWS_SECRET_ACCESS_KEY"]
)
def test_variables_that_are_named_like_secrets_are_masked(name: str) -> None:
    secrets = known_secrets("", {name: "hush-hush", "PWD": "/home/ada", "PATH": "/usr/bin:/bin"})
    assert (
        secrets.mask(b"hush-hush in /home/ada with /usr/bin:/bin") == b"*** in /home/ada with /usr/bin:/bin"
    )


def test_passwords_in_urls_and_lines_of_secrets_are_masked() -> None:
    url = "postgres://ada:correct-horse@db/x"
    secrets = known_secrets("", {"DATABASE_URL": url, "DEPLOY_KEY": "first line\n  second line\n"})
    assert secrets.mask(f"{url} correct-horse".encode()) == b"*** ***"
    assert secrets.mask(b"+first line\n+second line\n") == b"+***\n+***\n"


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
