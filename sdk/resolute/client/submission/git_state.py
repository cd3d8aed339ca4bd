"""The state of the git work tree from which code is submitted: its commit and the changes since."""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from resolute.client.submission.git_command import Git
from resolute.client.submission.ignore_rules import IgnoreRules
from resolute.runtime.redaction import Secrets

_log = logging.getLogger(__name__)

VARIABLE = "RESOLUTE_NO_GIT"
"""Set to 1, nothing of git is read or sent."""
MAX_DIFF_BYTES = 256 * 1024
SECONDS = 10.0
"""How long git may take in all."""
_MAX_READ = 4 * MAX_DIFF_BYTES
"""Masks are shorter than secrets, so more is read than is kept."""
_MAX_BRANCH = 1000
_MAX_FILES = 1000
_MAX_NAMES_BYTES = 512 * 1024
"""Of changed files: together they are arguments of one command."""
_SECRET_NAME = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|APIKEY)S?$|(?:^|_)(?:KEY|PASS|PAT|DSN)$|_PWD$"
)
_PASSWORD_IN_URL = re.compile(r"://[^/\s]*:([^/\s]+)@")
_SHORTEST_SECRET = 8
"""Characters: shorter values occur in text that has nothing to do with them."""
_DIFF = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--ignore-submodules=all",
    "--diff-algorithm=myers",
    "--indent-heuristic",
    "--unified=3",
    "--inter-hunk-context=0",
    "--full-index",
    "--irreversible-delete",  # of deleted files the names suffice
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "-O/dev/null",
)


@dataclass(frozen=True, kw_only=True)
class GitState:
    """A work tree at one moment."""

    commit: str
    """40 or 64 hex digits."""
    branch: str
    """Empty for none."""
    diff: str
    """How the submitted files differ from the commit, secrets masked; empty for no difference."""
    truncated: bool = False
    """Whether the diff was longer."""


def known_secrets(token: str, environ: Mapping[str, str]) -> Secrets:
    """Returns what must not be in a diff: a token, and what variables hold that are named like secrets.

    URLs with a password in them are secrets whatever the variable is named.
    """
    secrets = (part for name, value in environ.items() for part in _secrets_of(name, value))
    return Secrets(token, *(part for part in secrets if len(part) >= _SHORTEST_SECRET))


def _secrets_of(name: str, value: str) -> Iterator[str]:
    password = _PASSWORD_IN_URL.search(value)
    if password:
        yield password[1]
    if password or _SECRET_NAME.search(name.upper()):
        # A diff marks every line, so that several lines of a secret never follow one another in it.
        yield from (line.strip() for line in value.splitlines())


def read_git_state(model_definition: Path | None, *, secrets: Secrets) -> GitState | None:
    """Reads the state of the work tree that a model definition lies in.

    Args:
        model_definition: The directory or file; None for none.
        secrets: Masked in the diff.

    Returns:
        The state; None without git, outside of a work tree, or if the user wants none to be read.
    """
    if model_definition is None or os.environ.get(VARIABLE, "") not in ("", "0"):
        return None
    root = model_definition if model_definition.is_dir() else model_definition.parent
    try:
        git = Git(root, seconds=SECONDS)
        commit = git.read("rev-parse", "--verify", "HEAD", limit=_MAX_BRANCH).decode().strip()
        branch = git.read("rev-parse", "--abbrev-ref", "HEAD", limit=_MAX_BRANCH)
        diff, truncated = _diff(git, root, model_definition, secrets)
    except subprocess.TimeoutExpired:
        _log.warning(
            "the git state of %s is not recorded: git took longer than %g seconds; set %s=1 to leave it out",
            root,
            SECONDS,
            VARIABLE,
        )
        return None
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    name = branch.decode(errors="replace").strip()
    return GitState(
        commit=commit, branch="" if name == "HEAD" else name[:_MAX_BRANCH], diff=diff, truncated=truncated
    )


def _diff(git: Git, root: Path, model_definition: Path, secrets: Secrets) -> tuple[str, bool]:
    """Returns how the submitted files differ from the commit, and whether that is not all."""
    files, truncated = _changed_files(git, root, model_definition)
    if not files:
        return "", truncated
    read = git.read(*_DIFF, "HEAD", "--", *files, limit=_MAX_READ)
    text = secrets.mask(read)
    if len(read) > _MAX_READ:
        text = text[: len(text) - secrets.partial_secret_length(text)]
    text = text.decode(errors="replace").encode()
    truncated = truncated or len(read) > _MAX_READ or len(text) > MAX_DIFF_BYTES
    return text[:MAX_DIFF_BYTES].decode(errors="ignore"), truncated


def _changed_files(git: Git, root: Path, model_definition: Path) -> tuple[list[str], bool]:
    """Returns the changed files that are submitted, relative to the root, and whether there are more."""
    rules = IgnoreRules(root)
    only = "." if model_definition.is_dir() else f"./{model_definition.name}"
    arguments = (*_DIFF, "--name-only", "--relative", "-z", "HEAD", "--", only)
    names = git.read(*arguments, limit=_MAX_NAMES_BYTES)
    whole = names[:_MAX_NAMES_BYTES].split(b"\0")[:-1]
    changed = [name.decode(errors="surrogateescape") for name in whole]
    submitted = [f":(literal){name}" for name in changed if not _skipped(rules, name)]
    return submitted[:_MAX_FILES], len(names) > _MAX_NAMES_BYTES or len(submitted) > _MAX_FILES


def _skipped(rules: IgnoreRules, name: str) -> bool:
    parts = name.split("/")
    above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
    return rules.skips(name, directory=False) or any(rules.skips(path, directory=True) for path in above)
